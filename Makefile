# On a fresh machine with Python 3.11 or newer and make, `make run` and `make test` are all it takes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
ARCHIVE := $(VENV)/spark.jsa
BROWSER := $(VENV)/.browser
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help run test check kernels collected docs bench clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

run: $(INSTALLED) $(ARCHIVE) ## set up, then the city buses with all six lifetimes, from mobility to report
	$(BIN)/beforehand run city-bus

# loadgroup: all tests that share a Spark session run in one worker. It often waits for Java, others
# for clocks and links: with four of them, two cores have something to do meanwhile. The tests come in
# the order that tests/conftest.py gives them, the longest first.
# Bytecode is kept, whatever the environment says: else some hundreds of processes compile the same files.
# `collected` makes that of the tests once: else each worker compiles all of them.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(INSTALLED) $(BROWSER) $(ARCHIVE) ## set up, then every check and every test
	@$(MAKE) --no-print-directory -j 2 check kernels collected
	$(BIN)/pytest -q -n 4 --dist loadgroup --no-loadscope-reorder

check: $(INSTALLED) ## format, lint, types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

kernels: $(INSTALLED)
	$(BIN)/python tests/compile_kernels.py

collected: $(INSTALLED)
	@$(BIN)/pytest --collect-only -qq >$(VENV)/collected.txt || { cat $(VENV)/collected.txt; exit 1; }

# Tests look at the report in a real browser. Without one they are skipped, and the summary says so.
$(BROWSER): $(INSTALLED)
	@if ! $(BIN)/python -c 'import sys; from beforehand.doctor import find_chromium; sys.exit(not find_chromium())' \
		&& [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "no Chromium here: installing one for the browser tests"; \
		{ apt-get update && apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1 \
			|| echo "no Chromium can be had: the browser tests will be skipped"; \
	fi
	@touch $@

# Every JVM of this environment maps Spark's classes from here: half of the work of a start is done once.
$(ARCHIVE): $(INSTALLED)
	@echo "preparing Java"
	@PYTHONPATH=. $(BIN)/python tests/archive_java.py

docs: $(INSTALLED) ## set up, then the documentation site, in build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "open build/site/index.html"

bench: $(INSTALLED) ## every benchmark, one JSON line each
	@for script in benchmarks/bench_*.py; do $(BIN)/python "$$script" || exit 1; done

clean: ## remove caches and build products; the environment stays
	rm -rf build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

# The package says itself whether the machine has a Java that Spark can use.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	@test -x $(BIN)/pip || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing packages into $(VENV)"
	@$(PIP_INSTALL) -e '.[dev]'
	@$(BIN)/python -c 'import sys; from beforehand.spark.java import system_java; sys.exit(system_java() is None)' \
		|| { echo "no Java 17 or newer here: installing one into $(VENV)"; $(PIP_INSTALL) -e '.[java]'; }
	@touch $@
