//! Gradients of single ops, by finite differences: each row builds real results from real values.

use ff_graph::{Graph, NodeBuilder, add_gradients};
use ff_op::{AttrValue, OutputRef};
use ff_runtime::{RunRequest, Session, SessionOptions};
use ff_tensor::{DataType, Shape, Tensor};
use parking_lot::Mutex;
use std::sync::Arc;

/// A graph in the making.
struct Net {
    graph: Graph,
    count: usize,
}

type Attr<'a> = (&'a str, AttrValue);

impl Net {
    fn name(&mut self, op: &str) -> String {
        self.count += 1;
        format!("{op}_{}", self.count)
    }

    /// The first outputs of a new node.
    fn outputs(&mut self, op: &str, inputs: &[OutputRef], attrs: &[Attr], count: u32) -> Vec<OutputRef> {
        let mut node = NodeBuilder::new(op, self.name(op));
        for input in inputs {
            node.add_input(*input);
        }
        for (name, value) in attrs {
            node.set_attr(name, value.clone());
        }
        let node = node
            .finish(&mut self.graph)
            .unwrap_or_else(|error| panic!("{op}: {error}"));
        (0..count).map(|index| OutputRef { node, index }).collect()
    }

    fn op(&mut self, op: &str, inputs: &[OutputRef], attrs: &[Attr]) -> OutputRef {
        self.outputs(op, inputs, attrs, 1)[0]
    }

    fn constant(&mut self, value: Tensor) -> OutputRef {
        let attrs = [("dtype", value.dtype().into()), ("value", value.into())];
        self.op("Const", &[], &attrs)
    }

    fn i32s(&mut self, values: &[i32]) -> OutputRef {
        self.constant(Tensor::vector(values).unwrap())
    }

    fn i32(&mut self, value: i32) -> OutputRef {
        self.constant(Tensor::scalar(value).unwrap())
    }

    fn i64s(&mut self, dims: &[i64], values: &[i64]) -> OutputRef {
        self.constant(Tensor::from_slice(Shape::new(dims).unwrap(), values).unwrap())
    }

    /// A complex value of two real ones.
    fn complex(&mut self, real: OutputRef, imaginary: OutputRef) -> OutputRef {
        self.op(
            "Complex",
            &[real, imaginary],
            &[("Tout", DataType::COMPLEX128.into())],
        )
    }

    /// Real and imaginary part.
    fn parts(&mut self, value: OutputRef) -> Vec<OutputRef> {
        let real = [("Tout", DataType::DOUBLE.into())];
        vec![self.op("Real", &[value], &real), self.op("Imag", &[value], &real)]
    }
}

/// Doubles of this shape, all different, of either sign.
fn wave(dims: &[i64], shift: f64) -> Tensor {
    let count = dims.iter().product::<i64>();
    let values: Vec<f64> = (0..count)
        .map(|i| ((i as f64 + shift) * 1.7).sin() + 0.05 * i as f64)
        .collect();
    Tensor::from_slice(Shape::new(dims).unwrap(), &values).unwrap()
}

/// Doubles of this shape above 1/2.
fn positive(dims: &[i64], shift: f64) -> Tensor {
    let values: Vec<f64> = wave(dims, shift)
        .as_slice::<f64>()
        .unwrap()
        .iter()
        .map(|x| x.abs() + 0.5)
        .collect();
    Tensor::from_slice(Shape::new(dims).unwrap(), &values).unwrap()
}

/// Square matrices with a large diagonal.
fn regular(dims: &[i64], shift: f64) -> Tensor {
    let n = dims[dims.len() - 1];
    let values: Vec<f64> = wave(dims, shift)
        .as_slice::<f64>()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(at, x)| {
            if at as i64 % (n * n) / n == at as i64 % n {
                x + 4.0 + at as f64
            } else {
                *x
            }
        })
        .collect();
    Tensor::from_slice(Shape::new(dims).unwrap(), &values).unwrap()
}

