# The usual targets. Needs Python 3.11 or newer, pip and make; everything else is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
DEMO := build/demo

.DEFAULT_GOAL := help
.PHONY: help setup demo check docs test test-gpu bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv and install mfupipe with its development tools

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "mfupipe needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) -V 2>&1); try: make PYTHON=python3.12" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: setup ## the report of a real H200 capture that ships with mfupipe; no GPU, no nsys
	@rm -rf $(DEMO)
	$(BIN)/mfupipe demo -o $(DEMO)

check: setup ## lint, types, SQL, and that the generated documentation is fresh
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/sqlfluff lint --disable-progress-bar queries
	$(BIN)/python -m tools.docs --check
	$(BIN)/python -m tools.readme --check

docs: setup ## write the generated documentation again
	$(BIN)/python -m tools.docs
	$(BIN)/python -m tools.readme

test: setup ## every test that needs no torch, no nsys and no GPU (the others: .ci/run, make test-gpu)
	$(BIN)/python -m pytest -m 'not torch and not nsys and not gpu'

test-gpu: setup ## the tests on this machine's GPU; needs nsys and torch
	$(BIN)/python -m pytest -m gpu

bench: setup ## time and peak memory of ingest and build on a 685 MB export, with two cores
	$(BIN)/python -m tools.bench

clean: ## remove .venv and what was built
	rm -rf .venv build dist
