//! Lowerings of ops on colours, in the order of operations of the kernels.

use crate::lowering::compare_with;
use ff_hlo::{Builder, Direction, Op as HloOp, Opcode};
use ff_op::LowerContext;
use ff_tensor::{DataType, Result, bail, ensure};

/// The channels of pixels, as arrays with a last extent of 1.
fn channels(builder: &mut Builder, pixels: HloOp) -> Result<[HloOp; 3]> {
    let last = builder.rank(pixels) - 1;
    Ok([
        builder.slice_in_dim(pixels, 0, 1, 1, last)?,
        builder.slice_in_dim(pixels, 1, 2, 1, last)?,
        builder.slice_in_dim(pixels, 2, 3, 1, last)?,
    ])
}

fn plus(builder: &mut Builder, x: HloOp, number: f64) -> Result<HloOp> {
    let number = builder.scalar_like(number, x)?;
    builder.add(x, number)
}

fn times(builder: &mut Builder, x: HloOp, number: f64) -> Result<HloOp> {
    let number = builder.scalar_like(number, x)?;
    builder.multiply(x, number)
}

/// `1 - x`.
fn rest_of(builder: &mut Builder, x: HloOp) -> Result<HloOp> {
    let one = builder.scalar_like(1.0, x)?;
    builder.subtract(one, x)
}

fn clamped(builder: &mut Builder, x: HloOp) -> Result<HloOp> {
    let (zero, one) = (builder.scalar_like(0.0, x)?, builder.scalar_like(1.0, x)?);
    builder.clamp(zero, x, one)
}

/// `a` where it is on the side of `b` that `direction` says, else `b`: what cannot be compared gives way.
fn picked(builder: &mut Builder, a: HloOp, b: HloOp, direction: Direction) -> Result<HloOp> {
    let stays = builder.compare(direction, a, b)?;
    builder.select(stays, a, b)
}

/// The largest or the smallest of numbers; what cannot be compared gives way to the next one.
fn extreme(builder: &mut Builder, [a, b, c]: [HloOp; 3], direction: Direction) -> Result<HloOp> {
    let chosen = picked(builder, a, b, direction)?;
    picked(builder, chosen, c, direction)
}

/// Hue (a part of the circle), saturation and value of a colour with these extremes.
fn to_hsv(builder: &mut Builder, [r, g, b]: [HloOp; 3], value: HloOp, least: HloOp) -> Result<[HloOp; 3]> {
    let range = builder.subtract(value, least)?;
    let zero = builder.scalar_like(0.0, range)?;
    let share = builder.divide(range, value)?;
    let has_value = builder.compare(Direction::Gt, value, zero)?;
    let saturation = builder.select(has_value, share, zero)?;
    let six = times(builder, range, 6.0)?;
    let unit = builder.reciprocal(six)?;
    let mut hues = Vec::new();
    for (a, b, shift) in [(g, b, 0.0), (b, r, 2.0 / 6.0), (r, g, 4.0 / 6.0)] {
        let difference = builder.subtract(a, b)?;
        let hue = builder.multiply(unit, difference)?;
        hues.push(if shift > 0.0 {
            plus(builder, hue, shift)?
        } else {
            hue
        });
    }
    let is_red = builder.compare(Direction::Eq, r, value)?;
    let is_green = builder.compare(Direction::Eq, g, value)?;
    let hue = builder.select(is_green, hues[1], hues[2])?;
    let hue = builder.select(is_red, hues[0], hue)?;
    let has_hue = builder.compare(Direction::Gt, range, zero)?;
    let hue = builder.select(has_hue, hue, zero)?;
    let is_negative = builder.compare(Direction::Lt, hue, zero)?;
    let turned = plus(builder, hue, 1.0)?;
    Ok([builder.select(is_negative, turned, hue)?, saturation, value])
}

/// Converts pixels as doubles.
fn map_pixels(
    context: &mut LowerContext,
    convert: fn(&mut Builder, [HloOp; 3]) -> Result<[HloOp; 3]>,
) -> Result<()> {
    let (input, dtype) = (context.input(0)?, context.output_type(0));
    let builder = &mut *context.builder;
    let wide = builder.convert(input, DataType::DOUBLE)?;
    let parts = channels(builder, wide)?;
    let parts = convert(builder, parts)?;
    let last = builder.rank(input) - 1;
    let all = builder.concatenate(&parts, last)?;
    let output = builder.convert(all, dtype)?;
    context.set_output(0, output);
    Ok(())
}

/// `RGBToHSV`.
pub fn rgb_to_hsv(context: &mut LowerContext) -> Result<()> {
    map_pixels(context, |builder, rgb| {
        let value = extreme(builder, rgb, Direction::Gt)?;
        let least = extreme(builder, rgb, Direction::Lt)?;
        to_hsv(builder, rgb, value, least)
    })
}