/// Compares the gradients of a weighted sum of all results with differences.
fn check(name: &str, values: &[Tensor], build: impl Fn(&mut Net, &[OutputRef]) -> Vec<OutputRef>) {
    let mut net = Net {
        graph: Graph::new(ff_ops::registry()),
        count: 0,
    };
    let inputs: Vec<OutputRef> = values
        .iter()
        .map(|value| {
            let attrs = [
                ("dtype", DataType::DOUBLE.into()),
                ("shape", value.partial_shape().into()),
            ];
            net.op("Placeholder", &[], &attrs)
        })
        .collect();
    let results = build(&mut net, &inputs);
    let found = add_gradients(&mut net.graph, &results, &inputs, &[], None)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let gradients: Vec<OutputRef> = found
        .into_iter()
        .map(|gradient| gradient.unwrap_or_else(|| panic!("{name}: nothing flows")))
        .collect();
    let session = Session::new(Arc::new(Mutex::new(net.graph)), SessionOptions::default()).unwrap();
    let run = |values: &[Tensor], fetches: &[OutputRef]| {
        let feeds: Vec<_> = inputs.iter().copied().zip(values.iter().cloned()).collect();
        let request = RunRequest {
            feeds: &feeds,
            fetches,
            targets: &[],
            options: None,
            want_metadata: false,
        };
        session
            .run(&request)
            .unwrap_or_else(|error| panic!("{name}: {error}"))
            .outputs
    };
    let total = |values: &[Tensor]| -> f64 {
        let results = run(values, &results);
        results
            .iter()
            .map(|result| result.as_slice::<f64>().unwrap().iter().sum::<f64>())
            .sum()
    };
    let gradients = run(values, &gradients);
    for (index, gradient) in gradients.iter().enumerate() {
        assert_eq!(
            gradient.dims(),
            values[index].dims(),
            "{name}: shape of gradient {index}"
        );
        for at in 0..gradient.num_elements() {
            let moved = |step: f64| {
                let mut values = values.to_vec();
                let mut elements = values[index].as_slice::<f64>().unwrap().to_vec();
                elements[at] += step;
                values[index] = Tensor::from_slice(values[index].shape().clone(), &elements).unwrap();
                total(&values)
            };
            let step = 1e-5;
            let expected = (moved(step) - moved(-step)) / (2.0 * step);
            let got = gradient.as_slice::<f64>().unwrap()[at];
            assert!(
                (got - expected).abs() <= 1e-6 * expected.abs().max(1.0) * 10.0,
                "{name}: gradient {index} at {at}: {got}, by differences {expected}"
            );
        }
    }
}

/// The squares, so that what comes in differs from element to element.
fn squared(net: &mut Net, results: Vec<OutputRef>) -> Vec<OutputRef> {
    results
        .into_iter()
        .map(|result| net.op("Square", &[result], &[]))
        .collect()
}

#[test]
fn functions_of_one_number() {
    for op in [
        "BesselI0",
        "BesselI0e",
        "BesselI1",
        "BesselI1e",
        "BesselJ0",
        "BesselJ1",
        "BesselK0",
        "BesselK0e",
        "BesselK1",
        "BesselK1e",
        "BesselY0",
        "BesselY1",
        "Dawsn",
        "Expint",
        "FresnelCos",
        "FresnelSin",
        "Spence",
        "Digamma",
    ] {
        check(op, &[positive(&[5], 0.3)], |net, x| {
            let y = net.op(op, x, &[]);
            squared(net, vec![y])
        });
    }
    for op in ["Ndtri", "Erfinv"] {
        let value = Tensor::vector(&[0.2, 0.45, 0.7]).unwrap();
        check(op, &[value], |net, x| vec![net.op(op, x, &[])]);
    }
}

#[test]
fn functions_of_several_numbers() {
    for op in ["Xlogy", "Xlog1py", "Xdivy", "Igamma", "Igammac"] {
        check(op, &[positive(&[2, 1], 0.0), positive(&[3], 1.0)], |net, x| {
            let y = net.op(op, x, &[]);
            squared(net, vec![y])
        });
    }
    for op in ["Zeta", "Polygamma"] {
        check(op, &[positive(&[3], 1.0)], |net, x| {
            let order = net.constant(Tensor::from_slice(Shape::new(&[2, 1]).unwrap(), &[2.0, 3.0]).unwrap());
            vec![net.op(op, &[order, x[0]], &[])]
        });
    }
    let x = Tensor::vector(&[0.2, 0.45, 0.7]).unwrap();
    check("Betainc", &[x], |net, x| {
        let (a, b) = (
            net.constant(Tensor::scalar(1.5).unwrap()),
            net.constant(Tensor::scalar(2.5).unwrap()),
        );
        vec![net.op("Betainc", &[a, b, x[0]], &[])]
    });
    check("Cross", &[wave(&[2, 3], 0.0), wave(&[2, 3], 5.0)], |net, x| {
        let y = net.op("Cross", x, &[]);
        squared(net, vec![y])
    });
}

