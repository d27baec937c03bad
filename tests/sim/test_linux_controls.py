# SPDX-License-Identifier: BSD-3-Clause
"""Linux's own congestion controls, compiled from a Debian package's unchanged files, in Weir's TCP.

The package is downloaded by apt-get, once into ~/.cache/weir/controls. Beside them stand figures of
the same control in the same kernel, Linux 6.12.117 as a guest (`stack: {linux: ...}`), with
seed 1.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weir.plugin import kernel, new

from .conftest import Program, Simulate

PACKAGE, OLDER = "linux-source-6.12", "linux-source-6.1"
# Goodput in Mbit/s and the mean time in the queue in ms: without loss, and with 0.1 %.
GUESTS: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "bbr": ((92.782, 2.84), (92.124, 2.85)),
    "bic": ((94.148, 16.07), (52.012, 2.47)),
    "cdg": ((88.419, 2.23), (26.895, 0.12)),
    "cubic": ((94.147, 15.53), (25.002, 0.10)),
    "dctcp": ((94.148, 4.33), (26.777, 0.12)),
    "highspeed": ((94.147, 12.53), (25.541, 0.12)),
    "htcp": ((94.126, 9.31), (25.830, 0.11)),
    "hybla": ((94.086, 11.28), (19.333, 0.08)),
    "illinois": ((94.138, 14.22), (90.155, 1.49)),
    "lp": ((94.060, 10.67), (26.099, 0.12)),
    "nv": ((94.149, 1.29), (38.635, 0.17)),
    "scalable": ((94.147, 17.17), (50.138, 0.25)),
    "vegas": ((94.147, 0.79), (26.176, 0.12)),
    "veno": ((94.096, 12.22), (37.452, 0.16)),
    "westwood": ((94.129, 12.20), (58.128, 0.51)),
    "yeah": ((94.084, 11.30), (50.187, 0.25)),
}
# Without loss, and with it: which packets are lost decides what is left of a window.
OFF = {"goodput": (0.005, 0.05), "queue_ms": (0.75, 1.0)}
# CDG backs off at random, and no two of its runs are alike: guests with seeds 1 to 6 have 85.5 to
# 90.0 Mbit/s and 1.0 to 2.7 ms.
OFF_AT_RANDOM = {"goodput": (0.08, 0.2), "queue_ms": (4.0, 1.0)}

CONFIG = """
seed: 1
duration: {duration}s
warmup: 5s
paths:
  forward: [{{link: {{rate: 100Mbit, queue: {queue}}}}}, {loss}{{delay: {{delay: 10ms}}}}]
  reverse: [{{delay: {{delay: 10ms}}}}]
flows:
  - {{cc: {{plugin: {plugin}}}, host: linux, gro: 0s, rmem: 32MiB, wmem: 32MiB{more}}}
"""
FIFO = "{fifo: {limit: 1BDP}}"
STEP = "{step: {limit: 4BDP, threshold: 5ms}}"

# A control as struct_ops programs are written (Documentation/bpf/kfuncs.rst): Reno's rules are the
# kernel's.
BPF = """\
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "GPL";

extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

static bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

