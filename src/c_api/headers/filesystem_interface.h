#ifndef TENSORFLOW_C_EXPERIMENTAL_FILESYSTEM_FILESYSTEM_INTERFACE_H_
#define TENSORFLOW_C_EXPERIMENTAL_FILESYSTEM_FILESYSTEM_INTERFACE_H_

/* File systems that plug-ins add. A plug-in is a shared library that defines TF_InitPlugin; TF_RegisterFilesystemPlugin
 * (c_api_experimental.h) loads it. For each scheme it gives tables of functions, which the library copies and calls from
 * then on, on any thread, also on several at once; one file that is written is used by one thread at a time.
 *
 * Paths are what `translate_name` makes of a URI or, without it, the part of the URI after scheme and host. A function that
 * takes a status sets it on every call; those that the library can do without may be NULL. Strings and arrays that
 * functions return come from `plugin_memory_allocate` and are freed by `plugin_memory_free`. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_file_statistics.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the library holds of a file that is read, a file that is written, a file in memory and a file system: a pointer of
 * the plug-in's own. */
typedef struct TF_RandomAccessFile {
  void *plugin_file;
} TF_RandomAccessFile;

typedef struct TF_WritableFile {
  void *plugin_file;
} TF_WritableFile;

typedef struct TF_ReadOnlyMemoryRegion {
  void *plugin_memory_region;
} TF_ReadOnlyMemoryRegion;

typedef struct TF_Filesystem {
  void *plugin_filesystem;
} TF_Filesystem;

/* A transaction. The library starts none. */
typedef struct TF_TransactionToken {
  void *token;
  TF_Filesystem *owner;
} TF_TransactionToken;

/* An option of a file system. The library sets and reads none. */
typedef union TF_Filesystem_Option_Value_Union {
  int64_t int_val;
  double real_val;
  struct {
    char *buf;
    int buf_length;
  } buffer_val;
} TF_Filesystem_Option_Value_Union;

typedef struct TF_Filesystem_Option_Value {
  int type_tag;
  int num_values;
  TF_Filesystem_Option_Value_Union *values;
} TF_Filesystem_Option_Value;

typedef enum TF_Filesystem_Option_Type {
  TF_Filesystem_Option_Type_Int = 0,
  TF_Filesystem_Option_Type_Real = 1,
  TF_Filesystem_Option_Type_Buffer = 2,
  TF_Filesystem_Num_Option_Types = 3,
} TF_Filesystem_Option_Type;

typedef struct TF_Filesystem_Option {
  char *name;
  char *description;
  int per_file;
  TF_Filesystem_Option_Value *value;
} TF_Filesystem_Option;

/* A file that is read, at any place. */
typedef struct TF_RandomAccessFileOps {
  /* Closes the file. Required. */
  void (*cleanup)(TF_RandomAccessFile *file);
  /* Reads up to `n` bytes and returns how many they were; OUT_OF_RANGE when the file ends before. */
  int64_t (*read)(const TF_RandomAccessFile *file, uint64_t offset, size_t n, char *buffer, TF_Status *status);
} TF_RandomAccessFileOps;

/* A file that is written, from its start or its end on. */
typedef struct TF_WritableFileOps {
  /* Frees what belongs to the file. Required. */
  void (*cleanup)(TF_WritableFile *file);
  /* Adds bytes. */
  void (*append)(const TF_WritableFile *file, const char *buffer, size_t n, TF_Status *status);
  /* How many bytes were written. */
  int64_t (*tell)(const TF_WritableFile *file, TF_Status *status);
  /* Hands bytes on; NULL where there is nothing to do. */
  void (*flush)(const TF_WritableFile *file, TF_Status *status);
  /* Makes bytes last; NULL where `flush` does. */
  void (*sync)(const TF_WritableFile *file, TF_Status *status);
  /* Ends the writing; `cleanup` is called after it. */
  void (*close)(const TF_WritableFile *file, TF_Status *status);
} TF_WritableFileOps;

/* A file as memory that does not change. */
typedef struct TF_ReadOnlyMemoryRegionOps {
  /* Frees it. Required. */
  void (*cleanup)(TF_ReadOnlyMemoryRegion *region);
  /* Its first byte. Required. */
  const void *(*data)(const TF_ReadOnlyMemoryRegion *region);
  /* The number of its bytes. Required. */
  uint64_t (*length)(const TF_ReadOnlyMemoryRegion *region);
} TF_ReadOnlyMemoryRegionOps;

