# One command each. `make` alone lists them; `make demo` and `make test` need nothing set up before.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup console web demo demo-serve demo-tune test lint fix check docs up sim bench soak attack

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: $(READY) ## make .venv, install Pliant and its tools into it, and build its web console
	@$(BIN)/python web/bundle.py || echo "go on without the console: all but the browser's tests works; make console tries again"

console: $(READY) ## build the web console
	@$(BIN)/python web/bundle.py

web: $(READY) ## serve the console with hot reload, for a server that runs here (or PLIANT_URL)
	@$(BIN)/python web/bundle.py --serve

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Pliant needs Python 3.11 or newer as $(PYTHON); name another one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv || \
		{ rm -rf .venv; echo "$(PYTHON) cannot make virtual environments; on Debian and Ubuntu: sudo apt-get install python3-venv"; exit 1; }
	HATCH_BUILD_NO_HOOKS=true $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup ## play the scenario: two trainings share 8 slots (at most 3 minutes)
	@$(BIN)/python -m examples.demo.play $(ARGS)

demo-serve: setup ## play another: a trained model takes slots of two trainings while it is asked (at most 3 minutes)
	@$(BIN)/python -m examples.serve_demo.play $(ARGS)

demo-tune: setup ## play a third: a search for the best parameters takes the slots that a training leaves (at most 3 minutes)
	@$(BIN)/python -m examples.tune_demo.play $(ARGS)

test: setup ## run the tests, the slow ones after the others; ARGS="tests/policy -k stable" for some
	@$(BIN)/python -m tests.layers $(ARGS)

lint: setup ## style, types and import contracts; changes nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python web/bundle.py --check

fix: setup ## mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/python web/bundle.py --fix

check: lint docs test ## all that must pass before a change goes in

docs: setup ## check that every link in the documents leads somewhere
	$(BIN)/python -m pytest -q tests/test_docs.py

up: setup ## start a server here; its slots are the GPUs, else the CPUs
	$(BIN)/pliant up $(ARGS)

sim: setup ## play hours of trainings in seconds, under each policy
	@$(BIN)/python -m pliant.sim.play $(ARGS)

bench: setup ## run every benchmark; writes bench/results/
	$(BIN)/python -m bench $(ARGS)

soak: setup ## random faults and resizes for 30 minutes; ARGS="--minutes 3 --seed 7" for less, "--serve" with endpoints, "--hosts 3" over machines
	@$(BIN)/python -m tests.soak $(ARGS)

attack: setup ## play every attack on a real server, as root and as an ordinary user; ARGS="--only 'data plane'" for some
	@$(BIN)/python -m tests.attack $(ARGS)
