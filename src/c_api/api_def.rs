//! `TF_ApiDefMap`: how bindings of other languages present ops.

use crate::TF_Status;
use crate::buffer::TF_Buffer;
use crate::ffi::{Array, given};
use crate::guard::{guard, quiet};
use ff_proto::{ApiDef, ApiDefs, OpDef, OpList};
use ff_tensor::{Result, ensure, status};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering};

/// API definitions by op. Any thread may use it at any time.
pub struct TF_ApiDefMap {
    definitions: Mutex<BTreeMap<String, ApiDef>>,
    /// Whether definitions have been given out: from then on they stay.
    is_final: AtomicBool,
}

/// A map with a definition for each op of a serialized `OpList`, as the op itself says. Free it with `TF_DeleteApiDefMap`.
/// NULL with INVALID_ARGUMENT for other bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewApiDefMap(
    op_list_buffer: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_ApiDefMap>> {
    guard(status, || {
        let buffer = given(op_list_buffer.as_deref(), "op_list_buffer")?;
        let ops: OpList = buffer.decode("Unparseable OpList")?;
        let definitions = ops.op.iter().map(|op| (op.name.clone(), of_op(op))).collect();
        Ok(Some(Box::new(TF_ApiDefMap {
            definitions: Mutex::new(definitions),
            is_final: AtomicBool::new(false),
        })))
    })
}

fn of_op(op: &OpDef) -> ApiDef {
    use ff_proto::api_def::{Arg, Attr, Endpoint};
    let args = |args: &[ff_proto::op_def::ArgDef]| -> Vec<Arg> {
        args.iter()
            .map(|arg| Arg {
                name: arg.name.clone(),
                rename_to: arg.name.clone(),
                description: arg.description.clone(),
            })
            .collect()
    };
    let attr = |attr: &ff_proto::op_def::AttrDef| Attr {
        name: attr.name.clone(),
        rename_to: attr.name.clone(),
        default_value: attr.default_value.clone(),
        description: attr.description.clone(),
    };
    ApiDef {
        graph_op_name: op.name.clone(),
        visibility: ff_proto::api_def::Visibility::Visible as i32,
        endpoint: vec![Endpoint {
            name: op.name.clone(),
            ..Endpoint::default()
        }],
        in_arg: args(&op.input_arg),
        out_arg: args(&op.output_arg),
        attr: op.attr.iter().map(attr).collect(),
        arg_order: op.input_arg.iter().map(|arg| arg.name.clone()).collect(),
        summary: op.summary.clone(),
        description: op.description.clone(),
        ..ApiDef::default()
    }
}

/// Frees a map; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteApiDefMap(apimap: Option<Box<TF_ApiDefMap>>) {
    quiet((), || {
        drop(apimap);
        Ok(())
    });
}

/// Replaces a block `<<WORD`, its lines and `WORD` by a quoted string.
fn without_blocks(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut lines = text.split('\n');
    while let Some(line) = lines.next() {
        let Some((before, word)) = line.split_once("<<") else {
            plain.push_str(line);
            plain.push('\n');
            continue;
        };
        let word = word.trim();
        let mut block: Vec<&str> = Vec::new();
        let mut after = "";
        for inner in lines.by_ref() {
            if let Some(rest) = inner.strip_prefix(word) {
                after = rest;
                break;
            }
            block.push(inner);
        }
        let quoted = block.join("\n").escape_default().to_string();
        plain.push_str(&format!("{before}\"{quoted}\"{after}\n"));
    }
    plain
}

