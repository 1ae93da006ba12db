/* Files, time, threads and shared libraries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/env.h>

#include "harness/harness.h"

static TF_Status* status;

static int compare_texts(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

/* Prints a stream, sorted: file systems list in any order. */
static void print_stream(const char* what, TF_StringStream* stream) {
    if (!stream) {
        printf("%s: NULL\n", what);
        return;
    }
    char* texts[64];
    int count = 0;
    const char* text = "unset";
    while (TF_StringStreamNext(stream, &text) && count < 64) texts[count++] = strdup(text);
    printf("%s: after the last one: %s\n", what, text ? text : "NULL");
    qsort(texts, (size_t)count, sizeof *texts, compare_texts);
    for (int i = 0; i < count; ++i) {
        printf("  %s\n", texts[i]);
        free(texts[i]);
    }
    TF_StringStreamDone(stream);
}

static void print_stat(const char* path) {
    TF_FileStatistics stat;
    memset(&stat, 0, sizeof stat);
    TF_FileStat(path, &stat, fresh(status));
    print_status(path, status);
    if (TF_GetCode(status) != TF_OK) return;
    printf("  %s, %s", stat.is_directory ? "folder" : "file", stat.mtime_nsec > 0 ? "changed" : "no time");
    if (!stat.is_directory) printf(", %lld bytes", (long long)stat.length);
    printf("\n");
}

static void make(const char* path) {
    TF_CreateDir(path, fresh(status));
    print_status(path, status);
}

static TF_WritableFileHandle* open_file(const char* path) {
    TF_WritableFileHandle* file = NULL;
    TF_NewWritableFile(path, &file, fresh(status));
    print_status(path, status);
    printf("%s\n", file ? "a file" : "NULL");
    return file;
}

static void append(TF_WritableFileHandle* file, const char* text) {
    TF_AppendWritableFile(file, text, strlen(text), fresh(status));
    print_status("append", status);
}

static void write_text(const char* path, const char* text) {
    TF_WritableFileHandle* file = open_file(path);
    if (!file) return;
    append(file, text);
    TF_CloseWritableFile(file, fresh(status));
    print_status("close", status);
}

static void print_file_named(const char* what, const char* path) {
    TF_Buffer* buffer = read_file(path, -1);
    printf("%s: ", what);
    if (buffer) print_bytes(buffer->data, buffer->length);
    printf("%s\n", buffer ? "" : "none");
    TF_DeleteBuffer(buffer);
}

static void print_file(const char* path) { print_file_named(path, path); }

static void folders(void) {
    make("a");
    make("a");
    make("b/c");
    make("a/inner");
    make("");
    print_stat("a");
    print_stat("nothing");
    print_stat("");
    TF_DeleteDir("a", fresh(status));
    print_status("not empty", status);
    TF_DeleteDir("a/inner", fresh(status));
    print_status("empty", status);
    TF_DeleteDir("a", fresh(status));
    print_status("empty now", status);
    TF_DeleteDir("a", fresh(status));
    print_status("gone", status);
}

static void writing(void) {
    TF_WritableFileHandle* file = open_file("text.txt");
    append(file, "one ");
    append(file, "");
    TF_FlushWritableFile(file, fresh(status));
    print_status("flush", status);
    print_file("text.txt");
    append(file, "two");
    TF_SyncWritableFile(file, fresh(status));
    print_status("sync", status);
    print_file("text.txt");
    TF_CloseWritableFile(file, fresh(status));
    print_status("close", status);
    print_stat("text.txt");
    write_text("text.txt", "again");
    print_file("text.txt");
    open_file("no/such/folder/file");
    make("folder");
    open_file("folder");
    TF_DeleteFile("text.txt", fresh(status));
    print_status("delete", status);
    TF_DeleteFile("text.txt", fresh(status));
    print_status("delete again", status);
    TF_DeleteFile("folder", fresh(status));
    print_status("delete a folder", status);
}

static void other_file_systems(void) {
    char here[512], uri[600];
    TF_StringStream* folders = TF_GetLocalTempDirectories();
    const char* folder = NULL;
    printf("%d\n", TF_StringStreamNext(folders, &folder));
    snprintf(here, sizeof here, "%scapi_test_of_uris", folder);
    TF_StringStreamDone(folders);
    snprintf(uri, sizeof uri, "file://%s", here);
    TF_WritableFileHandle* file = NULL;
    TF_NewWritableFile(uri, &file, fresh(status));
    print_code("file://", status);
    append(file, "text");
    TF_CloseWritableFile(file, fresh(status));
    print_file_named("written", here);
    TF_DeleteFile(uri, fresh(status));
    print_code("delete", status);
    write_text("ram://x/in_memory.txt", "kept in memory");
    TF_FileStatistics stat;
    TF_FileStat("ram://x/in_memory.txt", &stat, fresh(status));
    print_status("stat", status);
    printf("%lld bytes\n", (long long)stat.length);
    open_file("nonsense://file");
}

