//! Encrypted connections to the database.
//!
//! Stricter than libpq: whoever asks for encryption also gets a check that the certificate is the host's and that
//! somebody trusted has signed it, because encryption to nobody in particular protects from nobody in particular.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Encrypted;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Whom systems trust, where Debian, Alpine, Fedora and others have it.
const TRUSTED: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// How connections are encrypted.
#[derive(Clone)]
pub(crate) struct Tls(TlsConnector);

impl Tls {
    /// Trusts whoever signed with the certificates in a PEM file, or those whom the system trusts. An error is a sentence.
    pub(crate) fn new(trusted: Option<&Path>) -> Result<Tls, String> {
        let system = || TRUSTED.iter().map(Path::new).find(|path| path.exists());
        let path =
            trusted.or_else(system).ok_or("No trusted certificates were found: name some by sslrootcert=FILE.")?;
        let unreadable = |error| format!("Cannot read {}: {error}.", path.display());
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
            // Systems trust some that are too old to be understood.
            let added = roots.add(certificate.map_err(unreadable)?);
            if let (Err(error), Some(_)) = (added, trusted) {
                return Err(format!("{} holds something else than certificates: {error}.", path.display()));
            }
        }
        if roots.is_empty() {
            return Err(format!("{} holds no certificate in PEM form.", path.display()));
        }
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Tls(TlsConnector::from(Arc::new(config))))
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Stream;
    type TlsConnect = Connect;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Connect, InvalidDnsNameError> {
        Ok(Connect { connector: self.0.clone(), host: ServerName::try_from(host)?.to_owned() })
    }
}

/// A handshake with a host, to be made.
pub(crate) struct Connect {
    connector: TlsConnector,
    host: ServerName<'static>,
}

impl TlsConnect<Socket> for Connect {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { Ok(Stream(Box::new(self.connector.connect(self.host, socket).await?))) })
    }
}

/// An encrypted connection.
pub(crate) struct Stream(Box<Encrypted<Socket>>);

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
