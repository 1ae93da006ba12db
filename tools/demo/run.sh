#!/usr/bin/env bash
# The demo: builds the C example against the installed package, fetches the model, and lets it hear a melody.
#
#   PREFIX=<installation> tools/demo/run.sh
#
# Prints the notes; leaves the melody (WAV) and a picture of what the network heard (PNG) in build/demo.
set -euo pipefail
cd "$(dirname "$0")/../.."

prefix=${PREFIX:-$PWD/build/dist}
model=$(tools/demo/fetch_basic_pitch.sh build/demo)
cmake -S examples-c -B build/examples-c -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build build/examples-c --target basic_pitch >/dev/null
build/examples-c/basic_pitch "$model" build/demo
