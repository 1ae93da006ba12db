//! Batches made of the inputs of several steps: `Batch` joins what comes within a time, one of the steps goes on with all of
//! it, `Unbatch` gives each step its part, and `UnbatchGrad` joins the gradients of the parts.

use super::stage::finish;
use super::timer::after;
use crate::movement::Writer;
use ff_op::{AsyncKernelContext, Attrs, Gradient, Kernel, Monitor, Op, Outcome, ShapeContext, Value};
use ff_tensor::{PartialShape, Result, Shape, Tensor, dim, ensure, status};
use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const BATCHING: Op = Op {
    gradient: Gradient::Missing,
    ..Op::STATEFUL
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Batch",
        shape: batch_shape,
        kernels: &[Kernel::asynchronous(batch)],
        ..BATCHING
    },
    &Op {
        name: "Unbatch",
        shape: |context| {
            let shape = any_rows(&context.input(0))?;
            context.set_output(0, shape);
            Ok(())
        },
        kernels: &[Kernel::asynchronous(unbatch)],
        ..BATCHING
    },
    &Op {
        name: "UnbatchGrad",
        shape: |context| {
            if let Some(rank) = context.input(2).rank() {
                context.set_output(0, PartialShape::of_rank(rank));
            }
            Ok(())
        },
        kernels: &[Kernel::asynchronous(unbatch_gradient)],
        ..BATCHING
    },
];

/// The shape with any number of rows.
fn any_rows(shape: &PartialShape) -> Result<PartialShape> {
    match shape.rank() {
        Some(_) => shape.with_dim(0, dim::UNKNOWN),
        None => Ok(PartialShape::unknown()),
    }
}

fn batch_shape(context: &mut ShapeContext) -> Result<()> {
    let count = context.num_inputs();
    for index in 0..count {
        let shape = any_rows(&context.input(index))?;
        context.set_output(index, shape);
    }
    context.set_output(count, PartialShape::new(&[dim::UNKNOWN, 3]));
    context.set_output(count + 1, PartialShape::scalar());
    Ok(())
}

/// The node's resource, made on first use.
fn resource<T: Any + Send + Sync>(context: &AsyncKernelContext, make: impl FnOnce() -> T) -> Result<Arc<T>> {
    let attrs = &context.node.attrs;
    let container = attrs.string("container")?;
    let name = match attrs.string("shared_name")? {
        "" => context.node.name.as_str(),
        name => name,
    };
    context
        .host
        .resources()
        .find_or_create(container, name, || Ok(make()))
}

/// Rows of tensors of one type, one after the other.
fn joined(parts: &[&Tensor]) -> Result<Tensor> {
    let Some(first) = parts.first() else {
        return Tensor::zeros(ff_tensor::DataType::FLOAT, Shape::vector(0));
    };
    let rest = first.dims().get(1..).unwrap_or(&[]);
    let fits = |part: &&Tensor| part.rank() > 0 && &part.dims()[1..] == rest && part.dtype() == first.dtype();
    ensure!(
        parts.iter().all(fits),
        InvalidArgument,
        "Dimensions of inputs should match: {} and {}",
        first.shape(),
        parts[parts.len() - 1].shape()
    );
    let rows: i64 = parts.iter().map(|part| part.dims()[0]).sum();
    let mut writer = Writer::new(first.dtype(), Shape::new(&[&[rows], rest].concat())?)?;
    let mut at = 0;
    for part in parts {
        writer.copy(at, part, 0, part.num_elements())?;
        at += part.num_elements();
    }
    writer.finish()
}

fn empty_like(tensor: &Tensor) -> Result<Tensor> {
    let mut dims = tensor.dims().to_vec();
    dims[0] = 0;
    Tensor::zeros(tensor.dtype(), Shape::new(&dims)?)
}

/// One step's part of a batch.
struct Task {
    id: i64,
    tensors: Vec<Tensor>,
    rows: i64,
}

/// A batch that is still open.
#[derive(Default)]
struct Open {
    number: u64,
    tasks: Vec<Task>,
    rows: i64,
}

/// Open batches by queue, and outputs of steps whose batches were closed.
#[derive(Default)]
struct Batches {
    made: u64,
    open: HashMap<String, Open>,
    outputs: HashMap<i64, Result<Vec<Value>>>,
}

struct Batcher(Arc<Monitor<Batches>>);

/// The least allowed size that is not smaller; the size itself where none is listed.
fn padded(rows: i64, allowed: &[i64]) -> i64 {
    allowed.iter().copied().find(|&size| size >= rows).unwrap_or(rows)
}

