//! Recurrent cells as single ops: LSTM cells and sequences of them, GRU cells, and their gradients.
//!
//! Half precision computes in `f32`. `x` is `[batch, inputs]` (sequences `[time, batch, inputs]`), states are
//! `[batch, cells]`. The weights `[inputs + cells, 4 cells]` hold the gates side by side: input, new value, forget,
//! output; in the second version of sequences, forget comes before new value.

use crate::math::out_of_memory;
use crate::wide::{f32s, from_f32s, zeros};
use ff_kernels::ThreadPool;
use ff_kernels::gemm::{Epilogue, Matrix, gemm};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, OutputRef, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, ensure};

const HALVES: &[(&str, &[DataType])] = &[("T", &[DataType::FLOAT, DataType::HALF])];

const SEQUENCE: Op = Op {
    name: "BlockLSTM",
    shape: sequence_shape,
    kernels: &[Kernel::native(sequence).for_types(HALVES)],
    gradient: Gradient::Fn(|context| sequence_gradient(context, "BlockLSTMGrad")),
    ..Op::PURE
};
const SEQUENCE_GRADIENT: Op = Op {
    name: "BlockLSTMGrad",
    shape: |context| {
        for output in 0..8 {
            let shape = context.input(output + 1);
            context.set_output(output, shape);
        }
        Ok(())
    },
    kernels: &[Kernel::native(sequence_backward).for_types(HALVES)],
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "LSTMBlockCell",
        shape: |context| cell_shape(context, 7),
        kernels: &[Kernel::native(cell).for_types(HALVES)],
        ..Op::PURE
    },
    &Op {
        name: "LSTMBlockCellGrad",
        shape: |context| {
            context.input_with_rank(0, 2)?;
            let state = context.input_with_rank(1, 2)?;
            let (batch, cells) = (state.dim(0), state.dim(1));
            context.set_output(0, state);
            context.set_output(1, PartialShape::new(&[batch, ff_tensor::dim::mul(cells, 4)?]));
            for output in 2..5 {
                context.set_output(output, PartialShape::new(&[cells]));
            }
            Ok(())
        },
        kernels: &[Kernel::native(cell_backward).for_types(HALVES)],
        ..Op::PURE
    },
    &SEQUENCE,
    &Op {
        name: "BlockLSTMV2",
        gradient: Gradient::Fn(|context| sequence_gradient(context, "BlockLSTMGradV2")),
        ..SEQUENCE
    },
    &SEQUENCE_GRADIENT,
    &Op {
        name: "BlockLSTMGradV2",
        ..SEQUENCE_GRADIENT
    },
    &Op {
        name: "GRUBlockCell",
        shape: |context| cell_shape(context, 4),
        kernels: &[Kernel::native(gru)],
        ..Op::PURE
    },
    &Op {
        name: "GRUBlockCellGrad",
        shape: |context| {
            let x = context.input_with_rank(0, 2)?;
            let state = context.input_with_rank(1, 2)?;
            let (batch, cells) = (state.dim(0), state.dim(1));
            context.set_output(0, x);
            context.set_output(1, state.clone());
            context.set_output(2, state);
            context.set_output(3, PartialShape::new(&[batch, ff_tensor::dim::mul(cells, 2)?]));
            Ok(())
        },
        kernels: &[Kernel::native(gru_backward)],
        ..Op::PURE
    },
];

fn cell_shape(context: &mut ShapeContext, outputs: usize) -> Result<()> {
    let x = context.input_with_rank(0, 2)?;
    let state = context.input_with_rank(1, 2)?;
    let shape = PartialShape::new(&[ff_tensor::dim::merge(x.dim(0), state.dim(0))?, state.dim(1)]);
    for output in 0..outputs {
        context.set_output(output, shape.clone());
    }
    Ok(())
}

fn sequence_shape(context: &mut ShapeContext) -> Result<()> {
    let x = context.input_with_rank(1, 3)?;
    let bias = context.input_with_rank(8, 1)?;
    let cells = match bias.dim(0) {
        extent if extent >= 0 => extent / 4,
        _ => ff_tensor::dim::UNKNOWN,
    };
    for output in 0..7 {
        context.set_output(output, PartialShape::new(&[x.dim(0), x.dim(1), cells]));
    }
    Ok(())
}