/// `HSVToRGB`.
pub fn hsv_to_rgb(context: &mut LowerContext) -> Result<()> {
    map_pixels(context, |builder, [hue, saturation, value]| {
        let sector = times(builder, hue, 6.0)?;
        let mut colors = Vec::new();
        for (centre, sign) in [(3.0, 1.0), (2.0, -1.0), (4.0, -1.0)] {
            let distance = plus(builder, sector, -centre)?;
            let distance = builder.unary(Opcode::Abs, distance)?;
            let share = times(builder, distance, sign)?;
            let share = plus(builder, share, if sign > 0.0 { -1.0 } else { 2.0 })?;
            let share = clamped(builder, share)?;
            let colored = builder.multiply(saturation, share)?;
            let white = rest_of(builder, saturation)?;
            let sum = builder.add(white, colored)?;
            colors.push(builder.multiply(sum, value)?);
        }
        Ok([colors[0], colors[1], colors[2]])
    })
}

/// Maps pixels in single precision with the number at input 1.
fn adjust(
    context: &mut LowerContext,
    change: fn(&mut Builder, [HloOp; 3], HloOp) -> Result<[HloOp; 3]>,
) -> Result<()> {
    let dims = context.input_dims(0)?;
    ensure!(
        dims.last() == Some(&3),
        InvalidArgument,
        "input must have 3 channels but instead has {dims:?}"
    );
    let (input, by, dtype) = (context.input(0)?, context.input(1)?, context.output_type(0));
    let builder = &mut *context.builder;
    let narrow = builder.convert(input, DataType::FLOAT)?;
    let by = builder.convert(by, DataType::FLOAT)?;
    let parts = channels(builder, narrow)?;
    let extents = builder.dims(parts[0]).to_vec();
    let by = builder.broadcast_scalar(by, &extents)?;
    let parts = change(builder, parts, by)?;
    let all = builder.concatenate(&parts, dims.len() - 1)?;
    let output = builder.convert(all, dtype)?;
    context.set_output(0, output);
    Ok(())
}

/// The choice of the sector that a number lies in; the last one where it lies in none.
fn by_sector(builder: &mut Builder, sector: HloOp, choices: [HloOp; 6]) -> Result<HloOp> {
    let mut chosen = choices[5];
    for (number, &choice) in choices.iter().enumerate().take(5).rev() {
        let is_here = compare_with(builder, Direction::Eq, sector, number as f64)?;
        chosen = builder.select(is_here, choice, chosen)?;
    }
    Ok(chosen)
}

/// `ratio` in even sectors, the rest of 1 in odd ones.
fn along_sector(builder: &mut Builder, sector: HloOp, ratio: HloOp) -> Result<HloOp> {
    let two = builder.scalar_like(2.0, sector)?;
    let odd = builder.binary(Opcode::Remainder, sector, two)?;
    let is_odd = compare_with(builder, Direction::Eq, odd, 1.0)?;
    let rest = rest_of(builder, ratio)?;
    builder.select(is_odd, rest, ratio)
}

/// The sector of the hue of a colour, by which channel is the largest and which the smallest.
fn sector_of(builder: &mut Builder, [r, g, b]: [HloOp; 3]) -> Result<HloOp> {
    let number = |builder: &mut Builder, value: f64| builder.scalar_like(value, r);
    let mut chosen = Vec::new();
    for (low, high, numbers) in [(r, g, [1.0, 3.0, 2.0]), (g, r, [0.0, 4.0, 5.0])] {
        let [first, second, third] = numbers.map(|value| number(builder, value));
        let (is_low, is_high) = (
            builder.compare(Direction::Lt, b, low)?,
            builder.compare(Direction::Gt, b, high)?,
        );
        let rest = builder.select(is_high, second?, third?)?;
        chosen.push(builder.select(is_low, first?, rest)?);
    }
    let is_green = builder.compare(Direction::Lt, r, g)?;
    builder.select(is_green, chosen[0], chosen[1])
}

