# Every target sets up what it needs; `make` alone lists them.

# Another PySpark, in a virtual environment of its own: make test-spark PYSPARK=4.2.*
PYSPARK ?=
VENV := .venv$(if $(PYSPARK),-pyspark-$(patsubst %.*,%,$(PYSPARK)))
BIN := $(VENV)/bin
PY := $(BIN)/python
STAMP := $(VENV)/.ready

# The interpreter for the virtual environment: PYTHON=... if given, else the first one found that is new enough.
PYTHON ?=
CANDIDATES := $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.14 python)
NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

# How hard random tests try: default, ci (the same examples every time) or long.
PROFILE ?= default
# How long `make soak` takes.
MINUTES ?= 30
# How many changes `make test-mutants` tries, chosen at random; all of them (hours) if it is empty.
SAMPLE ?= 200
# More words for pytest: make test ARGS='tests/kernels -k join'
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-spark test-long test-faults test-services test-cluster test-mutants soak check format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv and install headgate into it, with everything for development

demo: $(STAMP) ## watch a live auction on built-in data
	@$(BIN)/headgate demo

test: $(STAMP) ## run the fast tests, which need no Java
	$(PY) -m pytest -n 2 --hypothesis-profile=$(PROFILE) $(ARGS)

test-spark: $(STAMP) ## run the tests that start Spark; they need Java 17. PYSPARK=4.2.* runs them with another release
	$(PY) -m pytest -n 2 -m 'spark and not long and not faults' --hypothesis-profile=$(PROFILE) $(ARGS)

test-long: $(STAMP) ## run all tests, the long ones too, with many more random examples
	POLARS_MAX_THREADS=2 $(PY) -m pytest -n 2 -m 'not faults and not services and not cluster' --hypothesis-profile=long $(ARGS)

test-faults: $(STAMP) ## kill processes of queries on Spark, twenty times
	$(PY) -m pytest -m faults tests/spark $(ARGS)

test-services: $(STAMP) ## run the tests against a real PostgreSQL and Kafka, which it installs on Debian and Ubuntu and starts on loopback
	@missing=; \
	ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1 || command -v pg_ctl >/dev/null || missing="$$missing postgresql"; \
	command -v mvn >/dev/null || missing="$$missing maven"; \
	command -v java >/dev/null || missing="$$missing default-jre-headless"; \
	if [ -n "$$missing" ]; then \
	  echo "installing$$missing"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing; \
	fi
	$(PY) -m pytest -m services tests/services $(ARGS)

test-cluster: $(STAMP) ## run the tests with several machines: namespaces on this one that share an S3 server
	@missing=; \
	command -v mvn >/dev/null || missing="$$missing maven"; \
	command -v java >/dev/null || missing="$$missing default-jre-headless"; \
	command -v nsenter >/dev/null || missing="$$missing util-linux"; \
	if [ -n "$$missing" ]; then \
	  echo "installing$$missing"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing; \
	fi
	$(PY) -m pytest -m cluster tests/cluster $(ARGS)

test-mutants: $(STAMP) ## change the code of kernels, gate and shard on purpose: which changes does no test notice?
	@$(PY) -m tests.mutants --jobs 2 $(if $(SAMPLE),--sample $(SAMPLE)) $(ARGS)

soak: $(STAMP) ## follow files on Spark for MINUTES (30): do memory and state stay flat?
	@$(BIN)/headgate soak --minutes $(MINUTES)

check: $(STAMP) ## check formatting, lints, types and the direction of imports
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy --strict
	$(BIN)/lint-imports --no-logo

format: $(STAMP) ## format the code and repair the lints that can be repaired
	$(PY) -m ruff check --fix-only .
	$(PY) -m ruff format .

clean: ## remove caches and build products, but not .venv
	rm -rf build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .mutants
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	@if ! $(PY) -c '$(NEW_ENOUGH)' 2>/dev/null; then \
	  found=; for candidate in $(CANDIDATES); do \
	    if "$$candidate" -c '$(NEW_ENOUGH)' 2>/dev/null; then found="$$candidate"; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo 'Headgate needs Python 3.11 or newer with its venv module; none of these is one: $(CANDIDATES)' >&2; \
	    echo 'Install one (on Debian and Ubuntu: python3 and python3-venv), or name one: make setup PYTHON=path/to/python3' >&2; \
	    exit 1; \
	  fi; \
	  echo "creating $(VENV) with $$("$$found" --version)"; \
	  "$$found" -m venv --clear $(VENV); \
	fi
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(if $(PYSPARK),$(PY) -m pip install --quiet --disable-pip-version-check 'pyspark==$(PYSPARK)')
	@touch $@
