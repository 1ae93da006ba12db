//! Parses the attributes of instructions.

use super::attributes::{ALGORITHMS, CODES, DIRECTIONS, FFT_KINDS, TRANSPOSES};
use super::parser::{balanced, split_commas, unquote};
use crate::attributes::{
    Attributes, CheckConfig, ConvolutionConfig, ConvolutionDims, DotDims, GatherDims, PadDimension,
    ScanConfig, ScatterDims, TriangularSolveOptions, Window, WindowDimension,
};
use crate::module::ComputationId;
use crate::opcode::{Class, Opcode};
use crate::shape::Dims;
use ff_tensor::{Result, Status, bail, ensure, status};
use rustc_hash::FxHashMap;
use std::str::FromStr;
use std::sync::Arc;

/// Attributes as text, by key.
pub(super) struct Raw<'a> {
    values: Vec<(&'a str, &'a str)>,
    computations: &'a FxHashMap<String, ComputationId>,
}

fn bad(key: &str, text: &str) -> Status {
    status!(InvalidArgument, "attribute {key} has a malformed value {text}")
}

fn number<T: FromStr>(key: &str, text: &str) -> Result<T> {
    text.trim().parse().map_err(|_| bad(key, text))
}

/// `{0,1}`.
fn list(key: &str, text: &str) -> Result<Dims> {
    ensure!(
        text.starts_with('{'),
        InvalidArgument,
        "attribute {key} must be a list, got {text}"
    );
    let (inside, _) = balanced(text)?;
    split_commas(inside)
        .into_iter()
        .map(|part| number(key, part))
        .collect()
}

/// The value with this name in a list.
fn named<T: Copy>(key: &str, text: &str, list: &[(T, &str)]) -> Result<T> {
    list.iter()
        .find(|(_, name)| *name == text)
        .map(|(value, _)| *value)
        .ok_or_else(|| bad(key, text))
}

impl<'a> Raw<'a> {
    /// `, key=value, key=value`.
    pub fn parse(text: &'a str, computations: &'a FxHashMap<String, ComputationId>) -> Result<Raw<'a>> {
        let mut values = Vec::new();
        for part in split_commas(text).into_iter().filter(|part| !part.is_empty()) {
            let pair = part.split_once('=');
            let (key, value) =
                pair.ok_or_else(|| status!(InvalidArgument, "expected key=value at: {part}"))?;
            values.push((key.trim(), value.trim()));
        }
        Ok(Raw { values, computations })
    }

    fn find(&self, key: &str) -> Option<&'a str> {
        self.values
            .iter()
            .find(|(known, _)| *known == key)
            .map(|(_, value)| *value)
    }

    fn get(&self, key: &str) -> Result<&'a str> {
        self.find(key)
            .ok_or_else(|| status!(InvalidArgument, "attribute {key} is missing"))
    }

    fn number<T: FromStr>(&self, key: &str) -> Result<T> {
        number(key, self.get(key)?)
    }

    fn number_or<T: FromStr>(&self, key: &str, default: T) -> Result<T> {
        self.find(key).map_or(Ok(default), |text| number(key, text))
    }

    fn flag(&self, key: &str) -> Result<bool> {
        self.number_or(key, false)
    }

    fn list(&self, key: &str) -> Result<Dims> {
        list(key, self.get(key)?)
    }

    fn list_or_empty(&self, key: &str) -> Result<Dims> {
        self.find(key).map_or(Ok(Dims::new()), |text| list(key, text))
    }

    fn single(&self, key: &str) -> Result<i64> {
        let values = self.list(key)?;
        ensure!(
            values.len() == 1,
            InvalidArgument,
            "attribute {key} must have one entry"
        );
        Ok(values[0])
    }

    fn computation_named(&self, text: &str) -> Result<ComputationId> {
        let name = text.strip_prefix('%').unwrap_or(text);
        let id = self.computations.get(name).copied();
        id.ok_or_else(|| status!(InvalidArgument, "unknown computation {text}"))
    }

    fn computation(&self, key: &str) -> Result<ComputationId> {
        self.computation_named(self.get(key)?)
    }

    /// The graph node in the metadata.
    pub fn node(&self) -> Result<Option<Arc<str>>> {
        let Some(text) = self.find("metadata") else {
            return Ok(None);
        };
        let (inside, _) = balanced(text)?;
        let name = inside
            .trim()
            .strip_prefix("op_name=")
            .ok_or_else(|| bad("metadata", text))?;
        Ok(Some(unquote(name.trim())?.into()))
    }
}

