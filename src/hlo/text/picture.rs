//! Modules as pictures: every computation a layered graph, as SVG, or as an HTML page with the text beside it.
//!
//! Layers follow the longest path from parameters and constants; within a layer instructions stand under the middle of
//! what they read, as far as there is room. Computations are drawn from the entry on, one above the other. It does not
//! avoid crossings, and draws at most [`MOST_BOXES`] instructions of a computation.

use super::printer::{PrintOptions, computation_name, identifier, print_with};
use crate::module::{Computation, ComputationId, Instruction, Module};
use crate::opcode::Class;
use std::fmt::Write;

/// Boxes drawn of one computation; the rest is counted in words.
pub const MOST_BOXES: usize = 2000;
/// Constants with more elements are left out of the text.
const LARGEST_CONSTANT: usize = 8;
/// Extents of a box and the gaps around it, in pixels.
const WIDTH: f64 = 170.0;
const HEIGHT: f64 = 34.0;
const GAP_X: f64 = 16.0;
const GAP_Y: f64 = 34.0;
/// Room around a computation, and for its title.
const MARGIN: f64 = 24.0;

/// The module as an SVG document.
pub fn svg(module: &Module) -> String {
    let (mut body, mut width, mut height) = (String::new(), 0.0f64, 0.0);
    for index in (0..module.computations.len()).rev() {
        let id = ComputationId(index as u32);
        let computation = &module.computations[index];
        let places = place(computation);
        let _ = writeln!(body, "<g transform=\"translate({MARGIN} {height})\">");
        let (own_width, own_height) = draw(&mut body, module, id, computation, &places);
        body.push_str("</g>\n");
        width = width.max(own_width + 2.0 * MARGIN);
        height += own_height + MARGIN;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<title>{}</title>\n{body}</svg>\n",
        escaped(&module.name)
    )
}

/// The module as an HTML page: its picture, then its text with large constants left out.
pub fn html(module: &Module) -> String {
    let options = PrintOptions {
        largest_constant: LARGEST_CONSTANT,
        metadata: true,
    };
    format!(
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>{0}</title></head>\n<body>\n<h1>{0}</h1>\n{1}<pre>\n\
         {2}</pre>\n</body></html>\n",
        escaped(&module.name),
        svg(module),
        escaped(&print_with(module, options))
    )
}

/// Text with the characters that mean something in SVG and HTML replaced.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The corner of each box that is drawn.
fn place(computation: &Computation) -> Vec<(f64, f64)> {
    let mut layers: Vec<usize> = Vec::new();
    let mut next_free: Vec<f64> = Vec::new();
    let mut places: Vec<(f64, f64)> = Vec::new();
    for instruction in computation.instructions.iter().take(MOST_BOXES) {
        let operands = || instruction.operands.iter().map(|operand| operand.0 as usize);
        let layer = operands().map(|operand| layers[operand] + 1).max().unwrap_or(0);
        if next_free.len() <= layer {
            next_free.resize(layer + 1, 0.0);
        }
        let count = operands().count();
        let middle = operands().map(|operand| places[operand].0).sum::<f64>() / count.max(1) as f64;
        let x = middle.max(next_free[layer]);
        next_free[layer] = x + WIDTH + GAP_X;
        layers.push(layer);
        places.push((x, MARGIN + layer as f64 * (HEIGHT + GAP_Y)));
    }
    places
}

