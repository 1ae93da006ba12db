//! First phase of an import: every name of a GraphDef becomes a number, and the order of addition is found.
//!
//! Reports what is wrong with names, inputs and cycles. Does not look at ops or attributes other than `_class`.

use crate::import::TensorId;
use crate::import_source::NodeSource;
use crate::names::{CONTROL, TakenNames, is_node_name, parse_input};
use crate::order::by_number;
use crate::{Graph, ImportOptions, NodeId};
use ff_op::{AttrValue, Attrs, OutputRef};
use ff_proto::Bytes;
use ff_tensor::{Result, bail, ensure};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The attribute that names the nodes to be placed with, and how it marks them.
const CLASS: &str = "_class";
const COLOCATED: &str = "loc:@";

/// A node that an input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A definition of the message, by its number.
    Imported(u32),
    /// A node that the graph has.
    Existing(NodeId),
}

/// An input: a node, and which of its outputs; [`CONTROL`] for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The node.
    pub source: Source,
    /// The output.
    pub output: u32,
}

/// The inputs of all definitions, and their new names.
pub struct Links {
    all: Vec<Link>,
    /// Where each definition's links end.
    ends: Vec<u32>,
    prefix: String,
    /// New names of definitions whose names were taken.
    renamed: FxHashMap<u32, String>,
    renamed_colocations: FxHashMap<String, String>,
    /// What the wanted outputs are, where they are found.
    pub return_outputs: Vec<Option<Link>>,
    /// What the wanted nodes are, where they are found.
    pub return_nodes: Vec<Option<u32>>,
    /// Keys of the input map that no input used, with their definitions if there are any.
    pub unused_keys: Vec<(TensorId, Option<u32>)>,
}

/// Targets by key, each with the number of its entry.
type InputMap<'a> = FxHashMap<(&'a str, u32), (OutputRef, usize)>;

impl Links {
    /// Resolves the inputs of all definitions. INVALID_ARGUMENT for names that are malformed, taken or not found.
    pub fn new(graph: &Graph, defs: &[NodeSource], options: &ImportOptions) -> Result<Links> {
        let map = input_map(graph, options)?;
        let by_name = index(defs)?;
        let mut links = Links {
            all: Vec::with_capacity(defs.iter().map(|def| def.input.len()).sum()),
            ends: Vec::with_capacity(defs.len()),
            prefix: String::new(),
            renamed: FxHashMap::default(),
            renamed_colocations: FxHashMap::default(),
            return_outputs: Vec::new(),
            return_nodes: Vec::new(),
            unused_keys: Vec::new(),
        };
        links.name(graph, defs, options, &by_name)?;
        let mut used = vec![false; options.input_map.len()];
        for def in defs {
            links.resolve(def, &by_name, &map, &mut used)?;
            if options.validate_colocation {
                check_colocation(def, &by_name)?;
            }
        }
        links.resolve_results(options, &by_name, &map);
        let is_used = |key: &TensorId| {
            map.get(&(key.0.as_str(), key.1))
                .is_some_and(|(_, entry)| used[*entry])
        };
        let unused = options.input_map.iter().map(|(key, _)| key);
        links.unused_keys = unused
            .filter(|key| !is_used(key))
            .map(|key| (key.clone(), by_name.get(key.0.as_str()).copied()))
            .collect();
        Ok(links)
    }

    /// The inputs of a definition.
    pub fn of(&self, def: usize) -> &[Link] {
        &self.all[self.range(def)]
    }

    fn range(&self, def: usize) -> Range<usize> {
        let start = if def == 0 { 0 } else { self.ends[def - 1] };
        start as usize..self.ends[def] as usize
    }

    /// Decides on prefix and new names.
    fn name(
        &mut self,
        graph: &Graph,
        defs: &[NodeSource],
        options: &ImportOptions,
        by_name: &FxHashMap<&str, u32>,
    ) -> Result<()> {
        let prefix = options.prefix.strip_suffix('/').unwrap_or(&options.prefix);
        if !prefix.is_empty() {
            ensure!(
                is_node_name(prefix),
                InvalidArgument,
                "Imported node name prefix '{prefix}/' would lead to invalid node names"
            );
            self.prefix = format!("{prefix}/");
        }
        if graph.is_empty() {
            return Ok(());
        }
        let taken = TakenNames::of(graph);
        if !prefix.is_empty() && options.uniquify_prefix {
            self.prefix = format!("{}/", taken.unique(prefix, by_name));
            return Ok(());
        }
        for (number, def) in defs.iter().enumerate() {
            let full = format!("{}{}", self.prefix, def.name);
            if options.uniquify_names && taken.contains(&full) {
                let new = taken.unique(&full, by_name);
                let plain = new.strip_prefix(&self.prefix).unwrap_or(&new).to_string();
                self.renamed_colocations.insert(def.name.to_string(), plain);
                self.renamed.insert(number as u32, new);
            } else if graph.find(&full).is_some() || (prefix.is_empty() && taken.contains(&full)) {
                bail!(InvalidArgument, "Node name '{full}' already exists in the Graph");
            }
        }
        Ok(())
    }

