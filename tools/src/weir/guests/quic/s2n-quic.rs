// SPDX-License-Identifier: BSD-3-Clause
//! weir-quic of s2n-quic; sender/group/quic.c says what it is. A transfer is a stream, without HTTP/3.
//! The library writes no qlog. `weir-quic certificate` makes cert and key, beside the program.
mod shared;

use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::{io::tokio::Provider as Io, limits::Limits};
use bytes::Bytes;
use s2n_quic::{client::Connect, Client, Server};
use shared::{task, Outcome, Sends, Task};
use std::{env, fs, path::PathBuf, time::Duration, time::Instant};

const WINDOW: u64 = shared::WINDOW as u64;
const MTU: u16 = 1480; // of IP: UDP payload of 1452 bytes

fn certificate() -> Outcome<()> {
    let made = rcgen::generate_simple_self_signed(vec!["weir".into()])?;
    fs::write("cert", made.cert.pem())?;
    Ok(fs::write("key", made.key_pair.serialize_pem())?)
}

fn beside(name: &str) -> Outcome<PathBuf> {
    Ok(env::current_exe()?.with_file_name(name))
}

fn io(address: &str) -> Outcome<Io> {
    let own = Io::builder().with_receive_address(address.parse()?)?;
    Ok(own.with_max_mtu(MTU)?.with_initial_mtu(MTU)?.with_base_mtu(MTU)?.build()?)
}

fn limits() -> Outcome<Limits> {
    Ok(Limits::new()
        .with_data_window(WINDOW)?
        .with_bidirectional_local_data_window(WINDOW)?
        .with_bidirectional_remote_data_window(WINDOW)?
        .with_max_idle_timeout(Duration::from_secs(3600))?)
}

async fn serve(control: &str) -> Outcome<()> {
    let (cert, key) = (beside("cert")?, beside("key")?);
    let own = Server::builder()
        .with_tls((cert.as_path(), key.as_path()))?
        .with_io(io("0.0.0.0:4433")?)?
        .with_limits(limits()?)?;
    let mut server = match control {
        "bbr" => own.with_congestion_controller(Bbr::default())?.start()?,
        _ => own.with_congestion_controller(Cubic::default())?.start()?,
    };
    while let Some(mut connection) = server.accept().await {
        tokio::spawn(async move {
            while let Ok(Some(mut stream)) = connection.accept_bidirectional_stream().await {
                while let Ok(Some(_)) = stream.receive().await {}
                let _ = stream.finish();
            }
        });
    }
    Ok(())
}

async fn send(sends: Sends) -> Outcome<()> {
    let cert = beside("cert")?;
    let own = Client::builder()
        .with_tls(cert.as_path())?
        .with_io(io("0.0.0.0:0")?)?
        .with_limits(limits()?)?;
    let client = match sends.control.as_str() {
        "bbr" => own.with_congestion_controller(Bbr::default())?.start()?,
        _ => own.with_congestion_controller(Cubic::default())?.start()?,
    };
    for _ in 0..sends.transfers {
        let began = Instant::now();
        let mut connection = client.connect(Connect::new(sends.to).with_server_name("weir")).await?;
        let mut stream = connection.open_bidirectional_stream().await?;
        for part in sends.parts() {
            stream.send(Bytes::from_static(part)).await?;
        }
        stream.finish()?;
        while stream.receive().await?.is_some() {}
        sends.done(began);
        connection.close(0u32.into());
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    if env::args().nth(1).is_some_and(|word| word == "certificate") {
        return certificate();
    }
    let sends = match task()? {
        Task::Serve(control) => return serve(&control).await,
        Task::Send(sends) => sends,
    };
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..sends.connections {
        all.spawn(send(sends.clone()));
    }
    while let Some(done) = all.join_next().await {
        done??;
    }
    Ok(())
}
