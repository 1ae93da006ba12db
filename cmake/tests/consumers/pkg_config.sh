#!/bin/sh
# pkg_config.sh KIND PREFIX CC OUTPUT: compiles and runs the consumer with the flags that pkg-config prints.
set -eu
kind=$1 prefix=$2 cc=$3 output=$4
PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
export PKG_CONFIG_PATH
source=$(dirname "$0")/consumer.c
pkg-config --exact-version=2.21.0 tensorflow tensorflow_cc
case $kind in
static)
    flags=$(pkg-config --static --cflags --libs tensorflow_cc | sed 's/-ltensorflow_cc/-l:libtensorflow_cc.a/')
    [ "$(uname)" = Linux ] || exit 0
    ;;
*) flags=$(pkg-config --cflags --libs "$kind") ;;
esac
# The flags quote spaces for a shell.
eval "\"\$cc\" \"\$source\" $flags -o \"\$output\""
LD_LIBRARY_PATH="$prefix/lib" DYLD_LIBRARY_PATH="$prefix/lib" "$output"
