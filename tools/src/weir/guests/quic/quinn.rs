// SPDX-License-Identifier: BSD-3-Clause
//! weir-quic of quinn; sender/group/quic.c says what it is. A transfer is a stream, without HTTP/3.
mod shared;

use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig, VarInt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use shared::{task, Outcome, Sends, Task, WINDOW};
use std::{net::SocketAddr, sync::Arc, time::Instant};

#[derive(Debug)]
struct Trust; // in any certificate

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self, _: &CertificateDer<'_>, _: &[CertificateDer<'_>], _: &ServerName<'_>, _: &[u8], _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self, _: &[u8], _: &CertificateDer<'_>, _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self, _: &[u8], _: &CertificateDer<'_>, _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::ED25519]
    }
}

/// The options of both sides; `log` names its qlog.
fn transport(control: &str, log: &str) -> Outcome<Arc<TransportConfig>> {
    let mut own = TransportConfig::default();
    let factory: Arc<dyn ControllerFactory + Send + Sync> = match control {
        "bbr" => Arc::new(BbrConfig::default()),
        "reno" => Arc::new(NewRenoConfig::default()),
        _ => Arc::new(CubicConfig::default()),
    };
    own.congestion_controller_factory(factory)
        .initial_mtu(1452)
        .mtu_discovery_config(None)
        .max_idle_timeout(None)
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .receive_window(VarInt::from_u32(WINDOW))
        .send_window(WINDOW as u64);
    if let Some(file) = shared::qlog(log)? {
        let mut qlog = quinn::QlogConfig::default();
        qlog.writer(Box::new(file)).title(Some("quinn".into()));
        own.qlog_stream(qlog.into_stream());
    }
    Ok(Arc::new(own))
}

async fn serve(control: &str) -> Outcome<()> {
    let made = rcgen::generate_simple_self_signed(vec!["weir".into()])?;
    let key = PrivateKeyDer::Pkcs8(made.key_pair.serialize_der().into());
    let mut tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    tls.alpn_protocols = vec![b"bulk".to_vec()];
    let tls = Arc::new(QuicServerConfig::try_from(tls)?);
    let own = |number: u32| -> Outcome<Arc<ServerConfig>> {
        let mut own = ServerConfig::with_crypto(tls.clone());
        own.transport_config(transport(control, &format!("server-{number}"))?);
        Ok(Arc::new(own))
    };
    let mut first = ServerConfig::with_crypto(tls.clone());
    first.transport_config(Arc::new(TransportConfig::default()));
    let endpoint = Endpoint::server(first, "0.0.0.0:4433".parse::<SocketAddr>()?)?;
    let mut number = 0;
    while let Some(incoming) = endpoint.accept().await {
        let connecting = incoming.accept_with(own(number)?)?;
        number += 1;
        tokio::spawn(async move {
            let connection = connecting.await?;
            let (mut answer, mut from) = connection.accept_bi().await?;
            while from.read_chunk(1 << 20, false).await?.is_some() {}
            answer.finish()?;
            connection.closed().await;
            Outcome::Ok(())
        });
    }
    Ok(())
}

async fn send(sends: Sends, flow: u32) -> Outcome<()> {
    let mut tls = rustls::ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trust))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"bulk".to_vec()];
    let tls = Arc::new(QuicClientConfig::try_from(tls)?);
    let endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
    for number in 0..sends.transfers {
        let began = Instant::now();
        let mut own = ClientConfig::new(tls.clone());
        own.transport_config(transport(&sends.control, &format!("client-{flow}-{number}"))?);
        let connection = endpoint.connect_with(own, sends.to, "weir")?.await?;
        let (mut stream, mut answer) = connection.open_bi().await?;
        for part in sends.parts() {
            stream.write_all(part).await?;
        }
        stream.finish()?;
        answer.read_to_end(0).await?;
        sends.done(began);
        connection.close(0u32.into(), b"");
        endpoint.wait_idle().await;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    rustls::crypto::ring::default_provider().install_default().expect("the first one");
    let sends = match task()? {
        Task::Serve(control) => return serve(&control).await,
        Task::Send(sends) => sends,
    };
    let mut all = tokio::task::JoinSet::new();
    for flow in 0..sends.connections {
        all.spawn(send(sends.clone(), flow));
    }
    while let Some(done) = all.join_next().await {
        done??;
    }
    Ok(())
}