/// The attributes that an opcode has.
pub(super) fn parse_attributes(opcode: Opcode, raw: &Raw) -> Result<Attributes> {
    Ok(match opcode {
        Opcode::Broadcast | Opcode::Transpose | Opcode::Reverse => {
            Attributes::Dimensions(raw.list("dimensions")?)
        }
        Opcode::Iota => Attributes::Dimension(raw.number("iota_dimension")?),
        Opcode::Concatenate | Opcode::GetDimensionSize => Attributes::Dimension(raw.single("dimensions")?),
        Opcode::Compare => Attributes::Compare(named("direction", raw.get("direction")?, &DIRECTIONS)?),
        Opcode::ReducePrecision => Attributes::Precision {
            exponent_bits: raw.number("exponent_bits")?,
            mantissa_bits: raw.number("mantissa_bits")?,
        },
        Opcode::Slice => slice(raw.get("slice")?)?,
        Opcode::DynamicSlice => Attributes::SliceSizes(raw.list("dynamic_slice_sizes")?),
        Opcode::Pad => Attributes::Pad(
            raw.get("padding")?
                .split('x')
                .filter(|part| !part.is_empty())
                .map(pad_dimension)
                .collect::<Result<_>>()?,
        ),
        Opcode::Gather => Attributes::Gather(gather(raw)?),
        Opcode::Scatter => Attributes::Scatter {
            dims: scatter(raw)?,
            computation: raw.computation("to_apply")?,
        },
        Opcode::Dot => Attributes::Dot(DotDims {
            lhs_batch: raw.list_or_empty("lhs_batch_dims")?,
            rhs_batch: raw.list_or_empty("rhs_batch_dims")?,
            lhs_contracting: raw.list_or_empty("lhs_contracting_dims")?,
            rhs_contracting: raw.list_or_empty("rhs_contracting_dims")?,
        }),
        Opcode::Convolution => Attributes::Convolution(convolution(raw)?),
        Opcode::Reduce => Attributes::Reduce {
            dimensions: raw.list("dimensions")?,
            computation: raw.computation("to_apply")?,
        },
        Opcode::ReduceWindow => Attributes::ReduceWindow {
            window: window(raw.get("window")?)?,
            computation: raw.computation("to_apply")?,
        },
        Opcode::SelectAndScatter => Attributes::SelectAndScatter {
            window: window(raw.get("window")?)?,
            select: raw.computation("select")?,
            scatter: raw.computation("scatter")?,
        },
        other => return parse_others(other, raw),
    })
}

