//! Target `calls`: sequences of C calls by choice, on handles that live, NULL, and handles of other graphs.
//!
//! What the interface leaves undefined is not done: no handle is used after it was deleted. Everything else is: any
//! order of deletion, wrong types, sizes, counts and names.

use super::graph_use::{at, deadline, no_room};
use super::{Form, Target, choose};
use crate::random::Choices;
use ff_c_api::ffi::{Array, Blob, Enum, Room, Text};
use ff_c_api::*;
use std::ffi::CStr;
use std::ptr::null_mut;

/// Calls.
pub static CALLS: Target = Target {
    name: "calls",
    about: "sequences of C calls by choice, in any order",
    form: Form::Bytes,
    from: &[],
    make: choose,
    run,
};

/// Most calls of one input.
const MOST_CALLS: usize = 120;

const NAMES: &[&CStr] = &[
    c"a",
    c"b",
    c"c",
    c"x/y",
    c"",
    c"a:0",
    c"^a",
    c"value",
    c"dtype",
    c"T",
    c"shape",
    c"N",
    c"\xff\xfe",
    c"out",
    c"/cpu:0",
    c"/device:GPU:7",
    c"_x",
    c"transpose_a",
    c"component_types",
    c"f",
    c"Tin",
    c"Tout",
];

const OPS: &[&CStr] = &[
    c"Placeholder",
    c"Const",
    c"Add",
    c"AddV2",
    c"MatMul",
    c"NoOp",
    c"Identity",
    c"VarHandleOp",
    c"ReadVariableOp",
    c"AssignVariableOp",
    c"Pack",
    c"Concat",
    c"Split",
    c"IdentityN",
    c"FIFOQueueV2",
    c"QueueDequeueV2",
    c"Switch",
    c"Merge",
    c"PartitionedCall",
    c"Missing",
    c"",
    c"Shape",
    c"Reshape",
    c"Fill",
    c"Range",
    c"Neg",
    c"Sum",
    c"func",
    c"StringJoin",
    c"RandomUniform",
    c"Assert",
    c"Where",
];

/// A graph with what depends on it.
struct Graph {
    graph: Option<Box<TF_Graph>>,
    operations: Vec<*mut TF_Operation>,
    sessions: Vec<Box<TF_Session>>,
    descriptions: Vec<Box<TF_OperationDescription>>,
}

/// Everything that lives.
struct World<'a> {
    choices: Choices<'a>,
    graphs: Vec<Graph>,
    tensors: Vec<Box<TF_Tensor>>,
    buffers: Vec<Box<TF_Buffer>>,
    functions: Vec<Box<TF_Function>>,
    status: Box<TF_Status>,
}

fn run(bytes: &[u8]) {
    let mut world = World {
        choices: Choices::new(bytes),
        graphs: Vec::new(),
        tensors: Vec::new(),
        buffers: Vec::new(),
        functions: Vec::new(),
        status: TF_NewStatus(),
    };
    world.new_graph();
    let mut calls = 0;
    while !world.choices.is_empty() && calls < MOST_CALLS {
        world.call();
        calls += 1;
    }
    world.end();
}

