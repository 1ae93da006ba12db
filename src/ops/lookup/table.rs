//! A hash table whose keys and values are tensors' elements.
//!
//! An immutable table is filled once (again only with the same content); a mutable one starts empty and can change.
//! Values may be vectors: `value_shape`.

use crate::movement::Writer;
use ff_tensor::{DataType, Result, Shape, Tensor, bail, ensure};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

/// The bytes of a key.
type Key = Box<[u8]>;

/// See the module.
pub struct Table {
    /// Type of the keys.
    pub key_type: DataType,
    /// Type of the values.
    pub value_type: DataType,
    /// Shape of each value; a scalar's in most tables.
    pub value_shape: Shape,
    /// Whether it can be changed after it was filled.
    pub mutable: bool,
    content: RwLock<Content>,
}

#[derive(Default)]
struct Content {
    initialized: bool,
    /// Where the value of each key is: its row in `values`.
    rows: FxHashMap<Key, usize>,
    keys: Vec<Option<Tensor>>,
    values: Vec<Option<Tensor>>,
    free: Vec<usize>,
}

/// Each element of a tensor, as a key.
fn keys_of(tensor: &Tensor) -> Result<Vec<Key>> {
    if tensor.dtype() == DataType::STRING {
        return Ok(tensor
            .strings()?
            .iter()
            .map(|text| text.as_bytes().into())
            .collect());
    }
    let size = tensor.dtype().size();
    ensure!(
        size > 0,
        InvalidArgument,
        "Keys cannot be of type {}",
        tensor.dtype()
    );
    Ok(tensor.bytes().chunks(size).map(Box::from).collect())
}

/// `count` elements from `start` on, as a tensor of their own.
fn piece(tensor: &Tensor, start: usize, shape: &Shape) -> Result<Tensor> {
    let mut writer = Writer::new(tensor.dtype(), shape.clone())?;
    writer.copy(0, tensor, start, shape.num_elements())?;
    writer.finish()
}

impl Content {
    fn put(&mut self, key: Key, key_tensor: Tensor, value: Tensor) {
        if let Some(&row) = self.rows.get(&key) {
            self.values[row] = Some(value);
            return;
        }
        let row = self.free.pop().unwrap_or_else(|| {
            self.keys.push(None);
            self.values.push(None);
            self.keys.len() - 1
        });
        self.keys[row] = Some(key_tensor);
        self.values[row] = Some(value);
        self.rows.insert(key, row);
    }
}

impl Table {
    /// An empty table.
    pub fn new(key_type: DataType, value_type: DataType, value_shape: Shape, mutable: bool) -> Table {
        Table {
            key_type,
            value_type,
            value_shape,
            mutable,
            content: RwLock::new(Content {
                initialized: mutable,
                ..Content::default()
            }),
        }
    }

    /// Number of keys. FAILED_PRECONDITION before the table is filled.
    pub fn len(&self) -> Result<usize> {
        let content = self.content.read();
        ensure!(content.initialized, FailedPrecondition, "Table not initialized.");
        Ok(content.rows.len())
    }

    /// Fails unless keys, and values if given, are of the table's types and shapes. INVALID_ARGUMENT.
    fn check(&self, keys: &Tensor, values: Option<&Tensor>) -> Result<()> {
        ensure!(
            keys.dtype() == self.key_type,
            InvalidArgument,
            "Key must be type {} but got {}",
            self.key_type,
            keys.dtype()
        );
        let Some(values) = values else { return Ok(()) };
        ensure!(
            values.dtype() == self.value_type,
            InvalidArgument,
            "Value must be type {} but got {}",
            self.value_type,
            values.dtype()
        );
        let expected = [keys.dims(), self.value_shape.dims()].concat();
        ensure!(
            values.dims() == expected,
            InvalidArgument,
            "Expected shape {} for value, got {}",
            Shape::new(&expected)?,
            values.shape()
        );
        Ok(())
    }

