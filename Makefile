# Two commands: `make run` and `make test`. Each does all of its own set-up, in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# pip's version check would ask the network for nothing we need.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: run test bench docs clean
.DEFAULT_GOAL := run

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Assay needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

# The stamps make a second run quick: they are older than pyproject.toml only when something has to be installed.
$(VENV)/.run: pyproject.toml | $(BIN)/python
	$(PIP) install -e .
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[test]'
	@touch $@ $(VENV)/.run

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[bench]'
	@touch $@ $(VENV)/.run

run: $(VENV)/.run  ## judge a bundled sample conversation and show the verdicts
	@printf '%s\n' 'A recorded conversation between a client and a server, judged message by message:' ''
	@$(BIN)/assay check --messages examples/conversation.jsonl || test $$? -eq 1
	@printf '%s\n' 'Try next:' \
	  '  $(BIN)/assay explain contract/input      what a rule means, and where it comes from' \
	  '  $(BIN)/assay rules                       everything that is enforced' \
	  '  $(BIN)/assay check YOUR-RECORDING.jsonl  one {"dir": "c2s" or "s2c", "msg": "…"} a line'

test: $(VENV)/.test  ## lint, types and all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

bench: $(VENV)/.bench  ## the cost of a verdict beside its peers
	$(BIN)/python bench/run.py

docs: $(VENV)/.run  ## regenerate the generated pages
	$(BIN)/python -m assay.cli.pages docs

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