/// Extents of a cell.
#[derive(Clone, Copy)]
struct Extents {
    batch: usize,
    inputs: usize,
    cells: usize,
}

impl Extents {
    fn state(&self) -> usize {
        self.batch * self.cells
    }

    /// Checks the extents of an input of the node.
    fn check(&self, context: &KernelContext, input: usize, dims: &[usize]) -> Result<()> {
        let actual = context.input(input)?.dims();
        let fits = actual.len() == dims.len() && actual.iter().zip(dims).all(|(&a, &b)| a == b as i64);
        ensure!(
            fits,
            InvalidArgument,
            "input {input} of {} has shape {actual:?} instead of {dims:?}",
            context.node().op_name()
        );
        Ok(())
    }

    /// The last two extents of `x` at an input, and the last of the state after it.
    fn of(context: &KernelContext, x: usize) -> Result<Extents> {
        let (x, state) = (context.input(x)?.dims(), context.input(x + 1)?.dims());
        ensure!(
            x.len() >= 2 && state.len() == 2,
            InvalidArgument,
            "x must be at least 2-D and cs_prev 2-D, got {x:?} and {state:?}"
        );
        Ok(Extents {
            batch: x[x.len() - 2] as usize,
            inputs: x[x.len() - 1] as usize,
            cells: state[1] as usize,
        })
    }

    /// Checks states, weights, peepholes and bias from input `first` (the previous memory) on.
    fn check_lstm(&self, context: &KernelContext, first: usize) -> Result<()> {
        let gates = 4 * self.cells;
        let (state, peephole) = ([self.batch, self.cells], [self.cells]);
        self.check(context, first, &state)?;
        self.check(context, first + 1, &state)?;
        self.check(context, first + 2, &[self.inputs + self.cells, gates])?;
        if context.attrs().bool("use_peephole")? {
            for input in first + 3..first + 6 {
                self.check(context, input, &peephole)?;
            }
        }
        self.check(context, first + 6, &[gates])
    }
}

/// Where each gate's block lies: input, new value, forget, output.
#[derive(Clone, Copy)]
struct Layout([usize; 4]);

impl Layout {
    fn of(op: &str) -> Layout {
        Layout(if op.ends_with("V2") {
            [0, 2, 1, 3]
        } else {
            [0, 1, 2, 3]
        })
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// `c = [a, b] w`, or `c += [a, b] w`, with `a` and `b` side by side.
fn product_of_both(
    pool: &ThreadPool,
    (a, b): (&[f32], &[f32]),
    w: &[f32],
    (rows, columns): (usize, usize),
    c: &mut [f32],
) -> Result<()> {
    if rows == 0 || columns == 0 {
        return Ok(());
    }
    let (inner_a, inner_b) = (a.len() / rows, b.len() / rows);
    let (upper, lower) = w.split_at(inner_a * columns);
    c.fill(0.0);
    for (x, inner, w) in [(a, inner_a, upper), (b, inner_b, lower)] {
        if inner > 0 {
            let (x, w) = (Matrix::new(x, inner), Matrix::new(w, columns));
            let shape = (rows, columns, inner);
            gemm(pool, shape, x, w, c, columns, true, &Epilogue::default()).map_err(out_of_memory)?;
        }
    }
    Ok(())
}

/// `c = a w'`: `a` has `inner` columns, `w` has `columns` rows.
fn product_transposed(
    pool: &ThreadPool,
    a: &[f32],
    w: &[f32],
    (rows, columns, inner): (usize, usize, usize),
    c: &mut [f32],
) -> Result<()> {
    if rows == 0 || columns == 0 || inner == 0 {
        c.fill(0.0);
        return Ok(());
    }
    let (a, w) = (Matrix::new(a, inner), Matrix::transposed(w, inner));
    let shape = (rows, columns, inner);
    gemm(pool, shape, a, w, c, columns, false, &Epilogue::default()).map_err(out_of_memory)
}

/// What an LSTM cell is made of.
struct Lstm<'a> {
    extents: Extents,
    layout: Layout,
    weights: &'a [f32],
    /// Of input, forget and output gate; absent without peepholes.
    peepholes: Option<[&'a [f32]; 3]>,
    bias: &'a [f32],
    forget_bias: f32,
    clip: f32,
}

/// The seven results of a step, in the op's order: input gate, memory, forget gate, output gate, new value, bent
/// memory, output.
type Step<'a> = [&'a mut [f32]; 7];

impl Lstm<'_> {
    fn forward(
        &self,
        pool: &ThreadPool,
        x: &[f32],
        (memory, state): (&[f32], &[f32]),
        gates: &mut [f32],
        step: Step,
    ) -> Result<()> {
        let cells = self.extents.cells;
        product_of_both(
            pool,
            (x, state),
            self.weights,
            (self.extents.batch, 4 * cells),
            gates,
        )?;
        let [i_out, cs_out, f_out, o_out, ci_out, co_out, h_out] = step;
        for at in 0..self.extents.state() {
            let (row, c) = (at / cells, at % cells);
            let gate = |kind: usize| {
                let column = self.layout.0[kind] * cells + c;
                gates[row * 4 * cells + column] + self.bias[column]
            };
            let peephole = |kind: usize, value: f32| self.peepholes.map_or(0.0, |all| all[kind][c] * value);
            let before = memory[at];
            let i = sigmoid(gate(0) + peephole(0, before));
            let f = sigmoid(gate(2) + self.forget_bias + peephole(1, before));
            let ci = gate(1).tanh();
            let mut cs = ci * i + f * before;
            if self.clip > 0.0 {
                cs = cs.clamp(-self.clip, self.clip);
            }
            let o = sigmoid(gate(3) + peephole(2, cs));
            let co = cs.tanh();
            (i_out[at], cs_out[at], f_out[at], o_out[at]) = (i, cs, f, o);
            (ci_out[at], co_out[at], h_out[at]) = (ci, co, o * co);
        }
        Ok(())
    }
}

