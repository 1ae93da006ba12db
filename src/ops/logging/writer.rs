//! Writers of event files: resources that ops on summaries, events and graphs write to.
//!
//! A handle names a writer; `CreateSummaryFileWriter` makes it where there is none. Events are kept, and go to the file when
//! there are more than `max_queue`, or `flush_millis` after the last time, or when asked for. Databases are not here.

use super::summary::{histogram_of, message, text};
use super::{picture, sound};
use crate::data_flow::handle::{Place, give};
use crate::wide::single;
use ff_checkpoint::EventsWriter;
use ff_op::{Gradient, Kernel, KernelContext, Op, shapes};
use ff_platform::{files, time};
use ff_proto::event::What;
use ff_proto::summary::Value;
use ff_proto::summary::value::Value as Content;
use ff_proto::{Event, GraphDef, Message, Summary, SummaryMetadata};
use ff_tensor::{DataType, Result, TString, Tensor, ensure, status};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const WRITE: Op = Op {
    shape: shapes::none,
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SummaryWriter",
        shape: shapes::scalar,
        kernels: &[Kernel::native(|context| {
            let place = Place::of(context)?;
            let type_name = "tensorflow::SummaryWriterInterface";
            give(context, &place.container, &place.name, type_name, None)
        })],
        ..WRITE
    },
    &Op {
        name: "CreateSummaryFileWriter",
        kernels: &[Kernel::native(create)],
        ..WRITE
    },
    &Op {
        name: "FlushSummaryWriter",
        kernels: &[Kernel::native(|context| {
            context.resource::<Writer>(0)?.0.lock().flush()
        })],
        ..WRITE
    },
    &Op {
        name: "CloseSummaryWriter",
        kernels: &[Kernel::native(|context| {
            context.resource::<Writer>(0)?;
            let handle = context.handle(0)?.clone();
            let resources = context.host().resources_of(&handle);
            resources.delete(&handle.container, &handle.name)
        })],
        ..WRITE
    },
    &Op {
        name: "WriteSummary",
        kernels: &[Kernel::native(|context| {
            let value = tensor(context)?;
            write_values(context, vec![value])
        })],
        ..WRITE
    },
    &Op {
        name: "WriteScalarSummary",
        kernels: &[Kernel::native(|context| {
            let (tag, number) = (string(context, 2)?, context.input(3)?);
            ensure!(
                number.dtype() != DataType::BFLOAT16,
                Unimplemented,
                "SummaryFileWriter bfloat16 not supported."
            );
            let value = Value {
                tag: text(tag),
                value: Some(Content::SimpleValue(single(number)? as f32)),
                ..Value::default()
            };
            write_values(context, vec![value])
        })],
        ..WRITE
    },
    &Op {
        name: "WriteHistogramSummary",
        kernels: &[Kernel::native(|context| {
            let tag = text(string(context, 2)?);
            let value = histogram_of(tag.clone(), context.input(3)?, &tag)?;
            write_values(context, vec![value])
        })],
        ..WRITE
    },
    &Op {
        name: "WriteImageSummary",
        kernels: &[Kernel::native(|context| {
            let (tag, most) = (text(string(context, 2)?), context.attrs().int("max_images")?);
            let values = picture::values_of(&tag, context.input(3)?, most, context.input(4)?)?;
            write_values(context, values)
        })],
        ..WRITE
    },
    &Op {
        name: "WriteAudioSummary",
        kernels: &[Kernel::native(|context| {
            let (tag, most) = (text(string(context, 2)?), context.attrs().int("max_outputs")?);
            let rate = single(context.input(4)?)? as f32;
            let values = sound::values_of(&tag, context.input(3)?, most, rate)?;
            write_values(context, values)
        })],
        ..WRITE
    },
    &Op {
        name: "WriteRawProtoSummary",
        kernels: &[Kernel::native(|context| {
            let strings = context.input(2)?.strings()?;
            let mut values = Vec::new();
            for (index, string) in strings.iter().enumerate() {
                let summary: Summary = decoded(string, || {
                    format!("Bad tf.compat.v1.Summary binary proto tensor string at index {index}")
                })?;
                values.extend(summary.value);
            }
            let what = (!strings.is_empty()).then_some(What::Summary(Summary { value: values }));
            write(context, what)
        })],
        ..WRITE
    },
    &Op {
        name: "WriteGraphSummary",
        kernels: &[Kernel::native(|context| {
            let bytes = string(context, 2)?;
            let graph: GraphDef =
                decoded(bytes, || "Bad tf.GraphDef binary proto tensor string".to_string())?;
            write(context, Some(What::GraphDef(graph.encode_to_vec().into())))
        })],
        ..WRITE
    },
    &Op {
        name: "ImportEvent",
        kernels: &[Kernel::native(|context| {
            let bytes = string(context, 1)?;
            let event: Event = decoded(bytes, || "Bad tf.Event binary proto tensor string".to_string())?;
            context.resource::<Writer>(0)?.0.lock().add(&event)
        })],
        ..WRITE
    },
];

