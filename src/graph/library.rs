//! The function library of a graph: FunctionDefs by name, and which function is the gradient of which.

use ff_proto::FunctionDef;
use ff_tensor::{Result, status};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Functions by name. Shared by a graph, its copies and its sessions; it can only grow.
#[derive(Default)]
pub struct FunctionLibrary {
    functions: RwLock<BTreeMap<String, Arc<FunctionDef>>>,
    gradients: RwLock<BTreeMap<String, String>>,
}

impl FunctionLibrary {
    /// The function with this name. NOT_FOUND when there is none.
    pub fn find(&self, name: &str) -> Result<Arc<FunctionDef>> {
        let found = self.functions.read().get(name).cloned();
        found.ok_or_else(|| status!(NotFound, "Function {name} is not defined."))
    }

    /// Adds a function. Adding the same one again is fine. INVALID_ARGUMENT when another has its name.
    pub fn add(&self, function: Arc<FunctionDef>) -> Result<()> {
        let name = function
            .signature
            .as_ref()
            .map(|signature| signature.name.clone())
            .unwrap_or_default();
        let mut functions = self.functions.write();
        match functions.get(&name) {
            Some(present) if *present != function => Err(status!(
                InvalidArgument,
                "Cannot add function '{name}' because a different function with the same name already exists."
            )),
            Some(_) => Ok(()),
            None => {
                functions.insert(name, function);
                Ok(())
            }
        }
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
        self.functions.read().values().cloned().collect()
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
