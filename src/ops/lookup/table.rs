//! A table as a resource.

use super::entries::{Cell, Entries, Keys, cells, gather};
use ff_op::KernelContext;
use ff_tensor::{DataType, Result, Shape, Tensor, bail, ensure};
use parking_lot::RwLock;
use std::sync::Arc;

/// A table. All operations may be called from any thread.
pub struct Table {
    /// Container and name, for error messages.
    pub place: (String, String),
    /// Type of the keys.
    pub key_dtype: DataType,
    /// Shape of one key.
    pub key_shape: Shape,
    /// Keys that may not be used, with what they are called.
    pub reserved: Vec<(&'static str, Tensor)>,
    /// Type of the values.
    pub value_dtype: DataType,
    /// Shape of one value.
    pub value_shape: Shape,
    /// Whether entries can be changed at any time; a fixed table is filled once.
    pub mutable: bool,
    state: RwLock<State>,
}

struct State {
    filled: bool,
    entries: Entries,
}

impl Table {
    /// An empty table.
    pub fn new(
        place: (String, String),
        (key_dtype, value_dtype): (DataType, DataType),
        value_shape: Shape,
        mutable: bool,
    ) -> Table {
        Table {
            place,
            key_dtype,
            key_shape: Shape::scalar(),
            reserved: Vec::new(),
            value_dtype,
            value_shape,
            mutable,
            state: RwLock::new(State {
                filled: mutable,
                entries: Entries::default(),
            }),
        }
    }

    /// INVALID_ARGUMENT unless these are the table's types; `outputs` is what the op says it gives.
    pub fn check_types(&self, key: DataType, value: DataType, outputs: Option<DataType>) -> Result<()> {
        let output = |dtype: Option<DataType>| dtype.map_or(String::new(), |dtype| dtype.to_string());
        ensure!(
            key == self.key_dtype && value == self.value_dtype,
            InvalidArgument,
            "Signature mismatch, have: resource, {key}, {value}->{} expected: resource, {}, {}->{}",
            output(outputs),
            self.key_dtype,
            self.value_dtype,
            output(outputs.map(|_| self.value_dtype))
        );
        Ok(())
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.state.read().entries.len()
    }

    /// The shape that the values of keys of this shape have.
    fn values_shape(&self, keys: &Shape) -> Result<Shape> {
        let count = keys.dims().first().copied().unwrap_or(1);
        // Keys of a dense table are its rows, along one axis.
        if !self.reserved.is_empty() && keys.num_elements() != count as usize * self.key_shape.num_elements()
        {
            let expected = Shape::new(&[&[count], self.key_shape.dims()].concat())?;
            bail!(InvalidArgument, "Expected key shape {expected} got {keys}");
        }
        let own = keys.rank().checked_sub(self.key_shape.rank());
        let outer = own.map(|own| keys.dims().split_at(own));
        let Some((outer, _)) = outer.filter(|(_, key)| *key == self.key_shape.dims()) else {
            bail!(
                InvalidArgument,
                "Expected key shape {} got {keys}",
                self.key_shape
            );
        };
        let dims: Vec<i64> = outer.iter().chain(self.value_shape.dims()).copied().collect();
        Shape::new(&dims)
    }

