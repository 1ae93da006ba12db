//! Saving and restoring tensor bundles: `SaveV2`, `RestoreV2`, `MergeV2Checkpoints`.
//!
//! `RestoreV2` also reads the first format. Whole tensors and slices are named by `shape_and_slices`: an empty text
//! means all of the tensor.

use super::{as_text, folder, single_string, texts};
use ff_checkpoint::{BundleWriter, Checkpoint, ShapeAndSlice, merge_bundles};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_platform::files;
use ff_tensor::{DataType, PartialShape, Result, Tensor, bail, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SaveV2",
        shape: save_shape,
        kernels: &[Kernel::native(save)],
        gradient: Gradient::NotDifferentiable,
        ..Op::WRITES
    },
    &Op {
        name: "RestoreV2",
        shape: restore_shape,
        kernels: &[Kernel::native(restore)],
        gradient: Gradient::NotDifferentiable,
        ..Op::READS
    },
    &Op {
        name: "MergeV2Checkpoints",
        shape: |context| {
            context.input_with_rank(0, 1)?;
            context.input_with_rank(1, 0)?;
            Ok(())
        },
        kernels: &[Kernel::native(merge)],
        gradient: Gradient::NotDifferentiable,
        ..Op::WRITES
    },
];

/// Inputs before the tensors: prefix, names, shapes and slices.
const FIXED_INPUTS: usize = 3;

fn save_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(0, 0)?;
    let tensors = (context.num_inputs() - FIXED_INPUTS) as i64;
    for index in 1..FIXED_INPUTS {
        let extent = context.input_with_rank(index, 1)?.dim(0);
        dim::merge(extent, tensors)?;
    }
    Ok(())
}

fn restore_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(0, 0)?;
    let names = context.input_with_rank(1, 1)?;
    let slices = context.input_with_rank(2, 1)?;
    names.merge(&slices)?;
    let Some(slices) = context.input_value(2) else {
        return Ok(());
    };
    let slices = slices.strings()?;
    if slices.len() != context.num_outputs() {
        return Ok(());
    }
    for (index, slice) in slices.iter().enumerate() {
        if !slice.is_empty() {
            let parsed = ShapeAndSlice::parse(as_text(slice)?)?;
            context.set_output(index, PartialShape::from(&parsed.slice_shape));
        }
    }
    Ok(())
}

/// Checks names and slices against the number of tensors.
fn check_names(context: &KernelContext, tensors: usize, of: &str) -> Result<()> {
    let (names, slices) = (context.input(1)?.num_elements(), context.input(2)?.num_elements());
    ensure!(
        names == tensors,
        InvalidArgument,
        "Got {names} tensor names but {tensors} {of}"
    );
    ensure!(
        slices == tensors,
        InvalidArgument,
        "Expected {tensors} elements in shapes_and_slices but got {slices}"
    );
    Ok(())
}

fn save(context: &mut KernelContext) -> Result<()> {
    let prefix = as_text(single_string(context, 0, "prefix")?)?;
    check_names(context, context.num_inputs() - FIXED_INPUTS, "tensors.")?;
    let mut writer = BundleWriter::create(prefix)?;
    let names = context.input(1)?.strings()?;
    let slices = context.input(2)?.strings()?;
    for (index, (name, slice)) in names.iter().zip(slices).enumerate() {
        let tensor = context.input(FIXED_INPUTS + index)?;
        if slice.is_empty() {
            writer.add(name.as_bytes(), tensor)?;
        } else {
            let parsed = slice_to_save(as_text(slice)?, tensor)?;
            writer.add_slice(name.as_bytes(), &parsed.shape, &parsed.slice, tensor)?;
        }
    }
    writer.finish()
}

/// The shape and slice of a tensor to save. INVALID_ARGUMENT when the tensor is not of the slice's shape.
pub(super) fn slice_to_save(text: &str, tensor: &Tensor) -> Result<ShapeAndSlice> {
    let parsed = ShapeAndSlice::parse(text)?;
    ensure!(
        parsed.slice_shape == *tensor.shape(),
        InvalidArgument,
        "Slice in shape_and_slice specification does not match the shape of the tensor to  save: {text}, tensor: {}",
        tensor.shape()
    );
    Ok(parsed)
}

