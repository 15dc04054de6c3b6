//! The control socket: how commands on the same machine reach the server that has a data folder open.
//!
//! `control.sock` stands in the data folder while the server runs. Who may connect is the user that runs the server, and
//! root. A request is a line of JSON and so is its answer:
//!
//! ```text
//! {"backup":"/var/backups/monday.partial"}      -->  {}   or   {"error":"One sentence."}
//! ```

use partita_store_rocksdb::RocksStore;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

const SOCKET: &str = "control.sock";
/// Longest path that the address of a socket takes.
const ADDRESS_BYTES_MAX: usize = 107;
const REQUEST_BYTES_MAX: u64 = 64 << 10;
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Request {
    /// Make a copy of the data in a new folder of this path.
    Backup(PathBuf),
}

#[derive(Debug, Default, Deserialize, Serialize)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A socket in a data folder; removed when it goes out of scope.
#[derive(Debug)]
pub(crate) struct Control {
    listener: UnixListener,
    path: PathBuf,
}

/// A way to name the socket that fits an address, and what must stay open for it to be good.
fn address(folder: &Path) -> io::Result<(PathBuf, Option<File>)> {
    let path = folder.join(SOCKET);
    if path.as_os_str().as_bytes().len() <= ADDRESS_BYTES_MAX {
        return Ok((path, None));
    }
    let folder = File::open(folder)?;
    Ok((PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd())), Some(folder)))
}

impl Control {
    /// Listens in a folder that this process has locked: a socket that is there was left behind.
    pub(crate) fn bind(folder: &Path) -> io::Result<Control> {
        let path = folder.join(SOCKET);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let (address, _open) = address(folder)?;
        let listener = UnixListener::bind(address)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(Control { listener, path })
    }

    /// Serves until `stop` changes, then lets what is under way finish.
    pub(crate) async fn serve(self, store: Arc<RocksStore>, mut stop: watch::Receiver<bool>) {
        let mut requests = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                _ = stop.changed() => break,
                Some(_) = requests.join_next() => continue,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => drop(requests.spawn(respond(stream, store.clone()))),
                Err(error) => {
                    warn!(%error, "cannot accept a connection to the control socket");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(self);
        while requests.join_next().await.is_some() {}
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

async fn respond(mut stream: UnixStream, store: Arc<RocksStore>) {
    let answer = match read(&mut stream).await {
        Ok(Request::Backup(folder)) => {
            info!(to = %folder.display(), "making a backup");
            let made = tokio::task::spawn_blocking(move || store.checkpoint(&folder)).await;
            made.map_err(|error| error.to_string()).and_then(|made| made.map_err(|error| error.to_string()))
        }
        Err(why) => Err(why),
    };
    if let Err(why) = &answer {
        warn!(why, "a request to the control socket failed");
    }
    let mut line = serde_json::to_vec(&Answer { error: answer.err() }).unwrap_or_default();
    line.push(b'\n');
    // Whoever asked may have gone.
    let _ = stream.write_all(&line).await;
}

async fn read(stream: &mut UnixStream) -> Result<Request, String> {
    // The mode of the socket says the same, but not from the first moment on.
    let user = stream.peer_cred().map_err(|error| error.to_string())?.uid();
    if user != 0 && user != rustix::process::geteuid().as_raw() {
        return Err("only the user that runs the server may ask".into());
    }
    let mut line = String::new();
    let mut limited = tokio::io::BufReader::new(stream.take(REQUEST_BYTES_MAX));
    match tokio::time::timeout(REQUEST_TIME_MAX, limited.read_line(&mut line)).await {
        Err(_) => Err("the request did not come".into()),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(_)) => serde_json::from_str(&line).map_err(|error| format!("the request is not understood: {error}")),
    }
}

/// Asks the server that has the data folder open to copy it into a new folder. `None` if there is no server. An error is
/// the reason.
pub(crate) fn ask_for_backup(data: &Path, to: &Path) -> Option<Result<(), String>> {
    let (address, _open) = address(data).ok()?;
    let stream = std::os::unix::net::UnixStream::connect(address);
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused].contains(&error.kind()) => {
            return None;
        }
        Err(error) => return Some(Err(format!("the server cannot be asked: {error}"))),
    };
    Some(exchange(stream, &Request::Backup(to.to_owned())))
}

fn exchange(mut stream: std::os::unix::net::UnixStream, request: &Request) -> Result<(), String> {
    let mut line = serde_json::to_vec(request).map_err(|error| error.to_string())?;
    line.push(b'\n');
    let lost = |error: io::Error| format!("the server went away: {error}");
    stream.write_all(&line).map_err(lost)?;
    let mut answer = String::new();
    BufReader::new(stream.take(REQUEST_BYTES_MAX)).read_line(&mut answer).map_err(lost)?;
    if answer.is_empty() {
        return Err("the server went away".into());
    }
    let answer: Answer = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
    answer.error.map_or(Ok(()), Err)
}
