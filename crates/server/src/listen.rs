//! Listening: sockets, TLS, HTTP/1.1 and HTTP/2, bounds on connections, and draining at the end.

mod heads;
mod patience;

use crate::workers::Workers;
use bytes::Bytes;
use heads::{Head, Heads};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use partita_model::limits::HEADER_BYTES_MAX;
use patience::Patience;
use prometheus_client::metrics::gauge::Gauge;
use std::convert::Infallible;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
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

/// Serves until `stop` changes, then lets requests under way finish.
pub(crate) async fn serve<H, F>(listener: Listener, mut stop: watch::Receiver<bool>, handler: H)
where
    H: Fn(Request<Incoming>, IpAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let Listener { socket, tls, max_connections, keep_alive, connections, workers } = listener;
    let slots = Arc::new(Semaphore::new(max_connections));
    let heads = Heads::new();
    let graceful = GracefulShutdown::new();
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(keep_alive).max_buf_size(HEADER_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(keep_alive)
        .max_header_list_size(HEADER_BYTES_MAX as u32)
        .max_concurrent_streams(STREAMS_MAX);
    let builder = Arc::new(builder);
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
        let (builder, handler, tls, watcher) = (builder.clone(), handler.clone(), tls.clone(), graceful.watcher());
        let (connections, mut stop, head) = (connections.clone(), stop.clone(), Head::new(heads.clone()));
        workers.next().spawn(async move {
            let Ok(stream) = TcpStream::from_std(stream) else { return };
            connections.inc();
            match tls {
                None => connection(&builder, Patience::new(stream, head, keep_alive), peer.ip(), handler, watcher).await,
                Some(tls) => tokio::select! {
                    _ = stop.changed() => {}
                    accepted = tokio::time::timeout(HANDSHAKE_TIME_MAX, tls.accept(stream)) => match accepted {
                        Ok(Ok(stream)) => connection(&builder, Patience::new(stream, head, keep_alive), peer.ip(), handler, watcher).await,
                        Ok(Err(error)) => debug!(%error, %peer, "TLS failed"),
                        Err(_) => debug!(%peer, "TLS took too long"),
                    },
                },
            }
            connections.dec();
            drop(slot);
        });
    }
    drop(socket);
    if tokio::time::timeout(DRAIN_TIME_MAX, graceful.shutdown()).await.is_err() {
        warn!("some requests were still under way when the server stopped");
    }
}

async fn connection<S, H, F>(
    builder: &Builder<TokioExecutor>,
    stream: Patience<S>,
    peer: IpAddr,
    handler: H,
    watcher: Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>, IpAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let head_is_complete = stream.head().is_complete();
    let service = service_fn(move |request| {
        head_is_complete.store(true, Ordering::Relaxed);
        let answer = handler(request, peer);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let stream = TokioIo::new(stream);
    let connection = builder.serve_connection(stream, service).into_owned();
    if let Err(error) = watcher.watch(connection).await {
        debug!(%error, %peer, "connection ended");
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
