# SPDX-License-Identifier: BSD-3-Clause
"""weir doctor: what it sees of a host, made up here as a folder."""

import io

import pytest
from rich.console import Console
from weir import doctor
from weir.doctor import BAD, OK, WARN, Check, Host


@pytest.fixture
def host(tmp_path):
    """A host whose files are the given ones."""

    def make(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Host(tmp_path)

    return make


def states(checks):
    return {check.name: check.state for check in checks}


@pytest.mark.parametrize(
    ("available_kb", "state"), [(100_000, BAD), (1_000_000, WARN), (8_000_000, OK)]
)
def test_memory(host, available_kb, state):
    made = host(proc__meminfo=f"MemTotal: 9 kB\nMemAvailable:   {available_kb} kB\n")
    assert states(doctor.memory(made))["memory"] == state


@pytest.mark.parametrize(("pages", "state"), [("0", WARN), ("100", WARN), ("512", OK)])
def test_hugepages_count_what_is_free(host, tmp_path, pages, state):
    folder = tmp_path / "sys/kernel/mm/hugepages/hugepages-2048kB"
    folder.mkdir(parents=True)
    (folder / "free_hugepages").write_text(pages)
    made = host(proc__meminfo="MemAvailable: 8000000 kB\n")
    assert states(doctor.memory(made))["hugepages"] == state


@pytest.mark.parametrize(
    ("flags", "state"), [("fpu constant_tsc nonstop_tsc", OK), ("fpu constant_tsc", WARN)]
)
def test_tsc(host, flags, state):
    clock = host(
        proc__cpuinfo=f"flags\t\t: {flags}\n",
        sys__devices__system__clocksource__clocksource0__current_clocksource="hpet\n",
    )
    assert states(doctor.clock(clock)) == {"TSC": state, "clock source": WARN}


def test_congestion_controls_that_are_missing_are_named(host):
    made = host(proc__sys__net__ipv4__tcp_available_congestion_control="reno cubic\n")
    row = next(check for check in doctor.kernel(made) if check.name == "kernel TCP")
    assert (row.state, row.fix) == (WARN, "modprobe tcp_bbr")


def test_a_host_without_proc_and_sys_is_only_badly_known(host):
    assert all(check.name for check in doctor.checks(host()))


def test_what_is_not_good_says_what_it_means(host):
    for check in doctor.checks(host()):
        assert check.state in (OK, WARN, BAD)
        assert check.state == OK or check.meaning or check.fix


def test_the_status_is_bad_only_if_something_is(host):
    def shown(*rows):
        out = io.StringIO()
        return doctor.show(list(rows), Console(file=out, width=150)), out.getvalue()

    status, text = shown(Check("a", OK, "1"), Check("b", WARN, "2", "slower", "mend --b"))
    assert status == 0
    assert "b: mend --b" in text
    assert "Weir can run here" in text
    status, text = shown(Check("a", BAD, "nothing", "no way"))
    assert status == 1
    assert "cannot run: a" in text


def test_the_command(weir):
    done = weir("doctor")
    assert done.err == ""
    assert "cores" in done.out
