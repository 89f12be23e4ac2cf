"""Benchmarks of pliant beside other engines and beside the papers' tables and figures; `pliant bench` runs them.

`harness` times, keeps and reports; `systems` holds the mechanisms and loads that engines are compared on; `peers` has
one module per engine. Every other module or folder is a suite, with the functions that measure it,

    PARTS = (speed, accuracy)  # (quick: bool, progress: Progress) -> Table, or several

Tables of a part are kept when a later part fails or is interrupted. `quick` measures fewer and smaller cases: all quick
suites together take about three minutes.
"""

__all__ = ["SUITES"]

SUITES = ("start", "statics", "reduced", "blended", "constrained", "quasistatic", "contact", "loops")
