//! Tests of the text form: every opcode and constant goes out and comes back; errors name their line.

use super::{PrintOptions, parse, print, print_with};
use crate::{
    ArrayShape, Builder, ConvolutionConfig, ConvolutionDims, Direction, DotDims, FftKind, GatherDims,
    HloShape, Module, OPCODES, Op, Opcode, PadDimension, RngAlgorithm, ScatterDims, TransposeKind,
    TriangularSolveOptions, Window, WindowDimension, verify,
};
use ff_tensor::{Bool, Code, Complex64, DataType, Result, Shape, Tensor, bf16, f16};

/// The type that most of the tests use.
const F: DataType = DataType::FLOAT;

fn elementwise(b: &mut Builder) -> Result<()> {
    let x = b.parameter(0, ArrayShape::new(F, &[2, 3]), "x")?;
    let i = b.parameter(1, ArrayShape::new(DataType::INT32, &[2, 3]), "i")?;
    for &opcode in OPCODES {
        let operand = if opcode.types().accept(F) { x } else { i };
        match opcode.class() {
            crate::Class::Unary => b.unary(opcode, operand)?,
            crate::Class::Binary => b.binary(opcode, operand, operand)?,
            _ => continue,
        };
    }
    b.binary(Opcode::Complex, x, x)?;
    let less = b.compare(Direction::Lt, x, x)?;
    b.select(less, x, x)?;
    b.clamp(x, x, x)?;
    b.unary(Opcode::Copy, x)?;
    b.convert(x, DataType::BFLOAT16)?;
    b.bitcast_convert(x, DataType::UINT8)?;
    b.reduce_precision(x, 5, 10)?;
    Ok(())
}

fn movement(b: &mut Builder, x: Op, at: Op) -> Result<()> {
    b.broadcast_in_dim(x, &[2, 4, 3], &[0, 2])?;
    b.reshape(x, &[3, 2])?;
    b.transpose(x, &[1, 0])?;
    b.reverse(x, &[0, 1])?;
    b.slice(x, &[0, 0], &[1, 3], &[1, 2])?;
    b.dynamic_slice(x, &[at, at], &[1, 2])?;
    b.dynamic_update_slice(x, x, &[at, at])?;
    b.concatenate(&[x, x], 1)?;
    let zero = b.scalar(F, 0.0)?;
    b.pad(
        x,
        zero,
        [PadDimension {
            low: 1,
            high: -1,
            interior: 2,
        }; 2]
            .into_iter()
            .collect(),
    )?;
    b.iota(F, &[2, 3], 1)?;
    b.get_dimension_size(x, 1)?;
    let indices = b.constant_vector(&[0i64, 1])?;
    let dims = GatherDims {
        offset_dims: [1].into_iter().collect(),
        collapsed_slice_dims: [0].into_iter().collect(),
        start_index_map: [0].into_iter().collect(),
        index_vector_dim: 1,
        slice_sizes: [1, 3].into_iter().collect(),
        indices_are_sorted: true,
        ..GatherDims::default()
    };
    b.gather(x, indices, dims)?;
    let dims = ScatterDims {
        update_window_dims: [1].into_iter().collect(),
        inserted_window_dims: [0].into_iter().collect(),
        scatter_dims_to_operand_dims: [0].into_iter().collect(),
        index_vector_dim: 1,
        unique_indices: true,
        ..ScatterDims::default()
    };
    let add = b.reducer(Opcode::Add, F)?;
    b.scatter(&[x], indices, &[x], dims, add)?;
    Ok(())
}

