//! Full types of nodes: what outputs are beyond their element types. They go with a node into messages and change nothing else.

use crate::{Graph, Node};
use ff_op::{AttrValue, Attrs, NodeInfo};
use ff_proto::{FullTypeDef, FullTypeId, full_type_def::Attr};
use ff_tensor::DataType;

/// The full type that a node is exported with: the one that was given, or else what its op says of its outputs.
pub(crate) fn full_type_of(graph: &Graph, node: &Node) -> Option<FullTypeDef> {
    match graph
        .find(&node.info.name)
        .and_then(|id| graph.given_full_type(id))
    {
        Some(given) => Some(given.clone()),
        None => full_type_by_op(&node.info),
    }
}

/// The product of what the op's definition says of each output, the node's types in the place of attributes. None when it
/// says nothing of any.
pub(crate) fn full_type_by_op(info: &NodeInfo) -> Option<FullTypeDef> {
    let outputs = &info.op.def.output_arg;
    if outputs
        .iter()
        .all(|output| output.experimental_full_type.is_none())
    {
        return None;
    }
    let of_output = |output: &ff_proto::op_def::ArgDef| {
        let full_type = output.experimental_full_type.as_ref();
        full_type.map_or_else(FullTypeDef::default, |full_type| {
            in_place(full_type, &|name| types_of(&info.attrs, name))
        })
    };
    Some(FullTypeDef {
        type_id: FullTypeId::TftProduct.into(),
        args: outputs.iter().map(of_output).collect(),
        attr: None,
    })
}

/// The types that an attribute holds.
fn types_of(attrs: &Attrs, name: &str) -> Vec<DataType> {
    match attrs.get(name) {
        Some(AttrValue::Type(dtype)) => vec![*dtype],
        Some(AttrValue::Types(types)) => types.to_vec(),
        _ => Vec::new(),
    }
}

/// A full type with types in the place of its variables. A repetition has its part once for each type of a variable.
fn in_place(full_type: &FullTypeDef, types: &dyn Fn(&str) -> Vec<DataType>) -> FullTypeDef {
    match (FullTypeId::try_from(full_type.type_id), &full_type.attr) {
        (Ok(FullTypeId::TftVar), Some(Attr::S(name))) => FullTypeDef {
            type_id: types(name).first().map_or(0, |dtype| of_element(*dtype)),
            ..FullTypeDef::default()
        },
        (Ok(FullTypeId::TftForEach), _) => match (&full_type.args[..], variable(full_type)) {
            ([whole, part, _], Some(repeated)) => FullTypeDef {
                type_id: whole.type_id,
                args: types(repeated)
                    .iter()
                    .map(|dtype| {
                        in_place(part, &|name| match name == repeated {
                            true => vec![*dtype],
                            false => types(name),
                        })
                    })
                    .collect(),
                attr: None,
            },
            _ => full_type.clone(),
        },
        _ => FullTypeDef {
            type_id: full_type.type_id,
            args: full_type.args.iter().map(|arg| in_place(arg, types)).collect(),
            attr: full_type.attr.clone(),
        },
    }
}

/// The variable that a repetition is over.
fn variable(repetition: &FullTypeDef) -> Option<&str> {
    match &repetition.args.last()?.attr {
        Some(Attr::S(name)) => Some(name),
        _ => None,
    }
}

/// The number of the full type of an element; that of no type where there is none.
fn of_element(dtype: DataType) -> i32 {
    let id = match dtype {
        DataType::BOOL => FullTypeId::TftBool,
        DataType::UINT8 => FullTypeId::TftUint8,
        DataType::UINT16 => FullTypeId::TftUint16,
        DataType::UINT32 => FullTypeId::TftUint32,
        DataType::UINT64 => FullTypeId::TftUint64,
        DataType::INT8 => FullTypeId::TftInt8,
        DataType::INT16 => FullTypeId::TftInt16,
        DataType::INT32 => FullTypeId::TftInt32,
        DataType::INT64 => FullTypeId::TftInt64,
        DataType::HALF => FullTypeId::TftHalf,
        DataType::BFLOAT16 => FullTypeId::TftBfloat16,
        DataType::FLOAT => FullTypeId::TftFloat,
        DataType::DOUBLE => FullTypeId::TftDouble,
        DataType::COMPLEX64 => FullTypeId::TftComplex64,
        DataType::COMPLEX128 => FullTypeId::TftComplex128,
        DataType::STRING => FullTypeId::TftString,
        DataType::VARIANT => FullTypeId::TftLegacyVariant,
        _ => FullTypeId::TftUnset,
    };
    id.into()
}
