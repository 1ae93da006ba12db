//! What a graph asks to be compiled, as front ends write it into attributes.
//!
//! - `_XlaMustCompile` of a call: the function's body is compiled; something in it that cannot be is an error.
//! - `_XlaCompile` of a node: it becomes part of a compiled cluster where it can (true), or never does (false).
//! - `_xla_compile_id` of a node: as `_XlaCompile`.
//! - `_XlaScope` of a node: clusters with different scopes stay apart.
//!
//! A function's name in an attribute carries the request for its body among its own attributes.

use crate::{Attrs, FunctionRef, NodeInfo};
use ff_proto::{FunctionDef, attr_value};
use ff_tensor::Result;
use std::borrow::Cow;

const COMPILE: &str = "_XlaCompile";
const MUST_COMPILE: &str = "_XlaMustCompile";
const COMPILE_ID: &str = "_xla_compile_id";
const SCOPE: &str = "_XlaScope";

/// What is asked for a function's body. Each asks for more than the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompileRequest {
    /// Nothing.
    #[default]
    None,
    /// To compile what can be.
    Clusters,
    /// To compile all of it.
    Must,
}

impl CompileRequest {
    /// What the attributes of a call, or of a function's name, ask for.
    pub fn of(attrs: &Attrs) -> CompileRequest {
        if attrs.bool(MUST_COMPILE).unwrap_or(false) {
            return CompileRequest::Must;
        }
        match asks(attrs) {
            Some(true) => CompileRequest::Clusters,
            _ => CompileRequest::None,
        }
    }

    /// What a function asks for itself, wherever it is called.
    pub fn of_function(function: &FunctionDef) -> CompileRequest {
        let says = |name: &str| match function.attr.get(name).and_then(|attr| attr.value.as_ref()) {
            Some(attr_value::Value::B(value)) => *value,
            _ => false,
        };
        if says(MUST_COMPILE) {
            return CompileRequest::Must;
        }
        if says(COMPILE) {
            CompileRequest::Clusters
        } else {
            CompileRequest::None
        }
    }

    /// Whether attributes say yes or no to compiling all.
    pub fn says_must(attrs: &Attrs) -> Option<bool> {
        attrs.bool(MUST_COMPILE).ok()
    }

    /// Writes the request into the attributes of a call, or of a function's name. One that asks for more stays.
    pub fn write(self, attrs: &mut Attrs) {
        if CompileRequest::of(attrs) >= self {
            return;
        }
        match self {
            CompileRequest::None => {}
            CompileRequest::Clusters => attrs.set(COMPILE, true),
            CompileRequest::Must => attrs.set(MUST_COMPILE, true),
        }
    }

    /// A function's name with the request.
    pub fn with(self, function: &FunctionRef) -> Cow<'_, FunctionRef> {
        if CompileRequest::of(&function.attrs) >= self {
            return Cow::Borrowed(function);
        }
        let mut asked = function.clone();
        self.write(&mut asked.attrs);
        Cow::Owned(asked)
    }

    /// Writes it into the attributes of a node of a body for which it was made. A node that says no stays out.
    pub fn write_member(self, attrs: &mut Attrs) {
        if self != CompileRequest::None && asks(attrs).is_none() {
            attrs.set(COMPILE, true);
        }
    }
}

impl NodeInfo {
    /// Whether the node asks to be in a compiled cluster (true), or never to be (false).
    pub fn asks_for_cluster(&self) -> Option<bool> {
        asks(&self.attrs)
    }

    /// The function that a call names in an attribute, with the call's request to compile it. Errors as of
    /// [`Attrs::func`].
    pub fn called_function(&self, attr: &str) -> Result<Cow<'_, FunctionRef>> {
        let function = self.attrs.func(attr)?;
        Ok(CompileRequest::of(&self.attrs).with(function))
    }

    /// The scope outside of which the node's cluster must not reach.
    pub fn cluster_scope(&self) -> Option<&[u8]> {
        self.attrs.bytes(SCOPE).ok()
    }
}

fn asks(attrs: &Attrs) -> Option<bool> {
    let is_part = || attrs.bytes(COMPILE_ID).is_ok_and(|id| !id.is_empty());
    attrs.bool(COMPILE).ok().or_else(|| is_part().then_some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_grow_and_stay() {
        let mut function = FunctionRef::default();
        assert_eq!(CompileRequest::of(&function.attrs), CompileRequest::None);
        assert!(matches!(CompileRequest::None.with(&function), Cow::Borrowed(_)));
        function = CompileRequest::Clusters.with(&function).into_owned();
        assert_eq!(CompileRequest::of(&function.attrs), CompileRequest::Clusters);
        function = CompileRequest::Must.with(&function).into_owned();
        CompileRequest::Clusters.write(&mut function.attrs);
        assert_eq!(CompileRequest::of(&function.attrs), CompileRequest::Must);
    }

    #[test]
    fn a_node_that_says_no_stays_out() {
        let mut attrs = Attrs::new().with(COMPILE, false).with(COMPILE_ID, "cluster");
        CompileRequest::Must.write_member(&mut attrs);
        assert_eq!(asks(&attrs), Some(false));
        let mut other = Attrs::new();
        CompileRequest::None.write_member(&mut other);
        assert!(other.is_empty());
        CompileRequest::Must.write_member(&mut other);
        assert_eq!(asks(&other), Some(true));
        assert_eq!(asks(&Attrs::new().with(COMPILE_ID, "cluster")), Some(true));
    }
}
