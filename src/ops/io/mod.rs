//! Files and checkpoints.

mod checkpoint;
mod checkpoint_v1;
mod files;

use ff_op::{KernelContext, Op};
use ff_tensor::{Result, TString, Tensor, ensure, status};

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[checkpoint::OPS, checkpoint_v1::OPS, files::OPS];

/// The only string of an input. INVALID_ARGUMENT when it holds another number of strings.
pub(crate) fn single_string<'a>(context: &'a KernelContext, index: usize, what: &str) -> Result<&'a TString> {
    let tensor = context.input(index)?;
    ensure!(
        tensor.num_elements() == 1,
        InvalidArgument,
        "Input {index} ({what}) must be a string scalar; got a tensor of {} elements",
        tensor.num_elements()
    );
    Ok(&tensor.strings()?[0])
}

/// A string as a path or a name. INVALID_ARGUMENT when it is not UTF-8.
fn as_text(string: &TString) -> Result<&str> {
    std::str::from_utf8(string.as_bytes())
        .map_err(|_| status!(InvalidArgument, "'{}' is not valid UTF-8", string.to_str_lossy()))
}

/// The folder part of a path; empty when it has none.
fn folder(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((folder, _)) => folder,
        None => "",
    }
}

/// The strings of an input as texts.
fn texts(tensor: &Tensor) -> Result<Vec<&str>> {
    tensor.strings()?.iter().map(as_text).collect()
}
