# make demo: a model on real conversations.   make test: lint and the fast tests.   make test-all: every test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
DEMO := build/demo
TEST = $(BIN)/python -m pytest -q -n auto --dist=loadscope --no-loadscope-reorder --durations=25

.PHONY: install demo lint test test-all test-jax test-torch test-browser fuzz reproduce docs format clean

install: $(INSTALLED)

$(INSTALLED): requirements.txt
	@echo "Installing into $(VENV); the packages are large, so it takes a minute or more."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --requirement requirements.txt
	touch $@

demo: $(INSTALLED)
	rm -rf $(DEMO)
	$(BIN)/python prepare.py --corpus=chitchat --dimension=64 --out=$(DEMO)/prepared
	$(BIN)/python train.py --recipe=dam-chitchat --data=$(DEMO)/prepared --workdir=$(DEMO)/run
	$(BIN)/python evaluate.py --run=$(DEMO)/run --split=test --examples=3
	@printf '\nWhat next? After `source $(VENV)/bin/activate`:\n'
	@printf '  %-16s %s\n' \
	  'more contexts' 'python evaluate.py --run=$(DEMO)/run --split=test --examples=20' \
	  'a conversation' 'python -m colloquy.tools.build_index --run=$(DEMO)/run --corpus=chitchat --out=$(DEMO)/index' \
	  '' 'python chat.py --run=$(DEMO)/run --index=$(DEMO)/index' \
	  'web pages' 'python serve.py --run=demo=$(DEMO)/run' \
	  'read on' 'README.md: other models and your own data; docs/dam.md: response selection'

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m colloquy.tools.check_types
	$(BIN)/python -m colloquy.tools.tables --check

test: lint
	$(TEST)

test-all: lint
	$(TEST) -m 'not browser'

test-jax test-torch: test-%: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	KERAS_BACKEND=$* $(TEST) -m 'not browser' $(wildcard tests/test_layers_*.py)
	$(TEST) -m slow tests/test_backends.py

test-browser: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable '.[browser]'
	$(BIN)/python -m pytest -q -m browser tests/browser

fuzz: $(INSTALLED)
	$(BIN)/python -m pytest -q -n auto -m hypothesis --hypothesis-profile=fuzz tests

reproduce: $(INSTALLED)
	$(BIN)/python -m colloquy.tools.reproduce --model=$(or $(MODEL),bidaf) $(if $(TRAIN),--train) $(if $(CORPORA),--corpora=$(CORPORA))

docs: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	mkdir -p build/pdoc && cp README.md docs/index.html.jinja2 build/pdoc
	PDOC_ALLOW_EXEC=1 $(BIN)/python -W error::UserWarning -m pdoc --docformat google --no-show-source --template-directory build/pdoc \
		-o build/docs colloquy colloquy.models colloquy.layers colloquy.metrics

format: $(INSTALLED)
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean:
	rm -rf build
