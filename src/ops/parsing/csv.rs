//! `DecodeCSV`: fields of lines as columns.

use ff_op::{Kernel, KernelContext, Op};
use ff_tensor::{DataType, Result, TString, Tensor, bail, ensure, status};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "DecodeCSV",
    shape: |context| {
        for input in 1..context.num_inputs() {
            let default = context.input_with_rank_at_most(input, 1)?;
            ensure!(
                default.rank() != Some(1) || default.dim(0) <= 1,
                InvalidArgument,
                "Shape of a default must be a length-0 or length-1 vector, or a scalar."
            );
        }
        let records = context.input(0);
        for output in 0..context.num_outputs() {
            context.set_output(output, records.clone());
        }
        Ok(())
    },
    kernels: &[Kernel::native(decode)],
    ..Op::PURE
}];

/// How lines are cut.
struct Rules {
    delimiter: u8,
    quotes: bool,
}

/// The fields of a line. INVALID_ARGUMENT for quotes out of place, and for line breaks outside of quotes.
fn fields(line: &[u8], rules: &Rules) -> Result<Vec<Vec<u8>>> {
    let mut fields = Vec::new();
    if line.is_empty() {
        return Ok(fields);
    }
    let mut at = 0;
    loop {
        let mut field = Vec::new();
        if rules.quotes && line.get(at) == Some(&b'"') {
            at += 1;
            loop {
                match line.get(at) {
                    Some(b'"') if line.get(at + 1) == Some(&b'"') => {
                        field.push(b'"');
                        at += 2;
                    }
                    Some(b'"') => break,
                    Some(&byte) => {
                        field.push(byte);
                        at += 1;
                    }
                    None => bail!(
                        InvalidArgument,
                        "Quoted field has to end with quote followed by delim or end"
                    ),
                }
            }
            at += 1;
            ensure!(
                line.get(at).is_none_or(|&byte| byte == rules.delimiter),
                InvalidArgument,
                "Quoted field has to end with quote followed by delim or end"
            );
        } else {
            while let Some(&byte) = line.get(at).filter(|&&byte| byte != rules.delimiter) {
                ensure!(
                    !matches!(byte, b'\n' | b'\r') && (byte != b'"' || !rules.quotes),
                    InvalidArgument,
                    "Unquoted fields cannot have quotes/CRLFs inside"
                );
                field.push(byte);
                at += 1;
            }
        }
        fields.push(field);
        if at >= line.len() {
            return Ok(fields);
        }
        at += 1;
        // A delimiter at the end is followed by an empty field.
        if at == line.len() {
            fields.push(Vec::new());
            return Ok(fields);
        }
    }
}

/// A column that is filled row by row.
enum Column {
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Text(Vec<TString>),
}

impl Column {
    fn new(dtype: DataType) -> Result<Column> {
        Ok(match dtype {
            DataType::INT32 => Column::I32(Vec::new()),
            DataType::INT64 => Column::I64(Vec::new()),
            DataType::FLOAT => Column::F32(Vec::new()),
            DataType::DOUBLE => Column::F64(Vec::new()),
            DataType::STRING => Column::Text(Vec::new()),
            other => bail!(InvalidArgument, "csv: data type {other} not supported"),
        })
    }

    /// Adds a field, or the default where it is missing.
    fn push(&mut self, field: Option<&[u8]>, default: &Tensor, place: (usize, usize)) -> Result<()> {
        let Some(field) = field else {
            ensure!(
                default.num_elements() > 0,
                InvalidArgument,
                "Field {} is required but missing in record {}!",
                place.1,
                place.0
            );
            match self {
                Column::I32(values) => values.push(default.as_slice::<i32>()?[0]),
                Column::I64(values) => values.push(default.as_slice::<i64>()?[0]),
                Column::F32(values) => values.push(default.as_slice::<f32>()?[0]),
                Column::F64(values) => values.push(default.as_slice::<f64>()?[0]),
                Column::Text(values) => values.push(default.strings()?[0].clone()),
            }
            return Ok(());
        };
        let text = std::str::from_utf8(field).unwrap_or("?").trim();
        let invalid = |kind: &str| {
            status!(
                InvalidArgument,
                "Field {} in record {} is not a valid {kind}: {}",
                place.1,
                place.0,
                String::from_utf8_lossy(field)
            )
        };
        match self {
            Column::I32(values) => values.push(text.parse().map_err(|_| invalid("int32"))?),
            Column::I64(values) => values.push(text.parse().map_err(|_| invalid("int64"))?),
            Column::F32(values) => values.push(text.parse().map_err(|_| invalid("float"))?),
            Column::F64(values) => values.push(text.parse().map_err(|_| invalid("double"))?),
            Column::Text(values) => values.push(field.into()),
        }
        Ok(())
    }