/// Results of a step that its gradient needs, with what came before and the gradients that come in.
struct Taken<'a> {
    memory_before: &'a [f32],
    i: &'a [f32],
    cs: &'a [f32],
    f: &'a [f32],
    o: &'a [f32],
    ci: &'a [f32],
    co: &'a [f32],
    memory_gradient: &'a [f32],
    output_gradient: &'a [f32],
}

/// Adds to the gradients of the peepholes; sets the gradients of gates and of the previous memory.
fn step_backward(
    extents: Extents,
    layout: Layout,
    peepholes: Option<[&[f32]; 3]>,
    taken: &Taken,
    gates: &mut [f32],
    memory: &mut [f32],
    peephole_gradients: &mut [Vec<f32>; 3],
) {
    let cells = extents.cells;
    for at in 0..extents.state() {
        let (row, c) = (at / cells, at % cells);
        let (i, f, o, ci, co) = (taken.i[at], taken.f[at], taken.o[at], taken.ci[at], taken.co[at]);
        let (dh, before) = (taken.output_gradient[at], taken.memory_before[at]);
        let d_o = o * (1.0 - o) * dh * co;
        let mut dcs = (1.0 - co * co) * dh * o + taken.memory_gradient[at];
        if let Some(peepholes) = peepholes {
            dcs += d_o * peepholes[2][c];
        }
        let dci = (1.0 - ci * ci) * dcs * i;
        let df = f * (1.0 - f) * dcs * before;
        let di = i * (1.0 - i) * dcs * ci;
        for (kind, gradient) in [di, dci, df, d_o].into_iter().enumerate() {
            gates[row * 4 * cells + layout.0[kind] * cells + c] = gradient;
        }
        memory[at] = dcs * f;
        if let Some(peepholes) = peepholes {
            memory[at] += di * peepholes[0][c] + df * peepholes[1][c];
            peephole_gradients[0][c] += di * before;
            peephole_gradients[1][c] += df * before;
            peephole_gradients[2][c] += d_o * taken.cs[at];
        }
    }
}

/// Sets an output of the node from `f32` values.
fn set(context: &mut KernelContext, output: usize, values: &[f32]) -> Result<()> {
    let shape = context.output_shape(output)?.clone();
    let tensor = from_f32s(context.output_type(output), shape, values)?;
    context.set_output(output, tensor)
}