    /// Fills the table for good. FAILED_PRECONDITION when it holds other content, or a key comes with two values.
    pub fn initialize(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        self.check(keys, Some(values))?;
        let mut content = self.content.write();
        let refill = content.initialized && !self.mutable;
        let width = self.value_shape.num_elements();
        for (index, key) in keys_of(keys)?.into_iter().enumerate() {
            let value = piece(values, index * width, &self.value_shape)?;
            match content.rows.get(&key).map(|&row| content.values[row].as_ref()) {
                Some(Some(present)) if !same(present, &value) => bail!(
                    InvalidArgument,
                    "HashTable has different value for same key. Key {} has a value that differs",
                    piece(keys, index, &Shape::scalar())?.summarize(1)
                ),
                Some(_) => {}
                None if refill => bail!(FailedPrecondition, "Table already initialized."),
                None => content.put(key, piece(keys, index, &Shape::scalar())?, value),
            }
        }
        content.initialized = true;
        Ok(())
    }

    /// Sets keys to values; replaces all content if `clear`.
    pub fn insert(&self, keys: &Tensor, values: &Tensor, clear: bool) -> Result<()> {
        ensure!(
            self.mutable,
            Unimplemented,
            "Insert not supported by read-only lookup tables"
        );
        self.check(keys, Some(values))?;
        let mut content = self.content.write();
        if clear {
            *content = Content {
                initialized: true,
                ..Content::default()
            };
        }
        let width = self.value_shape.num_elements();
        for (index, key) in keys_of(keys)?.into_iter().enumerate() {
            let value = piece(values, index * width, &self.value_shape)?;
            content.put(key, piece(keys, index, &Shape::scalar())?, value);
        }
        Ok(())
    }

    /// Removes keys, if they are there.
    pub fn remove(&self, keys: &Tensor) -> Result<()> {
        ensure!(
            self.mutable,
            Unimplemented,
            "Remove not supported by read-only lookup tables"
        );
        self.check(keys, None)?;
        let mut content = self.content.write();
        for key in keys_of(keys)? {
            if let Some(row) = content.rows.remove(&key) {
                content.keys[row] = None;
                content.values[row] = None;
                content.free.push(row);
            }
        }
        Ok(())
    }

    /// The values of keys; `default`, one value or one for each key, where a key is not there.
    /// FAILED_PRECONDITION before the table is filled.
    pub fn find(&self, keys: &Tensor, default: &Tensor) -> Result<Tensor> {
        self.check(keys, None)?;
        ensure!(
            default.dtype() == self.value_type,
            InvalidArgument,
            "Value must be type {} but got {}",
            self.value_type,
            default.dtype()
        );
        let width = self.value_shape.num_elements();
        let shape = Shape::new(&[keys.dims(), self.value_shape.dims()].concat())?;
        let single = *default.shape() == self.value_shape;
        ensure!(
            single || *default.shape() == shape,
            InvalidArgument,
            "Expected shape {} for default value, got {}",
            self.value_shape,
            default.shape()
        );
        let content = self.content.read();
        ensure!(content.initialized, FailedPrecondition, "Table not initialized.");
        let mut writer = Writer::new(self.value_type, shape)?;
        for (index, key) in keys_of(keys)?.into_iter().enumerate() {
            let found = content
                .rows
                .get(&key)
                .and_then(|&row| content.values[row].as_ref());
            match found {
                Some(value) => writer.copy(index * width, value, 0, width)?,
                None => writer.copy(
                    index * width,
                    default,
                    if single { 0 } else { index * width },
                    width,
                )?,
            }
        }
        writer.finish()
    }

    /// All keys and values, in one order.
    pub fn export(&self) -> Result<(Tensor, Tensor)> {
        let content = self.content.read();
        ensure!(content.initialized, FailedPrecondition, "Table not initialized.");
        let pairs = content.keys.iter().zip(&content.values);
        let pairs: Vec<(&Tensor, &Tensor)> = pairs
            .filter_map(|(key, value)| Some((key.as_ref()?, value.as_ref()?)))
            .collect();
        let width = self.value_shape.num_elements();
        let dims = [&[pairs.len() as i64], self.value_shape.dims()].concat();
        let mut keys = Writer::new(self.key_type, Shape::vector(pairs.len()))?;
        let mut values = Writer::new(self.value_type, Shape::new(&dims)?)?;
        for (index, (key, value)) in pairs.into_iter().enumerate() {
            keys.copy(index, key, 0, 1)?;
            values.copy(index * width, value, 0, width)?;
        }
        Ok((keys.finish()?, values.finish()?))
    }
}

/// Whether two tensors of one type and shape hold the same elements.
fn same(a: &Tensor, b: &Tensor) -> bool {
    match a.dtype() {
        DataType::STRING => a.strings().ok() == b.strings().ok(),
        _ => a.bytes() == b.bytes(),
    }
}
