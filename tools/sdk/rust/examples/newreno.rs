// SPDX-License-Identifier: BSD-3-Clause
//! NewReno (RFC 5681, 6582): each record of a run is what `cc: newreno` gives.
//!
//! slow start, cwnd < ssthresh:  cwnd += min(acked, 2)
//! avoidance:                    cwnd += acked / cwnd              1 segment per round trip
//! loss or ECN echo:             ssthresh = cwnd = max(cwnd / 2, 2)   once per window
//! timeout:                      ssthresh likewise, cwnd = 1
//! idle for an RTO or more:      cwnd = min(cwnd, initial)
//! spurious loss:                cwnd and ssthresh as before, if that is more

use weir_cc::{Ack, Context, Control, Loss, Out, Start, OBSERVED};

const SSTHRESH_UNSET_SEGS: f64 = 1e9;
const SSTHRESH_MIN_SEGS: f64 = 2.0;

weir_cc::config! { Settings {
    initial_segs: f64 = "initial", "10", None, 1.0, 1000.0, "initial and restart window in segments (RFC 6928)";
    beta: f64 = "beta", "50%", Ratio, 0.01, 1.0, "what a loss leaves of the window";
} }

#[derive(Clone, Copy)]
struct NewReno {
    ssthresh_segs: f64,
    prior_cwnd_segs: f64,
    prior_ssthresh_segs: f64,
    episode: bool, // reduced already; ends with fast recovery
    timeout: bool, // until the slow start after it is over
    slow_start: bool,
}

impl NewReno {
    /// Grows in slow start; returns the segments left for congestion avoidance.
    fn grow_slowly(&mut self, acked: f64, out: &mut Out) -> f64 {
        let limit = if self.timeout { 1.0 } else { 2.0 }; // RFC 3465 section 2.3
        let step = if acked < limit { acked } else { limit };
        let room = self.ssthresh_segs - out.cwnd_segs;

        if out.cwnd_segs + step <= self.ssthresh_segs {
            out.cwnd_segs += step;
            return 0.0;
        }
        out.cwnd_segs = self.ssthresh_segs;
        step - room
    }

    fn grow(&mut self, acked: f64, out: &mut Out) {
        let mut left = acked;

        if out.cwnd_segs < self.ssthresh_segs {
            left = self.grow_slowly(acked, out);
            if left <= 0.0 {
                return;
            }
        }
        self.timeout = false;
        out.cwnd_segs += left / out.cwnd_segs;
    }

    fn lower(&mut self, config: &Settings, out: &Out) {
        self.prior_cwnd_segs = out.cwnd_segs;
        self.prior_ssthresh_segs = self.ssthresh_segs;
        self.ssthresh_segs = f64::max(out.cwnd_segs * config.beta, SSTHRESH_MIN_SEGS);
    }
}

impl Control for NewReno {
    type Config = Settings;
    const NAME: &'static str = "newreno_rust\0";
    const SUMMARY: &'static str = "NewReno with SACK and byte counting, in Rust\0";
    const ECN: bool = true;
    const OBSERVED: &'static [&'static str] = &["ssthresh_segs\0"];
    const MODES: &'static [&'static str] = &["slow_start\0", "avoidance\0", "recovery\0", "timeout\0"];
    const SSTHRESH: bool = true;

    fn given_window(config: &Settings) -> f64 {
        config.initial_segs
    }

    fn start(context: &Context<Settings>, _: Start, out: &mut Out) -> Self {
        out.cwnd_segs = context.config.initial_segs;
        NewReno {
            ssthresh_segs: SSTHRESH_UNSET_SEGS,
            prior_cwnd_segs: 0.0,
            prior_ssthresh_segs: 0.0,
            episode: false,
            timeout: false,
            slow_start: true,
        }
    }

    fn on_ack(&mut self, _: &Context<Settings>, ack: &Ack, out: &mut Out) {
        if !ack.in_recovery {
            self.episode = false;
        }
        // An unused window was never tested (RFC 2861).
        if ack.in_sequence && ack.cwnd_limited && !ack.in_recovery {
            self.grow(f64::from(ack.acked_segs), out);
        }
        self.slow_start = out.cwnd_segs < self.ssthresh_segs;
    }

    fn on_loss(&mut self, context: &Context<Settings>, _: &Loss, out: &mut Out) {
        self.lower(context.config, out);
        self.episode = true;
        self.timeout = false;
        self.slow_start = false;
        out.cwnd_segs = self.ssthresh_segs;
    }

    fn on_rto(&mut self, context: &Context<Settings>, loss: &Loss, out: &mut Out) {
        if !self.episode && !loss.repeated {
            self.lower(context.config, out);
        }
        self.episode = true;
        self.timeout = true;
        out.cwnd_segs = 1.0;
    }

    fn on_spurious(&mut self, _: &Context<Settings>, _: u64, out: &mut Out) {
        out.cwnd_segs = f64::max(out.cwnd_segs, self.prior_cwnd_segs);
        self.ssthresh_segs = f64::max(self.ssthresh_segs, self.prior_ssthresh_segs);
        self.episode = false;
        self.timeout = false;
    }

    fn on_idle(&mut self, context: &Context<Settings>, _: u64, _: u64, out: &mut Out) {
        out.cwnd_segs = f64::min(out.cwnd_segs, context.config.initial_segs);
    }

    fn observe(&self, _: &Settings) -> [f32; OBSERVED] {
        [self.ssthresh_segs as f32, 0.0, 0.0, 0.0]
    }

    fn mode(&self, _: &Settings) -> u8 {
        if self.timeout {
            3
        } else if self.episode {
            2
        } else {
            u8::from(!self.slow_start)
        }
    }

    fn ssthresh(&self, _: &Settings) -> f64 {
        self.ssthresh_segs
    }
}

weir_cc::plugin!(NewReno);
