# make run    set up on first use, then write with speculation on the default model
# make test   set up on first use, then lint, types, documentation and tests
# make docs   the documentation as a site in build/site
# make cross  equal logits on every instruction set, arm64 in an emulator; CI runs it behind make test
# make long   checks that take minutes          make sanitize  native tests under ASan and UBSan
# make dist   sdist, wheel and manual pages in dist/    make dist-check  tries them outside of this tree
# make bench  plain against speculative decoding, make rows      the cost of a pass by its rows
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
SOURCES := CMakeLists.txt pyproject.toml $(shell find native src -type f -not -name '*.pyc' 2>/dev/null)
PROMPT ?= Correct the spelling and return the whole text: The museeum is opend from Tuesday to Sunday. \
  Visiters can leave their bags at the entrance. Children do not pay.
MODEL ?= smollm2-135m
DRAFT ?= auto

.PHONY: run install test lint types docs unit cross long sanitize sanitized-build fuzz man dist dist-check bench rows clean
.DEFAULT_GOAL := run

run: install
	$(BIN)/borrador run --trace --max-tokens 96 '$(PROMPT)' < /dev/null

install: $(VENV)/.installed

# Build tools live in the environment and not in pip's throw-away one, so that a second build only compiles what changed.
$(VENV)/.tools: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "borrador needs Python 3.10 or newer, this is " + sys.version.split()[0])'
	@echo "== environment in $(VENV)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet 'scikit-build-core>=0.10' 'nanobind>=2.4' 'cmake>=3.20,<5' ninja
	@touch $@

$(VENV)/.dev: $(VENV)/.tools
	@echo "== test tools and dependencies"
	$(PIP) install --quiet --no-build-isolation -C build-dir=build/venv '.[dev,reference]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed: $(VENV)/.tools $(SOURCES)
	@echo "== build and install"
	$(PIP) install --quiet --no-build-isolation -C build-dir=build/venv .
	@touch $@

test: $(VENV)/.dev install lint types docs unit
	@echo "== all green"

lint: $(VENV)/.dev
	@echo "== ruff"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@echo "== import-linter"
	$(BIN)/lint-imports

types: $(VENV)/.dev
	@echo "== mypy"
	$(BIN)/mypy

# The theme announces its successor in every build otherwise.
docs: $(VENV)/.dev install
	@echo "== documentation in build/site"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

unit: $(VENV)/.dev install
	@echo "== pytest, with real models"
	$(BIN)/python -m pytest -m 'not long'

cross: install
	@echo "== equal logits on every instruction set"
	@PATH="$(abspath $(BIN)):$$PATH" native/checks/cross build/venv build/cross

long: $(VENV)/.dev install fuzz
	$(BIN)/python -m pytest -m long

# The interpreter is not built with the sanitizer, so its runtime has to be loaded first; Python's own leaks are not ours.
SANITIZED := LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16 PYTHONPATH=build/sanitize/site $(BIN)/python -m pytest

sanitize: sanitized-build
	$(SANITIZED) -m 'not long and not real_model' tests/models tests/engine tests/draft

# Damaged files by the hundred thousand, with every access checked.
fuzz: sanitized-build
	$(SANITIZED) -m long tests/models/test_long_damage.py

sanitized-build: $(VENV)/.dev
	$(PIP) install --quiet --no-build-isolation --no-deps --upgrade --target build/sanitize/site \
	  -C build-dir=build/sanitize/build -C cmake.define.BORRADOR_SANITIZE=ON -C install.strip=false .

man: install
	$(BIN)/python -m release.manual man > /dev/null

$(VENV)/.release: $(VENV)/.tools
	$(PIP) install --quiet --no-build-isolation -C build-dir=build/venv '.[release]'
	@touch $@ $(VENV)/.installed

# The wheel reuses what was compiled for the environment.
dist: $(VENV)/.release man
	@echo "== sdist and wheel"
	rm -rf dist build/wheel
	$(BIN)/python -m build --sdist --no-isolation --outdir dist . > /dev/null
	$(PIP) wheel --quiet --no-build-isolation --no-deps -C build-dir=build/venv -w build/wheel .
	@if [ "$$(uname -s)" = Linux ]; then export PATH="$(abspath $(BIN)):$$PATH"; \
	  said=$$($(BIN)/python -m auditwheel repair -w dist build/wheel/*.whl 2>&1) || { echo "$$said"; exit 1; }; \
	else mv build/wheel/*.whl dist; fi

dist-check: dist
	$(BIN)/python -m release.check dist

bench: install
	$(BIN)/borrador bench -m $(MODEL) -d $(DRAFT)

rows: install
	$(BIN)/borrador rows -m $(MODEL)

clean:
	rm -rf $(VENV) build dist man .mypy_cache .ruff_cache .pytest_cache .hypothesis
