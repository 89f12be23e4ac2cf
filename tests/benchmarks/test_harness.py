"""Harness of the benchmarks with made-up numbers: timing, record, report, the page, the guard, the command."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib import util
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

import pliant
from pliant.cli import bench as command
from pliant.cli.app import app
from pliant_benchmarks import SUITES
from pliant_benchmarks.harness import machine, report
from pliant_benchmarks.harness.results import Figure, Record, Row, Series, SuiteRecord, Table
from pliant_benchmarks.harness.run import run
from pliant_benchmarks.harness.timing import Timing, compare, time_in_turns


def load(name):
    """Module of the top-level folder benchmarks/, which is no package."""
    path = Path(__file__).parents[2] / "benchmarks" / f"{name}.py"
    spec = util.spec_from_file_location(f"benchmarks_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


guard, page = load("guard"), load("page")


def rows(**ratios):
    return [
        Row(case, ours=2.0, peer=2.0 * ratio, peer_name="MuJoCo Euler", ratio=ratio)
        for case, ratio in ratios.items()
    ]


def table(*given, key="speed", **more):
    return Table("start", key, "A step", "µs", list(given), **more)


def record(*tables):
    suites = {"start": SuiteRecord(list(tables), 1.5, 0.1, 0.2, 0, "complete")}
    return Record(machine.describe(), True, suites)


def figure(key="reduced-scaling"):
    series = [
        Series("ours", [1, 10, 100], [1, 2, 30]),
        Series("theirs", [1, 10], [3, 90], ours=False),
    ]
    return Figure(key, "A step", "links", "µs", series, log_x=True, log_y=True)


# --- measuring


def test_contenders_take_turns_and_medians_and_quartiles_are_told():
    order, now = [], [0.0]
    durations = {"a": iter([9.0, 1.0, 2.0, 3.0, 4.0, 100.0]), "b": iter([9.0, 7.0, 7.0, 7.0, 7.0, 7.0])}

    def call(name):
        order.append(name)
        now[0] += next(durations[name])

    found = time_in_turns(
        {name: lambda name=name: call(name) for name in durations}, rounds=5, clock=lambda: now[0]
    )
    assert order == ["a", "b"] * 6  # the first round warms up and is not counted
    assert found["a"] == (3.0, 1.0, 1.0)  # quartiles 2 and 4; one slow spell moves neither
    assert found["b"] == (7.0, 0.0, 7.0)
    assert found["a"].scaled(10.0) == (30.0, 10.0, 10.0)


def test_a_row_of_two_timings():
    row = compare("helix", Timing(2.0, 0.1, 1.9), Timing(50.0, 4.0, 45.0), target="20x")
    assert (row.ours, row.peer, row.ours_spread, row.peer_spread, row.ratio) == (2.0, 50.0, 0.1, 4.0, 25.0)
    alone = compare("helix", Timing(2.0, 0.1, 1.9))
    assert (alone.ours, alone.peer, alone.ratio) == (2.0, None, None)


def test_what_numba_compiles_is_noticed():
    from numba import njit

    @njit
    def double(x):
        return 2 * x

    with machine.compilations() as compiled:
        assert compiled() == []
        double(3)
        assert len(compiled()) == 1
        double(4)
        assert len(compiled()) == 1


def test_the_machine_is_described():
    found = machine.describe()
    assert found["cores"] >= 1
    assert found["processor"]
    assert found["versions"]["numpy"] == np.__version__
    assert found["versions"]["pliant"] == pliant.__version__


# --- running and keeping


def suite(monkeypatch, name, *parts):
    monkeypatch.setitem(sys.modules, f"pliant_benchmarks.{name}", SimpleNamespace(PARTS=parts))


def test_a_part_that_fails_leaves_the_others_alone(monkeypatch):
    def broken(quick, progress):
        raise RuntimeError("the peers compute\nsomething else")

    suite(
        monkeypatch,
        "start",
        lambda q, p: [table(key="a")],
        broken,
        lambda q, p: [table(key="b")],
    )
    suite(monkeypatch, "statics", lambda quick, progress: table(key="c" if quick else "d"))
    found = run(["start", "nothing", "statics"], True, lambda words: None)
    assert found.suites["start"].state == "failed: RuntimeError: the peers compute something else"
    assert (
        found.suites["nothing"].state
        == "failed: ModuleNotFoundError: No module named 'pliant_benchmarks.nothing'"
    )
    assert found.suites["statics"].state == "complete"
    assert [t.key for t in found.tables] == ["a", "b", "c"]


def test_an_interruption_keeps_what_is_there(monkeypatch):
    def interrupted(quick, progress):
        raise KeyboardInterrupt

    suite(monkeypatch, "start", lambda quick, progress: [table(key="a")], interrupted)
    kept = []
    with pytest.raises(KeyboardInterrupt):
        run(["start"], True, lambda words: None, lambda r: kept.append([t.key for t in r.tables]))
    assert kept == [["a"], ["a"]]


def test_a_record_comes_back_from_its_file(tmp_path):
    row = rows(helix=3.0)[0]
    row.values = {"error": np.float64(0.5), "worst": float("nan"), "models": np.int64(4)}
    given = record(table(row, figures=[figure()], missing=["DART: not installed"]))
    given.save(tmp_path / "r.json")
    text = (tmp_path / "r.json").read_text(encoding="utf-8")
    json.loads(text, parse_constant=pytest.fail)
    found = Record.load(tmp_path / "r.json")
    assert found.tables[0].rows[0].values == {"error": 0.5, "worst": None, "models": 4}
    assert found.tables[0].figures == [figure()]
    assert found.tables[0].missing == ["DART: not installed"]
    assert found.machine == given.machine
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 99}', '{"version": 1, "machine": 1, "suites": 2}']
)
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "r.json").write_text(text, encoding="utf-8")
    with pytest.raises(pliant.errors.FormatError, match=r"r\.json"):
        Record.load(tmp_path / "r.json")


def test_an_unwritable_place_is_said(tmp_path):
    with pytest.raises(pliant.errors.FormatError, match="cannot be written"):
        record().save(tmp_path / "nowhere" / "r.json")


# --- saying


def test_numbers_read_well():
    assert [report.format_number(v) for v in (None, 0.0, 1234.4, 12.345, 0.0123, 1.23e-4)] == [
        "-",
        "0",
        "1,234",
        "12.3",
        "0.0123",
        "1.2e-04",
    ]


def test_columns_without_content_are_left_out_and_instability_is_shown():
    good, bad = rows(helix=3.0, ladder=5.0)
    headings = [heading for heading, _ in report.columns(table(good, bad))]
    assert headings == ["case", "pliant (µs)", "peer (µs)", "peer", "ratio"]
    assert report.is_stable(table(good))
    bad.stable, bad.peer, bad.ratio = "MuJoCo: no integrator holds", None, None
    found = dict(report.columns(table(good, bad)))
    assert found["stable"] == ["yes", "MuJoCo: no integrator holds"]
    assert found["peer (µs)"] == ["6", "-"]
    assert found["ratio"] == ["3x", "-"]


def test_a_suite_is_printed_with_how_it_went():
    console = Console(width=160, record=True, file=StringIO())
    given = record(table(*rows(helix=3.0), missing=["DART: not installed"]))
    given.suites["start"].compiled = 7
    report.print_machine(given, console)
    report.print_suite("start", given.suites["start"], console)
    said = console.export_text()
    assert "missing: DART: not installed" in said
    assert "start: complete, 2 s, 7 functions compiled, load 0.1 before and 0.2 after" in said
    assert report.STABLE in said
    assert f"numpy {np.__version__}" in said


def test_figures_are_small_pictures_of_few_colours(tmp_path):
    given = record(table(figures=[figure()]))
    [path] = report.save_figures(given, tmp_path)
    assert path.name == "reduced-scaling.png"
    with Image.open(path) as image:
        assert image.mode == "P"
    assert path.stat().st_size < 20_000


def test_the_page_lists_where_a_peer_wins_first(tmp_path):
    won, lost, failed = rows(helix=3.0, arm=0.5, ladder=1.0)
    failed.ours, failed.ratio, failed.note = None, None, "not within 1 %"
    given = record(table(won, lost, failed, figures=[figure(), figure("other")]))
    (tmp_path / "pictures").mkdir()
    for name in ("bench-old.png", "helix.png"):
        (tmp_path / "pictures" / name).write_bytes(b"")
    page.write_page(given, tmp_path / "benchmarks.md", tmp_path / "pictures")
    text = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    losses = text[text.index("## Where a peer wins") : text.index("## Start")]
    assert "- arm: pliant 2, MuJoCo Euler 1, ratio 0.5" in losses
    assert "- ladder: pliant none (not within 1 %), MuJoCo Euler 2" in losses
    assert "helix" not in losses
    assert "| helix | 2 | 6 | MuJoCo Euler | 3x |" in text
    assert "](pictures/bench-reduced-scaling.png)" in text
    assert sorted(p.name for p in (tmp_path / "pictures").iterdir()) == [
        "bench-reduced-scaling.png",
        "helix.png",
    ]


def test_newer_suites_replace_older_ones_and_the_others_say_where_they_are_from():
    old, new = record(table(*rows(arm=0.5))), record(table(*rows(arm=5.0)))
    [name] = new.suites
    old.suites["loops"] = replace(old.suites[name], tables=[])
    old.machine, new.machine = ({**old.machine, "date": date} for date in ("2026-01-01", "2026-02-02"))
    both = old.with_newer(new)
    assert list(both.suites) == [name, "loops"]
    assert both.suites[name] is new.suites[name]
    assert both.machine["date"] == "2026-02-02"
    assert "loops (2026-01-01, " in report.suite_line("loops", both.suites["loops"])
    assert "(" not in report.suite_line(name, both.suites[name])
    again = both.with_newer(new)
    assert again.suites["loops"].machine == both.suites["loops"].machine


# --- guarding


def kept(**ratios):
    return guard.Kept(2.0, {"speed": dict(ratios)})


def test_the_guard_lets_noise_pass_and_stops_what_is_twice_as_slow():
    given = record(table(*rows(a=21.0, b=19.0, c=90.0, d=5.0)))
    found = guard.check(given, kept(a=40.0, b=40.0, c=40.0, d=None))
    assert [v.fine for v in found] == [True, False, True, True]
    assert str(found[1]) == "FAIL speed, b: 19x (kept 40x)"


def test_the_guard_fails_what_is_missing_or_was_not_stable():
    given = record(table(*rows(a=40.0)))
    given.tables[0].rows[0].stable = "pliant diverged"
    found = guard.check(given, kept(a=40.0, gone=1.0))
    assert [(v.fine, v.found) for v in found] == [(False, None), (False, None)]


@pytest.mark.parametrize(("second", "fine"), [(30.0, True), (15.0, False)])
def test_the_guard_measures_twice_before_it_fails(second, fine):
    asked = []

    def repeat(suites):
        asked.append(suites)
        return record(table(*rows(a=second)))

    first = record(table(*rows(a=10.0)))
    assert [v.fine for v in guard.guard(first, kept(a=40.0), repeat)] == [fine]
    assert asked == [["start"]]


def test_the_guard_does_not_repeat_what_is_fine():
    given = record(table(*rows(a=40.0)))
    assert [v.fine for v in guard.guard(given, kept(a=40.0), pytest.fail)] == [True]


def test_the_guard_keeps_new_ratios(tmp_path, monkeypatch):
    monkeypatch.setattr(guard.Kept.load.__func__, "__defaults__", (tmp_path / "guard.json",))
    monkeypatch.setattr(guard.Kept.save, "__defaults__", (tmp_path / "guard.json",))
    kept(a=40.0, b=None, gone=3.0).save()
    record(table(*rows(a=51.234, b=2.0, c=9.0))).save(tmp_path / "r.json")
    assert guard.main([str(tmp_path / "r.json"), "--update"]) == 0
    assert guard.Kept.load().rows == {"speed": {"a": 51.2, "b": 2.0, "gone": 3.0}}


def test_the_kept_ratios_can_be_read():
    found = guard.Kept.load()
    assert found.factor >= 1.5
    assert all(v is None or v > 0 for rows in found.rows.values() for v in rows.values())


# --- the command


def test_the_command_prints_and_keeps(monkeypatch, tmp_path):
    suite(
        monkeypatch,
        "start",
        lambda q, p: [table(*rows(helix=3.0), figures=[figure()])],
    )
    result = CliRunner().invoke(
        app,
        [
            "bench",
            "-s",
            "start",
            "--quick",
            "--json",
            str(tmp_path / "r.json"),
            "--plot",
            str(tmp_path / "p" / "q"),
        ],
    )
    assert result.exit_code == 0, result.output
    assert "MuJoCo Euler" in result.stdout
    assert "compile cache warm" in result.stdout
    found = Record.load(tmp_path / "r.json")
    assert found.quick
    assert [t.key for t in found.tables] == ["speed"]
    assert (tmp_path / "p" / "q" / "reduced-scaling.png").is_file()


def test_the_command_says_what_failed(monkeypatch):
    suite(monkeypatch, "start", lambda quick, progress: 1 / 0)
    result = CliRunner().invoke(app, ["bench", "-s", "start"])
    assert result.exit_code == 1
    assert result.stderr == "pliant: error: start failed: ZeroDivisionError: division by zero\n"


def test_the_command_keeps_what_is_there_when_interrupted(monkeypatch, tmp_path):
    def interrupted(quick, progress):
        raise KeyboardInterrupt

    suite(monkeypatch, "start", lambda q, p: [table(*rows(helix=3.0))], interrupted)
    result = CliRunner().invoke(app, ["bench", "-s", "start", "--json", str(tmp_path / "r.json")])
    assert result.exit_code == 130
    assert "helix" in result.stdout
    assert result.stderr.splitlines()[-1] == "pliant: interrupted"
    found = Record.load(tmp_path / "r.json")
    assert found.suites["start"].state == "interrupted"
    assert len(found.tables) == 1


def test_the_command_refuses_before_it_measures(monkeypatch, tmp_path):
    def said(*arguments, code=1):
        result = CliRunner().invoke(app, ["bench", *arguments])
        assert result.exit_code == code
        assert result.stdout == ""
        assert len(result.stderr.splitlines()) == 1
        return result.stderr

    assert "there is no folder" in said("--json", str(tmp_path / "nowhere" / "r.json"))
    assert "ends in .json" in said("--json", str(tmp_path / "r.txt"))
    (tmp_path / "file").write_text("")
    assert "cannot be made" in said("--plot", str(tmp_path / "file"))
    assert "'--suite'" in said("--suite", "nothing", code=2)
    monkeypatch.setitem(sys.modules, "pliant_benchmarks", None)  # is not found
    assert "not part of this installation" in said("--suite", "start")


def test_suites_of_the_command_are_those_that_run():
    assert tuple(s.value for s in command.Suite if s is not command.Suite.all) == SUITES
