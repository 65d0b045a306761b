# Two commands on a fresh machine with Python 3.11+ and make: `make demo` and `make test`. Each does its own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests start this package as a program some hundred times: it is compiled once, also where the environment says that nothing is kept.
ALONE := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
PYTEST := $(ALONE) $(BIN)/python -m pytest
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-slow test-all lint coverage mutate bench audit audit-ci curator-test postgres-test spark-test browser-test crash-test soak experiments experiments-test docs docs-test package-test clean help

help:
	@echo "make demo   train a private forest on data that comes with the package, write a report"
	@echo "make test   every kind of check, in four minutes"
	@echo "make test-all  the same and what takes longer: many draws, every combination, large tables (make test-slow: only that)"
	@echo "make experiments-test  tests of the experiments, a package of their own in experiments/"
	@echo "make coverage  which lines and branches of the trusted rooms their own tests reach: fails below 97 %"
	@echo "make lint   ruff, mypy, import-linter"
	@echo "make mutate small mistakes planted in the trusted modules, one by one: does a test fail? (hours; goes on where it was stopped)"
	@echo "make audit-ci  attack every verb and every private estimator (minutes)"
	@echo "make audit  the same and more, and its report in docs/ (an hour)"
	@echo "make curator-test  a real curator: 64 clients at once, and 20 kills"
	@echo "make postgres-test, make spark-test  tests that need a PostgreSQL server (started here), or Spark and Java 17"
	@echo "make browser-test  the curator's pages in Chromium (HEDGEROW_CHROMIUM names it, where it is not found)"
	@echo "make docs   the documentation site, in site/ (open site/index.html); make docs-test  the same, and whether it is whole"
	@echo "make package-test  the wheel and the source archive, installed elsewhere with each Python that is found, and with the lowest versions"
	@echo "make crash-test  a curator that is killed, or loses its disk or its database, at each point of a request (a quarter of an hour)"
	@echo "make soak   the ledger and the curator: 200 kills and 10 races of each, on SQLite and on PostgreSQL (an hour)"
	@echo "make bench  speed and memory against peers (long)"
	@echo "make experiments  the papers' experiments and the peers, and their report in docs/ (an hour or two; goes on where it was stopped)"

demo: $(VENV)/core.done
	$(BIN)/hedgerow demo -o hedgerow-demo.html

test: $(VENV)/test.done
	$(PYTEST) -n auto --dist worksteal -q

test-slow: $(VENV)/test.done
	$(PYTEST) -n auto --dist worksteal -q -m "slow and not audit and not postgres and not spark and not curator and not browser and not docs"

test-all: test test-slow

experiments-test: $(VENV)/test.done $(VENV)/experiments.done
	$(PYTEST) -n auto --dist worksteal -q experiments/tests

lint: $(VENV)/test.done $(VENV)/experiments.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Compiled loops run as machine code, which no tracer sees: a second run interprets those over rows. Loops over random bytes would take
# hours, and are left out in pyproject.toml.
TRUSTED := tests/mechanisms tests/queries tests/accounting tests/private_table tests/contracts/test_meters.py tests/whole/test_examples.py
INTERPRETED := tests/queries/test_kernels.py tests/queries/test_boosting.py tests/private_table/test_best_scale.py::test_the_score_is_the_brier_score \
  tests/queries/test_gradients.py::test_almost_no_noise_gives_the_sums_and_the_event_says_what_was_charged
TRAVELLING := tests/remote/test_remote_table.py tests/audit/test_guarantee.py  # JSON forms, and the tables of the audit

coverage: $(VENV)/test.done
	$(PYTEST) -n auto -q --cov --cov-report= --cov-fail-under=0 -m "not statistical and not slow and not postgres" $(TRUSTED)
	$(PYTEST) -n auto -q --cov --cov-append --cov-report= --cov-fail-under=0 -m "not postgres and not audit" $(TRAVELLING)
	NUMBA_DISABLE_JIT=1 $(PYTEST) -n auto -q --cov --cov-append --cov-report=term $(INTERPRETED)

mutate: $(VENV)/test.done
	$(BIN)/python scripts/mutate.py run
	$(BIN)/python scripts/mutate.py report --write

audit-ci: $(VENV)/test.done $(VENV)/experiments.done
	$(PYTEST) -n auto --dist worksteal -q -m audit experiments/tests

curator-test: $(VENV)/test.done
	$(PYTEST) -q -m "curator and not postgres" --ignore tests/curator/http/test_crash_matrix.py tests/curator

postgres-test: $(VENV)/postgres.done
	$(ALONE) $(BIN)/python scripts/postgres.py run $(BIN)/python -m pytest -n auto -q -m postgres --ignore tests/curator/http/test_crash_matrix.py tests/postgres tests/curator tests/remote

spark-test: $(VENV)/spark.done
	$(PYTEST) -q -m spark tests/spark

browser-test: $(VENV)/browser.done
	$(PYTEST) -q -m browser tests/browser

# Reads nothing from a network; the tutorials are run, which takes a minute or two.
docs: $(VENV)/docs.done
	$(ALONE) NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-test: docs $(VENV)/test.done
	$(PYTEST) -q -m docs tests/site

package-test: $(VENV)/package.done
	$(BIN)/python scripts/package_test.py $(TRIED)

crash-test: $(VENV)/postgres.done
	$(ALONE) HEDGEROW_RESTART=1 $(BIN)/python scripts/postgres.py run --fsync $(BIN)/python -m pytest -q -s -m "curator" tests/curator/http/test_crash_matrix.py

soak: $(VENV)/postgres.done
	$(ALONE) HEDGEROW_SOAK=10 $(BIN)/python scripts/postgres.py run --fsync $(BIN)/python -m pytest -q -m "postgres or not postgres" tests/curator/ledger/test_ledger_crashes.py tests/curator/ledger/test_answers.py tests/curator/http/test_service_race.py tests/curator/http/test_service_kills.py

audit: $(VENV)/experiments.done
	$(BIN)/hedgerow experiments run audit --folder docs
	$(BIN)/hedgerow experiments report --folder docs

bench: $(VENV)/test.done $(VENV)/experiments.done
	$(BIN)/python -m benchmarks

experiments: $(VENV)/experiments.done
	$(BIN)/hedgerow experiments peers
	$(BIN)/hedgerow experiments run --all --folder docs
	$(BIN)/hedgerow experiments report --folder docs

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "hedgerow needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) has no ensurepip/venv; install your system's package for it (for example python3-venv)."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/core.done: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e .
	@touch $@

$(VENV)/test.done: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[test]'
	@touch $@ $(VENV)/core.done

$(VENV)/experiments.done: pyproject.toml experiments/pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e . -e ./experiments
	@touch $@ $(VENV)/core.done

$(VENV)/postgres.done: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[test,postgresql]'
	@touch $@ $(VENV)/test.done $(VENV)/core.done

$(VENV)/spark.done: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[test,spark]'
	@touch $@ $(VENV)/test.done $(VENV)/core.done

$(VENV)/docs.done: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[docs]'
	@touch $@ $(VENV)/core.done

$(VENV)/package.done: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[package]'
	@touch $@

$(VENV)/browser.done: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[test,browser]'
	@touch $@ $(VENV)/test.done $(VENV)/core.done

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .mutants site hedgerow-demo.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
