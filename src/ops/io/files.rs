//! Whole files and names of files.

use super::{as_text, folder, single_string};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_platform::files;
use ff_tensor::{PartialShape, Result, Shape, TString, Tensor, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "ReadFile",
        shape: scalars,
        kernels: &[Kernel::native(read_file)],
        gradient: Gradient::NotDifferentiable,
        ..Op::READS
    },
    &Op {
        name: "WriteFile",
        shape: scalars,
        kernels: &[Kernel::native(write_file)],
        gradient: Gradient::NotDifferentiable,
        ..Op::WRITES
    },
    &Op {
        name: "MatchingFiles",
        shape: matching_shape,
        kernels: &[Kernel::native(matching_files)],
        gradient: Gradient::NotDifferentiable,
        ..Op::READS
    },
    &Op {
        name: "ShardedFilename",
        shape: scalars,
        kernels: &[Kernel::native(sharded_filename)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "ShardedFilespec",
        shape: scalars,
        kernels: &[Kernel::native(sharded_filespec)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

/// All inputs and outputs are scalars.
fn scalars(context: &mut ShapeContext) -> Result<()> {
    for index in 0..context.num_inputs() {
        context.input_with_rank(index, 0)?;
    }
    ff_op::shapes::scalar(context)
}

fn string_scalar(text: impl Into<TString>) -> Result<Tensor> {
    Tensor::from_strings(Shape::scalar(), vec![text.into()])
}

fn read_file(context: &mut KernelContext) -> Result<()> {
    let content = files::read(as_text(single_string(context, 0, "filename")?)?)?;
    context.set_output(0, string_scalar(&content[..])?)
}

/// Replaces the file; makes its folder if needed.
fn write_file(context: &mut KernelContext) -> Result<()> {
    let path = as_text(single_string(context, 0, "filename")?)?;
    let contents = single_string(context, 1, "contents")?;
    let folder = folder(path);
    if !folder.is_empty() {
        files::create_directories(folder)?;
    }
    let mut file = files::create(path)?;
    file.append(contents.as_bytes())?;
    file.close()
}

fn matching_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank_at_most(0, 1)?;
    context.set_output(0, PartialShape::of_rank(1));
    Ok(())
}

/// The names of all files that match one of the patterns, sorted.
fn matching_files(context: &mut KernelContext) -> Result<()> {
    let mut names = Vec::new();
    for pattern in super::texts(context.input(0)?)? {
        names.extend(files::matching_paths(pattern)?);
    }
    names.sort();
    let names: Vec<TString> = names.into_iter().map(TString::from).collect();
    let output = Tensor::from_strings(Shape::vector(names.len()), names)?;
    context.set_output(0, output)
}

fn sharded_filename(context: &mut KernelContext) -> Result<()> {
    let (shard, shards) = (context.input_i64(1)?, context.input_i64(2)?);
    ensure!(
        shards > 0 && (0..shards).contains(&shard),
        InvalidArgument,
        "shard must be in [0, num_shards), got shard {shard} of {shards}"
    );
    let name = single_string(context, 0, "basename")?;
    let mut bytes = name.as_bytes().to_vec();
    bytes.extend_from_slice(format!("-{shard:05}-of-{shards:05}").as_bytes());
    context.set_output(0, string_scalar(&bytes[..])?)
}

fn sharded_filespec(context: &mut KernelContext) -> Result<()> {
    let shards = context.input_i64(1)?;
    let mut bytes = single_string(context, 0, "basename")?.as_bytes().to_vec();
    bytes.extend_from_slice(format!("-?????-of-{shards:05}").as_bytes());
    context.set_output(0, string_scalar(&bytes[..])?)
}

crate::op_cases! {
    name_of_a_shard: Case::op("ShardedFilename").input(strings(&[], &["a/b"])).input(scalar(3)).input(scalar(12))
        .gives(strings(&[], &["a/b-00003-of-00012"]));
    name_of_all_shards: Case::op("ShardedFilespec").input(strings(&[], &["b"])).input(scalar(7))
        .gives(strings(&[], &["b-?????-of-00007"]));
    name_needs_a_scalar: Case::op("ShardedFilespec").input(strings(&[1], &["b"])).input(scalar(7))
        .fails(Code::InvalidArgument);
    no_file: Case::op("ReadFile").input(strings(&[], &["/no/such/file"])).fails(Code::NotFound);
    no_match: Case::op("MatchingFiles").input(strings(&[1], &["/no/such/*"])).gives(strings(&[0], &[]));
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, strings};
    use ff_op::Attrs;

    #[test]
    fn a_file_is_written_found_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = format!("{}/new/file", folder.path().display());
        let (runner, name) = (OpRunner::new(), strings(&[], &[&path]));
        let content = strings(&[], &["text\0more"]);
        runner
            .run("WriteFile", &[name.clone(), content.clone()], Attrs::new())
            .unwrap();
        let read = runner.run("ReadFile", &[name], Attrs::new()).unwrap();
        assert!(read[0].bitwise_eq(&content));
        let pattern = strings(&[], &[&format!("{}/n*/f?le", folder.path().display())]);
        let found = runner.run("MatchingFiles", &[pattern], Attrs::new()).unwrap();
        assert!(found[0].bitwise_eq(&strings(&[1], &[&path])));
    }
}
