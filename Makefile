# Two commands on a fresh machine: `make reproduce` and `make test`. Both build .venv first.
PYTHON ?= python3
BIN := .venv/bin
# Containers often forbid Python to write bytecode. Then every process, and workers are processes, would compile all
# that it imports: five seconds each.
export PYTHONDONTWRITEBYTECODE :=
CODE := asynchebb tests benchmarks examples docs/conf.py docs/look.py docs/paper_page.py docs/extensions conftest.py  # what a user leaves in the clone is not ours to check

.PHONY: help setup reproduce paper paper-page search live test test-all fuzz flips torture mutants check docs docs-serve tutorials bench bench-gpu bench-live sweep compare
.PHONY: examples pictures screenshots graph lowest release-check lock clean

help:
	@echo "make reproduce   recompute every figure of the paper and judge every claim (reproduction/index.html)"
	@echo "make paper       the same with ten million steps per run, as in the paper (paper/index.html)"
	@echo "make paper-page  put what that left in paper/ into the documentation (docs/paper_scale.md)"
	@echo "make search      search hundreds of settings for one that reproduces figures 1, 2 and 3 together (retention/)"
	@echo "make live        watch a network learn in the browser"
	@echo "make test        lint, type checks, all tests, and the code blocks in the documentation"
	@echo "make test-all    the same, with all slow tests, tutorials, damaged files and odd arguments (half an hour)"
	@echo "make fuzz        call everything with odd arguments, 12,000 times; ARGS='--seed 7 --cases 1000' draws others"
	@echo "make flips       damage 2,500 saved files, one byte each; ARGS='--seed 7' draws others"
	@echo "make torture     kill each command a hundred times and compare what it leaves; ARGS='--seed 7 --only run'"
	@echo "make mutants     see whether tests notice small changes of the code (an hour; tests/mutants/survivors.md)"
	@echo "make check       lint, type checks and the tests that need no compiling, in less than a minute"
	@echo "make docs        the documentation as a site, with tutorials that are run (site/index.html)"
	@echo "make docs-serve  the same, opened in a browser"
	@echo "make tutorials   run all tutorials as tests; \`make test\` runs the first"
	@echo "make bench       speed compared with other systems, scaling, cold start, memory (benchmarks/)"
	@echo "make bench-gpu   speed of the gpu engine on this machine's GPU (benchmarks/gpu.json)"
	@echo "make bench-live  the live page's speed, and its memory over an hour (benchmarks/live.md)"
	@echo "make sweep       a thousand networks: thresholds, refractory periods and holds (thresholds/)"
	@echo "make compare     the networks compared with scikit-learn's methods (comparison/, docs/comparison.md)"
	@echo "make examples    run the scripts in examples/ and draw their figures (docs/images/examples/)"
	@echo "make pictures    rebuild the README's figures, docs/claims.md and docs/measured.md from the reproduction"
	@echo "make screenshots take the pictures of the live page; needs Chromium (docs/images/)"
	@echo "make graph       put the graph of the package's modules into CONTRIBUTING.md"
	@echo "make lowest      test with the lowest versions of the dependencies that pyproject.toml allows (.venv-lowest)"
	@echo "make release-check  build the package, install and try it with every Python found, oldest and newest versions (dist/)"
	@echo "make lock        write the versions installed in .venv and .venv-docs to requirements.txt and requirements-docs.txt"

setup: .venv/installed

.venv/installed: pyproject.toml requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "asynchebb needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	# The list is whole, so nothing has to be resolved; and what is not imported need not be compiled.
	# Two at a time: to unpack them takes longer than to fetch them.
	xargs -P 2 -n 20 $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile < requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

reproduce: setup
	$(BIN)/asynchebb reproduce

paper: setup
	$(BIN)/asynchebb reproduce --scale paper --out paper

paper-page: setup
	$(BIN)/python docs/paper_page.py paper

search: setup
	$(BIN)/python examples/retention_search.py retention
	cp retention/settings.csv asynchebb/reproduction/experiments/retention_search.csv

live: setup
	$(BIN)/asynchebb live

