# make run: set up, schedule a ResNet-50 layer, simulate it on a 4x4 mesh.   make test: set up, lint, types, tests.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
OUT := out
READY := $(VENV)/.ready
OLDEST := .venv-oldest

PAPER := table6 figure1 figure3 figure4 figure6 figure7 figure8 figure9 figure10

.PHONY: run test test-all test-oldest lint types bench paper paper-quick clean

run: $(READY)
	@mkdir -p $(OUT)
	$(BIN)/cosa schedule --network resnet50 --layer input.8 --arch simba_4x4 --time-limit 300 -o $(OUT)/resnet50_input8.json
	$(BIN)/nocsim run --schedule $(OUT)/resnet50_input8.json --mesh 4x4 --json $(OUT)/resnet50_input8.result.json

test: lint types
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-all: lint types
	$(BIN)/python -m pytest -n 2

# The quick tests with the oldest packages that pyproject.toml allows, in an environment of their own.
test-oldest:
	$(PYTHON) -m venv $(OLDEST)
	sed -nE '/types-/d; s/^  "([a-z][a-z-]*)>=([0-9.]+)",$$/\1==\2/p' pyproject.toml > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' -c $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pytest -n 2 -m "not slow" $(TESTS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python scripts/bench.py

# Tables and figures of the paper into out/paper, an hour or two on two cores; a run that was stopped goes on.
paper: $(READY)
	for part in $(PAPER); do $(BIN)/python scripts/paper/$$part.py --out $(OUT)/paper || exit; done

# A representative part of them into out/paper-quick, about eight minutes.
paper-quick: $(READY)
	for part in $(PAPER); do $(BIN)/python scripts/paper/$$part.py --quick --out $(OUT)/paper-quick || exit; done

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(READY)

clean:
	rm -rf $(VENV) $(OLDEST) $(OUT) .mypy_cache .ruff_cache .pytest_cache .hypothesis
