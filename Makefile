# Everything a newcomer needs: python3 (3.11 or later) with venv, and make. Each target makes .venv itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export HF_HUB_OFFLINE := 1

.PHONY: setup demo test lint types bench clean
.DEFAULT_GOAL := setup

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: setup  ## The main job on the sample corpus: in, again with nothing written, one cited answer.
	$(BIN)/python -m data.demo

test: setup  ## Every test but the optional groups, which say why they were skipped.
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

bench: setup  ## Speed and memory, as ratios within one run.
	$(BIN)/python -m tests.benchmarks  # ONLY=name runs one

clean:
	rm -rf $(VENV) .grounded build *.egg-info
