//! A way to a server that can be slow, be held up, or be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How bytes are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At once.
    Pass,
    /// Each piece so much later, in both directions.
    Delay(Duration),
    /// Not at all, until the mode is another. Connections stay, and new ones are taken.
    Hold,
}

/// Listens on a free port and passes on what it is sent, both ways. Ends when it goes out of scope.
#[derive(Debug)]
pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    mode: Mode,
    is_over: bool,
    /// Both ends of all connections there ever were.
    streams: Vec<TcpStream>,
}

impl Proxy {
    pub fn to(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let state = Mutex::new(State { mode: Mode::Pass, is_over: false, streams: Vec::new() });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let listener = std::thread::spawn({
            let shared = shared.clone();
            move || listen(&listener, target, &shared)
        });
        Proxy { address, shared, listener: Some(listener) }
    }

    pub fn set(&self, mode: Mode) {
        self.shared.lock().mode = mode;
        self.shared.changed.notify_all();
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        for stream in self.shared.lock().streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        self.cut();
        // Whoever waits for a connection gets one.
        let _ = TcpStream::connect(self.address);
        let _ = self.listener.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as long as the mode says.
    fn wait(&self) {
        let state = self.lock();
        let state = self.changed.wait_while(state, |state| state.mode == Mode::Hold && !state.is_over);
        let mode = state.unwrap_or_else(PoisonError::into_inner).mode;
        if let Mode::Delay(time) = mode {
            std::thread::sleep(time);
        }
    }
}

fn listen(listener: &TcpListener, target: SocketAddr, shared: &Arc<Shared>) {
    for near in listener.incoming().flatten() {
        if shared.lock().is_over {
            return;
        }
        let Ok(far) = TcpStream::connect(target) else { continue };
        for stream in [&near, &far] {
            stream.set_nodelay(true).expect("a socket of ours");
            shared.lock().streams.push(stream.try_clone().expect("there are descriptors"));
        }
        let both = [(&near, &far), (&far, &near)];
        for (from, to) in both.map(|(from, to)| (from.try_clone(), to.try_clone())) {
            let (from, to) = (from.expect("there are descriptors"), to.expect("there are descriptors"));
            let shared = shared.clone();
            std::thread::spawn(move || pass(from, to, &shared));
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, shared: &Shared) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count) = from.read(&mut bytes) {
        shared.wait();
        if count == 0 || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
