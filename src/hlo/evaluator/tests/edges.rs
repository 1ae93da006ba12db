//! Empty arrays, tuples, shared and repeated values, views in odd places.

use super::{evaluate, run, tensor};
use crate::evaluator::Program;
use crate::{
    ArrayShape, Builder, Direction, DotDims, GatherDims, HloShape, Opcode, PadDimension, ScatterDims, parse,
};
use ff_kernels::ThreadPool;
use ff_tensor::{Bool, Code, DataType, Int4, f16};

#[test]
fn empty_arrays() {
    let none = tensor::<f32>(&[0, 3], &[]);
    let sum = evaluate(std::slice::from_ref(&none), |b, p| {
        let y = b.unary(Opcode::Exponential, p[0])?;
        b.reduce_sum(y, &[0])
    });
    assert_eq!(sum.as_slice::<f32>().unwrap(), [0.0; 3]);
    let largest = evaluate(std::slice::from_ref(&none), |b, p| b.reduce_max(p[0], &[1]));
    assert_eq!(largest.dims(), [0]);
    let product = evaluate(&[none.clone(), none.clone()], |b, p| {
        b.dot_general(p[0], p[1], DotDims::matmul(true, false), None)
    });
    assert_eq!(product.as_slice::<f32>().unwrap(), [0.0; 9]);
    let joined = evaluate(&[none.clone(), tensor(&[1, 3], &[1.0f32, 2.0, 3.0])], |b, p| {
        b.concatenate(&[p[0], p[1]], 0)
    });
    assert_eq!(joined.as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    let padded = evaluate(std::slice::from_ref(&none), |b, p| {
        let one = b.scalar(DataType::FLOAT, 1.0)?;
        let grow = PadDimension {
            low: 1,
            high: 1,
            interior: 3,
        };
        b.pad(p[0], one, [grow, PadDimension::default()].into_iter().collect())
    });
    assert_eq!(padded.as_slice::<f32>().unwrap(), [1.0; 6]);
    let turned = evaluate(&[none], |b, p| {
        let reversed = b.reverse(p[0], &[0, 1])?;
        let turned = b.transpose(reversed, &[1, 0])?;
        b.unary(Opcode::Negate, turned)
    });
    assert_eq!(turned.dims(), [3, 0]);
}

#[test]
fn results_repeat_and_nest() {
    let mut b = Builder::new("repeat");
    let x = b
        .parameter(0, HloShape::array(DataType::FLOAT, &[2]), "x")
        .unwrap();
    let pair = HloShape::Tuple(vec![
        HloShape::array(DataType::FLOAT, &[2]),
        HloShape::array(DataType::INT32, &[]),
    ]);
    let tuple = b.parameter(1, pair, "pair").unwrap();
    let second = b.get_tuple_element(tuple, 1).unwrap();
    let counted = b.iota(DataType::INT32, &[3], 0).unwrap();
    let seven = b.constant_scalar(7i64).unwrap();
    let row = b.reshape(x, &[1, 2]).unwrap();
    let inner = b.tuple(&[x, row]).unwrap();
    let root = b.tuple(&[inner, x, second, counted, seven]).unwrap();
    let inputs = vec![
        tensor(&[2], &[1.0f32, 2.0]),
        tensor(&[2], &[3.0f32, 4.0]),
        tensor(&[], &[5i32]),
    ];
    let results = run(&b.finish(root).unwrap(), inputs);
    assert_eq!(results.len(), 6);
    assert_eq!(results[1].dims(), [1, 2]);
    assert!(
        results[..3]
            .iter()
            .all(|result| result.as_slice::<f32>().unwrap() == [1.0, 2.0])
    );
    assert_eq!(results[3].as_slice::<i32>().unwrap(), [5]);
    assert_eq!(results[4].as_slice::<i32>().unwrap(), [0, 1, 2]);
    assert_eq!(results[5].as_slice::<i64>().unwrap(), [7]);
}

#[test]
fn inputs_are_checked_and_shared_ones_are_kept() {
    let mut b = Builder::new("update");
    let x = b
        .parameter(0, ArrayShape::new(DataType::INT32, &[3]), "x")
        .unwrap();
    let one = b.constant(tensor(&[1], &[9i32])).unwrap();
    let at = b.constant_scalar(1i32).unwrap();
    let root = b.dynamic_update_slice(x, one, &[at]).unwrap();
    let program = Program::compile(&b.finish(root).unwrap()).unwrap();
    let pool = ThreadPool::serial();
    let shared = tensor(&[3], &[1i32, 2, 3]);
    let result = program.run(pool, vec![shared.clone()]).unwrap().remove(0);
    assert_eq!(shared.as_slice::<i32>().unwrap(), [1, 2, 3]);
    assert_eq!(result.as_slice::<i32>().unwrap(), [1, 9, 3]);
    let address = result.data_ptr();
    assert_eq!(program.run(pool, vec![result]).unwrap()[0].data_ptr(), address);
    let refused = [
        vec![],
        vec![tensor(&[2], &[1i32, 2])],
        vec![tensor(&[3], &[1.0f32; 3])],
    ];
    for inputs in refused {
        assert_eq!(
            program.run(pool, inputs).unwrap_err().code(),
            Code::InvalidArgument
        );
    }
}

#[test]
fn initial_values_that_are_not_neutral_count() {
    let x = tensor(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]);
    let result = evaluate(&[x, tensor(&[], &[10.0f32])], |b, p| {
        let add = b.reducer(Opcode::Add, DataType::FLOAT)?;
        b.reduce(&[p[0]], &[p[1]], add, &[0])
    });
    assert_eq!(result.as_slice::<f32>().unwrap(), [14.0, 16.0]);
}

