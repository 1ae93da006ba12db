//! Geometry of sliding windows: data formats, padding rules, output extents. Exists once for convolution and pooling.

use ff_op::{Attrs, ShapeContext};
use ff_tensor::{PartialShape, Result, bail, dim, ensure, status};

/// No window reaches further: what is computed from it does not overflow.
const LARGEST: i64 = 1 << 60;

/// Where batch, channels and spatial axes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Number of spatial axes.
    pub spatial: usize,
    /// Whether channels are the last axis; else the second.
    pub channels_last: bool,
}

impl Format {
    /// The format that the attribute `data_format` names, channels last when there is none.
    /// INVALID_ARGUMENT for an unknown name.
    pub fn of(attrs: &Attrs, spatial: usize) -> Result<Format> {
        let name = attrs.string("data_format").unwrap_or("NHWC");
        match name {
            "NHWC" | "NDHWC" | "NWC" | "CHANNELS_LAST" => Ok(Format {
                spatial,
                channels_last: true,
            }),
            "NCHW" | "NCDHW" | "NCW" | "CHANNELS_FIRST" => Ok(Format {
                spatial,
                channels_last: false,
            }),
            other => bail!(InvalidArgument, "Invalid data format string: {other}"),
        }
    }

    /// The channel axis.
    pub fn channels(self) -> usize {
        if self.channels_last { self.spatial + 1 } else { 1 }
    }

    /// The axis of a spatial dimension.
    pub fn axis(self, spatial: usize) -> usize {
        if self.channels_last {
            spatial + 1
        } else {
            spatial + 2
        }
    }

    /// The spatial entries of a list with one entry per axis; 1 for each when the list is missing.
    /// INVALID_ARGUMENT when it has another length, or not 1 for batch or channels.
    pub fn spatial_of(self, attrs: &Attrs, name: &str, free_depth: bool) -> Result<Vec<i64>> {
        match attrs.ints(name) {
            Ok([]) | Err(_) => Ok(vec![1; self.spatial]),
            Ok(list) => self.spatial_in(list, name, free_depth),
        }
    }

    /// The spatial entries of a list with one entry per axis; see [`Format::spatial_of`].
    pub fn spatial_in(self, list: &[i64], name: &str, free_depth: bool) -> Result<Vec<i64>> {
        ensure!(
            list.len() == self.spatial + 2,
            InvalidArgument,
            "{name} attribute must have {} values, got {}",
            self.spatial + 2,
            list.len()
        );
        ensure!(
            free_depth || (list[0] == 1 && list[self.channels()] == 1),
            InvalidArgument,
            "Current implementation does not support {name} in the batch and depth dimensions"
        );
        let values: Vec<i64> = (0..self.spatial).map(|i| list[self.axis(i)]).collect();
        ensure!(
            values.iter().all(|&value| value > 0),
            InvalidArgument,
            "{name} must be positive, got {values:?}"
        );
        Ok(values)
    }

    /// Extents of a shape in this format, with channels last.
    pub fn channels_last_of(self, dims: &[i64]) -> Vec<i64> {
        let mut dims = dims.to_vec();
        if !self.channels_last && dims.len() > 1 {
            let channels = dims.remove(1);
            dims.push(channels);
        }
        dims
    }

    /// A full shape from batch, spatial extents and channels.
    pub fn shape(self, batch: i64, spatial: &[i64], channels: i64) -> PartialShape {
        let mut dims = vec![batch];
        if !self.channels_last {
            dims.push(channels);
        }
        dims.extend_from_slice(spatial);
        if self.channels_last {
            dims.push(channels);
        }
        PartialShape::new(&dims)
    }
}

/// How a window is padded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Not at all.
    Valid,
    /// So that the output has `ceil(input / stride)` elements.
    Same,
    /// As listed: (before, after) for each spatial axis.
    Explicit(Vec<(i64, i64)>),
}

impl Padding {
    /// The padding that the attributes `padding` and `explicit_paddings` say. INVALID_ARGUMENT when they are wrong.
    pub fn of(attrs: &Attrs, format: Format) -> Result<Padding> {
        match attrs.string("padding")? {
            "VALID" => Ok(Padding::Valid),
            "SAME" => Ok(Padding::Same),
            "EXPLICIT" => {
                let list = attrs.ints("explicit_paddings")?;
                ensure!(
                    list.len() == 2 * (format.spatial + 2),
                    InvalidArgument,
                    "explicit_paddings attribute must contain {} values, but got: {}",
                    2 * (format.spatial + 2),
                    list.len()
                );
                ensure!(
                    list.iter().all(|amount| (0..LARGEST).contains(amount)),
                    InvalidArgument,
                    "All elements of explicit_paddings must be nonnegative"
                );
                let pair = |axis: usize| (list[2 * axis], list[2 * axis + 1]);
                ensure!(
                    pair(0) == (0, 0) && pair(format.channels()) == (0, 0),
                    InvalidArgument,
                    "Nonzero explicit padding in the batch or depth dimensions is not supported"
                );
                Ok(Padding::Explicit(
                    (0..format.spatial).map(|i| pair(format.axis(i))).collect(),
                ))
            }
            other => bail!(InvalidArgument, "Unknown padding type: {other}"),
        }
    }
}