fn cell(context: &mut KernelContext) -> Result<()> {
    let extents = Extents::of(context, 0)?;
    extents.check(context, 0, &[extents.batch, extents.inputs])?;
    extents.check_lstm(context, 1)?;
    let attrs = context.attrs();
    let (clip, forget_bias) = (attrs.float("cell_clip")?, attrs.float("forget_bias")?);
    let peephole = attrs.bool("use_peephole")?;
    let inputs = (0..8)
        .map(|input| f32s(context.input(input)?))
        .collect::<Result<Vec<_>>>()?;
    let lstm = Lstm {
        extents,
        layout: Layout::of(""),
        weights: &inputs[3],
        peepholes: peephole.then(|| [&inputs[4][..], &inputs[5][..], &inputs[6][..]]),
        bias: &inputs[7],
        forget_bias,
        clip,
    };
    let size = extents.state();
    let mut results: Vec<f32> = zeros(7 * size)?;
    let mut gates = zeros(4 * size)?;
    let step = split_steps(&mut results, size, 0, size);
    lstm.forward(
        context.pool(),
        &inputs[0],
        (&inputs[1], &inputs[2]),
        &mut gates,
        step,
    )?;
    drop(inputs);
    for output in 0..7 {
        set(context, output, &results[output * size..][..size])?;
    }
    Ok(())
}

/// The part `start..start + size` of each of seven results of `whole` elements, one after the other.
fn split_steps(results: &mut [f32], whole: usize, start: usize, size: usize) -> Step<'_> {
    let mut parts: Vec<&mut [f32]> = if whole == 0 {
        (0..7).map(|_| Default::default()).collect()
    } else {
        results
            .chunks_exact_mut(whole)
            .map(|part| &mut part[start..start + size])
            .collect()
    };
    std::array::from_fn(|i| std::mem::take(&mut parts[i]))
}

fn cell_backward(context: &mut KernelContext) -> Result<()> {
    let extents = Extents::of(context, 0)?;
    extents.check_lstm(context, 1)?;
    for input in 8..16 {
        extents.check(context, input, &[extents.batch, extents.cells])?;
    }
    let peephole = context.attrs().bool("use_peephole")?;
    let inputs = (0..16)
        .map(|input| f32s(context.input(input)?))
        .collect::<Result<Vec<_>>>()?;
    let taken = Taken {
        memory_before: &inputs[1],
        i: &inputs[8],
        cs: &inputs[9],
        f: &inputs[10],
        o: &inputs[11],
        ci: &inputs[12],
        co: &inputs[13],
        memory_gradient: &inputs[14],
        output_gradient: &inputs[15],
    };
    let size = extents.state();
    let (mut gates, mut memory): (Vec<f32>, Vec<f32>) = (zeros(4 * size)?, zeros(size)?);
    let mut of_peepholes = [
        zeros(extents.cells)?,
        zeros(extents.cells)?,
        zeros(extents.cells)?,
    ];
    let peepholes = peephole.then(|| [&inputs[4][..], &inputs[5][..], &inputs[6][..]]);
    step_backward(
        extents,
        Layout::of(""),
        peepholes,
        &taken,
        &mut gates,
        &mut memory,
        &mut of_peepholes,
    );
    drop(inputs);
    set(context, 0, &memory)?;
    set(context, 1, &gates)?;
    for (output, values) in (2..).zip(&of_peepholes) {
        set(context, output, values)?;
    }
    Ok(())
}

/// The steps of a sequence that are run. INVALID_ARGUMENT when there are not as many.
fn steps(context: &KernelContext) -> Result<(usize, usize)> {
    let time = context.input(1)?.dims()[0];
    let steps = context.input_i64(0)?;
    ensure!(
        (0..=time).contains(&steps),
        InvalidArgument,
        "seq_len_max must be in [0, {time}], got {steps}"
    );
    Ok((time as usize, steps as usize))
}