fn contractions(b: &mut Builder, x: Op) -> Result<()> {
    b.dot_general(x, x, DotDims::matmul(false, true), Some(DataType::DOUBLE))?;
    let image = b.broadcast_in_dim(x, &[2, 5, 3], &[0, 2])?;
    let filter = b.full(F, &[2, 3, 4], 0.5)?;
    let spatial = WindowDimension {
        stride: 2,
        padding_low: 1,
        window_dilation: 2,
        base_dilation: 3,
        window_reversal: true,
        ..WindowDimension::new(2)
    };
    let config = ConvolutionConfig {
        window: [spatial].into_iter().collect(),
        dims: ConvolutionDims::channels_last(1),
        feature_group_count: 1,
        batch_group_count: 2,
    };
    b.convolution(image, filter, config, None)?;
    let total = b.reduce_sum(x, &[0])?;
    let scalar = ArrayShape::scalar(F);
    let before = b.computation("before", |b| {
        let (a, c) = (
            b.parameter(0, scalar.clone(), "a")?,
            b.parameter(1, scalar.clone(), "c")?,
        );
        b.compare(Direction::Ge, a, c)
    })?;
    b.sort(&[total], 0, before, true)?;
    b.top_k(total, 2, false)?;
    let (add, zero) = (b.reducer(Opcode::Add, F)?, b.scalar(F, 0.0)?);
    let window: Window = [WindowDimension::new(1), WindowDimension::new(2)]
        .into_iter()
        .collect();
    let sums = b.reduce_window(&[x], &[zero], add, window.clone())?;
    b.select_and_scatter(x, sums, zero, before, add, window)?;
    b.map(add, &[x, x])?;
    b.fft(x, FftKind::Rfft, &[3])?;
    let square = b.full(F, &[2, 2], 1.0)?;
    b.cholesky(square, true)?;
    let options = TriangularSolveOptions {
        left_side: true,
        lower: false,
        unit_diagonal: true,
        transpose: TransposeKind::Adjoint,
    };
    b.triangular_solve(square, x, options)?;
    let state = b.constant_vector(&[1u64, 2, 3])?;
    b.rng_bit_generator(RngAlgorithm::Philox, state, DataType::UINT32, &[5])?;
    Ok(())
}

fn structure(b: &mut Builder, x: Op) -> Result<Op> {
    let shape = b.array_shape(x)?.clone();
    let same = b.computation("body", |b| b.parameter(0, shape.clone(), "state"))?;
    let never = b.computation("condition", |b| {
        b.parameter(0, shape.clone(), "state")?;
        b.constant_scalar(Bool::FALSE)
    })?;
    b.while_loop(never, same, x)?;
    let row = ArrayShape::new(F, &[3]);
    let sums = b.computation("sums", |b| {
        let (slice, sum) = (
            b.parameter(0, row.clone(), "slice")?,
            b.parameter(1, row.clone(), "sum")?,
        );
        let sum = b.add(slice, sum)?;
        b.tuple(&[sum, sum])
    })?;
    let start = b.full(F, &[3], 0.0)?;
    b.scan(&[x], &[start], 0, true, sums)?;
    let index = b.scalar(DataType::INT32, 1.0)?;
    b.conditional(index, &[(same, x), (same, x)])?;
    b.call(same, &[x])?;
    b.emit(Opcode::Fusion, &[x], crate::Attributes::Call(same))?;
    b.set_node(Some("scope/\"node\"".into()));
    b.custom_call("svd", &[x], HloShape::array(F, &[2]), "full\n\"yes\"")?;
    b.set_node(None);
    let fine = b.constant_scalar(Bool::TRUE)?;
    b.check_values(fine, &[index], Code::OutOfRange, "index {0}, \\ of {index}")?;
    let kept = b.opt_barrier(x)?;
    let pair = b.tuple(&[kept, index])?;
    b.emit(Opcode::GetTupleElement, &[pair], crate::Attributes::TupleIndex(1))
}

/// A module with every opcode.
fn everything() -> Module {
    let mut b = Builder::new("everything");
    elementwise(&mut b).unwrap();
    let x = b.parameter(2, ArrayShape::new(F, &[2, 3]), "array").unwrap();
    let at = b.parameter(3, ArrayShape::scalar(DataType::INT64), "").unwrap();
    movement(&mut b, x, at).unwrap();
    contractions(&mut b, x).unwrap();
    let root = structure(&mut b, x).unwrap();
    b.finish(root).unwrap()
}

#[test]
fn every_opcode_survives_the_text() {
    let module = everything();
    verify(&module).unwrap();
    for &opcode in OPCODES {
        let found = module
            .computations
            .iter()
            .any(|c| c.instructions.iter().any(|i| i.opcode == opcode));
        assert!(found, "{opcode} is not in the test");
    }
    let text = print(&module);
    let back = parse(&text).unwrap();
    assert_eq!(print(&back), text);
    assert!(text.contains("window={size=2 stride=2 pad=1_0 lhs_dilate=3 rhs_dilate=2 rhs_reversal=1}"));
    assert!(text.contains("dim_labels=b0f_0io->b0f, batch_group_count=2"));
    assert!(text.contains("metadata={op_name=\"scope/\\\"node\\\"\"}"));
}

