//! Where ops are found by name: schemas of all ops, behaviour of those that have one, and ops added at run time.

use crate::{KernelRecord, Op, OpRecord, schema};
use ff_proto::OpDef;
use ff_tensor::{Result, Status, bail, status};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The reference's text, which programs match on and people search for.
#[cold]
fn not_registered(name: &str) -> Status {
    status!(
        NotFound,
        "Op type not registered '{name}' in binary running on {}. Make sure the Op and Kernel are registered in the binary running in this process. Note that if you are loading a saved graph which used ops from tf.contrib (e.g. `tf.contrib.resampler`), accessing should be done before importing the graph, as contrib ops are lazily registered when the module is first accessed.",
        ff_platform::environment::host_name()
    )
}

/// Ops by name. Records are made when first asked for and never change; adding a kernel makes a new record.
pub struct Registry {
    statics: FxHashMap<&'static str, &'static Op>,
    records: RwLock<FxHashMap<String, Arc<OpRecord>>>,
    /// Names of ops added at run time, in order.
    added: RwLock<Vec<String>>,
    /// Kernels of ops that are not there yet.
    waiting: Mutex<FxHashMap<String, Vec<KernelRecord>>>,
}

impl Registry {
    /// A registry of these op lists, above the schemas of all ops.
    pub fn new(lists: &[&[&'static Op]]) -> Registry {
        let statics = lists
            .iter()
            .flat_map(|list| list.iter().map(|op| (op.name, *op)))
            .collect();
        Registry {
            statics,
            records: RwLock::default(),
            added: RwLock::default(),
            waiting: Mutex::default(),
        }
    }

    /// The op with this name. NOT_FOUND with the reference's text when there is none.
    pub fn find(&self, name: &str) -> Result<Arc<OpRecord>> {
        if let Some(record) = self.records.read().get(name) {
            return Ok(record.clone());
        }
        let def = schema::find(name).ok_or_else(|| not_registered(name))?;
        let record = Arc::new(match self.statics.get(name) {
            Some(op) => OpRecord::from_static(def, op),
            None => OpRecord::schema_only(def),
        });
        Ok(self
            .records
            .write()
            .entry(name.to_string())
            .or_insert(record)
            .clone())
    }

    /// Adds an op at run time. ALREADY_EXISTS when the name is taken.
    pub fn add(&self, mut record: OpRecord) -> Result<()> {
        let name = record.def.name.clone();
        let mut records = self.records.write();
        if records.contains_key(&name) || schema::find(&name).is_some() {
            bail!(AlreadyExists, "Op with name {name}");
        }
        record
            .kernels
            .extend(self.waiting.lock().remove(&name).unwrap_or_default());
        records.insert(name.clone(), Arc::new(record));
        self.added.write().push(name);
        Ok(())
    }

    /// Adds a kernel to an op at run time; it waits for an op that is not there yet. Nodes that exist keep the record they
    /// have.
    pub fn add_kernel(&self, op: &str, kernel: KernelRecord) {
        match self.find(op) {
            Ok(record) => {
                let mut record = (*record).clone();
                record.kernels.push(kernel);
                self.records.write().insert(op.to_string(), Arc::new(record));
            }
            Err(_) => self
                .waiting
                .lock()
                .entry(op.to_string())
                .or_default()
                .push(kernel),
        }
    }

    /// Every schema: the built-in ones by name, then those added at run time.
    pub fn all_defs(&self) -> Vec<Arc<OpDef>> {
        let mut defs: Vec<_> = schema::names().filter_map(schema::find).collect();
        defs.extend(self.added_defs());
        defs
    }

    /// Schemas of the ops added at run time, in order.
    pub fn added_defs(&self) -> Vec<Arc<OpDef>> {
        let records = self.records.read();
        let added = self.added.read();
        let found = added.iter().filter_map(|name| records.get(name));
        found.map(|record| record.def.clone()).collect()
    }

    /// Names of ops that have a behaviour of their own.
    pub fn implemented(&self) -> impl Iterator<Item = &'static str> {
        self.statics.keys().copied()
    }
}
