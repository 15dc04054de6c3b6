//! What stands between a command and a server, and fails.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Stands between a command and the server: answers stop after a number of bytes, or connections end.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    /// How many bytes of answers may still pass.
    allowed: Arc<AtomicUsize>,
    /// Whether a connection ends when they are used up, once.
    cuts: Arc<AtomicBool>,
}

impl Proxy {
    pub(crate) fn start(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (allowed, cuts) = (Arc::new(AtomicUsize::new(usize::MAX)), Arc::new(AtomicBool::new(false)));
        let proxy = Proxy { address, allowed: allowed.clone(), cuts: cuts.clone() };
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let Ok(upstream) = TcpStream::connect(server) else { return };
                let (from, to) = (client.try_clone().expect("a socket"), upstream.try_clone().expect("a socket"));
                std::thread::spawn(move || copy(from, to, |_| true));
                let (allowed, cuts) = (allowed.clone(), cuts.clone());
                std::thread::spawn(move || {
                    copy(upstream, client, |bytes| {
                        let take = |left: usize| left.checked_sub(bytes);
                        while allowed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_err() {
                            if cuts.swap(false, Ordering::SeqCst) {
                                allowed.store(usize::MAX, Ordering::SeqCst);
                                return false;
                            }
                            std::thread::park_timeout(Duration::from_millis(1));
                        }
                        true
                    });
                });
            }
        });
        proxy
    }

    /// Lets this many further bytes of answers pass.
    pub(crate) fn allow(&self, bytes: usize) {
        self.allowed.store(bytes, Ordering::SeqCst);
    }

    /// Ends a connection behind this many further bytes of answers, and lets all others pass.
    pub(crate) fn cut_after(&self, bytes: usize) {
        self.allow(bytes);
        self.cuts.store(true, Ordering::SeqCst);
    }

    #[track_caller]
    pub(crate) fn assert_cut(&self) {
        assert!(!self.cuts.load(Ordering::SeqCst), "no connection was cut");
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, mut may: impl FnMut(usize) -> bool) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !may(count) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(std::net::Shutdown::Both), to.shutdown(std::net::Shutdown::Both));
}
