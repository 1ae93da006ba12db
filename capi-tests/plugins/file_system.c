/* A plug-in with files in memory under two schemes: `full://`, with every function, and `bare://`, with those that cannot
 * be left out. Both see the same files. Built with WRONG it is a plug-in that must be refused. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/experimental/filesystem/filesystem_interface.h>
#include <tensorflow/c/tf_status.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct Entry {
    char* path;
    char* bytes; /* NULL for a folder */
    size_t length;
    struct Entry* next;
} Entry;

static Entry* entries;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int open_files, closed_files, allocated, freed;

/* Files opened and not released, files closed, memory given to the library and not freed. */
EXPORT int file_system_open(void) { return open_files; }
EXPORT int file_system_closed(void) { return closed_files; }
EXPORT int file_system_unfreed(void) { return allocated - freed; }

static void* allocate(size_t size) {
    ++allocated;
    return calloc(1, size);
}

static void release(void* memory) {
    if (memory) ++freed;
    free(memory);
}

static char* copied(const char* text) {
    char* copy = allocate(strlen(text) + 1);
    return strcpy(copy, text);
}

static Entry root = {"/", NULL, 0, NULL};

static Entry* find(const char* path) {
    if (strcmp(path, "/") == 0) return &root;
    for (Entry* entry = entries; entry; entry = entry->next)
        if (strcmp(entry->path, path) == 0) return entry;
    return NULL;
}

static Entry* add(const char* path, int is_file) {
    Entry* entry = calloc(1, sizeof(Entry));
    entry->path = strdup(path);
    if (is_file) entry->bytes = calloc(1, 1);
    entry->next = entries;
    return entries = entry;
}

static void erase(Entry* dead) {
    for (Entry** at = &entries; *at; at = &(*at)->next) {
        if (*at != dead) continue;
        *at = dead->next;
        free(dead->path), free(dead->bytes), free(dead);
        return;
    }
}

static void answer(TF_Status* status, const Entry* entry, const char* path) {
    TF_SetStatus(status, entry ? TF_OK : TF_NOT_FOUND, entry ? "" : path);
}

/* Entries are kept by name while files are open, as an open file may be deleted. */
static int64_t read_file(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer, TF_Status* status) {
    pthread_mutex_lock(&lock);
    const Entry* entry = find(file->plugin_file);
    size_t length = entry ? entry->length : 0, count = 0;
    if (offset < length) count = length - offset < n ? length - offset : n;
    if (count) memcpy(buffer, entry->bytes + offset, count);
    TF_SetStatus(status, count < n ? TF_OUT_OF_RANGE : TF_OK, count < n ? "the file ends" : "");
    pthread_mutex_unlock(&lock);
    return (int64_t)count;
}

static void close_reader(TF_RandomAccessFile* file) {
    free(file->plugin_file);
    __sync_fetch_and_sub(&open_files, 1);
}

static void append(const TF_WritableFile* file, const char* buffer, size_t n, TF_Status* status) {
    pthread_mutex_lock(&lock);
    Entry* entry = find(file->plugin_file);
    answer(status, entry, file->plugin_file);
    if (entry) {
        entry->bytes = realloc(entry->bytes, entry->length + n + 1);
        memcpy(entry->bytes + entry->length, buffer, n);
        entry->length += n;
    }
    pthread_mutex_unlock(&lock);
}

static int64_t tell(const TF_WritableFile* file, TF_Status* status) {
    const Entry* entry = find(file->plugin_file);
    answer(status, entry, file->plugin_file);
    return entry ? (int64_t)entry->length : -1;
}

static void do_nothing(const TF_WritableFile* file, TF_Status* status) {
    (void)file;
    TF_SetStatus(status, TF_OK, "");
}

static void close_file(const TF_WritableFile* file, TF_Status* status) {
    (void)file;
    __sync_fetch_and_add(&closed_files, 1);
    TF_SetStatus(status, TF_OK, "");
}

static void release_writer(TF_WritableFile* file) {
    free(file->plugin_file);
    __sync_fetch_and_sub(&open_files, 1);
}

static void release_region(TF_ReadOnlyMemoryRegion* region) {
    (void)region;
    __sync_fetch_and_sub(&open_files, 1);
}

static const void* region_data(const TF_ReadOnlyMemoryRegion* region) {
    return ((const Entry*)region->plugin_memory_region)->bytes;
}