fn restore(context: &mut KernelContext) -> Result<()> {
    let prefix = as_text(single_string(context, 0, "prefix")?)?;
    check_names(context, context.num_outputs(), "expected dtypes.")?;
    let names = context.input(1)?.strings()?;
    let slices = texts(context.input(2)?)?;
    let checkpoint = Checkpoint::open(prefix)?;
    if let Checkpoint::Bundle(_) = &checkpoint {
        check_types(context, &checkpoint)?;
    }
    let mut outputs = Vec::with_capacity(names.len());
    for (index, (name, slice)) in names.iter().zip(slices).enumerate() {
        outputs.push(match &checkpoint {
            Checkpoint::Bundle(_) => restore_one(&checkpoint, name.as_bytes(), slice)?,
            Checkpoint::V1(_) => restore_v1(
                &checkpoint,
                prefix,
                name.as_bytes(),
                slice,
                context.output_type(index),
            )?,
        });
    }
    for (index, output) in outputs.into_iter().enumerate() {
        context.set_output(index, output)?;
    }
    Ok(())
}

/// All tensors must have the types asked for; the message names every one that has not.
fn check_types(context: &KernelContext, checkpoint: &Checkpoint) -> Result<()> {
    let mut mismatches = Vec::new();
    for (index, name) in context.input(1)?.strings()?.iter().enumerate() {
        let (stored, _) = checkpoint.dtype_and_shape(name.as_bytes())?;
        let expected = context.output_type(index);
        if stored != expected {
            mismatches.push(format!(
                "tensor_name = {}; expected dtype {expected} does not equal original dtype {stored}",
                name.to_str_lossy()
            ));
        }
    }
    ensure!(
        mismatches.is_empty(),
        InvalidArgument,
        "{}",
        mismatches.join("\n")
    );
    Ok(())
}

fn restore_one(checkpoint: &Checkpoint, name: &[u8], slice: &str) -> Result<Tensor> {
    if slice.is_empty() {
        return checkpoint.read(name);
    }
    let parsed = ShapeAndSlice::parse(slice)?;
    let (_, shape) = checkpoint.dtype_and_shape(name)?;
    ensure!(
        shape == parsed.shape,
        InvalidArgument,
        "tensor_name = {}; shape in shape_and_slice spec {} does not match the shape stored in checkpoint: {shape}",
        String::from_utf8_lossy(name),
        parsed.shape
    );
    checkpoint.read_slice(name, &parsed.slice)
}

/// A tensor or slice of a checkpoint of the first format, with that format's messages.
pub(super) fn restore_v1(
    checkpoint: &Checkpoint,
    pattern: &str,
    name: &[u8],
    slice: &str,
    expected: DataType,
) -> Result<Tensor> {
    let text = String::from_utf8_lossy(name);
    if !checkpoint.contains(name) {
        bail!(
            NotFound,
            "Tensor name \"{text}\" not found in checkpoint files {pattern}"
        );
    }
    let (dtype, shape) = checkpoint.dtype_and_shape(name)?;
    ensure!(
        dtype == expected,
        InvalidArgument,
        "Expected to restore a tensor of type {expected}, got a tensor of type {dtype} instead: tensor_name = {text}"
    );
    if slice.is_empty() {
        return checkpoint.read(name);
    }
    let parsed = ShapeAndSlice::parse(slice)?;
    ensure!(
        shape == parsed.shape,
        InvalidArgument,
        "Shape in shape_and_slice spec does not match the shape in the save file: {}, save file shape: {shape}",
        parsed.shape
    );
    checkpoint.read_slice(name, &parsed.slice)
}

