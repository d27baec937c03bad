// SPDX-License-Identifier: BSD-3-Clause
//! Congestion controls for Weir in safe Rust: the interface of `common/weir/cc.h`, version 5.
//!
//! A control is a type with the trait [`Control`]; its parameters are a struct made by
//! [`config!`]; [`plugin!`] exports both. `examples/newreno.rs` is a whole one:
//!
//! ```text
//! cargo build --release --example newreno
//! weir run FILE.yaml -o 'flows.0.cc={plugin: target/release/examples/libnewreno.so}'
//! ```
//!
//! What each number means stands in `cc.h`, under the same name.
#![warn(missing_docs)]

use std::ffi::c_void;
use std::os::raw::c_char;

/// Version of the interface.
pub const ABI: u32 = 5;
/// Numbers that [`Control::observe`] gives.
pub const OBSERVED: usize = 4;
/// Modes that a control may name.
pub const MODES: usize = 16;
/// Notes that a control may name.
pub const NOTES: usize = 16;
/// Numbers that [`Control::on_arrival`] keeps.
pub const RECEIVER: usize = 8;

/// The transport's measurements for an ACK (`struct cc_ack`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Ack {
    pub now_ns: u64,
    pub rtt_ns: u64,
    pub srtt_ns: u64,
    pub rtt_min_ns: u64,
    pub sent_ns: u64,
    pub tick_ns: u64,
    pub cwnd_at_send: f64,
    pub acked_segs: u32,
    pub passed_segs: u32,
    pub lost_segs: u32,
    pub ce_segs: u32,
    pub inflight_segs: u32,
    pub prior_inflight_segs: u32,
    pub delivered_segs: u64,
    pub prior_delivered_segs: u64,
    pub delivery_bps: f64,
    pub interval_ns: u64,
    pub next_send_ns: u64,
    pub app_limited: bool,
    pub cwnd_limited: bool,
    pub host_paced: bool,
    pub in_sequence: bool,
    pub in_recovery: bool,
    pub in_loss: bool,
    pub classic_ecn: bool,
    pub lost_app_limited: bool,
}

/// What is known of a loss, an ECN echo or a timeout (`struct cc_loss`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Loss {
    pub now_ns: u64,
    pub inflight_segs: u32,
    pub lost_segs: u32,
    pub ecn: bool,
    pub classic_ecn: bool,
    pub repeated: bool,
    pub requested: bool,
    pub probe: bool,
}

/// What happened to a segment.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// It has left; retransmissions too.
    Sent,
    /// It was acknowledged, cumulatively or by SACK.
    Acked,
    /// It was declared lost.
    Lost,
    /// It counts as in flight again: the loss was spurious.
    Restored,
}

/// Whether a segment arrived with CE, as far as its ACK tells.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Ce {
    Unknown,
    No,
    Yes,
}

/// A segment (`struct cc_packet`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Packet {
    pub now_ns: u64,
    pub number: u64,
    pub sent_ns: u64,
    pub delivered_segs: u64,
    pub lost_segs: u64,
    pub inflight_segs: u32,
    pub bytes: u32,
    pub event: PacketEvent,
    pub retransmission: bool,
    pub probe: bool,
    pub app_limited: bool,
    pub ce: Ce,
}

/// A segment of data that has arrived at the receiver (`struct cc_arrival`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Arrival {
    pub now_ns: u64,
    pub bytes: u32,
    pub now_ts: u32,
    pub tsval: u32,
    pub tsecr: u32,
    pub late: bool,
    pub ce: bool,
}

/// The control's decisions (`struct cc_out`); on a call it holds the last ones.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Out {
    /// The window in segments, never below 1.
    pub cwnd_segs: f64,
    /// Payload bits per second; 0: not paced.
    pub pacing_bps: f64,
}

/// The connection as its control begins.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Start {
    pub mss_bytes: u32,
    /// Measured in the handshake; 0: none.
    pub rtt_ns: u64,
    pub now_ns: u64,
}