#[test]
fn constants_of_every_type_survive() {
    fn check(value: Tensor, expected: &str) {
        let mut b = Builder::new("constant");
        let root = b.constant(value.clone()).unwrap();
        let text = print(&b.finish(root).unwrap());
        assert!(text.contains(expected), "{text}");
        let back = parse(&text).unwrap();
        let crate::Attributes::Constant(read) = &back.entry_computation().instructions[0].attributes else {
            panic!("{text}");
        };
        assert_eq!(read.bytes(), value.bytes(), "{text}");
    }
    let matrix = Shape::new(&[2, 2]).unwrap();
    check(
        Tensor::from_slice(matrix, &[1i32, -2, 3, 4]).unwrap(),
        "s32[2,2]{1,0} constant({{1, -2}, {3, 4}})",
    );
    check(
        Tensor::vector(&[0.1f32, 1e-30, f32::INFINITY, -0.0]).unwrap(),
        "{0.1, 1e-30, inf, -0}",
    );
    check(
        Tensor::scalar(1.0f64 / 3.0).unwrap(),
        "f64[] constant(0.3333333333333333)",
    );
    check(Tensor::vector::<f32>(&[]).unwrap(), "f32[0]{0} constant({})");
    check(Tensor::vector(&[f16::from_f32(0.1), f16::MAX]).unwrap(), "f16[2]");
    check(
        Tensor::vector(&[bf16::from_f32(3e38), bf16::MIN_POSITIVE]).unwrap(),
        "bf16[2]",
    );
    check(
        Tensor::vector(&[Bool::TRUE, Bool::FALSE]).unwrap(),
        "{true, false}",
    );
    check(Tensor::vector(&[u64::MAX, 0]).unwrap(), "u64[2]");
    check(Tensor::vector(&[i8::MIN, 1]).unwrap(), "{-128, 1}");
    check(
        Tensor::vector(&[Complex64::new(1.5, -2.0)]).unwrap(),
        "{(1.5, -2)}",
    );
    check(
        Tensor::vector(&[ff_tensor::Float8E4M3Fn(0x3c)]).unwrap(),
        "f8e4m3fn[1]",
    );
}

#[test]
fn large_constants_are_left_out_on_demand() {
    let mut b = Builder::new("large");
    let root = b.constant_vector(&[0i32; 100]).unwrap();
    let options = PrintOptions {
        largest_constant: 10,
        ..PrintOptions::default()
    };
    let text = print_with(&b.finish(root).unwrap(), options);
    assert!(text.contains("constant({...})"));
    assert_eq!(parse(&text).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn malformed_text_names_its_line() {
    let cases = [
        ("", "no computation"),
        (
            "ENTRY %e () -> f32[] {\n  ROOT %a.0 = f32[] nonsense()\n}",
            "line 2: unknown opcode nonsense",
        ),
        (
            "ENTRY %e () -> f32[] {\n  %a.0 = f32[] negate(%b.1)\n}",
            "line 2: unknown operand %b.1",
        ),
        (
            "ENTRY %e () -> f32[] {\n  %a.0 = f32[] constant(x)\n}",
            "x is not an element of type float",
        ),
        (
            "ENTRY %e () -> f32[] {\n  %a.0 = f32[2] constant({1})\n}",
            "has 1 elements",
        ),
        (
            "ENTRY %e () -> f32[] {\n  %a.0 = f32[2,3]{0,1} parameter(0)\n}",
            "not row-major",
        ),
        (
            "ENTRY %e () -> f32[] {\n  %a.0 = f32[9999999999,9999999999] parameter(0)\n}",
            "elements",
        ),
        (
            "ENTRY %e () -> f32[] {\n  %a.0 = f32[] parameter(1)\n}",
            "not numbered from 0",
        ),
        ("ENTRY %e () -> f32[] {\n  %a.0 = f32[] parameter(0)", "no end"),
        (
            "ENTRY %e () -> f32[] {\n  %a.0 = ((((f32[] parameter(0)\n}",
            "expected",
        ),
    ];
    for (text, expected) in cases {
        let error = parse(text).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(error.message().contains(expected), "{error} lacks {expected}");
    }
}