# The package's types, and those that a user of the tutorials meets.
TYPES := { $(BIN)/mypy && $(BIN)/python tests/tutorials.py; }
# A document in one process: its blocks build on each other.
DOCUMENTS := $(BIN)/python -m pytest -n 2 --dist loadfile
test: setup
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(TYPES) & types=$$!; $(BIN)/python -m pytest -n 3 --dist worksteal tests && wait $$types  # mypy needs one core, and a while; tests often wait for a process
	$(DOCUMENTS) README.md docs/*.md docs/tutorials/ten_minutes.md  # `make tutorials` runs the others

# What is too slow for every change: half an hour on two cores.
test-all: setup
	ASYNCHEBB_ALL=1 $(MAKE) test
	$(MAKE) tutorials flips fuzz

ARGS :=
fuzz flips torture: setup
	$(BIN)/python -m tests.$@ $(ARGS)

# One small change at a time, in a copy of the tree: do the tests notice? `make mutants ARGS=rules.py` tries one module.
MUTANTS := .venv-mutants/bin/python
.venv-mutants/installed: .venv/installed tests/mutants/requirements.txt
	$(call on_top,.venv-mutants)
	$(MUTANTS) -m pip install --quiet --disable-pip-version-check -r tests/mutants/requirements.txt
	touch $@

mutants: .venv-mutants/installed
	nice $(MUTANTS) tests/mutants/run.py $(ARGS)

# The edit loop: what needs no compiling.
QUICK := bad_input contracts documentation experiments grid metrics model modules oracles stimuli
check: setup
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(TYPES) & types=$$!; $(BIN)/python -m pytest -n 2 -k "not cpu and not whole" $(QUICK:%=tests/test_%.py) && wait $$types

tutorials: setup
	$(DOCUMENTS) docs/tutorials

# An environment with packages of its own, on top of .venv.
SITE := -c 'import site; print(site.getsitepackages()[0])'
define on_top
	$(PYTHON) -m venv $(1)
	echo "import site; site.addsitedir('$$($(BIN)/python $(SITE))')" > "$$($(1)/bin/python $(SITE))/asynchebb.pth"
endef

# What builds the site is large, and tests need none of it: it has an environment and a list of its own.
DOCS := .venv-docs/bin/python
.venv-docs/installed: .venv/installed requirements-docs.txt
	$(call on_top,.venv-docs)
	xargs -P 2 -n 20 $(DOCS) -m pip install --quiet --disable-pip-version-check --no-deps --no-compile < requirements-docs.txt
	touch $@

docs: .venv-docs/installed
	$(DOCS) -m sphinx -b html -j 2 -W --keep-going -d build/site/doctrees docs build/site/html
	rm -rf site && cp -r build/site/html site  # notebooks are left beside the folder that they are built into
	$(DOCS) docs/look.py site

docs-serve: docs
	(sleep 1; $(PYTHON) -m webbrowser -t http://localhost:8000) & $(PYTHON) -m http.server --bind 127.0.0.1 --directory site 8000

# The peers that it compares with live in an environment of their own, on top of .venv; one that cannot
# be installed says so in its row. `make bench PEERS=all` takes in Brian2 and ANNarchy too.
PEERS := usual
BENCH := .venv-bench/bin/python
INSTALL_PEERS := $(BENCH) -m pip install --quiet --disable-pip-version-check
bench: setup
	$(call on_top,.venv-bench)
	-$(INSTALL_PEERS) -r benchmarks/requirements.txt
	$(if $(filter all,$(PEERS)),-$(INSTALL_PEERS) -r benchmarks/requirements-all.txt)
	$(BENCH) benchmarks/bench.py $(PEERS)

bench-gpu: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[gpu]'
	$(BIN)/python benchmarks/gpu.py
	$(BIN)/python benchmarks/gpu_cycles.py

bench-live: setup
	$(BIN)/python benchmarks/live.py

sweep: setup
	$(BIN)/asynchebb sweep run examples/thresholds.toml --out thresholds
	$(BIN)/asynchebb sweep plot thresholds --measure factors_found --out docs/images/sweep.png
	$(BIN)/python benchmarks/sweep.py

COMPARED := digits crossbars patches
COMPONENTS := 32 100
compare: setup
	for data in $(COMPARED); do for n in $(COMPONENTS); do \
	  $(BIN)/asynchebb compare $$data --n $$n --out comparison/$$data-$$n || exit 1; done; done
	$(BIN)/python benchmarks/estimator.py
	mkdir -p docs/images
	for data in $(COMPARED); do cp comparison/$$data-32/comparison.png docs/images/comparison-$$data.png; done
	{ echo "# All results of the comparison"; echo; echo "Made by \`make compare\`."; \
	  for data in $(COMPARED); do for n in $(COMPONENTS); do echo; sed "s/^#/##/" comparison/$$data-$$n/comparison.md; done; \
	  echo; echo "![$$data](images/comparison-$$data.png)"; done; } > docs/comparison.md

EXAMPLES := bars digits_probe class_incremental natural_patches own_rule spiking stream
examples: setup
	mkdir -p docs/images/examples
	for name in $(EXAMPLES); do (cd docs/images/examples && $(CURDIR)/$(BIN)/python $(CURDIR)/examples/$$name.py) || exit 1; done

# The verdicts at the paper's scale stand beside them where `make paper` has been run.
SHOWN := fig1 fig3 rates over-time background fig2g third-set search robustness
SHOWN += spiking spiking-settings spiking-limit spiking-sets spiking-patches
pictures: setup
	$(BIN)/asynchebb reproduce $(if $(wildcard paper/claims.json),--beside paper)
	mkdir -p docs/images
	for name in $(SHOWN); do cp reproduction/figures/$$name.png docs/images/ || exit 1; done
	cp reproduction/claims.md reproduction/measured.md docs/
	$(BIN)/asynchebb run --samples 2000 --snapshots 40 --out reproduction/forming.nc
	$(BIN)/asynchebb movie reproduction/forming.nc --neurons 64 --seconds 8 --out docs/images/forming.gif

screenshots: setup
	$(BIN)/python tests/live_browser.py docs/images

lowest: setup
	$(BIN)/python tests/lowest.py .venv-lowest

# Builds what would be published, and tries it as its users would.
release-check: setup
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check build twine uv packaging
	.venv-release/bin/python tests/release.py

LISTED := -m pip list --format=freeze --exclude-editable --exclude asynchebb --exclude pip --exclude setuptools
lock: .venv-docs/installed
	$(BIN)/python $(LISTED) > requirements.txt
	$(DOCS) $(LISTED) --path "$$($(DOCS) $(SITE))" > requirements-docs.txt

graph: setup
	$(BIN)/python tests/modules.py --write

clean:
	rm -rf .venv .venv-bench .venv-docs .venv-lowest .venv-mutants .venv-release build dist docs/generated site .pytest_cache .mypy_cache .ruff_cache
