// SPDX-License-Identifier: BSD-3-Clause
//! weir-quic of quiche; sender/group/quic.c says what it is. A transfer is a stream, without HTTP/3.
mod shared;

use quiche::{Config, Connection, ConnectionId, Header, RecvInfo, Type};
use shared::{task, Outcome, Sends, Task, WINDOW};
use std::{collections::BTreeMap, fs, net::SocketAddr, net::UdpSocket};
use std::{os::fd::AsRawFd, ptr, thread, time::Instant};

const STREAM: u64 = 0;
const ID_BYTES: usize = 16;

fn config(control: &str) -> Outcome<Config> {
    let window = WINDOW as u64;
    let mut own = Config::new(quiche::PROTOCOL_VERSION)?;
    own.set_application_protos(&[b"bulk"])?;
    own.set_cc_algorithm_name(control)?;
    own.set_max_send_udp_payload_size(1452);
    own.set_initial_max_data(window);
    own.set_initial_max_stream_data_bidi_local(window);
    own.set_initial_max_stream_data_bidi_remote(window);
    own.set_initial_max_streams_bidi(1);
    own.set_max_connection_window(window);
    own.set_max_stream_window(window);
    own.verify_peer(false);
    Ok(own)
}

/// The number of a connection, as its ID.
fn id(number: u32) -> ConnectionId<'static> {
    ConnectionId::from_vec(number.to_be_bytes().repeat(ID_BYTES / 4))
}

/// One end of a connection. The library says when a packet is due; until then it waits here.
struct End {
    connection: Connection,
    peer: ConnectionId<'static>,
    waits: Option<(Vec<u8>, Instant)>,
    local: SocketAddr,
    remote: SocketAddr,
}

impl End {
    fn new(mut connection: Connection, peer: ConnectionId<'static>, name: &str) -> Outcome<Self> {
        let path = connection.path_stats().next().ok_or("no path")?;
        let (local, remote) = (path.local_addr, path.peer_addr);
        if let Some(file) = shared::qlog(name)? {
            connection.set_qlog(Box::new(file), "quiche".into(), name.into());
        }
        Ok(End { connection, peer, waits: None, local, remote })
    }

    fn receive(&mut self, packet: &mut [u8]) {
        let way = RecvInfo { from: self.remote, to: self.local };
        let _ = self.connection.recv(packet, way); // of an earlier connection: it is none of ours
    }

    /// Does what is due.
    fn run(&mut self, socket: &UdpSocket) -> Outcome<()> {
        let mut room = [0; 1500];
        if self.connection.timeout_instant().is_some_and(|at| at <= Instant::now()) {
            self.connection.on_timeout();
        }
        loop {
            match self.waits.take() {
                Some((packet, at)) if at <= Instant::now() => {
                    socket.send_to(&packet, self.remote)?;
                }
                Some(later) => {
                    self.waits = Some(later);
                    return Ok(());
                }
                None => match self.connection.send(&mut room) {
                    Ok((size, way)) => self.waits = Some((room[..size].to_vec(), way.at)),
                    Err(quiche::Error::Done) => return Ok(()),
                    Err(error) => return Err(error.into()),
                },
            }
        }
    }

    fn closed(&self) -> bool {
        let is = &self.connection;
        is.is_closed() || (is.is_draining() && self.waits.is_none())
    }

    fn due(&self) -> Option<Instant> {
        let packet = self.waits.as_ref().map(|waits| waits.1);
        packet.into_iter().chain(self.connection.timeout_instant()).min()
    }
}

fn open(address: &str) -> Outcome<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Waits until a packet is there, or until a time.
fn wait(socket: &UdpSocket, until: Option<Instant>) {
    let mut poll = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let time = until.map(|at| {
        let left = at.saturating_duration_since(Instant::now());
        libc::timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
    });
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: both pointers are to values of this function, or null.
    unsafe { libc::ppoll(&mut poll, 1, time, ptr::null()) };
}

fn serve(control: &str) -> Outcome<()> {
    let made = rcgen::generate_simple_self_signed(vec!["weir".into()])?;
    fs::write("/tmp/cert", made.cert.pem())?;
    fs::write("/tmp/key", made.key_pair.serialize_pem())?;
    let mut own = config(control)?;
    own.load_cert_chain_from_pem_file("/tmp/cert")?;
    own.load_priv_key_from_pem_file("/tmp/key")?;
    let socket = open("0.0.0.0:4433")?;
    let (local, mut number) = (socket.local_addr()?, 0);
    let mut ends: BTreeMap<SocketAddr, End> = BTreeMap::new();
    let mut room = vec![0; 1 << 16];
    loop {
        wait(&socket, ends.values().filter_map(End::due).min());
        while let Ok((size, from)) = socket.recv_from(&mut room) {
            let head = Header::from_slice(&mut room[..size], ID_BYTES)?;
            let known = ends.get(&from).is_some_and(|end| end.peer == head.scid);
            if head.ty == Type::Initial && !known {
                let connection = quiche::accept(&id(number), None, local, from, &mut own)?;
                ends.insert(from, End::new(connection, head.scid, &format!("server-{number}"))?);
                number += 1;
            }
            let Some(end) = ends.get_mut(&from) else { continue };
            end.receive(&mut room[..size]);
            while let Ok((_, last)) = end.connection.stream_recv(STREAM, &mut room) {
                if last {
                    end.connection.stream_send(STREAM, b"", true)?;
                }
            }
        }
        for end in ends.values_mut() {
            end.run(&socket)?;
        }
        ends.retain(|_, end| !end.closed());
    }
}

/// Makes a transfer over a connection of its own.
fn transfer(sends: &Sends, own: &mut Config, name: &str, number: u32) -> Outcome<()> {
    let began = Instant::now();
    let socket = open("0.0.0.0:0")?;
    let mine = id(number);
    let connection = quiche::connect(Some("weir"), &mine, socket.local_addr()?, sends.to, own)?;
    let mut end = End::new(connection, mine, name)?;
    let mut parts = sends.parts().peekable();
    let (mut part, mut answered) = (parts.next(), false);
    let mut room = vec![0; 1 << 16];
    while !end.closed() {
        while let Some(bytes) = part.filter(|_| end.connection.is_established()) {
            let last = parts.peek().is_none();
            match end.connection.stream_send(STREAM, bytes, last) {
                Ok(size) if size < bytes.len() => part = Some(&bytes[size..]),
                Ok(_) => part = parts.next(),
                Err(quiche::Error::Done) => break,
                Err(error) => return Err(error.into()),
            }
        }
        end.run(&socket)?;
        wait(&socket, end.due());
        while let Ok(size) = socket.recv(&mut room) {
            end.receive(&mut room[..size]);
        }
        if let Ok((_, true)) = end.connection.stream_recv(STREAM, &mut room) {
            sends.done(began);
            answered = true;
            end.connection.close(true, 0, b"")?;
        }
    }
    if answered { Ok(()) } else { Err("the connection has ended without an answer".into()) }
}

fn send(sends: &Sends, flow: u32) -> Outcome<()> {
    let mut own = config(&sends.control)?;
    for number in 0..sends.transfers {
        transfer(sends, &mut own, &format!("client-{flow}-{number}"), number)?;
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let sends = match task()? {
        Task::Serve(control) => return serve(&control),
        Task::Send(sends) => sends,
    };
    let each = |flow| {
        let sends = sends.clone();
        thread::spawn(move || send(&sends, flow))
    };
    let all: Vec<_> = (0..sends.connections).map(each).collect();
    for one in all {
        one.join().expect("it does not panic")?;
    }
    Ok(())
}
