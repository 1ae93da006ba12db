/* Plug-ins: devices, graph optimizers, file systems, kernels, profilers, each from a shared library of `plugins/`, which lies beside
 * this program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/env.h>
#include <unistd.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"
#include "harness/proto.h"

/* The path of a plug-in. */
static const char* plugin(const char* name) {
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    while (length > 0 && path[length - 1] != '/') --length;
    snprintf(path + length, sizeof(path) - (size_t)length, "plugin_%s.so", name);
    return path;
}

/* A function of a plug-in that is loaded. */
static void* function_of(const char* name, const char* function) {
    void* library = dlopen(plugin(name), RTLD_NOW | RTLD_LOCAL);
    void* address = library ? dlsym(library, function) : NULL;
    if (!address) printf("!! %s has no %s\n", name, function);
    return address;
}

static void load_device_plugin(const char* name) {
    TF_Library* library = TF_LoadPluggableDeviceLibrary(plugin(name), fresh(status));
    printf("%s %s: ", name, library ? "loaded" : "refused");
    print_status("", status);
    if (library) TF_DeletePluggableDeviceLibraryHandle(library);
}

/* min(max(x + c, c), 10), one maximum under the name that the plug-in looks for. */
static TF_Output add_graph(TF_Output* x) {
    int64_t dims[] = {2, 2};
    *x = shaped_placeholder(graph, "x", TF_FLOAT, 2, dims);
    float values[] = {1, 2};
    TF_Output c = constant(graph, "c", float_vector(2, values));
    TF_Output sum = binary(graph, "AddV2", "sum", *x, c);
    TF_Output most = binary(graph, "Maximum", "probed_maximum", sum, c);
    TF_Output ten = float_constant(graph, "ten", 10);
    return binary(graph, "Minimum", "least", most, ten);
}

static void run_graph(const char* what, TF_Output x, TF_Output y, const TF_Operation* target) {
    int64_t dims[] = {2, 2};
    float values[] = {-5, 3, 20, 30};
    TF_Tensor* feed = tensor_of(TF_FLOAT, 2, dims, values);
    run_and_print(what, session, x, feed, y, target);
}

static void loaded_twice(void) {
    load_device_plugin("graph_optimizer");
    load_device_plugin("graph_optimizer");
}

static void graph_optimizer(void) {
    load_device_plugin("graph_optimizer");
    TF_Output x, y = add_graph(&x);
    run_graph("a minimum is a maximum", x, y, no_op(graph, "aim"));
    const char* (*notes)(void) = (const char* (*)(void))function_of("graph_optimizer", "optimizer_notes");
    printf("%s", notes());
    int (*created)(void) = (int (*)(void))function_of("graph_optimizer", "optimizer_created");
    printf("created: %d\n", created() > 0);
    int before = created();
    run_graph("again", x, y, NULL);
    run_graph("again", x, y, NULL);
    printf("one more: %d\n", created() > before);
}

static void optimizer_fails(void) {
    load_device_plugin("graph_optimizer");
    void (*fail)(int) = (void (*)(int))function_of("graph_optimizer", "optimizer_fail");
    TF_Output x, y = add_graph(&x);
    for (int how = 1; how <= 2; ++how) {
        fail(how);
        run_graph("a minimum stays one", x, y, how == 1 ? NULL : no_op(graph, "other"));
    }
}

static void optimizer_gives_nothing(void) {
    load_device_plugin("graph_optimizer");
    void (*fail)(int) = (void (*)(int))function_of("graph_optimizer", "optimizer_fail");
    TF_Output x, y = add_graph(&x);
    fail(3);
    run_graph("an empty graph", x, y, NULL);
}

/* A session whose ConfigProto.graph_options.rewrite_options has one field. */
static void run_with_config(const char* what, int field, int64_t value, TF_Output x, TF_Output y) {
    Message rewrite = {0}, graph_options = {0}, config = {0};
    message_int(&rewrite, field, value);
    message_part(&graph_options, 10, &rewrite);
    message_part(&config, 10, &graph_options);
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_SetConfig(options, config.data, config.length, fresh(status));
    TF_Session* standard = session;
    session = TF_NewSession(graph, options, status);
    run_graph(what, x, y, NULL);
    delete_session(session);
    session = standard;
    TF_DeleteSessionOptions(options);
    message_free(&config);
}

