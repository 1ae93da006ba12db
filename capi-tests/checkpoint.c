/* Checkpoints by their ops: what is written (byte by byte), what is read back, and broken files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "harness/build.h"
#include "harness/harness.h"

static TF_Graph* graph;
static TF_Session* session;

static TF_Output strings(const char* name, int count, const char* const* texts) {
    return constant(graph, name, string_vector(count, texts));
}

static int n_names = 0;

/* A name that no operation has yet. */
static const char* unique(const char* base) {
    static char name[64];
    snprintf(name, sizeof name, "%s_%d", base, n_names++);
    return name;
}

/* Builds SaveV2 of `count` tensors under names, and runs it. */
static void save(const char* prefix, int count, const char* const* names, const char* const* slices,
                 const TF_Output* tensors) {
    TF_Output prefix_output = constant(graph, unique("prefix"), string_scalar(prefix));
    TF_Output name_output = strings(unique("names"), count, names),
              slice_output = strings(unique("slices"), count, slices);
    TF_OperationDescription* description = TF_NewOperation(graph, "SaveV2", unique("save"));
    TF_AddInput(description, prefix_output);
    TF_AddInput(description, name_output);
    TF_AddInput(description, slice_output);
    TF_AddInputList(description, tensors, count);
    TF_Output saved = finish(description);
    run_and_print("save", session, NOTHING, NULL, NOTHING, saved.oper);
}

static void restore(const char* what, const char* prefix, const char* name, const char* slice, TF_DataType type) {
    TF_Output prefix_output = constant(graph, unique("prefix"), string_scalar(prefix));
    TF_Output name_output = strings(unique("names"), 1, &name), slice_output = strings(unique("slices"), 1, &slice);
    TF_OperationDescription* description = TF_NewOperation(graph, "RestoreV2", unique("restore"));
    TF_AddInput(description, prefix_output);
    TF_AddInput(description, name_output);
    TF_AddInput(description, slice_output);
    TF_SetAttrTypeList(description, "dtypes", &type, 1);
    char text[128];
    snprintf(text, sizeof text, "%s", what);
    run_and_print(text, session, NOTHING, NULL, finish(description), NULL);
}

static void print_file(const char* path) {
    TF_Buffer* buffer = read_file(path, -1);
    if (!buffer) {
        printf("%s: none\n", path);
        return;
    }
    printf("%s: %zu bytes #%016llx\n", path, buffer->length,
           (unsigned long long)hash_bytes(buffer->data, buffer->length));
    TF_DeleteBuffer(buffer);
}

static void print_checkpoint(const char* prefix) {
    char path[256];
    snprintf(path, sizeof path, "%s.index", prefix);
    print_file(path);
    snprintf(path, sizeof path, "%s.data-00000-of-00001", prefix);
    print_file(path);
}

static const char* const NO_SLICES[] = {"", "", "", "", "", "", "", ""};

static void one_tensor(void) {
    const float values[] = {1, 2, 3};
    const char* const names[] = {"v"};
    TF_Output tensor = constant(graph, "t", float_vector(3, values));
    save("one", 1, names, NO_SLICES, &tensor);
    print_checkpoint("one");
    restore("v", "one", "v", "", TF_FLOAT);
}

static void many_types(void) {
    const float f[] = {1.5f, -2};
    const int64_t dims[] = {2}, i64[] = {1, -1}, none[] = {0, 3};
    const double f64[] = {0.1, 0.2};
    const unsigned char bools[] = {1, 0};
    const uint16_t halfs[] = {0x3c00, 0x6e66};
    const char* const texts[] = {"", "text", "a longer text that does not fit inside of a string object"};
    const TF_Output tensors[] = {
        constant(graph, "f", float_vector(2, f)),
        constant(graph, "i32", int_scalar(7)),
        constant(graph, "i64", tensor_of(TF_INT64, 1, dims, i64)),
        constant(graph, "f64", tensor_of(TF_DOUBLE, 1, dims, f64)),
        constant(graph, "b", tensor_of(TF_BOOL, 1, dims, bools)),
        constant(graph, "h", tensor_of(TF_HALF, 1, dims, halfs)),
        constant(graph, "s", string_vector(3, texts)),
        constant(graph, "e", tensor_of(TF_FLOAT, 2, none, f)),
    };
    const char* const names[] = {"zeta", "int32", "int64", "double", "a/bool", "half", "string", "empty"};
    static const TF_DataType TYPES[] = {TF_FLOAT, TF_INT32, TF_INT64, TF_DOUBLE, TF_BOOL, TF_HALF, TF_STRING, TF_FLOAT};
    save("many", 8, names, NO_SLICES, tensors);
    print_checkpoint("many");
    for (int i = 0; i < 8; ++i) restore(names[i], "many", names[i], "", TYPES[i]);
}

