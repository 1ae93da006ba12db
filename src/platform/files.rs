//! Files by path or URI. Each function finds the file system of the scheme and calls it.

use crate::file_system::{FileStat, FileSystem, RandomAccessFile, Region, WritableFile};
use crate::{LocalFileSystem, MemoryFileSystem, glob};
use ff_tensor::{Code, Result, bail, status};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

type Registry = BTreeMap<String, Arc<dyn FileSystem>>;

static REGISTRY: LazyLock<RwLock<Registry>> = LazyLock::new(|| {
    let local: Arc<dyn FileSystem> = Arc::new(LocalFileSystem);
    RwLock::new(BTreeMap::from([
        (String::new(), local.clone()),
        ("file".to_string(), local),
        (
            "ram".to_string(),
            Arc::new(MemoryFileSystem::default()) as Arc<dyn FileSystem>,
        ),
    ]))
});

/// The scheme of a URI (empty for a plain path) and the rest.
fn split(path: &str) -> (&str, &str) {
    let Some((scheme, rest)) = path.split_once("://") else {
        return ("", path);
    };
    let mut letters = scheme.chars();
    let valid = letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '.');
    if valid { (scheme, rest) } else { ("", path) }
}

/// Makes a scheme known. ALREADY_EXISTS when it is.
pub fn register(scheme: &str, system: Arc<dyn FileSystem>) -> Result<()> {
    let mut registry = REGISTRY.write();
    if registry.contains_key(scheme) {
        bail!(AlreadyExists, "File system for {scheme} already registered");
    }
    registry.insert(scheme.to_string(), system);
    Ok(())
}

/// The schemes known, sorted; the empty one is that of plain paths.
pub fn schemes() -> Vec<String> {
    REGISTRY.read().keys().cloned().collect()
}

/// The file system of a path, and the path as that file system knows it. UNIMPLEMENTED for an unknown scheme.
pub fn resolve(path: &str) -> Result<(Arc<dyn FileSystem>, &str)> {
    let (scheme, mut rest) = split(path);
    let system = REGISTRY.read().get(scheme).cloned();
    let system = system.ok_or_else(|| {
        status!(
            Unimplemented,
            "File system scheme '{scheme}' not implemented (file: '{path}')"
        )
    })?;
    if scheme == "file" {
        // What stands before the first slash names a machine.
        rest = rest.find('/').map_or("", |at| &rest[at..]);
    }
    Ok((system, rest))
}

/// The bytes of a whole file.
pub fn read(path: &str) -> Result<Vec<u8>> {
    let (system, path) = resolve(path)?;
    system.read(path)
}

/// The bytes of a whole file, mapped where possible.
pub fn map(path: &str) -> Result<Region> {
    let (system, path) = resolve(path)?;
    system.map(path)
}

/// Opens a file for reads at any place.
pub fn open(path: &str) -> Result<Box<dyn RandomAccessFile>> {
    let (system, path) = resolve(path)?;
    system.open(path)
}

/// Creates a file, or empties the one that is there.
pub fn create(path: &str) -> Result<Box<dyn WritableFile>> {
    let (system, path) = resolve(path)?;
    system.create(path)
}

/// Opens a file to add to its end; creates it if needed.
pub fn append(path: &str) -> Result<Box<dyn WritableFile>> {
    let (system, path) = resolve(path)?;
    system.append(path)
}

/// What is known of a path.
pub fn stat(path: &str) -> Result<FileStat> {
    let (system, path) = resolve(path)?;
    system.stat(path)
}

/// Whether there is a file or folder.
pub fn exists(path: &str) -> bool {
    resolve(path).is_ok_and(|(system, path)| system.exists(path))
}

/// Whether there is a folder.
pub fn is_directory(path: &str) -> bool {
    resolve(path).is_ok_and(|(system, path)| system.is_directory(path))
}

