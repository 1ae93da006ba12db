//! `StringNGrams`: neighbouring strings of ragged rows, joined.

use crate::wide::{reserve, reserved};
use ff_op::{Kernel, KernelContext, Op};
use ff_tensor::{DataType, PartialShape, Result, Shape, TString, Tensor, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "StringNGrams",
    shape: |context| {
        context.input_with_rank(0, 1)?;
        let splits = context.input_with_rank(1, 1)?;
        context.set_output(0, PartialShape::new(&[dim::UNKNOWN]));
        context.set_output(1, splits);
        Ok(())
    },
    kernels: &[Kernel::native(run)],
    ..Op::PURE
}];

/// How strings are joined.
struct Rules<'a> {
    separator: &'a [u8],
    left: &'a [u8],
    right: &'a [u8],
    /// Strings of padding at each end; negative for as many as make sense.
    padding: i64,
}

impl Rules<'_> {
    fn padding(&self, width: i64) -> i64 {
        match self.padding {
            ..0 => width - 1,
            padding => padding.min(width - 1),
        }
    }

    /// How many n-grams of a width a row has.
    fn count(&self, length: i64, width: i64) -> i64 {
        (length + 2 * self.padding(width) - width + 1).max(0)
    }

    /// Adds the n-grams of a width.
    fn push(&self, row: &[TString], width: i64, count: i64, to: &mut Vec<TString>) -> Result<()> {
        let padding = self.padding(width);
        for i in 0..count {
            let left = (padding - i).max(0);
            let right = (padding - (count - (i + 1))).max(0);
            let tokens = (width - left - right).max(0) as usize;
            let start = if left > 0 {
                0
            } else {
                (i - padding).max(0) as usize
            };
            // Each part with a separator after it, but for the last.
            let mut parts = reserved(left.saturating_add(right).saturating_mul(2) as usize)?;
            let before = std::iter::repeat_n(self.left, left as usize);
            let tokens = row.iter().skip(start).take(tokens).map(TString::as_bytes);
            let after = std::iter::repeat_n(self.right, right as usize);
            parts.extend(
                before
                    .chain(tokens)
                    .chain(after)
                    .flat_map(|part| [part, self.separator]),
            );
            parts.pop();
            reserve(to, 1)?;
            to.push(TString::concatenated(&parts)?);
        }
        Ok(())
    }
}

fn run(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let rules = Rules {
        separator: attrs.bytes("separator")?,
        left: attrs.bytes("left_pad")?,
        right: attrs.bytes("right_pad")?,
        padding: attrs.int("pad_width")?,
    };
    let widths = attrs.ints("ngram_widths")?;
    ensure!(
        widths.iter().all(|&width| width > 0),
        InvalidArgument,
        "ngram_widths must contain positive values"
    );
    let preserve = attrs.bool("preserve_short_sequences")?;
    let (data, splits) = (context.input(0)?.strings()?, context.input_i64s(1)?);
    if !splits.is_empty() {
        ensure!(
            splits[0] == 0,
            InvalidArgument,
            "First split value must be 0, got {}",
            splits[0]
        );
        ensure!(
            splits.windows(2).all(|pair| pair[0] <= pair[1]),
            InvalidArgument,
            "Invalid split value: splits must not decrease, got {splits:?}"
        );
        ensure!(
            splits.last() == Some(&(data.len() as i64)),
            InvalidArgument,
            "Last split value must be data size. Expected {}, got {:?}",
            data.len(),
            splits.last()
        );
    }
    let (mut ngrams, mut edges) = (Vec::new(), vec![0; splits.len().min(1)]);
    for pair in splits.windows(2) {
        let row = &data[pair[0] as usize..pair[1] as usize];
        let (length, before) = (row.len() as i64, ngrams.len());
        for &width in widths {
            rules.push(row, width, rules.count(length, width), &mut ngrams)?;
        }
        if preserve && ngrams.len() == before && length > 0 && rules.padding >= 0 {
            rules.push(row, length + 2 * rules.padding, 1, &mut ngrams)?;
        }
        edges.push(ngrams.len() as i64);
    }
    let edges = if context.output_type(1) == DataType::INT64 {
        Tensor::vector(&edges)?
    } else {
        let edges: Vec<i32> = crate::wide::collected(edges.iter().map(|&edge| edge as i32))?;
        Tensor::vector(&edges)?
    };
    let output = Tensor::from_strings(Shape::vector(ngrams.len()), ngrams)?;
    context.set_output(0, output)?;
    context.set_output(1, edges)
}

#[cfg(test)]
fn asked(widths: &[i64], padding: i64) -> crate::testing::Case {
    crate::testing::Case::op("StringNGrams")
        .attr("separator", "|")
        .attr("ngram_widths", widths.to_vec())
        .attr("left_pad", "L")
        .attr("right_pad", "R")
        .attr("pad_width", padding)
        .attr("preserve_short_sequences", false)
        .input(crate::testing::strings(&[6], &["a", "b", "c", "d", "e", "f"]))
}

crate::op_cases! {
    pairs: asked(&[2], 0).input(vector(&[0i64, 4, 4, 6]));
    padded: asked(&[3, 1], -1).input(vector(&[0i64, 4, 4, 6]));
    padded_once: asked(&[3], 1).input(vector(&[0, 4, 5, 6]));
    short_ones_kept: asked(&[4], 0).attr("preserve_short_sequences", true).input(vector(&[0i64, 4, 4, 6]));
    no_rows: asked(&[2], 0).input(vector(&[0i64, 6]));
    splits_beyond: asked(&[2], 0).input(vector(&[0i64, 7])).fails(Code::InvalidArgument);
    splits_back: asked(&[2], 0).input(vector(&[0i64, 4, 3, 6])).fails(Code::InvalidArgument);
}
