#include "print_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "proto.h"

enum { MAX_ENTRIES = 64, MAX_HEX = 48 };

static void print_hex(const uint8_t* data, size_t length) {
    if (length > MAX_HEX) {
        printf("%zu bytes #%016llx", length, (unsigned long long)hash_bytes(data, length));
        return;
    }
    for (size_t i = 0; i < length; ++i) printf("%02x", data[i]);
}

static void print_text(const Fields* fields) { print_bytes(fields->bytes, fields->length); }

typedef struct {
    const uint8_t *key, *value;
    size_t key_length, value_length;
} Entry;

static int compare_entries(const void* a, const void* b) {
    const Entry *x = a, *y = b;
    size_t shorter = x->key_length < y->key_length ? x->key_length : y->key_length;
    int order = memcmp(x->key, y->key, shorter);
    return order ? order : (int)x->key_length - (int)y->key_length;
}

/* Collects the entries of the map in `field`, sorted by key. */
static int sorted_entries(Fields message, int field, Entry* entries) {
    int count = 0;
    while (next_field(&message)) {
        if (message.field != field || !message.bytes || count == MAX_ENTRIES) continue;
        Entry entry = {(const uint8_t*)"", (const uint8_t*)"", 0, 0};
        Fields pair = fields_of(message.bytes, message.length);
        while (next_field(&pair)) {
            if (pair.field == 1 && pair.bytes) entry.key = pair.bytes, entry.key_length = pair.length;
            if (pair.field == 2 && pair.bytes) entry.value = pair.bytes, entry.value_length = pair.length;
        }
        entries[count++] = entry;
    }
    qsort(entries, (size_t)count, sizeof entries[0], compare_entries);
    return count;
}

void print_attr_value(const void* data, size_t length) {
    static const char* const KINDS[] = {"",     "list",  "s",      "i",           "f",   "b",
                                        "type", "shape", "tensor", "placeholder", "func"};
    Fields value = fields_of(data, length);
    if (length == 0) printf("empty");
    while (next_field(&value)) {
        printf("%s:", value.field > 0 && value.field < N_ELEMENTS(KINDS) ? KINDS[value.field] : "?");
        if (!value.bytes) {
            printf("%lld", (long long)value.number);
        } else if (value.field == 2 || value.field == 9) {
            print_text(&value);
        } else if (value.field == 10) {
            Fields function = fields_of(value.bytes, value.length);
            while (next_field(&function)) {
                if (function.field == 1 && function.bytes) print_text(&function);
            }
            Entry entries[MAX_ENTRIES];
            int count = sorted_entries(fields_of(value.bytes, value.length), 2, entries);
            for (int i = 0; i < count; ++i) {
                printf("{%.*s=", (int)entries[i].key_length, entries[i].key);
                print_attr_value(entries[i].value, entries[i].value_length);
                printf("}");
            }
        } else {
            print_hex(value.bytes, value.length);
        }
    }
    if (value.broken) printf(" BROKEN");
}

static void print_attrs(Fields message, int field) {
    Entry entries[MAX_ENTRIES];
    int count = sorted_entries(message, field, entries);
    for (int i = 0; i < count; ++i) {
        printf(" %.*s=", (int)entries[i].key_length, entries[i].key);
        print_attr_value(entries[i].value, entries[i].value_length);
    }
}

void print_node_def(const void* data, size_t length) {
    static const char* const PREFIXES[] = {"", "", " ", " <", " @"};
    Fields node = fields_of(data, length);
    while (next_field(&node)) {
        if (!node.bytes || node.field < 1 || node.field > 4) continue;
        printf("%s", PREFIXES[node.field]);
        print_text(&node);
    }
    print_attrs(fields_of(data, length), 5);
    for (node = fields_of(data, length); next_field(&node);) {
        if (node.field != 7 || !node.bytes) continue;
        printf(" full type ");
        print_hex(node.bytes, node.length);
    }
    printf("%s\n", node.broken ? " BROKEN" : "");
}

static void print_sorted_texts(Fields message, int field, const char* kind) {
    Entry entries[MAX_ENTRIES];
    int count = sorted_entries(message, field, entries);
    for (int i = 0; i < count; ++i) {
        printf("    %s %.*s = ", kind, (int)entries[i].key_length, entries[i].key);
        print_bytes(entries[i].value, entries[i].value_length);
        printf("\n");
    }
}

static void print_signature(Fields signature) {
    printf("  function");
    while (next_field(&signature)) {
        if (!signature.bytes) continue;
        if (signature.field == 1) printf(" "), print_text(&signature);
        if (signature.field != 2 && signature.field != 3) continue;
        printf(signature.field == 2 ? " in(" : " out(");
        Fields argument = fields_of(signature.bytes, signature.length);
        while (next_field(&argument)) {
            if (argument.field == 1 && argument.bytes) print_text(&argument);
            if (argument.field == 3 && !argument.bytes) printf(":%lld", (long long)argument.number);
        }
        printf(")");
    }
}

void print_function_def(const void* data, size_t length) {
    Fields function = fields_of(data, length);
    while (next_field(&function)) {
        if (function.field == 1 && function.bytes) print_signature(fields_of(function.bytes, function.length));
    }
    print_attrs(fields_of(data, length), 5);
    printf("\n");
    function = fields_of(data, length);
    while (next_field(&function)) {
        if (function.field != 3 || !function.bytes) continue;
        printf("    ");
        print_node_def(function.bytes, function.length);
    }
    print_sorted_texts(fields_of(data, length), 4, "return");
    print_sorted_texts(fields_of(data, length), 6, "control return");
}

void print_graph_def(const TF_Buffer* graph_def) {
    Fields graph = fields_of(graph_def->data, graph_def->length);
    while (next_field(&graph)) {
        if (graph.field == 1 && graph.bytes) {
            printf("  node ");
            print_node_def(graph.bytes, graph.length);
        } else if (graph.field == 2 && graph.bytes) {
            Fields library = fields_of(graph.bytes, graph.length);
            while (next_field(&library)) {
                if (library.field == 1 && library.bytes) print_function_def(library.bytes, library.length);
            }
        } else if (graph.field == 4 && graph.bytes) {
            printf("  versions ");
            print_hex(graph.bytes, graph.length);
            printf("\n");
        }
    }
    if (graph.broken) printf("  BROKEN\n");
}

void print_graph(TF_Graph* graph) {
    TF_Status* status = TF_NewStatus();
    TF_Buffer* buffer = TF_NewBuffer();
    TF_GraphToGraphDef(graph, buffer, status);
    if (TF_GetCode(status) != TF_OK)
        print_status("export", status);
    else
        print_graph_def(buffer);
    TF_DeleteBuffer(buffer);
    TF_DeleteStatus(status);
}
