# Two commands are all the set-up: `make profile` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: profile test test-fast lint types contracts check clean

profile: $(INSTALLED)
	$(BIN)/overhead-lens profile add1 --compile

# Processes that measure take turns, all else runs side by side.
test: test-fast
	$(BIN)/python -m pytest -m measures

# Without the tests that start measuring processes.
test-fast: $(INSTALLED)
	$(BIN)/python -m pytest -m "not measures" --numprocesses auto --dist loadfile

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

types: $(INSTALLED)
	$(BIN)/mypy

contracts: $(INSTALLED)
	$(BIN)/lint-imports

check: test lint types contracts

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
