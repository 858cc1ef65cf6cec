# Two commands are all the set-up: `make profile` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Modules are compiled when they are first imported: most never are.
PIP := --quiet --disable-pip-version-check --no-compile

.PHONY: profile test test-fast lint types contracts wheel wheel-environment docs docs-tables schemas results matrix check clean

profile: $(INSTALLED)
	$(BIN)/overhead-lens profile add1 --compile

# Hundreds of processes import the same modules: they are compiled once.
unexport PYTHONDONTWRITEBYTECODE
# Programs that tests start are the environment's, ninja among them.
export PATH := $(CURDIR)/$(BIN):$(PATH)

# Measuring processes often wait, so there are more of them than cores. What another load would change has the machine for itself.
PROCESSES := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST := $(BIN)/python -m pytest --numprocesses $(PROCESSES) --durations 25

test: $(INSTALLED)
	$(PYTEST) -m "not quiet"; beside=$$?; $(BIN)/python -m pytest -m quiet $$(grep -rl --include="*.py" mark.quiet tests) && exit $$beside

# Without the tests that start measuring processes.
test-fast: $(INSTALLED)
	$(PYTEST) -m "not measures"

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/python -m scripts.documentation.prose

types: $(INSTALLED)
	$(BIN)/mypy

contracts: $(INSTALLED)
	$(BIN)/lint-imports

# A wheel in an environment that has nothing else says the same as the checkout.
wheel: $(INSTALLED) wheel-environment
	for asked in "scenarios" "report traces/reference/eager" "analyze traces/reference/training.json.gz"; do \
	  echo "overhead-lens $$asked"; \
	  $(BIN)/overhead-lens $$asked --json >build/wheel/checkout.json || exit 1; \
	  build/wheel/environment/bin/overhead-lens $$asked --json >build/wheel/wheel.json || exit 1; \
	  cmp build/wheel/checkout.json build/wheel/wheel.json || exit 1; \
	done
	rm -rf build/wheel/environment

# It needs nothing of the checkout's environment, so `make --jobs 2` fills both at once.
wheel-environment:
	rm -rf build/wheel
	$(PYTHON) -m venv build/wheel/environment
	build/wheel/environment/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	build/wheel/environment/bin/python -m pip install $(PIP) --constraint constraints.txt build/wheel/*.whl

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Updates tables, figures and outputs in the pages.
docs-tables: $(INSTALLED)
	$(BIN)/python docs/hooks.py

schemas: $(INSTALLED)
	for name in $$($(BIN)/overhead-lens schema | cut -d' ' -f1); do \
	  $(BIN)/overhead-lens schema $$name > docs/reference/$$name.json || exit 1; \
	done

# How many commits each measured figure of the documentation is behind.
results: $(INSTALLED)
	$(BIN)/python -m scripts.results

# Every Python and torch that is supported, each in an environment of its own below build/matrix: hours, and tens of gigabytes.
matrix: $(INSTALLED)
	$(BIN)/python -m scripts.validation.matrix

check: lint types contracts wheel test docs

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP) --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
