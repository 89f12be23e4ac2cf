"""docs/benchmarks.md from the JSON of a run: rows in which a peer wins, all tables, some of the figures.

pliant bench --json benchmarks/results.json
python benchmarks/page.py benchmarks/results.json docs/benchmarks.md [newer.json ...]

Suites of newer results replace those in the first file, which is then written anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from pliant_benchmarks.harness.report import (
    STABLE,
    columns,
    format_number,
    is_stable,
    machine_lines,
    save_figure,
    suite_line,
)
from pliant_benchmarks.harness.results import Figure, Record, Row, Table

__all__ = ["is_lost", "make_page", "write_page"]

PREFIX = "bench-"  # of this page's pictures; others in the folder are left alone
PICTURES = (  # keys of the figures on the page; `pliant bench --plot` draws all
    "reduced-scaling",
    "pareto-helix-slow-large",
    "pareto-helix-sudden-small",
    "pareto-gripper-sudden-large",
    "tvcg-fig-7-y",
    "statics-scaling",
    "chain-speed",
    "gs17-figure-8",
    "rl05-figure-5-time",
    "scaling",
    "loops-equilibrium",
    "loops-step",
)
TITLES = {
    "start": "Start and memory",
    "statics": "Statics",
    "reduced": "Reduced models",
    "blended": "Blended models",
    "constrained": "Constrained dynamics",
    "quasistatic": "Quasi-statics",
    "contact": "Contact",
    "loops": "Closed loops",
}
WHY = {  # by table: why a peer wins in some rows
    "equilibrium": "MuJoCo has to be told the answer to know when to stop, and its damping is chosen for the case.",
    "equilibrium-exudyn": "pliant also says whether the equilibrium is stable, and needs no choice of coordinates, "
    "load steps or tolerance.",
    "tvcg-table-2": "A blend solves six equations per end effector at every step, thirty for the arm with its five "
    "fingertips, and the whole arm has twenty links, which MuJoCo moves at once. Blend few end effectors, or long "
    "mechanisms.",
    "largest-step": "TVCG's steps of backward Euler damp: a sudden push that rings needs steps of a fraction of a "
    "millisecond to stay within 1 %, and the model is linear, so a large push, or a closed loop, is beyond it at any "
    "step. The constrained engine iterates every step to keep energy and joints together at any "
    "mass ratio, which a smooth, slow push of a well-behaved chain does not need; MuJoCo's discrete integrator takes "
    "larger steps there.",
    "free-swing": "TVCG's backward Euler damps vibrations that are fast beside its step until nothing is left; the "
    "constrained engine damps steps that its iterations do not settle in.",
    "memory": "The assembly tree of the quasi-static engine holds matrices at every node, so that a step need not "
    "visit all joints.",
    "gs17-figure-4": "Low-rank updates of a dense inverse: with hinges and universal joints the geometric stiffness "
    "couples bodies, ranks are as large as the system, and inverting it anew is less work. Both are GS17's methods; "
    "pliant's own engine inverts nothing.",
    "gs17-figure-6": "As above: the robot's hinges couple its bodies.",
    "gs17-figure-7": "As above: a joint of a flexible cable has six springs, so that every update is of full rank.",
    "rl05-table-1": "A thousand forces all over a molecule concern most joints: pliant notices and computes them "
    "all by the articulated-body algorithm, the peer, which takes as long.",
    "rl05-figure-1": "Thirty links are few: handling a tree of them costs more than computing them all.",
    "rl05-figure-5": "At the finest tolerances all joints count; pliant then computes them as the peer does.",
    "scaling": "Below some hundred joints there is nothing to leave out.",
    "grasp": "Blended and whole hands are stepped from Python, an actor at a time: some 0.2 to 0.4 ms a step, most of "
    "it calls. Reduced ones are compiled as a whole.",
    "hexapod": "Whole hexapods are stepped from Python. Reduced ones, by themselves, walk in steps of 50 µs at 1/30 s "
    "and of 115 µs at 1/12 s, of which MuJoCo's collider on the height field takes 21 and 38, sweeps over contacts 6 "
    "and 43, the call from Python 12: what comes in fast is looked for from afar, so that large steps ask for more "
    "triangles. Standing depends on how long it is left alone: in turns of 0.8 s, two steps of half a second on cold "
    "caches, the ratio is 3.6 instead of 14; at steps of at most 1/10 s it is 3.8 to 4.5.",
    "alone": "The same code on other memory: noise.",
    "loops-equilibrium": "A solve has a fixed cost in Python of some 2 ms where there are loops, and pliant factors "
    "anew in every iteration, where Exudyn keeps a factorisation of planar bodies for several. pliant's bodies are "
    "spatial, and it says whether the equilibrium is stable.",
    "loops-equilibrium-small": "As above.",
    "loops-motion": "Small linkages: MuJoCo's loops are soft and cost it little, at larger errors; pliant iterates "
    "until loops are closed to rounding. Long ladders turn the comparison around.",
    "loops-second": "As above.",
    "loops-rest": "As for a short helix: a solve has a fixed cost in Python, and MuJoCo has to be told the answer to "
    "know when to stop.",
}
HEAD = """# Benchmarks

