//! File systems of plug-ins: a scheme whose files are read and written by the plug-in's functions.
//!
//! Contract: what a plug-in leaves out is done by other means where that is possible, and else UNIMPLEMENTED. Its pointers
//! are released exactly once. It does not use transactions and options, which the reference never does either.

use crate::TF_Status;
use crate::env::TF_FileStatistics;
use crate::env_system::symbol;
use crate::ffi::{Text, c_string};
use crate::file_system_tables::*;
use crate::guard::guard;
use crate::library::open;
use ff_platform::{FileStat, FileSystem, RandomAccessFile, Region, WritableFile, files};
use ff_tensor::{Code, Result, Status, bail, ensure, status};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;

/// Loads a plug-in that adds file systems, and registers its schemes for this process; the plug-in stays loaded for good.
/// All schemes that can be are registered, also when there is an error, which is the first one.
///
/// NOT_FOUND when it cannot be loaded or has no `TF_InitPlugin`; FAILED_PRECONDITION where required functions are missing or
/// are of another version; ALREADY_EXISTS for a scheme that is taken.
#[unsafe(no_mangle)]
pub extern "C" fn TF_RegisterFilesystemPlugin(plugin_filename: Text, status: Option<&mut TF_Status>) {
    guard(status, || {
        let name = plugin_filename.text("plugin_filename")?;
        let library = open(&c_string(&name))? as *mut c_void;
        let init = symbol(library, "TF_InitPlugin").map_err(|error| {
            error.suffixed(&format!(
                "\n\tFailed to load TF_InitPlugin symbol for DSO: {name}"
            ))
        })?;
        let mut info = PluginInfo {
            num_schemes: 0,
            ops: std::ptr::null_mut(),
            plugin_memory_allocate: None,
            plugin_memory_free: None,
        };
        // SAFETY: the interface of plug-ins says that this is such a function.
        unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut PluginInfo)>(init)(&raw mut info)
        };
        register(&info)
    });
}

/// Registers all schemes that can be; the first error.
fn register(info: &PluginInfo) -> Result<()> {
    ensure!(
        info.plugin_memory_allocate.is_some(),
        FailedPrecondition,
        "Cannot load filesystem plugin which does not provide `plugin_memory_allocate`"
    );
    let Some(free) = info.plugin_memory_free else {
        bail!(
            FailedPrecondition,
            "Cannot load filesystem plugin which does not provide `plugin_memory_free`"
        );
    };
    let mut first_error = Ok(());
    let count = if info.ops.is_null() { 0 } else { info.num_schemes };
    for index in 0..count {
        // SAFETY: the plug-in says that there are so many.
        let ops = unsafe { &*info.ops.add(index) };
        first_error = first_error.and(register_scheme(ops, free));
        for memory in [
            ops.scheme.cast(),
            ops.filesystem_ops.cast(),
            ops.random_access_file_ops.cast(),
            ops.writable_file_ops.cast(),
            ops.read_only_memory_region_ops.cast(),
        ] {
            // SAFETY: from the plug-in's allocation function, and not used any more.
            unsafe { free(memory) };
        }
    }
    // SAFETY: as above.
    unsafe { free(info.ops.cast()) };
    first_error
}

fn register_scheme(ops: &PluginOps, free: unsafe extern "C" fn(*mut c_void)) -> Result<()> {
    ensure!(
        !ops.scheme.is_null(),
        InvalidArgument,
        "Attempted to register filesystem with `nullptr` URI scheme"
    );
    // SAFETY: the plug-in gives a C string.
    let scheme = unsafe { CStr::from_ptr(ops.scheme) }
        .to_string_lossy()
        .into_owned();
    // SAFETY: the plug-in vouches for its tables.
    let tables = unsafe { ops.tables() }?;
    let mut system = Opaque::NULL;
    if let Some(init) = tables.system.init {
        // SAFETY: a place for the plug-in's pointer.
        call(|status| unsafe { init(&raw mut system, status) })?;
    }
    let system = PluginFileSystem {
        prefix: if scheme.is_empty() {
            String::new()
        } else {
            format!("{scheme}://")
        },
        tables,
        system,
        free,
    };
    files::register(&scheme, Arc::new(system))
}

/// Calls a function of a plug-in with a status; its error.
fn call<T>(function: impl FnOnce(*mut TF_Status) -> T) -> Result<T> {
    let mut status = TF_Status::default();
    let value = function(&raw mut status);
    match status.error() {
        Some(error) => Err(error.clone()),
        None => Ok(value),
    }
}

/// A scheme of a plug-in.
struct PluginFileSystem {
    /// What a URI of the scheme begins with.
    prefix: String,
    tables: Tables,
    system: Opaque,
    free: unsafe extern "C" fn(*mut c_void),
}