#[test]
fn large_transposes_meet_in_a_fusion() {
    let values: Vec<f32> = (0..120 * 130).map(|i| i as f32).collect();
    let x = tensor(&[120, 130], &values);
    let y = tensor(&[130, 120], &values);
    let result = evaluate(&[x, y], |b, p| {
        let turned = b.transpose(p[0], &[1, 0])?;
        let double = b.add(turned, turned)?;
        b.subtract(double, p[1])
    });
    let result = result.as_slice::<f32>().unwrap();
    for (place, &value) in result.iter().enumerate() {
        let (row, column) = (place / 120, place % 120);
        assert_eq!(value, 2.0 * (column * 130 + row) as f32 - place as f32);
    }
}

#[test]
fn small_types_are_computed_wider() {
    let x: Vec<Int4> = [7, -8, 3].into_iter().map(Int4::from_i32).collect();
    let sum = evaluate(&[tensor(&[3], &x)], |b, p| b.add(p[0], p[0]));
    let sum: Vec<i32> = sum
        .as_slice::<Int4>()
        .unwrap()
        .iter()
        .map(|x| x.to_i32())
        .collect();
    assert_eq!(sum, [-2, 0, 6]);
    let halves = tensor(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0].map(f16::from_f32));
    let product = evaluate(&[halves.clone(), halves], |b, p| {
        b.dot_general(p[0], p[1], DotDims::matmul(false, false), None)
    });
    let product: Vec<f32> = product
        .as_slice::<f16>()
        .unwrap()
        .iter()
        .map(|x| x.to_f32())
        .collect();
    assert_eq!(product, [7.0, 10.0, 15.0, 22.0]);
    let wide = evaluate(
        &[tensor(&[1, 2], &[100i8, 100]), tensor(&[2, 1], &[100i8, 100])],
        |b, p| b.dot_general(p[0], p[1], DotDims::matmul(false, false), Some(DataType::INT32)),
    );
    assert_eq!(wide.as_slice::<i32>().unwrap(), [20_000]);
}

#[test]
fn gathers_with_batches_and_scatters_at_the_edge() {
    let x = tensor(&[2, 3], &[1i32, 2, 3, 4, 5, 6]);
    let taken = evaluate(&[x.clone(), tensor(&[2, 2], &[2i64, 0, 1, 9])], |b, p| {
        let dims = GatherDims {
            collapsed_slice_dims: [1].into_iter().collect(),
            start_index_map: [1].into_iter().collect(),
            operand_batching_dims: [0].into_iter().collect(),
            start_indices_batching_dims: [0].into_iter().collect(),
            index_vector_dim: 2,
            slice_sizes: [1, 1].into_iter().collect(),
            ..GatherDims::default()
        };
        b.gather(p[0], p[1], dims)
    });
    assert_eq!(taken.as_slice::<i32>().unwrap(), [3, 1, 5, 6]);
    // A window that sticks out is dropped as a whole.
    let updated = evaluate(
        &[x, tensor(&[2, 1], &[1i32, 2]), tensor(&[2, 2, 2], &[10i32; 8])],
        |b, p| {
            let second = b.computation("second", |b| {
                let scalar = ArrayShape::scalar(DataType::INT32);
                b.parameter(0, scalar.clone(), "old")?;
                b.parameter(1, scalar, "new")
            })?;
            let dims = ScatterDims {
                update_window_dims: [1, 2].into_iter().collect(),
                scatter_dims_to_operand_dims: [1].into_iter().collect(),
                index_vector_dim: 1,
                ..ScatterDims::default()
            };
            b.scatter(&[p[0]], p[1], &[p[2]], dims, second)
        },
    );
    assert_eq!(updated.as_slice::<i32>().unwrap(), [1, 10, 10, 4, 10, 10]);
}

