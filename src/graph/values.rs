//! Values that are known before anything runs: constants, and what follows from them and from shapes.
//!
//! Bounded: at most [`MOST_NODES`] nodes and [`MOST_ELEMENTS`] elements are looked at for one question.

use crate::Graph;
use ff_op::{Effects, OutputRef, RunOneHost, run_one, shape_from_value};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim};
use rustc_hash::FxHashMap;
use std::cell::Cell;

const MOST_NODES: usize = 64;
const MOST_ELEMENTS: i64 = 1024;
const DEEPEST: usize = 16;
const MOST_STEPS: usize = 1024;

/// The value of an output, if it follows from constants and known shapes by pure ops.
pub fn constant_value(graph: &Graph, output: OutputRef) -> Option<Tensor> {
    if let Some(value) = direct(graph, output) {
        return Some(value);
    }
    let mut known: FxHashMap<OutputRef, Tensor> = FxHashMap::default();
    let mut stack = vec![output];
    let mut looked_at = 0;
    while let Some(&next) = stack.last() {
        if known.contains_key(&next) {
            stack.pop();
            continue;
        }
        looked_at += 1;
        if looked_at > MOST_NODES * 4 || stack.len() > MOST_NODES {
            return None;
        }
        if let Some(value) = direct(graph, next) {
            known.insert(next, value);
            continue;
        }
        let node = graph.get(next.node)?;
        if !can_compute(graph, next) {
            return None;
        }
        let missing = node.inputs.iter().find(|input| !known.contains_key(input));
        match missing {
            Some(input) => stack.push(*input),
            None => {
                let inputs = node
                    .inputs
                    .iter()
                    .map(|input| known.get(input).cloned())
                    .collect::<Option<Vec<_>>>()?;
                let outputs = run_one(&node.info, inputs, &RunOneHost::new()).ok()?;
                for (index, value) in outputs.into_iter().enumerate() {
                    known.insert(
                        OutputRef {
                            node: next.node,
                            index: index as u32,
                        },
                        value,
                    );
                }
            }
        }
    }
    known.remove(&output)
}

/// A constant's value, or what a known shape says.
fn direct(graph: &Graph, output: OutputRef) -> Option<Tensor> {
    let node = graph.get(output.node)?;
    let of_type = |values: &[i64], shape: Shape| match node.info.output_types[output.index as usize] {
        DataType::INT32 => {
            let narrow: Option<Vec<i32>> = values.iter().map(|&value| i32::try_from(value).ok()).collect();
            Tensor::from_slice(shape, &narrow?).ok()
        }
        DataType::INT64 => Tensor::from_slice(shape, values).ok(),
        _ => None,
    };
    match node.info.op_name() {
        "Const" => node.info.attrs.tensor("value").ok().cloned(),
        "Shape" => {
            let shape = graph.output_shape(node.inputs[0]).to_shape()?;
            of_type(shape.dims(), Shape::vector(shape.rank()))
        }
        "Size" => of_type(
            &[graph.output_shape(node.inputs[0]).to_shape()?.num_elements() as i64],
            Shape::scalar(),
        ),
        "Rank" => of_type(
            &[graph.output_shape(node.inputs[0]).rank()? as i64],
            Shape::scalar(),
        ),
        _ => None,
    }
}

fn can_compute(graph: &Graph, output: OutputRef) -> bool {
    let Some(node) = graph.get(output.node) else {
        return false;
    };
    let small = |shape: &PartialShape| (0..=MOST_ELEMENTS).contains(&shape.num_elements());
    node.info.op.effects == Effects::Pure
        && !node.info.op.def.is_stateful
        && !node.inputs.is_empty()
        && !crate::passes::is_control_flow(node.info.op_name())
        && node.shapes.iter().all(small)
        && node
            .info
            .output_types
            .iter()
            .chain(&node.info.input_types)
            .all(|dtype| dtype.is_plain() && !dtype.is_ref())
}

/// The shape that a value describes, as far as it is known element by element.
pub fn value_as_shape(graph: &Graph, output: OutputRef) -> Result<PartialShape> {
    let budget = Cell::new(MOST_STEPS);
    as_shape(
        graph,
        output,
        Depth {
            depth: 0,
            budget: &budget,
        },
    )
}

/// How deep a question has gone, and how many steps it has left in all.
#[derive(Clone, Copy)]
struct Depth<'a> {
    depth: usize,
    budget: &'a Cell<usize>,
}

impl Depth<'_> {
    /// One step deeper.
    fn next(self) -> Self {
        self.budget.set(self.budget.get().saturating_sub(1));
        Depth {
            depth: self.depth + 1,
            ..self
        }
    }

    fn goes_on(&self) -> bool {
        self.depth < DEEPEST && self.budget.get() > 0
    }
}