SEC("struct_ops")
void BPF_PROG(mine_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	if (!before(ack, tcp_sk(sk)->snd_una))
		tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(mine_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(mine_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops mine = {
	.cong_avoid = (void *)mine_cong_avoid,
	.ssthresh = (void *)mine_ssthresh,
	.undo_cwnd = (void *)mine_undo_cwnd,
	.name = "mine",
};
"""

Compile = Callable[..., Path]


@pytest.fixture
def compile_control(tmp_path: Path) -> Compile:
    """compile_control("cubic"): its plug-in, as weir new cc --linux and make give it."""

    def compiled(name: str, package: str = PACKAGE) -> Path:
        plugin = kernel.compiled(name, tmp_path, package)
        [original, *_] = kernel.files(f"net/ipv4/tcp_{name}.c", package)
        assert (plugin.parent / original.name).read_bytes() == original.read_bytes()
        return plugin

    return compiled


def built(place: Path, name: str, text: str) -> Path:
    """The folder of a control with this file, compiled."""
    (place / f"{name}.c").write_text(text)
    new.create("linux", name, place / name, kernel.files(str(place / f"{name}.c"), None))
    subprocess.run(["make", "-s", "-C", place / name], check=True)
    return place / name


def config(name: str, plugin: Path, lossy: bool) -> str:
    marks = name == "dctcp"
    return CONFIG.format(
        duration=40 if lossy else 20,
        queue=STEP if marks else FIFO,
        loss="{loss: {rate: 0.1%}}, " if lossy else "",
        plugin=plugin,
        more=", ecn: ect0" if marks else "",
    )


@pytest.mark.parametrize("name", GUESTS)
def test_a_control_of_linux_does_here_what_it_does_there(
    compile_control: Compile, simulate: Simulate, name: str
) -> None:
    plugin = compile_control(name)
    for lossy in (False, True):
        run = simulate(config(name, plugin, lossy))
        goodput, queue_ms = GUESTS[name][lossy]
        off = OFF_AT_RANDOM if name == "cdg" else OFF
        got = run.groups[0]["goodput_bps"] / 1e6
        assert got == pytest.approx(goodput, rel=off["goodput"][lossy])
        got = run.link["queue_mean_ns"] / 1e6
        assert got == pytest.approx(queue_ms, abs=off["queue_ms"][lossy])


def test_so_do_those_of_an_older_kernel(compile_control: Compile, simulate: Simulate) -> None:
    """6.1, where BBR's function has other arguments; no control differs between the two."""
    for name in GUESTS:
        run = simulate(config(name, compile_control(name, OLDER), False))
        off = (OFF_AT_RANDOM if name == "cdg" else OFF)["goodput"][0]
        assert run.groups[0]["goodput_bps"] / 1e6 == pytest.approx(GUESTS[name][0][0], rel=off)


def test_a_module_s_parameters_are_a_group_s(
    compile_control: Compile, simulate: Simulate, weir_sim: Path, tmp_path: Path
) -> None:
    """Two groups of one file have their own; the kernel's words explain them."""
    plugin = compile_control("cubic")
    argv = [weir_sim, "--list", plugin, "--json"]
    listed = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
    beta = listed["cc"]["cubic"]["params"]["beta"]
    assert (beta["default"], beta["help"]) == ("717", "beta for multiplicative increase")
    text = config("cubic", plugin, False)
    gentle = text.splitlines()[-1].replace(f"{plugin}}}", f"{plugin}, beta: 100}}, name: gentle")
    both = simulate(f"{text}{gentle}\n", "flows.0.jitter=40ms", "flows.1.jitter=40ms")
    assert both.groups[1]["goodput_bps"] < 0.8 * both.groups[0]["goodput_bps"]
    # Whoever gives the folder away gives a part of Linux away.
    manifest: Any = json.loads((both.folder / "manifest.json").read_text())
    assert {one["license"] for one in manifest["licenses"]} == {"GPL"}


def test_a_bpf_program_is_compiled_as_a_control(simulate: Simulate, tmp_path: Path) -> None:
    """Reno in it does what NewReno does here; a helper that is not there is named."""
    folder = built(tmp_path, "mine", BPF)
    text = config("mine", folder / "mine.so", False)
    ours = text.replace(f"{{plugin: {folder}/mine.so}}", "{newreno: {abc_limit: 0}}")
    runs = [simulate(one) for one in (text, ours)]
    goodput, expected = (run.groups[0]["goodput_bps"] for run in runs)
    assert goodput == pytest.approx(expected, rel=OFF["goodput"][0])
    maps = BPF.replace("return tcp_reno_undo_cwnd(sk)", "return bpf_map_lookup_elem(0, sk) != 0")
    (folder / "mine.c").write_text(maps)
    refused = subprocess.run(["make", "-s", "-C", folder], capture_output=True, text=True)
    assert refused.returncode != 0
    assert "bpf_map_lookup_elem" in refused.stderr


IN_FLIGHT = """\
static __u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

SEC("struct_ops")
void BPF_PROG(mine_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_packets_in_flight(tp) + acked >= tp->snd_cwnd)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
	if (tcp_packets_in_flight(tp) > tp->snd_cwnd)
		tp->snd_cwnd = 1;
}
"""


def test_a_bpf_program_counts_what_is_in_flight(simulate: Simulate, tmp_path: Path) -> None:
    """The kernel's function for it is inline, so that programs have their own.

    The window grows if the flight fills it, and is 1 if there were more: both are heard.
    """
    begin, end = BPF.index('SEC("struct_ops")'), BPF.index('SEC("struct_ops")\n__u32')
    folder = built(tmp_path, "mine", BPF[:begin] + IN_FLIGHT + BPF[end:])
    run = simulate(config("mine", folder / "mine.so", True))
    ours = simulate(config("mine", folder / "mine.so", True).replace(
        f"{{plugin: {folder}/mine.so}}", "{newreno: {abc_limit: 0}}"))  # fmt: skip
    assert run.groups[0]["goodput_bps"] == pytest.approx(ours.groups[0]["goodput_bps"], rel=0.1)


@pytest.mark.parametrize("operation", ["ssthresh", "undo_cwnd", "cong_avoid"])
def test_a_control_without_what_the_kernel_needs_is_refused(
    sim: Program, tmp_path: Path, operation: str
) -> None:
    """However its struct is written; the kernel refuses to register it."""
    text = BPF.replace(f"\t.{operation} = (void *)mine_{operation},\n", "")
    head = 'SEC(".struct_ops")\nstruct tcp_congestion_ops mine = {'
    assert head in text
    text = text.replace(head, 'SEC(".struct_ops.link") struct tcp_congestion_ops Mine_2\n\t= {')
    folder = built(tmp_path, "mine", text)
    sim.refuse(config("mine", folder / "mine.so", False), "in it has all that it needs: ssthresh")


def test_a_module_that_refuses_its_parameters_ends_the_run(
    compile_control: Compile, sim: Program
) -> None:
    text = config("cdg", compile_control("cdg"), False).replace(".so}", ".so, window: 3}")
    sim.refuse(text, "configure: the module's init refuses them")


# What BBRv3's kernels tell of segments, by a parameter: one number at a time, where the figures of
# each ACK have the slow start threshold. The window is as large as the network's.
SEGMENTS = """\
#include <linux/module.h>
#include <net/tcp.h>

static int what __read_mostly;
module_param(what, int, 0644);

struct seen {
	u32 lost, repaired, other;
};

static void seen_marked_lost(struct sock *sk, const struct sk_buff *skb)
{
	const struct tcp_skb_cb *scb = TCP_SKB_CB(skb);
	struct seen *seen = inet_csk_ca(sk);

	seen->lost += tcp_skb_pcount(skb);
	seen->other += scb->tx.in_flight == 0 || scb->tx.in_flight > tcp_sk(sk)->snd_cwnd;
	seen->other += tcp_sk(sk)->lost - scb->tx.lost - 1 >= tcp_sk(sk)->snd_cwnd;
}

static void seen_event(struct sock *sk, enum tcp_ca_event event)
{
	struct seen *seen = inet_csk_ca(sk);

	seen->repaired += event == CA_EVENT_TLP_RECOVERY;
}

static void seen_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct seen *seen = inet_csk_ca(sk);
	u32 shown[] = {seen->lost, rs->tx_in_flight, rs->lost, seen->repaired, seen->other};

	tcp_snd_cwnd_set(tcp_sk(sk), 20);
	tcp_sk(sk)->snd_ssthresh = shown[what];
}

static void seen_init(struct sock *sk)
{
	sk->sk_pacing_rate = ~0ul;
	tcp_snd_cwnd_set(tcp_sk(sk), 20);
}

static u32 seen_ssthresh(struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

static u32 seen_undo_cwnd(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

static u32 seen_tso_segs(struct sock *sk, unsigned int mss_now)
{
	return 1;
}

static struct tcp_congestion_ops seen_ops __read_mostly = {
	.flags = TCP_CONG_WANTS_CE_EVENTS,
	.name = "seen",
	.owner = THIS_MODULE,
	.init = seen_init,
	.cong_control = seen_control,
	.cwnd_event = seen_event,
	.skb_marked_lost = seen_marked_lost,
	.ssthresh = seen_ssthresh,
	.undo_cwnd = seen_undo_cwnd,
	.tso_segs = seen_tso_segs,
};

static int __init seen_register(void)
{
	return tcp_register_congestion_control(&seen_ops);
}

module_init(seen_register);
MODULE_LICENSE("Dual BSD/GPL");
"""
LOST, IN_FLIGHT_AT_SEND, LOST_SINCE, REPAIRED, OTHER = range(5)


def test_a_control_of_bbrv3_s_kernels_sees_each_segment(simulate: Simulate, tmp_path: Path) -> None:
    """It hears of each loss, and of what was in flight and lost when a segment left."""
    folder = built(tmp_path, "seen", SEGMENTS)

    def shown(what: int, lossy: bool, *more: str) -> Any:
        plugin = f"{folder}/seen.so, what: {what}"
        text = config("seen", Path(plugin), lossy) + "telemetry: {level: 3}\n"
        return simulate(text, "duration=10s", "warmup=0s", "flows.0.tso=no", *more).records("cc")

    acks = shown(LOST, True)
    assert acks["lost_segs"][-1] > 5
    called = acks["rtt_ns"] > 0  # else RACK's timer has found a loss
    assert (acks["obs0"] == acks["lost_segs"])[called].all()
    assert (shown(OTHER, True)["obs0"] == 0).all()
    acks = shown(IN_FLIGHT_AT_SEND, False)
    assert set(acks["obs0"][acks["ts_ns"] > 1e9]) == {20}  # of two that left at once the second
    # The segment left an RTT ago: what has been declared lost since then, from the transport's own.
    acks = shown(LOST_SINCE, True)
    before = np.searchsorted(acks["ts_ns"], acks["ts_ns"] - acks["rtt_ns"], side="right") - 1
    since = acks["lost_segs"] - acks["lost_segs"][np.maximum(before, 0)]
    timed = (acks["rtt_ns"] % 1_000_000 != 0) & (before > 0)  # not by timestamps, in ms
    assert timed.mean() > 0.9
    assert (acks["obs0"] == since)[timed].all()
    # Of each burst of ten the queue drops the last, which often a tail loss probe repairs.
    queue = "paths.forward.0.link.queue={fifo: {limit: 8pkt}}"
    source = "flows.0.source={request: {think: 300ms, times: fixed, sizes: {mean: 14480B}}}"
    acks = shown(REPAIRED, False, queue, source)
    assert acks["obs0"][-1] > 5
