# Two commands do all the set-up they need: `make demo` and `make test`. Tests of the page run in Chromium, which
# `make browser` installs where it may; without it they are skipped, and say so.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
BENCH ?= .venv-bench

.PHONY: demo test lint types format browser web bench clean

demo: $(VENV)/installed
	$(BIN)/hubless demo --report demo.html

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

browser:
	command -v chromium chromium-browser google-chrome > /dev/null || { \
		if [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -qq -y chromium; \
		else sudo apt-get update -qq && sudo apt-get install -qq -y chromium; fi; }

# The page's script and style, from web/ into the package; needs Node.js, which users and tests do not.
web:
	cd web && npm ci --silent --no-audit --no-fund && npm run --silent build

bench: $(BENCH)/installed
	$(BENCH)/bin/python -m benchmarks all
	$(BENCH)/bin/python -m benchmarks page

clean:
	rm -rf $(VENV) $(BENCH)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@ $(VENV)/installed

# An environment of its own, since metric-learn does not run on today's scikit-learn. pylmnn's metadata asks for
# what it does not need; without it, its place in the results says that it is not there.
$(BENCH)/installed: pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[bench,plot]' \
		'scikit-learn==1.7.*' metric-learn torch==2.13.0 setuptools six
	-$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation pylmnn
	touch $@
