//! One instruction per row: what the rules accept, and the text of what they refuse.

use crate::parse;

/// A module whose root is `instruction`, over parameters `%a`, `%b`... of these shapes.
fn module(parameters: &[&str], instruction: &str) -> String {
    let mut text = String::from(
        "%add (l: f32[], r: f32[]) -> f32[] {\n  %l.0 = f32[] parameter(0)\n  %r.1 = f32[] parameter(1)\n  \
         ROOT %add.2 = f32[] add(%l.0, %r.1)\n}\nENTRY %e () -> f32[] {\n",
    );
    for (number, shape) in parameters.iter().enumerate() {
        let name = (b'a' + number as u8) as char;
        text.push_str(&format!("  %{name} = {shape} parameter({number})\n"));
    }
    text.push_str(&format!("  ROOT %root = {instruction}\n}}\n"));
    text
}

#[test]
fn accepted() {
    let rows: &[(&[&str], &str)] = &[
        (&["f32[2]", "f32[2]"], "f32[2] add(%a, %b)"),
        (&["c64[2]"], "f32[2] abs(%a)"),
        (&["f32[2]"], "pred[2] is-finite(%a)"),
        (&["pred[]", "f32[2]", "f32[2]"], "f32[2] select(%a, %b, %b)"),
        (&["f32[1,3]"], "f32[4,2,3] broadcast(%a), dimensions={1,2}"),
        (&["f32[5]"], "f32[2] slice(%a), slice={[1:5:3]}"),
        (&["f32[5]", "f32[]"], "f32[7] pad(%a, %b), padding=-1_-1_1"),
        (&["f32[0]", "f32[]"], "f32[3] pad(%a, %b), padding=1_2_5"),
        (
            &["f32[0,3]", "f32[2,3]"],
            "f32[2,3] concatenate(%a, %b), dimensions={0}",
        ),
        (
            &["f32[2,3,4]", "f32[2,4,5]"],
            "f32[2,3,5] dot(%a, %b), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
        ),
        (
            &["s8[2,3]", "s8[3,4]"],
            "s32[2,4] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ),
        (
            &["f32[1,8,8,3]", "f32[3,3,3,16]"],
            "f32[1,4,4,16] convolution(%a, %b), window={size=3x3 stride=2x2 pad=0_1x0_1}, dim_labels=b01f_01io->b01f",
        ),
        (
            &["f32[1,5,4]", "f32[2,1,8]"],
            "f32[1,4,8] convolution(%a, %b), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=4",
        ),
        (
            &["f32[2,3]", "f32[]"],
            "f32[2] reduce(%a, %b), dimensions={1}, to_apply=%add",
        ),
        (
            &["f32[4]", "f32[]"],
            "f32[2] reduce-window(%a, %b), window={size=3}, to_apply=%add",
        ),
        (
            &["f32[2]", "f32[]"],
            "f32[0] reduce-window(%a, %b), window={size=3}, to_apply=%add",
        ),
        (
            &["f32[9,4]", "s32[2,5]"],
            "f32[2,5,4] gather(%a, %b), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,4}",
        ),
        (
            &["f32[3,9,4]", "s32[3,5]"],
            "f32[3,5,4] gather(%a, %b), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,4}",
        ),
        (&["f32[3,5]"], "(f32[3,2], s32[3,2]) topk(%a), k=2, largest=true"),
        (&["f32[4,6]"], "c64[4,4] fft(%a), fft_type=RFFT, fft_length={6}"),
        (
            &["u64[3]"],
            "(u64[3], u32[7]) rng-bit-generator(%a), algorithm=rng_philox",
        ),
        (&["f32[2]"], "u8[2,4] bitcast-convert(%a)"),
        (&["u8[2,4]"], "f32[2] bitcast-convert(%a)"),
        (&["f32[2,3]"], "f32[6] reshape(%a)"),
    ];
    for (parameters, instruction) in rows {
        parse(&module(parameters, instruction)).unwrap_or_else(|error| panic!("{instruction}: {error}"));
    }
}

#[test]
fn refused() {
    let rows: &[(&[&str], &str, &str)] = &[
        (
            &["f32[2]", "f32[3]"],
            "f32[2] add(%a, %b)",
            "same shape and element type",
        ),
        (
            &["f32[2]", "s32[2]"],
            "f32[2] add(%a, %b)",
            "same shape and element type",
        ),
        (&["f32[2]"], "f32[2] add(%a)", "does not take 1 operands"),
        (
            &["s32[2]"],
            "s32[2] exponential(%a)",
            "to be floating-point or complex for exponential",
        ),
        (
            &["f32[2]"],
            "f32[3] negate(%a)",
            "has shape f32[3]{0}, expected f32[2]{0}",
        ),
        (
            &["c64[2]"],
            "pred[2] compare(%a, %a), direction=LT",
            "have no order",
        ),
        (&["s32[2]", "f32[2]"], "f32[2] select(%a, %b, %b)", "must be pred"),
        (
            &["f32[2]"],
            "f32[3,4] broadcast(%a), dimensions={0}",
            "either 1 or equal",
        ),
        (
            &["f32[2]"],
            "f32[2,2] broadcast(%a), dimensions={2}",
            "out of bounds",
        ),
        (&["f32[2,3]"], "f32[5] reshape(%a)", "mismatched element counts"),
        (
            &["f32[2,3]"],
            "f32[2,2] transpose(%a), dimensions={0,0}",
            "repeated",
        ),
        (&["f32[5]"], "f32[5] slice(%a), slice={[1:6]}", "out of bounds"),
        (
            &["f32[5]"],
            "f32[5] slice(%a), slice={[0:5:0]}",
            "must be positive",
        ),
        (
            &["f32[2]", "f32[]"],
            "f32[0] pad(%a, %b), padding=-2_-1",
            "negative size",
        ),
        (
            &["f32[2,2]", "f32[3,3]"],
            "f32[5,2] concatenate(%a, %b), dimensions={0}",
            "Cannot concatenate",
        ),
        (
            &["f32[2,3]", "f32[2,3]"],
            "f32[2,3] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "must be equal in a dot",
        ),
        (
            &["f32[1,5,4]", "f32[2,3,8]"],
            "f32[1,4,8] convolution(%a, %b), window={size=2}, dim_labels=b0f_0io->b0f",
            "feature_group_count",
        ),
        (
            &["s32[2,3]", "s32[]"],
            "s32[2] reduce(%a, %b), dimensions={1}, to_apply=%add",
            "of reduction function add",
        ),
        (
            &["f32[2,3]", "f32[]"],
            "f32[2] reduce(%a, %b), dimensions={2}, to_apply=%add",
            "out of bounds",
        ),
        (
            &["f32[4]", "f32[]"],
            "f32[4] reduce-window(%a, %b), window={size=0}, to_apply=%add",
            "below 1",
        ),
        (
            &["f32[9,4]", "f32[2]"],
            "f32[2,4] gather(%a, %b), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}",
            "must be integral",
        ),
        (
            &["f32[3]"],
            "(f32[4], s32[4]) topk(%a), k=4",
            "does not have 4 elements",
        ),
        (
            &["f32[3,2]"],
            "f32[3,2] cholesky(%a), lower=true",
            "square matrices",
        ),
        (
            &["f32[2]"],
            "f32[2] get-tuple-element(%a), index=0",
            "Expected a tuple",
        ),
        (
            &["f32[2]"],
            "f32[2] call(%a), to_apply=%add",
            "Computation add takes",
        ),
        (
            &["u64[2]"],
            "(u64[2], u32[7]) rng-bit-generator(%a), algorithm=rng_philox",
            "u64[3]",
        ),
        (
            &["s32[2]"],
            "() check(%a), code=INTERNAL, message=\"\"",
            "needs a predicate",
        ),
        (&["f32[2]"], "f32[2] iota(), iota_dimension=1", "out of bounds"),
    ];
    for (parameters, instruction, expected) in rows {
        match parse(&module(parameters, instruction)) {
            Ok(_) => panic!("{instruction} is accepted"),
            Err(error) => assert!(error.message().contains(expected), "{instruction}: {error}"),
        }
    }
}
