# SPDX-License-Identifier: BSD-3-Clause
"""Congestion controls from outside: `cc: {plugin: ./mine.so}`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from waiting import wait_for
from weir.analysis import folder

from .conftest import Simulate

# Random losses and delays, ECN's marks, lost ACKs, an outage with timeouts, pauses of the source.
HARD = """
seed: {seed}
duration: 20s
paths:
  forward:
    - loss: {{rate: 0.5%}}
    - link: {{rate: 6Mbit, queue: {{codel: {{target: 5ms, ecn: yes}}}}}}
    - jitter: {{mean: 5ms, spread: 4ms}}
    - delay: {{delay: 20ms}}
  reverse:
    - loss: {{rate: 5%}}
    - delay: {{delay: 20ms}}
flows:
  - {{count: 3, cc: {cc}, ecn: ect0, name: a}}
  - count: 2
    cc: {cc}
    name: b
    source: {{closed: {{sizes: {{mean: 300kB}}, think: 900ms, connection: keep}}}}
schedule:
  - {{at: 5s, forward.loss.rate: 100%}}
  - {{at: 7s, forward.loss.rate: 0.5%}}
telemetry: {{level: 3}}
"""

Compile = Callable[..., Path]


def test_newreno_as_a_plugin(build_plugin: Compile, simulate: Simulate) -> None:
    """The template is NewReno: each record is what the control within gives."""
    plugin = build_plugin(flags="-O2 -Wall -Wextra -Werror")
    for seed in (1, 2):
        within = simulate(HARD.format(seed=seed, cc="newreno"))
        outside = simulate(HARD.format(seed=seed, cc=f"{{plugin: {plugin}}}"))
        assert outside.summary["digest"] == within.summary["digest"]
        for group in outside.groups:
            assert group["cc"] == "mine"
            assert group["modes"] == within.groups[0]["modes"]
        # What the scenario is for has happened.
        assert within.groups[0]["timeouts"] > 0
        assert within.groups[0]["ce_segs"] > 0


def test_a_run_folder_runs_again(
    build_plugin: Compile, simulate: Simulate, weir_sim: Path, tmp_path: Path
) -> None:
    """It holds the plug-in itself, and all of its parameters."""
    plugin = build_plugin()
    first = simulate(HARD.format(seed=1, cc=f"{{plugin: {plugin}, beta: 0.7}}"))
    plugin.unlink()
    text = (first.folder / "config.yaml").read_text()
    for line in ("plugin: file-mine.so", "beta: 0.7", "initial: 10"):
        assert f"      {line}\n" in text
    out = tmp_path / "again"
    argv = [weir_sim, first.folder / "config.yaml", "--out", out]
    subprocess.run(argv, check=True, capture_output=True)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["digest"] == first.summary["digest"]


def test_it_is_listed_like_one_within(build_plugin: Compile, weir_sim: Path) -> None:
    """With its parameters and the names of what it records."""
    argv = [weir_sim, "--list", build_plugin(), "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    entry = json.loads(done.stdout)["cc"]["mine"]
    assert entry["params"]["beta"]["default"] == "50%"
    assert entry["observed"] == ["ssthresh_segs"]
    assert entry["modes"] == ["slow_start", "avoidance", "recovery", "timeout"]


HEADER = Path(__file__).parents[2] / "common/weir/cc.h"


@pytest.mark.parametrize(("version", "ops_bytes"), [(2, 344), (3, 384), (4, 568)])
def test_a_plugin_of_an_older_version_is_loaded(
    build_plugin: Compile, simulate: Simulate, tmp_path: Path, version: int, ops_bytes: int
) -> None:
    """Older versions had shorter ops: what they have not is taken for NULL."""
    text = HEADER.read_text()
    for pattern, other in (
        (rf"\t// Since version {version + 1}[;,].*?(?=^}};)", ""),
        (r"CC_ABI 5", f"CC_ABI {version}"),
        (r" == 576.*?BYTES_4", f" == {ops_bytes}"),
    ):
        text, found = re.subn(pattern, other, text, flags=re.DOTALL | re.MULTILINE)
        assert found == 1, pattern
    (tmp_path / "weir").mkdir()
    (tmp_path / "weir/cc.h").write_text(text)
    (tmp_path / "weir/param.h").write_text(HEADER.with_name("param.h").read_text())
    plugin = build_plugin(flags=f"-O2 -w -I{tmp_path}")
    within = simulate(HARD.format(seed=1, cc="newreno"))
    outside = simulate(HARD.format(seed=1, cc=f"{{plugin: {plugin}}}"))
    assert outside.summary["digest"] == within.summary["digest"]


# What each call must find is checked where it is made: abort() ends the run with a sentence.
SINCE_3 = """
static double beta; // of the groups with these parameters
static const char *configure(const void *config) {
	const struct config *cfg = config;

	if (beta != 0 && beta != cfg->beta)
		abort();
	beta = cfg->beta;
	return cfg->initial_segs == 999 ? "initial is too much" : NULL;
}