/// What the last step of a batch gets: all rows, filled up with copies of the first, and whose each part is.
fn whole(tasks: &[Task], allowed: &[i64]) -> Result<Vec<Value>> {
    let rows: i64 = tasks.iter().map(|task| task.rows).sum();
    let missing = padded(rows, allowed) - rows;
    let last = &tasks[tasks.len() - 1];
    let mut outputs = Vec::new();
    for index in 0..last.tensors.len() {
        let mut parts: Vec<&Tensor> = tasks.iter().map(|task| &task.tensors[index]).collect();
        let filling = match missing {
            0 => None,
            _ => Some(tasks[0].tensors[index].rows(0, 1)?),
        };
        if let Some(row) = &filling {
            parts.extend((0..missing).map(|_| row));
        }
        outputs.push(Value::Tensor(joined(&parts)?));
    }
    let (mut index, mut at) = (Vec::new(), 0);
    for task in tasks {
        index.extend([task.id, at, at + task.rows]);
        at += task.rows;
    }
    let index = Tensor::from_slice(Shape::new(&[tasks.len() as i64, 3])?, &index)?;
    outputs.extend([Value::Tensor(index), Value::Tensor(Tensor::scalar(last.id)?)]);
    Ok(outputs)
}

/// What the other steps get: nothing, and their own number.
fn nothing(task: &Task) -> Result<Vec<Value>> {
    let mut outputs = Vec::new();
    for tensor in &task.tensors {
        outputs.push(Value::Tensor(empty_like(tensor)?));
    }
    let index = Tensor::zeros(ff_tensor::DataType::INT64, Shape::new(&[0, 3])?)?;
    outputs.extend([Value::Tensor(index), Value::Tensor(Tensor::scalar(task.id)?)]);
    Ok(outputs)
}

impl Batches {
    fn close(&mut self, queue: &str, allowed: &[i64]) {
        let Some(Open { tasks, .. }) = self.open.remove(queue) else {
            return;
        };
        let Some((last, others)) = tasks.split_last() else {
            return;
        };
        let all = whole(&tasks, allowed);
        let failure = all.as_ref().err().cloned();
        for task in others {
            let output = failure.clone().map_or_else(|| nothing(task), Err);
            self.outputs.insert(task.id, output);
        }
        self.outputs.insert(last.id, all);
    }

    /// Adds a part to the queue's batch, after closing it if there is no room. The number of a batch that was opened.
    fn add(&mut self, queue: &str, task: Task, most: i64, allowed: &[i64]) -> Option<u64> {
        if self
            .open
            .get(queue)
            .is_some_and(|open| open.rows + task.rows > most)
        {
            self.close(queue, allowed);
        }
        let opened = !self.open.contains_key(queue);
        self.made += u64::from(opened);
        let number = self.made;
        let open = self.open.entry(queue.to_string()).or_insert_with(|| Open {
            number,
            ..Open::default()
        });
        open.rows += task.rows;
        open.tasks.push(task);
        if open.rows >= most {
            self.close(queue, allowed);
            return None;
        }
        opened.then_some(number)
    }
}

struct Limits {
    most: i64,
    allowed: Vec<i64>,
    patience: Duration,
    queue: String,
}

fn micros(attrs: &Attrs, name: &str) -> Result<Duration> {
    Ok(Duration::from_micros(attrs.int(name)?.max(0) as u64))
}

fn limits(attrs: &Attrs) -> Result<Limits> {
    let (most, allowed) = (
        attrs.int("max_batch_size")?,
        attrs.ints("allowed_batch_sizes")?.to_vec(),
    );
    ensure!(
        allowed.windows(2).all(|pair| pair[0] < pair[1]),
        InvalidArgument,
        "allowed_batch_sizes entries must be monotonically increasing"
    );
    ensure!(
        allowed.last().is_none_or(|&last| last == most),
        InvalidArgument,
        "final entry in allowed_batch_sizes must equal max_batch_size"
    );
    Ok(Limits {
        most,
        allowed,
        patience: micros(attrs, "batch_timeout_micros")?,
        queue: attrs.string("batching_queue")?.to_string(),
    })
}