    fn resolve(
        &mut self,
        def: &NodeSource,
        by_name: &FxHashMap<&str, u32>,
        map: &InputMap,
        used: &mut [bool],
    ) -> Result<()> {
        let mut in_controls = false;
        for &text in &def.input {
            let is_control = text.starts_with('^');
            ensure!(
                is_control || !in_controls,
                InvalidArgument,
                "Node '{}': Control dependencies must come after regular dependencies",
                def.name
            );
            in_controls = is_control;
            let (node, output) = parse_input(text);
            let mapped = if map.is_empty() {
                None
            } else {
                map.get(&(node, output))
            };
            let link = match mapped {
                Some(&(target, entry)) => {
                    used[entry] = true;
                    Link {
                        source: Source::Existing(target.node),
                        output: target.index,
                    }
                }
                None => {
                    let Some(&from) = by_name.get(node) else {
                        bail!(
                            InvalidArgument,
                            "Node '{}': Unknown input node '{text}'",
                            def.name
                        );
                    };
                    Link {
                        source: Source::Imported(from),
                        output,
                    }
                }
            };
            self.all.push(link);
        }
        self.ends.push(self.all.len() as u32);
        Ok(())
    }

    fn resolve_results(&mut self, options: &ImportOptions, by_name: &FxHashMap<&str, u32>, map: &InputMap) {
        let output = |(node, index): &TensorId| match map.get(&(node.as_str(), *index)) {
            Some((target, _)) => Some(Link {
                source: Source::Existing(target.node),
                output: target.index,
            }),
            None => by_name.get(node.as_str()).map(|&def| Link {
                source: Source::Imported(def),
                output: *index,
            }),
        };
        self.return_outputs = options.return_outputs.iter().map(output).collect();
        let node = |name: &String| by_name.get(name.as_str()).copied();
        self.return_nodes = options.return_nodes.iter().map(node).collect();
    }

    /// The name that a definition's node gets.
    pub fn new_name(&self, def: usize, name: &str) -> String {
        if let Some(renamed) = self.renamed.get(&(def as u32)) {
            return renamed.clone();
        }
        if self.prefix.is_empty() {
            return name.to_string();
        }
        format!("{}{name}", self.prefix)
    }

    /// Puts new names into the `loc:@name` entries of a node's attributes.
    pub fn rename_colocations(&self, attrs: &mut Attrs) {
        if self.prefix.is_empty() && self.renamed_colocations.is_empty() {
            return;
        }
        let Some(AttrValue::Strings(classes)) = attrs.get(CLASS) else {
            return;
        };
        let rename = |class: &Bytes| {
            let Some(node) = std::str::from_utf8(class)
                .ok()
                .and_then(|text| text.strip_prefix(COLOCATED))
            else {
                return class.clone();
            };
            let node = self.renamed_colocations.get(node).map_or(node, String::as_str);
            Bytes::from(format!("{COLOCATED}{}{node}", self.prefix))
        };
        let renamed: Vec<Bytes> = classes.iter().map(rename).collect();
        attrs.set(CLASS, renamed);
    }

