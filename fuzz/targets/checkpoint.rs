//! Targets `checkpoint` and `records`: tensor bundles, V1 checkpoints and record files.

use super::{Form, Target, change_bytes};
use crate::random::Random;
use crate::{table, wire};
use ff_checkpoint::{Checkpoint, Compression, RecordReader};
use ff_proto::Bytes;
use std::fs;
use std::path::{Path, PathBuf};

/// Checkpoints. An input is the number of a file (of [`FILES`]) and what is in it.
pub static CHECKPOINT: Target = Target {
    name: "checkpoint",
    about: "tensor bundles and V1 checkpoints: read every tensor",
    form: Form::Bytes,
    from: &[],
    make,
    run,
};

/// Record files. An input is the number of a compression and the file.
pub static RECORDS: Target = Target {
    name: "records",
    about: "record files, also compressed: read all records",
    form: Form::Bytes,
    from: &["records"],
    make: change_bytes,
    run: records,
};

const FILES: [&str; 3] = ["v2.index", "v2.data-00000-of-00001", "v1"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/checkpoint")
}

fn make(_seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let which = *random.pick(&[0, 0, 0, 1, 2, 2]);
    let mut content = fs::read(folder().join(FILES[which])).unwrap_or_default();
    if which == 1 {
        wire::bytes(&mut content, random);
    } else {
        content = mutate_table(&content, random);
    }
    content.insert(0, which as u8);
    content
}

/// A table with changes inside its blocks under right checksums, in its entries, or anywhere.
pub fn mutate_table(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut table = seed.to_vec();
    let Some(blocks) = table::blocks(seed) else {
        wire::bytes(&mut table, random);
        return table;
    };
    match random.below(4) {
        0 => wire::bytes(&mut table, random),
        1 => {
            for _ in 0..=random.below(4) {
                let (offset, size) = *random.pick(&blocks);
                if size > 0 {
                    table[offset + random.below(size)] = random.next() as u8;
                }
            }
            table::mend_checksums(&mut table, &blocks);
        }
        _ => {
            let (offset, size) = blocks[0];
            if let Some(mut entries) = table::entries(&seed[offset..offset + size]) {
                mutate_entries(&mut entries, random);
                table = table::write(&entries);
            }
        }
    }
    table
}

fn mutate_entries(entries: &mut Vec<(Vec<u8>, Vec<u8>)>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        if entries.is_empty() {
            return;
        }
        let at = random.below(entries.len());
        let donor = random.pick(entries).1.clone();
        match random.below(8) {
            0 => drop(entries.remove(at)),
            1 => entries[at].1 = donor,
            2 => wire::bytes(&mut entries[at].0, random),
            3 => entries.insert(at, entries[at].clone()),
            _ => entries[at].1 = wire::mutate_message(&entries[at].1, &donor, random),
        }
    }
}

fn run(bytes: &[u8]) {
    let Some((&which, content)) = bytes.split_first() else {
        return;
    };
    let which = usize::from(which) % FILES.len();
    let place = PathBuf::from(format!("checkpoint-{}", std::process::id()));
    if write(&place, which, content).is_ok() {
        read(
            &place
                .join(if which == 2 { "v1" } else { "v2" })
                .display()
                .to_string(),
        );
    }
    let _ = fs::remove_dir_all(place);
}

fn write(place: &Path, which: usize, content: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(place)?;
    fs::write(place.join(FILES[which]), content)?;
    if which < 2 {
        fs::copy(folder().join(FILES[1 - which]), place.join(FILES[1 - which]))?;
    }
    Ok(())
}

/// Reads all there is, also what is not there.
fn read(prefix: &str) {
    let Ok(checkpoint) = Checkpoint::open(prefix) else {
        return;
    };
    let names = checkpoint.names().unwrap_or_default();
    for name in names.iter().take(100).chain([&b"missing".to_vec(), &Vec::new()]) {
        let _ = checkpoint.contains(name);
        let _ = checkpoint.dtype_and_shape(name);
        if let Ok(tensor) = checkpoint.read(name) {
            let _ = tensor.num_elements();
        }
    }
}

fn records(bytes: &[u8]) {
    let Some((&which, content)) = bytes.split_first() else {
        return;
    };
    let name = ["", "GZIP", "ZLIB"][usize::from(which) % 3];
    let Ok(compression) = Compression::from_name(name) else {
        return;
    };
    let mut reader = RecordReader::of_bytes(Bytes::copy_from_slice(content), compression);
    while let Ok(Some(_)) = reader.read() {}
    let _ = reader.seek(3);
    let _ = reader.read();
}