static void configured(void) {
    load_device_plugin("graph_optimizer");
    TF_Output x, y = add_graph(&x);
    run_with_config("plug-ins off", 28, 2, x, y);
    run_with_config("plug-ins on", 28, 1, x, y);
    run_with_config("no optimizers", 19, 1, x, y);
    run_with_config("too few nodes", 17, 1000, x, y);
    run_with_config("any number of nodes", 17, -1, x, y);
}

static void small_graph(void) {
    load_device_plugin("graph_optimizer");
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    TF_Output y = binary(graph, "Minimum", "least", x, float_constant(graph, "ten", 10));
    run_graph("three nodes", x, y, NULL);
}

static void optimizer_without_device(void) { load_device_plugin("wrong_optimizer_1"); }
static void optimizer_without_size(void) { load_device_plugin("wrong_optimizer_2"); }
static void optimizer_without_function(void) { load_device_plugin("wrong_optimizer_3"); }
static void optimizer_that_fails_to_register(void) { load_device_plugin("wrong_optimizer_4"); }
static void optimizer_without_functions_size(void) { load_device_plugin("wrong_optimizer_5"); }
static void optimizer_without_settings_size(void) { load_device_plugin("wrong_optimizer_6"); }
static void profiler(void) { load_device_plugin("profiler"); }
static void profiler_without_device(void) { load_device_plugin("wrong_profiler_1"); }
static void profiler_without_stop(void) { load_device_plugin("wrong_profiler_2"); }
static void profiler_without_end(void) { load_device_plugin("wrong_profiler_3"); }

/* A device with memory of its own: values go there and back. */
static void a_device(void) {
    load_device_plugin("device");
    TF_Session* with_device = new_session(graph);
    TF_DeviceList* devices = TF_SessionListDevices(with_device, fresh(status));
    printf("%d devices\n", TF_DeviceListCount(devices));
    for (int i = 0; i < TF_DeviceListCount(devices); ++i) /* in any order */
        if (strcmp(TF_DeviceListType(devices, i, fresh(status)), "CPU") != 0)
            printf("  %s, %s\n", TF_DeviceListName(devices, i, fresh(status)), TF_DeviceListType(devices, i, fresh(status)));
    TF_DeleteDeviceList(devices);
    TF_Output x = placeholder(graph, "x", TF_FLOAT), n = float_constant(graph, "n", 100), y = x;
    for (int i = 0; i < 2; ++i) {
        TF_OperationDescription* description = TF_NewOperation(graph, "CapiOnDevice", i ? "anywhere" : "named");
        TF_AddInput(description, y);
        TF_AddInput(description, n);
        if (i == 0) TF_SetDevice(description, "/device:CAPI_TESTS:0");
        y = finish(description);
    }
    TF_OperationDescription* description = TF_NewOperation(graph, "Neg", "on_host");
    TF_AddInput(description, y);
    TF_SetDevice(description, "/device:CPU:0");
    TF_Output result = finish(description);
    const float values[] = {1, 2, 3};
    run_and_print("there and back", with_device, x, float_vector(3, values), result, NULL);
    run_and_print("from there", with_device, x, float_vector(3, values), y, NULL);
    run_and_print("nothing", with_device, x, float_vector(0, values), result, NULL);
    delete_session(with_device);
    int (*copied)(void) = (int (*)(void))function_of("device", "device_copied");
    printf("copied: %d\n", copied());
}

static void memory_of_a_device(void) {
    a_device();
    int (*blocks)(void) = (int (*)(void))function_of("device", "device_blocks");
    printf("blocks left: %d\n", blocks());
}

static void device_of_no_type(void) { load_device_plugin("wrong_device_1"); }
static void device_that_is_not_made(void) { load_device_plugin("wrong_device_2"); }
static void device_without_memory(void) { load_device_plugin("wrong_device_3"); }

