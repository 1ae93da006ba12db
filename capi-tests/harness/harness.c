#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS_PER_CASE = 300, MAX_PRINTED = 64 };

static const char* data = ".";

const char* data_folder(void) { return data; }

static void run_here(const Case* test) {
    printf("== %s\n", test->name);
    test->run();
}

static void run_forked(const Case* test) {
    printf("== %s\n", test->name);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS_PER_CASE);
        test->run();
        fflush(stdout);
        _exit(0);
    }
    int how = 0;
    if (child < 0 || waitpid(child, &how, 0) < 0) {
        printf("!! cannot start a process\n");
    } else if (WIFSIGNALED(how)) {
        printf("!! signal %d\n", WTERMSIG(how));
    } else if (WEXITSTATUS(how) != 0) {
        printf("!! exit status %d\n", WEXITSTATUS(how));
    }
}

int run_cases(int argc, char** argv, const Case* cases, int count) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool fork_each = true, list = false;
    int n_named = 0;
    for (int i = 1; i < argc; ++i) {
        if (strncmp(argv[i], "--data=", 7) == 0)
            data = argv[i] + 7;
        else if (strcmp(argv[i], "--no-fork") == 0)
            fork_each = false;
        else if (strcmp(argv[i], "--list") == 0)
            list = true;
        else
            argv[1 + n_named++] = argv[i];
    }
    int n_found = 0;
    for (int c = 0; c < count; ++c) {
        bool wanted = n_named == 0;
        for (int i = 1; i <= n_named; ++i) wanted |= strcmp(argv[i], cases[c].name) == 0;
        if (!wanted) continue;
        ++n_found;
        if (list)
            printf("%s\n", cases[c].name);
        else if (fork_each)
            run_forked(&cases[c]);
        else
            run_here(&cases[c]);
    }
    return n_named > 0 && n_found < n_named;
}

TF_Status* fresh(TF_Status* status) {
    TF_SetStatus(status, TF_OK, "");
    return status;
}

static const char* code_name(TF_Code code) {
    static const char* const NAMES[] = {
        "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
        "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
        "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
        "DATA_LOSS", "UNAUTHENTICATED"};
    return (int)code >= 0 && (int)code < N_ELEMENTS(NAMES) ? NAMES[code] : "another code";
}

void print_bytes(const void* bytes, size_t length) {
    const unsigned char* at = bytes;
    for (size_t i = 0; i < length; ++i) {
        if (at[i] >= 32 && at[i] < 127 && at[i] != '\\')
            putchar(at[i]);
        else
            printf("\\x%02x", at[i]);
    }
}

void print_code(const char* what, const TF_Status* status) { printf("%s: %s\n", what, code_name(TF_GetCode(status))); }

void print_status(const char* what, const TF_Status* status) {
    const char* message = TF_Message(status);
    print_code(what, status);
    if (!message || message[0]) {
        printf("  text: ");
        if (message)
            print_bytes(message, strlen(message));
        else
            printf("(NULL)");
        printf("\n");
    }
}

static void print_element(TF_DataType type, const unsigned char* at, size_t size) {
    switch (type) {
        case TF_FLOAT: printf("%.6g", *(const float*)at); break;
        case TF_DOUBLE: printf("%.12g", *(const double*)at); break;
        case TF_INT32: printf("%d", *(const int32_t*)at); break;
        case TF_INT64: printf("%lld", (long long)*(const int64_t*)at); break;
        case TF_BOOL: printf("%s", *at ? "true" : "false"); break;
        case TF_STRING: {
            const TF_TString* text = (const TF_TString*)at;
            printf("'");
            print_bytes(TF_StringGetDataPointer(text), TF_StringGetSize(text));
            printf("'");
            break;
        }
        default:
            for (size_t i = 0; i < size; ++i) printf("%02x", at[i]);
    }
}

void print_tensor(const char* what, const TF_Tensor* tensor) {
    if (!tensor) {
        printf("%s: NULL\n", what);
        return;
    }
    TF_DataType type = TF_TensorType(tensor);
    printf("%s: type %d [", what, (int)type);
    for (int i = 0; i < TF_NumDims(tensor); ++i) printf("%s%lld", i ? "," : "", (long long)TF_Dim(tensor, i));
    int64_t count = TF_TensorElementCount(tensor);
    printf("] %zu bytes:", TF_TensorByteSize(tensor));
    size_t size = type == TF_STRING ? sizeof(TF_TString) : TF_DataTypeSize(type);
    for (int64_t i = 0; size > 0 && i < count && i < MAX_PRINTED; ++i) {
        printf(" ");
        print_element(type, (const unsigned char*)TF_TensorData(tensor) + (size_t)i * size, size);
    }
    printf("%s\n", count > MAX_PRINTED ? " ..." : "");
}

uint64_t hash_bytes(const void* bytes, size_t length) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < length; ++i) hash = (hash ^ ((const unsigned char*)bytes)[i]) * 1099511628211u;
    return hash;
}

static void free_bytes(void* bytes, size_t length) {
    (void)length;
    free(bytes);
}

TF_Buffer* read_file(const char* path, long length) {
    FILE* file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    long whole = ftell(file);
    if (length < 0 || length > whole) length = whole;
    fseek(file, 0, SEEK_SET);
    char* bytes = malloc((size_t)length + 1);
    size_t n_read = bytes ? fread(bytes, 1, (size_t)length, file) : 0;
    fclose(file);
    TF_Buffer* buffer = TF_NewBuffer();
    buffer->data = bytes;
    buffer->length = n_read;
    buffer->data_deallocator = free_bytes;
    return buffer;
}

void write_file(const char* path, const void* bytes, size_t length) {
    FILE* file = fopen(path, "wb");
    if (!file || (length > 0 && fwrite(bytes, length, 1, file) != 1) || fclose(file) != 0) {
        printf("cannot write %s\n", path);
        exit(1);
    }
}
