# Two commands do all the set-up they need: `make demo` and `make test`. The fast suite needs under 1 GB of
# packages and 4 minutes on 2 cores; `make test-all` adds torch, every store and a browser.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
BENCH ?= .venv-bench
# what is imported is compiled then, once, and kept for all processes of the tests
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
unexport PYTHONDONTWRITEBYTECODE
# as many workers as cores, with one BLAS thread each (tests/conftest.py)
PYTEST = $(BIN)/python -m pytest -n auto --dist worksteal
FULL = torch or services or browser or faults or slow

.PHONY: demo test test-more test-all lint types audit format package package-all oldest newest
.PHONY: release browser web docs bench clean

demo: $(VENV)/installed
	$(BIN)/hubless demo --report demo.html

test: $(VENV)/installed-test
	$(PYTEST) -m "not ($(FULL))"

# the tests that `make test` leaves out
test-more: $(VENV)/installed-test-all
	$(PYTEST) -m "$(FULL)"

# and with every step of the switch, of which the others take one of several
test-all: $(VENV)/installed-test-all
	HUBLESS_EVERY_STEP=1 $(PYTEST)

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs src web benchmarks
	$(BIN)/python docs/words.py

types: $(VENV)/installed-dev
	$(BIN)/mypy

# what is known to be dangerous in the source, and in the packages (where a service on the network answers)
audit: $(VENV)/installed-dev
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src
	$(BIN)/python .ci/audit.py

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# the wheel, used in an empty environment; with -all, each extra is installed, too: several GB, half an hour
package: $(VENV)/installed-dev
	$(BIN)/python .ci/package.py

package-all: $(VENV)/installed-dev
	$(BIN)/python .ci/package.py --all

# the fast tests with the oldest packages that pyproject.toml allows, and with the newest, before they are released
OLD_TESTS = array-api-strict hypothesis pandas pillow pytest pytest-xdist pyyaml
# warnings that old packages cause among each other, and scikit-learn's checks, which need a newer one
OLD_WARNINGS = -W default::DeprecationWarning -W default::PendingDeprecationWarning -W default::FutureWarning
NEWER = tests/classifiers/test_scikit_learn.py tests/movers/test_daily_use.py tests/baselines/test_learners.py

oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet -c .ci/oldest.txt -e '.[dask,faiss,files,plot]' $(OLD_TESTS)
	.venv-oldest/bin/python -m pytest -n auto -m "not ($(FULL))" $(OLD_WARNINGS) $(NEWER:%=--ignore=%)

newest:
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --upgrade --pre -e '.[test]'
	.venv-newest/bin/python -m pytest -n auto -m "not ($(FULL))"

# checks all that a release needs and prints the commands that make it; publishes nothing
release: $(VENV)/installed-dev
	$(BIN)/python .ci/release.py

browser:
	for packages in chromium firefox-esr; do command -v $$packages > /dev/null || missing="$$missing $$packages"; done; \
	[ -z "$$missing" ] || { [ "$$(id -u)" = 0 ] || sudo=sudo; \
		$$sudo apt-get update -qq && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y $$missing; }

# The page's script and style, from web/ into the package; needs Node.js, which users and tests do not.
web:
	cd web && npm ci --silent --no-audit --no-fund && npm run --silent build

# the documentation site, in docs/_site; a warning is an error
docs: $(VENV)/installed-docs
	MPLBACKEND=agg $(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs docs/_site

bench: $(BENCH)/installed
	$(BENCH)/bin/python -m benchmarks all
	$(BENCH)/bin/python -m benchmarks page

clean:
	rm -rf $(VENV) $(BENCH) .venv-all .venv-dev .venv-oldest .venv-newest

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(PIP) -e .
	touch $@

$(VENV)/installed-%: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[$*]'
	touch $@ $(VENV)/installed

# A separate environment, since metric-learn does not run on today's scikit-learn. pylmnn is installed without
# the packages that its metadata requires, which it does not need; if that fails, the results say that it is
# missing.
$(BENCH)/installed: pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[bench,plot]' \
		'scikit-learn==1.7.*' metric-learn torch==2.13.0 setuptools six
	-$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation pylmnn
	touch $@
