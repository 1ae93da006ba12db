//! The tables of functions that a file system plug-in gives, as `filesystem_interface.h` lays them out, and their checks.
//!
//! Nothing here is called from C; the header is written by hand.

use crate::TF_Status;
use crate::env::TF_FileStatistics;
use ff_tensor::{Result, ensure};
use std::ffi::{c_char, c_int, c_void};

/// A pointer of the plug-in's: what stands for a file, a region or a file system.
#[repr(C)]
pub struct Opaque(pub *mut c_void);

impl Opaque {
    /// What has not been opened.
    pub const NULL: Opaque = Opaque(std::ptr::null_mut());
}

// SAFETY: the interface says that functions may be called on any thread.
unsafe impl Send for Opaque {}
// SAFETY: as above, also by several at once where it is shared.
unsafe impl Sync for Opaque {}

pub type Cleanup = Option<unsafe extern "C" fn(*mut Opaque)>;
pub type PathCall = Option<unsafe extern "C" fn(*const Opaque, *const c_char, *mut TF_Status)>;
pub type TwoPathCall =
    Option<unsafe extern "C" fn(*const Opaque, *const c_char, *const c_char, *mut TF_Status)>;
pub type OpenCall = Option<unsafe extern "C" fn(*const Opaque, *const c_char, *mut Opaque, *mut TF_Status)>;
pub type FileCall = Option<unsafe extern "C" fn(*const Opaque, *mut TF_Status)>;
pub type NamesCall = Option<
    unsafe extern "C" fn(*const Opaque, *const c_char, *mut *mut *mut c_char, *mut TF_Status) -> c_int,