#[repr(C)]
#[doc(hidden)]
pub struct Flow {
    bytes: usize,
    id: u32,
    shared_flows: u32,
    shared_place: u32,
    burst_segs: u32,
    random: u64,
    memory: *mut c_void,
    shared: *mut c_void,
    timer: extern "C" fn(*mut Flow, u64),
    note: extern "C" fn(*mut Flow, u32, f64, f64),
}

/// What a flow's control has beside its state (`struct cc_flow`).
#[derive(Clone, Copy)]
pub struct Service(*mut Flow);

impl Service {
    /// Calls [`Control::on_timer`] once, so long after the present call, 1 us at least.
    pub fn timer(&self, after_ns: u64) {
        // SAFETY: Weir keeps the flow until the connection ends, and no call comes later.
        unsafe { ((*self.0).timer)(self.0, after_ns) }
    }

    /// Calls it no more.
    pub fn timer_off(&self) {
        self.timer(u64::MAX);
    }

    /// Writes an event `note` into the run's folder; `which` is a place in [`Control::NOTES`].
    pub fn note(&self, which: u32, before: f64, value: f64) {
        // SAFETY: as in `timer`.
        unsafe { ((*self.0).note)(self.0, which, before, value) }
    }

    /// Sets how many segments leave at once, in one pacing slot; 0: as the group says.
    pub fn burst(&self, segs: u32) {
        // SAFETY: as in `timer`.
        unsafe { (*self.0).burst_segs = segs }
    }

    /// Returns a random number; all differ by the run's seed and the flow.
    pub fn random(&self) -> u64 {
        // SAFETY: as in `timer`.
        let random = unsafe { &mut (*self.0).random };

        *random = random.wrapping_add(0x9e37_79b9_7f4a_7c15); // splitmix64
        let x = (*random ^ (*random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

/// Of each call: the group's parameters, and the flow's service if [`Control::SERVICE`] asks for it.
pub struct Context<'a, C> {
    /// The parameters.
    pub config: &'a C,
    service: Option<Service>,
}

impl<C> Context<'_, C> {
    /// The flow's service. Panics without [`Control::SERVICE`].
    pub fn service(&self) -> Service {
        self.service.expect("Control::SERVICE is false")
    }
}

/// Parameters, as [`config!`] makes them.
///
/// # Safety
/// Each field is an `f64` or a `u64`, in the order of the table.
pub unsafe trait Config: Copy + 'static {
    /// The table, with `Param::END` at its end.
    const PARAMS: &'static [Param];
}

/// A congestion control: the state of one flow. It has no pointers into itself and needs no drop,
/// as it moves with the flow.
pub trait Control: Copy + 'static {
    /// Its parameters.
    type Config: Config;
    /// 1 to 31 small letters, digits and _, with a 0 at the end: `"mine\0"`.
    const NAME: &'static str;
    /// One line, with the paper or RFC and a 0 at the end.
    const SUMMARY: &'static str;
    /// The transport moves towards a reduced window by RFC 9937.
    const PRR: bool = true;
    /// It answers ECN echoes.
    const ECN: bool = false;
    /// It uses [`Context::service`], [`Control::on_timer`] and [`Control::on_packet`], which cost
    /// time.
    const SERVICE: bool = false;
    /// Names of `observe`'s numbers, each with a 0 at the end.
    const OBSERVED: &'static [&'static str] = &[];
    /// Names of `mode`'s numbers, each with a 0 at the end.
    const MODES: &'static [&'static str] = &[];
    /// Names of notes, each with a 0 at the end.
    const NOTES: &'static [&'static str] = &[];
    /// It has a slow start threshold.
    const SSTHRESH: bool = false;
    /// It uses [`Control::on_arrival`].
    const ARRIVAL: bool = false;

    /// Returns the larger of the initial and the minimum window, in segments.
    fn given_window(config: &Self::Config) -> f64;
    /// Returns the state of a flow that begins.
    fn start(context: &Context<Self::Config>, start: Start, out: &mut Out) -> Self;
    /// Called for each ACK that acknowledged segments or marked some lost.
    fn on_ack(&mut self, context: &Context<Self::Config>, ack: &Ack, out: &mut Out);
    /// Called once per window with losses or ECN echoes.
    fn on_loss(&mut self, context: &Context<Self::Config>, loss: &Loss, out: &mut Out);
    /// Called for each retransmission timeout.
    fn on_rto(&mut self, context: &Context<Self::Config>, loss: &Loss, out: &mut Out);
    /// The last reduction was for nothing: undoes it.
    fn on_spurious(&mut self, _: &Context<Self::Config>, _now_ns: u64, _: &mut Out) {}
    /// Sending begins again after a pause.
    fn on_idle(&mut self, _: &Context<Self::Config>, _now_ns: u64, _idle_ns: u64, _: &mut Out) {}
    /// The time of [`Service::timer`] has come.
    fn on_timer(&mut self, _: &Context<Self::Config>, _now_ns: u64, _: &mut Out) {}
    /// Something happened to a segment.
    fn on_packet(&mut self, _: &Context<Self::Config>, _: &Packet) {}
    /// Returns the largest window that the receiver offers, in bytes; called there, maybe by
    /// another thread. `receiver` is 0 when the connection begins.
    fn on_arrival(_receiver: &mut [u64; RECEIVER], _: &Self::Config, _: &Arrival) -> u64 {
        u64::MAX
    }
    /// Returns internal values, for plots.
    fn observe(&self, _: &Self::Config) -> [f32; OBSERVED] {
        [0.0; OBSERVED]
    }
    /// Returns the number of its mode.
    fn mode(&self, _: &Self::Config) -> u8 {
        0
    }
    /// Returns the slow start threshold in segments.
    fn ssthresh(&self, _: &Self::Config) -> f64 {
        f64::INFINITY
    }
}