static void missing_libraries(void) {
    TF_Library* library = TF_LoadPluggableDeviceLibrary("./none.so", fresh(status));
    printf("%d: ", library != NULL);
    print_code("no device library", status);
    TF_RegisterFilesystemPlugin("./none.so", fresh(status));
    print_code("no file system", status);
    TF_RegisterFilesystemPlugin(plugin("graph_optimizer"), fresh(status));
    print_code("no file system in it", status);
}

static void register_file_system(const char* name) {
    TF_RegisterFilesystemPlugin(plugin(name), fresh(status));
    print_status(name, status);
}

static void count_files(void) {
    int (*open)(void) = (int (*)(void))function_of("file_system", "file_system_open");
    int (*closed)(void) = (int (*)(void))function_of("file_system", "file_system_closed");
    int (*unfreed)(void) = (int (*)(void))function_of("file_system", "file_system_unfreed");
    printf("open %d, closed %d, not freed %d\n", open(), closed(), unfreed());
}

static void print_stat(const char* path) {
    TF_FileStatistics stat = {-1, -1, false};
    TF_FileStat(path, &stat, fresh(status));
    printf("%s: ", path);
    print_status("stat", status);
    printf("  %lld bytes, changed %lld, folder %d\n", (long long)stat.length, (long long)stat.mtime_nsec,
           stat.is_directory);
}

static void write_text(const char* path, const char* text) {
    TF_WritableFileHandle* file = NULL;
    TF_NewWritableFile(path, &file, fresh(status));
    print_status(path, status);
    if (!file) return;
    TF_AppendWritableFile(file, text, strlen(text), fresh(status));
    print_code("appended", status);
    TF_FlushWritableFile(file, fresh(status));
    print_code("flushed", status);
    TF_SyncWritableFile(file, fresh(status));
    print_code("synced", status);
    TF_CloseWritableFile(file, fresh(status));
    print_code("closed", status);
}