#[test]
fn scans() {
    for op in ["Cumsum", "Cumprod", "CumulativeLogsumexp"] {
        for (exclusive, reverse) in [(false, false), (true, false), (false, true)] {
            if op == "CumulativeLogsumexp" && exclusive {
                continue; // Its first element is minus infinity.
            }
            check(op, &[positive(&[4, 2], 0.0)], |net, x| {
                let axis = net.i32(0);
                let attrs = [("exclusive", exclusive.into()), ("reverse", reverse.into())];
                let y = net.op(op, &[x[0], axis], &attrs);
                squared(net, vec![y])
            });
        }
    }
}

#[test]
fn movements() {
    check("Roll", &[wave(&[3, 2], 0.0)], |net, x| {
        let (shift, axis) = (net.i32s(&[2]), net.i32s(&[0]));
        let y = net.op("Roll", &[x[0], shift, axis], &[]);
        squared(net, vec![y])
    });
    check("ReverseSequence", &[wave(&[2, 4], 0.0)], |net, x| {
        let lengths = net.i32s(&[3, 1]);
        let y = net.op("ReverseSequence", &[x[0], lengths], &[("seq_dim", 1i64.into())]);
        squared(net, vec![y])
    });
    for (op, dims) in [
        ("Diag", vec![3i64]),
        ("DiagPart", vec![3, 3]),
        ("MatrixDiag", vec![2, 3]),
    ] {
        check(op, &[wave(&dims, 0.0)], |net, x| {
            let y = net.op(op, x, &[]);
            squared(net, vec![y])
        });
    }
    check("MatrixDiagPart", &[wave(&[2, 3, 4], 0.0)], |net, x| {
        let y = net.op("MatrixDiagPart", x, &[]);
        squared(net, vec![y])
    });
    check(
        "MatrixSetDiagV3",
        &[wave(&[3, 4], 0.0), wave(&[2, 3], 9.0)],
        |net, x| {
            let band = net.i32s(&[-1, 0]);
            let y = net.op("MatrixSetDiagV3", &[x[0], x[1], band], &[]);
            squared(net, vec![y])
        },
    );
    check("MatrixDiagPartV3", &[wave(&[3, 4], 0.0)], |net, x| {
        let (band, zero) = (net.i32s(&[-1, 1]), net.constant(Tensor::scalar(0.0).unwrap()));
        let y = net.op("MatrixDiagPartV3", &[x[0], band, zero], &[]);
        squared(net, vec![y])
    });
    check("MatrixBandPart", &[wave(&[3, 4], 0.0)], |net, x| {
        let (low, high) = (net.i32(1), net.i32(0));
        let y = net.op("MatrixBandPart", &[x[0], low, high], &[]);
        squared(net, vec![y])
    });
    check("DynamicPartition", &[wave(&[3, 2], 0.0)], |net, x| {
        let rows = net.i32s(&[1, 0, 1]);
        let y = net.outputs(
            "DynamicPartition",
            &[x[0], rows],
            &[("num_partitions", 2i64.into())],
            2,
        );
        squared(net, y)
    });
    check("GatherNd", &[wave(&[3, 2], 0.0)], |net, x| {
        let places = net.i64s(&[3, 2], &[0, 1, 2, 0, 0, 1]);
        let y = net.op("GatherNd", &[x[0], places], &[]);
        squared(net, vec![y])
    });
}

