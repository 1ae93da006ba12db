# The commands of the README. `make demo` and `make test` install what is missing (tools/setup.sh says what).

SHELL := /bin/bash
PREFIX ?= $(CURDIR)/dist
# Flags of `cargo xtask dist`: --no-llvm, --profile NAME.
DIST_FLAGS ?=
CMAKE := cmake -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=$(PREFIX)
CTEST := ctest --output-on-failure --no-tests=error
# nextest where it is installed, else cargo's own runner.
CARGO_TEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo nextest run || echo test)

.PHONY: demo test ptx bench bench-graphs dist setup reference lint unit package examples differential steps bindings models clean fuzz fuzz-short check-memory memory-short deny loom loom-short check-threads

# Installs the package, builds every example against it, hears a melody with a real SavedModel (the notes in words and a
# picture), and trains a small network.
demo: dist
	PREFIX=$(PREFIX) tools/demo/run.sh

# Everything that must pass before a change lands.
test: lint unit ptx package examples differential steps bindings models fuzz-short memory-short loom-short

# Times and memory beside the reference, in one interleaved run.
bench: dist reference
	$(CMAKE) -S benches -B build/benches
	cmake --build build/benches
	tools/bench.py build/benches/bench --ours $(PREFIX)/lib/libtensorflow_cc.so.2

# Expressions and whole models beside the reference, op by op; the graphs are made once (0.9 GB, some minutes).
bench-graphs: dist reference
	$(CMAKE) -S benches -B build/benches
	cmake --build build/benches
	[ -f build/bench_graphs/bert_base_batch_8.pb ] || \
	    $$(tools/reference/setup.sh --where)/bin/python tools/models/bench_graphs.py build/bench_graphs
	FF_JIT=off tools/bench_graphs.py build/benches/bench_model build/bench_graphs --ours $(PREFIX)/lib/libtensorflow_cc.so.2

# The package, in the layout of a release archive, under PREFIX.
dist: setup
	cargo xtask dist --prefix $(PREFIX) $(DIST_FLAGS)

setup:
	tools/setup.sh

# The real TensorFlow that results are compared with, outside the repository.
reference: setup
	tools/reference/setup.sh

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo xtask tidy
	if cargo deny --version >/dev/null 2>&1; then cargo deny check licenses bans sources; fi

unit: setup
	cargo $(CARGO_TEST) --workspace

# PTX of fusions through NVIDIA's assembler; no GPU is needed.
ptx: setup
	FERROFLOW_PTXAS=$$(tools/ptxas.sh) cargo test -p ff-codegen --test ptx -- --nocapture

package: dist reference
	$(CMAKE) -S cmake/tests -B build/package-tests -DPREFIX=$(PREFIX) -DADD_SUBDIRECTORY=ON \
	    -DREFERENCE=$$(echo $$(tools/reference/setup.sh --where)/lib/python3*/site-packages/tensorflow)
	cmake --build build/package-tests
	$(CTEST) --test-dir build/package-tests

examples: dist reference
	BASIC_PITCH=$$(tools/demo/fetch_basic_pitch.sh) && \
	$(CMAKE) -S examples-c -B build/examples-c -DBASIC_PITCH_MODEL=$$BASIC_PITCH \
	    -DREFERENCE=$$(echo $$(tools/reference/setup.sh --where)/lib/python3*/site-packages/tensorflow)
	cmake --build build/examples-c
	$(CTEST) --test-dir build/examples-c
	$(CMAKE) -S examples-cpp -B build/examples-cpp
	cmake --build build/examples-cpp
	$(CTEST) --test-dir build/examples-cpp

# C programs that run on both libraries and must print the same.
differential: dist reference
	$(CMAKE) -S capi-tests -B build/capi-tests
	cmake --build build/capi-tests
	LD_LIBRARY_PATH=$(PREFIX)/lib $(CTEST) --test-dir build/capi-tests
	tools/capi_diff.py build/capi-tests --ours $(PREFIX)/lib