static uint64_t region_length(const TF_ReadOnlyMemoryRegion* region) {
    return ((const Entry*)region->plugin_memory_region)->length;
}

static void init(TF_Filesystem* filesystem, TF_Status* status) {
    filesystem->plugin_filesystem = &entries;
    TF_SetStatus(status, TF_OK, "");
}

static void cleanup(TF_Filesystem* filesystem) { filesystem->plugin_filesystem = NULL; }

static void new_reader(const TF_Filesystem* filesystem, const char* path, TF_RandomAccessFile* file,
                       TF_Status* status) {
    (void)filesystem;
    Entry* entry = find(path);
    answer(status, entry, path);
    if (!entry) return;
    file->plugin_file = strdup(path);
    __sync_fetch_and_add(&open_files, 1);
}

static void new_writer(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file, TF_Status* status) {
    (void)filesystem;
    pthread_mutex_lock(&lock);
    Entry* entry = find(path);
    if (!entry) entry = add(path, 1);
    entry->length = 0;
    pthread_mutex_unlock(&lock);
    file->plugin_file = strdup(path);
    __sync_fetch_and_add(&open_files, 1);
    TF_SetStatus(status, TF_OK, "");
}

static void new_appender(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file, TF_Status* status) {
    Entry* entry = find(path);
    size_t length = entry ? entry->length : 0;
    new_writer(filesystem, path, file, status);
    find(path)->length = length;
}

static void new_region(const TF_Filesystem* filesystem, const char* path, TF_ReadOnlyMemoryRegion* region,
                       TF_Status* status) {
    (void)filesystem;
    Entry* entry = find(path);
    answer(status, entry, path);
    if (!entry) return;
    region->plugin_memory_region = entry;
    __sync_fetch_and_add(&open_files, 1);
}

static void create_dir(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
    (void)filesystem;
    if (find(path)) {
        TF_SetStatus(status, TF_ALREADY_EXISTS, path);
        return;
    }
    add(path, 0);
    TF_SetStatus(status, TF_OK, "");
}

static void create_dirs(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
    create_dir(filesystem, path, status);
    TF_SetStatus(status, TF_OK, "");
}

static void delete_entry(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
    (void)filesystem;
    Entry* entry = find(path);
    answer(status, entry, path);
    if (entry) erase(entry);
}

static int below(const Entry* entry, const char* path) {
    size_t n = strlen(path);
    return strncmp(entry->path, path, n) == 0 && entry->path[n] == '/';
}

static void delete_recursively(const TF_Filesystem* filesystem, const char* path, uint64_t* undeleted_files,
                               uint64_t* undeleted_dirs, TF_Status* status) {
    *undeleted_files = *undeleted_dirs = 0;
    for (Entry* entry = entries; entry;) {
        Entry* next = entry->next;
        if (below(entry, path)) erase(entry);
        entry = next;
    }
    delete_entry(filesystem, path, status);
}

static void rename_file(const TF_Filesystem* filesystem, const char* src, const char* dst, TF_Status* status) {
    (void)filesystem;
    pthread_mutex_lock(&lock);
    Entry *from = find(src), *to = find(dst);
    answer(status, from, src);
    if (from) {
        if (to) erase(to);
        free(from->path);
        from->path = strdup(dst);
    }
    pthread_mutex_unlock(&lock);
}

static void path_exists(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
    (void)filesystem;
    answer(status, find(path), path);
}

static void stat_path(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* stats, TF_Status* status) {
    (void)filesystem;
    const Entry* entry = find(path);
    answer(status, entry, path);
    if (!entry) return;
    stats->length = (int64_t)entry->length;
    stats->mtime_nsec = 1234567;
    stats->is_directory = entry->bytes == NULL;
}

static bool is_directory(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
    (void)filesystem;
    const Entry* entry = find(path);
    answer(status, entry, path);
    if (entry && entry->bytes) TF_SetStatus(status, TF_FAILED_PRECONDITION, "not a directory");
    return entry && !entry->bytes;
}

static int64_t file_size(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
    (void)filesystem;
    const Entry* entry = find(path);
    answer(status, entry, path);
    return entry ? (int64_t)entry->length : -1;
}

/* full://host/a/b is /a/b, too. */
static char* translate(const TF_Filesystem* filesystem, const char* uri) {
    (void)filesystem;
    const char* rest = strstr(uri, "://");
    rest = rest ? strchr(rest + 3, '/') : uri;
    return copied(rest ? rest : "/");
}

