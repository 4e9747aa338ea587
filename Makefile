# One set of verbs for people, hooks and CI. `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Everything that is installed goes into the checkout.
STAMP := $(VENV)/.installed
RUST := $(shell find crates -name '*.rs' -o -name 'Cargo.toml' 2>/dev/null) Cargo.toml Cargo.lock

# The steps of `make prove`, each a target of its own below: what takes too long for `make test`.
PROOFS := prove-properties prove-mutations prove-breaks prove-documents

.PHONY: help run test prove $(PROOFS) check bench same gen pages docs dev rust-test python-test python-alone-test fmt clean

help: ## list the verbs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The tools and libraries; again only when pyproject.toml changes.
$(VENV)/.tools: $(VENV)/bin/python pyproject.toml tools/dependencies.py
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --disable-pip-version-check --group dev $$($(PYTHON) tools/dependencies.py)
	@touch $@

$(STAMP): $(VENV)/.tools $(RUST)
	$(BIN)/maturin develop --release --quiet >/dev/null
	@touch $@

dev: $(STAMP) ## build the core and install the package into .venv

run: $(STAMP) ## reproduce the Kyoto study: progress, table of claims, report
	$(BIN)/engpass reproduce kyoto-1997 --report out/kyoto-1997.html

# Rust and Python run side by side, and each prints its results when it ends. Many Python tests wait, so four processes fill a core.
# Then come the tests that judge real time, two at a time: they wait nearly all of the time.
test: ## all tests
	$(MAKE) --no-print-directory --output-sync=target -j2 rust-test python-test
	$(MAKE) --no-print-directory python-alone-test

# Doc comments have no examples to run, and examples are built by the lints. A quarter of the cases of each property, and the same each
# time: `make prove` draws many more, and new ones.
rust-test:
	PROPTEST_CASES=64 PROPTEST_RNG_SEED=1997 cargo test --workspace --exclude engpass-python --lib --bins --tests --quiet

python-test: $(STAMP)
	$(BIN)/pytest -q tests/python -m "not alone and not prove" --numprocesses 4 --dist worksteal

python-alone-test: $(STAMP)
	$(BIN)/pytest -q tests/python -m "alone and not prove" --numprocesses 2

prove: $(PROOFS) ## what takes too long for `test`, or needs privileges

# Ten times the cases that a property asks for: proptest and Hypothesis run 256 and 100 where it does not say how many. The profile `prove`
# optimises: after its build, ten minutes of one core. The networks in which mechanisms of forwarding are counted come last, with their tables.
prove-properties: $(STAMP)
	PROPTEST_CASES=2560 cargo test --profile prove --workspace --exclude engpass-python --lib --tests --no-fail-fast --quiet -- --skip acted::
	PROPTEST_CASES=2560 cargo test --profile prove -p engpass-simulate --test oracle --quiet acted:: -- --nocapture
	$(BIN)/pytest -q tests/python --hypothesis-profile prove -m "hypothesis and not prove"

prove-mutations: $(STAMP)
	$(BIN)/python tools/mutations.py

prove-breaks: $(STAMP)
	$(BIN)/python tools/prove_breaks.py

prove-documents: $(STAMP)
	$(BIN)/pytest -q -m prove tests/python/test_documents.py

check: $(STAMP) ## formatting, lints, types, generated files, file sizes, what the oracle shares, import cycles, retired words, whether mutations still apply
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features engpass-bench/queues --quiet -- -D warnings
	$(BIN)/ruff check python tests tools benches
	$(BIN)/ruff format --check python tests tools benches
	$(BIN)/mypy
	$(BIN)/stubtest engpass._engpass
	cargo run --quiet -p engpass-testbed --example generate -- check
	cargo run --quiet -p engpass-outcome --example generate -- check
	cargo run --quiet -p engpass-measured --example generate -- check
	cargo run --quiet -p engpass-live --example generate -- check
	$(PYTHON) tools/file_sizes.py
	$(PYTHON) tools/oracle_apart.py
	$(PYTHON) tools/import_cycles.py
	$(BIN)/lint-imports --no-cache --no-logo
	$(PYTHON) tools/words.py
	for mutation in tests/mutations/*.patch; do git apply --check $$mutation || exit 1; done

pages: $(STAMP) ## write the tables in the pages of the gallery (runs every study in full)
	$(BIN)/python tools/gallery_page.py

gen: ## write the generated files: schemas, catalogue, Python types
	cargo run --quiet -p engpass-testbed --example generate -- write
	cargo run --quiet -p engpass-outcome --example generate -- write
	cargo run --quiet -p engpass-measured --example generate -- write
	cargo run --quiet -p engpass-live --example generate -- write

fmt: $(VENV)/.tools ## format everything
	cargo fmt --all
	$(BIN)/ruff format python tests tools benches
	$(BIN)/ruff check --fix python tests tools benches

docs: ## the reference of the crates, in target/doc
	cargo doc --workspace --no-deps --quiet

bench: $(STAMP) ## speed and memory, as ratios measured in the same run
	$(BIN)/python benches/run.py

# The commit whose outcomes must stay. After a commit that changes outcomes on purpose, the next one moves this.
BASE ?= af6135a0e9240e4c208ed60fb715391f20f344dc
# Random testbed files and their seed, the longest run in seconds of virtual time, turns of each workload, the greatest ratio of times.
COUNT ?= 2000
SEED ?= 1
LONGEST ?= 3
TURNS ?= 7
LIMIT ?= 1.10

same: ## outcomes and speed against the commit BASE; SPEED=0 or OUTCOMES=0 leaves one out, ONLY=WORD,... for some
	$(PYTHON) tools/same.py $(BASE) --count $(COUNT) --seed $(SEED) --seconds $(LONGEST) \
	    --turns $(if $(filter 0,$(SPEED)),0,$(TURNS)) --limit $(LIMIT) --only '$(ONLY)' \
	    $(if $(filter 0,$(OUTCOMES)),--no-outcomes)

clean: ## remove what was built
	rm -rf target $(VENV) .ns3 out