/// A writer that ops share. What it keeps is written when the last of them lets go of it.
struct Writer(Mutex<Pending>);

struct Pending {
    file: EventsWriter,
    /// Encoded events.
    events: Vec<Vec<u8>>,
    most: usize,
    /// How long events are kept, and when the last were written, in microseconds.
    patience: i64,
    written: i64,
}

impl Pending {
    fn add(&mut self, event: &Event) -> Result<()> {
        self.events.push(event.encode_to_vec());
        let waited = time::now_microseconds().saturating_sub(self.written);
        if self.events.len() > self.most || waited > self.patience {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        for event in std::mem::take(&mut self.events) {
            self.file.write_encoded(&event)?;
        }
        self.written = time::now_microseconds();
        self.file.flush()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Err(error) = self.flush() {
            ff_platform::warning!("{} is not complete: {error}", self.file.path());
        }
    }
}

/// The one string of an input. INVALID_ARGUMENT unless there is exactly one.
fn string<'a>(context: &'a KernelContext, index: usize) -> Result<&'a TString> {
    match context.input(index)?.strings()? {
        [one] => Ok(one),
        _ => Err(status!(
            InvalidArgument,
            "input {index} of {} must be a scalar",
            context.node().describe()
        )),
    }
}

/// The one number of an input. INVALID_ARGUMENT unless there is exactly one.
fn number(context: &KernelContext, index: usize) -> Result<i64> {
    match context.input_i64s(index)?[..] {
        [one] => Ok(one),
        _ => Err(status!(
            InvalidArgument,
            "input {index} of {} must be a scalar",
            context.node().describe()
        )),
    }
}

/// A message from its bytes. DATA_LOSS where they are none.
fn decoded<M: Message + Default>(bytes: &TString, words: impl FnOnce() -> String) -> Result<M> {
    M::decode(bytes.as_bytes()).map_err(|_| status!(DataLoss, "{}", words()))
}

fn create(context: &mut KernelContext) -> Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    for (index, name) in [
        (1, "logdir"),
        (2, "max_queue"),
        (3, "flush_millis"),
        (4, "filename_suffix"),
    ] {
        ensure!(
            context.input(index)?.rank() == 0,
            InvalidArgument,
            "{name} must be a scalar"
        );
    }
    let folder = text(string(context, 1)?);
    let (most, patience) = (number(context, 2)?, number(context, 3)?);
    let suffix = text(string(context, 4)?);
    let handle = context.handle(0)?.clone();
    let resources = context.host().resources_of(&handle);
    let make = || {
        if !files::is_directory(&folder) {
            files::create_directories(&folder)?;
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let suffix = format!(".{}.{count}{suffix}", std::process::id());
        let prefix = format!("{}/events", folder.trim_end_matches('/'));
        Ok(Writer(Mutex::new(Pending {
            file: EventsWriter::create(&prefix, &suffix)?,
            events: Vec::new(),
            most: most.max(0) as usize,
            patience: patience.saturating_mul(1000),
            written: time::now_microseconds(),
        })))
    };
    resources
        .find_or_create(&handle.container, &handle.name, make)
        .map(drop)
}