/// The names in a folder, sorted.
pub fn list(path: &str) -> Result<Vec<String>> {
    let (system, path) = resolve(path)?;
    system.list(path)
}

/// Deletes a file.
pub fn delete(path: &str) -> Result<()> {
    let (system, path) = resolve(path)?;
    system.delete_file(path)
}

/// Creates a folder in an existing one.
pub fn create_directory(path: &str) -> Result<()> {
    let (system, path) = resolve(path)?;
    system.create_directory(path)
}

/// Creates a folder and those that it lies in, where they do not exist.
pub fn create_directories(path: &str) -> Result<()> {
    let (system, path) = resolve(path)?;
    system.create_directories(path)
}

/// Deletes an empty folder.
pub fn delete_directory(path: &str) -> Result<()> {
    let (system, path) = resolve(path)?;
    system.delete_directory(path)
}

/// Deletes a file, or a folder with all that it holds. Goes on after an error and returns the first one.
pub fn delete_recursively(path: &str) -> Result<()> {
    let (system, path) = resolve(path)?;
    if let Some(deleted) = system.delete_recursively(path) {
        return deleted;
    }
    if !system.stat(path)?.is_directory {
        return system.delete_file(path);
    }
    let mut directories = vec![path.to_string()];
    let mut first_error = Ok(());
    let mut at = 0;
    while at < directories.len() {
        let directory = directories[at].trim_end_matches('/').to_string();
        for name in system.list(&directory).unwrap_or_default() {
            let child = format!("{directory}/{name}");
            if system.is_directory(&child) {
                directories.push(child);
            } else {
                first_error = first_error.and(system.delete_file(&child));
            }
        }
        at += 1;
    }
    for directory in directories.iter().rev() {
        match system.delete_directory(directory) {
            // A folder that existed only by its files is gone with them.
            Err(error) if error.code() != Code::NotFound => first_error = first_error.and(Err(error)),
            _ => {}
        }
    }
    first_error
}

/// Renames a file, replacing any at the new path. UNIMPLEMENTED across file systems.
pub fn rename(from: &str, to: &str) -> Result<()> {
    let (system, old) = resolve(from)?;
    let (target, new) = resolve(to)?;
    if !Arc::ptr_eq(&system, &target) {
        bail!(
            Unimplemented,
            "Renaming {from} to {to} not implemented, because they are on different file systems"
        );
    }
    system.rename(old, new)
}

/// Copies a file, also between file systems.
pub fn copy(from: &str, to: &str) -> Result<()> {
    let source = map(from)?;
    let mut target = create(to)?;
    target.append(&source)?;
    target.close()
}

/// The paths that match a pattern (see the wildcards of [`matches`]), sorted; with their scheme.
pub fn matching_paths(pattern: &str) -> Result<Vec<String>> {
    let (system, path) = resolve(pattern)?;
    if let Some(found) = system.matching_paths(path) {
        return found;
    }
    let scheme = &pattern[..pattern.len() - path.len()];
    let found = glob::matching_paths(&*system, path);
    Ok(found.into_iter().map(|path| format!("{scheme}{path}")).collect())
}

/// Whether a name matches a pattern of `*`, `?`, `[a-z]`, `[!a-z]` and `\`-escapes.
pub fn matches(pattern: &str, name: &str) -> bool {
    glob::matches(pattern, name)
}

/// A path beside `path` that nobody else in this or another process uses.
pub fn temporary_beside(path: &str) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let moment = crate::time::now_nanoseconds() as u64;
    format!(
        "{path}.tempstate{}",
        moment.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(std::process::id()) << 32) ^ count
    )
}

/// Writes a file so that others see the old content or all of the new one, never a part.
pub fn write_atomically(path: &str, bytes: &[u8]) -> Result<()> {
    let temporary = temporary_beside(path);
    let written = (|| {
        let mut file = create(&temporary)?;
        file.append(bytes)?;
        file.close()?;
        rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = delete(&temporary);
    }
    written
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
