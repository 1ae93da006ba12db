//! Sparse matrices by compressed rows, made and read in one step: values as the reference gives them.

use crate::testing::{Steps, scalar, t, vector};
use ff_op::Attrs;
use ff_tensor::{Code, Complex64, DataType, Tensor};

fn typed(dtype: DataType) -> Attrs {
    Attrs::new().with("type", dtype)
}

fn none() -> Attrs {
    Attrs::new()
}

/// `a` is 2 by 3, `b` 3 by 2, `s` symmetric; `batch` is `a` and its double.
fn steps() -> Steps {
    let a = [1.0f32, 0.0, 2.0, 0.0, 3.0, 0.0];
    let double: Vec<f32> = a
        .iter()
        .chain(&a)
        .enumerate()
        .map(|(i, x)| if i < 6 { *x } else { 2.0 * x })
        .collect();
    let s = [
        4.0f64, 1.0, 0.0, 0.0, 1.0, 5.0, 0.0, 2.0, 0.0, 0.0, 3.0, 0.0, 0.0, 2.0, 0.0, 6.0,
    ];
    let places = [0i64, 0, 0, 1, 1, 0, 1, 1, 1, 3, 2, 2, 3, 1, 3, 3];
    Steps::new()
        .let_be("dense", t(&[2, 3], &a))
        .let_be("places", t(&[3, 2], &[0i64, 0, 0, 2, 1, 1]))
        .node("a", "DenseToCSRSparseMatrix", &["dense", "places"], none())
        .let_be("values", vector(&[1.0f32, 2.0, 1.0, -0.5]))
        .let_be("b_places", t(&[4, 2], &[0i64, 0, 0, 1, 1, 1, 2, 0]))
        .let_be("b_shape", vector(&[3i64, 2]))
        .node(
            "b",
            "SparseTensorToCSRSparseMatrix",
            &["b_places", "values", "b_shape"],
            none(),
        )
        .let_be("s_dense", t(&[4, 4], &s))
        .let_be("s_places", t(&[8, 2], &places))
        .node("s", "DenseToCSRSparseMatrix", &["s_dense", "s_places"], none())
        .let_be("both", t(&[2, 2, 3], &double))
        .let_be(
            "both_places",
            t(
                &[6, 3],
                &[0i64, 0, 0, 0, 0, 2, 0, 1, 1, 1, 0, 0, 1, 0, 2, 1, 1, 1],
            ),
        )
        .node(
            "batch",
            "DenseToCSRSparseMatrix",
            &["both", "both_places"],
            none(),
        )
        .let_be("first", scalar(0i32))
        .let_be("second", scalar(1i32))
}

trait Parts {
    fn has(self, matrix: &str, number: &str, rows: &[i32], columns: &[i32], values: Tensor) -> Steps;
}

impl Parts for Steps {
    fn has(self, matrix: &str, number: &str, rows: &[i32], columns: &[i32], values: Tensor) -> Steps {
        let attrs = typed(values.dtype());
        self.node("parts", "CSRSparseMatrixComponents", &[matrix, number], attrs)
            .gives("parts:0", vector(rows))
            .gives("parts:1", vector(columns))
            .gives("parts:2", values)
    }
}

#[test]
fn forms() {
    steps()
        .has("a", "first", &[0, 2, 3], &[0, 2, 1], vector(&[1.0f32, 2.0, 3.0]))
        .has(
            "batch",
            "second",
            &[0, 2, 3],
            &[0, 2, 1],
            vector(&[2.0f32, 4.0, 6.0]),
        )
        .node(
            "dense_again",
            "CSRSparseMatrixToDense",
            &["batch"],
            typed(DataType::FLOAT),
        )
        .gives(
            "dense_again",
            t(
                &[2, 2, 3],
                &[1.0f32, 0.0, 2.0, 0.0, 3.0, 0.0, 2.0, 0.0, 4.0, 0.0, 6.0, 0.0],
            ),
        )
        .node(
            "sparse_again",
            "CSRSparseMatrixToSparseTensor",
            &["batch"],
            typed(DataType::FLOAT),
        )
        .gives(
            "sparse_again:0",
            t(
                &[6, 3],
                &[0i64, 0, 0, 0, 0, 2, 0, 1, 1, 1, 0, 0, 1, 0, 2, 1, 1, 1],
            ),
        )
        .gives("sparse_again:1", vector(&[1.0f32, 2.0, 3.0, 2.0, 4.0, 6.0]))
        .gives("sparse_again:2", vector(&[2i64, 2, 3]))
        .node("count", "SparseMatrixNNZ", &["batch"], none())
        .gives("count", vector(&[3i32, 3]))
        .node("count_of_one", "SparseMatrixNNZ", &["a"], none())
        .gives("count_of_one", scalar(3i32))
        .node("zeros", "SparseMatrixZeros", &["b_shape"], typed(DataType::FLOAT))
        .has("zeros", "first", &[0, 0, 0, 0], &[], vector::<f32>(&[]))
        .fails(
            "CSRSparseMatrixToDense",
            &["a"],
            typed(DataType::DOUBLE),
            Code::InvalidArgument,
        )
        .fails(
            "CSRSparseMatrixComponents",
            &["a", "second"],
            typed(DataType::FLOAT),
            Code::InvalidArgument,
        )
        .let_be("outside", t(&[1, 2], &[0i64, 3]))
        .fails(
            "DenseToCSRSparseMatrix",
            &["dense", "outside"],
            none(),
            Code::InvalidArgument,
        );
}

