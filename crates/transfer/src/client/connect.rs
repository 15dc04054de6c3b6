//! Connections to a service.

use crate::connection::Connection;
use crate::{Error, Result};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const TIME_MAX: Duration = Duration::from_secs(15);

/// Connects, with TLS if there is any. An error is half a sentence.
pub(super) async fn connect(
    connection: &Connection,
    tls: Option<&TlsConnector>,
) -> std::result::Result<SendRequest<Full<Bytes>>, String> {
    let Connection { host, port, .. } = connection;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let connected = tokio::time::timeout(TIME_MAX, TcpStream::connect((bare, *port))).await;
    let place = connection.authority();
    let stream = connected
        .map_err(|_| format!("{place} does not answer"))?
        .map_err(|error| format!("cannot connect to {place}: {error}"))?;
    let _ = stream.set_nodelay(true);
    match tls {
        None => begin(TokioIo::new(stream)).await,
        Some(tls) => {
            let name = ServerName::try_from(bare.to_owned()).map_err(|error| error.to_string())?;
            let stream = tokio::time::timeout(TIME_MAX, tls.connect(name, stream)).await;
            let stream = stream.map_err(|_| format!("{place} does not answer"))?;
            begin(TokioIo::new(stream.map_err(|error| format!("TLS with {place} failed: {error}"))?)).await
        }
    }
}

/// An error and its causes: hyper's own texts leave out what matters.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

async fn begin<S>(stream: TokioIo<S>) -> std::result::Result<SendRequest<Full<Bytes>>, String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(stream).await.map_err(|error| chain(&error))?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Trusts whom the machine trusts, which is read once.
pub(super) fn tls() -> Result<TlsConnector> {
    static SHARED: OnceLock<TlsConnector> = OnceLock::new();
    if let Some(shared) = SHARED.get() {
        return Ok(shared.clone());
    }
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(Error::Option(
            "No root certificates were found on this machine; SSL_CERT_FILE names a file.".into(),
        ));
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok(SHARED.get_or_init(|| TlsConnector::from(Arc::new(config))).clone())
}
