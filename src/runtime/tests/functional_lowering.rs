//! Functions as HLO: what a loop, a call within it and shapes of its values become, evaluated.

use ff_graph::{Graph, ImportOptions, LibraryHost, import_graph_def};
use ff_hlo::{ArrayShape, Builder, Program};
use ff_op::LowerContext;
use ff_proto::GraphDef;
use ff_tensor::{Code, DataType, Result, Shape, Tensor};

/// `turn` adds 1 to the first value and cubes the second, by a call, and adds the number of its elements; `first_of`
/// needs a file.
const LIBRARY: &str = r#"
library {
  function {
    signature { name: "cube" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "square" op: "Mul" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "cube" op: "Mul" input: "square:z:0" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "cube:z:0" }
  }
  function {
    signature {
      name: "turns_left"
      input_arg { name: "turn" type: DT_INT32 } input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "answer" type: DT_BOOL }
    }
    node_def { name: "two" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 2 } } } }
    node_def { name: "less" op: "Less" input: "turn" input: "two:output:0" attr { key: "T" value { type: DT_INT32 } } }
    ret { key: "answer" value: "less:z:0" }
  }
  function {
    signature {
      name: "turn"
      input_arg { name: "turn" type: DT_INT32 } input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "next" type: DT_INT32 } output_arg { name: "higher" type: DT_FLOAT }
    }
    node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
    node_def { name: "add" op: "AddV2" input: "turn" input: "one:output:0" attr { key: "T" value { type: DT_INT32 } } }
    node_def { name: "call" op: "PartitionedCall" input: "x" attr { key: "f" value { func { name: "cube" } } }
      attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } }
    node_def { name: "size" op: "Size" input: "x" attr { key: "T" value { type: DT_FLOAT } }
      attr { key: "out_type" value { type: DT_INT32 } } }
    node_def { name: "count" op: "Cast" input: "size:output:0" attr { key: "SrcT" value { type: DT_INT32 } }
      attr { key: "DstT" value { type: DT_FLOAT } } }
    node_def { name: "sum" op: "AddV2" input: "call:output:0" input: "count:y:0"
      attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "next" value: "add:z:0" } ret { key: "higher" value: "sum:z:0" }
  }
  function {
    signature { name: "written" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_STRING } }
    node_def { name: "text" op: "AsString" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "text:output:0" }
  }
}
node { name: "i" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "loop" op: "StatelessWhile" input: "i" input: "x"
  attr { key: "cond" value { func { name: "turns_left" } } } attr { key: "body" value { func { name: "turn" } } }
  attr { key: "T" value { list { type: DT_INT32 type: DT_FLOAT } } } }
node { name: "strings" op: "PartitionedCall" input: "x" attr { key: "f" value { func { name: "written" } } }
  attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_STRING } } } }
versions { producer: 1000 }
"#;

/// Lowers a node for these inputs and evaluates what comes out.
fn evaluate(node: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let def: GraphDef = ff_proto::text::parse(LIBRARY).unwrap();
    let mut graph = Graph::new(ff_ops::registry());
    import_graph_def(&mut graph, def, &ImportOptions::default()).unwrap();
    let info = graph.node(graph.find(node).unwrap()).info.clone();
    let functions = LibraryHost::new(graph.registry(), graph.functions());
    let mut builder = Builder::new("test");
    let mut operands = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        operands.push(builder.parameter(index, ArrayShape::new(input.dtype(), input.dims()), "")?);
    }
    let constants = vec![None; inputs.len()];
    let mut context = LowerContext::new(&info, &mut builder, &operands, &constants, Some(&functions));
    info.op.lower.unwrap()(&mut context)?;
    let results = context.finish()?;
    let root = builder.tuple(&results)?;
    Program::compile(&builder.finish(root)?)?.run(ff_kernels::ThreadPool::serial(), inputs.to_vec())
}

#[test]
fn a_loop_with_a_call_in_it() {
    let inputs = [
        Tensor::scalar(0i32).unwrap(),
        Tensor::from_slice(Shape::vector(2), &[1f32, -1.0]).unwrap(),
    ];
    let results = evaluate("loop", &inputs).unwrap();
    assert_eq!(results[0].single::<i32>().unwrap(), 2);
    // x^3 + 2, twice.
    assert_eq!(results[1].as_slice::<f32>().unwrap(), [29.0, 3.0]);
    assert_eq!(results[1].dtype(), DataType::FLOAT);
}

#[test]
fn what_has_no_lowering_is_named() {
    let error = evaluate("strings", &[Tensor::scalar(1f32).unwrap()])
        .err()
        .unwrap();
    assert_eq!(error.code(), Code::Unimplemented);
    assert!(
        error.message().contains("{{node text}} (op: AsString)"),
        "{error}"
    );
}