#[test]
fn choices() {
    check("TopKV2", &[wave(&[2, 5], 0.0)], |net, x| {
        let k = net.i32(3);
        let y = net.op("TopKV2", &[x[0], k], &[]);
        squared(net, vec![y])
    });
    check("NthElement", &[wave(&[2, 5], 0.0)], |net, x| {
        let n = net.i32(2);
        let y = net.op("NthElement", &[x[0], n], &[]);
        squared(net, vec![y])
    });
    for op in [
        "SegmentSum",
        "SegmentMean",
        "SegmentProd",
        "SegmentMax",
        "SegmentMin",
    ] {
        check(op, &[wave(&[4, 2], 0.0)], |net, x| {
            let segments = net.i32s(&[0, 0, 2, 2]);
            let y = net.op(op, &[x[0], segments], &[]);
            squared(net, vec![y])
        });
    }
    for op in [
        "UnsortedSegmentSum",
        "UnsortedSegmentProd",
        "UnsortedSegmentMax",
        "UnsortedSegmentMin",
    ] {
        check(op, &[wave(&[4, 2], 0.0)], |net, x| {
            let (segments, count) = (net.i32s(&[1, -1, 0, 1]), net.i32(2));
            let y = net.op(op, &[x[0], segments, count], &[]);
            squared(net, vec![y])
        });
    }
    for op in ["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"] {
        check(op, &[wave(&[3, 2], 0.0)], |net, x| {
            let (indices, segments) = (net.i32s(&[0, 2, 0, 1]), net.i32s(&[0, 0, 1, 1]));
            let y = net.op(op, &[x[0], indices, segments], &[]);
            squared(net, vec![y])
        });
    }
}

#[test]
fn transforms() {
    for (op, dims) in [
        ("FFT", vec![2i64, 5]),
        ("IFFT2D", vec![3, 4]),
        ("FFT3D", vec![2, 3, 2]),
    ] {
        check(op, &[wave(&dims, 0.0), wave(&dims, 20.0)], |net, x| {
            let z = net.complex(x[0], x[1]);
            let y = net.op(op, &[z], &[]);
            let parts = net.parts(y);
            squared(net, parts)
        });
    }
    for (op, lengths) in [("RFFT", vec![6]), ("RFFT", vec![5]), ("RFFT2D", vec![2, 5])] {
        check(op, &[wave(&[2, 6], 0.0)], |net, x| {
            let lengths = net.i32s(&lengths);
            let attrs = [
                ("Treal", DataType::DOUBLE.into()),
                ("Tcomplex", DataType::COMPLEX128.into()),
            ];
            let y = net.op(op, &[x[0], lengths], &attrs);
            let parts = net.parts(y);
            squared(net, parts)
        });
    }
    for (op, lengths) in [("IRFFT", vec![6]), ("IRFFT", vec![5]), ("IRFFT2D", vec![2, 6])] {
        check(op, &[wave(&[2, 4], 0.0), wave(&[2, 4], 20.0)], |net, x| {
            let z = net.complex(x[0], x[1]);
            let lengths = net.i32s(&lengths);
            let attrs = [
                ("Treal", DataType::DOUBLE.into()),
                ("Tcomplex", DataType::COMPLEX128.into()),
            ];
            let y = net.op(op, &[z, lengths], &attrs);
            squared(net, vec![y])
        });
    }
    check(
        "Angle and ComplexAbs",
        &[positive(&[3], 0.0), wave(&[3], 20.0)],
        |net, x| {
            let z = net.complex(x[0], x[1]);
            let z = net.op("Conj", &[z], &[]);
            let real = [("Tout", DataType::DOUBLE.into())];
            vec![net.op("Angle", &[z], &real), net.op("ComplexAbs", &[z], &real)]
        },
    );
}

/// `m m^T` plus a multiple of 1.
fn gram(net: &mut Net, m: OutputRef) -> OutputRef {
    let product = net.op("BatchMatMulV2", &[m, m], &[("adj_y", true.into())]);
    let eye = net.constant(
        Tensor::from_slice(
            Shape::new(&[3, 3]).unwrap(),
            &[2., 0., 0., 0., 3., 0., 0., 0., 5.],
        )
        .unwrap(),
    );
    net.op("AddV2", &[product, eye], &[])
}

