//! Ops on readers, in both versions.

use super::handle;
use super::queue::{Queue, Wanted};
use super::reader::{Format, Reader, Record};
use ff_checkpoint::Compression;
use ff_op::{AsyncKernelContext, Gradient, Kernel, KernelContext, Op, Value, shapes};
use ff_tensor::{DataType, PartialShape, Result, Shape, TString, Tensor, ensure, status};
use std::sync::Arc;

const MAKE: Op = Op {
    shape: |context| {
        let is_name = context.node().output_types[0].is_ref();
        context.set_output(
            0,
            if is_name {
                PartialShape::new(&[2])
            } else {
                PartialShape::scalar()
            },
        );
        Ok(())
    },
    kernels: &[Kernel::native(make)],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};
const READ: Op = Op {
    shape: shapes::scalar,
    kernels: &[Kernel::asynchronous(read)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
const READ_UP_TO: Op = Op {
    shape: |context| {
        context.set_output(0, PartialShape::of_rank(1));
        context.set_output(1, PartialShape::of_rank(1));
        Ok(())
    },
    kernels: &[Kernel::asynchronous(read_up_to)],
    ..READ
};
const PRODUCED: Op = Op {
    kernels: &[Kernel::native(|context| {
        let count = handle::at::<Reader>(context, 0)?.produced();
        context.set_output(0, Tensor::scalar(count)?)
    })],
    ..READ
};
const COMPLETED: Op = Op {
    kernels: &[Kernel::native(|context| {
        let count = handle::at::<Reader>(context, 0)?.finished();
        context.set_output(0, Tensor::scalar(count)?)
    })],
    ..READ
};
const RESET: Op = Op {
    shape: shapes::none,
    kernels: &[Kernel::native(|context| {
        handle::at::<Reader>(context, 0)?.reset();
        Ok(())
    })],
    ..READ
};
const SERIALIZE: Op = Op {
    kernels: &[Kernel::native(serialize)],
    ..READ
};
const RESTORE: Op = Op {
    shape: shapes::none,
    kernels: &[Kernel::native(restore)],
    ..READ
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "IdentityReader",
        ..MAKE
    },
    &Op {
        name: "IdentityReaderV2",
        ..MAKE
    },
    &Op {
        name: "WholeFileReader",
        ..MAKE
    },
    &Op {
        name: "WholeFileReaderV2",
        ..MAKE
    },
    &Op {
        name: "TextLineReader",
        ..MAKE
    },
    &Op {
        name: "TextLineReaderV2",
        ..MAKE
    },
    &Op {
        name: "FixedLengthRecordReader",
        ..MAKE
    },
    &Op {
        name: "FixedLengthRecordReaderV2",
        ..MAKE
    },
    &Op {
        name: "TFRecordReader",
        ..MAKE
    },
    &Op {
        name: "TFRecordReaderV2",
        ..MAKE
    },
    &Op {
        name: "ReaderRead",
        ..READ
    },
    &Op {
        name: "ReaderReadV2",
        ..READ
    },
    &Op {
        name: "ReaderReadUpTo",
        ..READ_UP_TO
    },
    &Op {
        name: "ReaderReadUpToV2",
        ..READ_UP_TO
    },
    &Op {
        name: "ReaderNumRecordsProduced",
        ..PRODUCED
    },
    &Op {
        name: "ReaderNumRecordsProducedV2",
        ..PRODUCED
    },
    &Op {
        name: "ReaderNumWorkUnitsCompleted",
        ..COMPLETED
    },
    &Op {
        name: "ReaderNumWorkUnitsCompletedV2",
        ..COMPLETED
    },
    &Op {
        name: "ReaderReset",
        ..RESET
    },
    &Op {
        name: "ReaderResetV2",
        ..RESET
    },
    &Op {
        name: "ReaderSerializeState",
        ..SERIALIZE
    },
    &Op {
        name: "ReaderSerializeStateV2",
        ..SERIALIZE
    },
    &Op {
        name: "ReaderRestoreState",
        ..RESTORE
    },
    &Op {
        name: "ReaderRestoreStateV2",
        ..RESTORE
    },
];

/// What a node says of its reader's files.
fn format(context: &KernelContext) -> Result<Format> {
    let attrs = context.attrs();
    let length = |name: &str| {
        let value = attrs.int(name)?;
        usize::try_from(value).map_err(|_| status!(InvalidArgument, "{name} must be >= 0 but got {value}"))
    };
    let op = context.node().op_name();
    Ok(match op.trim_end_matches("V2") {
        "IdentityReader" => Format::Identity,
        "WholeFileReader" => Format::WholeFile,
        "TextLineReader" => Format::Lines {
            skip: length("skip_header_lines")?,
        },
        "TFRecordReader" => Format::Records(Compression::from_name(attrs.string("compression_type")?)?),
        _ => {
            let record = length("record_bytes")?;
            ensure!(
                record > 0,
                InvalidArgument,
                "record_bytes must be > 0 but got {record}"
            );
            let encoding = attrs.string("encoding").unwrap_or("");
            ensure!(
                encoding.is_empty(),
                Unimplemented,
                "{op} reads no files of encoding '{encoding}'"
            );
            Format::FixedLength {
                header: length("header_bytes")?,
                record,
                footer: length("footer_bytes")?,
                hop: length("hop_bytes")?,
            }
        }
    })
}

fn make(context: &mut KernelContext) -> Result<()> {
    let format = format(context)?;
    handle::find_or_create(context, "tensorflow::ReaderInterface", |_, _| {
        Ok(Reader::new(format))
    })
    .map(drop)
}

/// A read under way.
struct Reading {
    reader: Arc<Reader>,
    queue: Arc<Queue>,
    limit: usize,
    /// Whether the outputs are vectors.
    many: bool,
}

fn prepare(context: &AsyncKernelContext, limit: usize, many: bool) -> Result<Reading> {
    let queue = handle::at_waiting::<Queue>(context, 1)?;
    ensure!(
        queue.types == [DataType::STRING],
        InvalidArgument,
        "Expected Queue to contain elements of one string each"
    );
    Ok(Reading {
        reader: handle::at_waiting(context, 0)?,
        queue,
        limit,
        many,
    })
}

fn read(context: AsyncKernelContext) {
    handle::or_fail(context, |context| prepare(context, 1, false), go_on);
}

fn read_up_to(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| {
        let count = context.input(2)?.single::<i64>()?;
        ensure!(
            count > 0,
            InvalidArgument,
            "num_records must be positive, was {count}"
        );
        prepare(context, count as usize, true)
    };
    handle::or_fail(context, prepare, go_on);
}

/// Reads from file after file until there is a record. While names are there, this is a loop; only for a name that is
/// still to come the rest waits.
fn go_on(context: AsyncKernelContext, reading: Reading) {
    loop {
        match reading.reader.read(reading.limit) {
            Err(error) => return context.finish(Err(error)),
            Ok(records) if records.is_empty() => {}
            Ok(records) => return context.finish(outputs(records, reading.many)),
        }
        let Some(tuple) = reading.queue.take_now() else {
            break;
        };
        if let Err(error) = reading.reader.start(&tuple) {
            return context.finish(Err(error));
        }
    }
    let cancellation = context.host.cancellation().clone();
    let queue = reading.queue.clone();
    let done = move |result: Result<Vec<Value>>| {
        let tuple = result.map(|values| {
            let tensor = |value| match value {
                Value::Tensor(tensor) => Some(tensor),
                _ => None,
            };
            values.into_iter().filter_map(tensor).collect::<Vec<_>>()
        });
        match tuple.and_then(|tuple| reading.reader.start(&tuple)) {
            Ok(()) => go_on(context, reading),
            Err(error) => context.finish(Err(error)),
        }
    };
    let wanted = Wanted {
        count: 1,
        together: false,
        or_fewer: false,
    };
    queue.take(wanted, &cancellation, Box::new(done));
}

fn outputs(records: Vec<Record>, many: bool) -> Result<Vec<Value>> {
    let shape = || {
        if many {
            Shape::vector(records.len())
        } else {
            Shape::scalar()
        }
    };
    let shapes = (shape(), shape());
    let (keys, values): (Vec<TString>, Vec<TString>) = records.into_iter().unzip();
    Ok(vec![
        Value::Tensor(Tensor::from_strings(shapes.0, keys)?),
        Value::Tensor(Tensor::from_strings(shapes.1, values)?),
    ])
}

/// The position as a `ReaderBaseState` message: fields 1 to 3 are varints.
fn serialize(context: &mut KernelContext) -> Result<()> {
    let (started, finished, produced) = handle::at::<Reader>(context, 0)?.position()?;
    let mut bytes = Vec::new();
    for (field, value) in [(1u8, started), (2, finished), (3, produced)] {
        if value != 0 {
            bytes.push(field << 3);
            let mut rest = value as u64;
            while rest >= 0x80 {
                bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
        }
    }
    let state = Tensor::from_strings(Shape::scalar(), vec![TString::from(&bytes[..])])?;
    context.set_output(0, state)
}

fn restore(context: &mut KernelContext) -> Result<()> {
    let reader = handle::at::<Reader>(context, 0)?;
    let state = context.input(1)?;
    let [state] = state.strings()? else {
        return Err(status!(
            InvalidArgument,
            "Reader state must be scalar, but had shape: {}",
            state.shape()
        ));
    };
    let fields = parse(state.as_bytes())
        .ok_or_else(|| status!(InvalidArgument, "Could not parse state for a reader"))?;
    reader.set_position(fields)
}

/// The three varint fields, other fields passed over; none for bytes that are no message.
fn parse(bytes: &[u8]) -> Option<(i64, i64, i64)> {
    let mut fields = [0i64; 3];
    let mut rest = bytes.iter();
    while let Some(&tag) = rest.next() {
        let value = varint(&mut rest)?;
        match (tag & 7, usize::from(tag >> 3)) {
            (0, number @ 1..=3) => fields[number - 1] = value as i64,
            (0, _) => {}
            (2, _) => {
                let length = usize::try_from(value)
                    .ok()
                    .filter(|&length| length <= rest.len())?;
                rest = rest.as_slice()[length..].iter();
            }
            _ => return None,
        }
    }
    Some((fields[0], fields[1], fields[2]))
}

fn varint(bytes: &mut std::slice::Iter<u8>) -> Option<u64> {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let byte = *bytes.next()?;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte < 0x80 {
            return Some(value);
        }
    }
}
