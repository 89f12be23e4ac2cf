# `make` or `make help` lists the targets. `make setup` needs only Python 3.11+ and make.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
UV     := $(VENV)/bin/uv
STAMP  := $(VENV)/.setup-done
UV_STAMP := $(VENV)/.uv-done
DOCS_STAMP := $(VENV)/.docs-done
# `make lock LOCK_FLAGS=--upgrade` moves every pin to the newest version.
LOCK_FLAGS ?=
# Without a network it gives up soon.
APT_FLAGS ?= --quiet -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20
PYTEST_FLAGS ?=
# Each worker runs a part of the folders, so that it loads their kernels and makes their fixtures alone; who is done helps.
PYTEST := OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n auto --dist worksteal
QUICK := $(addprefix tests/,test_structure.py test_papers.py spatial mechanism statics engines/test_contract.py)
# Kernels are compiled into .cache, once, on all cores, whenever a source is newer than that.
WARM := .cache/warm

# Trust the system's certificates, as pip does (needed behind some company proxies).
UV_SYSTEM_CERTS ?= 1
export UV_SYSTEM_CERTS
# No network call to ask for newer versions of a pinned tool.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup test quick slow coverage portable pythons wheel wheel-check demo docs bench bench-quick peers browser lint types format lock clean distclean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(STAMP)  ## Create .venv with all pinned dependencies and pliant itself (editable)

test: $(WARM)  ## Run the tests, on all cores
	$(PYTEST) $(PYTEST_FLAGS)

quick: $(WARM)  ## Check style and types, run the tests of kernels, contracts and structure: for the loop of editing
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyright & checked=$$!; \
	$(PYTEST) -q $(QUICK) $(PYTEST_FLAGS); tested=$$?; \
	wait $$checked && exit $$tested

slow: $(WARM)  ## Run the slow tests
	$(PYTEST) -m slow $(PYTEST_FLAGS)

coverage: $(WARM)  ## Run the tests and list the lines and branches that they miss, kernels left out
	$(PYTEST) -q --cov --cov-report=term-missing:skip-covered $(PYTEST_FLAGS)

portable: $(STAMP)  ## Run the numerical tests as other processors would
	$(PY) tools/portable.py

pythons: $(STAMP)  ## Run the fast tests on the other supported Pythons of this machine, in environments of their own
	$(PY) tools/pythons.py

wheel: $(STAMP)  ## Build dist/: the sdist, and a wheel with compiled kernels, which all tests have run with
	$(PY) tools/build_wheel.py

wheel-check: $(STAMP)  ## Install the wheel of `make wheel` in a clean environment and time first results
	$(PY) tools/check_wheel.py

demo: $(STAMP)  ## Take the tour: a table, pictures and 3-D recordings in out/demo
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/pliant demo --out out/demo

docs: $(STAMP) $(DOCS_STAMP)  ## Build the documentation site, docs/_build/html; a warning is an error
	$(PY) -m sphinx --quiet --fail-on-warning --keep-going --nitpicky -d docs/_build/doctrees docs docs/_build/html

bench: $(STAMP)  ## Run the benchmarks, src/pliant_benchmarks
	@mkdir -p out
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/pliant bench --json out/bench.json

bench-quick: $(STAMP)  ## A quick run of them, and whether something has become slower
	@mkdir -p out
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/pliant bench --quick --json out/bench-quick.json
	OPENBLAS_NUM_THREADS=1 $(PY) benchmarks/guard.py out/bench-quick.json

peers: $(STAMP)  ## Install the other engines that the benchmarks compare with
	$(UV) pip install --python $(PY) --require-hashes --no-deps -r requirements/peers.txt

browser:  ## Install Chromium, in which the tests look at the live view (Debian and its kin)
	@command -v chromium >/dev/null || { \
	  command -v apt-get >/dev/null || { echo "No apt-get here: install Chromium as 'chromium' by hand." >&2; exit 1; }; \
	  as=$$([ "$$(id -u)" = 0 ] || echo 'sudo -n'); \
	  $$as apt-get $(APT_FLAGS) update && $$as apt-get $(APT_FLAGS) install -y --no-install-recommends chromium; }

lint: $(STAMP)  ## Check style and formatting
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(STAMP)  ## Check types
	$(PY) -m pyright

format: $(STAMP)  ## Fix formatting and what style can be fixed
	$(PY) -m ruff check --fix-only --quiet .
	$(PY) -m ruff format .

COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links --no-config $(LOCK_FLAGS)

lock: $(UV_STAMP)  ## Renew the pins in requirements/ after a change of dependencies
	$(COMPILE) requirements/uv.in --output-file requirements/uv.txt >/dev/null
	$(COMPILE) pyproject.toml --group dev --output-file requirements/dev.txt >/dev/null
	$(COMPILE) --group docs --constraints requirements/dev.txt --output-file requirements/docs.txt >/dev/null
	$(COMPILE) requirements/models.in --no-deps --output-file requirements/models.txt >/dev/null
	$(COMPILE) requirements/peers.in --no-deps --output-file requirements/peers.txt >/dev/null
	@! grep -nE '://|file:|^-' requirements/*.txt || { echo 'A lock file holds an address.' >&2; exit 1; }

clean:  ## Remove caches, build output and pictures
	rm -rf .cache .hypothesis .pytest_cache .ruff_cache build dist out docs/_build
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean  ## Remove .venv as well
	rm -rf $(VENV)

$(UV_STAMP): requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "pliant needs Python 3.11 or newer, but '$(PYTHON)' is: $$($(PYTHON) --version 2>&1 || true)" >&2; \
	  echo "Name another one: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(PY) -m pip install --quiet --require-hashes --no-deps --only-binary :all: -r requirements/uv.txt
	@touch $@

$(STAMP): $(UV_STAMP) pyproject.toml requirements/dev.txt requirements/models.txt
	$(UV) pip install --compile-bytecode --python $(PY) --require-hashes -r requirements/dev.txt
	$(UV) pip install --python $(PY) --require-hashes --no-deps -r requirements/models.txt
	$(UV) pip install --python $(PY) --no-deps --no-build-isolation --editable .
	@$(PY) -m compileall -q src || true
	@touch $@

$(WARM): $(STAMP) $(shell find src/pliant -name '*.py')
	$(VENV)/bin/pliant warm-up
	@touch $@

$(DOCS_STAMP): $(STAMP) requirements/docs.txt
	$(UV) pip install --python $(PY) --require-hashes -r requirements/docs.txt
	@touch $@
