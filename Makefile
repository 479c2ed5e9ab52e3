# The first use of any target makes .venv and installs into it; later uses start at once.
#   make demo    the robot on a course of ten keyframes: table, picture and replay in demo/
#   make test    everything that CI checks
#   make check   lint, formatting, types, import contracts
#   make bench   the speed figures

PYTHON ?= python3
EXTRAS := train,studio,video,deploy,dev
BIN := .venv/bin
PIP := $(BIN)/python -m pip
READY := .venv/.ready

.PHONY: demo test check bench
.DEFAULT_GOAL := help

.PHONY: help
help:
	@sed -n 's/^#   //p' Makefile

demo: $(READY)
	@mkdir -p demo
	$(BIN)/keystride play examples/course.yaml --policy go2-pose --plot demo/course.png --html demo/course.html --json demo/course.json > demo/course.txt
	@cat demo/course.txt

test: check
	$(BIN)/python -m pytest

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo

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
