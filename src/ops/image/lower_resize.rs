//! Lowerings of resizing: rows and columns are taken at known places, and blended.

use super::resize::scales;
use super::sampling::{Linear, linear};
use crate::lowering::take;
use ff_hlo::{Builder, DotDims, Op as HloOp};
use ff_op::LowerContext;
use ff_tensor::{DataType, Result, Shape, Tensor, ensure};

/// Extents of the image at an input, and the wanted height and width.
fn extents(dims: &[i64], size: &[i64]) -> Result<([usize; 2], [usize; 2])> {
    ensure!(
        size.len() == 2 && size.iter().all(|&extent| extent > 0),
        InvalidArgument,
        "output dimensions must be positive"
    );
    ensure!(
        dims.len() == 4 && dims[1..].iter().all(|&extent| extent > 0),
        InvalidArgument,
        "input image must be of non-zero size"
    );
    Ok((
        [dims[1] as usize, dims[2] as usize],
        [size[0] as usize, size[1] as usize],
    ))
}

/// Sets output 0 to no images of this size, if there are none.
fn set_none(context: &mut LowerContext, [height, width]: [usize; 2]) -> Result<bool> {
    let dims = context.input_dims(0)?;
    if dims[0] > 0 {
        return Ok(false);
    }
    let dims = [0, height as i64, width as i64, dims[3]];
    let none = context.builder.full(context.output_type(0), &dims, 0.0)?;
    context.set_output(0, none);
    Ok(true)
}

/// `ResizeNearestNeighbor`; the size is known.
pub fn nearest(context: &mut LowerContext) -> Result<()> {
    let (input, output) = extents(&context.input_dims(0)?, &context.constant_i64s(1)?)?;
    let scales = scales(context.attrs(), input, output)?;
    if set_none(context, output)? {
        return Ok(());
    }
    let mut image = context.input(0)?;
    for axis in 0..2 {
        let place = |x| scales[axis].nearest(x, input[axis]) as i64;
        let places = crate::wide::collected((0..output[axis]).map(place))?;
        image = take(context.builder, image, &places, axis + 1)?;
    }
    context.set_output(0, image);
    Ok(())
}

/// Neighbours along an axis, blended.
fn blend(builder: &mut Builder, image: HloOp, axis: usize, places: &[Linear]) -> Result<HloOp> {
    let side = |upper: bool| -> Vec<i64> {
        let place = |place: &Linear| (if upper { place.upper } else { place.lower }) as i64;
        places.iter().map(place).collect()
    };
    let weights: Vec<f32> = places.iter().map(|place| place.weight).collect();
    let lower = take(builder, image, &side(false), axis)?;
    let upper = take(builder, image, &side(true), axis)?;
    let weights = builder.constant_vector(&weights)?;
    let dims = builder.dims(lower).to_vec();
    let weights = builder.broadcast_in_dim(weights, &dims, &[axis as i64])?;
    let distance = builder.subtract(upper, lower)?;
    let part = builder.multiply(distance, weights)?;
    builder.add(lower, part)
}

/// `ResizeBilinear`; the size is known.
pub fn bilinear(context: &mut LowerContext) -> Result<()> {
    let (input, output) = extents(&context.input_dims(0)?, &context.constant_i64s(1)?)?;
    let scales = scales(context.attrs(), input, output)?;
    if set_none(context, output)? {
        return Ok(());
    }
    let image = context.input(0)?;
    let builder = &mut *context.builder;
    let image = builder.convert(image, DataType::FLOAT)?;
    let columns = blend(builder, image, 2, &linear(scales[1], input[1], output[1])?)?;
    let image = blend(builder, columns, 1, &linear(scales[0], input[0], output[0])?)?;
    context.set_output(0, image);
    Ok(())
}

/// `ResizeBilinearGrad`: a product with the weights of each axis.
pub fn bilinear_gradient(context: &mut LowerContext) -> Result<()> {
    let (dims, image) = (context.input_dims(0)?, context.input_dims(1)?);
    ensure!(
        dims.len() == 4 && image.len() == 4 && dims[0] == image[0] && dims[3] == image[3],
        InvalidArgument,
        "batch and channels of the gradients and the image must be equal"
    );
    ensure!(
        dims[1] > 0 && dims[2] > 0 && image[1] > 0 && image[2] > 0,
        InvalidArgument,
        "resized and original images must not be empty"
    );
    ensure!(
        context.output_type(0) != DataType::DOUBLE,
        Unimplemented,
        "products in single precision, added in double, are not lowered"
    );
    let (from, to) = (
        [image[1], image[2]].map(|n| n as usize),
        [dims[1], dims[2]].map(|n| n as usize),
    );
    let scales = scales(context.attrs(), from, to)?;
    let (incoming, dtype) = (context.input(0)?, context.output_type(0));
    let builder = &mut *context.builder;
    let mut value = builder.convert(incoming, DataType::DOUBLE)?;
    for axis in 0..2 {
        let mut weights: Vec<f64> = crate::wide::zeros(from[axis] * to[axis])?;
        for (x, place) in linear(scales[axis], from[axis], to[axis])?.iter().enumerate() {
            weights[place.lower * to[axis] + x] += f64::from(1.0 - place.weight);
            weights[place.upper * to[axis] + x] += f64::from(place.weight);
        }
        let shape = Shape::new(&[from[axis] as i64, to[axis] as i64])?;
        let weights = builder.constant(Tensor::from_slice(shape, &weights)?)?;
        let config = DotDims {
            lhs_contracting: [1i64].into_iter().collect(),
            rhs_contracting: [axis as i64 + 1].into_iter().collect(),
            ..DotDims::default()
        };
        let product = builder.dot_general(weights, value, config, None)?;
        // The new axis came first.
        let order = if axis == 0 { [1, 0, 2, 3] } else { [1, 2, 0, 3] };
        value = builder.transpose(product, &order)?;
    }
    let output = builder.convert(value, dtype)?;
    context.set_output(0, output);
    Ok(())
}
