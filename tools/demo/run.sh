#!/usr/bin/env bash
# The demo: builds every example against the installed package, fetches a published model and lets it hear a melody, then
# trains a small network.
#
#   PREFIX=<installation> tools/demo/run.sh
#
# Prints the notes and the losses; leaves the melody (WAV), a picture of what the network heard (PNG) and the trained
# checkpoint in build/demo.
set -euo pipefail
cd "$(dirname "$0")/../.."

prefix=${PREFIX:-$PWD/dist}
step() { printf '\n== %s\n' "$*"; }

step "The examples in C and C++, built against $prefix"
for language in c cpp; do
    cmake -S "examples-$language" -B "build/examples-$language" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
    cmake --build "build/examples-$language" | grep -i -e 'built target' -e warning -e error
done

step "A published model (basic-pitch 0.4.0, a SavedModel) hears a melody"
model=$(tools/demo/fetch_basic_pitch.sh build/demo)
build/examples-c/basic_pitch "$model" build/demo

step "A small convolutional network learns to tell stripes apart, and is saved and restored"
build/examples-c/train examples-c/data/train_adam.pb build/demo/trained

step "Ready: the package is in $prefix, the melody and the picture are in $PWD/build/demo"