# State, waiting and control flow, step by step beside the reference.
steps: dist reference
	$$(tools/reference/setup.sh --where)/bin/python tools/reference/run_steps.py $(PREFIX)/lib/libtensorflow_cc.so.2

# The Rust binding of TensorFlow: all its tests and examples on our library.
bindings: dist
	PREFIX=$(PREFIX) tools/bindings/rust.sh

# Whole models and trainings, with what the reference computed (made once, some minutes), and checkpoints exchanged.
# MODEL_FLAGS=--all adds every network of keras.applications that fits; remove build/models when it changes.
MODEL_FLAGS ?=
models: differential
	BASIC_PITCH=$$(tools/demo/fetch_basic_pitch.sh) && \
	{ [ -f build/models/ops.tsv ] || $$(tools/reference/setup.sh --where)/bin/python tools/models/make_models.py \
	    build/models $(MODEL_FLAGS) --basic-pitch $$BASIC_PITCH; } && \
	tools/whole_models.py build/capi-tests --ours $(PREFIX)/lib --models build/models --basic-pitch $$BASIC_PITCH

# Changed inputs for every parser, for the ops and for the C calls, each target in turn; faults go to build/fuzz.
FUZZ_SECONDS ?= 300
FUZZ_SEED ?= 1
FUZZ := cargo run --quiet -p ff-fuzz -- run all --seed $(FUZZ_SEED)
fuzz: setup
	$(FUZZ) --seconds $(FUZZ_SECONDS)

fuzz-short: setup
	$(FUZZ) --seconds 4

# Every C test and example under valgrind, on a library that is not optimized.
check-memory: setup
	cargo xtask dist --profile dev --no-llvm --prefix $(CURDIR)/build/dist-dev
	cmake -DCMAKE_PREFIX_PATH=$(CURDIR)/build/dist-dev -S capi-tests -B build/capi-memory
	cmake --build build/capi-memory
	tools/check_memory.py build/capi-memory --ours build/dist-dev/lib
	cmake -DCMAKE_PREFIX_PATH=$(CURDIR)/build/dist-dev -S examples-c -B build/examples-memory
	cmake --build build/examples-memory
	cd build/examples-memory && $(MEMCHECK) ./hello && $(MEMCHECK) ./build_graph && $(MEMCHECK) ./strings && \
	$(MEMCHECK) ./load_saved_model $(CURDIR)/examples-c/data/patterns_saved_model serving_default 3 && \
	$(MEMCHECK) ./train $(CURDIR)/examples-c/data/train_adam.pb trained
MEMCHECK := valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite,indirect --error-exitcode=9 \
    --show-leak-kinds=definite,indirect --suppressions=$(CURDIR)/tools/valgrind.supp

# A part of it, on the package.
memory-short: differential
	tools/check_memory.py build/capi-tests --ours $(PREFIX)/lib --optimized

# Data races, by ThreadSanitizer; needs a nightly toolchain.
check-threads: setup
	tools/check_threads.sh

# Every interleaving (of few threads, with few switches) of what threads share: the pool, the executor's counters, the
# rendezvous, the queues' monitor, and the letters of runs that wait.
loom: setup
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=build/loom cargo test --release -p ff-kernels -p ff-op --lib loom
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=build/loom cargo test -p ff-ops --lib loom

# The same with fewer switches.
loom-short: setup
	LOOM_MAX_PREEMPTIONS=2 RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=build/loom \
	    cargo test --release -p ff-kernels -p ff-op --lib loom
	LOOM_MAX_PREEMPTIONS=2 RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=build/loom cargo test -p ff-ops --lib loom

# Licences and sources of dependencies.
deny:
	cargo deny --version || cargo install --locked cargo-deny
	cargo deny check licenses bans sources

clean:
	rm -rf build dist target
