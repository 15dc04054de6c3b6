# `make run` starts the server, `make test` runs everything that CI runs; both set up what they need.
SHELL := /bin/bash
CARGO ?= cargo
export CARGO_TARGET_DIR ?= $(CURDIR)/target
BINARY := $(CARGO_TARGET_DIR)/release/partita

.PHONY: help run build test lint unit conformance docs deny setup setup-tests clean

help: ## List the tasks.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

run: build ## Build and start the server; ARGS='--tablePort 0' passes flags.
	@exec $(BINARY) $(ARGS)

build: setup ## Build the server.
	@test -x $(BINARY) || echo "Building Partita. The first build compiles RocksDB and takes about 12 minutes on 2 cores."
	$(CARGO) build --release --bin partita

test: setup-tests lint unit docs deny conformance ## Run everything that CI runs.
	@echo "All tests passed."

lint: setup ## Check formatting and lints.
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --all-targets -- -D warnings

unit: setup ## Run the Rust tests.
	$(CARGO) test --release --workspace

docs: setup ## Build the documentation of the crates.
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --workspace --no-deps --document-private-items

deny: ## Check licences and sources of dependencies, with cargo-deny where it is installed.
	@scripts/deny

conformance: build ## Run the official SDKs against a fresh server.
	@scripts/conformance $(BINARY)

setup:
	@scripts/setup build

setup-tests:
	@scripts/setup test

clean: ## Remove what was built.
	$(CARGO) clean