static void on_sample(void *state, const void *config, const struct cc_sample *sample) {
	struct state *s = state;

	if (sample->nxt_segs < sample->una_segs || sample->cwnd_segs < 1
		|| (sample->ack && sample->peer_tsecr == 0))
		abort();
	s->sampled_ns = sample->now_ns;
	s->lost_segs = sample->lost_segs;
}

static uint32_t requests(void *state, const void *config) {
	struct state *s = state;

	return s->acks++ % 1000 == 999 ? CC_REQUEST_REDUCTION | CC_REQUEST_APP_LIMITED : 0;
}

static void release(void *state, const void *config) {
	struct state *s = state;

	if (s->ssthresh_segs == 0)
		abort();
}

static const struct cc_ops ops = {
	.configure = configure,
	.on_sample = on_sample,
	.requests = requests,
	.release = release,"""
SAMPLED = [
    ("#include <weir/cc.h>", "#include <weir/cc.h>\n#include <stdlib.h>"),
    (
        "	double ssthresh_segs;",
        "	double ssthresh_segs;\n	uint64_t sampled_ns, lost_segs, acks;",
    ),
    ("\nstatic const struct cc_ops ops = {", SINCE_3),
    ("	(void)loss;", "	if (s->sampled_ns != loss->now_ns && !loss->requested) abort();"),
    (
        "	s->episode = s->timeout = true;",
        "	s->episode = s->timeout = s->sampled_ns == loss->now_ns;",
    ),
]


def test_what_plugins_are_told_and_may_ask(
    build_plugin: Compile, simulate: Simulate, weir_sim: Path, tmp_path: Path
) -> None:
    """Since version 3: a sample before each loss, requests, its own static variables."""
    plugin = build_plugin(*SAMPLED)
    hard = simulate(HARD.format(seed=1, cc=f"{{plugin: {plugin}}}"))
    groups = "".join(f"  - {{cc: {{plugin: {plugin}, beta: 0.{n}}}}}\n" for n in (6, 7, 8, 6))
    others = HARD.format(seed=1, cc="newreno").replace("schedule:", f"{groups}schedule:")
    assert simulate(others).summary["ledger"]["balanced"]
    assert hard.groups[0]["timeouts"] > 0
    assert hard.groups[1]["cwnd_reductions"] > 0
    # Nothing is lost or marked: the reductions are those that were asked for.
    quiet = HARD.replace("0.5%", "0%").replace("5%", "0%").replace("100%", "0%")
    quiet = quiet.replace("codel: {{target: 5ms, ecn: yes}}", "fifo: {{limit: 100000pkt}}")
    quiet = quiet.replace("    - jitter: {{mean: 5ms, spread: 4ms}}\n", "")
    run = simulate(quiet.format(seed=1, cc=f"{{plugin: {plugin}}}"))
    assert run.link["drops"] == 0
    assert run.groups[0]["ecn_echoes"] == 0
    assert run.groups[0]["cwnd_reductions"] >= 3
    status, text = said(weir_sim, tmp_path, plugin, ", initial: 999")
    assert (status, "configure: initial is too much" in text) == (2, True)


# Counts for itself what it is told of each segment, and ends the run where the two differ.
SINCE_4 = """
#include <stdlib.h>
#define SEGS 65536
struct seen {
	uint64_t sent_ns, delivered, lost;
	uint32_t inflight;
	bool flies;
};

static void open_flow(void *state, const void *config, struct cc_flow *flow) {
	struct state *s = state;

	if (flow->bytes != sizeof(*flow) || ((struct seen *)flow->memory)[SEGS - 1].sent_ns != 0)
		abort();
	s->flow = flow;
	s->due_ns = 0;
}

static void on_packet(void *state, const void *config, const struct cc_packet *p) {
	struct state *s = state;
	struct seen *seen = &((struct seen *)s->flow->memory)[p->number % SEGS];
	bool flew = seen->flies;

	if (p->event == CC_PACKET_SENT && p->retransmission != (seen->sent_ns != 0))
		abort();
	seen->flies = p->event == CC_PACKET_SENT || p->event == CC_PACKET_RESTORED;
	s->inflight += seen->flies - flew;
	if (p->event == CC_PACKET_SENT)
		*seen = (struct seen){p->now_ns, s->delivered, s->lost, s->inflight, true};
	if (p->sent_ns != seen->sent_ns || p->delivered_segs != seen->delivered
		|| p->lost_segs != seen->lost || p->inflight_segs != seen->inflight || p->bytes == 0)
		abort();
	s->delivered += p->event == CC_PACKET_ACKED;
	s->lost += p->event == CC_PACKET_LOST;
	s->probes += p->event == CC_PACKET_SENT && p->probe;
	if (p->event == CC_PACKET_ACKED)
		seen->sent_ns = 0;
}

static void on_timer(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct state *s = state;

	if (now_ns != s->due_ns)
		abort();
	s->flow->note(s->flow, 1, (double)s->probes, (double)(cc_random(s->flow) >> 40));
	s->flow->timer(s->flow, 7000000);
	s->due_ns = now_ns + 7000000;
}

static const struct cc_ops ops = {
	.memory_bytes = SEGS * sizeof(struct seen),
	.open = open_flow,
	.on_packet = on_packet,
	.on_timer = on_timer,
	.notes = {"nothing", "drawn"},"""
SERVED = [
    (
        "	double ssthresh_segs;",
        "	double ssthresh_segs;\n	struct cc_flow *flow;\n"
        "	uint64_t delivered, lost, probes, due_ns;\n	uint32_t inflight;",
    ),
    ("\nstatic const struct cc_ops ops = {", SINCE_4),
]
TIMED = (
    "	(void)mss_bytes, (void)rtt_ns, (void)now_ns;",
    "	s->due_ns = now_ns + 3000000;\n	s->flow->timer(s->flow, 3000000);",
)


def test_a_plugin_is_told_of_each_segment(build_plugin: Compile, simulate: Simulate) -> None:
    """Since version 4: sent, acknowledged, lost, restored; and it answers as without that."""
    longer = (
        "  - {{at: 12s, forward.delay.delay: 900ms}}\n  - {{at: 14s, forward.delay.delay: 20ms}}\n"
    )
    text = HARD.replace("telemetry:", f"{longer}telemetry:")
    within = simulate(text.format(seed=1, cc="newreno"))
    outside = simulate(text.format(seed=1, cc=f"{{plugin: {build_plugin(*SERVED)}}}"))
    assert outside.summary["digest"] == within.summary["digest"]
    assert outside.groups[0]["spurious_timeouts"] > 0


def test_a_plugin_has_a_timer_and_random_numbers(build_plugin: Compile, simulate: Simulate) -> None:
    """Each timer is at its nanosecond; draws differ by seed and flow, and repeat with the seed."""
    plugin = build_plugin(*SERVED, TIMED)
    drawn = []
    for seed in (1, 1, 2):
        run = simulate(HARD.format(seed=seed, cc=f"{{plugin: {plugin}}}"))
        assert run.groups[0]["notes"] == ["nothing", "drawn"]
        events = folder.load(run.folder).stream("events")
        notes = events.records[events.records["event"] == events.number("event", "note")]
        first = notes[notes["flow_id"] == 0]
        assert set((first["ts_ns"][1:] - first["ts_ns"][:-1]).tolist()) == {7_000_000}
        assert (first["ts_ns"][-1] > 19.9e9, set(notes["flow_id"])) == (True, set(range(5)))
        assert first["before"][-1] > 0  # tail loss probes
        drawn.append(notes["value"].tolist())
        assert len(set(drawn[-1])) > 0.99 * len(drawn[-1])
    assert drawn[0] == drawn[1] != drawn[2]


# As the sender of a note for each segment acknowledged: its number, and what is known of a mark.
REPORTS_CE = (
    "	s->lost += p->event == CC_PACKET_LOST;",
    "	s->lost += p->event == CC_PACKET_LOST;\n"
    "	if (p->event == CC_PACKET_ACKED)\n"
    "		s->flow->note(s->flow, 0, (double)p->number, (double)p->ce);\n"
    "	else if (p->ce != CC_CE_UNKNOWN)\n"
    "		abort();",
)
MARKED = """
seed: 1
duration: 4s
paths:
  forward:
    - link: {{rate: 20Mbit, queue: {{step: {{limit: 1000pkt, threshold: 20pkt}}}}}}
    - delay: {{delay: 10ms}}
  reverse: [{{delay: {{delay: 10ms}}}}]
flows:
  - {{cc: {{plugin: {plugin}}}, ecn: ect0, ecn_feedback: {feedback}, ack_every: {acks}}}
telemetry: {{level: 3}}
"""


@pytest.mark.parametrize("feedback", ["classic", "dctcp", "accecn"])
@pytest.mark.parametrize("acks", [1, 4])
def test_a_plugin_is_told_which_segments_were_marked(
    build_plugin: Compile, simulate: Simulate, feedback: str, acks: int
) -> None:
    """Since version 5: what is said is what the queue did; of one segment an ACK says all."""
    plugin = build_plugin(*SERVED, REPORTS_CE)
    run = simulate(MARKED.format(plugin=plugin, feedback=feedback, acks=acks))
    assert run.groups[0]["retransmits"] == 0
    streams = folder.load(run.folder)
    packets = streams.stream("packets")
    # Without losses the segments enter in the order of their numbers, behind a SYN and an ACK.
    entered = packets.records[packets.records["event"] == packets.number("event", "enqueue")]
    marks = packets.records[packets.records["event"] == packets.number("event", "mark")]
    places = {int(one): place for place, one in enumerate(sorted(entered["pkt_id"]), -2)}
    marked = {places[int(one)] for one in marks["pkt_id"]}
    events = streams.stream("events")
    notes = events.records[events.records["event"] == events.number("event", "note")]
    known = {int(one["before"]): int(one["value"]) for one in notes if one["detail"] == 0}
    assert len(known) > 5000
    unknown, no, yes = ({one for one in known if known[one] == ce} for ce in range(3))
    assert yes <= marked
    assert not no & marked
    if feedback == "classic":
        assert not no | yes
    elif acks == 1:
        assert not unknown
        assert len(yes) > 20
    elif feedback == "dctcp":
        assert not unknown  # a change of CE is acknowledged at once
    else:
        assert 0 < len(unknown) < 0.2 * len(known)


@pytest.mark.parametrize("segs", [0, 1, 4])
def test_a_plugin_sets_the_size_of_bursts(
    build_plugin: Compile, simulate: Simulate, segs: int
) -> None:
    """Four segments leave at once, in one pacing slot; 0 is the group's, one by one."""
    plugin = build_plugin(
        *SERVED,
        ("	s->due_ns = 0;", f"	flow->burst_segs = {segs};"),
        ("	out->pacing_bps = 0;", "	out->pacing_bps = 4e6;"),
    )
    text = HARD.format(seed=1, cc=f"{{plugin: {plugin}, initial: 100}}").split("  - count: 2")[0]
    text = text.replace("count: 3", "count: 1").replace("0.5%", "0%").replace("6Mbit", "60Mbit")
    run = simulate(text + "telemetry: {level: 3}\n")
    packets = folder.load(run.folder).stream("packets")
    records = packets.records[packets.records["event"] == packets.number("event", "enqueue")]
    sent = sorted(records["ts_ns"].tolist())[20:120]
    gaps = [later - sooner for sooner, later in pairwise(sent)]
    assert sum(gap == 0 for gap in gaps) == pytest.approx(len(gaps) * (1 - 1 / max(segs, 1)), abs=2)


HERE = Path(__file__)
PLUS, COMMON = HERE.with_name("plus.cpp"), HERE.parents[2] / "common"


@pytest.mark.parametrize("compiler", ["g++", "clang++-14"])
def test_a_plugin_in_cpp(compiler: str, weir_sim: Path, tmp_path: Path) -> None:
    """The header is C++17 and C++20, and what it exports is found."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    for standard in ("c++17", "c++20"):
        made = tmp_path / f"{standard}.so"
        argv = [compiler, f"-std={standard}", "-fvisibility=hidden", "-shared", "-fPIC"]
        argv += ["-I", str(COMMON), "-o", str(made), str(PLUS)]
        subprocess.run(argv, check=True, capture_output=True)
        listed = subprocess.run(
            [weir_sim, "--list", made, "--json"], check=True, capture_output=True, text=True
        )
        params = json.loads(listed.stdout)["cc"]["plus"]["params"]
        assert (params["beta"]["default"], params["mode"]["choices"]) == ("50%", ["slow", "fast"])


def test_a_call_that_does_not_return_is_ended(
    build_plugin: Compile, weir_sim: Path, tmp_path: Path
) -> None:
    """Two seconds after Ctrl-C or SIGTERM, with a sentence; the folder is as far as it came."""
    config, out = tmp_path / "small.yaml", tmp_path / "run"
    plugin = build_plugin(("	if (!ack->in_recovery)", "	for (;;)"))
    config.write_text(HARD.format(seed=1, cc=f"{{plugin: {plugin}}}"))
    argv = [weir_sim, config, "--out", out]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        stat, tick_s = Path(f"/proc/{process.pid}/stat"), 1 / os.sysconf("SC_CLK_TCK")
        # It is in the call once it has computed for longer than its start takes.
        wait_for(lambda: int(stat.read_text().rpartition(")")[2].split()[11]) * tick_s > 0.5)
        process.terminate()
        said = process.communicate(timeout=60)[1]
    assert said.endswith(
        f"plug-in {plugin}: on_ack: a call that did not return within 2 s ended the program\n"
    )
    assert (out / "manifest.json").exists()


def said(weir_sim: Path, folder: Path, plugin: Path, more: str = "") -> tuple[int, str]:
    """Status and the sentence of a run."""
    config = folder / "small.yaml"
    config.write_text(HARD.format(seed=1, cc=f"{{plugin: {plugin}{more}}}"))
    argv = [weir_sim, config, "--out", folder / "run", "--force"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.stderr.count("\n") == 1, done.stderr
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("status", "changes", "sentence"),
    [
        (2, [("CC_PLUGIN(ops);", "const struct cc_ops *mine = &ops;")], "no symbol weir_cc_plugin"),
        (
            2,
            [("#include <weir/cc.h>", "#include <weir/cc.h>\n#undef CC_ABI\n#define CC_ABI 0")],
            r"compiled for version 0 of weir/cc.h, and this is version \d+: compile it again",
        ),
        (2, [(".on_rto = on_rto,", "")], "its ops have no on_rto"),
        (2, [('.observed = {"ssthresh_segs"},', "")], "both or neither: observe"),
        (2, [(".init = init,", ".init = no_such_init,")], "undefined symbol: no_such_init"),
        (2, [('.name = "mine"', '.name = "Mine 2"')], "name of 1 to 31 small letters"),
        (2, [("sizeof(struct state),", "1000,")], "1000 bytes, and a flow has room for 256"),
        (2, [("sizeof(struct config),", "8,")], "parameter beta lies behind the config of 8 bytes"),
        (2, [('"50%"', '"50 apples"')], "beta: '50 apples' is not a ratio"),
        (
            1,
            [("acked / out->cwnd_segs;", "acked / 0. - acked / 0.;")],
            r"on_ack \(now_ns \d+\): cwnd_segs is -?nan, and must be a finite number of 1 or more",
        ),
        (
            1,
            [("out->cwnd_segs = 1;", "out->cwnd_segs = 0.5;")],
            r"on_rto \(now_ns \d+\): cwnd_segs is 0.5",
        ),
        (
            1,
            [("out->pacing_bps = 0;", "out->pacing_bps = -1;")],
            r"init \(now_ns \d+\): pacing_bps is -1, and must be a finite number of 0 or more",
        ),
        (
            1,
            [("	(void)loss;", "	*(volatile int *)(uintptr_t)loss->lost_segs = 1;")],
            "on_loss: an access to memory that it does not have ended the program",
        ),
        (
            1,
            [("	(void)loss;", "	volatile int no = 0;\tout->cwnd_segs = 7 / no;")],
            "on_loss: a division of integers by zero ended the program",
        ),
    ],
)
def test_a_bad_plugin_gets_one_sentence(
    weir_sim: Path,
    build_plugin: Compile,
    tmp_path: Path,
    status: int,
    changes: list[tuple[str, str]],
    sentence: str,
) -> None:
    """With the file's name, and no figures of a run that went wrong."""
    if "no_such_init" in changes[0][1]:
        declared = "typeof(init) no_such_init;"
        changes = [
            *changes,
            (
                "static_assert(sizeof(struct state)",
                f"{declared}\nstatic_assert(sizeof(struct state)",
            ),
        ]
    plugin = build_plugin(*changes)
    got, text = said(weir_sim, tmp_path, plugin)
    assert re.search(sentence, text), text
    assert str(plugin) in text
    assert got == status


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (", bta: 1", r"mine: unknown key 'bta'; did you mean 'beta'\?"),
        (", beta: 2", r"beta: 2 is not in \[1%, 1\]"),
        (", digest: 12", "it is another file"),
    ],
)
def test_its_parameters_are_checked(
    weir_sim: Path, build_plugin: Compile, tmp_path: Path, more: str, sentence: str
) -> None:
    """As those of a control within, with the place in the config."""
    status, text = said(weir_sim, tmp_path, build_plugin(), more)
    assert status == 2
    assert re.search(rf"small.yaml:14:\d+: {sentence}|{sentence}", text), text


def test_what_is_no_plugin(weir_sim: Path, tmp_path: Path) -> None:
    """A file that is not there, and one that is something else."""
    status, text = said(weir_sim, tmp_path, Path("no.so"))
    assert (status, "cannot be read: No such file" in text) == (1, True)
    (tmp_path / "text.so").write_text("text")
    status, text = said(weir_sim, tmp_path, Path("text.so"))
    assert (status, "file too short" in text) == (2, True)