/* A file system. */
typedef struct TF_FilesystemOps {
  /* Sets it up. Required. */
  void (*init)(TF_Filesystem *filesystem, TF_Status *status);
  /* Ends it. Required; file systems live as long as the process. */
  void (*cleanup)(TF_Filesystem *filesystem);
  /* Opens a file to read it, to write it from its start, to write it from its end, and as memory. NOT_FOUND where there is
   * none to read. Without the last, files are read. */
  void (*new_random_access_file)(const TF_Filesystem *filesystem, const char *path, TF_RandomAccessFile *file,
                                 TF_Status *status);
  void (*new_writable_file)(const TF_Filesystem *filesystem, const char *path, TF_WritableFile *file,
                            TF_Status *status);
  void (*new_appendable_file)(const TF_Filesystem *filesystem, const char *path, TF_WritableFile *file,
                              TF_Status *status);
  void (*new_read_only_memory_region_from_file)(const TF_Filesystem *filesystem, const char *path,
                                                TF_ReadOnlyMemoryRegion *region, TF_Status *status);
  /* Makes a folder: ALREADY_EXISTS where something is. The second makes those above it, too, and may find it there. */
  void (*create_dir)(const TF_Filesystem *filesystem, const char *path, TF_Status *status);
  void (*recursively_create_dir)(const TF_Filesystem *filesystem, const char *path, TF_Status *status);
  /* Deletes a file, an empty folder, a folder with what it holds. */
  void (*delete_file)(const TF_Filesystem *filesystem, const char *path, TF_Status *status);
  void (*delete_dir)(const TF_Filesystem *filesystem, const char *path, TF_Status *status);
  void (*delete_recursively)(const TF_Filesystem *filesystem, const char *path, uint64_t *undeleted_files,
                             uint64_t *undeleted_dirs, TF_Status *status);
  /* Renames or copies a file, in place of what is at the other path. Without the first, a file is copied and deleted. */
  void (*rename_file)(const TF_Filesystem *filesystem, const char *src, const char *dst, TF_Status *status);
  void (*copy_file)(const TF_Filesystem *filesystem, const char *src, const char *dst, TF_Status *status);
  /* OK where there is something, else NOT_FOUND. */
  void (*path_exists)(const TF_Filesystem *filesystem, const char *path, TF_Status *status);
  /* The same of several paths: whether all are there, and a status for each unless `statuses` is NULL. */
  bool (*paths_exist)(const TF_Filesystem *filesystem, char **paths, int num_files, TF_Status **statuses);
  /* What is known of a path. */
  void (*stat)(const TF_Filesystem *filesystem, const char *path, TF_FileStatistics *stats, TF_Status *status);
  /* OK for a folder, FAILED_PRECONDITION for a file, NOT_FOUND. */
  bool (*is_directory)(const TF_Filesystem *filesystem, const char *path, TF_Status *status);
  /* The bytes of a file. */
  int64_t (*get_file_size)(const TF_Filesystem *filesystem, const char *path, TF_Status *status);
  /* The path that the other functions get for a URI. */
  char *(*translate_name)(const TF_Filesystem *filesystem, const char *uri);
  /* The names in a folder; returns how many there are, or a negative number with an error. */
  int (*get_children)(const TF_Filesystem *filesystem, const char *path, char ***entries, TF_Status *status);
  /* The paths that match a pattern, likewise. */
  int (*get_matching_paths)(const TF_Filesystem *filesystem, const char *glob, char ***entries, TF_Status *status);
  /* Forgets what is remembered of files. */
  void (*flush_caches)(const TF_Filesystem *filesystem);
  /* Transactions and options: not called. */
  int (*start_transaction)(const TF_Filesystem *filesystem, TF_TransactionToken **token, TF_Status *status);
  int (*end_transaction)(const TF_Filesystem *filesystem, TF_TransactionToken *token, TF_Status *status);
  int (*add_to_transaction)(const TF_Filesystem *filesystem, const char *path, TF_TransactionToken *token,
                            TF_Status *status);
  int (*get_transaction_for_path)(const TF_Filesystem *filesystem, const char *path, TF_TransactionToken **token,
                                  TF_Status *status);
  int (*get_or_start_transaction_for_path)(const TF_Filesystem *filesystem, const char *path,
                                           TF_TransactionToken **token, TF_Status *status);
  char *(*decode_transaction_token)(const TF_Filesystem *filesystem, const TF_TransactionToken *token);
  void (*get_filesystem_configuration)(const TF_Filesystem *filesystem, TF_Filesystem_Option **options,
                                       int *num_options, TF_Status *status);
  void (*set_filesystem_configuration)(const TF_Filesystem *filesystem, const TF_Filesystem_Option *options,
                                       int num_options, TF_Status *status);
  void (*get_filesystem_configuration_option)(const TF_Filesystem *filesystem, const char *key,
                                              TF_Filesystem_Option **option, TF_Status *status);
  void (*set_filesystem_configuration_option)(const TF_Filesystem *filesystem, const TF_Filesystem_Option *option,
                                              TF_Status *status);
  void (*get_filesystem_configuration_keys)(const TF_Filesystem *filesystem, char **keys, int *num_keys,
                                            TF_Status *status);
} TF_FilesystemOps;