#[test]
fn branches_with_tuples_and_checks_in_loops() {
    let text = r#"
%positive (n: s32[]) -> (s32[], pred[]) {
  %n = s32[] parameter(0)
  %t = pred[] constant(true)
  ROOT %r = (s32[], pred[]) tuple(%n, %t)
}
%negative (n: s32[]) -> (s32[], pred[]) {
  %n = s32[] parameter(0)
  %m = s32[] negate(%n)
  %f = pred[] constant(false)
  ROOT %r = (s32[], pred[]) tuple(%m, %f)
}
%continue (s: (s32[], f32[2])) -> pred[] {
  %s = (s32[], f32[2]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %three = s32[] constant(3)
  ROOT %r = pred[] compare(%i, %three), direction=LT
}
%body (s: (s32[], f32[2])) -> (s32[], f32[2]) {
  %s = (s32[], f32[2]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[2] get-tuple-element(%s), index=1
  %limit = s32[] constant(2)
  %fine = pred[] compare(%i, %limit), direction=LT
  %c = () check(%fine, %i), code=OUT_OF_RANGE, message="turn {0}{index}"
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %r = (s32[], f32[2]) tuple(%next, %x)
}
ENTRY %e () -> ((s32[], pred[]), (s32[], f32[2])) {
  %n = s32[] parameter(0)
  %x = f32[2] parameter(1)
  %zero = s32[] constant(0)
  %p = pred[] compare(%n, %zero), direction=GE
  %c = (s32[], pred[]) conditional(%p, %n, %n), branch_computations={%positive, %negative}
  %start = s32[] get-tuple-element(%c), index=0
  %s = (s32[], f32[2]) tuple(%start, %x)
  %w = (s32[], f32[2]) while(%s), condition=%continue, body=%body
  ROOT %r = ((s32[], pred[]), (s32[], f32[2])) tuple(%c, %w)
}
"#;
    let program = Program::compile(&parse(text).unwrap()).unwrap();
    let start = |n: i32| {
        program.run(
            ThreadPool::serial(),
            vec![tensor(&[], &[n]), tensor(&[2], &[1.0f32, 2.0])],
        )
    };
    let results = start(-5).unwrap();
    assert_eq!(results[0].as_slice::<i32>().unwrap(), [5]);
    assert_eq!(results[1].as_slice::<Bool>().unwrap(), [Bool::FALSE]);
    assert_eq!(results[2].as_slice::<i32>().unwrap(), [5]);
    assert_eq!(results[3].as_slice::<f32>().unwrap(), [1.0, 2.0]);
    let error = start(0).unwrap_err();
    assert_eq!((error.code(), error.message()), (Code::OutOfRange, "turn 2"));
}

#[test]
fn errors_name_the_node() {
    let mut b = Builder::new("named");
    let x = b
        .parameter(0, ArrayShape::new(DataType::BOOL, &[1]), "x")
        .unwrap();
    b.set_node(Some("scope/Assert".into()));
    b.check(x, Code::InvalidArgument, "no").unwrap();
    let program = Program::compile(&b.finish(x).unwrap()).unwrap();
    let error = program
        .run(ThreadPool::serial(), vec![tensor(&[1], &[Bool::FALSE])])
        .unwrap_err();
    assert_eq!(error.message(), "no\n\t [[{{node scope/Assert}}]]");
}

#[test]
fn sorting_an_outer_axis() {
    let result = evaluate(&[tensor(&[3, 2], &[3i32, 1, 1, 3, 2, 2])], |b, p| {
        let before = b.computation("before", |b| {
            let scalar = ArrayShape::scalar(DataType::INT32);
            let (x, y) = (b.parameter(0, scalar.clone(), "x")?, b.parameter(1, scalar, "y")?);
            b.compare(Direction::Lt, x, y)
        })?;
        b.sort(&[p[0]], 0, before, true)
    });
    assert_eq!(result.as_slice::<i32>().unwrap(), [1, 1, 2, 2, 3, 3]);
}

#[test]
fn many_instructions_compile_and_run() {
    // Deep and wide: several groups, no recursion.
    let mut b = Builder::new("long");
    let x = b
        .parameter(0, ArrayShape::new(DataType::FLOAT, &[8]), "x")
        .unwrap();
    let mut value = x;
    for turn in 0..20_000 {
        value = if turn % 2 == 0 {
            b.add(value, x).unwrap()
        } else {
            b.subtract(value, x).unwrap()
        };
    }
    let module = b.finish(value).unwrap();
    let result = run(&module, vec![tensor(&[8], &[1.5f32; 8])]).remove(0);
    assert_eq!(result.as_slice::<f32>().unwrap(), [1.5; 8]);
}
