#!/bin/sh
# pkg_config.sh KIND PREFIX CC OUTPUT: compiles and runs the consumer with the flags that pkg-config prints.
set -eu
kind=$1 prefix=$2 cc=$3 output=$4
PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
export PKG_CONFIG_PATH
source=$(dirname "$0")/consumer.c
pkg-config --exact-version=2.21.0 tensorflow tensorflow_cc
case $kind in
static) names="tensorflow tensorflow_cc" mode=--static ;;
*) names=$kind mode= ;;
esac
for name in $names; do
    # The flags quote spaces for a shell.
    flags=$(pkg-config $mode --cflags --libs "$name")
    eval "\"\$cc\" \"\$source\" $flags -o \"\$output\""
    if [ "$mode" = --static ]; then
        # Runs where there is no shared library, and does not name one.
        "$output"
        if command -v readelf >/dev/null && readelf -d "$output" | grep tensorflow; then
            exit 1
        fi
    else
        LD_LIBRARY_PATH="$prefix/lib" DYLD_LIBRARY_PATH="$prefix/lib" "$output"
    fi
done
