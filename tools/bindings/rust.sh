#!/usr/bin/env bash
# Tests the Rust binding of TensorFlow on our library: the crate `tensorflow` 0.21.0, all its tests, and six of its examples.
#
#   PREFIX=<installation> tools/bindings/rust.sh
#
# The crate comes from cargo's registry, is checked, and finds the library by pkg-config. It is unpacked and built in
# $FERROFLOW_BINDINGS, else ferroflow/bindings in the user's cache folder. The example that is not run, mobilenetv3, needs a
# model that Python makes.
set -euo pipefail
cd "$(dirname "$0")/../.."

VERSION=0.21.0
SHA256=70a5aa784c60e18bcca7f79fde117bd7209a30247d3242e9127a7d9496e66272
FEATURES="eager tensorflow_unstable ndarray"
EXAMPLES=(addition expressions regression regression_checkpoint regression_savedmodel xor)
TESTS_PASSED=107

prefix=$(realpath "${PREFIX:-dist}")
folder=${FERROFLOW_BINDINGS:-${XDG_CACHE_HOME:-$HOME/.cache}/ferroflow/bindings}
crate=$folder/tensorflow-$VERSION
mkdir -p "$folder"

if [ ! -f "$crate/Cargo.toml" ]; then
    echo "fetching the crate tensorflow $VERSION into $folder" >&2
    asking=$folder/asking
    mkdir -p "$asking/src"
    : >"$asking/src/lib.rs"
    cat >"$asking/Cargo.toml" <<TOML
[package]
name = "asking"
version = "0.0.0"
edition = "2021"
[dependencies]
tensorflow = { version = "=$VERSION", default-features = false }
[workspace]
TOML
    cargo fetch --quiet --manifest-path "$asking/Cargo.toml"
    packed=$(echo "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/"tensorflow-$VERSION.crate")
    echo "$SHA256  $packed" | sha256sum --check --quiet
    tar -xzf "$packed" -C "$folder"
    rm -r "$asking"
fi

export CARGO_TARGET_DIR=$folder/target CARGO_PROFILE_DEV_DEBUG=0
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib TF_CPP_MIN_LOG_LEVEL=2
# Examples write where they are run; the crate stays as it came.
rm -rf "$folder/work"
cp -a "$crate" "$folder/work"
cd "$folder/work"

log=$folder/tests.log
# The warnings of code that is not ours say nothing here.
export RUSTFLAGS="${RUSTFLAGS:-} --cap-lints allow"
cargo test --quiet --locked --features "$FEATURES" 2>&1 | tee "$log" | tail -n 40
grep -q "test result: ok. $TESTS_PASSED passed; 0 failed" "$log" || {
    echo "not all of the crate's $TESTS_PASSED tests passed; $log has their output" >&2
    exit 1
}
for example in "${EXAMPLES[@]}"; do
    echo "== example $example"
    cargo run --quiet --locked --features "$FEATURES" --example "$example"
done