/// Writes an event of the step at input 1.
fn write(context: &mut KernelContext, what: Option<What>) -> Result<()> {
    let event = Event {
        wall_time: time::now_microseconds() as f64 / 1e6,
        step: number(context, 1)?,
        what,
        ..Event::default()
    };
    context.resource::<Writer>(0)?.0.lock().add(&event)
}

fn write_values(context: &mut KernelContext, value: Vec<Value>) -> Result<()> {
    write(context, Some(What::Summary(Summary { value })))
}

/// The value that the inputs of `WriteSummary` describe. Metadata that cannot be read is left out.
fn tensor(context: &KernelContext) -> Result<Value> {
    let (value, tag, metadata): (&Tensor, _, _) =
        (context.input(2)?, string(context, 3)?, string(context, 4)?);
    let metadata = match metadata.as_bytes() {
        [] => None,
        bytes => Some(SummaryMetadata::decode(bytes).unwrap_or_default()),
    };
    Ok(Value {
        tag: text(tag),
        metadata,
        value: Some(Content::Tensor(message(value))),
        ..Value::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OpRunner, code, scalar, strings, t, vector};
    use ff_checkpoint::{Compression, RecordReader};
    use ff_op::Attrs;
    use ff_tensor::Code;

    const NONE: fn() -> Attrs = Attrs::new;

    struct Subject {
        runner: OpRunner,
        handle: Tensor,
        folder: String,
    }

    impl Subject {
        fn new(folder: &str) -> Subject {
            let runner = OpRunner::new();
            let attrs = Attrs::new().with("shared_name", "w");
            let handle = runner.run("SummaryWriter", &[], attrs).unwrap().remove(0);
            Subject {
                runner,
                handle,
                folder: format!("ram://summaries/{folder}"),
            }
        }

        fn run(&self, op: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
            let inputs = [std::slice::from_ref(&self.handle), inputs].concat();
            self.runner.run(op, &inputs, NONE())
        }

        fn create(&self, most: i32) {
            let inputs = [
                strings(&[], &[&self.folder]),
                scalar(most),
                scalar(1_000_000),
                strings(&[], &[".x"]),
            ];
            self.run("CreateSummaryFileWriter", &inputs).unwrap();
        }

        /// What the one file of the folder has after its first event.
        fn events(&self) -> Vec<Event> {
            let names = files::list(&self.folder).unwrap();
            assert!(names.len() == 1 && names[0].ends_with(".x"), "{names:?}");
            let path = format!("{}/{}", self.folder, names[0]);
            let mut records = RecordReader::open(&path, Compression::None).unwrap();
            let mut events = Vec::new();
            while let Some(bytes) = records.read().unwrap() {
                events.push(Event::decode(&bytes[..]).unwrap());
            }
            assert_eq!(
                events[0].what,
                Some(What::FileVersion("brain.Event:2".to_string()))
            );
            events.split_off(1)
        }
    }

    fn step(number: i64) -> Tensor {
        scalar(number)
    }

    fn tag() -> Tensor {
        strings(&[], &["t"])
    }

    #[test]
    fn numbers_are_written_when_there_are_many() {
        let subject = Subject::new("many");
        subject.create(1);
        subject.create(7);
        subject
            .run("WriteScalarSummary", &[step(5), tag(), scalar(1.5f32)])
            .unwrap();
        assert!(subject.events().is_empty());
        subject
            .run("WriteScalarSummary", &[step(6), tag(), vector(&[3i64])])
            .unwrap();
        let events = subject.events();
        assert_eq!((events[0].step, events[1].step, events.len()), (5, 6, 2));
        let Some(What::Summary(summary)) = &events[1].what else {
            panic!("{events:?}");
        };
        assert_eq!(summary.value[0].tag, "t");
        assert_eq!(summary.value[0].value, Some(Content::SimpleValue(3.0)));
        assert!(events[0].wall_time > 1e9);
    }

    #[test]
    fn every_kind_is_one_event() {
        let subject = Subject::new("kinds");
        subject.create(100);
        let bytes = Summary {
            value: vec![Value::default(); 2],
        }
        .encode_to_vec();
        let bytes =
            Tensor::from_strings(ff_tensor::Shape::vector(1), vec![TString::from(&bytes[..])]).unwrap();
        let image = t(&[1, 1, 1, 1], &[2.0f32]);
        subject
            .run(
                "WriteSummary",
                &[step(1), vector(&[1i32]), tag(), strings(&[], &[""])],
            )
            .unwrap();
        subject
            .run("WriteHistogramSummary", &[step(2), tag(), vector(&[1.0f32])])
            .unwrap();
        subject
            .run(
                "WriteImageSummary",
                &[step(3), tag(), image.clone(), vector(&[1u8])],
            )
            .unwrap();
        subject
            .run(
                "WriteAudioSummary",
                &[step(4), tag(), t(&[1, 2], &[0.0f32; 2]), scalar(8e3f32)],
            )
            .unwrap();
        subject.run("WriteRawProtoSummary", &[step(5), bytes]).unwrap();
        subject
            .run("WriteRawProtoSummary", &[step(6), strings(&[0], &[])])
            .unwrap();
        subject
            .run("WriteGraphSummary", &[step(7), strings(&[], &["\n\x03\n\x01a"])])
            .unwrap();
        subject
            .run("ImportEvent", &[strings(&[], &["\x10\x08"])])
            .unwrap();
        subject.run("CloseSummaryWriter", &[]).unwrap();
        let events = subject.events();
        let steps: Vec<i64> = events.iter().map(|event| event.step).collect();
        assert_eq!(steps, [1, 2, 3, 4, 5, 6, 7, 8]);
        let counts: Vec<usize> = events
            .iter()
            .map(|event| match &event.what {
                Some(What::Summary(summary)) => summary.value.len(),
                _ => 0,
            })
            .collect();
        assert_eq!(counts, [1, 1, 1, 1, 2, 0, 0, 0]);
        assert_eq!(
            events[6].what,
            Some(What::GraphDef(b"\n\x03\n\x01a".to_vec().into()))
        );
        assert_eq!((&events[5].what, &events[7].what), (&None, &None));
    }

    #[test]
    fn errors() {
        let subject = Subject::new("errors");
        let number = [step(1), tag(), scalar(1.0f32)];
        assert_eq!(
            code(subject.run("WriteScalarSummary", &number)),
            Some(Code::NotFound)
        );
        assert_eq!(code(subject.run("FlushSummaryWriter", &[])), Some(Code::NotFound));
        assert_eq!(code(subject.run("CloseSummaryWriter", &[])), Some(Code::NotFound));
        subject.create(10);
        let refused = |op: &str, inputs: &[Tensor]| code(subject.run(op, inputs));
        let nonsense = || strings(&[], &["\x7fzz"]);
        let half = crate::testing::numbers(DataType::BFLOAT16, &[], &[1.0]);
        let invalid = Some(Code::InvalidArgument);
        assert_eq!(refused("ImportEvent", &[nonsense()]), Some(Code::DataLoss));
        assert_eq!(
            refused("WriteGraphSummary", &[step(1), nonsense()]),
            Some(Code::DataLoss)
        );
        assert_eq!(
            refused("WriteRawProtoSummary", &[step(1), nonsense()]),
            Some(Code::DataLoss)
        );
        assert_eq!(
            refused("WriteScalarSummary", &[step(1), tag(), half]),
            Some(Code::Unimplemented)
        );
        assert_eq!(
            refused("WriteScalarSummary", &[step(1), tag(), vector::<f32>(&[])]),
            invalid
        );
        assert_eq!(
            refused("WriteScalarSummary", &[vector(&[1i64, 2]), tag(), scalar(1.0f32)]),
            invalid
        );
        assert_eq!(
            refused("WriteHistogramSummary", &[step(1), tag(), scalar(f32::NAN)]),
            invalid
        );
        assert_eq!(
            refused(
                "WriteImageSummary",
                &[step(1), tag(), scalar(1.0f32), vector(&[1u8])]
            ),
            invalid
        );
        assert_eq!(
            refused(
                "WriteAudioSummary",
                &[step(1), tag(), t(&[1, 2], &[0.0f32; 2]), scalar(0.0f32)]
            ),
            invalid
        );
        subject.run("CloseSummaryWriter", &[]).unwrap();
        assert_eq!(refused("FlushSummaryWriter", &[]), Some(Code::NotFound));
    }
}