/// A window along one axis, for a known input extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Input extent.
    pub input: i64,
    /// Window extent.
    pub window: i64,
    /// Step.
    pub stride: i64,
    /// Distance of elements in the window.
    pub dilation: i64,
    /// Padding before.
    pub low: i64,
    /// Padding after.
    pub high: i64,
    /// Output extent.
    pub output: i64,
}

/// Output extent along one axis; unknown when the input or window extent is. INVALID_ARGUMENT when it were negative.
pub fn output_extent(
    padding: &Padding,
    axis: usize,
    input: i64,
    window: i64,
    stride: i64,
    dilation: i64,
) -> Result<i64> {
    if input < 0 {
        return Ok(dim::UNKNOWN);
    }
    if *padding == Padding::Same {
        return Ok(input / stride + i64::from(input % stride > 0));
    }
    if window < 0 {
        return Ok(dim::UNKNOWN);
    }
    let reach = reach(window, dilation)?;
    let (low, high) = match padding {
        Padding::Explicit(list) => list[axis],
        _ => (0, 0),
    };
    let padded = dim::add(dim::add(input, low)?, high)?;
    let output = padded
        .saturating_sub(reach)
        .saturating_add(stride)
        .div_euclid(stride);
    ensure!(
        output >= 0,
        InvalidArgument,
        "Computed output size would be negative: {output} [input_size: {input}, effective_filter_size: {reach}, stride: {stride}]"
    );
    Ok(output)
}

/// As [`output_extent`]. INVALID_ARGUMENT where a graph is being built, in which a window that is not padded to fit must
/// not be larger than the input; kernels let one place be too few.
pub fn inferred_extent(
    context: &ShapeContext,
    padding: &Padding,
    axis: usize,
    input: i64,
    [window, stride, dilation]: [i64; 3],
) -> Result<i64> {
    let output = output_extent(padding, axis, input, window, stride, dilation)?;
    if *padding != Padding::Same && output == 0 && !context.in_step() {
        let reach = reach(window, dilation)?;
        let (low, high) = match padding {
            Padding::Explicit(list) => list[axis],
            _ => (0, 0),
        };
        ensure!(
            input + low + high >= reach,
            InvalidArgument,
            "Negative dimension size caused by subtracting {reach} from {}",
            input + low + high
        );
    }
    Ok(output)
}

/// [`inferred_extent`] of each spatial axis, of `steps`: window, stride and dilation by axis.
pub fn inferred_extents(
    context: &ShapeContext,
    format: Format,
    padding: &Padding,
    input: &PartialShape,
    steps: impl Fn(usize) -> [i64; 3],
) -> Result<Vec<i64>> {
    let along = |axis| {
        let extent = input.dim(format.axis(axis) as i64);
        inferred_extent(context, padding, axis, extent, steps(axis))
    };
    (0..format.spatial).map(along).collect()
}

/// How many elements a window spans. INVALID_ARGUMENT when they cannot be counted.
fn reach(window: i64, dilation: i64) -> Result<i64> {
    let steps = (window - 1).checked_mul(dilation);
    steps
        .filter(|steps| *steps < LARGEST)
        .map(|steps| steps + 1)
        .ok_or_else(|| {
            status!(
                InvalidArgument,
                "A window of {window} elements with dilation {dilation} is too large"
            )
        })
}

/// The whole geometry along one axis.
pub fn axis(
    padding: &Padding,
    axis: usize,
    input: i64,
    window: i64,
    stride: i64,
    dilation: i64,
) -> Result<Axis> {
    let output = output_extent(padding, axis, input, window, stride, dilation)?;
    let reach = reach(window, dilation)?;
    let steps = (output - 1).checked_mul(stride);
    let Some(steps) = steps.filter(|steps| *steps < LARGEST) else {
        bail!(
            InvalidArgument,
            "{output} windows at a distance of {stride} are too far apart"
        );
    };
    let (low, high) = match padding {
        Padding::Valid => (0, 0),
        Padding::Explicit(list) => list[axis],
        Padding::Same => {
            let needed = (steps + reach - input).max(0);
            (needed / 2, needed - needed / 2)
        }
    };
    Ok(Axis {
        input,
        window,
        stride,
        dilation,
        low,
        high,
        output,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_padding_puts_the_odd_element_after() {
        let got = axis(&Padding::Same, 0, 5, 2, 2, 1).unwrap();
        assert_eq!((got.low, got.high, got.output), (0, 1, 3));
        let got = axis(&Padding::Same, 0, 224, 7, 2, 1).unwrap();
        assert_eq!((got.low, got.high, got.output), (2, 3, 112));
        assert_eq!(output_extent(&Padding::Valid, 0, 4, 5, 1, 1).unwrap(), 0);
        assert!(output_extent(&Padding::Valid, 0, 3, 6, 1, 1).is_err());
    }
}