fn parse_others(opcode: Opcode, raw: &Raw) -> Result<Attributes> {
    Ok(match opcode {
        Opcode::Sort => Attributes::Sort {
            dimension: raw.single("dimensions")?,
            stable: raw.flag("is_stable")?,
            computation: raw.computation("to_apply")?,
        },
        Opcode::TopK => Attributes::TopK {
            k: raw.number("k")?,
            largest: raw.number_or("largest", true)?,
        },
        Opcode::RngBitGenerator => Attributes::Rng(named("algorithm", raw.get("algorithm")?, &ALGORITHMS)?),
        Opcode::Fft => Attributes::Fft {
            kind: named("fft_type", raw.get("fft_type")?, &FFT_KINDS)?,
            lengths: raw.list("fft_length")?,
        },
        Opcode::Cholesky => Attributes::Cholesky {
            lower: raw.flag("lower")?,
        },
        Opcode::TriangularSolve => Attributes::TriangularSolve(TriangularSolveOptions {
            left_side: raw.flag("left_side")?,
            lower: raw.flag("lower")?,
            unit_diagonal: raw.flag("unit_diagonal")?,
            transpose: named("transpose_a", raw.get("transpose_a")?, &TRANSPOSES)?,
        }),
        Opcode::While => Attributes::While {
            condition: raw.computation("condition")?,
            body: raw.computation("body")?,
        },
        Opcode::Scan => Attributes::Scan(ScanConfig {
            dimension: raw.single("dimensions")?,
            num_carries: raw.number("num_carries")?,
            reverse: raw.flag("is_reverse")?,
            computation: raw.computation("to_apply")?,
        }),
        Opcode::Conditional => {
            let (inside, _) = balanced(raw.get("branch_computations")?)?;
            let names = split_commas(inside).into_iter();
            Attributes::Branches(
                names
                    .map(|name| raw.computation_named(name))
                    .collect::<Result<_>>()?,
            )
        }
        Opcode::Call => Attributes::Call(raw.computation("to_apply")?),
        Opcode::Fusion => Attributes::Call(raw.computation("calls")?),
        Opcode::Map => Attributes::Map(raw.computation("to_apply")?),
        Opcode::GetTupleElement => Attributes::TupleIndex(raw.number("index")?),
        Opcode::CustomCall => Attributes::CustomCall {
            target: unquote(raw.get("custom_call_target")?)?.into(),
            config: raw
                .find("backend_config")
                .map_or(Ok(String::new()), unquote)?
                .into(),
        },
        Opcode::Check => Attributes::Check(CheckConfig {
            code: named("code", raw.get("code")?, &CODES)?,
            message: unquote(raw.get("message")?)?.into(),
        }),
        Opcode::DynamicUpdateSlice | Opcode::Reshape | Opcode::Tuple | Opcode::OptBarrier => Attributes::None,
        other if other.is_elementwise() || other.class() == Class::Structure => Attributes::None,
        other => bail!(InvalidArgument, "{other} cannot be parsed"),
    })
}

/// `{[0:2], [1:9:3]}`.
fn slice(text: &str) -> Result<Attributes> {
    let (inside, _) = balanced(text)?;
    let (mut start, mut limit, mut stride) = (Dims::new(), Dims::new(), Dims::new());
    for part in split_commas(inside) {
        let (range, _) = balanced(part)?;
        let numbers: Vec<&str> = range.split(':').collect();
        ensure!(
            matches!(numbers.len(), 2 | 3),
            InvalidArgument,
            "malformed slice {text}"
        );
        start.push(number("slice", numbers[0])?);
        limit.push(number("slice", numbers[1])?);
        stride.push(numbers.get(2).map_or(Ok(1), |text| number("slice", text))?);
    }
    Ok(Attributes::Slice { start, limit, stride })
}

/// `1_2` or `1_2_0`.
fn pad_dimension(text: &str) -> Result<PadDimension> {
    let numbers: Vec<&str> = text.split('_').collect();
    ensure!(
        matches!(numbers.len(), 2 | 3),
        InvalidArgument,
        "malformed padding {text}"
    );
    Ok(PadDimension {
        low: number("padding", numbers[0])?,
        high: number("padding", numbers[1])?,
        interior: numbers.get(2).map_or(Ok(0), |text| number("padding", text))?,
    })
}

fn gather(raw: &Raw) -> Result<GatherDims> {
    Ok(GatherDims {
        offset_dims: raw.list("offset_dims")?,
        collapsed_slice_dims: raw.list("collapsed_slice_dims")?,
        start_index_map: raw.list("start_index_map")?,
        index_vector_dim: raw.number("index_vector_dim")?,
        operand_batching_dims: raw.list_or_empty("operand_batching_dims")?,
        start_indices_batching_dims: raw.list_or_empty("start_indices_batching_dims")?,
        slice_sizes: raw.list("slice_sizes")?,
        indices_are_sorted: raw.flag("indices_are_sorted")?,
    })
}