#[test]
fn factors_of_matrices() {
    check("Cholesky", &[wave(&[2, 3, 3], 0.0)], |net, x| {
        let a = gram(net, x[0]);
        let y = net.op("Cholesky", &[a], &[]);
        squared(net, vec![y])
    });
    for op in ["MatrixInverse", "MatrixDeterminant"] {
        check(op, &[regular(&[2, 2, 2], 0.0)], |net, x| vec![net.op(op, x, &[])]);
    }
    check("LogMatrixDeterminant", &[regular(&[2, 3, 3], 0.0)], |net, x| {
        vec![net.outputs("LogMatrixDeterminant", x, &[], 2)[1]]
    });
    for dims in [[4i64, 3], [3, 3], [2, 4]] {
        check("Qr", &[regular(&dims, 0.0)], |net, x| {
            let y = net.outputs("Qr", x, &[], 2);
            squared(net, y)
        });
    }
    for dims in [[4i64, 3], [3, 3], [2, 4]] {
        check("Svd", &[regular(&dims, 0.0)], |net, x| {
            // Products that do not depend on the signs of the vectors.
            let y = net.outputs("Svd", x, &[], 3);
            let (u, v) = (net.op("Square", &[y[1]], &[]), net.op("Square", &[y[2]], &[]));
            squared(net, vec![y[0], u, v])
        });
    }
    check("Svd without vectors", &[regular(&[4, 3], 0.0)], |net, x| {
        let y = net.op("Svd", x, &[("compute_uv", false.into())]);
        squared(net, vec![y])
    });
    for vectors in [true, false] {
        check("SelfAdjointEigV2", &[wave(&[3, 3], 0.0)], |net, x| {
            let a = gram(net, x[0]);
            let y = net.outputs("SelfAdjointEigV2", &[a], &[("compute_v", vectors.into())], 2);
            let v = if vectors {
                vec![y[0], net.op("Square", &[y[1]], &[])]
            } else {
                vec![y[0]]
            };
            squared(net, v)
        });
    }
    check("Eig", &[regular(&[3, 3], 0.0)], |net, x| {
        let y = net.outputs("Eig", x, &[("Tout", DataType::COMPLEX128.into())], 2);
        let sizes = net.op("ComplexAbs", &[y[1]], &[("Tout", DataType::DOUBLE.into())]);
        let mut parts = net.parts(y[0]);
        parts.push(sizes);
        squared(net, parts)
    });
    check("MatrixSquareRoot", &[wave(&[2, 3, 3], 0.0)], |net, x| {
        let a = gram(net, x[0]);
        let y = net.op("MatrixSquareRoot", &[a], &[]);
        squared(net, vec![y])
    });
}

#[test]
fn systems() {
    for adjoint in [false, true] {
        check(
            "MatrixSolve",
            &[regular(&[3, 3], 0.0), wave(&[3, 2], 9.0)],
            |net, x| {
                let y = net.op("MatrixSolve", x, &[("adjoint", adjoint.into())]);
                squared(net, vec![y])
            },
        );
        for lower in [false, true] {
            let attrs = [("adjoint", adjoint.into()), ("lower", lower.into())];
            check(
                "MatrixTriangularSolve",
                &[regular(&[3, 3], 0.0), wave(&[2, 3, 2], 9.0)],
                |net, x| {
                    let y = net.op("MatrixTriangularSolve", x, &attrs);
                    squared(net, vec![y])
                },
            );
        }
    }
    check(
        "BandedTriangularSolve",
        &[positive(&[2, 4], 0.0), wave(&[4, 2], 9.0)],
        |net, x| {
            let y = net.op("BandedTriangularSolve", x, &[("lower", true.into())]);
            squared(net, vec![y])
        },
    );
    for dims in [[4i64, 3], [2, 3]] {
        check(
            "MatrixSolveLs",
            &[wave(&dims, 0.0), wave(&[dims[0], 2], 9.0)],
            |net, x| {
                let regularizer = net.constant(Tensor::scalar(0.5).unwrap());
                let y = net.op("MatrixSolveLs", &[x[0], x[1], regularizer], &[]);
                squared(net, vec![y])
            },
        );
    }
    let diagonals = [
        wave(&[1, 4], 0.0),
        wave(&[1, 4], 5.0),
        wave(&[1, 4], 9.0),
        wave(&[4, 2], 14.0),
    ];
    check("TridiagonalMatMul", &diagonals, |net, x| {
        let y = net.op("TridiagonalMatMul", x, &[]);
        squared(net, vec![y])
    });
    check(
        "TridiagonalSolve",
        &[wave(&[3, 4], 2.0), wave(&[4, 2], 14.0)],
        |net, x| {
            let y = net.op("TridiagonalSolve", x, &[]);
            squared(net, vec![y])
        },
    );
}

