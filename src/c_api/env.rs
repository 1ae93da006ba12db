//! Files and folders by path or URI: what the library itself reads and writes with.
//!
//! Paths may be of any file system that the library knows (`/x`, `file:///x`, `ram://x`).

use crate::TF_Status;
use crate::ffi::{Array, Out, Text, c_string, given_mut, missing, put};
use crate::guard::{guard, quiet};
use ff_platform::{WritableFile, files};
use ff_tensor::{Result, ensure};
use std::ffi::{CString, c_char};
use std::ptr::{null, null_mut};

/// What is known of a file.
#[repr(C)]
pub struct TF_FileStatistics {
    /// Bytes.
    pub length: i64,
    /// Time of the last change, in nanoseconds since 1970.
    pub mtime_nsec: i64,
    /// Whether it is a folder.
    pub is_directory: bool,
}

/// A file that is being written. Not for use by two threads at once.
pub struct TF_WritableFileHandle {
    file: Box<dyn WritableFile>,
}

/// Texts that are read one after the other. Not for use by two threads at once.
pub struct TF_StringStream {
    texts: Vec<CString>,
    next: usize,
}

impl TF_StringStream {
    /// A stream of these texts.
    pub(crate) fn of(texts: impl IntoIterator<Item = String>) -> TF_StringStream {
        TF_StringStream {
            texts: texts.into_iter().map(|text| c_string(&text)).collect(),
            next: 0,
        }
    }
}

/// Makes a folder in an existing one. ALREADY_EXISTS when there is something of that name.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CreateDir(dirname: Text, status: Option<&mut TF_Status>) {
    guard(status, || {
        let path = dirname.text("dirname")?;
        // The folder of a path without slashes is there.
        ensure!(!path.is_empty(), AlreadyExists, "");
        files::create_directory(&path)
    });
}

/// Deletes an empty folder.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteDir(dirname: Text, status: Option<&mut TF_Status>) {
    guard(status, || files::delete_directory(&dirname.text("dirname")?));
}

/// Deletes a folder with all that it holds, or a file. Goes on after an error, returns the first one, and writes how many
/// files and folders are left.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteRecursively(
    dirname: Text,
    undeleted_file_count: Out<i64>,
    undeleted_dir_count: Out<i64>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let path = dirname.text("dirname")?;
        let (result, left) = if files::exists(&path) {
            (files::delete_recursively(&path), left(&path))
        } else {
            let error = ff_tensor::status!(NotFound, "{path} not found");
            (Err(error), (0, 1))
        };
        put(undeleted_file_count, left.0, "undeleted_file_count")?;
        put(undeleted_dir_count, left.1, "undeleted_dir_count")?;
        result
    });
}

/// How many files and folders there are at and below a path.
fn left(path: &str) -> (i64, i64) {
    let mut counts = (0, 0);
    let mut paths = vec![path.trim_end_matches('/').to_string()];
    while let Some(path) = paths.pop() {
        if files::is_directory(&path) {
            counts.1 += 1;
            let names = files::list(&path).unwrap_or_default();
            paths.extend(names.iter().map(|name| format!("{path}/{name}")));
        } else if files::exists(&path) {
            counts.0 += 1;
        }
    }
    counts
}

/// Writes what is known of a file or folder. NOT_FOUND when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn TF_FileStat(filename: Text, stats: Out<TF_FileStatistics>, status: Option<&mut TF_Status>) {
    guard(status, || {
        let stat = files::stat(&filename.text("filename")?)?;
        let stat = TF_FileStatistics {
            length: i64::try_from(stat.length).unwrap_or(i64::MAX),
            mtime_nsec: stat.modified_nanoseconds,
            is_directory: stat.is_directory,
        };
        put(stats, stat, "stats")
    });
}

/// Creates a file, or empties the one that is there. Close it with `TF_CloseWritableFile`. `*handle` is NULL after an error.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewWritableFile(
    filename: Text,
    handle: Out<*mut TF_WritableFileHandle>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let handle = handle.ok_or_else(|| missing("handle"))?;
        handle.write(null_mut());
        let file = files::create(&filename.text("filename")?)?;
        handle.write(Box::into_raw(Box::new(TF_WritableFileHandle { file })));
        Ok(())
    });
}

/// Hands what was written to the system, closes the file and frees the handle, also after an error. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CloseWritableFile(
    handle: Option<Box<TF_WritableFileHandle>>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || handle.map_or(Ok(()), |handle| handle.file.close()));
}

/// Hands what was written to the system, and makes it survive a crash of the machine.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SyncWritableFile(
    handle: Option<&mut TF_WritableFileHandle>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || given_mut(handle, "handle")?.file.sync());
}

/// Hands what was written to the system.
#[unsafe(no_mangle)]
pub extern "C" fn TF_FlushWritableFile(
    handle: Option<&mut TF_WritableFileHandle>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || given_mut(handle, "handle")?.file.flush());
}