/// Calls itself for inputs, at most [`DEEPEST`] deep.
fn as_shape(graph: &Graph, output: OutputRef, depth: Depth) -> Result<PartialShape> {
    let length = graph.output_shape(output).dim(0);
    let unknown = || {
        if (0..=254).contains(&length) {
            PartialShape::of_rank(length as usize)
        } else {
            PartialShape::unknown()
        }
    };
    let Some(node) = graph.get(output.node).filter(|_| depth.goes_on()) else {
        return Ok(unknown());
    };
    let input = |index: usize| node.inputs.get(index).copied();
    let known = match (node.info.op_name(), input(0)) {
        ("Shape", Some(source)) => Some(graph.output_shape(source)),
        ("VariableShape", Some(source)) => match graph.node(source.node).handles.get(source.index as usize) {
            Some(Some(handle)) => handle.first().map(|(_, shape)| shape.clone()),
            _ => None,
        },
        ("ShapeN", _) => input(output.index as usize).map(|source| graph.output_shape(source)),
        ("Identity" | "Cast" | "StopGradient", Some(source)) => Some(as_shape(graph, source, depth.next())?),
        ("Pack", _) if length >= 0 => {
            let extents = node
                .inputs
                .iter()
                .map(|source| scalar_extent(graph, *source, depth.next()));
            Some(PartialShape::new(&extents.collect::<Result<Vec<_>>>()?))
        }
        ("ConcatV2", _) => {
            let mut all = PartialShape::scalar();
            for source in &node.inputs[..node.inputs.len() - 1] {
                all = all.concat(&as_shape(graph, *source, depth.next())?);
            }
            Some(all)
        }
        ("StridedSlice", Some(_)) => strided_slice(graph, output.node, depth)?,
        _ => None,
    };
    if let Some(shape) = known {
        return Ok(if shape.rank().is_some() { shape } else { unknown() });
    }
    match constant_value(graph, output) {
        Some(value) => shape_from_value(&value),
        None => Ok(unknown()),
    }
}

/// The extent that a scalar means; unknown where it is not known.
fn scalar_extent(graph: &Graph, output: OutputRef, depth: Depth) -> Result<i64> {
    if let Some(value) = constant_value(graph, output) {
        return Ok(value
            .to_i64_vec()
            .ok()
            .and_then(|values| values.first().copied())
            .unwrap_or(dim::UNKNOWN));
    }
    let Some(node) = graph.get(output.node).filter(|_| depth.goes_on()) else {
        return Ok(dim::UNKNOWN);
    };
    match (node.info.op_name(), node.inputs.first()) {
        ("Identity" | "Cast" | "StopGradient", Some(source)) => scalar_extent(graph, *source, depth.next()),
        ("StridedSlice", Some(source)) => {
            let Some((begin, _, 1)) = slice_bounds(graph, output.node) else {
                return Ok(dim::UNKNOWN);
            };
            let shrinks = node.info.attrs.int("shrink_axis_mask").unwrap_or(0) == 1;
            let shape = as_shape(graph, *source, depth.next())?;
            Ok(if shrinks { shape.dim(begin) } else { dim::UNKNOWN })
        }
        _ => Ok(dim::UNKNOWN),
    }
}

/// Begin, end (none: to the end of the vector) and stride of a slice along one axis, if they are constants.
fn slice_bounds(graph: &Graph, node: u32) -> Option<(i64, Option<i64>, i64)> {
    let node = graph.get(node)?;
    let attrs = &node.info.attrs;
    let mask = |name: &str| attrs.int(name).unwrap_or(0);
    if mask("ellipsis_mask") != 0 || mask("new_axis_mask") != 0 {
        return None;
    }
    let bound = |index: usize| match constant_value(graph, node.inputs[index])?.to_i64_vec().ok()?[..] {
        [value] => Some(value),
        _ => None,
    };
    let begin = if mask("begin_mask") & 1 == 1 { 0 } else { bound(1)? };
    let end = if mask("end_mask") & 1 == 1 {
        None
    } else {
        Some(bound(2)?)
    };
    Some((begin, end, bound(3)?))
}

fn strided_slice(graph: &Graph, node: u32, depth: Depth) -> Result<Option<PartialShape>> {
    let Some((begin, end, 1)) = slice_bounds(graph, node) else {
        return Ok(None);
    };
    let node = graph.node(node);
    if node.info.attrs.int("shrink_axis_mask").unwrap_or(0) != 0 {
        return Ok(None);
    }
    Ok(Some(
        as_shape(graph, node.inputs[0], depth.next())?.slice(begin, end),
    ))
}

#[cfg(test)]
#[path = "values_tests.rs"]
mod tests;