impl<'a> World<'a> {
    fn name(&mut self) -> Text<'static> {
        if self.choices.one_in(30) {
            return Text::NULL;
        }
        let name: &&CStr = self.choices.pick(NAMES);
        Text::new(name)
    }

    fn count(&mut self, most: usize) -> i32 {
        match self.choices.below(16) {
            15 => -1,
            14 => 0,
            _ => self.choices.below(most + 1) as i32,
        }
    }

    fn graph_at(&mut self) -> usize {
        self.choices.below(self.graphs.len())
    }

    /// An output of some operation, maybe of another graph, maybe with an index that is not there.
    fn output(&mut self, graph: usize) -> TF_Output {
        let graph = if self.choices.one_in(20) {
            self.graph_at()
        } else {
            graph
        };
        let operations = &self.graphs[graph].operations;
        if operations.is_empty() || self.choices.one_in(30) {
            return TF_Output::NONE;
        }
        let oper = *self.choices.pick(operations);
        let index = *self.choices.pick(&[0, 0, 0, 0, 0, 0, 1, 2, -1, i32::MAX]);
        TF_Output { oper, index }
    }

    fn operation<'b>(&mut self, graph: usize) -> Option<&'b TF_Operation> {
        at(self.output(graph).oper)
    }

    fn call(&mut self) {
        match self.choices.below(12) {
            0..=3 => self.build(),
            4 => self.make(),
            5 | 6 => self.ask(),
            7 | 8 => self.run_session(),
            9 => self.functions(),
            10 => self.change(),
            _ => self.delete(),
        }
    }

    fn new_graph(&mut self) {
        self.graphs.push(Graph {
            graph: TF_NewGraph(),
            operations: Vec::new(),
            sessions: Vec::new(),
            descriptions: Vec::new(),
        });
    }

    fn build(&mut self) {
        let at = self.graph_at();
        let op: &&CStr = self.choices.pick(OPS);
        let op = Text::new(op);
        let name = if self.choices.one_in(3) {
            self.name()
        } else {
            Text::new(NAMES[self.graphs[at].operations.len() % 4])
        };
        let node = TF_NewOperation(self.graphs[at].graph.as_deref(), op, name);
        if let Some(mut node) = node {
            for _ in 0..self.choices.below(6) {
                self.describe(&mut node, at);
            }
            if self.choices.one_in(12) {
                self.graphs[at].descriptions.push(node);
                return;
            }
            self.finish(node, at);
        }
    }

    fn finish(&mut self, node: Box<TF_OperationDescription>, at: usize) {
        let operation = TF_FinishOperation(Some(node), Some(&mut self.status));
        if !operation.is_null() {
            self.graphs[at].operations.push(operation);
        }
    }

    /// Adds an input or an attribute.
    fn describe(&mut self, node: &mut TF_OperationDescription, at: usize) {
        let node = Some(node);
        let name = self.name();
        let dims = [self.choices.number(), self.choices.number(), 2, -1];
        match self.choices.below(16) {
            0..=3 => TF_AddInput(node, self.output(at)),
            4 => {
                let list = [self.output(at), self.output(at), self.output(at)];
                TF_AddInputList(node, Array::new(&list), self.count(3));
            }
            5 => TF_AddControlInput(node, self.operation(at)),
            6 => TF_SetAttrType(node, Text::new(c"dtype"), Enum::new(self.choices.number() as i32)),
            7 => TF_SetAttrType(node, Text::new(c"dtype"), Enum::new(1)),
            8 => TF_SetAttrType(node, Text::new(c"T"), Enum::new(self.choices.below(40) as i32)),
            9 => TF_SetAttrShape(node, Text::new(c"shape"), Array::new(&dims), self.count(4)),
            10 => TF_SetAttrIntList(node, name, Array::new(&dims), self.count(4)),
            11 => TF_SetAttrInt(node, name, dims[0]),
            12 => {
                let tensor = self.tensors.first().map(|tensor| &**tensor);
                TF_SetAttrTensor(node, Text::new(c"value"), tensor, Some(&mut self.status));
            }
            13 => TF_SetDevice(node, name),
            14 => TF_ColocateWith(node, self.operation(at)),
            _ => {
                let types = [Enum::new(1), Enum::new(3), Enum::new(dims[0] as i32)];
                let names: &[&CStr] = &[c"Tin", c"Tout", c"T", c"component_types"];
                let name = Text::new(names[self.choices.below(names.len())]);
                TF_SetAttrTypeList(node, name, Array::new(&types), self.count(3));
            }
        }
    }

    /// New tensors, buffers, graphs, sessions.
    fn make(&mut self) {
        let dims = [
            self.choices.number(),
            self.choices.number(),
            self.choices.number(),
        ];
        let dtype = Enum::new(if self.choices.one_in(8) {
            self.choices.number() as i32
        } else {
            self.choices.below(34) as i32
        });
        match self.choices.below(6) {
            0 | 1 => {
                let rank = self.count(3);
                let length = match self.choices.below(4) {
                    0 => self.choices.number() as usize,
                    _ => dims[..rank.max(0) as usize]
                        .iter()
                        .fold(TF_DataTypeSize(dtype), |length, &extent| {
                            length.wrapping_mul(extent as usize)
                        }),
                };
                self.tensors
                    .extend(TF_AllocateTensor(dtype, Array::new(&dims), rank, length));
            }
            2 if self.graphs.len() < 4 => self.new_graph(),
            3 | 4 => {
                let at = self.graph_at();
                let session = TF_NewSession(self.graphs[at].graph.as_deref(), None, Some(&mut self.status));
                self.graphs[at].sessions.extend(session);
            }
            _ => {
                let at = self.graph_at();
                let mut buffer = TF_NewBuffer();
                TF_GraphToGraphDef(
                    self.graphs[at].graph.as_deref(),
                    Some(&mut buffer),
                    Some(&mut self.status),
                );
                self.buffers.push(buffer);
            }
        }
    }

    fn ask(&mut self) {
        let at = self.graph_at();
        let (output, operation, name) = (self.output(at), self.operation(at), self.name());
        let room = self.count(4);
        let mut dims = [0i64; 4];
        let graph = self.graphs[at].graph.as_deref();
        let status = Some(&mut *self.status);
        match self.choices.below(14) {
            0 => drop(TF_GraphGetTensorNumDims(graph, output, status)),
            1 => TF_GraphGetTensorShape(graph, output, Room::new(&mut dims), room, status),
            2 => drop(TF_OperationOutputType(output)),
            3 => drop(TF_OperationOutputListLength(operation, name, status)),
            4 => drop(TF_OperationInputListLength(operation, name, status)),
            5 => TF_OperationGetAttrIntList(operation, name, Room::new(&mut dims), room, status),
            6 => TF_OperationGetAttrShape(operation, name, Room::new(&mut dims), room, status),
            7 => drop(TF_OperationGetAttrMetadata(operation, name, status)),
            8 => {
                let input = TF_Input {
                    oper: output.oper,
                    index: output.index,
                };
                let source = TF_OperationInput(input);
                TF_OperationInputType(input);
                TF_OperationOutputType(source);
            }
            9 => {
                let mut inputs = [TF_Output::NONE; 4];
                TF_OperationAllInputs(operation, Room::new(&mut inputs), room);
            }
            10 => {
                let mut found = [null_mut(); 4];
                TF_OperationGetControlInputs(operation, Room::new(&mut found), room);
                TF_OperationGetControlOutputs(operation, Room::new(&mut found), room);
                TF_OperationOutputNumConsumers(output);
            }
            11 => {
                let mut buffer = TF_NewBuffer();
                TF_OperationToNodeDef(operation, Some(&mut buffer), status);
                TF_DeleteBuffer(Some(buffer));
            }
            12 => {
                let mut result = std::mem::MaybeUninit::new(null_mut());
                let found = TF_TryEvaluateConstant(graph, output, Some(&mut result), status);
                // SAFETY: set from the start.
                let result: *mut TF_Tensor = unsafe { result.assume_init() };
                if found != 0 && !result.is_null() {
                    // SAFETY: the call gave us a tensor.
                    self.tensors.push(unsafe { Box::from_raw(result) });
                }
            }
            _ => {
                TF_GraphOperationByName(graph, name);
                TF_OperationNumInputs(operation);
                TF_OperationDevice(operation);
            }
        }
    }

    fn run_session(&mut self) {
        let at = self.graph_at();
        let fetches = [self.output(at), self.output(at), self.output(at)];
        let feeds = [self.output(at), self.output(at)];
        let targets = [self.operation(at), self.operation(at)];
        let counts = [self.count(2), self.count(3), self.count(2)];
        let options = deadline();
        let graph = &self.graphs[at];
        if graph.sessions.is_empty() {
            return;
        }
        let session = &**self.choices.pick(&graph.sessions);
        if self.choices.one_in(20) {
            TF_CloseSession(Some(session), Some(&mut self.status));
        }
        let values: Vec<Option<&TF_Tensor>> = (0..2)
            .map(|_| (!self.tensors.is_empty()).then(|| &**self.choices.pick(&self.tensors)))
            .collect();
        let mut results = [null_mut(); 3];
        TF_SessionRun(
            Some(session),
            options.as_deref(),
            Array::new(&feeds),
            Array::new(&values),
            counts[0],
            Array::new(&fetches),
            Room::new(&mut results),
            counts[1],
            Array::new(&targets),
            counts[2],
            None,
            Some(&mut self.status),
        );
        for result in results {
            if !result.is_null() {
                // SAFETY: the run gave us a tensor.
                self.tensors.push(unsafe { Box::from_raw(result) });
            }
        }
        TF_DeleteBuffer(options);
    }

    fn functions(&mut self) {
        let at = self.graph_at();
        let (input, output, name) = (self.output(at), self.output(at), self.name());
        let (ninputs, noutputs) = (self.count(1), self.count(1));
        let graph = self.graphs[at].graph.as_deref();
        match self.choices.below(4) {
            0 | 1 => {
                let function = TF_GraphToFunction(
                    graph,
                    if self.choices.one_in(4) {
                        name
                    } else {
                        Text::new(c"func")
                    },
                    self.choices.byte() & 1,
                    -1,
                    Array::new(&[]),
                    ninputs,
                    Array::new(&[input]),
                    noutputs,
                    Array::new(&[output]),
                    Array::new(&[Text::new(c"out")]),
                    None,
                    Text::NULL,
                    Some(&mut self.status),
                );
                self.functions.extend(function);
            }
            2 if !self.functions.is_empty() => {
                let function = &**self.choices.pick(&self.functions);
                let gradient = self.choices.one_in(4).then_some(function);
                TF_GraphCopyFunction(graph, Some(function), gradient, Some(&mut self.status));
            }
            _ => {
                let mut found = [null_mut(); 3];
                let number = TF_GraphGetFunctions(graph, Room::new(&mut found), 3, Some(&mut self.status));
                for function in found
                    .iter()
                    .take(number.max(0) as usize)
                    .filter(|it| !it.is_null())
                {
                    // SAFETY: the call gave us functions.
                    self.functions.push(unsafe { Box::from_raw(*function) });
                }
            }
        }
    }

    /// Changes graphs that are there.
    fn change(&mut self) {
        let at = self.graph_at();
        let (output, other, name) = (self.output(at), self.output(at), self.name());
        let (operation, before) = (self.operation(at), self.operation(at));
        let dims = [self.choices.number(), self.choices.number()];
        let rank = self.count(2);
        let buffer = self.buffers.last().map(|buffer| &**buffer);
        let graph = self.graphs[at].graph.as_deref();
        let status = Some(&mut *self.status);
        match self.choices.below(8) {
            0 => TF_GraphSetTensorShape(graph, output, Array::new(&dims), rank, status),
            1 => TF_GraphImportGraphDef(graph, buffer, None, status),
            2 => {
                let mut dx = [TF_Output::NONE];
                TF_AddGradients(
                    graph,
                    Room::new(&mut [output]),
                    1,
                    Room::new(&mut [other]),
                    1,
                    no_room(),
                    status,
                    Room::new(&mut dx),
                );
            }
            3 => TF_AddOperationControlInput(graph, operation, before),
            4 => TF_RemoveAllControlInputs(graph, operation),
            5 => {
                let input = TF_Input {
                    oper: other.oper,
                    index: other.index,
                };
                TF_UpdateEdge(graph, output, input, status);
            }
            6 => TF_ClearAttr(graph, operation, name, status),
            _ => TF_SetRequestedDevice(graph, operation, name),
        }
        self.collect(at);
    }

    /// Learns of the operations of a graph that came otherwise than by building.
    fn collect(&mut self, at: usize) {
        if let Some(graph) = self.graphs[at].graph.as_deref() {
            self.graphs[at].operations = super::graph_use::operations(graph);
        }
    }

    fn delete(&mut self) {
        let at = self.graph_at();
        let which = self.choices.byte() as usize;
        match self.choices.below(8) {
            0 | 1 if !self.tensors.is_empty() => {
                let place = which % self.tensors.len();
                TF_DeleteTensor(Some(self.tensors.swap_remove(place)));
            }
            2 | 3 if !self.graphs[at].sessions.is_empty() => {
                let place = which % self.graphs[at].sessions.len();
                let session = self.graphs[at].sessions.swap_remove(place);
                TF_DeleteSession(Some(session), Some(&mut self.status));
                self.forget(at);
            }
            4 => {
                for node in std::mem::take(&mut self.graphs[at].descriptions) {
                    self.finish(node, at);
                }
                TF_DeleteGraph(self.graphs[at].graph.take());
                self.forget(at);
            }
            5 => self
                .buffers
                .drain(..)
                .for_each(|buffer| TF_DeleteBuffer(Some(buffer))),
            6 if !self.functions.is_empty() => TF_DeleteFunction(self.functions.pop()),
            _ => {
                let mut buffer = TF_NewBufferFromString(Blob::new(b"xyz"), 3);
                TF_GetBuffer(buffer.as_deref_mut());
                TF_DeleteBuffer(buffer);
            }
        }
    }

    /// Forgets the operations of a graph that is gone with all its sessions.
    fn forget(&mut self, at: usize) {
        let graph = &mut self.graphs[at];
        if graph.graph.is_none() && graph.sessions.is_empty() {
            graph.operations.clear();
        }
    }

    fn end(mut self) {
        for at in 0..self.graphs.len() {
            for node in std::mem::take(&mut self.graphs[at].descriptions) {
                self.finish(node, at);
            }
        }
        for graph in self.graphs {
            let sessions_first = graph.sessions.len() % 2 == 0;
            let mut left = graph.graph;
            if !sessions_first {
                TF_DeleteGraph(left.take());
            }
            for session in graph.sessions {
                TF_DeleteSession(Some(session), Some(&mut self.status));
            }
            TF_DeleteGraph(left);
        }
        self.tensors
            .into_iter()
            .for_each(|tensor| TF_DeleteTensor(Some(tensor)));
        self.buffers
            .into_iter()
            .for_each(|buffer| TF_DeleteBuffer(Some(buffer)));
        self.functions
            .into_iter()
            .for_each(|function| TF_DeleteFunction(Some(function)));
        TF_DeleteStatus(Some(self.status));
    }
}