impl Drop for PluginFileSystem {
    fn drop(&mut self) {
        if let Some(cleanup) = self.tables.system.cleanup {
            // SAFETY: called once, with what `init` set up.
            unsafe { cleanup(&raw mut self.system) };
        }
    }
}

impl PluginFileSystem {
    fn uri(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    fn missing(&self, path: &str, what: &str) -> Status {
        status!(
            Unimplemented,
            "Filesystem for {} does not support {what}()",
            self.uri(path)
        )
    }

    /// The path that the plug-in's functions take.
    fn translated(&self, path: &str) -> Result<CString> {
        let uri = self.uri(path);
        let Some(translate) = self.tables.system.translate_name else {
            return Ok(c_string(&path_in(path, !self.prefix.is_empty())));
        };
        let uri = c_string(&uri);
        // SAFETY: a C string; the plug-in returns one, which is freed below.
        let name = unsafe { translate(&raw const self.system, uri.as_ptr()) };
        ensure!(
            !name.is_null(),
            Internal,
            "TranslateName({}) returned nullptr",
            uri.to_string_lossy()
        );
        // SAFETY: a C string.
        let translated = unsafe { CStr::from_ptr(name) }.to_owned();
        // SAFETY: from the plug-in's allocation function.
        unsafe { (self.free)(name.cast()) };
        Ok(translated)
    }

    fn with_path(&self, function: PathCall, path: &str, what: &str) -> Result<()> {
        let function = function.ok_or_else(|| self.missing(path, what))?;
        let name = self.translated(path)?;
        // SAFETY: the file system is set up; a C string.
        call(|status| unsafe { function(&raw const self.system, name.as_ptr(), status) })
    }

    fn open_with(&self, function: OpenCall, path: &str, what: &str) -> Result<Opaque> {
        let function = function.ok_or_else(|| self.missing(path, what))?;
        let name = self.translated(path)?;
        let mut file = Opaque::NULL;
        // SAFETY: as above; a place for the plug-in's pointer.
        call(|status| unsafe { function(&raw const self.system, name.as_ptr(), &raw mut file, status) })?;
        Ok(file)
    }

    fn writer(&self, function: OpenCall, path: &str, what: &str) -> Result<Box<dyn WritableFile>> {
        Ok(Box::new(PluginWriter {
            file: self.open_with(function, path, what)?,
            ops: self.tables.writer,
            name: self.uri(path),
            is_open: true,
        }))
    }

    /// The names that a function puts into an array.
    fn names(&self, function: NamesCall, path: &CString) -> Result<Vec<String>> {
        let Some(function) = function else {
            return Ok(Vec::new());
        };
        let mut entries: *mut *mut c_char = std::ptr::null_mut();
        let mut count: c_int = 0;
        let outcome = call(|status| {
            // SAFETY: as above; a place for the plug-in's array.
            count = unsafe { function(&raw const self.system, path.as_ptr(), &raw mut entries, status) };
        });
        let mut names = Vec::new();
        if count < 0 || entries.is_null() {
            return outcome.map(|()| names);
        }
        for index in 0..count as usize {
            // SAFETY: the plug-in says that there are so many C strings, from its allocation function.
            unsafe {
                let name = *entries.add(index);
                names.push(CStr::from_ptr(name).to_string_lossy().into_owned());
                (self.free)(name.cast());
            }
        }
        // SAFETY: from the plug-in's allocation function.
        unsafe { (self.free)(entries.cast()) };
        outcome.map(|()| names)
    }

    fn two_paths(&self, function: TwoPathCall, from: &str, to: &str) -> Option<Result<()>> {
        let function = function?;
        let names = self
            .translated(from)
            .and_then(|old| Ok((old, self.translated(to)?)));
        Some(names.and_then(|(old, new)| {
            // SAFETY: the file system is set up; C strings.
            call(|status| unsafe { function(&raw const self.system, old.as_ptr(), new.as_ptr(), status) })
        }))
    }

    /// Copies a file by the plug-in's function, or by reading and writing it.
    fn copy(&self, from: &str, to: &str) -> Result<()> {
        if let Some(copied) = self.two_paths(self.tables.system.copy_file, from, to) {
            return copied;
        }
        let bytes = self.read(from)?;
        let mut target = self.create(to)?;
        target.append(&bytes)?;
        target.close()
    }
}

/// What a file system gets of a URI without `translate_name`: what follows scheme and host, in its shortest form.
fn path_in(rest: &str, has_scheme: bool) -> String {
    let path = match has_scheme {
        true => rest.find('/').map_or("", |at| &rest[at..]),
        false => rest,
    };
    if path.is_empty() {
        return if has_scheme {
            "/".to_string()
        } else {
            String::new()
        };
    }
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match (part, parts.last()) {
            ("..", Some(&last)) if last != ".." => drop(parts.pop()),
            ("..", None) if is_absolute => {}
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (is_absolute, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_string(),
        (false, false) => joined,
    }
}

impl FileSystem for PluginFileSystem {
    fn open(&self, path: &str) -> Result<Box<dyn RandomAccessFile>> {
        let function = self.tables.system.new_random_access_file;
        Ok(Box::new(PluginReader {
            file: self.open_with(function, path, "NewRandomAccessFile")?,
            ops: self.tables.reader,
            name: self.uri(path),
        }))
    }

    fn create(&self, path: &str) -> Result<Box<dyn WritableFile>> {
        self.writer(self.tables.system.new_writable_file, path, "NewWritableFile")
    }

    fn append(&self, path: &str) -> Result<Box<dyn WritableFile>> {
        self.writer(self.tables.system.new_appendable_file, path, "NewAppendableFile")
    }

    fn stat(&self, path: &str) -> Result<FileStat> {
        let function = self
            .tables
            .system
            .stat
            .ok_or_else(|| self.missing(path, "Stat"))?;
        let name = self.translated(path)?;
        let mut stat = TF_FileStatistics {
            length: 0,
            mtime_nsec: 0,
            is_directory: false,
        };
        // SAFETY: the file system is set up; a C string and a place for the answer.
        call(|status| unsafe { function(&raw const self.system, name.as_ptr(), &raw mut stat, status) })?;
        Ok(FileStat {
            length: u64::try_from(stat.length).unwrap_or(0),
            modified_nanoseconds: stat.mtime_nsec,
            is_directory: stat.is_directory,
        })
    }

    fn list(&self, path: &str) -> Result<Vec<String>> {
        let function = self.tables.system.get_children;
        if function.is_none() {
            return Err(self.missing(path, "GetChildren"));
        }
        let mut names = self.names(function, &self.translated(path)?)?;
        names.sort();
        Ok(names)
    }

    fn delete_file(&self, path: &str) -> Result<()> {
        self.with_path(self.tables.system.delete_file, path, "DeleteFile")
    }

    fn create_directory(&self, path: &str) -> Result<()> {
        self.with_path(self.tables.system.create_dir, path, "CreateDir")
    }

    fn delete_directory(&self, path: &str) -> Result<()> {
        self.with_path(self.tables.system.delete_dir, path, "DeleteDir")
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        match self.two_paths(self.tables.system.rename_file, from, to) {
            Some(renamed) => renamed,
            None => self.copy(from, to).and_then(|()| self.delete_file(from)),
        }
    }

    fn map(&self, path: &str) -> Result<Region> {
        let function = self.tables.system.new_read_only_memory_region_from_file;
        if function.is_none() || self.tables.region.data.is_none() {
            return self.read(path).map(Region::new);
        }
        Ok(Region::new(PluginRegion {
            region: self.open_with(function, path, "NewReadOnlyMemoryRegionFromFile")?,
            ops: self.tables.region,
        }))
    }

    fn create_directories(&self, path: &str) -> Result<()> {
        let function = self.tables.system.recursively_create_dir;
        if function.is_some() {
            return self.with_path(function, path, "RecursivelyCreateDir");
        }
        let mut missing = Vec::new();
        let mut at = path.trim_end_matches('/');
        while !at.is_empty() && !self.is_directory(at) {
            missing.push(at);
            at = at.rfind('/').map_or("", |end| at[..end].trim_end_matches('/'));
        }
        for folder in missing.iter().rev() {
            match self.create_directory(folder) {
                Err(error) if error.code() != Code::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn delete_recursively(&self, path: &str) -> Option<Result<()>> {
        let function = self.tables.system.delete_recursively?;
        let (mut files, mut directories) = (0, 0);
        Some(self.translated(path).and_then(|name| {
            // SAFETY: the file system is set up; a C string and places for the answers.
            call(|status| unsafe {
                function(
                    &raw const self.system,
                    name.as_ptr(),
                    &raw mut files,
                    &raw mut directories,
                    status,
                )
            })
        }))
    }

    fn matching_paths(&self, pattern: &str) -> Option<Result<Vec<String>>> {
        let function = self.tables.system.get_matching_paths;
        function?;
        Some(self.names(function, &c_string(&self.uri(pattern))))
    }

    fn exists(&self, path: &str) -> bool {
        self.with_path(self.tables.system.path_exists, path, "FileExists")
            .is_ok()
    }

    fn is_directory(&self, path: &str) -> bool {
        let Some(function) = self.tables.system.is_directory else {
            return self.stat(path).is_ok_and(|stat| stat.is_directory);
        };
        let Ok(name) = self.translated(path) else {
            return false;
        };
        // SAFETY: the file system is set up; a C string.
        call(|status| unsafe { function(&raw const self.system, name.as_ptr(), status) }).is_ok()
    }
}

/// A file that is read.
struct PluginReader {
    file: Opaque,
    ops: RandomAccessFileOps,
    name: String,
}

impl RandomAccessFile for PluginReader {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let read = self.ops.read;
        let read = read.ok_or_else(|| status!(Unimplemented, "Read() not implemented for {}", self.name))?;
        let mut count = 0;
        // SAFETY: the file is open, and there is room for so many bytes.
        let outcome = call(|status| unsafe {
            count = read(
                &raw const self.file,
                offset,
                into.len(),
                into.as_mut_ptr().cast(),
                status,
            );
        });
        let count = usize::try_from(count).unwrap_or(0).min(into.len());
        match outcome {
            // The end of the file.
            Err(error) if error.code() == Code::OutOfRange => Ok(count),
            outcome => outcome.map(|()| count),
        }
    }
}

impl Drop for PluginReader {
    fn drop(&mut self) {
        if let Some(cleanup) = self.ops.cleanup {
            // SAFETY: the file is open, and this is its end.
            unsafe { cleanup(&raw mut self.file) };
        }
    }
}

/// A file that is written.
struct PluginWriter {
    file: Opaque,
    ops: WritableFileOps,
    name: String,
    is_open: bool,
}

impl PluginWriter {
    fn missing(&self, what: &str) -> Status {
        status!(Unimplemented, "{what}() not implemented for {}", self.name)
    }

    fn with_file(&self, function: FileCall) -> Option<Result<()>> {
        let function = function?;
        // SAFETY: the file is open.
        Some(call(|status| unsafe { function(&raw const self.file, status) }))
    }

    fn end(&mut self) -> Result<()> {
        self.is_open = false;
        self.with_file(self.ops.close)
            .unwrap_or_else(|| Err(self.missing("Close")))
    }
}

impl WritableFile for PluginWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let append = self.ops.append.ok_or_else(|| self.missing("Append"))?;
        // SAFETY: the file is open; so many bytes are there.
        call(|status| unsafe { append(&raw const self.file, bytes.as_ptr().cast(), bytes.len(), status) })
    }

    fn flush(&mut self) -> Result<()> {
        self.with_file(self.ops.flush).unwrap_or(Ok(()))
    }

    fn sync(&mut self) -> Result<()> {
        match self.with_file(self.ops.sync) {
            Some(outcome) => outcome,
            None => self.flush(),
        }
    }

    fn position(&mut self) -> Result<u64> {
        let tell = self.ops.tell.ok_or_else(|| self.missing("Tell"))?;
        // SAFETY: the file is open.
        let position = call(|status| unsafe { tell(&raw const self.file, status) })?;
        Ok(u64::try_from(position).unwrap_or(0))
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.end()
    }
}

impl Drop for PluginWriter {
    fn drop(&mut self) {
        if self.is_open {
            // Nobody is there to hear of an error.
            let _ = self.end();
        }
        if let Some(cleanup) = self.ops.cleanup {
            // SAFETY: the file is not used after this.
            unsafe { cleanup(&raw mut self.file) };
        }
    }
}

/// A file as memory of the plug-in's.
struct PluginRegion {
    region: Opaque,
    ops: ReadOnlyMemoryRegionOps,
}

impl AsRef<[u8]> for PluginRegion {
    fn as_ref(&self) -> &[u8] {
        let (Some(data), Some(length)) = (self.ops.data, self.ops.length) else {
            return &[];
        };
        // SAFETY: the region is open.
        let (data, length) = unsafe { (data(&raw const self.region), length(&raw const self.region)) };
        match usize::try_from(length) {
            // SAFETY: the plug-in says that so many bytes are there until `cleanup`.
            Ok(length) if !data.is_null() => unsafe { std::slice::from_raw_parts(data.cast(), length) },
            _ => &[],
        }
    }
}

impl Drop for PluginRegion {
    fn drop(&mut self) {
        if let Some(cleanup) = self.ops.cleanup {
            // SAFETY: the region is not used after this.
            unsafe { cleanup(&raw mut self.region) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::path_in;

    #[test]
    fn paths_are_what_follows_the_host_in_short() {
        for (rest, path) in [
            ("", "/"),
            ("host", "/"),
            ("host/a//b/./c/../d/", "/a/b/d"),
            ("/a", "/a"),
            ("/..", "/"),
        ] {
            assert_eq!(path_in(rest, true), path, "{rest}");
        }
        assert_eq!(path_in("a/../..", false), "..");
        assert_eq!(path_in("", false), "");
        assert_eq!(path_in("a/..", false), ".");
    }
}
