//! `StringFormat`: summaries of tensors in a template.

use ff_op::{Attrs, Gradient, Kernel, KernelContext, Op};
use ff_tensor::{Result, Shape, Tensor, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "StringFormat",
    shape: |context| {
        count(context.attrs(), context.num_inputs())?;
        ff_op::shapes::scalar(context)
    },
    kernels: &[Kernel::native(format)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
}];

/// How often the template has the placeholder, which is once for each input. INVALID_ARGUMENT otherwise.
fn count(attrs: &Attrs, inputs: usize) -> Result<usize> {
    let (template, placeholder) = (attrs.string("template")?, attrs.string("placeholder")?);
    let count = if placeholder.is_empty() {
        0
    } else {
        template.matches(placeholder).count()
    };
    ensure!(
        count == inputs,
        InvalidArgument,
        "num placeholders in template and num inputs must match: {count} vs. {inputs}"
    );
    Ok(count)
}

fn format(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let count = count(attrs, context.num_inputs())?;
    let (template, placeholder) = (attrs.string("template")?, attrs.string("placeholder")?);
    let summarize = attrs.int("summarize")?;
    let mut parts = template.split(placeholder);
    let mut text = match count {
        0 => template.to_string(),
        _ => parts.next().unwrap_or("").to_string(),
    };
    for (index, part) in (0..count).zip(parts) {
        text.push_str(&context.input(index)?.summarize_ends(summarize));
        text.push_str(part);
    }
    let output = Tensor::from_strings(Shape::scalar(), vec![text.into()])?;
    context.set_output(0, output)
}

crate::op_cases! {
    three_tensors: Case::op("StringFormat").attr("template", "a {} b {} c {}").attr("placeholder", "{}")
        .input(vector(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9])).input(strings(&[], &["s"])).input(vector(&[1.5f32]))
        .gives(strings(&[], &["a [0 1 2 ... 7 8 9] b \"s\" c [1.5]"]));
    nothing: Case::op("StringFormat").attr("template", "plain").attr("T", Vec::<DataType>::new())
        .gives(strings(&[], &["plain"]));
    too_few: Case::op("StringFormat").attr("template", "%s %s").input(scalar(1)).fails(Code::InvalidArgument);
}
