//! TLS: a certificate chain and its key, in PEM; HTTP/2 and HTTP/1.1 by ALPN.
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::CertificateError::BadEncoding;
use tokio_rustls::rustls::{Error, ServerConfig};

pub fn config(cert_pem: &[u8], key_pem: &[u8]) -> Result<Arc<ServerConfig>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(cert_pem).collect();
    let chain = chain.map_err(|error| format!("the certificate is no PEM: {error}"))?;
    if chain.is_empty() {
        return Err("the certificate file has no certificate in PEM".into());
    }
    // Clients look at those behind the first, and rustls does not.
    let is_none = |der| matches!(ParsedCertificate::try_from(der), Err(Error::InvalidCertificate(BadEncoding)));
    if let Some(at) = chain.iter().position(is_none) {
        return Err(format!("certificate {} in the certificate file is none", at + 1));
    }
    let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| match error {
        _ if has(key_pem, b"ENCRYPTED") => "the key file's private key is encrypted, and must not be".into(),
        pem::Error::NoItemsFound => "the key file has no private key in PEM".into(),
        error => format!("the key is no PEM: {error}"),
    })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| format!("certificate and key: {error}"))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// `Proc-Type: 4,ENCRYPTED`, or `BEGIN ENCRYPTED PRIVATE KEY`.
fn has(pem: &[u8], word: &[u8]) -> bool {
    pem.windows(word.len()).any(|part| part == word)
}