    fn finish(self, shape: ff_tensor::Shape) -> Result<Tensor> {
        match self {
            Column::I32(values) => Tensor::from_slice(shape, &values),
            Column::I64(values) => Tensor::from_slice(shape, &values),
            Column::F32(values) => Tensor::from_slice(shape, &values),
            Column::F64(values) => Tensor::from_slice(shape, &values),
            Column::Text(values) => Tensor::from_strings(shape, values),
        }
    }
}

fn decode(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let delimiter = attrs.bytes("field_delim")?;
    ensure!(
        delimiter.len() == 1,
        InvalidArgument,
        "field_delim should be only 1 char"
    );
    let rules = Rules {
        delimiter: delimiter[0],
        quotes: attrs.bool("use_quote_delim")?,
    };
    let missing = attrs.bytes("na_value")?;
    let columns = context.num_inputs() - 1;
    let selected = attrs.ints("select_cols").unwrap_or(&[]);
    ensure!(
        selected.is_empty() || selected.len() == columns,
        InvalidArgument,
        "select_cols should match output size"
    );
    ensure!(
        selected.windows(2).all(|pair| pair[0] < pair[1]) && selected.first().is_none_or(|&first| first >= 0),
        InvalidArgument,
        "select_cols should be strictly increasing indices"
    );
    let mut made = Vec::new();
    for input in 1..=columns {
        made.push(Column::new(context.input(input)?.dtype())?);
    }
    let records = context.input(0)?;
    for (row, line) in records.strings()?.iter().enumerate() {
        let all = fields(line.as_bytes(), &rules)?;
        let place = |column: usize| match selected {
            [] => column,
            list => list[column] as usize,
        };
        let wanted = if selected.is_empty() {
            columns
        } else {
            place(columns - 1) + 1
        };
        let fits = if selected.is_empty() {
            all.len() == wanted
        } else {
            all.len() >= wanted
        };
        ensure!(
            fits,
            InvalidArgument,
            "Expect {columns} fields but have {} in record {row}",
            all.len()
        );
        for (column, to) in made.iter_mut().enumerate() {
            let field = &all[place(column)][..];
            let present = Some(field).filter(|&field| !field.is_empty() && field != missing);
            to.push(present, context.input(column + 1)?, (row, column))?;
        }
    }
    let shape = records.shape().clone();
    for (output, column) in made.into_iter().enumerate() {
        context.set_output(output, column.finish(shape.clone())?)?;
    }
    Ok(())
}

#[cfg(test)]
fn defaults() -> [Tensor; 5] {
    use crate::testing::{strings, vector};
    [
        vector(&[7]),
        vector(&[1.5f32]),
        strings(&[1], &["none"]),
        vector(&[9i64]),
        vector(&[2.5f64]),
    ]
}

#[cfg(test)]
const TYPES: [DataType; 5] = [
    DataType::INT32,
    DataType::FLOAT,
    DataType::STRING,
    DataType::INT64,
    DataType::DOUBLE,
];

crate::op_cases! {
    lines: Case::op("DecodeCSV").input(strings(&[3], &["1,2.5,a b,4,5e3", ",,,,", "-1, 3 ,\"say \"\"hi\"\", you\",5,-0.5"])).inputs(defaults()).attr("OUT_TYPE", TYPES.to_vec());
    other_delimiter: Case::op("DecodeCSV").input(strings(&[1], &["1;NA;\"q\";4;5"])).inputs(defaults()).attr("OUT_TYPE", TYPES.to_vec())
        .attr("field_delim", ";").attr("use_quote_delim", false).attr("na_value", "NA");
    selected: Case::op("DecodeCSV").input(strings(&[2], &["a,1,b,2", "c,,d,4"])).inputs([vector(&[7]), vector(&[8])]).attr("OUT_TYPE", vec![DataType::INT32; 2])
        .attr("select_cols", vec![1i64, 3]);
    no_lines: Case::op("DecodeCSV").input(strings(&[0], &[])).inputs(defaults()).attr("OUT_TYPE", TYPES.to_vec());
    too_few: Case::op("DecodeCSV").input(strings(&[1], &["1,2"])).inputs(defaults()).attr("OUT_TYPE", TYPES.to_vec()).fails(Code::InvalidArgument);
    required: Case::op("DecodeCSV").input(strings(&[1], &["1,"])).inputs([vector(&[7]), vector::<i32>(&[])]).attr("OUT_TYPE", vec![DataType::INT32; 2]).fails(Code::InvalidArgument);
    no_number: Case::op("DecodeCSV").input(strings(&[1], &["x"])).inputs([vector(&[7])]).attr("OUT_TYPE", vec![DataType::INT32]).fails(Code::InvalidArgument);
    quote_inside: Case::op("DecodeCSV").input(strings(&[1], &["a\"b"])).inputs([strings(&[1], &[""])]).attr("OUT_TYPE", vec![DataType::STRING]).fails(Code::InvalidArgument);
    quote_open: Case::op("DecodeCSV").input(strings(&[1], &["\"ab"])).inputs([strings(&[1], &[""])]).attr("OUT_TYPE", vec![DataType::STRING]).fails(Code::InvalidArgument);
}