#[test]
fn sparse_tensors() {
    let places = |net: &mut Net| (net.i64s(&[3, 2], &[0, 1, 1, 0, 1, 2]), net.i64s(&[2], &[2, 3]));
    for (adjoint, rows) in [(false, 3i64), (true, 2)] {
        check(
            "SparseTensorDenseMatMul",
            &[wave(&[3], 0.0), wave(&[rows, 2], 9.0)],
            |net, x| {
                let (at, dims) = places(net);
                let y = net.op(
                    "SparseTensorDenseMatMul",
                    &[at, x[0], dims, x[1]],
                    &[("adjoint_a", adjoint.into())],
                );
                squared(net, vec![y])
            },
        );
    }
    for op in ["SparseDenseCwiseMul", "SparseDenseCwiseDiv"] {
        check(op, &[wave(&[3], 0.0), positive(&[2, 1], 9.0)], |net, x| {
            let (at, dims) = places(net);
            let y = net.op(op, &[at, x[0], dims, x[1]], &[]);
            squared(net, vec![y])
        });
    }
    check("SparseAdd", &[wave(&[3], 0.0), wave(&[2], 9.0)], |net, x| {
        let (at, dims) = places(net);
        let (other, zero) = (
            net.i64s(&[2, 2], &[0, 0, 1, 0]),
            net.constant(Tensor::scalar(0.0).unwrap()),
        );
        let y = net.outputs("SparseAdd", &[at, x[0], dims, other, x[1], dims, zero], &[], 2);
        squared(net, vec![y[1]])
    });
    check("SparseReorder", &[wave(&[3], 0.0)], |net, x| {
        let (at, dims) = (net.i64s(&[3, 1], &[2, 0, 1]), net.i64s(&[1], &[3]));
        let y = net.outputs("SparseReorder", &[at, x[0], dims], &[], 2)[1];
        let weights = net.constant(Tensor::vector(&[1.0, 2.0, 4.0]).unwrap());
        vec![net.op("Mul", &[y, weights], &[])]
    });
    check("SparseSlice", &[wave(&[3], 0.0)], |net, x| {
        let (at, dims) = places(net);
        let (start, size) = (net.i64s(&[2], &[1, 0]), net.i64s(&[2], &[1, 2]));
        let y = net.outputs("SparseSlice", &[at, x[0], dims, start, size], &[], 2)[1];
        squared(net, vec![y])
    });
    check("SparseSoftmax", &[wave(&[3], 0.0)], |net, x| {
        let (at, dims) = places(net);
        let y = net.op("SparseSoftmax", &[at, x[0], dims], &[]);
        squared(net, vec![y])
    });
    check("SparseReduceSum", &[wave(&[3], 0.0)], |net, x| {
        let (at, dims) = places(net);
        let axis = net.i32s(&[-1]);
        let y = net.op("SparseReduceSum", &[at, x[0], dims, axis], &[]);
        squared(net, vec![y])
    });
    check(
        "SparseFillEmptyRows",
        &[wave(&[2], 0.0), wave(&[], 9.0)],
        |net, x| {
            let (at, dims) = (net.i64s(&[2, 2], &[3, 0, 1, 2]), net.i64s(&[2], &[4, 3]));
            let y = net.outputs("SparseFillEmptyRows", &[at, x[0], dims, x[1]], &[], 2)[1];
            squared(net, vec![y])
        },
    );
    check(
        "SparseTensorDenseAdd",
        &[wave(&[3], 0.0), wave(&[2, 3], 9.0)],
        |net, x| {
            let (at, dims) = places(net);
            let y = net.op("SparseTensorDenseAdd", &[at, x[0], dims, x[1]], &[]);
            squared(net, vec![y])
        },
    );
    check("SparseToDense", &[wave(&[2], 0.0), wave(&[], 9.0)], |net, x| {
        let (at, dims) = (net.i64s(&[2, 1], &[0, 2]), net.i64s(&[1], &[4]));
        let y = net.op("SparseToDense", &[at, dims, x[0], x[1]], &[]);
        squared(net, vec![y])
    });
}
