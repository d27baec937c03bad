# SPDX-License-Identifier: BSD-3-Clause
"""Many runs as one tidy frame, and a table of means over seeds from it.

frame = weir.open_many("runs/**")
weir.table(frame, by=["flows.0.cc"], metrics=["goodput_bps", "rtt_mean_ns"])
"""

from __future__ import annotations

import glob
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import polars as pl
from msgspec import to_builtins

from weir.analysis import folder, listing, one_way, spread, summary
from weir.analysis.run_summary import RunSummary
from weir.base import configs, units
from weir.base.errors import UserError
from weir.base.page import Table

Row = dict[str, str | float | None]  # of the tidy frame
OWN = ("seed", "title")  # of a run's config; they make no column
FIXED = {
    "run": pl.String,
    "seed": pl.UInt64,
    spread.USED: pl.Boolean,
    "group": pl.String,
    "link": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "unit": pl.String,
}


def open_many(runs: str | Path | Sequence[str | Path]) -> pl.DataFrame:
    """Returns a row for each number of each run's summary: run, seed, seed_used, keys, number.

    runs is a pattern ("runs/**" is all below runs), a folder with runs, or a list of either. Each
    key of the resolved configs in which runs differ is a column of text, named as -o names it;
    it is null where a run does not have it. seed_used is false where nothing random was drawn: runs
    of the same keys are then one run. The number is in the columns group, link, metric, value and
    unit; group and link are null where it is of neither, unit is "ns", "bit/s", "B", "packets",
    "segments", "s" or "". UserError: there is no run. Beside the summary's numbers there is
    one_way_p95_ns of a run (analysis/one_way.py), where it is known.
    """
    found = [folder.load(path) for path in paths(runs)]
    settings = [settings_of(run) for run in found]
    keys = differing(settings)
    rows = [
        {**heading(run), **chosen(keys, known), **number}
        for run, known in zip(found, settings, strict=True)
        for number in [*numbers(run.summary), *derived(run)]
    ]
    names = ["run", "seed", spread.USED, *keys, *list(FIXED)[3:]]
    return pl.DataFrame(rows, {name: FIXED.get(name, pl.String) for name in names}, orient="row")


def settings_of(run: folder.Run) -> dict[str, str]:
    """Returns the values of a run's resolved config by their keys for -o."""
    controls = configs.controls(run.config, [group.cc for group in run.summary.groups])
    return dict(configs.leaves(run.config)) | controls


def heading(run: folder.Run) -> Row:
    """Returns the first columns of a run."""
    used = run.summary.seed_used
    return {"run": str(run.path), "seed": run.summary.seed, spread.USED: used}


def paths(runs: str | Path | Sequence[str | Path]) -> list[Path]:
    """Returns the run folders that patterns and folders name. UserError: there is none."""
    given = [runs] if isinstance(runs, str | Path) else list(runs)
    named = [Path(one) for each in given for one in (sorted(matching(str(each))) or [str(each)])]
    found = [run for place in named if place.is_dir() for run in listing.find(place)]
    if not found:
        raise UserError(f"there is no run in {', '.join(map(str, given))}")
    return list(dict.fromkeys(found))


def matching(pattern: str) -> list[str]:
    """Returns paths that a pattern stands for; it may be relative or begin at the root."""
    return glob.glob(pattern, recursive=True)  # noqa: PTH207 (pathlib's takes no whole path)


def differing(settings: Sequence[dict[str, str]]) -> list[str]:
    """Returns the keys that have more than one value among the runs that have them."""
    values: dict[str, set[str]] = {}
    for known in settings:
        for key, value in known.items():
            values.setdefault(key, set()).add(value)
    return [key for key, those in values.items() if len(those) > 1 and key not in OWN]


def chosen(keys: Sequence[str], known: dict[str, str]) -> dict[str, str | None]:
    return {key: known.get(key) for key in keys}


def numbers(report: RunSummary) -> list[Row]:
    """Returns every number of a summary's groups and links, and of the run."""
    rows = of_part({"virtual_s": report.virtual_s, "wall_s": report.wall_s, "jfi": report.jfi})
    for name, group in zip(summary.group_names(report), report.groups, strict=True):
        rows += of_part(to_builtins(group), group=name)
    for name, link in report.links.items():
        rows += of_part(to_builtins(link), link=name)
    return rows


def derived(run: folder.Run) -> list[Row]:
    delay_ns = one_way.p95_ns(run.config, run.summary)
    return [] if delay_ns is None else of_part({"one_way_p95_ns": delay_ns})


def points(frame: pl.DataFrame, by: str) -> pl.DataFrame:
    """Returns a row per run for figures: name, the value of `by`; delay_ns, goodput_bps."""
    numbers = {"goodput_bps": "goodput_bps", "one_way_p95_ns": "delay_ns"}
    found = frame.filter(pl.col("metric").is_in(list(numbers)) & pl.col("link").is_null())
    each = [pl.col("value").filter(pl.col("metric") == metric) for metric in numbers]
    known = zip(each, numbers.values(), strict=True)
    sums = [pl.when(one.len() > 0).then(one.sum()).alias(name) for one, name in known]
    found = found.filter(spread.replicas(found, [*settings(frame), "group", "metric"]))
    named = pl.col(by).fill_null("").alias("name")
    return found.group_by("run", named, maintain_order=True).agg(sums)