/// `AdjustHue`.
pub fn hue(context: &mut LowerContext) -> Result<()> {
    adjust(context, |builder, rgb, delta| {
        let [r, g, b] = rgb;
        let sector = sector_of(builder, rgb)?;
        let most = by_sector(builder, sector, [r, g, g, b, b, r])?;
        let middle = by_sector(builder, sector, [g, r, b, g, r, b])?;
        let least = by_sector(builder, sector, [b, b, r, r, g, g])?;
        let range = builder.subtract(most, least)?;
        let part = builder.subtract(middle, least)?;
        let ratio = builder.divide(part, range)?;
        let ratio = along_sector(builder, sector, ratio)?;
        let hue = builder.add(sector, ratio)?;
        let zero = builder.scalar_like(0.0, hue)?;
        let is_grey = builder.compare(Direction::Eq, most, least)?;
        let hue = builder.select(is_grey, zero, hue)?;
        let turn = times(builder, delta, 6.0)?;
        let hue = builder.add(hue, turn)?;
        let six = builder.scalar_like(6.0, hue)?;
        let hue = builder.binary(Opcode::Remainder, hue, six)?;
        let is_negative = builder.compare(Direction::Lt, hue, zero)?;
        let turned = builder.add(hue, six)?;
        let hue = builder.select(is_negative, turned, hue)?;
        let sector = builder.unary(Opcode::Floor, hue)?;
        let ratio = builder.subtract(hue, sector)?;
        let ratio = along_sector(builder, sector, ratio)?;
        let middle = builder.multiply(ratio, range)?;
        let middle = builder.add(least, middle)?;
        Ok([
            by_sector(builder, sector, [most, middle, least, least, middle, most])?,
            by_sector(builder, sector, [middle, most, most, middle, least, least])?,
            by_sector(builder, sector, [least, least, middle, most, most, middle])?,
        ])
    })
}

/// `AdjustSaturation`.
pub fn saturation(context: &mut LowerContext) -> Result<()> {
    adjust(context, |builder, rgb, scale| {
        let [r, g, b] = rgb;
        let value = extreme(builder, [b, g, r], Direction::Gt)?;
        let least = extreme(builder, [b, g, r], Direction::Lt)?;
        let [hue, saturation, value] = to_hsv(builder, rgb, value, least)?;
        let saturation = builder.multiply(saturation, scale)?;
        // The maximum of zero and what is no number is zero.
        let (zero, one) = (
            builder.scalar_like(0.0, saturation)?,
            builder.scalar_like(1.0, saturation)?,
        );
        let saturation = picked(builder, saturation, zero, Direction::Gt)?;
        let saturation = builder.minimum(saturation, one)?;
        let chroma = builder.multiply(saturation, value)?;
        let rest = builder.subtract(value, chroma)?;
        let sector = times(builder, hue, 6.0)?;
        let two = builder.scalar_like(2.0, sector)?;
        let within = builder.binary(Opcode::Remainder, sector, two)?;
        let shifted = builder.add(within, two)?;
        let is_low = compare_with(builder, Direction::Le, within, 0.0)?;
        let within = builder.select(is_low, shifted, within)?;
        let distance = plus(builder, within, -1.0)?;
        let distance = builder.unary(Opcode::Abs, distance)?;
        let share = rest_of(builder, distance)?;
        let middle = builder.multiply(chroma, share)?;
        let sector = builder.unary(Opcode::Floor, sector)?;
        let none = builder.scalar_like(0.0, middle)?;
        let mut colors = Vec::new();
        for choices in [
            [chroma, middle, none, none, middle, chroma],
            [middle, chroma, chroma, middle, none, none],
            [none, none, middle, chroma, chroma, middle],
        ] {
            let color = by_sector(builder, sector, choices)?;
            // A hue of a whole turn is in no sector, nor is what is no number.
            let is_within = compare_with(builder, Direction::Lt, sector, 6.0)?;
            let color = builder.select(is_within, color, none)?;
            colors.push(builder.add(color, rest)?);
        }
        Ok([colors[0], colors[1], colors[2]])
    })
}

/// `AdjustContrastv2`: the mean of each channel of each image, as doubles.
pub fn contrast(context: &mut LowerContext) -> Result<()> {
    let dims = context.input_dims(0)?;
    let [.., height, width, _] = dims[..] else {
        bail!(InvalidArgument, "input must be at least 3-D, got {dims:?}");
    };
    let (input, factor, dtype) = (context.input(0)?, context.input(1)?, context.output_type(0));
    let axes = [dims.len() as i64 - 3, dims.len() as i64 - 2];
    let builder = &mut *context.builder;
    let pixels = builder.convert(input, DataType::FLOAT)?;
    let wide = builder.convert(pixels, DataType::DOUBLE)?;
    let sum = builder.reduce_sum(wide, &axes)?;
    let count = builder.scalar_like((height * width) as f64, sum)?;
    let mean = builder.divide(sum, count)?;
    let mean = builder.convert(mean, DataType::FLOAT)?;
    let mean = builder.broadcast_reduced(mean, &dims, &axes)?;
    let factor = builder.convert(factor, DataType::FLOAT)?;
    let factor = builder.broadcast_scalar(factor, &dims)?;
    let distance = builder.subtract(pixels, mean)?;
    let scaled = builder.multiply(distance, factor)?;
    let changed = builder.add(scaled, mean)?;
    let output = builder.convert(changed, dtype)?;
    context.set_output(0, output);
    Ok(())
}
