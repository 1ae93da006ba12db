//! Builds small functions from nodes: the bodies that gradients of functional ops wrap around others.

use ff_op::{Attrs, FunctionRef};
use ff_proto::op_def::ArgDef;
use ff_proto::{FunctionDef, NodeDef, OpDef};
use ff_tensor::DataType;

/// A function in the making. Values are named as in a FunctionDef: `argument`, or `node:output:number`.
#[derive(Default)]
pub struct FunctionBuilder {
    def: FunctionDef,
    signature: OpDef,
}

impl FunctionBuilder {
    /// A function without arguments, nodes and results.
    pub fn new() -> FunctionBuilder {
        FunctionBuilder::default()
    }

    /// Adds an argument for each type; gives the values.
    pub fn arguments(&mut self, types: &[DataType]) -> Vec<String> {
        let add = |dtype: &DataType| {
            let name = format!("argument_{}", self.signature.input_arg.len());
            self.signature.input_arg.push(ArgDef {
                name: name.clone(),
                r#type: dtype.base().0,
                ..ArgDef::default()
            });
            name
        };
        types.iter().map(add).collect()
    }

    /// Adds a node and gives its name. All attributes that types depend on must be said.
    pub fn node(&mut self, op: &str, inputs: &[String], attrs: Attrs) -> String {
        let name = format!("node_{}", self.def.node_def.len());
        self.def.node_def.push(NodeDef {
            name: name.clone(),
            op: op.to_string(),
            input: inputs.to_vec(),
            attr: attrs
                .iter()
                .map(|(key, value)| (key.to_string(), value.to_proto()))
                .collect(),
            ..NodeDef::default()
        });
        name
    }

    /// Adds a node and gives the value of its only output, which the schema calls `output`.
    pub fn value(&mut self, op: &str, inputs: &[String], attrs: Attrs, output: &str) -> String {
        format!("{}:{output}:0", self.node(op, inputs, attrs))
    }

    /// Adds a call of a function and gives its results. `op` is PartitionedCall or StatefulPartitionedCall.
    pub fn call(
        &mut self,
        op: &str,
        function: &FunctionRef,
        inputs: Vec<(String, DataType)>,
        results: &[DataType],
    ) -> Vec<String> {
        let (inputs, types): (Vec<String>, Vec<DataType>) = inputs.into_iter().unzip();
        let attrs = Attrs::new()
            .with("Tin", types)
            .with("Tout", results.to_vec())
            .with("f", function.clone());
        let node = self.node(op, &inputs, attrs);
        (0..results.len())
            .map(|index| format!("{node}:output:{index}"))
            .collect()
    }

    /// Adds a result.
    pub fn result(&mut self, value: String, dtype: DataType) {
        let name = format!("result_{}", self.signature.output_arg.len());
        self.signature.output_arg.push(ArgDef {
            name: name.clone(),
            r#type: dtype.base().0,
            ..ArgDef::default()
        });
        self.def.ret.insert(name, value);
    }

    /// The function; its name is given when it is added to a library.
    pub fn finish(mut self) -> FunctionDef {
        self.def.signature = Some(self.signature);
        self.def
    }
}