// ---- What Weir sees ----

/// A row of the table of parameters (`struct param`).
#[repr(C)]
#[allow(dead_code)]
pub struct Param {
    name: *const c_char,
    default: *const c_char,
    help: *const c_char,
    unit: Unit,
    kind: u32,
    offset: usize,
    min: f64,
    max: f64,
    choices: *const *const c_char,
    zero: bool,
    live: bool,
    seconds: bool,
    of: *const c_char,
}
// SAFETY: what the pointers lead to is constant.
unsafe impl Sync for Param {}

/// Units of parameters.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub enum Unit {
    None,
    TimeNs,
    RateBps,
    Bytes,
    Ratio,
}

impl Param {
    /// The end of a table.
    pub const END: Param = Param::row(std::ptr::null(), std::ptr::null(), std::ptr::null(), Unit::None, 0, 0, 0.0, 0.0);

    #[allow(clippy::too_many_arguments)]
    const fn row(
        name: *const c_char,
        default: *const c_char,
        help: *const c_char,
        unit: Unit,
        kind: u32,
        offset: usize,
        min: f64,
        max: f64,
    ) -> Param {
        Param {
            name,
            default,
            help,
            unit,
            kind,
            offset,
            min,
            max,
            choices: std::ptr::null(),
            zero: false,
            live: false,
            seconds: false,
            of: std::ptr::null(),
        }
    }

