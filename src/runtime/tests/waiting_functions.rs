//! Functions whose nodes wait for others of the same step: no thread is held, with one thread too. The reference gives the
//! same values for these graphs.

use ff_graph::{Graph, ImportOptions, import_graph_def};
use ff_op::OutputRef;
use ff_proto::{ConfigProto, GraphDef};
use ff_runtime::{RunRequest, Session, SessionOptions};
use ff_tensor::{Code, Result, Tensor};
use parking_lot::Mutex;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// `take(q, x) = x + dequeue(q)`; `keep(q, x) = x`; `deeper(q, x)` takes `x` times by calling itself; `turn(q, i, sum)`
/// takes in a loop of three turns; `on_row(row, q)` adds what it takes; `ask` and `answer` are turns of loops that need each other; `endless(q, x)` has no end.
const GRAPH: &str = r#"
library {
  function {
    signature { name: "below" input_arg { name: "a" type: DT_RESOURCE } input_arg { name: "b" type: DT_RESOURCE }
      input_arg { name: "i" type: DT_INT32 } input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_BOOL } }
    node_def { name: "turns" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 2000 } } } }
    node_def { name: "less" op: "Less" input: "i" input: "turns:output:0" attr { key: "T" value { type: DT_INT32 } } }
    ret { key: "y" value: "less:z:0" }
  }
  function {
    signature { name: "ask" input_arg { name: "a" type: DT_RESOURCE } input_arg { name: "b" type: DT_RESOURCE }
      input_arg { name: "i" type: DT_INT32 } input_arg { name: "x" type: DT_FLOAT } output_arg { name: "c" type: DT_RESOURCE }
      output_arg { name: "d" type: DT_RESOURCE } output_arg { name: "j" type: DT_INT32 } output_arg { name: "y" type: DT_FLOAT }
      is_stateful: true }
    node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
    node_def { name: "next" op: "AddV2" input: "i" input: "one:output:0" attr { key: "T" value { type: DT_INT32 } } }
    node_def { name: "put" op: "QueueEnqueueV2" input: "a" input: "x" attr { key: "Tcomponents" value { list { type: DT_FLOAT } } } }
    node_def { name: "take" op: "QueueDequeueV2" input: "b" input: "^put" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
    ret { key: "c" value: "a" } ret { key: "d" value: "b" } ret { key: "j" value: "next:z:0" } ret { key: "y" value: "take:components:0" }
  }
  function {
    signature { name: "answer" input_arg { name: "a" type: DT_RESOURCE } input_arg { name: "b" type: DT_RESOURCE }
      input_arg { name: "i" type: DT_INT32 } input_arg { name: "x" type: DT_FLOAT } output_arg { name: "c" type: DT_RESOURCE }
      output_arg { name: "d" type: DT_RESOURCE } output_arg { name: "j" type: DT_INT32 } output_arg { name: "y" type: DT_FLOAT }
      is_stateful: true control_output: "put" }
    node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
    node_def { name: "next" op: "AddV2" input: "i" input: "one:output:0" attr { key: "T" value { type: DT_INT32 } } }
    node_def { name: "take" op: "QueueDequeueV2" input: "a" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
    node_def { name: "step" op: "Cast" input: "one:output:0" attr { key: "SrcT" value { type: DT_INT32 } } attr { key: "DstT" value { type: DT_FLOAT } } }
    node_def { name: "more" op: "AddV2" input: "take:components:0" input: "step:y:0" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "put" op: "QueueEnqueueV2" input: "b" input: "more:z:0" attr { key: "Tcomponents" value { list { type: DT_FLOAT } } } }
    ret { key: "c" value: "a" } ret { key: "d" value: "b" } ret { key: "j" value: "next:z:0" } ret { key: "y" value: "more:z:0" }
    control_ret { key: "put" value: "put" }
  }
  function {
    signature { name: "take" input_arg { name: "q" type: DT_RESOURCE } input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "y" type: DT_FLOAT } is_stateful: true }
    node_def { name: "take" op: "QueueDequeueV2" input: "q" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
    node_def { name: "sum" op: "AddV2" input: "x" input: "take:components:0" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "sum:z:0" }
  }
  function {
    signature { name: "keep" input_arg { name: "q" type: DT_RESOURCE } input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "y" type: DT_FLOAT } is_stateful: true }
    node_def { name: "same" op: "Identity" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "same:output:0" }
  }
  function {
    signature { name: "call_take" input_arg { name: "q" type: DT_RESOURCE } input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "y" type: DT_FLOAT } is_stateful: true }
    node_def { name: "call" op: "StatefulPartitionedCall" input: "q" input: "x"
      attr { key: "Tin" value { list { type: DT_RESOURCE type: DT_FLOAT } } }
      attr { key: "Tout" value { list { type: DT_FLOAT } } } attr { key: "f" value { func { name: "take" } } } }
    node_def { name: "named" op: "take" input: "q" input: "call:output:0" }
    ret { key: "y" value: "named:y:0" }
  }
  function {
    signature { name: "deeper" input_arg { name: "q" type: DT_RESOURCE } input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "y" type: DT_FLOAT } is_stateful: true }
    node_def { name: "take" op: "QueueDequeueV2" input: "q" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
    node_def { name: "less" op: "Sub" input: "x" input: "take:components:0" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "goes_on" op: "ToBool" input: "less:z:0" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "if" op: "If" input: "goes_on:output:0" input: "q" input: "less:z:0"
      attr { key: "Tcond" value { type: DT_BOOL } }
      attr { key: "Tin" value { list { type: DT_RESOURCE type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
      attr { key: "then_branch" value { func { name: "deeper" } } } attr { key: "else_branch" value { func { name: "keep" } } } }
    ret { key: "y" value: "if:output:0" }
  }
  function {
    signature { name: "endless" input_arg { name: "q" type: DT_RESOURCE } input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "y" type: DT_FLOAT } is_stateful: true }
    node_def { name: "size" op: "QueueDequeueUpToV2" input: "q" input: "none:output:0"
      attr { key: "component_types" value { list { type: DT_FLOAT } } } }
    node_def { name: "none" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
    node_def { name: "again" op: "endless" input: "q" input: "x" input: "^size" }
    ret { key: "y" value: "again:y:0" }
  }
  function {
    signature { name: "goes_on" input_arg { name: "q" type: DT_RESOURCE } input_arg { name: "i" type: DT_INT32 }
      input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_BOOL } }
    node_def { name: "three" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 3 } } } }
    node_def { name: "less" op: "Less" input: "i" input: "three:output:0" attr { key: "T" value { type: DT_INT32 } } }
    ret { key: "y" value: "less:z:0" }
  }
  function {
    signature { name: "turn" input_arg { name: "q" type: DT_RESOURCE } input_arg { name: "i" type: DT_INT32 }
      input_arg { name: "x" type: DT_FLOAT } output_arg { name: "r" type: DT_RESOURCE } output_arg { name: "j" type: DT_INT32 }
      output_arg { name: "y" type: DT_FLOAT } is_stateful: true }
    node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
    node_def { name: "next" op: "AddV2" input: "i" input: "one:output:0" attr { key: "T" value { type: DT_INT32 } } }
    node_def { name: "take" op: "take" input: "q" input: "x" }
    ret { key: "r" value: "q" } ret { key: "j" value: "next:z:0" } ret { key: "y" value: "take:y:0" }
  }
  function {
    signature { name: "for_turn" input_arg { name: "i" type: DT_INT32 } input_arg { name: "q" type: DT_RESOURCE }
      input_arg { name: "x" type: DT_FLOAT } output_arg { name: "r" type: DT_RESOURCE } output_arg { name: "y" type: DT_FLOAT }
      is_stateful: true }
    node_def { name: "take" op: "take" input: "q" input: "x" }
    ret { key: "r" value: "q" } ret { key: "y" value: "take:y:0" }
  }
  function {
    signature { name: "on_row" input_arg { name: "x" type: DT_FLOAT } input_arg { name: "q" type: DT_RESOURCE }
      output_arg { name: "y" type: DT_FLOAT } is_stateful: true }
    node_def { name: "take" op: "take" input: "q" input: "x" }
    ret { key: "y" value: "take:y:0" }
  }
}
node { name: "a" op: "FIFOQueueV2" attr { key: "component_types" value { list { type: DT_FLOAT } } } attr { key: "capacity" value { i: 1 } } }
node { name: "b" op: "FIFOQueueV2" attr { key: "component_types" value { list { type: DT_FLOAT } } } attr { key: "capacity" value { i: 1 } } }
node { name: "asks" op: "While" input: "a" input: "b" input: "zero" input: "x"
  attr { key: "T" value { list { type: DT_RESOURCE type: DT_RESOURCE type: DT_INT32 type: DT_FLOAT } } }
  attr { key: "cond" value { func { name: "below" } } } attr { key: "body" value { func { name: "ask" } } } }