    /// The keys of a tensor. INVALID_ARGUMENT when a reserved one is among them.
    fn keys<'a>(&self, keys: &'a Tensor) -> Result<Keys<'a>> {
        let size = self.key_shape.num_elements();
        let found = Keys::of(keys, size)?;
        for (name, reserved) in &self.reserved {
            let reserved = Keys::of(reserved, size)?;
            ensure!(
                reserved.len() == 0 || (0..found.len()).all(|index| found.get(index) != reserved.get(0)),
                InvalidArgument,
                "Using the {name} as a table key is not allowed"
            );
        }
        Ok(found)
    }

    /// The values of keys. `default` is one value for all missing keys, or one for each key.
    /// FAILED_PRECONDITION for a fixed table that was not filled.
    pub fn find(&self, keys: &Tensor, default: &Tensor) -> Result<Tensor> {
        let shape = self.values_shape(keys.shape())?;
        let for_all = *default.shape() == self.value_shape;
        ensure!(
            for_all || *default.shape() == shape,
            InvalidArgument,
            "Expected shape {} or {shape} for default value, got {}",
            self.value_shape,
            default.shape()
        );
        let state = self.state.read();
        ensure!(state.filled, FailedPrecondition, "Table not initialized.");
        let defaults = cells(default, self.value_shape.num_elements())?;
        let found = self.keys(keys)?;
        let cell = |index: usize| {
            let missing = || defaults.get(if for_all { 0 } else { index });
            state.entries.get(found.get(index)).or_else(missing)
        };
        gather(self.value_dtype, shape, (0..found.len()).filter_map(cell))
    }

    fn check_values(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        let shape = self.values_shape(keys.shape())?;
        ensure!(
            *values.shape() == shape,
            InvalidArgument,
            "Expected shape {shape} for value, got {}",
            values.shape()
        );
        Ok(())
    }

    fn check_mutable(&self, what: &str) -> Result<()> {
        ensure!(
            self.mutable,
            Unimplemented,
            "{what} not supported by InitializableLookupTable implementations"
        );
        Ok(())
    }

    /// Sets the values of keys. UNIMPLEMENTED for a fixed table.
    pub fn insert(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        self.check_values(keys, values)?;
        self.check_mutable("Insert")?;
        self.put(&mut self.state.write().entries, keys, values)
    }

    fn put(&self, entries: &mut Entries, keys: &Tensor, values: &Tensor) -> Result<()> {
        let cells = cells(values, self.value_shape.num_elements())?;
        let keys = self.keys(keys)?;
        for (index, cell) in cells.into_iter().enumerate().take(keys.len()) {
            entries.insert(keys.get(index), cell);
        }
        Ok(())
    }

    /// Takes keys out. UNIMPLEMENTED for a fixed table.
    pub fn remove(&self, keys: &Tensor) -> Result<()> {
        self.check_mutable("Remove")?;
        let mut state = self.state.write();
        let keys = self.keys(keys)?;
        for index in 0..keys.len() {
            state.entries.remove(keys.get(index));
        }
        Ok(())
    }

    /// Replaces all entries; fills a fixed table.
    pub fn import(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        if !self.mutable {
            return self.fill(keys, values);
        }
        self.check_values(keys, values)?;
        let mut entries = Entries::default();
        self.put(&mut entries, keys, values)?;
        self.state.write().entries = entries;
        Ok(())
    }

    /// Fills a fixed table, once. A table that is filled already must have as many entries.
    ///
    /// FAILED_PRECONDITION for two values of one key and for a table that was filled otherwise.
    pub fn fill(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        if self.mutable {
            bail!(
                InvalidArgument,
                "Table {} {} is not initializable",
                self.place.0,
                self.place.1
            );
        }
        let mut state = self.state.write();
        if state.filled {
            ensure!(
                state.entries.len() == keys.num_elements(),
                FailedPrecondition,
                "Table was already initialized with different data."
            );
            return Ok(());
        }
        let cells = cells(values, 1)?;
        let keys = self.keys(keys)?;
        for (index, cell) in cells.into_iter().enumerate().take(keys.len()) {
            let key = keys.get(index);
            match state.entries.get(key) {
                Some(other) if *other != cell => bail!(
                    FailedPrecondition,
                    "HashTable has different value for same key. Key {key} has {} and trying to add value {}",
                    self.text(other),
                    self.text(&cell)
                ),
                Some(_) => {}
                None => state.entries.insert(key, cell),
            }
        }
        state.filled = true;
        Ok(())
    }

    /// A value for a message.
    fn text(&self, cell: &Cell) -> String {
        let tensor = gather(self.value_dtype, Shape::scalar(), std::iter::once(cell));
        tensor.map_or(String::new(), |tensor| tensor.summarize(-1))
    }

    /// All keys and values. ABORTED for a fixed table that was not filled.
    pub fn export(&self) -> Result<(Tensor, Tensor)> {
        let state = self.state.read();
        ensure!(state.filled, Aborted, "HashTable is not initialized.");
        state.entries.export(
            self.key_dtype,
            self.key_shape.dims(),
            self.value_dtype,
            self.value_shape.dims(),
        )
    }
}

/// The table at a kernel's first input: of a handle, or in the first versions of a reference to container and name.
pub fn table_of(context: &KernelContext) -> Result<Arc<Table>> {
    if context.node().input_types[0].base() != DataType::STRING {
        return context.resource::<Table>(0);
    }
    let names = context.ref_input(0)?.read()?;
    match names.strings()? {
        [container, name] => context
            .resources()
            .find(&container.to_str_lossy(), &name.to_str_lossy()),
        _ => bail!(
            InvalidArgument,
            "Lookup table handle must be scalar, but had shape: {}",
            names.shape()
        ),
    }
}
