//! The targets: for each kind of input its seeds, how they are changed, and what is done with the result.

mod calls;
mod checkpoint;
mod graph;
mod graph_use;
mod hlo;
mod messages;
mod ops;
mod saved_model;
mod texts;

use crate::random::Random;
use crate::wire;
use std::path::Path;

/// What an input is, for making it smaller.
#[derive(Clone, Copy, PartialEq)]
pub enum Form {
    /// A protobuf message.
    Message,
    /// Bytes, text or choices.
    Bytes,
}

/// A way into the library.
pub struct Target {
    /// Its name, also of its folders of seeds and regressions.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// What its inputs are.
    pub form: Form,
    /// Folders of `seeds/` that its inputs start from.
    pub from: &'static [&'static str],
    /// Makes an input from seeds.
    pub make: fn(&[Vec<u8>], &mut Random) -> Vec<u8>,
    /// Runs an input.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[&Target] = &[
    &graph::GRAPH,
    &messages::FUNCTION,
    &saved_model::SAVED_MODEL,
    &checkpoint::CHECKPOINT,
    &checkpoint::RECORDS,
    &texts::TEXT,
    &texts::API_DEF,
    &messages::TENSOR,
    &messages::ATTRIBUTE,
    &messages::CONFIG,
    &hlo::HLO,
    &ops::OPS,
    &calls::CALLS,
];

impl Target {
    /// The seeds: files of the repository, and those in the folder that FF_FUZZ_SEEDS names, if any. At least one, maybe
    /// empty.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
        let more = std::env::var_os("FF_FUZZ_SEEDS");
        for folder in [Some(ours), more.map(Into::into)].into_iter().flatten() {
            for name in self.from {
                read_folder(&folder.join(name), &mut found);
            }
        }
        if found.is_empty() {
            found.push(Vec::new());
        }
        found
    }
}

/// Reads the files of a folder, by name; one that is not there has none.
fn read_folder(folder: &Path, found: &mut Vec<Vec<u8>>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    found.extend(paths.iter().filter_map(|path| std::fs::read(path).ok()));
}

/// Makes an input: a message changed as fields.
fn change_message(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let seed = random.pick(seeds);
    let donor = random.pick(seeds);
    wire::mutate_message(seed, donor, random)
}

/// Makes an input: bytes changed whatever they mean.
fn change_bytes(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut seed = random.pick(seeds).clone();
    wire::bytes(&mut seed, random);
    seed
}

/// Makes an input: choices.
fn choose(_seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let length = 16 + random.below(400);
    random.bytes(length)
}