fn sequence(context: &mut KernelContext) -> Result<()> {
    let extents = Extents::of(context, 1)?;
    extents.check_lstm(context, 2)?;
    let (time, steps) = steps(context)?;
    let attrs = context.attrs();
    let peephole = attrs.bool("use_peephole")?;
    let (clip, forget_bias) = (
        attrs.float("cell_clip")?,
        attrs.float("forget_bias").unwrap_or(0.0),
    );
    let inputs = (1..9)
        .map(|input| f32s(context.input(input)?))
        .collect::<Result<Vec<_>>>()?;
    let lstm = Lstm {
        extents,
        layout: Layout::of(context.node().op_name()),
        weights: &inputs[3],
        peepholes: peephole.then(|| [&inputs[4][..], &inputs[5][..], &inputs[6][..]]),
        bias: &inputs[7],
        forget_bias,
        clip,
    };
    let (size, row) = (extents.state(), extents.batch * extents.inputs);
    let whole = time * size;
    let mut results: Vec<f32> = zeros(7 * whole)?;
    let mut gates = zeros(4 * size)?;
    let (mut memory, mut state) = (inputs[1].to_vec(), inputs[2].to_vec());
    for t in 0..steps {
        let step = split_steps(&mut results, whole, t * size, size);
        let x = &inputs[0][t * row..][..row];
        lstm.forward(context.pool(), x, (&memory, &state), &mut gates, step)?;
        memory.copy_from_slice(&results[whole + t * size..][..size]);
        state.copy_from_slice(&results[6 * whole + t * size..][..size]);
    }
    drop(inputs);
    for output in 0..7 {
        set(context, output, &results[output * whole..][..whole])?;
    }
    Ok(())
}

/// `w += [a, b]' gates`.
fn add_weights(
    pool: &ThreadPool,
    (a, b): (&[f32], &[f32]),
    gates: &[f32],
    rows: usize,
    w: &mut [f32],
) -> Result<()> {
    let columns = gates.len() / rows.max(1);
    let (inner_a, inner_b) = (a.len() / rows.max(1), b.len() / rows.max(1));
    let (upper, lower) = w.split_at_mut(inner_a * columns);
    for (x, inner, w) in [(a, inner_a, upper), (b, inner_b, lower)] {
        if inner > 0 && columns > 0 && rows > 0 {
            let (x, gates) = (Matrix::transposed(x, inner), Matrix::new(gates, columns));
            let shape = (inner, columns, rows);
            gemm(pool, shape, x, gates, w, columns, true, &Epilogue::default()).map_err(out_of_memory)?;
        }
    }
    Ok(())
}

fn sequence_backward(context: &mut KernelContext) -> Result<()> {
    let extents = Extents::of(context, 1)?;
    extents.check_lstm(context, 2)?;
    let (time, steps) = steps(context)?;
    for input in 9..18 {
        extents.check(context, input, &[time, extents.batch, extents.cells])?;
    }
    let peephole = context.attrs().bool("use_peephole")?;
    let layout = Layout::of(context.node().op_name());
    // Counted as the inputs of the node; the first one is not a float.
    let inputs = (1..18)
        .map(|input| f32s(context.input(input)?))
        .collect::<Result<Vec<_>>>()?;
    let input = |number: usize| &inputs[number - 1][..];
    let Extents {
        batch,
        inputs: width,
        cells,
    } = extents;
    let (size, row) = (extents.state(), batch * width);
    let peepholes = peephole.then(|| [input(5), input(6), input(7)]);
    let mut of_x: Vec<f32> = zeros(time * row)?;
    let mut of_w: Vec<f32> = zeros((width + cells) * 4 * cells)?;
    let mut of_bias: Vec<f32> = zeros(4 * cells)?;
    let mut of_peepholes = [zeros(cells)?, zeros(cells)?, zeros(cells)?];
    let (mut of_memory, mut of_state): (Vec<f32>, Vec<f32>) = (zeros(size)?, zeros(size)?);
    let (mut memory_gradient, mut output_gradient): (Vec<f32>, Vec<f32>) = (zeros(size)?, zeros(size)?);
    let (mut gates, mut both): (Vec<f32>, Vec<f32>) = (zeros(4 * size)?, zeros(batch * (width + cells))?);
    for t in (0..steps).rev() {
        let at = |number: usize| &input(number)[t * size..][..size];
        let before = |number: usize, first: usize| match t {
            0 => input(first),
            t => &input(number)[(t - 1) * size..][..size],
        };
        for i in 0..size {
            memory_gradient[i] = at(16)[i] + of_memory[i];
            output_gradient[i] = at(17)[i] + of_state[i];
        }
        let taken = Taken {
            memory_before: before(10, 2),
            i: at(9),
            cs: at(10),
            f: at(11),
            o: at(12),
            ci: at(13),
            co: at(14),
            memory_gradient: &memory_gradient,
            output_gradient: &output_gradient,
        };
        step_backward(
            extents,
            layout,
            peepholes,
            &taken,
            &mut gates,
            &mut of_memory,
            &mut of_peepholes,
        );
        let shape = (batch, width + cells, 4 * cells);
        product_transposed(context.pool(), &gates, input(4), shape, &mut both)?;
        for b in 0..batch {
            let line = &both[b * (width + cells)..][..width + cells];
            of_x[t * row + b * width..][..width].copy_from_slice(&line[..width]);
            of_state[b * cells..][..cells].copy_from_slice(&line[width..]);
        }
        let x = &input(1)[t * row..][..row];
        add_weights(context.pool(), (x, before(15, 3)), &gates, batch, &mut of_w)?;
        for (i, gradient) in gates.iter().enumerate() {
            of_bias[i % (4 * cells)] += gradient;
        }
    }
    drop(inputs);
    let [wci, wcf, wco] = of_peepholes;
    let all = [of_x, of_memory, of_state, of_w, wci, wcf, wco, of_bias];
    for (output, values) in all.iter().enumerate() {
        set(context, output, values)?;
    }
    Ok(())
}

