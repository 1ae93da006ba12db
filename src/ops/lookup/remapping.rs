//! `GenerateVocabRemapping`: for each line of a part of one vocabulary file where the line is in another.

use super::text_file::lines;
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{PartialShape, Result, Tensor, bail, ensure};
use std::collections::HashMap;

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "GenerateVocabRemapping",
    shape: |context| {
        context.input_with_rank(0, 0)?;
        context.input_with_rank(1, 0)?;
        let count = context.attrs().int("num_new_vocab")?;
        context.set_output(0, PartialShape::new(&[count]));
        context.set_output(1, PartialShape::scalar());
        Ok(())
    },
    kernels: &[Kernel::native(remap)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
}];

fn file(context: &KernelContext, input: usize, name: &str, wanted: i64) -> Result<Vec<Vec<u8>>> {
    let path = crate::io::single_string(context, input, name)?.to_str_lossy();
    ensure!(
        !path.is_empty(),
        InvalidArgument,
        "new vocab filename cannot be empty."
    );
    lines(&path, wanted)
}

fn remap(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (offset, count) = (attrs.int("new_vocab_offset")?, attrs.int("num_new_vocab")?);
    let new = file(context, 0, "new_vocab_file", -1)?;
    ensure!(
        offset
            .checked_add(count)
            .is_some_and(|end| end <= new.len() as i64),
        InvalidArgument,
        "lookup table size must be larger than last new vocab entry's line"
    );
    let old = file(context, 1, "old_vocab_file", attrs.int("old_vocab_size")?)?;
    let mut places: HashMap<&[u8], i64> = HashMap::new();
    for (line, number) in old.iter().zip(0..) {
        if let Some(before) = places.insert(line, number) {
            bail!(
                FailedPrecondition,
                "HashTable has different value for same key. Key {} has {before} and trying to add value {number}",
                String::from_utf8_lossy(line)
            );
        }
    }
    let wanted = &new[offset as usize..(offset + count) as usize];
    let found = wanted
        .iter()
        .map(|line| places.get(&line[..]).copied().unwrap_or(-1));
    let found: Vec<i64> = crate::wide::collected(found)?;
    let present = found.iter().filter(|&&place| place >= 0).count();
    context.set_output(0, Tensor::vector(&found)?)?;
    context.set_output(1, Tensor::scalar(present as i32)?)
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, code, strings};
    use ff_op::Attrs;
    use ff_tensor::{Code, Result, Tensor};

    fn remapped(new: &str, old: &str, offset: i64, count: i64, size: i64) -> Result<Vec<Tensor>> {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            strings(&[], &[path.to_str().unwrap()])
        };
        let attrs = Attrs::new()
            .with("new_vocab_offset", offset)
            .with("num_new_vocab", count)
            .with("old_vocab_size", size);
        let inputs = [write("new", new), write("old", old)];
        OpRunner::new().run("GenerateVocabRemapping", &inputs, attrs)
    }

    #[test]
    fn lines_are_found() {
        let outputs = remapped("a\nb\nc\nd", "c\na\nx\nd", 1, 3, -1).unwrap();
        assert_eq!(outputs[0].as_slice::<i64>().unwrap(), [-1, 0, 3]);
        assert_eq!(outputs[1].single::<i32>().unwrap(), 2);
        let first = remapped("a\nb\nc\nd", "c\na\nx\nd", 0, 4, 2).unwrap();
        assert_eq!(first[0].as_slice::<i64>().unwrap(), [1, -1, 0, -1]);
        let none = remapped("a", "c", 1, 0, -1).unwrap();
        assert_eq!(none[0].num_elements(), 0);
    }

    #[test]
    fn bad_parts_are_errors() {
        let beyond = remapped("a\nb", "c", 1, 2, -1);
        assert_eq!(code(beyond), Some(Code::InvalidArgument));
        let short = remapped("a\nb", "c", 0, 2, 5);
        assert_eq!(code(short), Some(Code::InvalidArgument));
        let twice = remapped("a\nb", "c\nc", 0, 2, -1);
        assert_eq!(code(twice), Some(Code::FailedPrecondition));
    }
}