/* Versions and sizes of the tables. Of another ABI a plug-in is refused; of another size, what both know is used. */
#define TF_RANDOM_ACCESS_FILE_OPS_API 0
#define TF_RANDOM_ACCESS_FILE_OPS_ABI 0
#define TF_RANDOM_ACCESS_FILE_OPS_SIZE sizeof(TF_RandomAccessFileOps)
#define TF_WRITABLE_FILE_OPS_API 0
#define TF_WRITABLE_FILE_OPS_ABI 0
#define TF_WRITABLE_FILE_OPS_SIZE sizeof(TF_WritableFileOps)
#define TF_READ_ONLY_MEMORY_REGION_OPS_API 0
#define TF_READ_ONLY_MEMORY_REGION_OPS_ABI 0
#define TF_READ_ONLY_MEMORY_REGION_OPS_SIZE sizeof(TF_ReadOnlyMemoryRegionOps)
#define TF_FILESYSTEM_OPS_API 0
#define TF_FILESYSTEM_OPS_ABI 0
#define TF_FILESYSTEM_OPS_SIZE sizeof(TF_FilesystemOps)

/* One scheme: its name (of `x` in `x://...`), its tables, and their versions. All that it points to comes from
 * `plugin_memory_allocate`; the library copies and frees it. */
typedef struct TF_FilesystemPluginOps {
  char *scheme;
  int filesystem_ops_abi;
  int filesystem_ops_api;
  size_t filesystem_ops_size;
  TF_FilesystemOps *filesystem_ops;
  int random_access_file_ops_abi;
  int random_access_file_ops_api;
  size_t random_access_file_ops_size;
  TF_RandomAccessFileOps *random_access_file_ops;
  int writable_file_ops_abi;
  int writable_file_ops_api;
  size_t writable_file_ops_size;
  TF_WritableFileOps *writable_file_ops;
  int read_only_memory_region_ops_abi;
  int read_only_memory_region_ops_api;
  size_t read_only_memory_region_ops_size;
  TF_ReadOnlyMemoryRegionOps *read_only_memory_region_ops;
} TF_FilesystemPluginOps;

/* What a plug-in gives: an array of schemes, and the functions for the memory that passes between both. */
typedef struct TF_FilesystemPluginInfo {
  size_t num_schemes;
  TF_FilesystemPluginOps *ops;
  void *(*plugin_memory_allocate)(size_t size);
  void (*plugin_memory_free)(void *ptr);
} TF_FilesystemPluginInfo;

/* Notes the versions and sizes that the plug-in was compiled with. Call it for each scheme. */
static inline void TF_SetFilesystemVersionMetadata(TF_FilesystemPluginOps *ops) {
  ops->filesystem_ops_abi = TF_FILESYSTEM_OPS_ABI;
  ops->filesystem_ops_api = TF_FILESYSTEM_OPS_API;
  ops->filesystem_ops_size = TF_FILESYSTEM_OPS_SIZE;
  ops->random_access_file_ops_abi = TF_RANDOM_ACCESS_FILE_OPS_ABI;
  ops->random_access_file_ops_api = TF_RANDOM_ACCESS_FILE_OPS_API;
  ops->random_access_file_ops_size = TF_RANDOM_ACCESS_FILE_OPS_SIZE;
  ops->writable_file_ops_abi = TF_WRITABLE_FILE_OPS_ABI;
  ops->writable_file_ops_api = TF_WRITABLE_FILE_OPS_API;
  ops->writable_file_ops_size = TF_WRITABLE_FILE_OPS_SIZE;
  ops->read_only_memory_region_ops_abi = TF_READ_ONLY_MEMORY_REGION_OPS_ABI;
  ops->read_only_memory_region_ops_api = TF_READ_ONLY_MEMORY_REGION_OPS_API;
  ops->read_only_memory_region_ops_size = TF_READ_ONLY_MEMORY_REGION_OPS_SIZE;
}

/** What a plug-in defines. The library calls it once, on one thread, with everything zero; what it fills in belongs to the
 * library. It cannot fail. */
TF_CAPI_EXPORT extern void TF_InitPlugin(TF_FilesystemPluginInfo *plugin_info);

#ifdef __cplusplus
}
#endif

#endif /* TENSORFLOW_C_EXPERIMENTAL_FILESYSTEM_FILESYSTEM_INTERFACE_H_ */