fn scatter(raw: &Raw) -> Result<ScatterDims> {
    Ok(ScatterDims {
        update_window_dims: raw.list("update_window_dims")?,
        inserted_window_dims: raw.list("inserted_window_dims")?,
        scatter_dims_to_operand_dims: raw.list("scatter_dims_to_operand_dims")?,
        index_vector_dim: raw.number("index_vector_dim")?,
        input_batching_dims: raw.list_or_empty("input_batching_dims")?,
        scatter_indices_batching_dims: raw.list_or_empty("scatter_indices_batching_dims")?,
        indices_are_sorted: raw.flag("indices_are_sorted")?,
        unique_indices: raw.flag("unique_indices")?,
    })
}

fn convolution(raw: &Raw) -> Result<ConvolutionConfig> {
    Ok(ConvolutionConfig {
        window: raw.find("window").map_or(Ok(Window::new()), window)?,
        dims: dim_labels(raw.get("dim_labels")?)?,
        feature_group_count: raw.number_or("feature_group_count", 1)?,
        batch_group_count: raw.number_or("batch_group_count", 1)?,
    })
}

/// The places of two letters, and of the digits in order.
fn labels(text: &str, first: char, second: char) -> Result<(i64, i64, Dims)> {
    let place = |c: char| {
        text.chars()
            .position(|other| other == c)
            .map(|place| place as i64)
    };
    let both = (place(first), place(second));
    let (Some(a), Some(b)) = both else {
        bail!(InvalidArgument, "malformed dim_labels {text}");
    };
    let digits = (0..text.chars().count().saturating_sub(2)).map(|number| {
        let digit = char::from_digit(number as u32, 10);
        digit.and_then(place).ok_or_else(|| bad("dim_labels", text))
    });
    Ok((a, b, digits.collect::<Result<_>>()?))
}

/// `b01f_01io->b01f`.
fn dim_labels(text: &str) -> Result<ConvolutionDims> {
    let parts = text
        .split_once("->")
        .and_then(|(rest, output)| Some((rest.split_once('_')?, output)));
    let ((input, kernel), output) = parts.ok_or_else(|| bad("dim_labels", text))?;
    let (input_batch, input_feature, input_spatial) = labels(input, 'b', 'f')?;
    let (kernel_input_feature, kernel_output_feature, kernel_spatial) = labels(kernel, 'i', 'o')?;
    let (output_batch, output_feature, output_spatial) = labels(output, 'b', 'f')?;
    Ok(ConvolutionDims {
        input_batch,
        input_feature,
        input_spatial,
        kernel_input_feature,
        kernel_output_feature,
        kernel_spatial,
        output_batch,
        output_feature,
        output_spatial,
    })
}

/// `{size=3x3 stride=2x2 pad=0_1x0_1}`.
fn window(text: &str) -> Result<Window> {
    let (inside, _) = balanced(text)?;
    let parts: Vec<(&str, Vec<&str>)> = inside
        .split_whitespace()
        .map(|part| {
            let (key, values) = part.split_once('=').ok_or_else(|| bad("window", text))?;
            Ok((key, values.split('x').collect()))
        })
        .collect::<Result<_>>()?;
    let sizes = parts
        .iter()
        .find(|(key, _)| *key == "size")
        .map_or(&[][..], |(_, values)| values);
    let mut window: Window = sizes
        .iter()
        .map(|size| Ok(WindowDimension::new(number("size", size)?)))
        .collect::<Result<_>>()?;
    for (key, values) in &parts {
        ensure!(
            values.len() == window.len(),
            InvalidArgument,
            "window has a malformed {key}"
        );
        for (dimension, value) in window.iter_mut().zip(values) {
            match *key {
                "size" => {}
                "stride" => dimension.stride = number(key, value)?,
                "pad" => {
                    let pad = pad_dimension(value)?;
                    (dimension.padding_low, dimension.padding_high) = (pad.low, pad.high);
                }
                "lhs_dilate" => dimension.base_dilation = number(key, value)?,
                "rhs_dilate" => dimension.window_dilation = number(key, value)?,
                "rhs_reversal" => dimension.window_reversal = number::<u8>(key, value)? != 0,
                other => bail!(InvalidArgument, "window has an unknown part {other}"),
            }
        }
    }
    Ok(window)
}
