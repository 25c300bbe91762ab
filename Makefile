# Every target is a few lines; what is longer lives in tools/. `make help` lists them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Flags of pytest; two workers, each file in one of them. One after the other: make test PYTEST=-q
PYTEST ?= -q -n 2 --dist loadfile
# Options of the qualification: make qualify QUALIFY='--rows 4 --minutes 2 --seed 7'
QUALIFY ?=
# What `make test` has time for: four rows, always in the same way.
QUALIFY_IN_TESTS ?= --rows 1,5,8,11 --minutes 1 --seed 1

export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup postgres redis run demo test test-clients test-unit lint format gen gen-check bench qualify qualify-mutants lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv from the lock file; does nothing when it is up to date

$(STAMP): requirements-dev.txt pyproject.toml clients/python/pyproject.toml tools/setup
	@tools/setup "$(PYTHON)" "$(VENV)" "$@"

postgres: ## make sure that the PostgreSQL binaries for the tests are here (Debian, as root: installs them)
	@tools/postgres

redis: ## make sure that a redis-server for the tests is here (Debian, as root: installs it)
	@tools/redis

run: setup ## serve on 127.0.0.1:7447 with the default SQLite file, where the command line finds it
	durable-memory serve

demo: setup ## tell the whole story on a real server: propose, activate, recall, kill -9, recall again
	python -m examples.demo

test: setup postgres redis gen-check lint ## everything that must pass before a change lands
	pytest --durations=10 $(PYTEST)
	tools/test_go
	tools/test_node
	PYTHONPATH=. python -m clients.conformance
	python -m tests.qualification $(QUALIFY_IN_TESTS)

test-clients: setup ## the same cases with the clients of all languages, as one table
	PYTHONPATH=. python -m clients.conformance

test-unit: setup ## the tests without I/O
	pytest tests/unit $(PYTEST)

lint: setup ## style, types, layers and the contract
	ruff check
	ruff format --check
	mypy
	lint-imports
	buf lint
	buf format --diff --exit-code
	tools/lint_go
	tools/lint_node

format: setup ## rewrite Python and proto files in the one format
	ruff check --fix
	ruff format
	buf format --write

gen: setup ## regenerate the committed stubs from proto/ for every language, and what the clients derive
	tools/contract
	tools/gen clients/python/src
	tools/gen_python_client
	tools/gen_go
	tools/gen_go_client
	tools/gen_node
	tools/gen_node_client
	python tools/error_table
	python tools/settings_table

gen-check: setup ## fail when a committed file is not what its source generates
	@tools/contract --check
	@tools/gen --check clients/python/src
	@tools/gen_python_client --check
	@tools/gen_go --check
	@tools/gen_go_client --check
	@tools/gen_node --check
	@tools/gen_node_client --check
	@python tools/error_table --check
	@python tools/settings_table --check

bench: setup ## memory of a view for each node; latency and rate of recall next to an empty RPC
	python -m benchmarks

qualify: setup postgres redis ## ten minutes of killed processes, and a report: python -m tests.qualification --help
	python -m tests.qualification $(QUALIFY)

qualify-mutants: setup postgres redis ## plant bugs in a copy of the service, and see that the qualification catches each
	python -m tests.qualification.mutants $(QUALIFY)

lock: ## resolve the newest compatible versions into requirements-dev.txt
	tools/lock "$(PYTHON)" requirements-dev.txt

clean: ## remove the environment, caches and build folders
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find service clients tests tools -name __pycache__ -prune -exec rm -rf {} +
	find service clients -name '*.egg-info' -prune -exec rm -rf {} +
