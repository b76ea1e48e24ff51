PYTHON ?= .venv/bin/python

.PHONY: check format lint types imports test

check: lint types imports test

format:
	$(PYTHON) -m ruff format pyagent tests bench examples
	$(PYTHON) -m ruff check --fix pyagent tests bench examples

lint:
	$(PYTHON) -m ruff format --check pyagent tests bench examples
	$(PYTHON) -m ruff check pyagent tests bench examples

types:
	$(PYTHON) -m mypy

imports:
	$(PYTHON) -c "from importlinter.cli import lint_imports; raise SystemExit(lint_imports())"

test:
	$(PYTHON) -m pytest -n auto
