#!/bin/bash
# Looks for data races with ThreadSanitizer: in the stress tests of the runtime (thousands of steps), in the tests of the
# thread pool and of what threads share, and in the C programs `sharing` and `threads`.
#
#     tools/check_threads.sh [NAME...]
#
# NAMEs are cases of the C programs ("sharing/a_session"); without any, all run. The library and Rust's standard library are
# compiled for it by a nightly toolchain (`rustup toolchain install nightly`), into build/threads. Exits with 1 when a race is
# found, with 77 without such a toolchain.
#
# Why not helgrind: it follows pthread's locks. Rust's are futexes, so everything behind one is a race to it (147 places in
# sharing/a_session, parking_lot's own queue the first), and no suppression could tell a race from that. ThreadSanitizer
# follows atomics, which the locks are made of, so nothing has to be suppressed. That it sees the library is checked with a
program that shares a status among threads, which nobody may.
set -e -o pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD

TARGET=x86_64-unknown-linux-gnu
if ! rustc +nightly --version >/dev/null 2>&1; then
    echo "no nightly toolchain"
    exit 77
fi
rustup component add rust-src --toolchain nightly >/dev/null 2>&1 || true

export CARGO_TARGET_DIR=$PWD/build/threads
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=line-tables-only
export TSAN_OPTIONS="halt_on_error=0 exitcode=66 history_size=4"

# ThreadSanitizer knows no fences. Where the standard library's Arc has one when the last owner goes, it has a load instead
# under ThreadSanitizer; here the same is done to triomphe's, which tensors' buffers are behind.
cargo fetch --quiet --locked
SOURCE=$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/triomphe-"$(cargo pkgid triomphe | sed 's/.*@//')")
mkdir -p "$CARGO_TARGET_DIR"
if [ ! -d "$CARGO_TARGET_DIR/triomphe" ]; then
    cp -a "$SOURCE" "$CARGO_TARGET_DIR/triomphe"
    sed -i 's/^        atomic::fence(Acquire);/        self.inner().count.load(Acquire);/' "$CARGO_TARGET_DIR/triomphe/src/arc.rs"
    grep -q 'count.load(Acquire);$' "$CARGO_TARGET_DIR/triomphe/src/arc.rs"
fi
cp Cargo.lock "$CARGO_TARGET_DIR/Cargo.lock"
trap 'cp "$CARGO_TARGET_DIR/Cargo.lock" "$ROOT/Cargo.lock"' EXIT

tsan_cargo() {
    RUSTFLAGS="-Zsanitizer=thread" cargo +nightly --config "patch.crates-io.triomphe.path='$CARGO_TARGET_DIR/triomphe'" \
        "$1" -Zbuild-std --target $TARGET "${@:2}"
}

tsan_cargo rustc -p ff-c-api --no-default-features --crate-type cdylib
if [ $# = 0 ]; then
    tsan_cargo test -p ff-op -p ff-kernels --lib -- pool jobs rendezvous mailbox
    tsan_cargo test -p ff-runtime --test stress --test waiting_functions --test sessions
fi

# The C programs, with the runtime that the compiler brings: it must be in the program, not in a library.
RUNTIME=$(rustc +nightly --print sysroot)/lib/rustlib/$TARGET/lib/librustc-nightly_rt.tsan.a
OUT=$CARGO_TARGET_DIR/capi
mkdir -p "$OUT"
ln -sf "$CARGO_TARGET_DIR/$TARGET/debug/libff_c_api.so" "$OUT/libff_c_api.so"
compile() { # program source...
    cc -g -O1 -std=c99 -D_GNU_SOURCE -Iinclude -o "$OUT/$1" "${@:2}" -rdynamic -Wl,--whole-archive "$RUNTIME" \
        -Wl,--no-whole-archive -L"$OUT" -lff_c_api -lpthread -ldl -lm -lrt
}
for program in sharing threads; do
    compile $program capi-tests/$program.c capi-tests/harness/*.c
done
cat >"$OUT/racy.c" <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <tensorflow/c/tf_status.h>
static void* set(void* status) {
    for (int i = 0; i < 1000; ++i) TF_SetStatus(status, TF_ABORTED, "set");
    return NULL;
}
int main(void) {
    TF_Status* status = TF_NewStatus();
    pthread_t thread;
    pthread_create(&thread, NULL, set, status);
    set(status);
    pthread_join(thread, NULL);
    return 0;
}
END
compile racy "$OUT/racy.c"
if ! { LD_LIBRARY_PATH=$OUT "$OUT/racy" 2>&1 || true; } | grep "WARNING: ThreadSanitizer: data race" >/dev/null; then
    echo "a race is not found"
    exit 1
fi

# Memory is not judged here: ThreadSanitizer's own is part of it.
NAMES=("$@")
if [ $# = 0 ]; then
    NAMES=(sharing threads/one_session threads/many_sessions threads/building_while_running)
fi
failed=0
for name in "${NAMES[@]}"; do
    log=$OUT/$(echo "$name" | tr / .).log
    case=${name#*/}
    [ "$case" = "$name" ] && case=
    code=0
    # shellcheck disable=SC2086 # no case is no argument
    (cd "$OUT" && LD_LIBRARY_PATH=$OUT TF_CPP_MIN_LOG_LEVEL=3 "./${name%%/*}" --no-fork --data="$ROOT/examples-c/data" $case) \
        >"$log" 2>&1 || code=$?
    races=$(grep -c "WARNING: ThreadSanitizer" "$log" || true)
    if [ "$races" != 0 ] || [ $code -gt 1 ]; then
        echo "$name: $races reports, exit $code: $log"
        failed=1
    else
        echo "$name: fine"
    fi
done
exit $failed
