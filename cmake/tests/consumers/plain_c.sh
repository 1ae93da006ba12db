#!/bin/sh
# plain_c.sh PREFIX CC OUTPUT: the shortest command lines, shared by each name and static, by each linker there is.
set -eu
prefix=$1 cc=$2 output=$3
source=$(dirname "$0")/consumer.c
for name in tensorflow tensorflow_cc tensorflow_framework; do
    "$cc" "$source" -I"$prefix/include" -L"$prefix/lib" "-l$name" -o "$output"
    LD_LIBRARY_PATH="$prefix/lib" DYLD_LIBRARY_PATH="$prefix/lib" "$output"
done
for linker in "" bfd gold lld mold; do
    command -v "ld${linker:+.}$linker" >/dev/null || continue
    "$cc" ${linker:+-fuse-ld=$linker} "$source" -I"$prefix/include" "$prefix/lib/libtensorflow_cc.a" -lm -ldl -lpthread -o "$output"
    echo "static, ${linker:-default linker}:"
    "$output"
    # With the linker's own clean-up of unreachable code, too.
    "$cc" ${linker:+-fuse-ld=$linker} -Wl,--gc-sections "$source" -I"$prefix/include" "$prefix/lib/libtensorflow_cc.a" \
        -lm -ldl -lpthread -o "$output" 2>/dev/null || { [ "$(uname)" != Linux ] && continue; exit 1; }
    "$output"
done