fn sequence_gradient(context: &mut GradientContext, op: &str) -> Result<()> {
    let mut inputs = Vec::new();
    for input in 0..9 {
        inputs.push(context.input(input)?);
    }
    for output in 0..7 {
        inputs.push(context.output(output));
    }
    inputs.push(context.incoming_or_zeros(1)?);
    inputs.push(context.incoming_or_zeros(6)?);
    let attrs = Attrs::new()
        .with("T", context.input_type(1))
        .with("use_peephole", context.attrs().bool("use_peephole")?);
    let node = context.node_of(op, &inputs, attrs)?;
    for index in 0..8 {
        context.set(index as usize + 1, OutputRef { node, index });
    }
    Ok(())
}

/// Checks the inputs of a GRU cell: previous state, weights of both gates and of the new value, their biases.
fn check_gru(context: &KernelContext) -> Result<Extents> {
    let extents = Extents::of(context, 0)?;
    let Extents { batch, inputs, cells } = extents;
    extents.check(context, 0, &[batch, inputs])?;
    extents.check(context, 1, &[batch, cells])?;
    extents.check(context, 2, &[inputs + cells, 2 * cells])?;
    extents.check(context, 3, &[inputs + cells, cells])?;
    extents.check(context, 4, &[2 * cells])?;
    extents.check(context, 5, &[cells])?;
    Ok(extents)
}

fn gru(context: &mut KernelContext) -> Result<()> {
    let extents = check_gru(context)?;
    let (batch, cells, size) = (extents.batch, extents.cells, extents.state());
    let inputs = (0..6)
        .map(|input| f32s(context.input(input)?))
        .collect::<Result<Vec<_>>>()?;
    let (x, state) = (&inputs[0], &inputs[1]);
    let mut gates: Vec<f32> = zeros(2 * size)?;
    product_of_both(
        context.pool(),
        (x, state),
        &inputs[2],
        (batch, 2 * cells),
        &mut gates,
    )?;
    let (mut r, mut u, mut h): (Vec<f32>, Vec<f32>, Vec<f32>) = (zeros(size)?, zeros(size)?, zeros(size)?);
    let (mut reset, mut c): (Vec<f32>, Vec<f32>) = (zeros(size)?, zeros(size)?);
    for at in 0..size {
        let (row, column) = (at / cells, at % cells);
        r[at] = sigmoid(gates[row * 2 * cells + column] + inputs[4][column]);
        u[at] = sigmoid(gates[row * 2 * cells + cells + column] + inputs[4][cells + column]);
        reset[at] = state[at] * r[at];
    }
    product_of_both(context.pool(), (x, &reset), &inputs[3], (batch, cells), &mut c)?;
    for at in 0..size {
        c[at] = (c[at] + inputs[5][at % cells]).tanh();
        h[at] = u[at] * (state[at] - c[at]) + c[at];
    }
    drop(inputs);
    for (output, values) in [r, u, c, h].iter().enumerate() {
        set(context, output, values)?;
    }
    Ok(())
}

