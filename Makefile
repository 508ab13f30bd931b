# make run: set up, schedule a ResNet-50 layer, simulate it on a 4x4 mesh.   make test: set up, lint, types, tests.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
OUT := out
READY := $(VENV)/.ready

.PHONY: run test test-all lint types bench clean

run: $(READY)
	@mkdir -p $(OUT)
	$(BIN)/cosa schedule --network resnet50 --layer input.8 --arch simba_4x4 --time-limit 300 -o $(OUT)/resnet50_input8.json
	$(BIN)/nocsim run --schedule $(OUT)/resnet50_input8.json --mesh 4x4 --json $(OUT)/resnet50_input8.result.json

test: lint types
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-all: lint types
	$(BIN)/python -m pytest -n 2

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python scripts/bench.py

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(READY)

clean:
	rm -rf $(VENV) $(OUT) .mypy_cache .ruff_cache .pytest_cache .hypothesis
