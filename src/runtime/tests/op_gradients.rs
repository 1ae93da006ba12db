//! Gradients of factors of matrices, by finite differences of small graphs: inputs are made symmetric or positive first,
//! and results are taken up to the signs that factors leave open. Single ops are judged in src/ops/testing/gradients.rs.

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
