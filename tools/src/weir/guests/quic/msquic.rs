// SPDX-License-Identifier: BSD-3-Clause
//! weir-quic of msquic; sender/group/quic.c says what it is. A transfer is a stream, without HTTP/3.
mod ipv4;
mod shared;

use msquic::{BufferRef, CertificateFile, Configuration, Connection, ConnectionEvent};
use msquic::{ConnectionShutdownFlags, Credential, CredentialConfig, CredentialFlags, Listener};
use msquic::{ListenerEvent, Registration, RegistrationConfig, SendFlags, Settings, Status, Stream};
use msquic::{StreamEvent, StreamOpenFlags, StreamShutdownFlags, StreamStartFlags};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use shared::{task, Outcome, Sends, Task, WINDOW};
use std::{fs, iter::Peekable, net::SocketAddr, slice, sync::mpsc, thread, time::Instant};

const MTU: u16 = 1480; // of the IP packet: 1452 bytes of UDP payload
const QUEUED: usize = 1024; // parts of 64 KiB that the library has at once: a window
/// A PKCS #8 key of Ed25519, but for its 32 bytes. Its signatures have one length, so that the sizes
/// of packets are the same in each run.
const KEY: &[u8] = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

fn open(own: &Registration, control: &str, trust: CredentialConfig) -> Outcome<Configuration> {
    let settings = Settings::new()
        .set_CongestionControlAlgorithm((control == "bbr").into())
        .set_IdleTimeoutMs(0)
        .set_MinimumMtu(MTU)
        .set_MaximumMtu(MTU)
        .set_PeerBidiStreamCount(1)
        .set_StreamRecvWindowDefault(WINDOW)
        .set_ConnFlowControlWindow(WINDOW);
    let config = Configuration::open(own, &[BufferRef::from("bulk")], Some(&settings))?;
    config.load_credential(&trust)?;
    Ok(config)
}

/// Answers a stream with its end once it has ended.
fn answer(stream: &Stream, event: StreamEvent) -> Result<(), Status> {
    match event {
        StreamEvent::PeerSendShutdown => stream.shutdown(StreamShutdownFlags::GRACEFUL, 0)?,
        // SAFETY: it is the last event, after which nothing has the stream.
        StreamEvent::ShutdownComplete { .. } => drop(unsafe { Stream::from_raw(stream.as_raw()) }),
        _ => (),
    }
    Ok(())
}

fn serve(control: &str) -> Outcome<()> {
    let key = [KEY, &[0; 32]].concat(); // those that rcgen makes have a form that quictls refuses
    let key = KeyPair::from_pkcs8_der_and_sign_algo(&key[..].into(), &PKCS_ED25519)?;
    let made = CertificateParams::new(vec!["weir".into()])?.self_signed(&key)?;
    fs::write("/tmp/cert", made.pem())?;
    fs::write("/tmp/key", key.serialize_pem())?;
    let files = CertificateFile::new("/tmp/key".into(), "/tmp/cert".into());
    let trust = CredentialConfig::new().set_credential(Credential::CertificateFile(files));
    let own = Registration::new(&RegistrationConfig::new())?;
    let config = open(&own, control, trust)?;
    let listener = Listener::open(&own, move |_, event| {
        if let ListenerEvent::NewConnection { connection, .. } = event {
            connection.set_callback_handler(|connection, event| {
                match event {
                    ConnectionEvent::PeerStreamStarted { stream, .. } => {
                        stream.set_callback_handler(|stream, event| answer(&stream, event));
                    }
                    ConnectionEvent::ShutdownComplete { .. } => {
                        // SAFETY: as of a stream.
                        drop(unsafe { Connection::from_raw(connection.as_raw()) });
                    }
                    _ => (),
                }
                Ok(())
            });
            connection.set_configuration(&config)?;
        }
        Ok(())
    })?;
    let address = "0.0.0.0:4433".parse::<SocketAddr>()?;
    listener.start(&[BufferRef::from("bulk")], Some(&address.into()))?;
    loop {
        thread::park();
    }
}

/// Sends the next part of a transfer.
fn push<T>(stream: &Stream, parts: &mut Peekable<T>) -> Result<(), Status>
where
    T: Iterator<Item = &'static [u8]>,
{
    let Some(part) = parts.next() else { return Ok(()) };
    let last = if parts.peek().is_none() { SendFlags::FIN } else { SendFlags::NONE };
    let buffer = Box::into_raw(Box::new(BufferRef::from(part)));
    // SAFETY: the buffer is freed when the library gives it back with SendComplete.
    unsafe { stream.send(slice::from_ref(&*buffer), last, buffer.cast()) }
}

/// Makes a transfer over a connection of its own.
fn transfer(sends: &Sends, own: &Registration, config: &Configuration) -> Outcome<()> {
    let began = Instant::now();
    let (ended, wait) = mpsc::channel();
    let answered = ended.clone();
    let connection = Connection::open(own, move |_, event| {
        if let ConnectionEvent::ShutdownComplete { .. } = event {
            let _ = ended.send(false);
        }
        Ok(())
    })?;
    let mut parts = sends.parts().peekable();
    let stream = Stream::open(&connection, StreamOpenFlags::NONE, move |stream, event| {
        match event {
            StreamEvent::StartComplete { .. } => {
                for _ in 0..QUEUED {
                    push(&stream, &mut parts)?;
                }
            }
            StreamEvent::SendComplete { client_context, .. } => {
                // SAFETY: it is push's.
                drop(unsafe { Box::from_raw(client_context as *mut BufferRef) });
                push(&stream, &mut parts)?;
            }
            StreamEvent::PeerSendShutdown => {
                let _ = answered.send(true);
            }
            _ => (),
        }
        Ok(())
    })?;
    stream.start(StreamStartFlags::NONE)?;
    connection.start(config, &sends.to.ip().to_string(), sends.to.port())?;
    if !wait.recv()? {
        return Err("the connection has ended without an answer".into());
    }
    sends.done(began);
    connection.shutdown(ConnectionShutdownFlags::NONE, 0);
    while wait.recv()? {}
    Ok(())
}

fn send(sends: &Sends) -> Outcome<()> {
    let own = Registration::new(&RegistrationConfig::new())?;
    let flags = CredentialFlags::NO_CERTIFICATE_VALIDATION;
    let trust = CredentialConfig::new_client().set_credential_flags(flags);
    let config = open(&own, &sends.control, trust)?;
    for _ in 0..sends.transfers {
        transfer(sends, &own, &config)?;
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let sends = match task()? {
        Task::Serve(control) => return serve(&control),
        Task::Send(sends) => sends,
    };
    let each = |_| {
        let sends = sends.clone();
        thread::spawn(move || send(&sends))
    };
    let all: Vec<_> = (0..sends.connections).map(each).collect();
    for one in all {
        one.join().expect("it does not panic")?;
    }
    Ok(())
}
