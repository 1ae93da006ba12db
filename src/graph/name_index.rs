//! Nodes by name, without copies of the names: by their hashes, and by names where two hashes are equal.

use crate::NodeId;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{BuildHasher, BuildHasherDefault};

/// Nodes by name. The names themselves are the caller's, who gives them by number.
#[derive(Clone, Default)]
pub struct NameIndex {
    by_hash: FxHashMap<u64, NodeId>,
    /// Names whose hash another name had before.
    others: FxHashMap<Box<str>, NodeId>,
}

fn hash(name: &str) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(name)
}

impl NameIndex {
    /// The node with this name; `name_of` gives the names of nodes.
    pub fn find<'a>(&self, name: &str, name_of: impl Fn(NodeId) -> &'a str) -> Option<NodeId> {
        let found = self.by_hash.get(&hash(name)).copied();
        let found = found.filter(|&id| name_of(id) == name);
        if self.others.is_empty() {
            return found;
        }
        found.or_else(|| self.others.get(name).copied())
    }

    /// Makes room for so many more names.
    pub fn reserve(&mut self, names: usize) {
        self.by_hash.reserve(names);
    }

    /// Adds a node under a name that no other has.
    pub fn insert(&mut self, name: &str, id: NodeId) {
        if *self.by_hash.entry(hash(name)).or_insert(id) != id {
            self.others.insert(name.into(), id);
        }
    }

    /// Takes a node out.
    pub fn remove(&mut self, name: &str, id: NodeId) {
        let hash = hash(name);
        if self.by_hash.get(&hash) == Some(&id) {
            self.by_hash.remove(&hash);
        } else {
            self.others.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_do_not_mix_names_up() {
        let name_of = |id: NodeId| ["a", "b", "c"][id as usize];
        let mut index = NameIndex::default();
        index.insert("a", 0);
        // As if `b` had the hash of `a`.
        index.by_hash.insert(hash("b"), 0);
        index.insert("b", 1);
        index.insert("c", 2);
        let find = |index: &NameIndex| ["a", "b", "c", "d"].map(|name| index.find(name, name_of));
        assert_eq!(find(&index), [Some(0), Some(1), Some(2), None]);
        index.remove("b", 1);
        assert_eq!(find(&index), [Some(0), None, Some(2), None]);
        index.remove("c", 2);
        assert_eq!(find(&index), [Some(0), None, None, None]);
    }
}