node { name: "answers" op: "While" input: "a" input: "b" input: "zero" input: "x"
  attr { key: "T" value { list { type: DT_RESOURCE type: DT_RESOURCE type: DT_INT32 type: DT_FLOAT } } }
  attr { key: "cond" value { func { name: "below" } } } attr { key: "body" value { func { name: "answer" } } } }
node { name: "both" op: "AddV2" input: "asks:3" input: "answers:3" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "q" op: "FIFOQueueV2" attr { key: "component_types" value { list { type: DT_FLOAT } } }
  attr { key: "shapes" value { list { shape { } } } } }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "same" op: "Identity" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "values" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "true" op: "Const" attr { key: "dtype" value { type: DT_BOOL } }
  attr { key: "value" value { tensor { dtype: DT_BOOL tensor_shape { } bool_val: true } } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: "three" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 3 } } } }
node { name: "cpu" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
  attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { } string_val: "/cpu:0" } } } }
node { name: "put" op: "QueueEnqueueManyV2" input: "q" input: "values"
  attr { key: "Tcomponents" value { list { type: DT_FLOAT } } } }
node { name: "if" op: "If" input: "true" input: "q" input: "x" attr { key: "Tcond" value { type: DT_BOOL } }
  attr { key: "Tin" value { list { type: DT_RESOURCE type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "then_branch" value { func { name: "call_take" } } } attr { key: "else_branch" value { func { name: "keep" } } } }
node { name: "case" op: "Case" input: "zero" input: "q" input: "x"
  attr { key: "Tin" value { list { type: DT_RESOURCE type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "branches" value { list { func { name: "take" } func { name: "keep" } } } } }
node { name: "call" op: "StatefulPartitionedCall" input: "q" input: "x"
  attr { key: "Tin" value { list { type: DT_RESOURCE type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "f" value { func { name: "call_take" } } } }
node { name: "remote" op: "RemoteCall" input: "cpu" input: "q" input: "x"
  attr { key: "Tin" value { list { type: DT_RESOURCE type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "f" value { func { name: "call_take" } } } }
node { name: "while" op: "While" input: "q" input: "zero" input: "x"
  attr { key: "T" value { list { type: DT_RESOURCE type: DT_INT32 type: DT_FLOAT } } }
  attr { key: "cond" value { func { name: "goes_on" } } } attr { key: "body" value { func { name: "turn" } } } }
node { name: "for" op: "For" input: "zero" input: "three" input: "one" input: "q" input: "x"
  attr { key: "T" value { list { type: DT_RESOURCE type: DT_FLOAT } } } attr { key: "body" value { func { name: "for_turn" } } } }
node { name: "map" op: "MapDefun" input: "x" input: "q"
  attr { key: "Targuments" value { list { type: DT_FLOAT } } } attr { key: "Tcaptured" value { list { type: DT_RESOURCE } } }
  attr { key: "output_types" value { list { type: DT_FLOAT } } }
  attr { key: "output_shapes" value { list { shape { } } } } attr { key: "f" value { func { name: "on_row" } } } }
node { name: "deep" op: "If" input: "true" input: "q" input: "x" attr { key: "Tcond" value { type: DT_BOOL } }
  attr { key: "Tin" value { list { type: DT_RESOURCE type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "then_branch" value { func { name: "deeper" } } } attr { key: "else_branch" value { func { name: "keep" } } } }
node { name: "no_end" op: "If" input: "true" input: "q" input: "x" attr { key: "Tcond" value { type: DT_BOOL } }
  attr { key: "Tin" value { list { type: DT_RESOURCE type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "then_branch" value { func { name: "endless" } } } attr { key: "else_branch" value { func { name: "keep" } } } }
versions { producer: 1000 }
"#;

struct Subject {
    session: Session,
    graph: Arc<Mutex<Graph>>,
}

impl Subject {
    fn new() -> Arc<Subject> {
        let def: GraphDef = ff_proto::text::parse(GRAPH).unwrap();
        let mut graph = Graph::new(ff_ops::registry());
        import_graph_def(&mut graph, def, &ImportOptions::default()).unwrap();
        let graph = Arc::new(Mutex::new(graph));
        let options = SessionOptions {
            config: ConfigProto {
                intra_op_parallelism_threads: 1,
                inter_op_parallelism_threads: 1,
                ..ConfigProto::default()
            },
            ..SessionOptions::default()
        };
        let session = Session::new(graph.clone(), options).unwrap();
        Arc::new(Subject { session, graph })
    }

    /// Runs output `index` of a node for `x`, and puts `values` into the queue in the same run, unless there are none.
    fn run(&self, fetch: (&str, u32), x: Tensor, values: Option<&[f32]>) -> Result<Tensor> {
        let output = |name: &str, index| OutputRef {
            node: self.graph.lock().find(name).unwrap(),
            index,
        };
        let mut feeds = vec![(output("x", 0), x)];
        let mut targets = Vec::new();
        if let Some(values) = values {
            feeds.push((output("values", 0), floats(values)));
            targets.push(output("put", 0).node);
        }
        let response = self.session.run(&RunRequest {
            feeds: &feeds,
            fetches: &[output(fetch.0, fetch.1)],
            targets: &targets,
            options: None,
            want_metadata: false,
        })?;
        Ok(response.outputs[0].clone())
    }
}

fn floats(values: &[f32]) -> Tensor {
    Tensor::vector(values).unwrap()
}

fn one(value: f32) -> Tensor {
    Tensor::scalar(value).unwrap()
}

/// Runs a node on an empty queue that the same run fills; fails if that takes too long.
fn alone(fetch: (&'static str, u32), x: Tensor, values: &'static [f32]) -> Vec<f32> {
    let (sender, receiver) = mpsc::channel();
    let subject = Subject::new();
    std::thread::spawn(move || {
        // Again, in frames that were used.
        for _ in 0..3 {
            sender.send(subject.run(fetch, x.clone(), Some(values))).unwrap();
        }
    });
    let mut last = Vec::new();
    for _ in 0..3 {
        let result = receiver.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
        last = result.as_slice::<f32>().unwrap().to_vec();
    }
    last
}

#[test]
fn what_fills_the_queue_runs_meanwhile() {
    assert_eq!(alone(("if", 0), one(1.0), &[2.0, 4.0]), [7.0]);
    assert_eq!(alone(("case", 0), one(1.0), &[2.0]), [3.0]);
    assert_eq!(alone(("call", 0), one(1.0), &[2.0, 4.0]), [7.0]);
    assert_eq!(alone(("remote", 0), one(1.0), &[2.0, 4.0]), [7.0]);
    assert_eq!(alone(("while", 2), one(1.0), &[2.0, 4.0, 8.0]), [15.0]);
    assert_eq!(alone(("for", 1), one(1.0), &[2.0, 4.0, 8.0]), [15.0]);
}

/// Two loops that take turns: one asks with a number, the other answers with the next.
#[test]
fn loops_wait_for_each_other() {
    let sum = alone(("both", 0), one(0.0), &[]);
    assert_eq!(sum, [2.0 * 2000.0]);
}

#[test]
fn rows_wait_together() {
    let sums = alone(("map", 0), floats(&[1.0, 10.0, 100.0]), &[2.0, 2.0, 2.0]);
    assert_eq!(sums, [3.0, 12.0, 102.0]);
}

#[test]
fn calls_nest_without_a_stack() {
    const ONES: [f32; 90] = [1.0; 90];
    assert_eq!(alone(("deep", 0), one(90.0), &ONES), [0.0]);
    let endless = Subject::new().run(("no_end", 0), one(0.0), None);
    assert_eq!(endless.unwrap_err().code(), Code::ResourceExhausted);
}

#[test]
fn another_run_fills_the_queue() {
    let subject = Subject::new();
    let sums: Vec<f32> = std::thread::scope(|scope| {
        let run = |_| {
            let subject = subject.clone();
            scope.spawn(move || {
                let sum = subject.run(("while", 2), one(0.0), None).unwrap();
                sum.single::<f32>().unwrap()
            })
        };
        let runs: Vec<_> = (0..4).map(run).collect();
        // Three for each loop. Who puts them in takes none, so nobody stands behind the loops in the queue's line.
        for turn in 0..12 {
            let put = subject.run(("same", 0), one(0.0), Some(&[turn as f32]));
            assert!(put.is_ok());
        }
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(sums.iter().sum::<f32>(), 66.0);
}

#[test]
fn closing_ends_what_waits() {
    let subject = Subject::new();
    let waits = ["while", "if", "map", "deep"].map(|name| {
        let subject = subject.clone();
        std::thread::spawn(move || {
            let x = if name == "map" {
                floats(&[1.0, 2.0])
            } else {
                one(1.0)
            };
            subject.run((name, if name == "while" { 2 } else { 0 }), x, None)
        })
    });
    std::thread::sleep(Duration::from_millis(200));
    subject.session.close();
    for wait in waits {
        assert_eq!(wait.join().unwrap().unwrap_err().code(), Code::Cancelled);
    }
}
