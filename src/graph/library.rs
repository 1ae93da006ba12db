//! The function library of a graph: FunctionDefs by name, and which function is the gradient of which.

use ff_op::{FunctionRef, HandleShapes, OpRecord};
use ff_proto::FunctionDef;
use ff_tensor::{PartialShape, Result, status};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A function, and the op as which nodes can call it by its name.
struct Entry {
    function: Arc<FunctionDef>,
    op: Arc<OpRecord>,
}

/// A function with the shapes of its arguments and what handles among them hold.
pub(crate) type InferenceKey = (FunctionRef, Vec<PartialShape>, Vec<Option<HandleShapes>>);
/// The shapes of results and what handles among them hold.
pub(crate) type Inferred = (Vec<PartialShape>, Vec<Option<HandleShapes>>);

/// Inferred shapes kept; beyond that all are forgotten.
const MOST_INFERRED: usize = 4096;

/// Functions by name. Shared by a graph, its copies and its sessions; it can only grow.
#[derive(Default)]
pub struct FunctionLibrary {
    functions: RwLock<BTreeMap<String, Entry>>,
    /// Shapes of results that were inferred, kept so that calls of calls do not multiply.
    inferred: Mutex<FxHashMap<InferenceKey, Inferred>>,
    gradients: RwLock<BTreeMap<String, String>>,
}

impl FunctionLibrary {
    /// The function with this name. NOT_FOUND when there is none.
    pub fn find(&self, name: &str) -> Result<Arc<FunctionDef>> {
        let functions = self.functions.read();
        let found = functions.get(name).map(|entry| entry.function.clone());
        found.ok_or_else(|| status!(NotFound, "Function {name} is not defined."))
    }

    /// The function with this name as an op.
    pub fn find_op(&self, name: &str) -> Option<Arc<OpRecord>> {
        self.functions.read().get(name).map(|entry| entry.op.clone())
    }

    /// How many functions there are.
    pub fn len(&self) -> usize {
        self.functions.read().len()
    }

    /// Whether there are no functions.
    pub fn is_empty(&self) -> bool {
        self.functions.read().is_empty()
    }

    /// Adds a function. Adding the same one again is fine. INVALID_ARGUMENT when another has its name.
    pub fn add(&self, function: Arc<FunctionDef>) -> Result<()> {
        self.add_new(function).map(|_| ())
    }

    /// As [`FunctionLibrary::add`]; says whether the function was not there before.
    pub(crate) fn add_new(&self, function: Arc<FunctionDef>) -> Result<bool> {
        let name = function
            .signature
            .as_ref()
            .map(|signature| signature.name.clone())
            .unwrap_or_default();
        let mut functions = self.functions.write();
        match functions.get(&name) {
            Some(present) if present.function != function => Err(status!(
                InvalidArgument,
                "Cannot add function '{name}' because a different function with the same name already exists."
            )),
            Some(_) => Ok(false),
            None => {
                let schema = function.signature.clone().unwrap_or_default();
                let op = Arc::new(OpRecord::of_function(Arc::new(schema)));
                functions.insert(name, Entry { function, op });
                Ok(true)
            }
        }
    }

    /// Shapes that were inferred before.
    pub(crate) fn inferred(&self, key: &InferenceKey) -> Option<Inferred> {
        self.inferred.lock().get(key).cloned()
    }

    /// Keeps shapes that were inferred.
    pub(crate) fn set_inferred(&self, key: InferenceKey, inferred: &Inferred) {
        let mut all = self.inferred.lock();
        if all.len() >= MOST_INFERRED {
            all.clear();
        }
        all.insert(key, inferred.clone());
    }

    /// Takes a function out, if it is there. Those who hold it keep it.
    pub fn remove(&self, name: &str) {
        self.functions.write().remove(name);
        self.inferred.lock().clear();
    }

    /// The gradient function of a function, if one was named.
    pub fn gradient_of(&self, function: &str) -> Option<String> {
        self.gradients.read().get(function).cloned()
    }

    /// Takes back a [`FunctionLibrary::set_gradient`].
    pub(crate) fn remove_gradient(&self, function: &str) {
        self.gradients.write().remove(function);
    }

    /// Says that `gradient` is the gradient function of `function`. INVALID_ARGUMENT when another one is.
    pub fn set_gradient(&self, function: &str, gradient: &str) -> Result<()> {
        let mut gradients = self.gradients.write();
        match gradients.get(function) {
            Some(present) if present != gradient => Err(status!(
                InvalidArgument,
                "Cannot assign gradient function '{gradient}' to '{function}' because it already has gradient function '{present}'"
            )),
            _ => {
                gradients.insert(function.to_string(), gradient.to_string());
                Ok(())
            }
        }
    }

    /// All functions by name.
    pub fn functions(&self) -> Vec<Arc<FunctionDef>> {
        let functions = self.functions.read();
        functions.values().map(|entry| entry.function.clone()).collect()
    }

    /// All pairs (function, its gradient).
    pub fn gradients(&self) -> Vec<(String, String)> {
        self.gradients
            .read()
            .iter()
            .map(|(function, gradient)| (function.clone(), gradient.clone()))
            .collect()
    }
}
