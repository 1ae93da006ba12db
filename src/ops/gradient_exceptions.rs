//! The gradients that finite differences of single ops cannot check, each with the place where it is checked instead.
//!
//! Unit tests put every other gradient function before finite differences (`testing/gradients.rs`);
//! `cargo xtask coverage --cases` fails when one of them was not.

const FUNCTIONS: &str =
    "calls functions: src/runtime/tests/functional_gradients.rs differentiates graphs with it";
const LISTS: &str = "takes or gives a list: its inverse is its gradient, as the rows of src/ops/list show";
const VARIABLE: &str = "passes the gradient of a variable on as it is";

const SYMMETRIC: &str = "reads one triangle and gives a symmetric gradient, so single elements cannot be moved: \
     src/runtime/tests/op_gradients.rs makes its input symmetric";
const RESAMPLED: &str = "resamples what comes in by the inverse map, as the reference does: an approximation";

const STEPS: &str = "a step function whose gradient, by definition, passes straight through";

const DRAWS: &str =
    "of random numbers: the draw itself jumps where it is rejected, the derivative is RandomGammaGrad's";
const FREE: &str =
    "vectors are determined up to a factor: src/runtime/tests/op_gradients.rs takes their sizes";
const HANDLES: &str =
    "writes to a resource: its inverse is its gradient, as the rows of src/ops/data_flow show";

/// Op and reason.
pub static UNCHECKED_GRADIENTS: &[(&str, &str)] = &[
    ("Case", FUNCTIONS),
    ("If", FUNCTIONS),
    ("PartitionedCall", FUNCTIONS),
    ("StatefulPartitionedCall", FUNCTIONS),
    ("StatelessCase", FUNCTIONS),
    ("StatelessIf", FUNCTIONS),
    ("StatelessWhile", FUNCTIONS),
    ("While", FUNCTIONS),
    ("Cholesky", SYMMETRIC),
    ("ImageProjectiveTransformV2", RESAMPLED),
    ("ImageProjectiveTransformV3", RESAMPLED),
    ("FakeQuantWithMinMaxArgs", STEPS),
    ("FakeQuantWithMinMaxVars", STEPS),
    ("FakeQuantWithMinMaxVarsPerChannel", STEPS),
    ("QuantizeAndDequantize", STEPS),
    ("QuantizeAndDequantizeV2", STEPS),
    ("QuantizeAndDequantizeV3", STEPS),
    ("QuantizeAndDequantizeV4", STEPS),
    ("_If", FUNCTIONS),
    ("_While", FUNCTIONS),
    ("Eig", FREE),
    ("RandomGamma", DRAWS),
    ("SelfAdjointEigV2", SYMMETRIC),
    ("StatelessRandomGammaV2", DRAWS),
    ("StatelessRandomGammaV3", DRAWS),
    ("TensorArrayConcatV3", HANDLES),
    ("TensorArrayGatherV3", HANDLES),
    ("TensorArrayReadV3", HANDLES),
    ("TensorArrayScatterV3", HANDLES),
    ("TensorArraySplitV3", HANDLES),
    ("TensorArrayWriteV3", HANDLES),
    ("ReadVariableOp", VARIABLE),
    ("RefIdentity", VARIABLE),
    ("TensorListConcat", LISTS),
    ("TensorListConcatV2", LISTS),
    ("TensorListFromTensor", LISTS),
    ("TensorListGather", LISTS),
    ("TensorListGetItem", LISTS),
    ("TensorListPopBack", LISTS),
    ("TensorListPushBack", LISTS),
    ("TensorListResize", LISTS),
    ("TensorListScatter", LISTS),
    ("TensorListScatterV2", LISTS),
    ("TensorListSetItem", LISTS),
    ("TensorListSplit", LISTS),
    ("TensorListStack", LISTS),
];