fn gru_backward(context: &mut KernelContext) -> Result<()> {
    let extents = check_gru(context)?;
    for input in 6..10 {
        extents.check(context, input, &[extents.batch, extents.cells])?;
    }
    let Extents {
        batch,
        inputs: width,
        cells,
    } = extents;
    let size = extents.state();
    let inputs = (0..10)
        .map(|input| f32s(context.input(input)?))
        .collect::<Result<Vec<_>>>()?;
    let (state, r, u, c, dh) = (&inputs[1], &inputs[6], &inputs[7], &inputs[8], &inputs[9]);
    let mut of_c: Vec<f32> = zeros(size)?;
    let mut of_gates: Vec<f32> = zeros(2 * size)?;
    for at in 0..size {
        of_c[at] = dh[at] * (1.0 - u[at]) * (1.0 - c[at] * c[at]);
    }
    let both = width + cells;
    let (mut by_c, mut by_gates): (Vec<f32>, Vec<f32>) = (zeros(batch * both)?, zeros(batch * both)?);
    product_transposed(context.pool(), &of_c, &inputs[3], (batch, both, cells), &mut by_c)?;
    for at in 0..size {
        let (row, column) = (at / cells, at % cells);
        let of_reset = by_c[row * both + width + column];
        of_gates[row * 2 * cells + column] = of_reset * state[at] * r[at] * (1.0 - r[at]);
        of_gates[row * 2 * cells + cells + column] = dh[at] * (state[at] - c[at]) * u[at] * (1.0 - u[at]);
    }
    product_transposed(
        context.pool(),
        &of_gates,
        &inputs[2],
        (batch, both, 2 * cells),
        &mut by_gates,
    )?;
    let (mut of_x, mut of_state): (Vec<f32>, Vec<f32>) = (zeros(batch * width)?, zeros(size)?);
    for (i, to) in of_x.iter_mut().enumerate() {
        let at = i / width * both + i % width;
        *to = by_gates[at] + by_c[at];
    }
    for (at, to) in of_state.iter_mut().enumerate() {
        let place = at / cells * both + width + at % cells;
        *to = by_gates[place] + by_c[place] * r[at] + dh[at] * u[at];
    }
    drop(inputs);
    for (output, values) in [of_x, of_state, of_c, of_gates].iter().enumerate() {
        set(context, output, values)?;
    }
    Ok(())
}

#[cfg(test)]
fn wave(dtype: DataType, dims: &[i64]) -> ff_tensor::Tensor {
    let count = dims.iter().product::<i64>();
    let values: Vec<f64> = (0..count).map(|i| ((i * 5 % 11) as f64 - 5.0) / 8.0).collect();
    crate::testing::numbers(dtype, dims, &values)
}

/// Weights, peepholes and bias of a cell of 3 inputs and 2 cells.
#[cfg(test)]
fn weights(dtype: DataType) -> [ff_tensor::Tensor; 5] {
    [
        wave(dtype, &[5, 8]),
        wave(dtype, &[2]),
        wave(dtype, &[2]),
        wave(dtype, &[2]),
        wave(dtype, &[8]),
    ]
}

