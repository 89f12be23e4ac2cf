"""Settings shared by all tests."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# Deterministic and without a clock: the same examples on every machine and in every run.
settings.register_profile(
    "ci",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
# Fresh random examples, many of them: PLIANT_HYPOTHESIS_PROFILE=thorough make test
settings.register_profile(
    "thorough",
    deadline=None,
    max_examples=1000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("PLIANT_HYPOTHESIS_PROFILE", "ci"))

# Background jobs of a shell ignore Ctrl-C, and so do their children; tests send it to those: handled here, it arrives.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """`-n auto`: one process more than cores, since some tests wait for servers, browsers and clocks."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True, scope="session")
def _elsewhere(tmp_path_factory):
    """Run in an empty folder: nothing may depend on where the tests are started, and MuJoCo leaves a log there."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
    yield
    os.chdir(before)
