# Factory Control Plane. Needs Python 3.11 or newer, git and make; everything else comes with `make venv`.
SHELL := /bin/sh
VENV ?= .venv
PY := $(VENV)/bin/python
JOBS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); [ $$n -gt 4 ] && echo 4 || echo $$n)

.DEFAULT_GOAL := help
.PHONY: help up demo check test mutants bench gallery schema lint types imports venv venv-dev browser clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: venv ## everything running, with a demo run waiting for you (REPO=, REVISION=); Ctrl-C stops it
	@exec $(PY) manage.py up $(if $(REPO),--repo "$(REPO)") $(if $(REVISION),--revision "$(REVISION)")

demo: venv ## one run from submission to completion, then stop; the last line is JSON
	@exec $(PY) manage.py demo $(if $(REPO),--repo "$(REPO)") $(if $(REVISION),--revision "$(REVISION)")

check: venv-dev lint types imports ## lint, types, imports and the fast tests
	@$(PY) -m tests.architecture.requirements
	@$(PY) -m pytest -q -n $(JOBS) -m "not slow and not browser"

test: venv-dev browser lint types imports ## everything, the slow and the browser tests too
	@$(PY) -m pytest -n $(JOBS) --durations=30

mutants: venv-dev ## break twenty requirements in a copy, and see a marked test of each fail (SEED=, ALL=1, ONLY=)
	@SEED="$(SEED)" ALL="$(ALL)" ONLY="$(ONLY)" $(PY) -m tests.mutants

bench: venv-dev ## what the hot paths cost, as multiples of a bare insert and commit (ROUNDS=)
	@$(PY) -m benchmarks $(ROUNDS)

gallery: venv-dev browser ## pictures of every page, for every person, into var/gallery (ONLY=)
	@$(PY) -m tests.gallery $(ONLY)

schema: venv-dev ## write down what the migrations make, and which have landed (after adding one)
	@$(PY) -m tests.plugin $(abspath $(PY)) manage.py schema_fingerprint --write
	@$(PY) -m tests.architecture.landed

lint: venv-dev
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

types: venv-dev
	@$(PY) -m mypy

imports: venv-dev
	@$(VENV)/bin/lint-imports

venv: ## the virtual environment of the product
	@sh .ci/venv $(VENV) requirements.txt

venv-dev: ## … and of its tests
	@sh .ci/venv $(VENV) requirements-dev.txt

browser:
	@sh .ci/browser

clean: ## remove the virtual environment and all local data
	rm -rf $(VENV) var