    /// For [`config!`]: texts end with a 0, `kind` is `u64` or `f64`.
    #[doc(hidden)]
    pub const fn of_config(texts: [&'static str; 3], unit: Unit, real: bool, place: usize, range: (f64, f64)) -> Param {
        Param::row(
            texts[0].as_ptr().cast(),
            texts[1].as_ptr().cast(),
            texts[2].as_ptr().cast(),
            unit,
            real as u32,
            place * 8,
            range.0,
            range.1,
        )
    }
}

/// Makes the parameters' struct and their table:
///
/// ```
/// weir_cc::config! { Settings {
///     beta: f64 = "beta", "50%", Ratio, 0.01, 1.0, "what a loss leaves of the window";
/// } }
/// # assert_eq!(<Settings as weir_cc::Config>::PARAMS.len(), 2);
/// ```
#[macro_export]
macro_rules! config {
    ($name:ident { $($field:ident: $kind:ident = $key:literal, $default:literal, $unit:ident, $min:literal, $max:literal, $help:literal;)* }) => {
        #[repr(C)]
        #[derive(Clone, Copy)]
        #[allow(missing_docs)]
        pub struct $name { $(pub $field: $kind),* }
        const _: () = {
            #[allow(non_camel_case_types)]
            enum Place { $($field),* }
            trait Real { const REAL: bool; }
            impl Real for u64 { const REAL: bool = false; }
            impl Real for f64 { const REAL: bool = true; }
            // SAFETY: another type has no `Real`.
            unsafe impl $crate::Config for $name {
                const PARAMS: &'static [$crate::Param] = &[
                    $($crate::Param::of_config(
                        [concat!($key, "\0"), concat!($default, "\0"), concat!($help, "\0")],
                        $crate::Unit::$unit, <$kind as Real>::REAL, Place::$field as usize, ($min, $max)),)*
                    $crate::Param::END,
                ];
            }
        };
    };
}

/// What Weir calls (`struct cc_ops`).
#[repr(C)]
#[allow(dead_code)]
#[doc(hidden)]
pub struct Ops<C: Control> {
    name: *const c_char,
    alias: *const c_char,
    summary: *const c_char,
    reference: *const c_char,
    params: *const Param,
    preset: *const c_char,
    presets: *const c_void,
    config_size: usize,
    state_size: usize,
    prr: bool,
    rate: bool,
    ecn: bool,
    answers_in_on_ack: bool,
    codepoint: u32,
    feedback: u32,
    burst_ns: u64,
    ack_each: bool,
    any_idle: bool,
    samples: bool,
    observed: [*const c_char; OBSERVED],
    modes: [*const c_char; MODES],
    given_window: extern "C" fn(&C::Config) -> f64,
    init: extern "C" fn(*mut Slot<C>, &C::Config, u32, u64, u64, &mut Out),
    on_ack: extern "C" fn(&mut Slot<C>, &C::Config, &Ack, &mut Out),
    on_loss: extern "C" fn(&mut Slot<C>, &C::Config, &Loss, &mut Out),
    on_rto: extern "C" fn(&mut Slot<C>, &C::Config, &Loss, &mut Out),
    on_spurious: extern "C" fn(&mut Slot<C>, &C::Config, u64, &mut Out),
    on_idle: extern "C" fn(&mut Slot<C>, &C::Config, u64, u64, &mut Out),
    observe: Option<extern "C" fn(&Slot<C>, &C::Config, &mut [f32; OBSERVED])>,
    mode: Option<extern "C" fn(&Slot<C>, &C::Config) -> u8>,
    ssthresh: Option<extern "C" fn(&Slot<C>, &C::Config) -> f64>,
    license: *const c_char,
    configure: *const c_void,
    on_sample: *const c_void,
    requests: *const c_void,
    release: *const c_void,
    memory_bytes: usize,
    shared_bytes: usize,
    shared_name: *const c_void,
    wants: *const c_void,
    open: Option<extern "C" fn(*mut Slot<C>, &C::Config, *mut Flow)>,
    on_timer: Option<extern "C" fn(&mut Slot<C>, &C::Config, u64, &mut Out)>,
    on_packet: Option<extern "C" fn(&mut Slot<C>, &C::Config, &Packet)>,
    notes: [*const c_char; NOTES],
    on_arrival: Option<extern "C" fn(&mut [u64; RECEIVER], &C::Config, &Arrival) -> u64>,
}
// SAFETY: what the pointers lead to is constant.
unsafe impl<C: Control> Sync for Ops<C> {}