static int children(const TF_Filesystem* filesystem, const char* path, char*** names, TF_Status* status) {
    (void)filesystem;
    size_t n = strcmp(path, "/") == 0 ? 0 : strlen(path);
    int count = 0;
    *names = allocate(64 * sizeof(char*));
    for (Entry* entry = entries; entry && count < 64; entry = entry->next)
        if (strncmp(entry->path, path, n) == 0 && entry->path[n] == '/' && !strchr(entry->path + n + 1, '/'))
            (*names)[count++] = copied(entry->path + n + 1);
    TF_SetStatus(status, TF_OK, "");
    return count;
}

/* All files, whatever the pattern is. */
static int matching(const TF_Filesystem* filesystem, const char* glob, char*** names, TF_Status* status) {
    (void)filesystem;
    int count = 0;
    *names = allocate(64 * sizeof(char*));
    (*names)[count++] = copied(glob);
    TF_SetStatus(status, TF_OK, "");
    return count;
}

static void flush_caches(const TF_Filesystem* filesystem) { (void)filesystem; }

static void fill(TF_FilesystemPluginOps* ops, const char* scheme, int full) {
    TF_SetFilesystemVersionMetadata(ops);
    ops->scheme = copied(scheme);
    ops->filesystem_ops = allocate(sizeof(TF_FilesystemOps));
    TF_FilesystemOps* system = ops->filesystem_ops;
    system->init = init, system->cleanup = cleanup;
    system->new_random_access_file = new_reader, system->new_writable_file = new_writer;
    system->new_appendable_file = new_appender;
    system->create_dir = create_dir;
    system->delete_file = delete_entry, system->delete_dir = delete_entry;
    system->path_exists = path_exists, system->stat = stat_path;
    system->get_children = children;
    ops->random_access_file_ops = allocate(sizeof(TF_RandomAccessFileOps));
    ops->random_access_file_ops->cleanup = close_reader;
    ops->random_access_file_ops->read = read_file;
    ops->writable_file_ops = allocate(sizeof(TF_WritableFileOps));
    ops->writable_file_ops->cleanup = release_writer;
    ops->writable_file_ops->append = append;
    ops->writable_file_ops->close = close_file;
    if (!full) return;
    ops->writable_file_ops->tell = tell;
    ops->writable_file_ops->flush = ops->writable_file_ops->sync = do_nothing;
    ops->read_only_memory_region_ops = allocate(sizeof(TF_ReadOnlyMemoryRegionOps));
    ops->read_only_memory_region_ops->cleanup = release_region;
    ops->read_only_memory_region_ops->data = region_data;
    ops->read_only_memory_region_ops->length = region_length;
    system->new_read_only_memory_region_from_file = new_region;
    system->recursively_create_dir = create_dirs, system->delete_recursively = delete_recursively;
    system->rename_file = rename_file;
    system->is_directory = is_directory, system->get_file_size = file_size;
    system->translate_name = translate;
    system->get_matching_paths = matching;
    system->flush_caches = flush_caches;
}

EXPORT void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
    info->plugin_memory_allocate = allocate;
    info->plugin_memory_free = release;
    info->num_schemes = 2;
    info->ops = allocate(2 * sizeof(TF_FilesystemPluginOps));
    fill(&info->ops[0], "full", 1);
    fill(&info->ops[1], "bare", 0);
#if WRONG == 1
    info->plugin_memory_free = NULL;
#elif WRONG == 2
    info->plugin_memory_allocate = NULL;
#elif WRONG == 3
    info->ops[0].filesystem_ops_abi = 7;
    info->ops[1].filesystem_ops->init = NULL;
#elif WRONG == 4
    info->ops[0].filesystem_ops->cleanup = NULL;
    info->num_schemes = 1;
#elif WRONG == 5
    info->ops[0].random_access_file_ops->cleanup = NULL;
    info->num_schemes = 1;
#elif WRONG == 6
    info->ops[0].read_only_memory_region_ops->data = NULL;
    info->num_schemes = 1;
#elif WRONG == 7
    info->ops[0].scheme = NULL;
    info->num_schemes = 1;
#elif WRONG == 8
    info->ops[0].writable_file_ops_abi = -1;
    info->num_schemes = 1;
#endif
}