static int compare(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

static void print_names(const char* what, TF_StringStream* stream) {
    char* names[64];
    int count = 0;
    for (const char* name; stream && count < 64 && TF_StringStreamNext(stream, &name);) names[count++] = strdup(name);
    if (stream) TF_StringStreamDone(stream);
    qsort(names, (size_t)count, sizeof(char*), compare);
    printf("%s:", what);
    for (int i = 0; i < count; ++i) printf(" %s", names[i]), free(names[i]);
    printf("\n");
}

/* What programs do with files and folders. */
static void use_files(const char* scheme) {
    char folder[64], file[96], other[96];
    snprintf(folder, sizeof(folder), "%s://host/made", scheme);
    snprintf(file, sizeof(file), "%s/a.txt", folder);
    snprintf(other, sizeof(other), "%s//b/../b.txt", folder);
    TF_CreateDir(folder, fresh(status));
    print_status("made", status);
    TF_CreateDir(folder, fresh(status));
    print_code("made twice", status);
    write_text(file, "some text");
    print_stat(file);
    print_stat(folder);
    print_stat(other);
    write_text(other, "");
    print_names("names", TF_GetChildren(folder, fresh(status)));
    print_status("listed", status);
    TF_DeleteFile(file, fresh(status));
    print_status("deleted", status);
    TF_DeleteFile(file, fresh(status));
    print_code("deleted twice", status);
    int64_t files = -1, folders = -1;
    TF_DeleteRecursively(folder, &files, &folders, fresh(status));
    print_code("deleted all", status);
    printf("left: %lld files, %lld folders\n", (long long)files, (long long)folders);
    print_stat(folder);
    count_files();
}

static void full_file_system(void) {
    register_file_system("file_system");
    use_files("full");
}

static void bare_file_system(void) {
    register_file_system("file_system");
    use_files("bare");
}

static void unknown_scheme(void) {
    TF_CreateDir("full://host/made", fresh(status));
    print_code("before the plug-in is there", status);
    register_file_system("file_system");
    TF_CreateDir("full://host/made", fresh(status));
    print_code("after it is", status);
    register_file_system("file_system");
}

static void wrong_file_systems(void) {
    static const char* const NAMES[] = {"wrong_file_system_1", "wrong_file_system_2", "wrong_file_system_3",
                                        "wrong_file_system_4", "wrong_file_system_5", "wrong_file_system_6",
                                        "wrong_file_system_7", "wrong_file_system_8"};
    for (int i = 0; i < N_ELEMENTS(NAMES); ++i) register_file_system(NAMES[i]);
}

/* Ops read and write through the plug-in. */
static void ops_on_files(const char* scheme) {
    char path[64], pattern[64];
    snprintf(path, sizeof(path), "%s://host/ops.txt", scheme);
    snprintf(pattern, sizeof(pattern), "%s://host/*.txt", scheme);
    TF_Output name = constant(graph, "name", string_scalar(path));
    TF_OperationDescription* description = TF_NewOperation(graph, "WriteFile", "write");
    TF_AddInput(description, name);
    TF_AddInput(description, constant(graph, "text", string_scalar("written by an op")));
    TF_Output write = finish(description);
    run_and_print("write", session, NOTHING, NULL, NOTHING, write.oper);
    fetch("read", unary(graph, "ReadFile", "read", name));
    fetch("found", unary(graph, "MatchingFiles", "matching", constant(graph, "pattern", string_scalar(pattern))));
    count_files();
}

static void ops_on_full(void) {
    register_file_system("file_system");
    ops_on_files("full");
}

static void ops_on_bare(void) {
    register_file_system("file_system");
    ops_on_files("bare");
}

/* A checkpoint in the plug-in's files, by ops and by the reader. */
static void checkpoint_on(const char* scheme) {
    char prefix[64];
    snprintf(prefix, sizeof(prefix), "%s://host/checkpoints/model", scheme);
    static const char* const NAMES[] = {"weights"};
    static const char* const SLICES[] = {""};
    float values[] = {1, 2, 3};
    TF_Output path = constant(graph, "prefix", string_scalar(prefix));
    TF_Output names = constant(graph, "names", string_vector(1, NAMES));
    TF_Output slices = constant(graph, "slices", string_vector(1, SLICES));
    TF_Output weights = constant(graph, "weights", float_vector(3, values));
    TF_OperationDescription* description = TF_NewOperation(graph, "SaveV2", "save");
    TF_AddInput(description, path);
    TF_AddInput(description, names);
    TF_AddInput(description, slices);
    TF_AddInputList(description, &weights, 1);
    TF_Output save = finish(description);
    run_and_print("save", session, NOTHING, NULL, NOTHING, save.oper);
    TF_CheckpointReader* reader = TF_NewCheckpointReader(prefix, fresh(status));
    print_status("reader", status);
    if (reader) {
        TF_Tensor* read = TF_CheckpointReaderGetTensor(reader, "weights", fresh(status));
        print_status("read", status);
        print_tensor("weights", read);
        TF_DeleteTensor(read);
        TF_DeleteCheckpointReader(reader);
    }
    description = TF_NewOperation(graph, "RestoreV2", "restore");
    TF_AddInput(description, path);
    TF_AddInput(description, names);
    TF_AddInput(description, slices);
    TF_DataType type = TF_FLOAT;
    TF_SetAttrTypeList(description, "dtypes", &type, 1);
    fetch("restored", finish(description));
}

static void checkpoint_on_full(void) {
    register_file_system("file_system");
    checkpoint_on("full");
}

static void checkpoint_on_bare(void) {
    register_file_system("file_system");
    checkpoint_on("bare");
}

/* Copies a SavedModel into the plug-in's files and loads it there. */
static void copy_in(const char* from, const char* to) {
    TF_Buffer* bytes = read_file(from, -1);
    TF_WritableFileHandle* file = NULL;
    TF_NewWritableFile(to, &file, fresh(status));
    if (bytes && file) TF_AppendWritableFile(file, bytes->data, bytes->length, status);
    if (file) TF_CloseWritableFile(file, fresh(status));
    print_code(to, status);
    TF_DeleteBuffer(bytes);
}

static void saved_model_on(const char* scheme) {
    static const char* const FILES[] = {"saved_model.pb", "variables/variables.index",
                                        "variables/variables.data-00000-of-00001"};
    char from[4096], to[128];
    snprintf(to, sizeof(to), "%s://host/model", scheme);
    TF_CreateDir(to, fresh(status));
    snprintf(to, sizeof(to), "%s://host/model/variables", scheme);
    TF_CreateDir(to, fresh(status));
    for (int i = 0; i < N_ELEMENTS(FILES); ++i) {
        snprintf(from, sizeof(from), "%s/patterns_saved_model/%s", data_folder(), FILES[i]);
        snprintf(to, sizeof(to), "%s://host/model/%s", scheme, FILES[i]);
        copy_in(from, to);
    }
    snprintf(to, sizeof(to), "%s://host/model", scheme);
    const char* tag = "serve";
    TF_Graph* loaded = TF_NewGraph();
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Session* model = TF_LoadSessionFromSavedModel(options, NULL, to, &tag, 1, loaded, NULL, fresh(status));
    print_status("loaded", status);
    if (model) delete_session(model);
    TF_DeleteSessionOptions(options);
    TF_DeleteGraph(loaded);
    int (*open)(void) = (int (*)(void))function_of("file_system", "file_system_open");
    printf("open %d\n", open());
}

static void saved_model_on_full(void) {
    register_file_system("file_system");
    saved_model_on("full");
}

static void saved_model_on_bare(void) {
    register_file_system("file_system");
    saved_model_on("bare");
}

IN_NEW_SESSION(loaded_twice)
IN_NEW_SESSION(graph_optimizer)
IN_NEW_SESSION(optimizer_fails)
IN_NEW_SESSION(optimizer_gives_nothing)
IN_NEW_SESSION(configured)
IN_NEW_SESSION(small_graph)
IN_NEW_SESSION(optimizer_without_device)
IN_NEW_SESSION(optimizer_without_size)
IN_NEW_SESSION(optimizer_without_function)
IN_NEW_SESSION(optimizer_that_fails_to_register)
IN_NEW_SESSION(optimizer_without_functions_size)
IN_NEW_SESSION(optimizer_without_settings_size)
IN_NEW_SESSION(profiler)
IN_NEW_SESSION(profiler_without_device)
IN_NEW_SESSION(profiler_without_stop)
IN_NEW_SESSION(profiler_without_end)
IN_NEW_SESSION(a_device)
IN_NEW_SESSION(memory_of_a_device)
IN_NEW_SESSION(device_of_no_type)
IN_NEW_SESSION(device_that_is_not_made)
IN_NEW_SESSION(device_without_memory)
IN_NEW_SESSION(missing_libraries)
IN_NEW_SESSION(full_file_system)
IN_NEW_SESSION(bare_file_system)
IN_NEW_SESSION(unknown_scheme)
IN_NEW_SESSION(wrong_file_systems)
IN_NEW_SESSION(ops_on_full)
IN_NEW_SESSION(ops_on_bare)
IN_NEW_SESSION(checkpoint_on_full)
IN_NEW_SESSION(checkpoint_on_bare)
IN_NEW_SESSION(saved_model_on_full)
IN_NEW_SESSION(saved_model_on_bare)

static const Case CASES[] = {
    CASE(loaded_twice),
    CASE(graph_optimizer),
    CASE(optimizer_fails),
    CASE(optimizer_gives_nothing),
    CASE(configured),
    CASE(small_graph),
    CASE(optimizer_without_device),
    CASE(optimizer_without_size),
    CASE(optimizer_without_function),
    CASE(optimizer_that_fails_to_register),
    CASE(optimizer_without_functions_size),
    CASE(optimizer_without_settings_size),
    CASE(profiler),
    CASE(profiler_without_device),
    CASE(profiler_without_stop),
    CASE(profiler_without_end),
    CASE(a_device),
    CASE(memory_of_a_device),
    CASE(device_of_no_type),
    CASE(device_that_is_not_made),
    CASE(device_without_memory),
    CASE(missing_libraries),
    CASE(full_file_system),
    CASE(bare_file_system),
    CASE(unknown_scheme),
    CASE(wrong_file_systems),
    CASE(ops_on_full),
    CASE(ops_on_bare),
    CASE(checkpoint_on_full),
    CASE(checkpoint_on_bare),
    CASE(saved_model_on_full),
    CASE(saved_model_on_bare),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
