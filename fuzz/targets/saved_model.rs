//! Target `saved_model`: a SavedModel one of whose files is changed, loaded and run.

use super::graph_use::{look, run_in};
use super::{Form, Target};
use crate::random::{Choices, Random};
use crate::wire;
use ff_c_api::ffi::{Array, Text};
use ff_c_api::*;
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

/// SavedModels. An input is the number of a file (of [`FILES`]) and what is in it.
pub static SAVED_MODEL: Target = Target {
    name: "saved_model",
    about: "SavedModels: load with one file changed, run",
    form: Form::Bytes,
    from: &[],
    make,
    run,
};

const FILES: [&str; 4] = [
    "saved_model.pb",
    "variables/variables.index",
    "variables/variables.data-00000-of-00001",
    "saved_model.pbtxt",
];

/// The model that is changed.
fn original() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/saved_model")
}

fn make(_seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let which = random.below(6).saturating_sub(2);
    let mut content = fs::read(original().join(FILES[which])).unwrap_or_default();
    match which {
        0 => content = wire::mutate_message(&content, &content, random),
        1 if random.one_in(2) => content = super::checkpoint::mutate_table(&content, random),
        3 => {
            content = match fs::read_to_string(original().join(FILES[3])) {
                Ok(text) => crate::text::mutate(&text, &text, random).into_bytes(),
                Err(_) => random.bytes(50),
            }
        }
        _ => wire::bytes(&mut content, random),
    }
    content.insert(0, which as u8);
    content
}

fn run(bytes: &[u8]) {
    let Some((&which, content)) = bytes.split_first() else {
        return;
    };
    let which = usize::from(which) % FILES.len();
    let folder = PathBuf::from(format!("model-{}", std::process::id()));
    if write(&folder, which, content).is_err() {
        return;
    }
    load(&folder);
    let _ = fs::remove_dir_all(folder);
}

/// Writes the model with other content of one file.
fn write(folder: &Path, which: usize, content: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(folder.join("variables"))?;
    for (number, file) in FILES.iter().enumerate() {
        // The text form is read where there is no binary one.
        if number == which {
            fs::write(folder.join(file), content)?;
        } else if number < 3 && !(number == 0 && which == 3) {
            fs::copy(original().join(file), folder.join(file))?;
        }
    }
    Ok(())
}

fn load(folder: &Path) {
    let mut status = TF_NewStatus();
    let graph = TF_NewGraph();
    let options = TF_NewSessionOptions();
    let folder = CString::new(folder.display().to_string()).unwrap_or_default();
    let run_options = super::graph_use::deadline();
    let session = TF_LoadSessionFromSavedModel(
        Some(&options),
        run_options.as_deref(),
        Text::new(&folder),
        Array::new(&[Text::new(c"serve")]),
        1,
        graph.as_deref(),
        None,
        Some(&mut status),
    );
    if let (Some(graph), Some(session)) = (graph.as_deref(), session.as_deref()) {
        look(graph);
        run_in(
            graph,
            session,
            &mut Choices::new(&[1, 0, 17, 2, 40, 1, 90, 30, 200, 0, 7]),
        );
    }
    TF_DeleteBuffer(run_options);
    TF_DeleteSession(session, Some(&mut status));
    TF_DeleteSessionOptions(Some(options));
    TF_DeleteGraph(graph);
    TF_DeleteStatus(Some(status));
}
