//! A graph without cycles whose nodes can be joined along edges, as long as it stays without cycles.
//!
//! Every group of joined nodes has a rank, and edges go from lower to higher ranks. Joining two groups looks only at groups
//! whose ranks lie between theirs, and gives those new ranks where it must (the order maintenance of Pearce and Kelly,
//! "A dynamic topological sort algorithm for directed acyclic graphs", 2007).

use rustc_hash::FxHashSet;

/// Groups looked at for one join; beyond that it is refused.
const MOST_VISITED: usize = 4096;

/// See the module.
pub struct Groups {
    parent: Vec<u32>,
    size: Vec<u32>,
    /// By representative.
    rank: Vec<u32>,
    /// Members that edges lead to, of any group, by representative.
    after: Vec<Vec<u32>>,
    before: Vec<Vec<u32>>,
}

impl Groups {
    /// One group for each node. `order` lists all nodes, sources of edges first.
    pub fn new(order: &[u32], edges: impl Iterator<Item = (u32, u32)>) -> Groups {
        let nodes = order.len();
        let mut rank = vec![0; nodes];
        for (position, &node) in order.iter().enumerate() {
            rank[node as usize] = position as u32;
        }
        let mut groups = Groups {
            parent: (0..nodes as u32).collect(),
            size: vec![1; nodes],
            rank,
            after: vec![Vec::new(); nodes],
            before: vec![Vec::new(); nodes],
        };
        for (from, to) in edges {
            groups.after[from as usize].push(to);
            groups.before[to as usize].push(from);
        }
        groups
    }

    /// The node that stands for a node's group.
    pub fn find(&self, node: u32) -> u32 {
        let mut at = node;
        while self.parent[at as usize] != at {
            at = self.parent[at as usize];
        }
        at
    }

    /// Number of nodes in a node's group.
    pub fn size(&self, node: u32) -> u32 {
        self.size[self.find(node) as usize]
    }

    /// The rank of a node's group: edges go to higher ranks.
    pub fn rank(&self, node: u32) -> u32 {
        self.rank[self.find(node) as usize]
    }

    /// Joins the groups of two nodes, with an edge from the first to the second. Whether it did: not when another path
    /// leads from the first to the second, which would become a cycle.
    pub fn join(&mut self, first: u32, second: u32) -> bool {
        let (first, second) = (self.find(first), self.find(second));
        if first == second {
            return true;
        }
        let (low, high) = (self.rank[first as usize], self.rank[second as usize]);
        if low > high {
            return false;
        }
        let Some(behind) = self.reached(first, second, &self.after, |rank| rank < high) else {
            return false;
        };
        let Some(ahead) = self.reached(second, first, &self.before, |rank| rank > low) else {
            return false;
        };
        let joined = self.unite(first, second);
        self.order_again(&ahead, joined, &behind, low, high);
        true
    }

    /// Groups other than `start` and `other` that edges lead to from `start` without leaving the ranks that are `within`.
    /// None when one of them leads to `other`, or when they are too many.
    fn reached(
        &self,
        start: u32,
        other: u32,
        edges: &[Vec<u32>],
        within: impl Fn(u32) -> bool,
    ) -> Option<Vec<u32>> {
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut found = Vec::new();
        let mut stack = vec![start];
        while let Some(at) = stack.pop() {
            for &next in &edges[at as usize] {
                let next = self.find(next);
                if next == other && at != start {
                    return None;
                }
                if next == other || next == start || !within(self.rank[next as usize]) || !seen.insert(next) {
                    continue;
                }
                if found.len() == MOST_VISITED {
                    return None;
                }
                found.push(next);
                stack.push(next);
            }
        }
        Some(found)
    }

    /// Makes one group of two; gives the node that stands for it.
    fn unite(&mut self, a: u32, b: u32) -> u32 {
        let (large, small) = if self.size[a as usize] >= self.size[b as usize] {
            (a, b)
        } else {
            (b, a)
        };
        self.parent[small as usize] = large;
        self.size[large as usize] += self.size[small as usize];
        for edges in [&mut self.after, &mut self.before] {
            let moved = std::mem::take(&mut edges[small as usize]);
            edges[large as usize].extend(moved);
        }
        large
    }

    /// Hands the ranks of these groups, and the two of the joined one, out anew: `ahead`, joined, `behind`.
    fn order_again(&mut self, ahead: &[u32], joined: u32, behind: &[u32], low: u32, high: u32) {
        let sorted = |groups: &[u32]| {
            let mut groups = groups.to_vec();
            groups.sort_unstable_by_key(|&group| self.rank[group as usize]);
            groups
        };
        let (ahead, behind) = (sorted(ahead), sorted(behind));
        let taken = ahead
            .iter()
            .chain(&behind)
            .map(|&group| self.rank[group as usize]);
        let mut ranks: Vec<u32> = taken.chain([low, high]).collect();
        ranks.sort_unstable();
        let last = ranks.len() - behind.len();
        let before = ahead.iter().zip(&ranks);
        let after = behind.iter().zip(&ranks[last..]);
        for (&group, &rank) in before.chain(after) {
            self.rank[group as usize] = rank;
        }
        self.rank[joined as usize] = ranks[ahead.len()];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(nodes: u32, edges: &[(u32, u32)]) -> Groups {
        Groups::new(&(0..nodes).collect::<Vec<_>>(), edges.iter().copied())
    }

    fn ranks_follow(groups: &Groups, edges: &[(u32, u32)]) -> bool {
        edges
            .iter()
            .all(|&(a, b)| groups.find(a) == groups.find(b) || groups.rank(a) < groups.rank(b))
    }

    #[test]
    fn a_second_path_forbids_joining() {
        let edges = [(0, 1), (1, 2), (0, 2)];
        let mut groups = groups(3, &edges);
        assert!(!groups.join(0, 2));
        assert!(groups.join(0, 1));
        assert!(groups.join(0, 2));
        assert_eq!(groups.size(1), 3);
    }

    #[test]
    fn what_lies_between_is_moved() {
        // 0 -> 3, with 1 ahead of 3 and 2 behind 0.
        let edges = [(0, 3), (1, 3), (0, 2)];
        let mut groups = groups(4, &edges);
        assert!(groups.join(0, 3));
        assert!(ranks_follow(&groups, &edges));
        assert!(groups.rank(1) < groups.rank(0) && groups.rank(0) < groups.rank(2));
    }

    #[test]
    fn random_joins_never_make_a_cycle() {
        let mut state = 7u64;
        let mut random = |below: u32| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            ((state >> 33) % u64::from(below)) as u32
        };
        for _ in 0..200 {
            let nodes = 2 + random(30);
            let mut edges = Vec::new();
            for _ in 0..random(80) {
                let (a, b) = (random(nodes), random(nodes));
                if a < b {
                    edges.push((a, b));
                }
            }
            let mut groups = groups(nodes, &edges);
            for _ in 0..edges.len() * 2 {
                let (a, b) = edges[random(edges.len() as u32) as usize];
                groups.join(a, b);
                // Ranks that follow all edges between groups are a proof that there is no cycle.
                assert!(ranks_follow(&groups, &edges), "{edges:?}");
            }
        }
    }
}