/// Draws a computation; returns its extents.
fn draw(
    out: &mut String,
    module: &Module,
    id: ComputationId,
    computation: &Computation,
    places: &[(f64, f64)],
) -> (f64, f64) {
    let name = escaped(&computation_name(module, id));
    let hidden = computation.instructions.len() - places.len();
    let rest = if hidden > 0 {
        format!(" (and {hidden} more)")
    } else {
        String::new()
    };
    let _ = writeln!(out, "<text y=\"14\" font-weight=\"bold\">{name}{rest}</text>");
    for (instruction, &(x, y)) in computation.instructions.iter().zip(places) {
        for operand in &instruction.operands {
            let (from_x, from_y) = places[operand.0 as usize];
            let (x1, y1, x2) = (from_x + WIDTH / 2.0, from_y + HEIGHT, x + WIDTH / 2.0);
            let _ = writeln!(
                out,
                "<path d=\"M{x1} {y1}C{x1} {} {x2} {} {x2} {y}\" fill=\"none\" stroke=\"#888\"/>",
                y1 + GAP_Y / 2.0,
                y - GAP_Y / 2.0
            );
        }
    }
    let (mut width, mut height) = (0.0f64, MARGIN);
    for (index, (instruction, &(x, y))) in computation.instructions.iter().zip(places).enumerate() {
        draw_box(
            out,
            module,
            instruction,
            index,
            (x, y),
            index == computation.root.0 as usize,
        );
        width = width.max(x + WIDTH);
        height = height.max(y + HEIGHT);
    }
    (width, height)
}

fn draw_box(
    out: &mut String,
    module: &Module,
    instruction: &Instruction,
    index: usize,
    at: (f64, f64),
    root: bool,
) {
    let (x, y) = at;
    let called: Vec<String> = instruction
        .attributes
        .called_computations()
        .iter()
        .map(|&id| computation_name(module, id))
        .collect();
    let calls = if called.is_empty() {
        String::new()
    } else {
        format!(" calls {}", called.join(", "))
    };
    let node = instruction.node.as_deref().unwrap_or_default();
    let _ = writeln!(
        out,
        "<g><title>%{}.{index}{} {}</title><rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"4\" \
         fill=\"{}\" stroke=\"#444\" stroke-width=\"{}\"/><text x=\"{}\" y=\"{}\">{} .{index}</text><text x=\"{}\" y=\"{}\" \
         fill=\"#333\">{}</text></g>",
        identifier(instruction.base_name()),
        escaped(&calls),
        escaped(node),
        colour(instruction.opcode.class()),
        if root { 2.5 } else { 1.0 },
        x + 6.0,
        y + 14.0,
        instruction.opcode,
        x + 6.0,
        y + 28.0,
        escaped(&shortened(&instruction.shape.to_string())),
    );
}

/// At most the characters that fit into a box.
fn shortened(text: &str) -> String {
    if text.chars().count() <= 28 {
        return text.to_owned();
    }
    text.chars().take(27).chain(['…']).collect()
}

fn colour(class: Class) -> &'static str {
    match class {
        Class::Unary | Class::Binary | Class::Elementwise => "#fff3b0",
        Class::Movement => "#d6f5d6",
        Class::Contraction => "#cfe2ff",
        Class::Control => "#f8d7da",
        Class::Source => "#ffffff",
        Class::Structure => "#e9ecef",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayShape, Builder};
    use ff_tensor::DataType;

    #[test]
    fn every_instruction_is_a_box_and_names_are_escaped() {
        let mut b = Builder::new("a<b>");
        let x = b
            .parameter(0, ArrayShape::new(DataType::FLOAT, &[2, 3]), "x")
            .unwrap();
        let sum = b.reduce_sum(x, &[1]).unwrap();
        let module = b.finish(sum).unwrap();
        let picture = svg(&module);
        let boxes: usize = module.computations.iter().map(|c| c.instructions.len()).sum();
        assert_eq!(picture.matches("<rect").count(), boxes);
        assert_eq!(picture.matches("<path").count(), 2 + 2);
        assert!(picture.contains("<title>a&lt;b&gt;</title>") && picture.contains("reduce"));
        let page = html(&module);
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<pre>\nHloModule"));
    }

    #[test]
    fn a_chain_goes_down_and_large_computations_are_cut() {
        let mut b = Builder::new("chain");
        let mut x = b
            .parameter(0, ArrayShape::new(DataType::FLOAT, &[2]), "x")
            .unwrap();
        for _ in 0..MOST_BOXES + 5 {
            x = b.unary(crate::Opcode::Tanh, x).unwrap();
        }
        let module = b.finish(x).unwrap();
        let places = place(module.entry_computation());
        assert!(places.windows(2).all(|pair| pair[0].1 < pair[1].1));
        assert!(svg(&module).contains("(and 6 more)"));
    }
}
