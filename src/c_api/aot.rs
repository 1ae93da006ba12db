//! `FF_CompileSavedModel`, `FF_CompileGraphDef`: models compiled ahead of time, by the compiler in this library.

use crate::ffi::{Array, Blob, Text};
use crate::{TF_Status, guard};
use ff_aot::{Options, Source, compile_to};
use ff_tensor::Result;
use std::ffi::c_int;

/// Texts of an array.
fn texts(array: Array<Text>, count: c_int, name: &str) -> Result<Vec<String>> {
    let texts = array.of(count, name)?.iter();
    texts.map(|text| Ok(text.text(name)?.into_owned())).collect()
}

fn compile(source: &Source, options: Text, prefix: Text) -> Result<()> {
    let prefix = prefix.text("prefix")?;
    let options = Options::parse(options.or_empty().split_whitespace())?;
    compile_to(source, &options, &prefix).map(drop)
}

/// Compiles a signature of a SavedModel to `prefix.o` and `prefix.h`, which link with `libferroflow_aot.a`.
///
/// `tags` name the meta graph, `signature` is `serving_default` if NULL. `options` are words of `ferroflow compile`,
/// NULL for none: `--name`, `--shape`, `--extent`, `--weights`, `--target`, `--cpu`.
///
/// `status`: INVALID_ARGUMENT for inputs without fixed extents and wrong options, NOT_FOUND for a model or signature that
/// does not exist, UNIMPLEMENTED (naming the node) for what cannot be compiled and in a library without LLVM.
#[unsafe(no_mangle)]
pub extern "C" fn FF_CompileSavedModel(
    directory: Text,
    tags: Array<Text>,
    num_tags: c_int,
    signature: Text,
    options: Text,
    prefix: Text,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let tags = texts(tags, num_tags, "tags")?;
        let signature = signature.or_empty();
        let signature = if signature.is_empty() {
            "serving_default"
        } else {
            &signature
        };
        let source = Source::saved_model(&directory.text("directory")?, &tags, signature)?;
        compile(&source, options, prefix)
    });
}

/// Compiles part of a GraphDef: from the tensors `feeds` to the tensors `fetches`, each `node` or `node:output`.
///
/// The rest is as for `FF_CompileSavedModel`.
#[unsafe(no_mangle)]
pub extern "C" fn FF_CompileGraphDef(
    graph_def: Blob,
    length: usize,
    feeds: Array<Text>,
    num_feeds: c_int,
    fetches: Array<Text>,
    num_fetches: c_int,
    options: Text,
    prefix: Text,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let bytes = graph_def.bytes(length, "graph_def")?.to_vec();
        let feeds = texts(feeds, num_feeds, "feeds")?;
        let fetches = texts(fetches, num_fetches, "fetches")?;
        compile(&Source::graph_def(bytes, &feeds, &fetches)?, options, prefix)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TSL_GetCode, TSL_Message};
    use std::ffi::{CStr, CString};

    fn code(status: &TF_Status) -> i32 {
        TSL_GetCode(Some(status)).0
    }

    #[test]
    fn null_and_nothing_are_errors() {
        let mut status = TF_Status::default();
        FF_CompileSavedModel(
            Text::NULL,
            Array::NULL,
            1,
            Text::NULL,
            Text::NULL,
            Text::NULL,
            Some(&mut status),
        );
        assert_eq!(code(&status), 3);
        FF_CompileSavedModel(
            Text::new(c"/nowhere"),
            Array::NULL,
            0,
            Text::NULL,
            Text::NULL,
            Text::new(c"x"),
            Some(&mut status),
        );
        assert_eq!(code(&status), 5);
        FF_CompileGraphDef(
            Blob::new(b"\xff\xff\xff"),
            3,
            Array::NULL,
            0,
            Array::NULL,
            0,
            Text::NULL,
            Text::new(c"x"),
            Some(&mut status),
        );
        assert_eq!(code(&status), 3);
        FF_CompileGraphDef(
            Blob::new(b""),
            0,
            Array::NULL,
            0,
            Array::NULL,
            0,
            Text::NULL,
            Text::NULL,
            None,
        );
    }

    #[test]
    fn models_are_compiled() {
        let folder = tempfile::tempdir().unwrap();
        let model = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../examples-c/data/digits_saved_model"
        );
        let (model, prefix) = (
            CString::new(model).unwrap(),
            folder.path().join("digits").display().to_string(),
        );
        let mut status = TF_Status::default();
        let mut compile = |options: &CStr| {
            FF_CompileSavedModel(
                Text::new(&model),
                Array::new(&[Text::new(c"serve")]),
                1,
                Text::NULL,
                Text::new(options),
                Text::new(&CString::new(prefix.clone()).unwrap()),
                Some(&mut status),
            );
            code(&status)
        };
        assert_eq!(compile(c"--name digits"), 3);
        assert_eq!(compile(c"--name digits --frobnicate 1"), 3);
        let made = compile(c"--name digits --shape image=1,8,8");
        if cfg!(feature = "llvm") {
            // SAFETY: the message of a status.
            let message = unsafe { CStr::from_ptr(TSL_Message(Some(&status))) };
            assert_eq!(made, 0, "{message:?}");
            assert!(std::fs::metadata(format!("{prefix}.o")).unwrap().len() > 12_000);
            assert!(std::fs::metadata(format!("{prefix}.h")).is_ok());
        } else {
            assert_eq!(made, 12);
        }
    }
}