>;
/// A function that is never called.
type Unused = Option<unsafe extern "C" fn()>;

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct RandomAccessFileOps {
    pub cleanup: Cleanup,
    pub read: Option<unsafe extern "C" fn(*const Opaque, u64, usize, *mut c_char, *mut TF_Status) -> i64>,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct WritableFileOps {
    pub cleanup: Cleanup,
    pub append: Option<unsafe extern "C" fn(*const Opaque, *const c_char, usize, *mut TF_Status)>,
    pub tell: Option<unsafe extern "C" fn(*const Opaque, *mut TF_Status) -> i64>,
    pub flush: FileCall,
    pub sync: FileCall,
    pub close: FileCall,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ReadOnlyMemoryRegionOps {
    pub cleanup: Cleanup,
    pub data: Option<unsafe extern "C" fn(*const Opaque) -> *const c_void>,
    pub length: Option<unsafe extern "C" fn(*const Opaque) -> u64>,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct FilesystemOps {
    pub init: Option<unsafe extern "C" fn(*mut Opaque, *mut TF_Status)>,
    pub cleanup: Cleanup,
    pub new_random_access_file: OpenCall,
    pub new_writable_file: OpenCall,
    pub new_appendable_file: OpenCall,
    pub new_read_only_memory_region_from_file: OpenCall,
    pub create_dir: PathCall,
    pub recursively_create_dir: PathCall,
    pub delete_file: PathCall,
    pub delete_dir: PathCall,
    pub delete_recursively:
        Option<unsafe extern "C" fn(*const Opaque, *const c_char, *mut u64, *mut u64, *mut TF_Status)>,
    pub rename_file: TwoPathCall,
    pub copy_file: TwoPathCall,
    pub path_exists: PathCall,
    paths_exist: Unused,
    pub stat:
        Option<unsafe extern "C" fn(*const Opaque, *const c_char, *mut TF_FileStatistics, *mut TF_Status)>,
    pub is_directory: Option<unsafe extern "C" fn(*const Opaque, *const c_char, *mut TF_Status) -> bool>,
    pub get_file_size: Option<unsafe extern "C" fn(*const Opaque, *const c_char, *mut TF_Status) -> i64>,
    pub translate_name: Option<unsafe extern "C" fn(*const Opaque, *const c_char) -> *mut c_char>,
    pub get_children: NamesCall,
    pub get_matching_paths: NamesCall,
    flush_caches: Unused,
    transactions_and_options: [Unused; 11],
}

/// One scheme of a plug-in.
#[repr(C)]
pub struct PluginOps {
    pub scheme: *mut c_char,
    filesystem_ops_abi: c_int,
    filesystem_ops_api: c_int,
    filesystem_ops_size: usize,
    pub filesystem_ops: *mut FilesystemOps,
    random_access_file_ops_abi: c_int,
    random_access_file_ops_api: c_int,
    random_access_file_ops_size: usize,
    pub random_access_file_ops: *mut RandomAccessFileOps,
    writable_file_ops_abi: c_int,
    writable_file_ops_api: c_int,
    writable_file_ops_size: usize,
    pub writable_file_ops: *mut WritableFileOps,
    read_only_memory_region_ops_abi: c_int,
    read_only_memory_region_ops_api: c_int,
    read_only_memory_region_ops_size: usize,
    pub read_only_memory_region_ops: *mut ReadOnlyMemoryRegionOps,
}

/// What `TF_InitPlugin` fills in.
#[repr(C)]
pub struct PluginInfo {
    pub num_schemes: usize,
    pub ops: *mut PluginOps,
    pub plugin_memory_allocate: Option<unsafe extern "C" fn(usize) -> *mut c_void>,
    pub plugin_memory_free: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// The tables of a scheme, checked.
#[derive(Clone, Copy)]
pub struct Tables {
    pub system: FilesystemOps,
    pub reader: RandomAccessFileOps,
    pub writer: WritableFileOps,
    pub region: ReadOnlyMemoryRegionOps,
}

/// The version that all tables have.
const ABI: c_int = 0;

/// Copies what both sides know of a table; the rest is absent. None for NULL.
///
/// # Safety
/// `table` is NULL or has `size` bytes.
unsafe fn copy<T: Copy + Default>(table: *const T, size: usize) -> Option<T> {
    if table.is_null() {
        return None;
    }
    let mut copied = T::default();
    let size = size.min(size_of::<T>());
    // SAFETY: so many bytes are there on both sides; tables are of optional functions, of which NULL is the absence.
    unsafe { std::ptr::copy_nonoverlapping(table.cast::<u8>(), (&raw mut copied).cast::<u8>(), size) };
    Some(copied)
}

fn check_abi(plugin: c_int, what: &str) -> Result<()> {
    ensure!(
        plugin == ABI,
        FailedPrecondition,
        "Plugin ABI ({plugin}) for {what} operations doesn't match expected core ABI ({ABI}). Plugin cannot be loaded."
    );
    Ok(())
}

fn check_function(is_there: bool, name: &str, of: &str) -> Result<()> {
    ensure!(
        is_there,
        FailedPrecondition,
        "Trying to register filesystem without `{name}` operation{of}"
    );
    Ok(())
}

impl PluginOps {
    /// Copies and checks the tables. FAILED_PRECONDITION for another ABI, or where a required function is missing.
    ///
    /// # Safety
    /// The tables are as the plug-in says.
    pub unsafe fn tables(&self) -> Result<Tables> {
        check_abi(self.filesystem_ops_abi, "filesystem")?;
        if !self.random_access_file_ops.is_null() {
            check_abi(self.random_access_file_ops_abi, "random access file")?;
        }
        if !self.writable_file_ops.is_null() {
            check_abi(self.writable_file_ops_abi, "writable file")?;
        }
        if !self.read_only_memory_region_ops.is_null() {
            check_abi(self.read_only_memory_region_ops_abi, "read only memory region")?;
        }
        // SAFETY: passed on to the caller.
        let (system, reader, writer, region) = unsafe {
            (
                copy(self.filesystem_ops, self.filesystem_ops_size),
                copy(self.random_access_file_ops, self.random_access_file_ops_size),
                copy(self.writable_file_ops, self.writable_file_ops_size),
                copy(
                    self.read_only_memory_region_ops,
                    self.read_only_memory_region_ops_size,
                ),
            )
        };
        let Some(system) = system else {
            ff_tensor::bail!(
                FailedPrecondition,
                "Trying to register filesystem without operations"
            );
        };
        check_function(system.init.is_some(), "init", "")?;
        check_function(system.cleanup.is_some(), "cleanup", "")?;
        if let Some(reader) = &reader {
            check_function(reader.cleanup.is_some(), "cleanup", " on random access files")?;
        }
        if let Some(writer) = &writer {
            check_function(writer.cleanup.is_some(), "cleanup", " on writable files")?;
        }
        if let Some(region) = &region {
            let of = " on read only memory regions";
            check_function(region.cleanup.is_some(), "cleanup", of)?;
            check_function(region.data.is_some(), "data", of)?;
            check_function(region.length.is_some(), "length", of)?;
        }
        Ok(Tables {
            system,
            reader: reader.unwrap_or_default(),
            writer: writer.unwrap_or_default(),
            region: region.unwrap_or_default(),
        })
    }
}