fn task(context: &AsyncKernelContext, limits: &Limits) -> Result<Task> {
    static NEXT: AtomicI64 = AtomicI64::new(1);
    let tensors = context.tensors_from(0)?;
    let rows = tensors.first().and_then(|tensor| tensor.dims().first()).copied();
    let rows = rows.ok_or_else(|| {
        status!(
            InvalidArgument,
            "Batching input tensors must have at least one dimension"
        )
    })?;
    ensure!(
        tensors.iter().all(|tensor| tensor.dims().first() == Some(&rows)),
        InvalidArgument,
        "Batching input tensors supplied in a given op invocation must have equal 0th-dimension size"
    );
    ensure!(
        rows <= limits.most,
        InvalidArgument,
        "Task size {rows} is larger than maximum batch size {}",
        limits.most
    );
    Ok(Task {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        tensors,
        rows,
    })
}

fn batch(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| -> Result<_> {
        let limits = limits(&context.node.attrs)?;
        let task = task(context, &limits)?;
        let batcher = resource(context, || Batcher(Monitor::new(Batches::default(), 1, false)))?;
        Ok((limits, task, batcher))
    };
    super::handle::or_fail(context, prepare, |context, (limits, task, batcher)| {
        let (id, monitor) = (task.id, batcher.0.clone());
        let opened = monitor.change(|batches| batches.add(&limits.queue, task, limits.most, &limits.allowed));
        if let Some(number) = opened {
            let monitor = Arc::downgrade(&monitor);
            after(limits.patience, move || {
                let Some(monitor) = monitor.upgrade() else { return };
                monitor.change(|batches| {
                    let open = batches.open.get(&limits.queue);
                    if open.is_some_and(|open| open.number == number) {
                        batches.close(&limits.queue, &limits.allowed);
                    }
                });
            });
        }
        let cancellation = context.host.cancellation().clone();
        let attempt = move |batches: &mut Batches| match batches.outputs.remove(&id) {
            Some(outputs) => Outcome::Done(outputs),
            None => Outcome::Waits,
        };
        monitor.submit(0, &cancellation, attempt, finish(context));
    });
}

/// Parts that wait for their steps, and steps whose time is over.
#[derive(Default)]
struct Parts {
    waiting: HashMap<i64, Tensor>,
    late: HashMap<i64, ()>,
}

struct Splitter(Arc<Monitor<Parts>>);

/// The parts of a batch, by whose they are.
fn parts_of(context: &AsyncKernelContext) -> Result<Vec<(i64, Tensor)>> {
    let (data, index) = (context.input(0)?, context.input(1)?);
    ensure!(
        index.rank() == 2 && index.dims()[1] == 3,
        InvalidArgument,
        "Wrong shape for index tensor. Expected 1st dimension size to be 3 ; Got: {}.",
        index.shape()
    );
    ensure!(
        data.rank() > 0 && index.dims()[0] <= data.dims()[0],
        InvalidArgument,
        "Wrong shape for index tensor. Expected 0th dimension size to be no greater than that of {}; Got: {}.",
        data.shape(),
        index.dims()[0]
    );
    let mut parts = Vec::new();
    for row in index.as_slice::<i64>()?.chunks_exact(3) {
        ensure!(
            0 <= row[1] && row[1] <= row[2] && row[2] <= data.dims()[0],
            InvalidArgument,
            "batch_index names rows {}..{} of {}",
            row[1],
            row[2],
            data.shape()
        );
        parts.push((row[0], data.rows(row[1] as usize, (row[2] - row[1]) as usize)?));
    }
    Ok(parts)
}

fn id_at(context: &AsyncKernelContext, input: usize) -> Result<i64> {
    let id = context.input(input)?;
    ensure!(
        id.rank() == 0,
        InvalidArgument,
        "Input id should be scalar; Got: {}.",
        id.shape()
    );
    id.single::<i64>()
}

fn unbatch(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| -> Result<_> {
        let (parts, id) = (parts_of(context)?, id_at(context, 2)?);
        let patience = micros(&context.node.attrs, "timeout_micros")?;
        let splitter = resource(context, || Splitter(Monitor::new(Parts::default(), 1, false)))?;
        Ok((parts, id, patience, splitter))
    };
    super::handle::or_fail(context, prepare, |context, (parts, id, patience, splitter)| {
        let monitor = splitter.0.clone();
        let keys: Vec<i64> = parts.iter().map(|part| part.0).collect();
        monitor.change(|state| state.waiting.extend(parts));
        let late = Arc::downgrade(&monitor);
        after(patience, move || {
            let Some(monitor) = late.upgrade() else { return };
            monitor.change(|state| {
                state.late.insert(id, ());
            });
            // Whoever has not come for a part by now does not come.
            monitor.change(|state| {
                state.late.remove(&id);
                for key in &keys {
                    state.waiting.remove(key);
                }
            });
        });
        let cancellation = context.host.cancellation().clone();
        let attempt = move |state: &mut Parts| match state.waiting.remove(&id) {
            Some(part) => Outcome::Done(Ok(vec![Value::Tensor(part)])),
            None if state.late.contains_key(&id) => Outcome::Done(Err(status!(
                DeadlineExceeded,
                "Batched data did not arrive within timeout window."
            ))),
            None => Outcome::Waits,
        };
        monitor.submit(0, &cancellation, attempt, finish(context));
    });
}

