//! Names of nodes and tensors in GraphDefs: what is valid, how inputs are written, which names are taken.

use crate::Graph;
use rustc_hash::{FxHashMap, FxHashSet};

/// What stands for a control edge in place of an output number.
pub const CONTROL: u32 = u32::MAX;

/// Whether a name is one that imported nodes can have: a letter, digit or dot, then also `_ - / > \`.
pub fn is_node_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let is_first = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.';
    let is_rest = |byte: &u8| is_first(byte) || matches!(byte, b'_' | b'-' | b'/' | b'>' | b'\\');
    bytes.first().is_some_and(is_first) && bytes[1..].iter().all(is_rest)
}

/// The node and output that an input of a NodeDef means: `node`, `node:1`, `^node`.
pub fn parse_input(text: &str) -> (&str, u32) {
    if let Some((node, digits)) = text.rsplit_once(':')
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && let Ok(index) = digits.parse::<u32>()
    {
        return (node, index);
    }
    match text.strip_prefix('^') {
        Some(node) => (node, CONTROL),
        None => (text, 0),
    }
}

/// An output as errors print it: `node:1`, `^node`.
pub fn tensor_id(node: &str, index: u32) -> String {
    match index {
        CONTROL => format!("^{node}"),
        _ => format!("{node}:{}", index as i32),
    }
}

/// The prefixes of a name that end before a slash: `a` and `a/b` of `a/b/c`.
pub fn scopes(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').map(|(end, _)| &name[..end])
}

/// The names of a graph's nodes and their scopes: what a new name must not be.
pub struct TakenNames<'a> {
    graph: &'a Graph,
    scopes: FxHashSet<&'a str>,
}

impl<'a> TakenNames<'a> {
    /// Of a graph as it is now.
    pub fn of(graph: &'a Graph) -> TakenNames<'a> {
        let names = graph.nodes().map(|(_, node)| node.info.name.as_str());
        TakenNames {
            graph,
            scopes: names.flat_map(scopes).collect(),
        }
    }

    /// Whether a node or a scope has this name.
    pub fn contains(&self, name: &str) -> bool {
        self.scopes.contains(name) || self.graph.find(name).is_some()
    }

    /// The name itself if it is free, else with the first number that makes it free: also no name among `imported`.
    pub fn unique(&self, name: &str, imported: &FxHashMap<&str, u32>) -> String {
        if !self.contains(name) {
            return name.to_string();
        }
        (1u64..)
            .map(|number| format!("{name}_{number}"))
            .find(|candidate| !self.contains(candidate) && !imported.contains_key(candidate.as_str()))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_parsed_as_in_the_reference() {
        let cases = [
            ("a", ("a", 0)),
            ("a:0", ("a", 0)),
            ("a/b:12", ("a/b", 12)),
            ("^a", ("a", CONTROL)),
            ("^a:0", ("^a", 0)),
            ("a:", ("a:", 0)),
            ("", ("", 0)),
        ];
        for (text, parsed) in cases {
            assert_eq!(parse_input(text), parsed, "{text}");
        }
    }

    #[test]
    fn names_are_checked() {
        for good in ["a", "A.b", "0", ".x", "a/b_c-d>e\\f"] {
            assert!(is_node_name(good), "{good}");
        }
        for bad in ["", "_a", "a b", "a:0", "^a", "é", "/a"] {
            assert!(!is_node_name(bad), "{bad}");
        }
        assert_eq!(scopes("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
    }
}