def samples(frame: pl.DataFrame, by: str, metric: str) -> pl.DataFrame:
    """Returns a row per value of a metric: name, the value of `by`, and value."""
    found = of_metric(frame, metric)
    found = found.filter(spread.replicas(found, [*settings(frame), "group", "link"]))
    return found.select(name=pl.col(by).fill_null(""), value="value")


def of_metric(frame: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Returns the rows of a metric; UserError: there are none."""
    found = frame.filter(pl.col("metric") == metric)
    if found.height == 0:
        raise UserError(f"no run has a number '{metric}'")
    return found


def settings(frame: pl.DataFrame) -> list[str]:
    """Returns the columns of open_many's frame that are keys of configs."""
    return [name for name in frame.columns if name not in FIXED]


def key(frame: pl.DataFrame, by: str | None) -> str:
    """Returns a column by its name or the end of it [cc]; UserError: none is, or several are."""
    columns = [c for c in frame.columns if c not in FIXED or c in ("run", "group", "link")]
    wanted = by or "cc"
    fit = [c for c in columns if c == wanted] or [c for c in columns if c.endswith(f".{wanted}")]
    if len(fit) != 1:
        problem = f"'{wanted}' may be {', '.join(fit)}" if fit else f"no run differs in '{wanted}'"
        raise UserError(f"--by: {problem}: choose one of {', '.join(fit or columns)}")
    return fit[0]


def leaves(part: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yields the members of an object and of those in it: transfers.completion_p99_ns."""
    for name, value in part.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def of_part(part: Mapping[str, object], **names: str) -> list[Row]:
    """Returns a row for each number of a part of a summary."""
    return [
        {**names, "metric": name, "value": value, "unit": units.unit_of(name)}
        for name, value in leaves(part)
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]


def table(
    runs: pl.DataFrame | str | Path | Sequence[str | Path],
    *,
    by: Sequence[str] = (),
    metrics: Sequence[str] = ("goodput_bps", "rtt_mean_ns"),
) -> pl.DataFrame:
    """Returns means over runs: a row per group or link and value of `by`, four columns per metric.

    by are columns of open_many's frame beside group and link [all keys that differ]. METRIC is the
    mean, METRIC_low and METRIC_high are the ends of its 95 % interval (analysis/spread.py), null of
    a single run and of equal ones; METRIC_n is how many runs it is of. Runs in which
    nothing random was drawn are one run for all seeds.
    """
    frame = runs if isinstance(runs, pl.DataFrame) else open_many(runs)
    keys = list(by) or settings(frame)
    missing = [name for name in keys if name not in frame.columns]
    if missing:
        raise UserError(f"the runs do not differ in {missing[0]}; there is {', '.join(keys)}")
    named = [*keys, *(name for name in ("group", "link") if name not in keys)]
    parts = [means(frame, named, one) for one in metrics]
    made = parts[0]
    for part in parts[1:]:
        made = made.join(part, on=named, how="full", coalesce=True, nulls_equal=True)
    return made


def means(frame: pl.DataFrame, keys: list[str], metric: str) -> pl.DataFrame:
    """Returns the mean of a metric, the ends of its interval and its number of runs, by keys."""
    known = of_metric(frame, metric)
    found = spread.means(known, keys, [*settings(frame), "group", "link"]).fill_nan(None)
    ends = {"mean": metric, "low": f"{metric}_low", "high": f"{metric}_high", "n": f"{metric}_n"}
    return found.rename(ends)


def printed(made: pl.DataFrame, metrics: Sequence[str]) -> Table:
    """Returns a table for people: each mean with its interval and its number of runs."""
    parts = ("", "_low", "_high", "_n")
    numbers = {f"{one}{part}" for one in metrics for part in parts}
    keys = [name for name in made.columns if name not in numbers and made[name].count()]
    shown = []
    for row in made.iter_rows(named=True):
        cells = [units.NONE if row[key] is None else str(row[key]) for key in keys]
        for one in metrics:
            mean, low, high, n = (row[f"{one}{part}"] for part in parts)
            say = partial(units.shown, unit=units.unit_of(one))
            known = [math.nan if end is None else end for end in (mean, low, high)]
            cells += [spread.stated(say, *known), units.count(n)]
        shown.append(cells)
    names = (name for one in metrics for name in (units.label_of(one), "n"))
    return Table([*keys, *names], shown, left=len(keys))


def latex(made: Table) -> str:
    """Returns a table for LaTeX with booktabs."""
    signs: dict[str, str | int | None] = {"±": r"$\pm$", "−": "$-$", "µ": r"$\mu$"}
    signs |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    signs |= {sign: rf"\{sign}" for sign in "_%&#{}$"}
    head, *body = [" & ".join(cell.translate(str.maketrans(signs)) for cell in line) + r" \\"
                   for line in (made.columns, *made.rows)]  # fmt: skip
    kinds = "".join("l" if left else "r" for left in made.at_left)
    return "\n".join([rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", head, r"\midrule", *body,
                      r"\bottomrule", r"\end{tabular}"])  # fmt: skip
