/* Library-level functions: version, op lists, loading of plug-ins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "harness/proto.h"

static void version(void) { printf("%s\n", TF_Version()); }

enum { MAX_OPS = 4096, MAX_LINE = 128 };

static int compare_lines(const void* a, const void* b) { return strcmp(a, b); }

/* Prints name, number of inputs, outputs and attributes of every op, sorted. */
static void all_ops(void) {
    static char lines[MAX_OPS][MAX_LINE];
    TF_Buffer* list = TF_GetAllOpList();
    Fields fields = fields_of(list->data, list->length);
    int count = 0;
    while (count < MAX_OPS && next_field(&fields)) {
        if (fields.field != 1 || !fields.bytes) continue;
        Fields op = fields_of(fields.bytes, fields.length), name = op;
        int n_inputs = 0, n_outputs = 0, n_attrs = 0;
        while (next_field(&op)) {
            if (op.field == 1) name = op;
            n_inputs += op.field == 2;
            n_outputs += op.field == 3;
            n_attrs += op.field == 4;
        }
        snprintf(lines[count++], MAX_LINE, "%.*s %d %d %d", (int)name.length, (const char*)name.bytes, n_inputs,
                 n_outputs, n_attrs);
    }
    qsort(lines, (size_t)count, MAX_LINE, compare_lines);
    for (int i = 0; i < count; ++i) printf("%s\n", lines[i]);
    printf("%d ops\n", count);
    TF_DeleteBuffer(list);
}

static void missing_library(void) {
    TF_Status* status = TF_NewStatus();
    TF_Library* library = TF_LoadLibrary("./there_is_no_such_library.so", status);
    printf("%s\n", library ? "a library" : "NULL");
    print_status("load", status);
    TF_DeleteStatus(status);
}

static void library_that_is_none(void) {
    write_file("not_a_library.so", "just text", 9);
    TF_Status* status = TF_NewStatus();
    TF_Library* library = TF_LoadLibrary("./not_a_library.so", status);
    printf("%s\n", library ? "a library" : "NULL");
    print_status("load", status);
    TF_DeleteStatus(status);
}

static const Case CASES[] = {
    {"version", version},
    {"all_ops", all_ops},
    {"missing_library", missing_library},
    {"library_that_is_none", library_that_is_none},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