static void listing(void) {
    make("list");
    make("list/inner");
    write_text("list/b.txt", "b");
    write_text("list/a.txt", "a");
    print_stream("list", TF_GetChildren("list", fresh(status)));
    print_status("list", status);
    print_stream("list/", TF_GetChildren("list/", fresh(status)));
    print_stream("empty", TF_GetChildren("list/inner", fresh(status)));
    print_status("empty", status);
    print_stream("missing", TF_GetChildren("missing", fresh(status)));
    print_status("missing", status);
    print_stream("a file", TF_GetChildren("list/a.txt", fresh(status)));
    print_status("a file", status);
}

static void delete_all(const char* path) {
    int64_t files = 77, directories = 77;
    TF_DeleteRecursively(path, &files, &directories, fresh(status));
    print_status(path, status);
    printf("left: %lld files, %lld folders\n", (long long)files, (long long)directories);
}

static void deleting_all(void) {
    make("top");
    make("top/inner");
    make("top/inner/deep");
    write_text("top/a.txt", "a");
    write_text("top/inner/b.txt", "b");
    delete_all("top");
    print_stat("top");
    delete_all("top");
    write_text("single.txt", "s");
    delete_all("single.txt");
    print_stat("single.txt");
}

static void temporary_names(void) {
    static const char* const EXTENSIONS[] = {"txt", "", "tar.gz"};
    char* names[3];
    for (int i = 0; i < 3; ++i) {
        names[i] = TF_GetTempFileName(EXTENSIONS[i]);
        TF_FileStatistics stat;
        TF_FileStat(names[i], &stat, fresh(status));
        print_code("made", status);
        printf("%lld bytes, ends well: %d\n", (long long)stat.length,
               strcmp(names[i] + strlen(names[i]) - strlen(EXTENSIONS[i]), EXTENSIONS[i]) == 0);
    }
    printf("all different: %d\n", strcmp(names[0], names[1]) != 0 && strcmp(names[1], names[2]) != 0);
    for (int i = 0; i < 3; ++i) {
        TF_DeleteFile(names[i], fresh(status));
        free(names[i]);
    }
}

static void clocks(void) {
    uint64_t seconds = TF_NowSeconds(), micros = TF_NowMicros(), nanos = TF_NowNanos();
    printf("%d %d %d\n", seconds > 1600000000u, micros / 1000000 - seconds <= 1, nanos / 1000 - micros < 1000000);
    printf("goes on: %d\n", TF_NowNanos() >= nanos);
}

static void count(void* parameter) { *(int*)parameter += 1; }

static void threads(void) {
    TF_ThreadOptions options;
    TF_DefaultThreadOptions(&options);
    printf("%zu %zu %d\n", options.stack_size, options.guard_size, options.numa_node);
    int counter = 0;
    for (int i = 0; i < 3; ++i) {
        if (i == 2) options.stack_size = 1 << 20;
        TF_Thread* thread = TF_StartThread(&options, "counts", count, &counter);
        printf("%s\n", thread ? "a thread" : "NULL");
        TF_JoinThread(thread);
        printf("%d\n", counter);
    }
}

static void libraries(void) {
    void* library = TF_LoadSharedLibrary("libm.so.6", fresh(status));
    print_status("load", status);
    printf("%s\n", library ? "a library" : "NULL");
    if (library) {
        union {
            void* address;
            double (*call)(double);
        } root;
        root.address = TF_GetSymbolFromLibrary(library, "sqrt", fresh(status));
        print_status("sqrt", status);
        if (root.address) printf("%g\n", root.call(16));
        void* none = TF_GetSymbolFromLibrary(library, "no_such_symbol", fresh(status));
        print_code("missing", status); /* the text has the path of the library in it */
        printf("%s\n", none ? "an address" : "NULL");
    }
    library = TF_LoadSharedLibrary("./no_such_library.so", fresh(status));
    print_status("load", status);
    printf("%s\n", library ? "a library" : "NULL");
}

#define WITH_STATUS(body)          \
    static void run_##body(void) { \
        status = TF_NewStatus();   \
        body();                    \
        TF_DeleteStatus(status);   \
    }
#define CASE(body) {#body, run_##body}

WITH_STATUS(folders)
WITH_STATUS(writing)
WITH_STATUS(other_file_systems)
WITH_STATUS(listing)
WITH_STATUS(deleting_all)
WITH_STATUS(temporary_names)
WITH_STATUS(clocks)
WITH_STATUS(threads)
WITH_STATUS(libraries)

static const Case CASES[] = {
    CASE(folders),         CASE(writing), CASE(other_file_systems), CASE(listing),   CASE(deleting_all),
    CASE(temporary_names), CASE(clocks),  CASE(threads),            CASE(libraries),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
