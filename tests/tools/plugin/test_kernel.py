# SPDX-License-Identifier: BSD-3-Clause
"""weir new cc --linux: a file of the user's for the kernel's interface becomes a plug-in."""

import json
import subprocess
import tarfile

import pytest
from weir.base import places
from weir.base.errors import UserError
from weir.plugin import kernel

OWN = """
#include <linux/module.h>
#include <net/tcp.h>

static int left __read_mostly = 50;
module_param(left, int, 0644);
MODULE_PARM_DESC(left, "percent of the window that a loss leaves");

static u32 own_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) * left / 100, 2U);
}

static struct tcp_congestion_ops own __read_mostly = {
	.ssthresh	= own_ssthresh,
	.cong_avoid	= tcp_reno_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "own",
};

static int __init own_register(void)
{
	return left > 100 ? -ERANGE : tcp_register_congestion_control(&own);
}

module_init(own_register);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("Reno, and what a loss leaves");
"""


def test_a_file_for_the_kernel_becomes_a_plugin(weir, tmp_path):
    """What is said to type runs, Reno is as ours, and a package names the license."""
    own = f"/* Jos\xe9 */{OWN}".encode("latin-1")  # as in kernels' comments
    (tmp_path / "own.c").write_bytes(own)
    made = weir("new", "cc", "mine", "--linux", "own.c")
    assert made.status == 0, made.err
    assert (tmp_path / "mine/own.c").read_bytes() == own
    subprocess.run(["make", "-s", "-C", tmp_path / "mine"], check=True)
    listed = weir("list", "mine/mine.so", "--json")
    entry = json.loads(listed.out)["cc"]["mine"]
    assert entry["summary"] == "Reno, and what a loss leaves"
    assert entry["params"]["left"]["default"] == "50"
    runs = {}
    for name, control in (("mine", "{plugin: ./mine.so}"), ("ours", "{newreno: {abc_limit: 0}}")):
        run = ("run", "mine/mine.yaml", "-o", f"flows=[{{cc: {control}, host: linux}}]")
        ran = weir(*run, "--no-report", "--json", "--out", name)
        assert ran.status == 0, ran.err
        runs[name] = json.loads(ran.out)["groups"][0]["goodput_bps"]
    assert abs(runs["mine"] / runs["ours"] - 1) < 0.002
    refused = weir("run", "mine/mine.yaml", "-o", "flows.0.cc.left=200", "--out", "refused")
    assert refused.status == 2
    assert "the module's init refuses them" in refused.err


def test_arguments_of_another_kernel_are_an_error(weir, tmp_path):
    """They were passed all the same: the first that a function of two got was a number."""
    other = (
        "static void own_main(struct sock *sk, u32 ack, int flag)\n{\n}\n\nstatic struct tcp_cong"
    )
    text = OWN.replace("static struct tcp_cong", other).replace("cong_avoid", "cong_control", 1)
    (tmp_path / "own.c").write_text(text.replace("tcp_reno_cong_avoid", "own_main"))
    assert weir("new", "cc", "mine", "--linux", "own.c").status == 0
    made = subprocess.run(["make", "-C", tmp_path / "mine"], capture_output=True, text=True)
    assert made.returncode != 0
    assert "incompatible pointer type" in made.stderr


def test_the_package_of_a_run_names_the_license(weir, tmp_path):
    (tmp_path / "own.c").write_text(OWN)
    assert weir("new", "cc", "mine", "--linux", "own.c").status == 0
    subprocess.run(["make", "-s", "-C", tmp_path / "mine"], check=True)
    run = ("run", "mine/mine.yaml", "--duration", "11s", "--no-report", "--out", "ran")
    assert weir(*run).status == 0
    assert weir("pack", "ran", "--out", "ran.tar.gz").status == 0
    with tarfile.open(tmp_path / "ran.tar.gz") as archive:
        text = archive.extractfile("ran/README.md").read().decode()
    note = "`runs/ran/file-mine.so` is compiled from source under the license Dual BSD/GPL."
    assert note in text


def test_what_a_package_has_are_controls(tmp_path, monkeypatch):
    """tcp_diag.c is a module, and tcp_cong.c names the struct."""
    monkeypatch.setattr(places, "cache", lambda: tmp_path)
    monkeypatch.setattr(kernel.build, "source", lambda _: ("linux-source-9", "9.1"))
    folder = tmp_path / "controls/9.1"
    folder.mkdir(parents=True)
    (folder / "tcp_own.c").write_text(OWN)
    (folder / "tcp_diag.c").write_text("module_init(tcp_diag_init);\n")
    (folder / "tcp_cong.c").write_text("static struct tcp_congestion_ops *find(void);\n")
    with pytest.raises(UserError, match=r"no file nothing\.c; linux-source-9 9\.1 has own$"):
        kernel.files("nothing.c", None)


def test_what_is_no_control_is_refused(weir, tmp_path):
    (tmp_path / "other.c").write_text("int x;\n")
    for options, sentence in (
        (("--linux", "other.c"), "new: --linux: other.c has no struct tcp_congestion_ops"),
        (("--linux", "other.c", "--source", "linux-source-6.1"), "other.c is a file"),
        (("--source", "linux-source-6.1"), "is of a control of Linux: name one with --linux"),
    ):
        refused = weir("new", "cc", "mine", *options)
        assert refused.status == 2
        assert sentence in refused.err
    assert not (tmp_path / "mine").exists()