/// A flow's state: `open` writes the first member, `init` the second, before any other call.
#[repr(C)]
#[doc(hidden)]
pub struct Slot<C> {
    service: *mut Flow,
    control: C,
}

fn context<'a, C: Control>(slot: &Slot<C>, config: &'a C::Config) -> Context<'a, C::Config> {
    Context { config, service: if C::SERVICE { Some(Service(slot.service)) } else { None } }
}

extern "C" fn given_window<C: Control>(config: &C::Config) -> f64 {
    C::given_window(config)
}

extern "C" fn open<C: Control>(slot: *mut Slot<C>, _: &C::Config, flow: *mut Flow) {
    // SAFETY: Weir gives room for a slot.
    unsafe { std::ptr::addr_of_mut!((*slot).service).write(flow) }
}

extern "C" fn init<C: Control>(slot: *mut Slot<C>, config: &C::Config, mss_bytes: u32, rtt_ns: u64, now_ns: u64, out: &mut Out) {
    // SAFETY: `open` has written it, if the control asks for it; else it is 0.
    let service = if C::SERVICE { Some(Service(unsafe { std::ptr::addr_of!((*slot).service).read() })) } else { None };
    *out = Out { cwnd_segs: 1.0, pacing_bps: 0.0 };
    let control = C::start(&Context { config, service }, Start { mss_bytes, rtt_ns, now_ns }, out);

    // SAFETY: Weir gives room for a slot.
    unsafe { std::ptr::addr_of_mut!((*slot).control).write(control) }
}

extern "C" fn on_ack<C: Control>(slot: &mut Slot<C>, config: &C::Config, ack: &Ack, out: &mut Out) {
    let context = context(slot, config);
    slot.control.on_ack(&context, ack, out);
}

extern "C" fn on_loss<C: Control>(slot: &mut Slot<C>, config: &C::Config, loss: &Loss, out: &mut Out) {
    let context = context(slot, config);
    slot.control.on_loss(&context, loss, out);
}

extern "C" fn on_rto<C: Control>(slot: &mut Slot<C>, config: &C::Config, loss: &Loss, out: &mut Out) {
    let context = context(slot, config);
    slot.control.on_rto(&context, loss, out);
}

extern "C" fn on_spurious<C: Control>(slot: &mut Slot<C>, config: &C::Config, now_ns: u64, out: &mut Out) {
    let context = context(slot, config);
    slot.control.on_spurious(&context, now_ns, out);
}

extern "C" fn on_idle<C: Control>(slot: &mut Slot<C>, config: &C::Config, now_ns: u64, idle_ns: u64, out: &mut Out) {
    let context = context(slot, config);
    slot.control.on_idle(&context, now_ns, idle_ns, out);
}

extern "C" fn on_timer<C: Control>(slot: &mut Slot<C>, config: &C::Config, now_ns: u64, out: &mut Out) {
    let context = context(slot, config);
    slot.control.on_timer(&context, now_ns, out);
}

extern "C" fn on_packet<C: Control>(slot: &mut Slot<C>, config: &C::Config, packet: &Packet) {
    let context = context(slot, config);
    slot.control.on_packet(&context, packet);
}

extern "C" fn on_arrival<C: Control>(receiver: &mut [u64; RECEIVER], config: &C::Config, arrival: &Arrival) -> u64 {
    C::on_arrival(receiver, config, arrival)
}

extern "C" fn observe<C: Control>(slot: &Slot<C>, config: &C::Config, values: &mut [f32; OBSERVED]) {
    *values = slot.control.observe(config);
}

extern "C" fn mode<C: Control>(slot: &Slot<C>, config: &C::Config) -> u8 {
    slot.control.mode(config)
}

extern "C" fn ssthresh<C: Control>(slot: &Slot<C>, config: &C::Config) -> f64 {
    slot.control.ssthresh(config)
}

