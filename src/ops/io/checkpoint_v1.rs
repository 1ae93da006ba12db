//! The first checkpoint format: `Save`, `SaveSlices`, `Restore`, `RestoreSlice`.

use super::checkpoint::{restore_v1, slice_to_save};
use super::{as_text, single_string, texts};
use ff_checkpoint::{Checkpoint, ShapeAndSlice, V1Writer};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, dim, ensure};

static SAVE: Op = Op {
    name: "Save",
    shape: save_shape,
    kernels: &[Kernel::native(save)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
static SAVE_SLICES: Op = Op {
    name: "SaveSlices",
    ..SAVE
};
static RESTORE: Op = Op {
    name: "Restore",
    shape: restore_shape,
    kernels: &[Kernel::native(restore)],
    gradient: Gradient::NotDifferentiable,
    ..Op::READS
};
static RESTORE_SLICE: Op = Op {
    name: "RestoreSlice",
    ..RESTORE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[&SAVE, &SAVE_SLICES, &RESTORE, &RESTORE_SLICE];

/// Inputs before the tensors: file name, tensor names, and with slices their texts.
fn fixed_inputs(op: &str) -> usize {
    if op == "SaveSlices" { 3 } else { 2 }
}

fn save_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(0, 0)?;
    let fixed = fixed_inputs(context.node().op_name());
    let tensors = (context.num_inputs() - fixed) as i64;
    for index in 1..fixed {
        let extent = context.input_with_rank(index, 1)?.dim(0);
        dim::merge(extent, tensors)?;
    }
    Ok(())
}

/// The tensors are listed in the order of their names.
fn save(context: &mut KernelContext) -> Result<()> {
    let path = as_text(single_string(context, 0, "filename")?)?;
    let fixed = fixed_inputs(context.node().op_name());
    let names = texts(context.input(1)?)?;
    let tensors = context.num_inputs() - fixed;
    ensure!(
        names.len() == tensors,
        InvalidArgument,
        "Expected {} tensors but got {tensors}",
        names.len()
    );
    let slices = match fixed {
        2 => vec![""; tensors],
        _ => texts(context.input(2)?)?,
    };
    ensure!(
        slices.len() == tensors,
        InvalidArgument,
        "Expected {tensors} elements for the tensor_shapes_and_slices but got {}",
        slices.len()
    );
    let mut order: Vec<usize> = (0..tensors).collect();
    order.sort_by_key(|&index| names[index]);
    let mut writer = V1Writer::new(path);
    for index in order {
        let tensor = context.input(fixed + index)?;
        if slices[index].is_empty() {
            writer.add(names[index], tensor)?;
        } else {
            let parsed = slice_to_save(slices[index], tensor)?;
            writer.add_slice(names[index], &parsed.shape, &parsed.slice, tensor)?;
        }
    }
    writer.finish()?;
    Ok(())
}

fn restore_shape(context: &mut ShapeContext) -> Result<()> {
    for index in 0..context.num_inputs() {
        context.input_with_rank(index, 0)?;
    }
    if let Some(slice) = context.input_value(2)
        && let [slice] = slice.strings()?
        && !slice.is_empty()
    {
        let parsed = ShapeAndSlice::parse(as_text(slice)?)?;
        context.set_output(0, PartialShape::from(&parsed.slice_shape));
    }
    Ok(())
}

fn restore(context: &mut KernelContext) -> Result<()> {
    let pattern = as_text(single_string(context, 0, "file_pattern")?)?;
    let name = single_string(context, 1, "tensor_name")?;
    let slice = match context.num_inputs() {
        2 => "",
        _ => as_text(single_string(context, 2, "shape_and_slice")?)?,
    };
    let checkpoint = Checkpoint::open(pattern)?;
    let expected = context.output_type(0);
    let tensor = restore_v1(&checkpoint, pattern, name.as_bytes(), slice, expected)?;
    context.set_output(0, tensor)
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, scalar, strings, t};
    use ff_op::Attrs;
    use ff_tensor::{Code, DataType, Result, Tensor};

    fn restore(path: &str, name: &str, slice: Option<&str>, dtype: DataType) -> Result<Vec<Tensor>> {
        let mut inputs = vec![strings(&[], &[path]), strings(&[], &[name])];
        inputs.extend(slice.map(|slice| strings(&[], &[slice])));
        let op = if slice.is_some() {
            "RestoreSlice"
        } else {
            "Restore"
        };
        OpRunner::new().run(op, &inputs, Attrs::new().with("dt", dtype))
    }

    #[test]
    fn what_is_saved_is_restored() {
        let folder = tempfile::tempdir().unwrap();
        let path = format!("{}/first", folder.path().display());
        let matrix = t(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]);
        let inputs = [
            strings(&[], &[&path]),
            strings(&[2], &["w", "b"]),
            matrix.clone(),
            scalar(5),
        ];
        OpRunner::new().run("Save", &inputs, Attrs::new()).unwrap();
        let read = restore(&path, "w", None, DataType::FLOAT).unwrap();
        assert!(read[0].bitwise_eq(&matrix));
        let column = restore(&path, "w", Some("2 2 -:1,1"), DataType::FLOAT).unwrap();
        assert!(column[0].bitwise_eq(&t(&[2, 1], &[2.0f32, 4.0])));
        let error = restore(&path, "w", None, DataType::INT32).unwrap_err();
        let text =
            "Expected to restore a tensor of type int32, got a tensor of type float instead: tensor_name = w";
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().starts_with(text), "{error}");
        let error = restore(&path, "c", None, DataType::INT32).unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
    }

    #[test]
    fn slices_are_joined() {
        let folder = tempfile::tempdir().unwrap();
        let path = format!("{}/first", folder.path().display());
        let (names, slices) = (strings(&[2], &["v", "v"]), strings(&[2], &["4 0,2", "4 2,2"]));
        let inputs = [
            strings(&[], &[&path]),
            names,
            slices,
            t(&[2], &[1, 2]),
            t(&[2], &[3, 4]),
        ];
        OpRunner::new().run("SaveSlices", &inputs, Attrs::new()).unwrap();
        let read = restore(&path, "v", None, DataType::INT32).unwrap();
        assert!(read[0].bitwise_eq(&t(&[4], &[1, 2, 3, 4])));
    }

    #[test]
    fn a_missing_file_is_not_found() {
        let error = restore("/no/such/file", "v", None, DataType::INT32).unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
    }
}