/// Gradients that have come, by whose they are.
#[derive(Default)]
struct Gradients(HashMap<i64, Tensor>);

struct Collector(Arc<Monitor<Gradients>>);

fn unbatch_gradient(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| -> Result<_> {
        let (data, index, gradient) = (context.input(0)?, context.input(1)?, context.input(2)?);
        let id = id_at(context, 3)?;
        let wanted: Vec<i64> = if data.num_elements() > 0 {
            ensure!(
                index.num_elements() > 0,
                InvalidArgument,
                "batch_index is empty while the tensor isn't."
            );
            ensure!(
                index.num_elements() == index.dims().first().map_or(0, |&rows| 3 * rows as usize),
                InvalidArgument,
                "batch_index should contain 3 elements for each row. Received {}",
                index.shape()
            );
            let rows = index.as_slice::<i64>()?.chunks_exact(3);
            rows.map(|row| row[0]).collect()
        } else {
            ensure!(
                gradient.rank() > 0,
                InvalidArgument,
                "grad must have at least one dimension"
            );
            Vec::new()
        };
        let none = (wanted.is_empty()).then(|| empty_like(gradient)).transpose()?;
        let collector = resource(context, || {
            Collector(Monitor::new(Gradients::default(), 1, false))
        })?;
        Ok((id, wanted, none, gradient.clone(), collector))
    };
    super::handle::or_fail(
        context,
        prepare,
        |context, (id, wanted, none, gradient, collector)| {
            let monitor = collector.0.clone();
            let twice = monitor.change(|state| state.0.insert(id, gradient).is_some());
            if twice {
                return context.finish(Err(status!(InvalidArgument, "Two runs with the same batch key.")));
            }
            if let Some(none) = none {
                return context.finish(Ok(vec![Value::Tensor(none)]));
            }
            let cancellation = context.host.cancellation().clone();
            let attempt = move |state: &mut Gradients| {
                if !wanted.iter().all(|key| state.0.contains_key(key)) {
                    return Outcome::Waits;
                }
                let parts: Vec<Tensor> = wanted.iter().filter_map(|key| state.0.remove(key)).collect();
                let joined = joined(&parts.iter().collect::<Vec<_>>());
                Outcome::Done(joined.map(|joined| vec![Value::Tensor(joined)]))
            };
            monitor.submit(0, &cancellation, attempt, finish(context));
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OpRunner, code, scalar, t, tensor_of, vector};
    use ff_tensor::{Code, DataType};
    use std::time::Duration;

    fn batching(most: i64, micros: i64) -> Attrs {
        Attrs::new()
            .with("num_batch_threads", 1i64)
            .with("max_batch_size", most)
            .with("batch_timeout_micros", micros)
            .with("grad_timeout_micros", 0i64)
    }

    type Ended = std::sync::mpsc::Receiver<Result<Vec<Value>>>;

    fn tensors(ended: &Ended) -> Vec<Tensor> {
        let outputs = ended.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
        outputs
            .into_iter()
            .map(|value| tensor_of(value).unwrap())
            .collect()
    }

    fn start(runner: &OpRunner, op: &str, inputs: &[Tensor], attrs: Attrs) -> Ended {
        let inputs: Vec<Value> = inputs.iter().cloned().map(Value::Tensor).collect();
        runner.start(op, "node", &inputs, attrs).unwrap()
    }

    #[test]
    fn a_full_batch_goes_on_and_comes_back() {
        let runner = OpRunner::new();
        let first = start(
            &runner,
            "Batch",
            &[t(&[1, 2], &[1.0f32, 2.0])],
            batching(3, 3_600_000_000),
        );
        assert!(first.try_recv().is_err());
        let second = start(
            &runner,
            "Batch",
            &[t(&[2, 2], &[3.0f32, 4.0, 5.0, 6.0])],
            batching(3, 3_600_000_000),
        );
        let (first, second) = (tensors(&first), tensors(&second));
        assert_eq!(first[0].dims(), [0, 2]);
        assert_eq!(first[1].dims(), [0, 3]);
        assert_eq!(
            second[0].as_slice::<f32>().unwrap(),
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        );
        let (a, b) = (
            first[2].single::<i64>().unwrap(),
            second[2].single::<i64>().unwrap(),
        );
        assert_eq!(second[1].as_slice::<i64>().unwrap(), [a, 0, 1, b, 1, 3]);

        let attrs = || Attrs::new().with("timeout_micros", 3_600_000_000i64);
        let inputs = [first[0].clone(), first[1].clone(), first[2].clone()];
        let one = start(&runner, "Unbatch", &inputs, attrs());
        assert!(one.try_recv().is_err());
        let inputs = [second[0].clone(), second[1].clone(), second[2].clone()];
        let two = start(&runner, "Unbatch", &inputs, attrs());
        assert_eq!(tensors(&one)[0].as_slice::<f32>().unwrap(), [1.0, 2.0]);
        assert_eq!(tensors(&two)[0].as_slice::<f32>().unwrap(), [3.0, 4.0, 5.0, 6.0]);

        let grads = OpRunner::new();
        let inputs = [
            second[0].clone(),
            second[1].clone(),
            t(&[2, 2], &[7.0f32; 4]),
            scalar(b),
        ];
        let whole = start(&grads, "UnbatchGrad", &inputs, Attrs::new());
        assert!(whole.try_recv().is_err());
        let inputs = [
            first[0].clone(),
            first[1].clone(),
            t(&[1, 2], &[8.0f32; 2]),
            scalar(a),
        ];
        let none = start(&grads, "UnbatchGrad", &inputs, Attrs::new());
        assert_eq!(tensors(&none)[0].dims(), [0, 2]);
        assert_eq!(
            tensors(&whole)[0].as_slice::<f32>().unwrap(),
            [8.0, 8.0, 7.0, 7.0, 7.0, 7.0]
        );
    }

    #[test]
    fn time_closes_a_batch_and_rows_fill_it_up() {
        let runner = OpRunner::new();
        let attrs = batching(4, 1000).with("allowed_batch_sizes", vec![2i64, 4]);
        let ended = start(&runner, "Batch", &[vector(&[5i32, 6, 7])], attrs);
        let outputs = tensors(&ended);
        assert_eq!(outputs[0].as_slice::<i32>().unwrap(), [5, 6, 7, 5]);
        assert_eq!(outputs[1].dims(), [1, 3]);
    }

    #[test]
    fn bad_inputs_are_errors() {
        let runner = OpRunner::new();
        let ended = |op: &str, inputs: &[Tensor], attrs: Attrs| {
            let inputs: Vec<Value> = inputs.iter().cloned().map(Value::Tensor).collect();
            match runner.start(op, "node", &inputs, attrs) {
                Ok(ended) => code(ended.recv_timeout(Duration::from_secs(20)).unwrap()),
                Err(error) => Some(error.code()),
            }
        };
        let invalid = Some(Code::InvalidArgument);
        assert_eq!(ended("Batch", &[vector(&[1, 2, 3])], batching(2, 0)), invalid);
        assert_eq!(ended("Batch", &[scalar(1)], batching(2, 0)), invalid);
        let attrs = batching(4, 0).with("allowed_batch_sizes", vec![2i64, 3]);
        assert_eq!(ended("Batch", &[vector(&[1])], attrs), invalid);
        let attrs = || Attrs::new().with("timeout_micros", 1000i64);
        let outside = [vector(&[1.0f32]), t(&[1, 3], &[7i64, 0, 2]), scalar(7i64)];
        assert_eq!(ended("Unbatch", &outside, attrs()), invalid);
        let nobody = [
            Tensor::zeros(DataType::FLOAT, Shape::vector(0)).unwrap(),
            t::<i64>(&[0, 3], &[]),
            scalar(8i64),
        ];
        assert_eq!(ended("Unbatch", &nobody, attrs()), Some(Code::DeadlineExceeded));
        let empty = [
            vector(&[1.0f32]),
            t::<i64>(&[0, 3], &[]),
            vector(&[1.0f32]),
            scalar(1i64),
        ];
        assert_eq!(ended("UnbatchGrad", &empty, Attrs::new()), invalid);
    }
}
