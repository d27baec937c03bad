// SPDX-License-Identifier: BSD-3-Clause
//! What the programs in Rust share: the command line of sender/group/quic.c, and what a transfer is.
use std::{env, error::Error, fs::File, io::LineWriter, net::SocketAddr, time::Instant};

pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;
pub const WINDOW: u32 = 64 << 20;
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

#[derive(Clone)]
pub struct Sends {
    pub to: SocketAddr,
    pub control: String,
    pub connections: u32,
    pub bytes: u64,
    pub transfers: u32,
}

impl Sends {
    /// A transfer's bytes, in parts.
    pub fn parts(&self) -> impl Iterator<Item = &'static [u8]> {
        let mut left = if self.bytes == 0 { u64::MAX } else { self.bytes };
        std::iter::from_fn(move || {
            let part = left.min(ZEROS.len() as u64);
            left -= part;
            (part > 0).then(|| &ZEROS[..part as usize])
        })
    }

    pub fn done(&self, began: Instant) {
        println!("transfer {} {}", self.bytes, began.elapsed().as_nanos());
    }
}

pub enum Task {
    Serve(String),
    Send(Sends),
}

pub fn task() -> Outcome<Task> {
    let words: Vec<String> = env::args().collect();
    if words[1] == "serve" {
        return Ok(Task::Serve(words[2].clone()));
    }
    Ok(Task::Send(Sends {
        to: format!("{}:4433", words[2]).parse()?,
        control: words[3].clone(),
        connections: words[4].parse()?,
        bytes: words[5].parse()?,
        transfers: words[6].parse()?,
    }))
}

/// The file of a connection's qlog, if one is wanted. Each line is written at once.
#[allow(dead_code)] // s2n-quic has none
pub fn qlog(name: &str) -> Outcome<Option<LineWriter<File>>> {
    Ok(match env::var("WEIR_OUT") {
        Ok(out) => Some(LineWriter::new(File::create(format!("{out}/{name}.sqlog"))?)),
        Err(_) => None,
    })
}