<!-- Made by benchmarks/page.py from the results of `pliant bench`; do not edit. -->

pliant beside other engines and beside the figures of the [papers](papers.md). Contenders take turns in one run, medians
are compared, ± half the distance between the quartiles; each peer is at its best setting. A run that diverged has no
time. *Ratio* is how many times better pliant is: below 1 the peer wins, and [those rows](#where-a-peer-wins) come
first. *Asked for* is what pliant was built to reach.

```bash
make peers                                               # other engines, optional: one that is missing is named
pliant bench --json benchmarks/results.json              # everything
pliant bench --quick --suite reduced                     # some of it, in a minute
python benchmarks/page.py benchmarks/results.json docs/benchmarks.md
```
"""


def make_page(record: Record, folder: str) -> str:
    """Page in Markdown.

    Args:
        record: a run.
        folder: of the pictures, relative to the page.
    """
    return (
        "\n".join([HEAD, *_machine(record), "", *_losses(record), "", *_suites(record, folder)]).rstrip()
        + "\n"
    )


def is_lost(row: Row) -> bool:
    """Whether the peer wins: by the ratio, or because pliant has no number where the peer has one."""
    return (row.ratio is not None and row.ratio < 1) or (row.ours is None and row.peer is not None)


def _machine(record: Record) -> Iterator[str]:
    yield "## Machine"
    yield ""
    for line in machine_lines(record):
        yield f"- {line}"
    for name, suite in record.suites.items():
        yield f"- {suite_line(name, suite)}"


def _losses(record: Record) -> Iterator[str]:
    yield "## Where a peer wins"
    yield ""
    tables = [(table, [row for row in table.rows if is_lost(row)]) for table in record.tables]
    tables = [(table, rows) for table, rows in tables if rows]
    if not tables:
        yield "Nowhere in this run."
    for table, rows in tables:
        yield f"**{table.title}** ({table.unit}). {WHY.get(table.key, '')}".rstrip()
        yield ""
        for row in rows:
            ours = "none" if row.ours is None else format_number(row.ours)
            ratio = "" if row.ratio is None else f", ratio {format_number(row.ratio)}"
            note = f" ({row.note})" if row.ours is None and row.note else ""
            yield f"- {row.case}: pliant {ours}{note}, {row.peer_name or 'peer'} {format_number(row.peer)}{ratio}"
        yield ""


def _suites(record: Record, folder: str) -> Iterator[str]:
    for name, suite in record.suites.items():
        yield f"## {TITLES.get(name, name.capitalize())}"
        yield ""
        for table in suite.tables:
            yield from _table(table, folder)


def _table(table: Table, folder: str) -> Iterator[str]:
    yield f"### {table.title}"
    yield ""
    source = f"{table.source}. " if table.source else ""
    words = f"{source}{table.settings} {STABLE if is_stable(table) else ''}".strip()
    if words:
        yield words
        yield ""
    shown = columns(table)
    if shown:
        yield "| " + " | ".join(_cell(heading) for heading, _ in shown) + " |"
        yield "|" + " --- |" * len(shown)
        for cells in zip(*(cells for _, cells in shown), strict=True):
            yield "| " + " | ".join(_cell(cell) for cell in cells) + " |"
        yield ""
    for peer in table.missing:
        yield f"Missing: {peer}."
        yield ""
    for figure in shown_figures([table]):
        yield f"![{figure.title}]({folder}/{PREFIX}{figure.key}.png)"
        yield ""


def shown_figures(tables: list[Table]) -> list[Figure]:
    """Figures of tables that are on the page."""
    return [figure for table in tables for figure in table.figures if figure.key in PICTURES]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def write_page(record: Record, path: Path, pictures: Path) -> list[Path]:
    """Write the page and its pictures, and delete pictures of an earlier page that are no longer in it.

    Returns:
        paths of the written files.
    """
    new = [
        save_figure(figure, pictures / f"{PREFIX}{figure.key}.png") for figure in shown_figures(record.tables)
    ]
    for old in pictures.glob(f"{PREFIX}*.png"):
        if old not in new:
            old.unlink()
    path.write_text(make_page(record, pictures.name), encoding="utf-8")
    return [path, *new]


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    source, target, *newer = map(Path, sys.argv[1:])
    results = Record.load(source)
    for path in newer:
        results = results.with_newer(Record.load(path))
    if newer:
        results.save(source)
    for written in write_page(results, target, target.parent / "pictures"):
        print(f"wrote {written}")