/// Joins bundles; then removes the folders in which they were, where nothing else is in them.
fn merge(context: &mut KernelContext) -> Result<()> {
    let prefixes = texts(context.input(0)?)?;
    let merged = as_text(single_string(context, 1, "destination_prefix")?)?;
    merge_bundles(&prefixes, merged, context.attrs().bool("allow_missing_files")?)?;
    if context.attrs().bool("delete_old_dirs")? {
        for prefix in prefixes {
            let old = folder(prefix);
            if !old.is_empty() && old != folder(merged) {
                // A folder that holds other things stays; that is no error.
                let _ = files::delete_directory(old);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, bools, scalar, strings, t, vector};
    use ff_op::Attrs;
    use ff_tensor::{Code, DataType, Result, Tensor};

    fn restore(prefix: &str, names: &[&str], slices: &[&str], types: &[DataType]) -> Result<Vec<Tensor>> {
        let count = names.len() as i64;
        let inputs = [
            strings(&[], &[prefix]),
            strings(&[count], names),
            strings(&[count], slices),
        ];
        OpRunner::new().run("RestoreV2", &inputs, Attrs::new().with("dtypes", types.to_vec()))
    }

    fn save(prefix: &str, names: &[&str], slices: &[&str], tensors: &[Tensor]) -> Result<Vec<Tensor>> {
        let count = names.len() as i64;
        let mut inputs = vec![
            strings(&[], &[prefix]),
            strings(&[count], names),
            strings(&[count], slices),
        ];
        inputs.extend_from_slice(tensors);
        OpRunner::new().run("SaveV2", &inputs, Attrs::new())
    }

    const INT32: DataType = DataType::INT32;

    #[test]
    fn what_is_saved_is_restored() {
        let folder = tempfile::tempdir().unwrap();
        let prefix = format!("{}/deep/model", folder.path().display());
        let tensors = [
            t(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]),
            strings(&[2], &["a", ""]),
            vector::<i64>(&[]),
        ];
        save(&prefix, &["w", "s", "e"], &["", "", ""], &tensors).unwrap();
        let types = [DataType::FLOAT, DataType::STRING, DataType::INT64];
        let restored = restore(&prefix, &["w", "s", "e"], &["", "", ""], &types).unwrap();
        assert!(restored.iter().zip(&tensors).all(|(a, b)| a.bitwise_eq(b)));
        let row = restore(&prefix, &["w"], &["2 2 1,1:-"], &types[..1]).unwrap();
        assert!(row[0].bitwise_eq(&t(&[1, 2], &[3.0f32, 4.0])));

        let error = restore(&prefix, &["w", "s"], &["", ""], &[INT32, INT32]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        let text = "tensor_name = w; expected dtype int32 does not equal original dtype float\n\
                    tensor_name = s; expected dtype int32 does not equal original dtype string";
        assert!(error.message().starts_with(text), "{error}");
        let error = restore(&prefix, &["none"], &[""], &[INT32]).unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
        assert!(
            error.message().starts_with("Key none not found in checkpoint"),
            "{error}"
        );
        let error = restore(&prefix, &["w"], &["3 2 0,1:-"], &types[..1]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }

    #[test]
    fn slices_are_joined() {
        let folder = tempfile::tempdir().unwrap();
        let prefix = format!("{}/p", folder.path().display());
        let halves = [t(&[1, 2], &[1, 2]), t(&[1, 2], &[3, 4])];
        let slices = ["2 2 0,1:-", "2 2 1,1:-"];
        save(&prefix, &["v", "v"], &slices, &halves).unwrap();
        let whole = restore(&prefix, &["v"], &[""], &[INT32]).unwrap();
        assert!(whole[0].bitwise_eq(&t(&[2, 2], &[1, 2, 3, 4])));
        let error = save(&prefix, &["v"], &["2 2 -:-"], &halves[..1]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }

    #[test]
    fn wrong_numbers_of_names_are_refused() {
        let error = save("/tmp/never", &["a"], &[""], &[scalar(1), scalar(2)]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        let error = restore("/no/such", &["a"], &[""], &[INT32, INT32]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        let error = restore("/no/such", &["a"], &[""], &[INT32]).unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
    }

    #[test]
    fn shards_are_merged() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().display().to_string();
        let parts = [format!("{root}/temp/part0"), format!("{root}/temp/part1")];
        save(&parts[0], &["a"], &[""], &[scalar(7)]).unwrap();
        save(&parts[1], &["b"], &[""], &[bools(&[1], &[true])]).unwrap();
        let merged = format!("{root}/model");
        let inputs = [strings(&[2], &[&parts[0], &parts[1]]), strings(&[], &[&merged])];
        OpRunner::new()
            .run("MergeV2Checkpoints", &inputs, Attrs::new())
            .unwrap();
        let read = restore(&merged, &["b", "a"], &["", ""], &[DataType::BOOL, INT32]).unwrap();
        assert!(read[1].bitwise_eq(&scalar(7)));
        assert!(!folder.path().join("temp").exists());
    }
}
