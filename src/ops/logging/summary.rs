//! Summaries: numbers, histograms and tensors with a tag, as serialized `Summary` messages.
//!
//! Sounds are in `sound.rs`, images in `picture.rs`. Ops that write to files are in `writer.rs`.

use crate::wide::f64s;
use ff_op::{Gradient, Kernel, KernelContext, Op, shapes};
use ff_proto::summary::Value;
use ff_proto::summary::value::Value as Content;
use ff_proto::{HistogramProto, Message, Summary, SummaryMetadata};
use ff_tensor::{Result, Shape, TString, Tensor, ensure, status};
use std::collections::HashSet;
use std::sync::OnceLock;

const SUMMARY: Op = Op {
    shape: shapes::scalar,
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "ScalarSummary",
        kernels: &[Kernel::native(scalars)],
        ..SUMMARY
    },
    &Op {
        name: "HistogramSummary",
        kernels: &[Kernel::native(histogram)],
        ..SUMMARY
    },
    &Op {
        name: "TensorSummary",
        kernels: &[Kernel::native(|context| {
            let value = Value {
                node_name: context.node().name.clone(),
                value: Some(Content::Tensor(message(context.input(0)?))),
                ..Value::default()
            };
            give(context, vec![value])
        })],
        ..SUMMARY
    },
    &Op {
        name: "TensorSummaryV2",
        kernels: &[Kernel::native(tensor)],
        ..SUMMARY
    },
    &Op {
        name: "MergeSummary",
        kernels: &[Kernel::native(merge)],
        ..SUMMARY
    },
];

/// Sets the output to a summary of these values.
pub(super) fn give(context: &mut KernelContext, value: Vec<Value>) -> Result<()> {
    let bytes = Summary { value }.encode_to_vec();
    let text = TString::concatenated(&[&bytes])?;
    context.set_output(0, Tensor::from_strings(Shape::scalar(), vec![text])?)
}

/// The tensor as a message: strings one by one, others as bytes.
pub(super) fn message(tensor: &Tensor) -> ff_proto::TensorProto {
    match tensor.dtype() {
        ff_tensor::DataType::STRING => tensor.to_proto_fields(),
        _ => tensor.to_proto(),
    }
}

pub(super) fn text(string: &TString) -> String {
    string.to_str_lossy().to_string()
}

/// The tag at an input. INVALID_ARGUMENT unless it is a scalar.
pub(super) fn tag(context: &KernelContext, input: usize) -> Result<String> {
    let tag = context.input(input)?;
    match tag.strings()? {
        [one] if tag.rank() == 0 => Ok(text(one)),
        _ => Err(status!(InvalidArgument, "tag must be scalar")),
    }
}

fn scalars(context: &mut KernelContext) -> Result<()> {
    let (tags, values) = (context.input(0)?, context.input(1)?);
    ensure!(
        tags.shape() == values.shape(),
        InvalidArgument,
        "tags and values are not the same shape: {} != {}",
        tags.shape(),
        values.shape()
    );
    let numbers = f64s(values)?;
    let value = |(tag, &number): (&TString, &f64)| Value {
        tag: text(tag),
        value: Some(Content::SimpleValue(number as f32)),
        ..Value::default()
    };
    let all = crate::wide::collected(tags.strings()?.iter().zip(numbers.iter()).map(value))?;
    give(context, all)
}

/// Upper limits of buckets: powers of 1.1 from 1e-12 to 1e20 and the largest number, their negatives, and zero.
fn limits() -> &'static [f64] {
    static LIMITS: OnceLock<Vec<f64>> = OnceLock::new();
    LIMITS.get_or_init(|| {
        let mut positive = Vec::new();
        let mut limit = 1.0e-12;
        while limit < 1.0e20 {
            positive.push(limit);
            limit *= 1.1;
        }
        positive.push(f64::MAX);
        let negative = positive.iter().rev().map(|limit| -limit);
        negative.chain([0.0]).chain(positive.iter().copied()).collect()
    })
}

fn histogram(context: &mut KernelContext) -> Result<()> {
    let value = histogram_of(tag(context, 0)?, context.input(1)?, &context.node().name)?;
    give(context, vec![value])
}

/// The histogram of some numbers. INVALID_ARGUMENT, for the given name, where one is not finite.
pub(super) fn histogram_of(tag: String, numbers: &Tensor, name: &str) -> Result<Value> {
    let limits = limits();
    let mut counts = crate::wide::zeros::<f64>(limits.len())?;
    let mut all = HistogramProto {
        min: f64::MAX,
        max: -f64::MAX,
        ..HistogramProto::default()
    };
    for &number in f64s(numbers)?.iter() {
        ensure!(
            !number.is_nan(),
            InvalidArgument,
            "Nan in summary histogram for: {name}"
        );
        ensure!(
            number.is_finite(),
            InvalidArgument,
            "Infinity in summary histogram for: {name}"
        );
        let bucket = limits.partition_point(|&limit| limit <= number);
        counts[bucket.min(limits.len() - 1)] += 1.0;
        all.min = all.min.min(number);
        all.max = all.max.max(number);
        all.num += 1.0;
        all.sum += number;
        all.sum_squares += number * number;
    }
    // Of several empty buckets one is kept, with the limit of the last.
    let mut empty = None;
    for (&limit, &count) in limits.iter().zip(&counts) {
        if count == 0.0 {
            empty = Some(limit);
            continue;
        }
        if let Some(limit) = empty.take() {
            all.bucket_limit.push(limit);
            all.bucket.push(0.0);
        }
        all.bucket_limit.push(limit);
        all.bucket.push(count);
    }
    if let Some(limit) = empty {
        all.bucket_limit.push(limit);
        all.bucket.push(0.0);
    }
    Ok(Value {
        tag,
        value: Some(Content::Histo(all)),
        ..Value::default()
    })
}

