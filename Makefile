# Everything runs from .venv, which is made on first use from requirements.lock.
# PYTHON=/path/to/python3 sets up with that one; otherwise tools/find-python finds one.
PYTHON ?=
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help demo test test-all slow tour tour-page guardrails test-agents test-projects soak soak-tests crash check format bench docs lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/ready ## Play a whole run with the rehearsal agent: no model, no account, no key
	$(BIN)/planforge demo

# One more at a time than there are usually cores: tests also wait, for disks and for processes.
JOBS ?= 3

test: .venv/ready ## Run the tests, within six minutes on two cores
	@$(BIN)/python -m compileall -q src
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not dear" --hypothesis-profile quick

test-all: .venv/ready ## Run all tests, also the expensive ones; TEST_ALL=--nothing-skipped fails if one could not run here
	@$(BIN)/python -m compileall -q src
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(TEST_ALL)

slow: .venv/ready ## Run all tests, and list those that compute most (SLOW=tests/kernel for some of them)
	@$(BIN)/python -m compileall -q src
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -p tools.costs $(SLOW)

test-agents: .venv/ready ## Drive the real claude, codex, gemini, … against a scripted model server (AGENTS="--help" for more)
	$(BIN)/python tools/real_agents.py $(AGENTS)

tour: .venv/ready ## Take the tour in three real projects, and compare what is seen with the pages in docs/
	$(BIN)/python tools/take_tour.py

tour-page: .venv/ready ## Take the tour and write its pages
	$(BIN)/python tools/take_tour.py --write

test-projects: .venv/ready ## Gather evidence on real projects from the package indexes, and compare with their runners
	$(BIN)/python tools/real_projects.py

soak: .venv/ready ## Ten thousand histories with crashes, none of which may lose a tree (SOAK="--help" for more)
	PYTHONPATH=tests $(BIN)/python -m soak --sequences 10000 --jobs 2 --done build/soak $(SOAK)

soak-tests: .venv/ready ## Run all tests, with many more tries of each property
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --hypothesis-profile soak

crash: .venv/ready ## Kill whole runs at every boundary and resume them: all must end the same (CRASH="--help" for more)
	PYTHONPATH=tests $(BIN)/python -m crash.everywhere --jobs 2 --done build/crash $(CRASH)

check: .venv/ready ## Formatter, linter, types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/ready ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/ready .venv-bench/ready ## Measure against a bare commit and the peers (BENCH="--quick" for a glance)
	@$(BIN)/python -m compileall -q src
	$(BIN)/python -m benchmarks.bench $(BENCH)

guardrails: .venv/ready ## Run misbehaving agents and measure what is caught (GUARDRAILS="--sample" for a minute)
	@$(BIN)/python -m compileall -q src benchmarks/guardrails
	$(BIN)/planforge bench guardrails --html build/guardrails.html $(GUARDRAILS)

docs: .venv/ready ## Write the help pages
	$(BIN)/python tools/help_pages.py

lock: ## Write both lock files again (needs uv)
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-emit-index-url --no-strip-extras --no-header --output-file requirements.lock
	uv pip compile benchmarks/requirements.in --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-emit-index-url --no-strip-extras --no-header --output-file benchmarks/requirements.lock

clean: ## Remove everything that make created
	rm -rf .venv .venv-bench build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

# A clone that was moved, or whose Python is gone, is set up again.
ifneq ($(shell .venv/bin/python -c '' 2>/dev/null && cat .venv/ready 2>/dev/null),$(CURDIR))
.PHONY: .venv/ready
endif

.venv/ready: requirements.lock pyproject.toml benchmarks/guardrails/pyproject.toml
	@python='$(PYTHON)'; : "$${python:=$$(tools/find-python)}"; \
	  test -n "$$python" && "$$python" tools/set_up.py .venv requirements.lock --project

# The peers that the benchmarks measure against. Nothing else needs them.
.venv-bench/ready: benchmarks/requirements.lock
	@.venv/bin/python tools/set_up.py .venv-bench benchmarks/requirements.lock
