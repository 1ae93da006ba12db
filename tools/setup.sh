#!/usr/bin/env bash
# Installs what building and testing need beside the Rust toolchain. Prints what it is about to install; installs
# nothing that is there. Works as root, or with sudo.
#
#   tools/setup.sh           everything
#   tools/setup.sh build     only what the library needs
set -euo pipefail

BUILD=(
    g++            # C compiler, linker, static C++ library
    llvm-22-dev    # the compiler's back end, as static archives
    libzstd-dev    # LLVM compresses debug sections by these two
    zlib1g-dev
)
TEST=(
    make
    cmake          # package, examples, C tests
    pkg-config
    python3-venv   # the reference, and scripts that compare with it
    python3-pip
    libclang-22-dev # binds the C headers back to Rust
    libprotobuf-dev # a program with it and with the library
    protobuf-compiler
    valgrind       # memory checks of the C tests
)

wanted=("${BUILD[@]}")
[ "${1:-}" = build ] || wanted+=("${TEST[@]}")

if ! command -v cargo >/dev/null; then
    echo "cargo is missing: install the Rust toolchain (1.90 or newer) first" >&2
    exit 1
fi

if ! command -v apt-get >/dev/null; then
    cat >&2 <<'TEXT'
This script knows Debian's packages. Elsewhere, install
  macOS    xcode-select --install; brew install llvm@22 zstd cmake pkg-config
  Windows  Visual Studio build tools, LLVM 22 with llvm-config, CMake; set LLVM_SYS_221_PREFIX
  others   a C++ compiler with its static library, LLVM 22 as static archives, zlib, zstd, CMake, pkg-config
TEXT
    exit 0
fi

missing=()
for package in "${wanted[@]}"; do
    dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo)
echo "installing: ${missing[*]}"
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
