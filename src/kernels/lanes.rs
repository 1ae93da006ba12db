//! One fold of a contiguous row: a fixed number of lanes side by side, which are then combined in a tree.
//!
//! The order depends on the length alone, so a result has the same bits on every processor. Everything is of fixed size
//! and indexed by constants, so the lanes of a row stay in registers until they are combined.

/// Elements that are folded side by side.
pub const LANES: usize = 32;

/// Rows that [`fold_rows`] takes together: while one waits for its tree, the next is under way.
pub const TOGETHER: usize = 8;

/// `combine` over all `map(x)`; `identity` must be neutral.
#[inline(always)]
pub fn fold<T: Copy, A: Copy>(
    x: &[T],
    identity: A,
    map: impl Fn(T) -> A + Copy,
    combine: impl Fn(A, A) -> A + Copy,
) -> A {
    let mut lanes = [side_by_side(x, identity, map, combine)];
    trees(&mut lanes, combine);
    lanes[0][0]
}

/// [`fold`] of each of at most [`TOGETHER`] rows of `width` elements.
#[inline(always)]
pub fn fold_rows<T: Copy, A: Copy>(
    x: &[T],
    width: usize,
    identity: A,
    map: impl Fn(T) -> A + Copy,
    combine: impl Fn(A, A) -> A + Copy,
) -> [A; TOGETHER] {
    let mut lanes = [[identity; LANES]; TOGETHER];
    for (lanes, x) in lanes.iter_mut().zip(x.chunks_exact(width)) {
        *lanes = side_by_side(x, identity, map, combine);
    }
    trees(&mut lanes, combine);
    let mut results = [identity; TOGETHER];
    for (result, lanes) in results.iter_mut().zip(&lanes) {
        *result = lanes[0];
    }
    results
}

/// Lane `i` folds the elements `i`, `i + 32`, `i + 64` and so on.
#[inline(always)]
fn side_by_side<T: Copy, A: Copy>(
    x: &[T],
    identity: A,
    map: impl Fn(T) -> A + Copy,
    combine: impl Fn(A, A) -> A + Copy,
) -> [A; LANES] {
    let mut lanes = [identity; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &v) in lanes.iter_mut().zip(chunk) {
            *lane = combine(*lane, map(v));
        }
    }
    if !rest.is_empty() {
        // Not `lanes` itself: an index that varies would keep it in memory.
        let mut last = [identity; LANES];
        for (last, &v) in last.iter_mut().zip(rest) {
            *last = map(v);
        }
        for (lane, last) in lanes.iter_mut().zip(last) {
            *lane = combine(*lane, last);
        }
    }
    lanes
}

/// The lower half of each row's lanes with the upper half, until lane 0 is left.
#[inline(always)]
fn trees<A: Copy>(rows: &mut [[A; LANES]], combine: impl Fn(A, A) -> A + Copy) {
    halve::<A, 16>(rows, combine);
    halve::<A, 8>(rows, combine);
    halve::<A, 4>(rows, combine);
    halve::<A, 2>(rows, combine);
    halve::<A, 1>(rows, combine);
}

#[inline(always)]
fn halve<A: Copy, const N: usize>(rows: &mut [[A; LANES]], combine: impl Fn(A, A) -> A) {
    for lanes in rows {
        let (low, high) = lanes.split_at_mut(N);
        for (low, &high) in low.iter_mut().zip(&high[..N]) {
            *low = combine(*low, high);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length() {
        for length in 0..200_usize {
            let x: Vec<u32> = (1..=length as u32).collect();
            assert_eq!(
                fold(&x, 0, |v| v, |a, b| a + b),
                (length * (length + 1) / 2) as u32
            );
            assert_eq!(fold(&x, 0, |v| v * 3, u32::max), 3 * length as u32);
            let many = x.repeat(3);
            let sum = (length * (length + 1) / 2) as u32;
            if length > 0 {
                let sums = fold_rows(&many, length, 0, |v| v, |a, b| a + b);
                assert_eq!(sums, [sum, sum, sum, 0, 0, 0, 0, 0]);
            }
        }
    }

    /// Lane `i` takes elements `i`, `i + 32`, ...; the tree combines lanes 16 apart first.
    #[test]
    fn order() {
        let x: Vec<String> = (0..35).map(|i| i.to_string()).collect();
        let parts: Vec<&str> = x.iter().map(String::as_str).collect();
        let leaf = |text: &str| Box::leak(text.to_owned().into_boxed_str()) as &'static str;
        let parts: Vec<&'static str> = parts.into_iter().map(leaf).collect();
        let joined = fold(&parts, "", |v| v, |a, b| leaf(&format!("{a} {b}")));
        let order: Vec<usize> = joined.split_whitespace().map(|v| v.parse().unwrap()).collect();
        assert_eq!(order[..5], [0, 32, 16, 8, 24]);
        assert_eq!(order.len(), 35);
    }
}
