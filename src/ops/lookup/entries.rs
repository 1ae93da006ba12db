//! Keys and values of a table, outside of tensors.

use ff_tensor::{DataType, Result, Shape, TString, Tensor, bail};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// One value of a table.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// The bytes of elements of a plain type.
    Plain(SmallVec<[u8; 8]>),
    /// Strings.
    Texts(Vec<TString>),
}

/// One key, in a tensor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Key<'a> {
    /// int32 or int64.
    Number(i64),
    /// A string.
    Text(&'a [u8]),
}

impl std::fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Number(number) => number.fmt(f),
            Key::Text(text) => String::from_utf8_lossy(text).fmt(f),
        }
    }
}

/// The keys of a tensor.
pub enum Keys<'a> {
    /// int32 or int64.
    Numbers(Vec<i64>),
    /// Strings.
    Texts(&'a [TString]),
    /// The bytes of keys of several elements.
    Rows(Vec<&'a [u8]>),
}

impl<'a> Keys<'a> {
    /// The keys in a tensor, each of a number of elements. UNIMPLEMENTED for other types than int32, int64 and string, and
    /// for keys of several strings.
    pub fn of(tensor: &'a Tensor, size: usize) -> Result<Keys<'a>> {
        if size != 1 && tensor.dtype().is_plain() {
            let rows = tensor.bytes().chunks((size * tensor.dtype().size()).max(1));
            return Ok(Keys::Rows(rows.collect()));
        }
        Ok(match tensor.dtype() {
            DataType::STRING if size != 1 => bail!(Unimplemented, "a table with keys of several strings"),
            DataType::INT32 | DataType::INT64 => Keys::Numbers(tensor.to_i64_vec()?),
            DataType::STRING => Keys::Texts(tensor.strings()?),
            other => bail!(Unimplemented, "a table with keys of type {other}"),
        })
    }

    /// Their number.
    pub fn len(&self) -> usize {
        match self {
            Keys::Numbers(numbers) => numbers.len(),
            Keys::Texts(texts) => texts.len(),
            Keys::Rows(rows) => rows.len(),
        }
    }

    /// One of them.
    pub fn get(&self, index: usize) -> Key<'_> {
        match self {
            Keys::Numbers(numbers) => Key::Number(numbers[index]),
            Keys::Texts(texts) => Key::Text(texts[index].as_bytes()),
            Keys::Rows(rows) => Key::Text(rows[index]),
        }
    }
}

/// Values by key; all keys of a table are of one kind.
#[derive(Default)]
pub struct Entries {
    numbers: FxHashMap<i64, Cell>,
    texts: FxHashMap<Box<[u8]>, Cell>,
}

impl Entries {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.numbers.len() + self.texts.len()
    }

    /// The value of a key.
    pub fn get(&self, key: Key) -> Option<&Cell> {
        match key {
            Key::Number(number) => self.numbers.get(&number),
            Key::Text(text) => self.texts.get(text),
        }
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: Key, cell: Cell) {
        match key {
            Key::Number(number) => self.numbers.insert(number, cell),
            Key::Text(text) => self.texts.insert(text.into(), cell),
        };
    }

    /// Takes a key out, if it is there.
    pub fn remove(&mut self, key: Key) {
        match key {
            Key::Number(number) => self.numbers.remove(&number),
            Key::Text(text) => self.texts.remove(text),
        };
    }

    /// All keys and values, as tensors of these types, in no particular order.
    pub fn export(
        &self,
        key_dtype: DataType,
        key_dims: &[i64],
        value_dtype: DataType,
        value_dims: &[i64],
    ) -> Result<(Tensor, Tensor)> {
        let count = Shape::vector(self.len());
        let key_shape: Vec<i64> = [self.len() as i64].iter().chain(key_dims).copied().collect();
        let key_shape = Shape::new(&key_shape)?;
        let (keys, cells): (Tensor, Vec<&Cell>) = match key_dtype {
            dtype if dtype.is_plain() && key_dims.iter().product::<i64>() != 1 => {
                let rows = self
                    .texts
                    .keys()
                    .map(|key| Cell::Plain(SmallVec::from_slice(key)));
                let rows: Vec<Cell> = rows.collect();
                let keys = gather(dtype, key_shape.clone(), rows.iter())?;
                (keys, self.texts.values().collect())
            }
            DataType::STRING => {
                let (keys, cells): (Vec<TString>, _) = self
                    .texts
                    .iter()
                    .map(|(key, cell)| (TString::from(&key[..]), cell))
                    .unzip();
                (Tensor::from_strings(count, keys)?, cells)
            }
            _ => {
                let (keys, cells): (Vec<i64>, _) =
                    self.numbers.iter().map(|(&key, cell)| (key, cell)).unzip();
                let keys = match key_dtype {
                    // Keys came in as int32.
                    DataType::INT32 => {
                        Tensor::from_slice(count, &keys.iter().map(|&key| key as i32).collect::<Vec<_>>())?
                    }
                    _ => Tensor::from_slice(count, &keys)?,
                };
                (keys, cells)
            }
        };
        let keys = keys.into_shape(key_shape)?;
        let dims: Vec<i64> = [cells.len() as i64].iter().chain(value_dims).copied().collect();
        let values = gather(value_dtype, Shape::new(&dims)?, cells.into_iter())?;
        Ok((keys, values))
    }
}

/// The cells of a tensor of values, `row` elements each.
pub fn cells(values: &Tensor, row: usize) -> Result<Vec<Cell>> {
    let row = row.max(1);
    Ok(match values.dtype() {
        DataType::STRING => values
            .strings()?
            .chunks(row)
            .map(|texts| Cell::Texts(texts.to_vec()))
            .collect(),
        dtype if dtype.is_plain() => {
            let bytes = values.bytes().chunks(row * dtype.size());
            bytes
                .map(|bytes| Cell::Plain(SmallVec::from_slice(bytes)))
                .collect()
        }
        other => bail!(Unimplemented, "a table with values of type {other}"),
    })
}

/// The tensor of cells that were made of tensors of this type.
pub fn gather<'a>(dtype: DataType, shape: Shape, cells: impl Iterator<Item = &'a Cell>) -> Result<Tensor> {
    if dtype == DataType::STRING {
        let mut texts = Vec::new();
        for cell in cells {
            if let Cell::Texts(cell) = cell {
                texts.extend_from_slice(cell);
            }
        }
        return Tensor::from_strings(shape, texts);
    }
    let mut tensor = Tensor::zeros(dtype, shape)?;
    if let Some(mut bytes) = tensor.bytes_mut() {
        for cell in cells {
            if let Cell::Plain(cell) = cell
                && let Some((place, rest)) = std::mem::take(&mut bytes).split_at_mut_checked(cell.len())
            {
                place.copy_from_slice(cell);
                bytes = rest;
            }
        }
    }
    Ok(tensor)
}
