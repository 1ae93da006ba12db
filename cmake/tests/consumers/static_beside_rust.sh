#!/bin/sh
# static_beside_rust.sh PREFIX CC RUSTC OUTPUT: the static library together with another Rust static library, in both
# orders: their standard libraries must not clash.
set -eu
prefix=$1 cc=$2 rustc=$3 output=$4
mkdir -p "$output"
cat >"$output/other.rs" <<'RUST'
//! Another Rust library in the same program.

/// Panics inside and catches it, which needs this library's own unwinder and allocator.
#[unsafe(no_mangle)]
pub extern "C" fn other_answer() -> i32 {
    let caught = std::panic::catch_unwind(|| panic!("{}", String::from("caught here")));
    if caught.is_err() { 42 } else { 0 }
}
RUST
cat >"$output/main.c" <<'C'
extern int other_answer(void);
extern int consumer_main(void);
int main(void) { return other_answer() == 42 ? consumer_main() : 1; }
C
"$rustc" --edition 2024 --crate-type staticlib -C panic=unwind -o "$output/libother.a" "$output/other.rs"
"$cc" -c -Dmain=consumer_main -I"$prefix/include" "$(dirname "$0")/consumer.c" -o "$output/consumer.o"
ours=$prefix/lib/libtensorflow_cc.a theirs=$output/libother.a
for order in first last; do
    [ $order = first ] && set -- "$ours" "$theirs" || set -- "$theirs" "$ours"
    "$cc" "$output/main.c" "$output/consumer.o" "$@" -lm -ldl -lpthread -o "$output/program"
    "$output/program" 2>/dev/null
done