/// Merges definitions into the map: an `ApiDefs` in text form, in which a string may be written as `<<WORD`, its lines, and
/// `WORD`. Where both say something, the new one wins. INVALID_ARGUMENT for other text and for ops that are not in the map.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ApiDefMapPut(
    api_def_map: Option<&mut TF_ApiDefMap>,
    text: Array<c_char>,
    text_len: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let map = given(api_def_map.as_deref(), "api_def_map")?;
        ensure!(
            !map.is_final.load(Ordering::Acquire),
            FailedPrecondition,
            "TF_ApiDefMapPut cannot be called after TF_ApiDefMapGet has been called."
        );
        let text = String::from_utf8_lossy(text.bytes(text_len, "text")?);
        let parsed: ApiDefs = ff_proto::text::parse(&without_blocks(&text))
            .map_err(|error| status!(InvalidArgument, "Unparseable ApiDefs: {error}"))?;
        let mut definitions = map.definitions.lock();
        for new in &parsed.op {
            if let Some(definition) = definitions.get_mut(&new.graph_op_name) {
                merge(definition, new)?;
            }
        }
        Ok(())
    });
}

/// Merges what `new` says. INVALID_ARGUMENT for arguments and attributes that the op does not have.
fn merge(definition: &mut ApiDef, new: &ApiDef) -> Result<()> {
    let op = definition.graph_op_name.clone();
    if new.visibility != 0 {
        definition.visibility = new.visibility;
    }
    if !new.endpoint.is_empty() {
        definition.endpoint = new.endpoint.clone();
    }
    for (own, new) in [
        (&mut definition.in_arg, &new.in_arg),
        (&mut definition.out_arg, &new.out_arg),
    ] {
        for arg in new {
            let found = own.iter_mut().find(|it| it.name == arg.name);
            let found = found.ok_or_else(|| {
                status!(
                    FailedPrecondition,
                    "Argument {} not defined in base api for {op}",
                    arg.name
                )
            })?;
            overwrite(&mut found.rename_to, &arg.rename_to);
            overwrite(&mut found.description, &arg.description);
        }
    }
    for attr in &new.attr {
        let found = definition.attr.iter_mut().find(|it| it.name == attr.name);
        let found = found.ok_or_else(|| {
            status!(
                FailedPrecondition,
                "Attribute {} not defined in base api for {op}",
                attr.name
            )
        })?;
        overwrite(&mut found.rename_to, &attr.rename_to);
        overwrite(&mut found.description, &attr.description);
        if attr.default_value.is_some() {
            found.default_value = attr.default_value.clone();
        }
    }
    if !new.arg_order.is_empty() {
        ensure!(
            new.arg_order.len() == definition.arg_order.len(),
            FailedPrecondition,
            "Invalid number of arguments {} for {op}. Expected: {}",
            new.arg_order.len(),
            definition.arg_order.len()
        );
        definition.arg_order = new.arg_order.clone();
    }
    overwrite(&mut definition.summary, &new.summary);
    overwrite(&mut definition.description, &new.description);
    if !new.description_prefix.is_empty() {
        definition.description = format!("{}\n{}", new.description_prefix, definition.description);
    }
    if !new.description_suffix.is_empty() {
        definition.description = format!("{}\n{}", definition.description, new.description_suffix);
    }
    Ok(())
}

fn overwrite(text: &mut String, new: &str) {
    if !new.is_empty() {
        *text = new.to_string();
    }
}

/// The definition of an op as a serialized `ApiDef`. Free the buffer with `TF_DeleteBuffer`. NULL with INVALID_ARGUMENT when
/// the map has no such op.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ApiDefMapGet(
    api_def_map: Option<&mut TF_ApiDefMap>,
    name: Array<c_char>,
    name_len: usize,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Buffer>> {
    guard(status, || {
        let name = String::from_utf8_lossy(name.bytes(name_len, "name")?);
        let map = given(api_def_map.as_deref(), "api_def_map")?;
        map.is_final.store(true, Ordering::Release);
        match map.definitions.lock().get(&*name) {
            Some(definition) => Ok(Some(Box::new(TF_Buffer::of_message(definition)?))),
            None => Ok(None),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_become_strings() {
        let text = "op {\n  summary: <<END\nOne \"line\".\nTwo.\nEND\n}\n";
        assert_eq!(
            without_blocks(text),
            "op {\n  summary: \"One \\\"line\\\".\\nTwo.\"\n}\n\n"
        );
    }
}
