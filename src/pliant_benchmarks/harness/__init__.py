"""Harness of the benchmarks: timing, results, the report on screen and in pictures, the machine, the run of suites."""
