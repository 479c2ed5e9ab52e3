# The first run of any target creates .venv and installs into it; later runs start immediately.
#   make demo    the robot on a course of eleven keyframes: table, picture and replay in demo/
#   make test    everything that CI checks
#   make check   lint, formatting, types, import contracts, documentation
#   make docs    the documentation as a web site, in site/
#   make bench   the speed figures
#   make fuzz    10,000 damaged files for all readers, and 200 kills of processes that write files

PYTHON ?= python3
EXTRAS := train,studio,video,deploy,gym,bench,docs,dev
BIN := .venv/bin
PIP := $(BIN)/python -m pip
READY := .venv/.ready

.PHONY: demo test check pytest docs bench fuzz
.DEFAULT_GOAL := help

.PHONY: help
help:
	@sed -n 's/^#   //p' Makefile

demo: $(READY)
	@mkdir -p demo
	$(BIN)/keystride play examples/course.yaml --policy go2 --plot demo/course.png --html demo/course.html --json demo/course.json > demo/course.txt
	@cat demo/course.txt

test: check pytest

pytest: $(READY)
	$(BIN)/python -m pytest

check: docs
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo

docs: $(READY)
	@if $(BIN)/python -c 'import mkdocs' 2>/dev/null; then NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet; \
	else echo "documentation not built: its tools need Python 3.11"; fi

fuzz: $(READY)
	$(BIN)/python tests/fuzz/fuzz.py --files 10000
	$(BIN)/python tests/fuzz/crashes.py --kills 200

bench: $(READY)
	$(BIN)/keystride benchmark physics

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { \
	  echo "keystride needs Python 3.10 to 3.13, but $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo not there)."; \
	  echo "Install one of them and name it, for example: make test PYTHON=python3.12"; \
	  exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) install -q -c constraints.txt pip hatchling editables
	$(PIP) install -q --no-build-isolation -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $(READY)