const fn names<const N: usize>(texts: &[&'static str]) -> [*const c_char; N] {
    let mut names = [std::ptr::null(); N];
    let mut i = 0;

    while i < texts.len() {
        names[i] = text(texts[i]);
        i += 1;
    }
    names
}

// A text of C: it must end with a 0.
const fn text(text: &'static str) -> *const c_char {
    assert!(text.as_bytes()[text.len() - 1] == 0, "a text ends with \\0");
    text.as_ptr().cast()
}

impl<C: Control> Ops<C> {
    /// The ops of a control.
    pub const TABLE: Ops<C> = Ops {
        name: text(C::NAME),
        alias: std::ptr::null(),
        summary: text(C::SUMMARY),
        reference: std::ptr::null(),
        params: C::Config::PARAMS.as_ptr(),
        preset: std::ptr::null(),
        presets: std::ptr::null(),
        config_size: std::mem::size_of::<C::Config>(),
        state_size: std::mem::size_of::<Slot<C>>(),
        prr: C::PRR,
        rate: true,
        ecn: C::ECN,
        answers_in_on_ack: false,
        codepoint: 0,
        feedback: 0,
        burst_ns: 0,
        ack_each: false,
        any_idle: false,
        samples: true,
        observed: names(C::OBSERVED),
        modes: names(C::MODES),
        given_window: given_window::<C>,
        init: init::<C>,
        on_ack: on_ack::<C>,
        on_loss: on_loss::<C>,
        on_rto: on_rto::<C>,
        on_spurious: on_spurious::<C>,
        on_idle: on_idle::<C>,
        observe: if C::OBSERVED.is_empty() { None } else { Some(observe::<C>) },
        mode: if C::MODES.is_empty() { None } else { Some(mode::<C>) },
        ssthresh: if C::SSTHRESH { Some(ssthresh::<C>) } else { None },
        license: std::ptr::null(),
        configure: std::ptr::null(),
        on_sample: std::ptr::null(),
        requests: std::ptr::null(),
        release: std::ptr::null(),
        memory_bytes: 0,
        shared_bytes: 0,
        shared_name: std::ptr::null(),
        wants: std::ptr::null(),
        open: if C::SERVICE { Some(open::<C>) } else { None },
        on_timer: if C::SERVICE { Some(on_timer::<C>) } else { None },
        on_packet: if C::SERVICE { Some(on_packet::<C>) } else { None },
        notes: names(C::NOTES),
        on_arrival: if C::ARRIVAL { Some(on_arrival::<C>) } else { None },
    };
}

/// What a plug-in exports (`struct cc_plugin`).
#[repr(C)]
#[allow(dead_code)]
#[doc(hidden)]
pub struct Plugin {
    abi: u32,
    ops_size: u32,
    ack_size: u32,
    loss_size: u32,
    out_size: u32,
    param_size: u32,
    ops: *const c_void,
}
// SAFETY: what the pointer leads to is constant.
unsafe impl Sync for Plugin {}

impl Plugin {
    /// For [`plugin!`].
    pub const fn new<C: Control>(ops: &'static Ops<C>) -> Plugin {
        Plugin {
            abi: ABI,
            ops_size: std::mem::size_of::<Ops<C>>() as u32,
            ack_size: std::mem::size_of::<Ack>() as u32,
            loss_size: std::mem::size_of::<Loss>() as u32,
            out_size: std::mem::size_of::<Out>() as u32,
            param_size: std::mem::size_of::<Param>() as u32,
            ops: (ops as *const Ops<C>).cast(),
        }
    }
}

/// Exports a control; once in a crate of the type `cdylib`.
#[macro_export]
macro_rules! plugin {
    ($control:ty) => {
        #[no_mangle]
        #[allow(non_upper_case_globals, missing_docs)]
        pub static weir_cc_plugin: $crate::Plugin = {
            static OPS: $crate::Ops<$control> = $crate::Ops::<$control>::TABLE;
            $crate::Plugin::new(&OPS)
        };
    };
}
