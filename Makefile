# `make run` starts the server, `make test` runs everything that CI runs; both set up what they need.
SHELL := /bin/bash
CARGO ?= cargo
export CARGO_TARGET_DIR ?= $(CURDIR)/target
BINARY := $(CARGO_TARGET_DIR)/release/partita
CACHE := $(if $(PARTITA_CACHE),$(PARTITA_CACHE),$(HOME)/.cache/partita)

.PHONY: help run build dist test lint unit crash crash-quick torture torture-nodes power fuzz fuzz-quick conformance \
	conformance-postgres conformance-postgres-quick docs deny bench bench-quick sim setup setup-tests setup-bench clean

help: ## List the tasks.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-21s %s\n", $$1, $$2}'

run: build ## Build and start the server; ARGS='--tablePort 0' passes flags.
	@exec $(BINARY) $(ARGS)

build: setup ## Build the server.
	@test -x $(BINARY) || echo "Building Partita. The first build compiles RocksDB and takes about 12 minutes on 2 cores."
	$(CARGO) build --release --bin partita

test: setup-tests lint unit crash-quick docs deny conformance conformance-postgres-quick ## Run everything that CI runs.
	@echo "All tests passed."

lint: setup ## Check formatting and lints.
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --all-targets -- -D warnings

# Property tests take the same inputs every time here; plain `cargo test`, or another seed, takes others.
unit: export PROPTEST_RNG_SEED ?= 1
unit: setup ## Run the Rust tests.
	$(CARGO) test --release --workspace

docs: setup ## Build the documentation of the crates.
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --workspace --no-deps --document-private-items

deny: ## Check licences and sources of dependencies, with cargo-deny where it is installed.
	@scripts/deny

# The seed is printed; ARGS='--seed 7' asks the same again.
TORTURE = $(CARGO) build --release --bin torture && $(CARGO_TARGET_DIR)/release/torture

crash-quick: build ## Kill the server 250 times under load and check that nothing is lost, about a minute.
	@$(TORTURE) crash --crashes 250 --partita $(BINARY) $(ARGS)

crash: build ## The same 10,000 times, about an hour.
	@$(TORTURE) crash --crashes 10000 --partita $(BINARY) $(ARGS)

torture: build ## Check what many clients see at once, a minute, with restarts. ARGS='--seconds 600' passes flags.
	@$(TORTURE) history --seconds 60 --restarts --partita $(BINARY) $(ARGS)

torture-nodes: build ## The same on three nodes and one PostgreSQL, which fails over to a standby now and then.
	@$(TORTURE) history --nodes 3 --seconds 60 --restarts --failovers --partita $(BINARY) $(ARGS)

conformance: build ## Run the official SDKs against a fresh server.
	@scripts/conformance $(BINARY)

conformance-postgres: build ## The same against a server on a fresh PostgreSQL.
	@scripts/conformance --postgres $(BINARY)

# What is asked of the store does not depend on the SDK; one of them and plain HTTP, which has most cases, tell differences.
conformance-postgres-quick: build
	@SUITES="python raw" scripts/conformance --postgres $(BINARY)

# `make test` looks at a few disks for each test, this at many. A failure prints the seed that repeats it: make power ARGS='SEED=1'.
power: build ## Cut the power hundreds of times; ARGS='CUTS=50 SEED=1' sets how often.
	env CUTS=200 $(ARGS) $(CARGO) test --release -p partita-faults --test power -- --nocapture

dist: build ## Build the server as it is shipped: optimized as a whole and by a profile, stripped.
	@scripts/dist

BENCH = $(CARGO_TARGET_DIR)/dist/bench run --partita $(CARGO_TARGET_DIR)/dist/partita --azurite $(CACHE)/azurite \
	--data $(CARGO_TARGET_DIR)/bench

bench: setup-bench dist ## Compare with others, about 35 minutes; writes docs/benchmarks. ARGS passes flags.
	@$(BENCH) --out docs/benchmarks $(ARGS)

bench-quick: setup-bench dist ## Compare with others, less than 3 minutes.
	@$(BENCH) --quick --out $(CARGO_TARGET_DIR)/bench-quick $(ARGS)

sim: ## Simulate ranges under several key designs; writes the tables and the plot of docs/scale.md.
	$(CARGO) run --release -p partita-sim -- docs

FUZZ_SECONDS ?= 1800

fuzz: ## Fuzz each target for FUZZ_SECONDS (1800), with cargo-fuzz and a nightly compiler.
	@scripts/fuzz $(FUZZ_SECONDS)

fuzz-quick: ## Run the stored inputs of all fuzz targets; where cargo-fuzz is installed, fuzz each for 10 s.
	$(CARGO) test --release -p partita-fuzzing
	@FUZZ_OPTIONAL=1 scripts/fuzz 10

setup:
	@scripts/setup build

setup-tests:
	@scripts/setup test

setup-bench:
	@scripts/setup bench

clean: ## Remove what was built.
	$(CARGO) clean
