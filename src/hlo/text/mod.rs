//! The text form.

mod literal;

pub(crate) use literal::format_element;