fn tensor(context: &mut KernelContext) -> Result<()> {
    let metadata = context.input(2)?;
    let metadata = match metadata.strings()? {
        [one] if metadata.rank() == 0 => SummaryMetadata::decode(one.as_bytes()).ok(),
        _ => {
            ff_tensor::bail!(InvalidArgument, "serialized_summary_metadata must be scalar")
        }
    };
    let value = Value {
        tag: tag(context, 0)?,
        metadata: Some(metadata.unwrap_or_default()),
        value: Some(Content::Tensor(message(context.input(1)?))),
        ..Value::default()
    };
    give(context, vec![value])
}

fn merge(context: &mut KernelContext) -> Result<()> {
    let (mut all, mut seen) = (Vec::new(), HashSet::new());
    for input in 0..context.num_inputs() {
        for string in context.input(input)?.strings()? {
            let summary = Summary::decode(string.as_bytes())
                .map_err(|_| status!(InvalidArgument, "Could not parse one of the summary inputs"))?;
            for value in summary.value {
                ensure!(
                    value.tag.is_empty() || seen.insert(value.tag.clone()),
                    InvalidArgument,
                    "Duplicate tag {} found in summary inputs",
                    value.tag
                );
                all.push(value);
            }
        }
    }
    give(context, all)
}

#[cfg(test)]
fn made(tag: &str, number: f32) -> Tensor {
    let value = Value {
        tag: tag.to_string(),
        value: Some(Content::SimpleValue(number)),
        ..Value::default()
    };
    let bytes = Summary { value: vec![value] }.encode_to_vec();
    Tensor::from_strings(Shape::scalar(), vec![TString::from(&bytes[..])]).expect("a summary")
}

crate::op_cases! {
    numbers_of_types: family(&["ScalarSummary"], &[FLOATS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([strings(&[2], &["a", "b"]), numbers(dtype, &[2], &[1.0, 3.0])])
    });
    number: Case::op("ScalarSummary").inputs([strings(&[], &["loss"]), scalar(0.25f32)]);
    numbers_misfit: Case::op("ScalarSummary").inputs([strings(&[1], &["loss"]), vector(&[0.25f32, 1.0])]).fails(Code::InvalidArgument);
    counted: family(&["HistogramSummary"], &[FLOATS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([strings(&[], &["h"]), numbers(dtype, &[2, 3], &[1.0, 3.0, 0.0, 2.0, 2.0, 100.0])])
    });
    counted_signs: Case::op("HistogramSummary").inputs([strings(&[], &["h"]), vector(&[-1.5f64, 1e-30, 3e21, -0.0, -1e-13, 1e-12])]);
    counted_nothing: Case::op("HistogramSummary").inputs([strings(&[], &["h"]), vector::<f32>(&[])]);
    counted_not_numbers: Case::op("HistogramSummary").inputs([strings(&[], &["h"]), vector(&[f32::NAN])]).fails(Code::InvalidArgument);
    counted_infinity: Case::op("HistogramSummary").inputs([strings(&[], &["h"]), vector(&[f32::INFINITY])]).fails(Code::InvalidArgument);
    counted_tags: Case::op("HistogramSummary").inputs([strings(&[1], &["h"]), vector(&[1.0f32])]).fails(Code::InvalidArgument);
    tensors: Case::op("TensorSummary").input(t(&[2, 1], &[1.5f32, -2.0]));
    tensors_of_strings: Case::op("TensorSummary").input(strings(&[2], &["a", ""]));
    tensors_tagged: Case::op("TensorSummaryV2").inputs([strings(&[], &["x"]), t(&[2, 1], &[1i32, -2]), strings(&[], &["\n\x03\n\x01p"])]);
    tensors_tagged_plainly: Case::op("TensorSummaryV2").inputs([strings(&[], &["x"]), scalar(1i64), strings(&[], &[""])]);
    tensors_tags: Case::op("TensorSummaryV2").inputs([strings(&[1], &["x"]), scalar(1i64), strings(&[], &[""])]).fails(Code::InvalidArgument);
    merged: Case::op("MergeSummary").inputs([made("a", 1.0), made("b", 2.0)]);
    merged_twice: Case::op("MergeSummary").inputs([made("a", 1.0), made("a", 2.0)]).fails(Code::InvalidArgument);
    merged_nonsense: Case::op("MergeSummary").input(strings(&[], &["\u{7f}nonsense"])).fails(Code::InvalidArgument);
}
