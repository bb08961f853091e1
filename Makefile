# make run [FILE=talk.mp3]    say what a recording says, with whisper-tiny.en
# make test [ARGS="-k mel"]   run the tests
# make docs                   build the site, to the folder site
#
# Each makes its own environment in .venv, and does everything; a second run finds it there. Python 3.11, 3.12
# or 3.13 is all that is needed beforehand: PYTHON=/path/to/python names one that is not found by itself.

NAME ?= whisper-tiny.en
FILE ?= assets/audio/jfk.wav
ARGS ?= -n auto --maxprocesses=4
VENV ?= .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

SUPPORTED := import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3 python; do \
	$$name -c '$(SUPPORTED)' 2>/dev/null && echo $$name && break; done)

PIP := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt
PACKAGE := pyproject.toml constraints.txt hatch_build.py nest/_command.py

.PHONY: help run test lint lint-code lint-format lint-types docs clean

help:
	@sed -n 's/^# //p' Makefile

run: $(VENV)/.run
	@$(BIN)/nest run "$(NAME)" "$(FILE)"

## One thread a worker: the tests' matrices are small, and threads of several workers would only wait for each other.
test: $(VENV)/.test
	NEST_TEST_REFERENCE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(ARGS)

lint: lint-code lint-format lint-types

lint-code: $(VENV)/.test
	$(BIN)/ruff check .

lint-format: $(VENV)/.test
	$(BIN)/ruff format --check .

lint-types: $(VENV)/.test
	$(BIN)/mypy --strict -p nest

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site

$(VENV)/.python:
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 was not found: make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.python $(PACKAGE)
	$(PIP) --editable ".[onnx,audio]"
	@touch $@

$(VENV)/.test: $(VENV)/.python $(PACKAGE)
	$(PIP) --editable ".[test,lint]"
	@touch $@ $(VENV)/.run

$(VENV)/.docs: $(VENV)/.python $(PACKAGE)
	$(PIP) --editable ".[docs]"
	@touch $@
