# Two commands do it all on a fresh Debian 12 (root or sudo):
#   make run    install what is missing, build, and run the relay with its built-in demo
#   make test   install what is missing, build, and pass all tests
# And for elements in WebAssembly:
#   make plugins   build their compiler, which the relay finds beside itself

SHELL := /bin/bash
# The second is for a newer Go than the system has (scripts/setup).
export PATH := $(HOME)/.cargo/bin:$(CURDIR)/target/tools/go/bin:$(PATH)
export CARGO_TERM_COLOR ?= auto
# What is built once needs no notes for the next time: they fill disks.
export CARGO_INCREMENTAL ?= 0

DEMO_ARGS ?=

.PHONY: run plugins test unit e2e tidy ci labs clip help

run:
	@exec scripts/run $(DEMO_ARGS)

plugins:
	@scripts/setup run
	@cargo build --release --locked --package outflow-plugin-compiler

# The tests of these folders by name, as cargo wants them; names differ across the workspace.
tests = $(addprefix --test ,$(filter-out $(end_to_end),$(sort $(foreach folder,$(1), \
    $(basename $(notdir $(wildcard $(folder)/tests/*.rs))) \
    $(notdir $(patsubst %/main.rs,%,$(wildcard $(folder)/tests/*/main.rs)))))))

# The programs that have tests, as cargo wants them. Others would be built a second time, for nothing.
tested = $(shell grep -rlE '\#\[(tokio::)?test|proptest!' $(1) --include=*.rs)
programs = --bin outflow --bin outflow-plugin-compiler $(patsubst labs/%/main.rs,--bin lab-%,$(wildcard $(addsuffix /main.rs, \
    $(sort $(foreach file,$(call tested,labs),labs/$(word 2,$(subst /, ,$(file))))))))

test: unit e2e

# Tests of crates that need namespaces, too: scripts/e2e has them.
end_to_end = kernel nats

# Everything but the end-to-end tests. What a test needs and does not find, it says on standard error.
unit:
	@scripts/setup test
	@scripts/tidy
	@cargo test --locked --workspace --lib $(programs) $(call tests,crates/* crates/front/*)
	@cargo test --locked --workspace --doc

# Real publishers and players in network namespaces.
e2e:
	@scripts/setup test
	@scripts/e2e

tidy:
	@scripts/tidy

ci:
	@.ci/run

# Every lab in short; each prints its figures as one line of JSON. They want a quiet machine.
LABS ?= $(patsubst labs/%/run,%,$(wildcard labs/*/run))

labs:
	@scripts/setup test
	@for lab in $(LABS); do echo "== labs/$$lab/run --quick" >&2; labs/$$lab/run --quick --json || exit 1; done

# Make assets/live.ts and assets/demo.ts again.
clip:
	@scripts/setup test
	@scripts/make-demo-clip

help:
	@echo "make run | plugins | test | unit | e2e | tidy | ci | labs | clip"