crate::op_cases! {
    cells: family(&["LSTMBlockCell"], &[DataType::FLOAT, DataType::HALF], |op, dtype| {
        Case::op(op).inputs([wave(dtype, &[2, 3]), wave(dtype, &[2, 2]), wave(dtype, &[2, 2])]).inputs(weights(dtype)).attr("use_peephole", true)
    });
    cells_clipped: Case::op("LSTMBlockCell").inputs([wave(DataType::FLOAT, &[2, 3]), wave(DataType::FLOAT, &[2, 2]), wave(DataType::FLOAT, &[2, 2])])
        .inputs(weights(DataType::FLOAT)).attr("cell_clip", 0.25f32);
    cells_misfit: Case::op("LSTMBlockCell").inputs([wave(DataType::FLOAT, &[2, 4]), wave(DataType::FLOAT, &[2, 2]), wave(DataType::FLOAT, &[2, 2])])
        .inputs(weights(DataType::FLOAT)).fails(Code::InvalidArgument);
    cells_backward: family(&["LSTMBlockCellGrad"], &[DataType::FLOAT, DataType::HALF], |op, dtype| {
        Case::op(op).inputs([wave(dtype, &[2, 3]), wave(dtype, &[2, 2]), wave(dtype, &[2, 2])]).inputs(weights(dtype))
            .inputs((0..8).map(|_| wave(dtype, &[2, 2]))).attr("use_peephole", true)
    });
    cells_backward_misfit: Case::op("LSTMBlockCellGrad").inputs([wave(DataType::FLOAT, &[2, 3]), wave(DataType::FLOAT, &[2, 2]), wave(DataType::FLOAT, &[2, 2])])
        .inputs(weights(DataType::FLOAT)).inputs((0..8).map(|_| wave(DataType::FLOAT, &[2, 3]))).attr("use_peephole", true).fails(Code::InvalidArgument);
    sequences: family(&["BlockLSTM", "BlockLSTMV2"], &[DataType::FLOAT, DataType::HALF], |op, dtype| {
        Case::op(op).inputs([scalar(3i64), wave(dtype, &[4, 2, 3]), wave(dtype, &[2, 2]), wave(dtype, &[2, 2])]).inputs(weights(dtype)).attr("use_peephole", true)
    });
    sequences_plain: family(&["BlockLSTM", "BlockLSTMV2"], &[DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([scalar(4i64), wave(dtype, &[4, 2, 3]), wave(dtype, &[2, 2]), wave(dtype, &[2, 2])]).inputs(weights(dtype)).attr("cell_clip", 0.5f32)
            .without_gradient()
    });
    sequences_too_long: family(&["BlockLSTM", "BlockLSTMV2"], &[DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([scalar(5i64), wave(dtype, &[4, 2, 3]), wave(dtype, &[2, 2]), wave(dtype, &[2, 2])]).inputs(weights(dtype)).fails(Code::InvalidArgument)
    });
    sequences_backward: family(&["BlockLSTMGrad", "BlockLSTMGradV2"], &[DataType::FLOAT, DataType::HALF], |op, dtype| {
        Case::op(op).inputs([scalar(3i64), wave(dtype, &[4, 2, 3]), wave(dtype, &[2, 2]), wave(dtype, &[2, 2])]).inputs(weights(dtype))
            .inputs((0..9).map(|_| wave(dtype, &[4, 2, 2]))).attr("use_peephole", true)
    });
    sequences_backward_misfit: family(&["BlockLSTMGrad", "BlockLSTMGradV2"], &[DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([scalar(3i64), wave(dtype, &[4, 2, 3]), wave(dtype, &[2, 2]), wave(dtype, &[2, 2])]).inputs(weights(dtype))
            .inputs((0..9).map(|_| wave(dtype, &[4, 2, 3]))).attr("use_peephole", true).fails(Code::InvalidArgument)
    });
    gru_cells: Case::op("GRUBlockCell").inputs([wave(DataType::FLOAT, &[2, 3]), wave(DataType::FLOAT, &[2, 2]), wave(DataType::FLOAT, &[5, 4])])
        .inputs([wave(DataType::FLOAT, &[5, 2]), wave(DataType::FLOAT, &[4]), wave(DataType::FLOAT, &[2])]);
    gru_misfit: Case::op("GRUBlockCell").inputs([wave(DataType::FLOAT, &[2, 3]), wave(DataType::FLOAT, &[2, 2]), wave(DataType::FLOAT, &[5, 5])])
        .inputs([wave(DataType::FLOAT, &[5, 2]), wave(DataType::FLOAT, &[4]), wave(DataType::FLOAT, &[2])]).fails(Code::InvalidArgument);
    gru_backward: Case::op("GRUBlockCellGrad").inputs([wave(DataType::FLOAT, &[2, 3]), wave(DataType::FLOAT, &[2, 2]), wave(DataType::FLOAT, &[5, 4])])
        .inputs([wave(DataType::FLOAT, &[5, 2]), wave(DataType::FLOAT, &[4]), wave(DataType::FLOAT, &[2])]).inputs((0..4).map(|_| wave(DataType::FLOAT, &[2, 2])));
    gru_backward_misfit: Case::op("GRUBlockCellGrad").inputs([wave(DataType::FLOAT, &[2, 3]), wave(DataType::FLOAT, &[2, 2]), wave(DataType::FLOAT, &[5, 4])])
        .inputs([wave(DataType::FLOAT, &[5, 2]), wave(DataType::FLOAT, &[4]), wave(DataType::FLOAT, &[2])]).inputs((0..4).map(|_| wave(DataType::FLOAT, &[2, 3])))
        .fails(Code::InvalidArgument);
}
