//! Topological orders: inputs first; of nodes that are ready, the one with the lowest number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The order of nodes that each wait for a number of others. `readers` lists, for each node, those that wait for it, as
/// often as they do. Shorter than `waiting` when there is a cycle.
pub fn by_number(mut waiting: Vec<u32>, readers: &[Vec<u32>]) -> Vec<u32> {
    let ready = (0..waiting.len() as u32).filter(|&node| waiting[node as usize] == 0);
    let mut ready: BinaryHeap<Reverse<u32>> = ready.map(Reverse).collect();
    let mut order = Vec::with_capacity(waiting.len());
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for &reader in &readers[node as usize] {
            let count = &mut waiting[reader as usize];
            // At 0 before: it waited for one of several, and that came.
            if *count == 1 {
                ready.push(Reverse(reader));
            }
            *count = count.saturating_sub(1);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_numbers_first_and_cycles_stay_out() {
        // 2 -> 0 -> 1, 3 <-> 4.
        let readers = vec![vec![1], vec![], vec![0], vec![4], vec![3]];
        assert_eq!(by_number(vec![1, 1, 0, 1, 1], &readers), [2, 0, 1]);
    }
}