#[test]
fn transposed() {
    steps()
        .node(
            "turned",
            "SparseMatrixTranspose",
            &["batch"],
            typed(DataType::FLOAT),
        )
        .has(
            "turned",
            "second",
            &[0, 1, 2, 3],
            &[0, 1, 0],
            vector(&[2.0f32, 6.0, 4.0]),
        )
        .let_be(
            "complex",
            t(&[1, 2], &[Complex64::new(1.0, 2.0), Complex64::new(0.0, 0.0)]),
        )
        .let_be("corner", t(&[1, 2], &[0i64, 0]))
        .node("c", "DenseToCSRSparseMatrix", &["complex", "corner"], none())
        .node(
            "conjugate",
            "SparseMatrixTranspose",
            &["c"],
            typed(DataType::COMPLEX64).with("conjugate", true),
        )
        .has(
            "conjugate",
            "first",
            &[0, 1, 1],
            &[0],
            vector(&[Complex64::new(1.0, -2.0)]),
        )
        .fails(
            "SparseMatrixTranspose",
            &["a"],
            typed(DataType::DOUBLE),
            Code::InvalidArgument,
        );
}

#[test]
fn products() {
    let product = || typed(DataType::FLOAT);
    let b = [1.0f32, 2.0, 0.0, 1.0, -0.5, 0.0];
    steps()
        .node("ab", "SparseMatrixSparseMatMul", &["a", "b"], product())
        .has("ab", "first", &[0, 2, 3], &[0, 1, 1], vector(&[0.0f32, 2.0, 3.0]))
        .node(
            "aa",
            "SparseMatrixSparseMatMul",
            &["a", "a"],
            product().with("transpose_b", true),
        )
        .has("aa", "first", &[0, 1, 2], &[0, 1], vector(&[5.0f32, 9.0]))
        .let_be("b_dense", t(&[3, 2], &b))
        .node("with_dense", "SparseMatrixMatMul", &["a", "b_dense"], none())
        .gives("with_dense", t(&[2, 2], &[0.0f32, 2.0, 0.0, 3.0]))
        .node(
            "turned",
            "SparseMatrixMatMul",
            &["a", "b_dense"],
            none().with("transpose_output", true),
        )
        .gives("turned", t(&[2, 2], &[0.0f32, 0.0, 2.0, 3.0]))
        .node(
            "squares",
            "SparseMatrixMatMul",
            &["a", "dense"],
            none().with("transpose_a", true),
        )
        .gives(
            "squares",
            t(&[3, 3], &[1.0f32, 0.0, 2.0, 0.0, 9.0, 0.0, 2.0, 0.0, 4.0]),
        )
        .let_be("b_turned", t(&[2, 3], &[1.0f32, 0.0, -0.5, 2.0, 1.0, 0.0]))
        .node(
            "with_turned",
            "SparseMatrixMatMul",
            &["a", "b_turned"],
            none().with("adjoint_b", true),
        )
        .gives("with_turned", t(&[2, 2], &[0.0f32, 2.0, 0.0, 3.0]))
        .fails(
            "SparseMatrixMatMul",
            &["a", "dense"],
            none(),
            Code::InvalidArgument,
        )
        .fails(
            "SparseMatrixMatMul",
            &["batch", "b_dense"],
            none(),
            Code::InvalidArgument,
        )
        .fails(
            "SparseMatrixSparseMatMul",
            &["batch", "b"],
            product(),
            Code::InvalidArgument,
        );
}

#[test]
fn factors() {
    let plain = [
        2.0f64,
        0.5,
        2.179449471770337,
        1.7320508075688772,
        0.917662935482247,
        2.2710998958306754,
    ];
    let moved = [
        2.449489742783178f64,
        0.8164965809277261,
        2.0816659994661326,
        0.4803844614152614,
        1.941450686788302,
        1.7320508075688772,
    ];
    let cholesky = "SparseMatrixSparseCholesky";
    steps()
        .let_be("plain", vector(&[0, 1, 2, 3]))
        .node("l", cholesky, &["s", "plain"], typed(DataType::DOUBLE))
        .has(
            "l",
            "first",
            &[0, 1, 3, 4, 6],
            &[0, 0, 1, 2, 1, 3],
            vector(&plain),
        )
        .let_be("moved", vector(&[3, 1, 0, 2]))
        .node("m", cholesky, &["s", "moved"], typed(DataType::DOUBLE))
        .has(
            "m",
            "first",
            &[0, 1, 3, 5, 6],
            &[0, 0, 1, 1, 2, 3],
            vector(&moved),
        )
        .node("order", "SparseMatrixOrderingAMD", &["s"], none())
        .node("n", cholesky, &["s", "order"], typed(DataType::DOUBLE))
        .let_be("repeated", vector(&[0, 1, 1, 3]))
        .fails(
            cholesky,
            &["s", "repeated"],
            typed(DataType::DOUBLE),
            Code::InvalidArgument,
        )
        .let_be("indefinite", t(&[2, 2], &[1.0f64, 2.0, 2.0, 1.0]))
        .let_be("all", t(&[4, 2], &[0i64, 0, 0, 1, 1, 0, 1, 1]))
        .node("i", "DenseToCSRSparseMatrix", &["indefinite", "all"], none())
        .let_be("two", vector(&[0, 1]))
        .fails(
            cholesky,
            &["i", "two"],
            typed(DataType::DOUBLE),
            Code::InvalidArgument,
        )
        .fails("SparseMatrixOrderingAMD", &["a"], none(), Code::InvalidArgument);
}