static void many_tensors(void) {
    enum { COUNT = 400 };
    static char texts[COUNT][64];
    static const char *names[COUNT], *slices[COUNT];
    static TF_Output tensors[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        snprintf(texts[i], sizeof texts[i], "model/layer_%d/some/rather/long/name_%d", i % 20, i);
        names[i] = texts[i];
        slices[i] = "";
        tensors[i] = float_constant(graph, unique("t"), (float)i);
    }
    save("large_index", COUNT, names, slices, tensors);
    print_checkpoint("large_index");
    restore("one of them", "large_index", names[333], "", TF_FLOAT);
}

static void slices(void) {
    const float values[] = {1, 2, 3, 4, 5, 6};
    const int64_t half[] = {2, 3};
    const TF_Output tensors[] = {constant(graph, "top", tensor_of(TF_FLOAT, 2, half, values)),
                                 constant(graph, "bottom", tensor_of(TF_FLOAT, 2, half, values))};
    const char* const names[] = {"part", "part"};
    const char* const specs[] = {"4 3 0,2:-", "4 3 2,2:-"};
    save("sliced", 2, names, specs, tensors);
    print_checkpoint("sliced");
    restore("whole", "sliced", "part", "", TF_FLOAT);
    restore("the middle", "sliced", "part", "4 3 1,2:0,2", TF_FLOAT);
    restore("wrong shape", "sliced", "part", "5 3 1,2:-", TF_FLOAT);
    restore("nonsense", "sliced", "part", "nonsense", TF_FLOAT);
}

static void reading_errors(void) {
    const char* const names[] = {"v"};
    TF_Output tensor = float_constant(graph, "t", 1);
    save("errors", 1, names, NO_SLICES, &tensor);
    restore("no such tensor", "errors", "missing", "", TF_FLOAT);
    restore("another type", "errors", "v", "", TF_INT32);
    restore("no such file", "nowhere", "v", "", TF_FLOAT);
    restore("index as prefix", "errors.index", "v", "", TF_FLOAT);
    restore("empty prefix", "", "v", "", TF_FLOAT);
    restore("still usable", "errors", "v", "", TF_FLOAT);
}

static void writing_errors(void) {
    const char* const names[] = {"v"};
    TF_Output tensor = float_constant(graph, "t", 1);
    save("no_such_folder/inside/x", 1, names, NO_SLICES, &tensor);
    print_checkpoint("no_such_folder/inside/x");
    const char* const equal[] = {"v", "v"};
    const TF_Output twice[] = {tensor, tensor};
    save("one_name_twice", 2, equal, NO_SLICES, twice);
}

static void corrupt(const char* prefix, const char* suffix, long keep, long flip) {
    char path[256];
    snprintf(path, sizeof path, "%s%s", prefix, suffix);
    TF_Buffer* buffer = read_file(path, keep);
    char* bytes = malloc(buffer->length + 1);
    memcpy(bytes, buffer->data, buffer->length);
    if (flip >= 0 && (size_t)flip < buffer->length) bytes[flip] = (char)(bytes[flip] ^ 0x10);
    write_file(path, bytes, buffer->length);
    free(bytes);
    TF_DeleteBuffer(buffer);
}

static void broken_files(void) {
    const float values[] = {1, 2, 3, 4};
    const char* const names[] = {"v"};
    TF_Output tensor = constant(graph, "t", float_vector(4, values));
    static const struct {
        const char *prefix, *suffix;
        long keep, flip;
    } BREAKS[] = {
        {"b1", ".index", 10, -1},
        {"b2", ".index", 0, -1},
        {"b3", ".index", -1, 5},
        {"b4", ".data-00000-of-00001", 7, -1},
        {"b5", ".data-00000-of-00001", -1, 3},
        {"b6", ".index", -1, 120},
    };
    for (int i = 0; i < N_ELEMENTS(BREAKS); ++i) {
        save(BREAKS[i].prefix, 1, names, NO_SLICES, &tensor);
        corrupt(BREAKS[i].prefix, BREAKS[i].suffix, BREAKS[i].keep, BREAKS[i].flip);
        restore(BREAKS[i].prefix, BREAKS[i].prefix, "v", "", TF_FLOAT);
    }
}

