#!/bin/sh
# exported.sh LIBRARY NODE...: what a shared library exports is every function that TensorFlow 2.21 exports (functions.txt)
# but for those of missing.txt, our own that begin with FF_, and nothing else; each under every version node.
set -eu
folder=$(dirname "$0")
library=$1
shift
expected=$(mktemp) exported=$(mktemp) symbols=$(mktemp)
trap 'rm -f "$expected" "$exported" "$symbols"' EXIT
export LC_ALL=C
nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' > "$symbols"
grep -v '^#' "$folder/missing.txt" | sort > "$exported" || true
sort "$folder/functions.txt" | comm -23 - "$exported" > "$expected"
sed 's/@.*//' "$symbols" | sort -u | grep -v '^FF_' > "$exported"
status=0
for name in $(comm -23 "$expected" "$exported"); do
    echo "missing: $name"
    status=1
done
for name in $(comm -13 "$expected" "$exported"); do
    if grep -qx "$name" "$folder/missing.txt"; then
        echo "no longer missing, to be taken out of missing.txt: $name"
    else
        echo "not to be exported: $name"
    fi
    status=1
done
for node in "$@"; do
    for name in $(sed -n "s/@@*$node\$//p" "$symbols" | sort -u | comm -23 "$exported" -); do
        echo "not under $node: $name"
        status=1
    done
done
echo "$(wc -l < "$exported") functions"
exit $status
