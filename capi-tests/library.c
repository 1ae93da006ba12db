/* Library-level functions: version, op lists, loading of plug-ins. */
#include <stdio.h>
#include <string.h>

#include "harness/harness.h"
#include "harness/proto.h"

static void version(void) { printf("%s\n", TF_Version()); }

/* Prints the name, and a hash of the whole definition without its prose, of every op. */
static void all_ops(void) {
    TF_Buffer* list = TF_GetAllOpList();
    Fields fields = fields_of(list->data, list->length);
    int count = 0;
    while (next_field(&fields)) {
        if (fields.field != 1 || !fields.bytes) continue;
        ++count;
        Fields op = fields_of(fields.bytes, fields.length);
        int n_inputs = 0, n_outputs = 0, n_attrs = 0;
        const uint8_t* name = NULL;
        size_t length = 0;
        while (next_field(&op)) {
            if (op.field == 1 && op.bytes) name = op.bytes, length = op.length;
            n_inputs += op.field == 2;
            n_outputs += op.field == 3;
            n_attrs += op.field == 4;
        }
        printf("%.*s %d %d %d\n", (int)length, (const char*)name, n_inputs, n_outputs, n_attrs);
    }
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