/// Adds `length` bytes to a file.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AppendWritableFile(
    handle: Option<&mut TF_WritableFileHandle>,
    data: Array<c_char>,
    length: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let bytes = data.bytes(length, "data")?;
        given_mut(handle, "handle")?.file.append(bytes)
    });
}

/// Deletes a file.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteFile(filename: Text, status: Option<&mut TF_Status>) {
    guard(status, || files::delete(&filename.text("filename")?));
}

/// Writes the address of the next text, which belongs to the stream, and returns true; false, and NULL, after the last one.
#[unsafe(no_mangle)]
pub extern "C" fn TF_StringStreamNext(
    list: Option<&mut TF_StringStream>,
    result: Out<*const c_char>,
) -> bool {
    quiet(false, || {
        let result = result.ok_or_else(|| missing("result"))?;
        result.write(null());
        let list = given_mut(list, "list")?;
        let Some(text) = list.texts.get(list.next) else {
            return Ok(false);
        };
        list.next += 1;
        result.write(text.as_ptr());
        Ok(true)
    })
}

/// Frees a stream and its texts; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_StringStreamDone(list: Option<Box<TF_StringStream>>) {
    quiet((), || {
        drop(list);
        Ok(())
    });
}

/// The names in a folder, sorted. Free them with `TF_StringStreamDone`, also after an error, when there are none: NOT_FOUND when
/// there is no such folder.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetChildren(
    filename: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_StringStream>> {
    let mut names = Vec::new();
    guard(status, || {
        names = files::list(&filename.text("filename")?)?;
        Ok(())
    });
    quiet(None, || Ok(Some(Box::new(TF_StringStream::of(names)))))
}

/// The folder for files that are not kept, with a slash at its end, if there is one that can be used: what TEST_TMPDIR, TMPDIR
/// or TMP names, or `/tmp`. Free the stream with `TF_StringStreamDone`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetLocalTempDirectories() -> Option<Box<TF_StringStream>> {
    quiet(None, || {
        Ok(Some(Box::new(TF_StringStream::of(temporary_folder()))))
    })
}

fn temporary_folder() -> Option<String> {
    let named = ["TEST_TMPDIR", "TMPDIR", "TMP"].map(ff_platform::environment::text);
    let mut folders = named.into_iter().flatten().chain([system_folder()]);
    let folder = folders.find(|folder| files::is_directory(folder))?;
    Some(if folder.ends_with('/') {
        folder
    } else {
        folder + "/"
    })
}

fn system_folder() -> String {
    if cfg!(unix) {
        "/tmp".to_string()
    } else {
        std::env::temp_dir().to_string_lossy().into_owned()
    }
}

/// Creates an empty file whose name nothing else has, and returns its path, with a point and `extension` at the end unless
/// that is empty. Free the text with `free`. NULL when that fails.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetTempFileName(extension: Text) -> *mut c_char {
    quiet(null_mut(), || {
        let folder = temporary_folder().ok_or_else(|| missing("the folder for files that are not kept"))?;
        let extension = match &*extension.or_empty() {
            "" => String::new(),
            extension => format!(".{extension}"),
        };
        let path = new_file(&folder, &extension)?;
        let path = c_string(&path);
        // SAFETY: a C string.
        Ok(unsafe { libc::strdup(path.as_ptr()) })
    })
}

fn new_file(folder: &str, extension: &str) -> Result<String> {
    const TRIES: u64 = 100;
    let seed = crate::TF_NowNanos() ^ (u64::from(std::process::id()) << 32);
    for number in 0..TRIES {
        let path = format!(
            "{folder}tmp_file_tensorflow_{:x}{extension}",
            seed.wrapping_add(number)
        );
        if std::fs::File::create_new(&path).is_ok() {
            return Ok(path);
        }
    }
    ensure!(false, Internal, "no file can be created in {folder}");
    Ok(String::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TF_GetCode;

    #[test]
    fn null_is_an_error() {
        let mut status = TF_Status::default();
        TF_CreateDir(Text::NULL, Some(&mut status));
        assert_eq!(TF_GetCode(Some(&status)).0, 3);
        TF_NewWritableFile(Text::new(c"x"), None, Some(&mut status));
        assert_eq!(TF_GetCode(Some(&status)).0, 3);
        TF_AppendWritableFile(None, Array::new(&[]), 0, Some(&mut status));
        assert_eq!(TF_GetCode(Some(&status)).0, 3);
        TF_CloseWritableFile(None, Some(&mut status));
        assert_eq!(TF_GetCode(Some(&status)).0, 0);
        assert!(!TF_StringStreamNext(None, None));
        TF_StringStreamDone(None);
        TF_StringStreamDone(TF_GetChildren(Text::new(c"/no/such/folder"), Some(&mut status)));
        assert_eq!(TF_GetCode(Some(&status)).0, 5);
    }
}
