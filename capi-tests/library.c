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

static void print_api_def(TF_ApiDefMap* map, const char* name, TF_Status* status) {
    TF_Buffer* def = TF_ApiDefMapGet(map, name, strlen(name), fresh(status));
    print_status(name, status);
    if (def) print_bytes(def->data, def->length);
    printf("%s\n", def ? "" : "NULL");
    TF_DeleteBuffer(def);
}

static void api_definitions(void) {
    /* An OpList: Twice(x: float, n: int) -> y */
    Message list = {0}, op = {0}, input = {0}, output = {0}, attr = {0};
    message_text(&op, 1, "Twice");
    message_text(&input, 1, "x");
    message_int(&input, 3, TF_FLOAT);
    message_part(&op, 2, &input);
    message_text(&output, 1, "y");
    message_int(&output, 3, TF_FLOAT);
    message_part(&op, 3, &output);
    message_text(&attr, 1, "n");
    message_text(&attr, 2, "int");
    message_part(&op, 4, &attr);
    message_part(&list, 1, &op);
    TF_Status* status = TF_NewStatus();
    TF_Buffer* buffer = TF_NewBufferFromString(list.data, list.length);
    TF_ApiDefMap* map = TF_NewApiDefMap(buffer, fresh(status));
    print_status("map", status);
    print_api_def(map, "Twice", status);
    print_api_def(map, "NoSuchOp", status);
    TF_ApiDefMapPut(map, "", 0, fresh(status));
    print_status("too late", status);
    TF_DeleteApiDefMap(map);
    static const char* const TEXTS[] = {
        "op {\n  graph_op_name: \"Twice\"\n  summary: <<END\nDoubles.\nEND\n"
        "  in_arg {\n    name: \"x\"\n    rename_to: \"value\"\n  }\n}\n",
        "op: < graph_op_name: \"Twice\" visibility: HIDDEN endpoint { name: \"Double\" } >",
        "op: < graph_op_name: \"NoSuchOp\" >",
        "nonsense",
        "",
    };
    for (int i = 0; i < (int)(sizeof TEXTS / sizeof *TEXTS); ++i) {
        map = TF_NewApiDefMap(buffer, fresh(status));
        for (int k = 0; k <= i; k += i ? i : 1) {
            TF_ApiDefMapPut(map, TEXTS[k], strlen(TEXTS[k]), fresh(status));
            print_code("put", status);
        }
        print_api_def(map, "Twice", status);
        TF_DeleteApiDefMap(map);
    }
    TF_Buffer* garbage = TF_NewBufferFromString("\xff\xff", 2);
    map = TF_NewApiDefMap(garbage, fresh(status));
    print_code("garbage", status);
    printf("%s\n", map ? "a map" : "NULL");
    if (map) TF_DeleteApiDefMap(map);
    TF_DeleteBuffer(garbage);
    TF_DeleteBuffer(buffer);
    message_free(&list);
    TF_DeleteStatus(status);
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
    {"api_definitions", api_definitions},
    {"missing_library", missing_library},
    {"library_that_is_none", library_that_is_none},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
