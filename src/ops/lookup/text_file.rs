//! `InitializeTableFromTextFileV2`: a table's entries from the lines of a file.

use super::table::table_of;
use super::use_table::check_handle;
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_platform::files;
use ff_tensor::{DataType, Result, Shape, TString, Tensor, bail, ensure, status};

const INITIALIZE: Op = Op {
    name: "InitializeTableFromTextFileV2",
    shape: |context| {
        check_handle(context)?;
        context.input_with_rank(1, 0).map(drop)
    },
    kernels: &[Kernel::native(initialize)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &INITIALIZE,
    &Op {
        name: "InitializeTableFromTextFile",
        ..INITIALIZE
    },
];

/// The whole line, and its number, as "columns".
const WHOLE_LINE: i64 = -2;
const LINE_NUMBER: i64 = -1;

/// What an entry's key or value is made of.
struct Column {
    index: i64,
    dtype: DataType,
    offset: i64,
}

fn initialize(context: &mut KernelContext) -> Result<()> {
    let table = table_of(context)?;
    let path = crate::io::single_string(context, 1, "filename")?.to_str_lossy();
    let attrs = context.attrs();
    let [delimiter] = attrs.bytes("delimiter")? else {
        bail!(InvalidArgument, "delimiter should be only 1 char");
    };
    let offset = attrs.int("offset").unwrap_or(0);
    let column = |name: &str, index: &str, dtype: DataType| -> Result<Column> {
        let index = attrs.int(index)?;
        ensure!(
            index != LINE_NUMBER || dtype == DataType::INT64,
            InvalidArgument,
            "{name} index for line number requires table {} dtype of int64, got {dtype}",
            name.to_lowercase()
        );
        Ok(Column { index, dtype, offset })
    };
    let key = column("Key", "key_index", table.key_dtype)?;
    let value = column("Value", "value_index", table.value_dtype)?;
    let lines = lines(&path, attrs.int("vocab_size")?)?;
    let keys = key.tensor(&lines, *delimiter, &path)?;
    let values = value.tensor(&lines, *delimiter, &path)?;
    table.fill(&keys, &values)
}

/// The first `wanted` lines of a file, or all if negative, without carriage returns.
pub(super) fn lines(path: &str, wanted: i64) -> Result<Vec<Vec<u8>>> {
    let content = files::read(path)?;
    let content = content.strip_suffix(b"\n").unwrap_or(&content);
    ensure!(!content.is_empty(), OutOfRange, "Read less bytes than requested");
    let (mut lines, mut position) = (Vec::new(), 0);
    for line in content.split(|&byte| byte == b'\n') {
        if wanted >= 0 && lines.len() as i64 == wanted {
            break;
        }
        position += line.len() + 1;
        let line: Vec<u8> = line.iter().copied().filter(|&byte| byte != b'\r').collect();
        ensure!(
            !line.is_empty(),
            InvalidArgument,
            "Invalid content in {path}: empty line found at position {position}."
        );
        lines.push(line);
    }
    ensure!(
        lines.len() as i64 >= wanted,
        InvalidArgument,
        "Invalid vocab_size in {path}: expected {wanted} but got {}",
        lines.len()
    );
    Ok(lines)
}

impl Column {
    /// This column of all lines.
    fn tensor(&self, lines: &[Vec<u8>], delimiter: u8, path: &str) -> Result<Tensor> {
        let shape = Shape::vector(lines.len());
        if self.index == LINE_NUMBER {
            let numbers: Vec<i64> = (0..lines.len() as i64).map(|line| line + self.offset).collect();
            return Tensor::from_slice(shape, &numbers);
        }
        let fields = lines.iter().enumerate();
        let fields = fields
            .map(|(number, line)| self.field(line, number, delimiter, path))
            .collect::<Result<Vec<&[u8]>>>()?;
        match self.dtype {
            DataType::STRING => {
                Tensor::from_strings(shape, fields.iter().map(|&field| TString::from(field)).collect())
            }
            dtype => crate::match_type!(dtype, (i32, i64, f32, f64), T => {
                let numbers = fields.iter().enumerate().map(|(line, field)| -> Result<T> {
                    let text = String::from_utf8_lossy(field);
                    text.trim().parse().map_err(|_| {
                        status!(InvalidArgument, "Field {text} in line {line} is not a valid {dtype}.")
                    })
                });
                Tensor::from_slice(shape, &numbers.collect::<Result<Vec<T>>>()?)
            }),
        }
    }

    fn field<'a>(&self, line: &'a [u8], number: usize, delimiter: u8, path: &str) -> Result<&'a [u8]> {
        let Ok(index) = usize::try_from(self.index) else {
            debug_assert_eq!(self.index, WHOLE_LINE);
            return Ok(line);
        };
        let mut fields = line.split(|&byte| byte == delimiter);
        fields.nth(index).ok_or_else(|| {
            status!(
                InvalidArgument,
                "Invalid number of columns in {path} line {number} ({}) : expected at least {} got {}",
                String::from_utf8_lossy(line),
                index + 1,
                line.split(|&byte| byte == delimiter).count()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, code, strings};
    use ff_op::Attrs;
    use ff_tensor::{Code, DataType, Result, Tensor};

    /// Fills a table from a file with this content, and looks one key up.
    fn look_up(
        content: &str,
        columns: (i64, i64),
        attrs: Attrs,
        key: Tensor,
        default: Tensor,
    ) -> Result<Tensor> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocabulary");
        std::fs::write(&path, content).unwrap();
        let runner = OpRunner::new();
        let types = Attrs::new()
            .with("key_dtype", key.dtype())
            .with("value_dtype", default.dtype());
        let table = runner.run("HashTableV2", &[], types)?.remove(0);
        let attrs = attrs.with("key_index", columns.0).with("value_index", columns.1);
        let path = strings(&[], &[path.to_str().unwrap()]);
        runner.run("InitializeTableFromTextFileV2", &[table.clone(), path], attrs)?;
        Ok(runner
            .run("LookupTableFindV2", &[table, key, default], Attrs::new())?
            .remove(0))
    }

    const TWO_LINES: &str = "x\t1\ty\r\nz\t2\tw\n";

    #[test]
    fn columns_lines_and_numbers() {
        use crate::testing::scalar;
        let text = |text: &str| strings(&[], &[text]);
        for (columns, key, default, expected) in [
            ((-2, -1), text("z\t2\tw"), scalar(-1i64), scalar(1i64)),
            ((0, 1), text("x"), scalar(-1i64), scalar(1i64)),
            ((2, 0), text("w"), text(""), text("z")),
            ((-1, -2), scalar(0i64), text(""), text("x\t1\ty")),
            ((0, 1), text("z"), scalar(0f32), scalar(2f32)),
        ] {
            let found = look_up(TWO_LINES, columns, Attrs::new(), key, default).unwrap();
            assert!(found.bitwise_eq(&expected), "{columns:?}: {found:?}");
        }
        let offset = Attrs::new().with("offset", 5i64);
        let found = look_up("a\nb", (-2, -1), offset, text("b"), scalar(-1i64)).unwrap();
        assert!(found.bitwise_eq(&scalar(6i64)));
        let first = Attrs::new().with("vocab_size", 1i64);
        let found = look_up("a\nb", (-2, -1), first, text("b"), scalar(-1i64)).unwrap();
        assert!(found.bitwise_eq(&scalar(-1i64)));
    }

    #[test]
    fn bad_files() {
        use crate::testing::scalar;
        let number = || Tensor::zeros(DataType::INT64, ff_tensor::Shape::scalar()).unwrap();
        let fail = |content: &str, columns, attrs| {
            code(look_up(content, columns, attrs, strings(&[], &["a"]), number()))
        };
        let none = Attrs::new;
        assert_eq!(fail(TWO_LINES, (0, 5), none()), Some(Code::InvalidArgument));
        assert_eq!(fail(TWO_LINES, (1, 2), none()), Some(Code::InvalidArgument));
        let three = none().with("vocab_size", 3i64);
        assert_eq!(fail(TWO_LINES, (-2, -1), three), Some(Code::InvalidArgument));
        let delimiter = none().with("delimiter", "ab");
        assert_eq!(fail(TWO_LINES, (-2, -1), delimiter), Some(Code::InvalidArgument));
        assert_eq!(fail("a\n\nb", (-2, -1), none()), Some(Code::InvalidArgument));
        assert_eq!(fail("a\na\n", (-2, -1), none()), Some(Code::FailedPrecondition));
        assert_eq!(fail("", (-2, -1), none()), Some(Code::OutOfRange));
        let narrow = look_up("a", (-2, -1), none(), strings(&[], &["a"]), scalar(1));
        assert_eq!(code(narrow), Some(Code::InvalidArgument));
    }
}
