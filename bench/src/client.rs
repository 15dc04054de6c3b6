//! One request at a time, for what is not measured.

use crate::wire::http;
use crate::{Error, Result};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A socket that fails rather than waits for ever.
pub fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends a request on a connection of its own; an error unless the answer is a success.
pub fn exchange(address: SocketAddr, request: &[u8]) -> Result<()> {
    let mut stream = connect(address)?;
    stream.write_all(request)?;
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        let read = stream.read(&mut buffer)?;
        bytes.extend_from_slice(&buffer[..read]);
        match http::read(&bytes) {
            Some(response) if (200..300).contains(&response.status) => return Ok(()),
            Some(_) => return Err(String::from_utf8_lossy(&bytes).into()),
            None if read == 0 => return Err("the server closed the connection".into()),
            None => {}
        }
    }
}

/// Tries until it works or a minute has passed.
pub fn until_it_works<T>(mut attempt: impl FnMut() -> Result<T>, mut is_alive: impl FnMut() -> bool) -> Result<T> {
    let start = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(error) if start.elapsed() > PATIENCE => return Err(error),
            Err(_) if !is_alive() => return Err(Error::from("it ended instead of answering")),
            Err(_) => std::thread::sleep(Duration::from_micros(500)),
        }
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
