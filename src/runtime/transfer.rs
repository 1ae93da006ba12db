//! Values that go from one device to another: a `_Send` and a `_Recv` in the plan, joined by an edge.
//!
//! All devices of a session are in one process and share its memory, and one plan spans them. So a transfer passes the
//! tensor on, in order with everything else: the pair needs no rendezvous, no thread, and works in any frame of a loop.
//! The rendezvous serves the `Send` and `Recv` that clients put into graphs.

use crate::plan::{Input, Instruction, Source};
use ff_graph::{TransferEnds, transfer_attrs};
use ff_op::{Executable, Kernel, KernelHost, NodeInfo, Op, OpRecord};
use ff_proto::{OpDef, op_def::ArgDef};
use ff_tensor::Result;
use smallvec::SmallVec;
use std::sync::Arc;

static PASS: Op = Op {
    name: "_Send",
    shape: ff_op::shapes::unchanged,
    kernels: &[Kernel::native(|context| {
        context.forward(0, 0);
        Ok(())
    })],
    ..Op::PURE
};

/// The record of one end of a transfer: one input, one output, of any type.
fn record(name: &str) -> Arc<OpRecord> {
    let argument = |name: &str| ArgDef {
        name: name.to_string(),
        type_attr: "T".to_string(),
        ..ArgDef::default()
    };
    let def = OpDef {
        name: name.to_string(),
        input_arg: vec![argument("tensor")],
        output_arg: vec![argument("transferred")],
        ..OpDef::default()
    };
    Arc::new(OpRecord::from_static(Arc::new(def), &PASS))
}

/// The kernels of both ends of the transfer of input `index` of `reader` between two devices, named by full name.
/// `number` tells it from the others of the plan.
pub fn pair(
    reader: &NodeInfo,
    index: usize,
    devices: [&String; 2],
    number: usize,
    host: &dyn KernelHost,
) -> Result<[Executable; 2]> {
    let dtype = reader.input_types[index].base();
    let ends = TransferEnds {
        source: &reader.name,
        reader: &reader.name,
        from: devices[0],
        to: devices[1],
        edge: number,
    };
    let make = |op: &str, half: usize| {
        let attrs = transfer_attrs(&ends).with("T", dtype);
        let name = format!("{}/_{}", reader.name, 2 * number + half);
        let node = NodeInfo::new(name, record(op), devices[half].clone(), attrs)?;
        Executable::new(Arc::new(node), "CPU", &[None], host)
    };
    Ok([make("_Send", 0)?, make("_Recv", 1)?])
}

/// One end as an instruction.
pub fn instruction(executable: Executable, from: u32, to: u32, device: u16, class: u32) -> Instruction {
    let input = Input {
        source: Source::Slot {
            slot: from,
            last: false,
        },
        is_ref: false,
    };
    Instruction {
        executable: Arc::new(executable),
        inputs: SmallVec::from_elem(input, 1),
        first_output: to,
        output_uses: SmallVec::from_elem(0, 1),
        control_inputs: 0,
        control_outputs: Vec::new(),
        class,
        device: Some(device),
        is_merge: false,
    }
}
