//! Rows in floating point for ops that only move elements, so that their gradients are judged, and rows of the
//! ops that have no others.

use crate::testing::*;
use ff_tensor::{DataType, PartialShape};

const FLOAT: DataType = DataType::FLOAT;

fn numbered(dims: &[i64]) -> ff_tensor::Tensor {
    counting(FLOAT, dims)
}

crate::op_cases! {
    joined: Case::op("Concat").inputs([scalar(1), numbered(&[2, 1]), numbered(&[2, 3])]).attr("N", 2i64);
    moved_from_batch: Case::op("BatchToSpaceND").inputs([numbered(&[4, 1, 2, 1]), vector(&[2, 2]), t(&[2, 2], &[0, 0, 1, 0])]);
    ensured: Case::op("EnsureShape").input(numbered(&[2, 3])).attr("shape", PartialShape::new(&[-1, 3]));
    expanded: Case::op("ExpandDims").inputs([numbered(&[2, 3]), scalar(1)]);
    filled: Case::op("Fill").inputs([vector(&[2, 3]), scalar(1.5f32)]);
    taken_by_index: Case::op("GatherNd").inputs([numbered(&[2, 3]), t(&[3, 2], &[1, 2, 0, 0, 1, 2])]);
    // A gradient would need a shape of int16, which no op gives.
    taken_by_small_index: Case::op("GatherNd").inputs([numbered(&[2, 3]), t(&[2, 1], &[1i16, 0])]).without_gradient();
    taken_by_small_index_outside: Case::op("GatherNd").inputs([numbered(&[2, 3]), t(&[2, 1], &[1i16, 2])]).fails(Code::InvalidArgument);
    taken_outside: Case::op("GatherNd").inputs([numbered(&[2, 3]), t(&[1, 2], &[1, 3])]).fails(Code::InvalidArgument);
    taken: family(&["Gather"], &[FLOAT, DataType::INT32, DataType::STRING], |op, dtype| {
        Case::op(op).inputs([counting(dtype, &[3, 2]), t(&[2, 2], &[2, 0, 2, 1])])
    });
    taken_along: Case::op("GatherV2").inputs([numbered(&[2, 3]), vector(&[2, 0, 2]), scalar(1)]);
    taken_of_none: Case::op("GatherV2").inputs([numbered(&[2, 3]), vector::<i64>(&[]), scalar(0)]);
    taken_by_batch: Case::op("GatherV2").inputs([numbered(&[2, 3]), t(&[2, 2], &[2, 0, 1, 1]), scalar(1)]).attr("batch_dims", 1i64);
    taken_beyond: Case::op("GatherV2").inputs([numbered(&[2, 3]), vector(&[3]), scalar(1)]).fails(Code::InvalidArgument);
    unchanged: family(&["Identity", "Snapshot", "GuaranteeConst", "PreventGradient"], &[FLOAT], |op, dtype| Case::op(op).input(counting(dtype, &[2, 2])));
    checked: family(&["CheckNumerics", "CheckNumericsV2"], &[FLOAT], |op, dtype| Case::op(op).input(counting(dtype, &[2, 2])).attr("message", "here"));
    checked_in_vain: family(&["CheckNumerics", "CheckNumericsV2"], &[FLOAT], |op, _| {
        Case::op(op).input(vector(&[1f32, f32::INFINITY])).attr("message", "here").fails(Code::InvalidArgument)
    });
    unchanged_all: Case::op("IdentityN").inputs([numbered(&[2]), numbered(&[1, 2])]);
    padded: Case::op("PadV2").inputs([numbered(&[2, 2]), t(&[2, 2], &[1, 0, 0, 2]), scalar(9f32)]);
    reshaped: Case::op("Reshape").inputs([numbered(&[2, 3]), vector(&[3, 2])]);
    reversed: Case::op("ReverseV2").inputs([numbered(&[2, 3]), vector(&[1])]);
    split: Case::op("Split").inputs([scalar(1), numbered(&[2, 6])]).attr("num_split", 3i64);
    split_by_sizes: Case::op("SplitV").inputs([numbered(&[4, 2]), vector(&[1, 3]), scalar(0)]).attr("num_split", 2i64);
    squeezed: Case::op("Squeeze").input(numbered(&[1, 3, 1])).attr("squeeze_dims", vec![0i64]);
    added_without_alias: Case::op("ScatterNdNonAliasingAdd").inputs([numbered(&[3, 2]), t(&[2, 1], &[2, 0]), numbered(&[2, 2])]);
    truths_added: Case::op("ScatterNdNonAliasingAdd")
        .inputs([bools(&[3], &[true, false, false]), t(&[3, 1], &[0, 1, 1]), bools(&[3], &[true, true, false])])
        .gives(bools(&[3], &[true, true, false]));
    added_without_alias_outside: Case::op("ScatterNdNonAliasingAdd").inputs([numbered(&[3, 2]), t(&[1, 1], &[3]), numbered(&[1, 2])]).fails(Code::InvalidArgument);
    added_at: Case::op("TensorScatterAdd").inputs([numbered(&[3, 2]), t(&[2, 1], &[2, 0]), numbered(&[2, 2])]);
    put_at: Case::op("TensorScatterUpdate").inputs([numbered(&[3, 2]), t(&[2, 1], &[2, 0]), numbered(&[2, 2])]);
    put_slice: Case::op("TensorStridedSliceUpdate").inputs([numbered(&[4]), vector(&[0]), vector(&[4]), vector(&[2]), vector(&[7f32, 8.0])]);
    tiled: Case::op("Tile").inputs([numbered(&[2, 2]), vector(&[2, 3])]);
    unpacked: Case::op("Unpack").input(numbered(&[2, 3])).attr("num", 3i64).attr("axis", 1i64);
    nothing: Case::op("NoOp");
    one_hot: Case::op("OneHot").inputs([vector(&[0, 2, -1, 1]), scalar(3), scalar(2f32), scalar(-1f32)]);
    one_hot_first: Case::op("OneHot").inputs([t(&[1, 2], &[1i64, 5]), scalar(2), scalar(7i64), scalar(9i64)]).attr("axis", 0i64);
    one_hot_negative: Case::op("OneHot").inputs([vector(&[0]), scalar(-1), scalar(1f32), scalar(0f32)]).fails(Code::InvalidArgument);
    not_fed: Case::op("PlaceholderV2").attr("dtype", FLOAT).attr("shape", PartialShape::new(&[2])).fails(Code::InvalidArgument);
    assigned_slice: family(&["StridedSliceAssign", "ResourceStridedSliceAssign"], &[FLOAT, DataType::INT64], |op, dtype| {
        Case::op(op).variable(counting(dtype, &[4])).inputs([vector(&[1]), vector(&[4]), vector(&[2]), counting(dtype, &[2])])
    });
    assigned_slice_misfit: family(&["StridedSliceAssign", "ResourceStridedSliceAssign"], &[FLOAT], |op, dtype| {
        Case::op(op).variable(counting(dtype, &[4])).inputs([vector(&[1]), vector(&[4]), vector(&[2]), counting(dtype, &[3])])
            .fails(Code::InvalidArgument)
    });
}
