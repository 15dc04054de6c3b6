//! Listening: sockets, TLS, HTTP/1.1 and HTTP/2, bounds on connections, and draining at the end.

mod heads;
mod http1;
mod http2;
mod patience;
mod stop;

pub(crate) use http1::Http1Body;
pub(crate) use http2::Http2Body;

use crate::answer::Answer;
use crate::body::Body;
use crate::head::Head;
use crate::workers::Workers;
use heads::Heads;
use http1::{Connection, End, Stream};
use patience::Patience;
use prometheus_client::metrics::gauge::Gauge;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stop::Stop;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tracing::{debug, warn};

/// How long a connection may take to agree on TLS, and again to say its first word.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a client may take nothing of its response.
const STALL_TIME_MAX: Duration = Duration::from_secs(30);
/// Most requests at a time on a connection of HTTP/2.
const STREAMS_MAX: u32 = 100;
/// How long requests under way may take once the server is to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(20);

/// A socket and what is known of its clients.
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) max_connections: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) connections: Gauge,
    pub(crate) workers: Arc<Workers>,
}

/// What answers requests.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Answers one. Whatever goes wrong is an answer.
    fn answer<'a>(
        &'a self,
        head: &'a Head<'a>,
        body: &'a mut Body<'_>,
        peer: IpAddr,
    ) -> impl Future<Output = Answer> + Send;
}

/// Serves until `stop` changes, then lets requests under way finish.
pub(crate) async fn serve<H: Handler>(listener: Listener, mut stop: watch::Receiver<bool>, handler: H) {
    let Listener { socket, tls, max_connections, keep_alive, connections, workers } = listener;
    let slots = Arc::new(Semaphore::new(max_connections));
    let heads = Heads::new();
    let handler = Arc::new(handler);
    let told = stop.clone();
    loop {
        let slot = slots.clone().acquire_owned();
        let accepted = tokio::select! {
            _ = stop.changed() => break,
            accepted = async { (slot.await, socket.accept().await) } => accepted,
        };
        let (Ok(slot), accepted) = accepted else { break };
        // Into the hands of the thread that will serve it.
        let accepted = accepted.and_then(|(stream, peer)| Ok((stream.into_std()?, peer)));
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, most likely: taking a breath lets some connections end.
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let client = Client { handler: handler.clone(), peer, heads: heads.clone(), keep_alive, stop: told.clone() };
        let (connections, tls) = (connections.clone(), tls.clone());
        workers.next().spawn(async move {
            let Ok(stream) = TcpStream::from_std(stream) else { return };
            connections.inc();
            match tls {
                None => client.serve(stream).await,
                Some(tls) => client.serve_tls(tls, stream).await,
            }
            connections.dec();
            drop(slot);
        });
    }
    drop(socket);
    let all = slots.acquire_many(max_connections.try_into().unwrap_or(u32::MAX));
    if tokio::time::timeout(DRAIN_TIME_MAX, all).await.is_err() {
        warn!("some requests were still under way when the server stopped");
    }
}

/// Somebody who has connected.
struct Client<H> {
    handler: Arc<H>,
    peer: SocketAddr,
    heads: Arc<Heads>,
    keep_alive: Duration,
    stop: watch::Receiver<bool>,
}

impl<H: Handler> Client<H> {
    async fn serve_tls(self, tls: TlsAcceptor, stream: TcpStream) {
        let (stop, peer) = (Stop::new(&self.stop), self.peer);
        let accepted = tokio::select! {
            () = stop.wait() => return,
            accepted = tokio::time::timeout(HANDSHAKE_TIME_MAX, tls.accept(stream)) => accepted,
        };
        match accepted {
            Ok(Ok(stream)) => self.serve(stream).await,
            Ok(Err(error)) => debug!(%error, %peer, "TLS failed"),
            Err(_) => debug!(%peer, "TLS took too long"),
        }
    }

    async fn serve<S: Stream + 'static>(self, stream: S) {
        let Client { handler, peer, heads, keep_alive, stop } = self;
        let connection = Connection::new(stream, heads::Head::new(heads.clone()), keep_alive, Stop::new(&stop));
        match connection.serve(&*handler, peer.ip()).await {
            Ok(End::Closed) => {}
            Ok(End::Http2(stream, first)) => {
                let stream = Patience::new(stream, first, heads::Head::new(heads), keep_alive);
                let served = http2::serve(stream, handler, peer.ip(), keep_alive, Stop::new(&stop)).await;
                served.unwrap_or_else(|error| debug!(%error, %peer, "connection ended"));
            }
            Err(error) => debug!(%error, %peer, "connection ended"),
        }
    }
}

/// Reads a certificate chain and its key. An error is a sentence for the user.
pub(crate) fn tls(cert: &Path, key: &Path) -> Result<TlsAcceptor, String> {
    let unreadable = |path: &Path, why: &dyn std::fmt::Display| format!("Cannot read {}: {why}.", path.display());
    let chain = CertificateDer::pem_file_iter(cert).map_err(|error| unreadable(cert, &error))?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(|error| unreadable(cert, &error))?;
    if chain.is_empty() {
        return Err(format!("{} holds no certificate in PEM form.", cert.display()));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, private);
    let mut config = config.map_err(|error| format!("The certificate does not fit its key: {error}."))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
