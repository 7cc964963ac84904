# Two commands: `make run` and `make test`. Each does all of its own set-up, in .venv; tests have more in .venvs.
PYTHON ?= python3
# Where `make run` serves.
ADDRESS ?= 127.0.0.1:8800
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip
# pip's version check would ask the network for nothing we need. Errors are shown, warnings are not.
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 2

# What tests look at from outside: an environment made as specs/001 says, one with the official SDK and servers that other
# people wrote, the official TypeScript client, and the official conformance suite.
SPECS := .venvs/specs
SDK := .venvs/sdk
BENCH := .venvs/bench
OLD_SERVERS := .venvs/servers_v1
WHEELS := .cache/wheels
SITE := 'import sysconfig; print(sysconfig.get_path("purelib"))'
NODE_MODULES := $(patsubst %,tests/%/node_modules,real/browser real/clients real/conformance real/servers cli/reports)
COMPAT := compat/pyproject.toml compat/assay_mcp_compat.pth $(wildcard compat/src/mcp/*.py)
# Empty where there is no npm, or no Node.js that the client runs on. The suite brings its own.
NPM := $(shell node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null && command -v npm)
PACKAGES := $(if $(NPM),$(NODE_MODULES:=/.done))

# Seconds for each target of `make fuzz`, and frames in all of `make soak`.
TIME ?= 180
FRAMES ?= 1000000
# How many times the examples of each law `make soak` takes.
LAWS ?= 20
FUZZ := .venvs/fuzz
DIST := .venvs/dist
COVERAGE := .cache/coverage

.PHONY: run test unit real coverage lint types conformance set-up installed bench fuzz soak mutants docs dist clean
.DEFAULT_GOAL := run

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Assay needs Python 3.11 or newer: make PYTHON=python3.11")'
	@echo 'Creating $(VENV) …'
	@$(PYTHON) -m venv $(VENV)

# The stamps make a second run quick: they are older than pyproject.toml only when something has to be installed.
$(VENV)/.run: pyproject.toml | $(BIN)/python
	@echo 'Installing into $(VENV) (about half a minute, once) …'
	@$(PIP) install -e '.[http]'
	@touch $@

# A new pip takes two thirds of the time of the one that Python 3.11 brings, and needs no second environment to build in
# where that has what builds.
$(VENV)/.test: pyproject.toml | $(BIN)/python
	@echo 'Installing what the tests need into $(VENV) and .venvs (a few minutes, once) …'
	@$(PIP) install --upgrade pip hatchling editables && $(PIP) install --no-build-isolation -e '.[test]'
	@touch $@ $(VENV)/.run

# Apart from the rest: the peers bring the official SDK along.
$(BENCH)/.done: pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv --without-pip $(BENCH)
	$(PIP) --python $(BENCH)/bin/python install -e '.[bench]'
	$(PYTHON) -m venv --without-pip $(BENCH)-mcp-proxy
	$(PIP) --python $(BENCH)-mcp-proxy/bin/python install mcp-proxy
	@touch $@

# Above the first environment, where all that `.[test]` asks for has just been installed: pip finds it, and installs ours.
$(SPECS)/.done: requirements.txt $(VENV)/.test $(COMPAT)
	$(PYTHON) -m venv --clear --without-pip $(SPECS)
	$(BIN)/python -c $(SITE) > "$$($(SPECS)/bin/python -c $(SITE))/first.pth"
	. $(SPECS)/bin/activate && python -m pip install -r requirements.txt && python -m pip install -e .
	@touch $@

# Little of what is installed there is ever imported. For these options of pip, 0 means yes: do not compile, build without
# an environment for that.
$(VENV)/.test $(SPECS)/.done $(SDK)/.done $(OLD_SERVERS)/.done: export PIP_NO_COMPILE := 0
$(SPECS)/.done $(WHEELS)/.done: export PIP_NO_BUILD_ISOLATION := 0

$(WHEELS)/.done: $(VENV)/.test $(COMPAT)
	@rm -rf $(WHEELS)
	$(PIP) wheel --no-deps --wheel-dir $(WHEELS) . ./compat
	@touch $@

# The SDK comes first: a test shows that what is installed after it leaves it alone. A major version of the servers is a
# year; the last server still needs the old SDK.
$(SDK)/.done: $(WHEELS)/.done
	$(PYTHON) -m venv --clear --without-pip $(SDK)
	$(PIP) --python $(SDK)/bin/python install 'mcp>=2' 'mcp-server-git>=2026,<2027' 'mcp-server-time>=2026,<2027'
	$(PIP) --python $(SDK)/bin/python install $(WHEELS)/*.whl
	@touch $@

# After the first environment, whose pip is replaced meanwhile.
$(OLD_SERVERS)/.done: | $(VENV)/.test
	$(PYTHON) -m venv --without-pip $(OLD_SERVERS)
	$(PIP) --python $(OLD_SERVERS)/bin/python install 'mcp-server-sqlite>=2025,<2026' 'mcp<2'
	@touch $@

$(PACKAGES): %/node_modules/.done: %/package.json
	npm --prefix $* install --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

run: $(VENV)/.run  ## a broken server without and with the guard, then the guard over HTTP, to be tried
	@$(BIN)/assay demo $(ADDRESS)

# Side by side: one waits for the network while another unpacks.
set-up:
	@$(MAKE) --no-print-directory -j4 installed

# Where conftest.py has the processes of tests keep what Python has compiled.
test lint types: export PYTHONPYCACHEPREFIX := $(CURDIR)/.cache/python
unexport PYTHONDONTWRITEBYTECODE

installed: $(VENV)/.test $(SPECS)/.done $(SDK)/.done $(OLD_SERVERS)/.done $(PACKAGES)
	@:

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy
	$(BIN)/mypy compat

# In process: nothing is started or reached. Then, never beside them, what only real processes, connections and browsers
# can show; the tests of a file share their servers.
UNIT := $(BIN)/python -m pytest --durations 10 --ignore tests/real -n auto
REAL := $(BIN)/python -m pytest --durations 10 tests/real -n 2 --dist loadfile

unit: $(VENV)/.test  ## the tests that run in process
	$(UNIT)

real: installed  ## the tests with real processes, connections and browsers
	$(REAL)

# How long a part takes is written down, and shown at the end.
TIMES := .cache/times
timed = @start=$$(date +%s); $(2) && printf '%-8s %4d s\n' $(1) $$(( $$(date +%s) - start )) >> $(TIMES)

test:  ## lint, types and all tests
	@mkdir -p .cache && rm -f $(TIMES)
	$(call timed,set-up,$(MAKE) --no-print-directory set-up)
	$(call timed,lint,$(MAKE) --no-print-directory lint)
	$(call timed,types,$(MAKE) --no-print-directory types)
	$(call timed,unit,$(MAKE) --no-print-directory unit)
	$(call timed,real,$(MAKE) --no-print-directory real)
	@cat $(TIMES)

# What the tests in process reach of the packages that judge and decide; each has a floor.
coverage: $(VENV)/.test  ## what the tests in process reach of guard, judge and schema
	@rm -rf $(COVERAGE) && mkdir -p $(COVERAGE)
	@$(PIP) install 'coverage>=7.10'
	$(BIN)/coverage run -m pytest --ignore tests/real -n auto
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage json -q -o $(COVERAGE)/report.json
	@$(BIN)/python tests/kit/coverage_floor.py $(COVERAGE)/report.json

# Its scripts use the helpers of the tests.
conformance fuzz soak mutants: export PYTHONPATH := tests
conformance: $(VENV)/.test $(SDK)/.done $(PACKAGES)  ## what the official conformance suite finds: at the asset server, and through the guard
	@$(BIN)/python tests/real/conformance/suite.py
	@printf '%s\n' '' 'Servers on two official SDKs, directly and through the guard, scenarios that pass:' ''
	@$(BIN)/python tests/real/conformance/transparency.py
	@printf '%s\n' '' 'The official TypeScript client signs in, directly and through the guard:' ''
	@$(BIN)/python tests/real/conformance/signing_in.py

bench: $(BENCH)/.done  ## measure against peers and against our targets; PARTS="guard http" runs some parts
	$(BENCH)/bin/python bench/run.py $(PARTS)

# Atheris has no build for some systems and Python versions; without it the seeds are changed at random.
$(FUZZ)/.done: pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv --without-pip $(FUZZ)
	$(PIP) --python $(FUZZ)/bin/python install -e '.[test]'
	-$(PIP) --python $(FUZZ)/bin/python install --only-binary :all: atheris 2>/dev/null
	@touch $@

fuzz: $(FUZZ)/.done  ## fuzz the parsers and the judge, TIME seconds for each target; what fails goes to .cache/fuzz
	$(FUZZ)/bin/python tests/fuzz/fuzzing.py $(TIME)

# Laws take LAWS times as many examples there as `make test` does; `tests/stress` runs nowhere else.
soak: installed  ## FRAMES changed messages against every guard, LAWS times the examples of every law, and stress
	$(BIN)/python tests/fuzz/soak.py $(FRAMES)
	LAWS=$(LAWS) $(BIN)/python -m pytest -n 2 --timeout 0 -o faulthandler_timeout=0 -o 'norecursedirs=node_modules .*' \
	  $(shell grep -rlE 'kit.laws|"LAWS"' tests --include='test_*.py') tests/stress

mutants: $(VENV)/.test  ## put one fault at a time into the source, and see which the tests find; ONLY="guard 17" tries some
	$(BIN)/python tests/mutants/mutants.py $(ONLY)

docs: $(VENV)/.run  ## regenerate the generated pages
	$(BIN)/python docs/generated_pages.py

$(DIST)/.done: pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv --without-pip $(DIST)
	$(PIP) --python $(DIST)/bin/python install build 'hatchling>=1.25' twine
	@touch $@

# The wheel is built from the sdist, so that both are whole or neither is made.
dist: $(DIST)/.done  ## wheel and sdist in dist/, installed and tried in new environments
	rm -rf dist
	$(DIST)/bin/python -m build --no-isolation .
	$(DIST)/bin/python -m twine check --strict dist/*
	$(BIN)/python tests/real/platforms/try_wheel.py dist/*.whl

clean:
	rm -rf $(VENV) .venvs .cache $(NODE_MODULES) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