static void shards(void) {
    const char* const first[] = {"a"};
    const char* const second[] = {"b"};
    TF_Output one = float_constant(graph, "one", 1), two = float_constant(graph, "two", 2);
    save("part_0", 1, first, NO_SLICES, &one);
    save("part_1", 1, second, NO_SLICES, &two);
    const char* const parts[] = {"part_0", "part_1"};
    TF_OperationDescription* description = TF_NewOperation(graph, "MergeV2Checkpoints", "merge");
    TF_AddInput(description, strings("parts", 2, parts));
    TF_AddInput(description, constant(graph, "merged_name", string_scalar("merged")));
    TF_Output merge = finish(description);
    run_and_print("merge", session, NOTHING, NULL, NOTHING, merge.oper);
    print_file("merged.index");
    print_file("merged.data-00000-of-00002");
    print_file("merged.data-00001-of-00002");
    print_file("part_0.index");
    restore("a", "merged", "a", "", TF_FLOAT);
    restore("b", "merged", "b", "", TF_FLOAT);
    description = TF_NewOperation(graph, "ShardedFilename", "sharded");
    TF_AddInput(description, constant(graph, "base", string_scalar("base")));
    TF_AddInput(description, int_constant(graph, "shard", 3));
    TF_AddInput(description, int_constant(graph, "shards", 12));
    run_and_print("name", session, NOTHING, NULL, finish(description), NULL);
}

static void first_format(void) {
    const float values[] = {1, 2, 3};
    const char* const names[] = {"v"};
    TF_Output tensor = constant(graph, "t", float_vector(3, values));
    TF_Output file = constant(graph, "file", string_scalar("first_format"));
    TF_OperationDescription* description = TF_NewOperation(graph, "Save", "save");
    TF_AddInput(description, file);
    TF_AddInput(description, strings("names", 1, names));
    TF_AddInputList(description, &tensor, 1);
    TF_Output saved = finish(description);
    run_and_print("save", session, NOTHING, NULL, NOTHING, saved.oper);
    print_file("first_format");
    description = TF_NewOperation(graph, "Restore", "restore");
    TF_AddInput(description, file);
    TF_AddInput(description, constant(graph, "name", string_scalar("v")));
    TF_SetAttrType(description, "dt", TF_FLOAT);
    run_and_print("restore", session, NOTHING, NULL, finish(description), NULL);
    restore("by RestoreV2", "first_format", "v", "", TF_FLOAT);
}

static void in_new_session(void (*body)(void)) {
    graph = TF_NewGraph();
    session = new_session(graph);
    body();
    delete_session(session);
    TF_DeleteGraph(graph);
}

#define IN_NEW_SESSION(body) \
    static void run_##body(void) { in_new_session(body); }
#define CASE(body) {#body, run_##body}

/* Whether the folder has room for the file, and the machine memory for three tensors of its size. */
static int has_room_for_2_gb(void) {
    struct statvfs disk;
    if (statvfs(".", &disk) != 0) return 0;
    return (double)disk.f_bavail * (double)disk.f_frsize > 3e9 &&
           (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) > 8e9;
}

/* tf#12873: one tensor of more than 2 GB, written and read back; differences are counted where it was read. */
static void more_than_2_gb(void) {
    enum { COUNT = 540000000 };
    if (!has_room_for_2_gb()) {
        printf("left out: it needs 3 GB of disk and 8 GB of memory\n");
        return;
    }
    TF_OperationDescription* description = TF_NewOperation(graph, "Range", "range");
    TF_AddInput(description, int_constant(graph, "zero", 0));
    TF_AddInput(description, int_constant(graph, "count", COUNT));
    TF_AddInput(description, int_constant(graph, "one", 1));
    TF_Output range = finish(description);
    static const char* const NAMES[] = {"large"};
    static const char* const SLICES[] = {""};
    save("large", 1, NAMES, SLICES, &range);
    description = TF_NewOperation(graph, "RestoreV2", "restored");
    TF_AddInput(description, constant(graph, "from", string_scalar("large")));
    TF_AddInput(description, strings("name", 1, NAMES));
    TF_AddInput(description, strings("slice", 1, SLICES));
    const TF_DataType types[] = {TF_INT32};
    TF_SetAttrTypeList(description, "dtypes", types, 1);
    TF_Output restored = finish(description);
    description = TF_NewOperation(graph, "All", "all");
    TF_AddInput(description, binary(graph, "Equal", "equal", range, restored));
    TF_AddInput(description, int_constant(graph, "axis", 0));
    run_and_print("all equal", session, NOTHING, NULL, finish(description), NULL);
    TF_Buffer* index = read_file("large.index", -1);
    printf("an index: %d\n", index != NULL);
    TF_DeleteBuffer(index);
    remove("large.data-00000-of-00001");
}

IN_NEW_SESSION(more_than_2_gb)
IN_NEW_SESSION(one_tensor)
IN_NEW_SESSION(many_types)
IN_NEW_SESSION(many_tensors)
IN_NEW_SESSION(slices)
IN_NEW_SESSION(reading_errors)
IN_NEW_SESSION(writing_errors)
IN_NEW_SESSION(broken_files)
IN_NEW_SESSION(shards)
IN_NEW_SESSION(first_format)

static const Case CASES[] = {
    CASE(one_tensor),     CASE(many_types),   CASE(many_tensors), CASE(slices),       CASE(reading_errors),
    CASE(writing_errors), CASE(broken_files), CASE(shards),       CASE(first_format),
    CASE(more_than_2_gb),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