    /// The order in which definitions can be added; none when the given one will do. INVALID_ARGUMENT for a cycle that is
    /// not a v1 loop.
    pub fn order(&self, defs: &[NodeSource]) -> Result<Option<Vec<u32>>> {
        if (0..defs.len()).all(|def| self.comes_after_its_inputs(def, defs)) {
            return Ok(None);
        }
        let mut readers: Vec<Vec<u32>> = vec![Vec::new(); defs.len()];
        let mut waiting: Vec<u32> = Vec::with_capacity(defs.len());
        for def in 0..defs.len() {
            let from: Vec<u32> = self.imported(def).map(|(from, _)| from).collect();
            let controls = self.of(def).iter().filter(|link| link.output == CONTROL).count();
            let mapped = self.of(def).len() - from.len();
            // A loop's start can be added once its controls and one of its inputs are there.
            let count = if self.starts_loop(def, defs) {
                (controls + 1).saturating_sub(mapped)
            } else {
                from.len()
            };
            waiting.push(count as u32);
            for from in from {
                if !(is_turn(&defs[from as usize]) && is_merge(&defs[def])) {
                    readers[from as usize].push(def as u32);
                }
            }
        }
        let order = by_number(waiting, &readers);
        ensure!(
            order.len() == defs.len(),
            InvalidArgument,
            "{} nodes in a cycle",
            defs.len() - order.len()
        );
        Ok(Some(order))
    }

    /// The definitions that a definition's inputs come from, with the outputs.
    fn imported(&self, def: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.of(def).iter().filter_map(|link| match link.source {
            Source::Imported(from) => Some((from, link.output)),
            Source::Existing(_) => None,
        })
    }

    fn comes_after_its_inputs(&self, def: usize, defs: &[NodeSource]) -> bool {
        let is_before = |from: u32| (from as usize) < def;
        if self.imported(def).all(|(from, _)| is_before(from)) {
            return true;
        }
        // The start of a loop: all but the back edges.
        self.starts_loop(def, defs)
            && self
                .imported(def)
                .all(|(from, output)| is_before(from) || (output != CONTROL && is_turn(&defs[from as usize])))
    }

    fn starts_loop(&self, def: usize, defs: &[NodeSource]) -> bool {
        let from_turn = |(from, output): (u32, u32)| output != CONTROL && is_turn(&defs[from as usize]);
        is_merge(&defs[def]) && self.imported(def).any(from_turn)
    }
}

fn is_merge(def: &NodeSource) -> bool {
    matches!(def.op, "Merge" | "RefMerge")
}

/// Whether a node ends a turn of a loop.
fn is_turn(def: &NodeSource) -> bool {
    matches!(def.op, "NextIteration" | "RefNextIteration")
}

/// The input map by key. INVALID_ARGUMENT for one between a control edge and another.
fn input_map<'a>(graph: &Graph, options: &'a ImportOptions) -> Result<InputMap<'a>> {
    let mut map = InputMap::default();
    for (entry, ((node, output), target)) in options.input_map.iter().enumerate() {
        let name = graph.get(target.node).map(|node| node.info.name.as_str());
        let Some(name) = name else {
            bail!(InvalidArgument, "a target of input_map is not in the graph");
        };
        ensure!(
            (*output == CONTROL) == (target.index == CONTROL),
            InvalidArgument,
            "input_map entry {}->{} between control edge and non-control edge",
            crate::names::tensor_id(node, *output),
            crate::names::tensor_id(name, target.index)
        );
        map.insert((node.as_str(), *output), (*target, entry));
    }
    Ok(map)
}

/// The definitions by name. INVALID_ARGUMENT for malformed and double names.
fn index<'a>(defs: &[NodeSource<'a>]) -> Result<FxHashMap<&'a str, u32>> {
    let mut by_name = FxHashMap::default();
    by_name.reserve(defs.len());
    for (number, def) in defs.iter().enumerate() {
        let name = def.name;
        ensure!(
            is_node_name(name),
            InvalidArgument,
            "Node '{name}': Node name contains invalid characters"
        );
        ensure!(
            by_name.insert(name, number as u32).is_none(),
            InvalidArgument,
            "Node '{name}' is not unique"
        );
        ensure!(
            !def.op.is_empty(),
            InvalidArgument,
            "Node '{name}' does not specify an operation"
        );
    }
    Ok(by_name)
}

fn check_colocation(def: &NodeSource, by_name: &FxHashMap<&str, u32>) -> Result<()> {
    let Some(classes) = def.attr(CLASS)? else {
        return Ok(());
    };
    let Some(ff_proto::attr_value::Value::List(classes)) = &classes.value else {
        return Ok(());
    };
    for class in &classes.s {
        let class = String::from_utf8_lossy(class);
        if let Some(node) = class.strip_prefix(COLOCATED) {
            ensure!(
                by_name.contains_key(node),
                InvalidArgument,
                "Node '{}' expects to be colocated with unknown node '{node}'",
                def.name
            );
        }
    }
    Ok(())
}
