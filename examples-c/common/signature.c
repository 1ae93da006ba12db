#include "signature.h"

#include <stdbool.h>
#include <string.h>

/* A protocol buffer message being read, and the field that the last `next_field` found. */
typedef struct {
    const uint8_t *at, *end;
    int field;
    uint64_t number;      /* value of a varint field */
    const uint8_t* bytes; /* content of a length-delimited field, else NULL */
    size_t length;
    bool broken;
} Reader;

static Reader reader(const void* data, size_t length) {
    Reader r = {data, (const uint8_t*)data + length, 0, 0, NULL, 0, false};
    return r;
}

static uint64_t varint(Reader* r) {
    uint64_t value = 0;
    for (int shift = 0; r->at < r->end && shift < 64; shift += 7) {
        uint8_t byte = *r->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    r->broken = true;
    return 0;
}

static bool next_field(Reader* r) {
    if (r->broken || r->at >= r->end) return false;
    uint64_t tag = varint(r);
    r->field = (int)(tag >> 3);
    r->bytes = NULL;
    size_t left = (size_t)(r->end - r->at);
    switch (tag & 7) {
        case 0: r->number = varint(r); return !r->broken;
        case 1: r->length = 8; break;
        case 2:
            r->length = varint(r);
            left = (size_t)(r->end - r->at);
            break;
        case 5: r->length = 4; break;
        default: r->broken = true; return false;
    }
    if (r->broken || r->length > left) {
        r->broken = true;
        return false;
    }
    r->bytes = r->at;
    r->at += r->length;
    return true;
}

static void copy_text(char* text, const Reader* r) {
    size_t length = r->length < SIGNATURE_MAX_NAME ? r->length : SIGNATURE_MAX_NAME - 1;
    memcpy(text, r->bytes, length);
    text[length] = '\0';
}

static bool read_shape(Reader shape, SignatureTensor* tensor) {
    tensor->rank = 0;
    while (next_field(&shape)) {
        if (shape.field == 3 && !shape.bytes && shape.number) {
            tensor->rank = -1;
            return true;
        }
        if (shape.field != 2 || !shape.bytes) continue;
        if (tensor->rank == SIGNATURE_MAX_RANK) return false;
        int64_t size = 0;
        Reader dim = reader(shape.bytes, shape.length);
        while (next_field(&dim)) {
            if (dim.field == 1 && !dim.bytes) size = (int64_t)dim.number;
        }
        tensor->dims[tensor->rank++] = size;
    }
    return !shape.broken;
}

/* Reads a map entry of key (field 1) and TensorInfo (field 2: name 1, dtype 2, tensor_shape 3). */
static bool read_tensor(Reader entry, SignatureTensor* tensor) {
    memset(tensor, 0, sizeof *tensor);
    tensor->rank = -1;
    while (next_field(&entry)) {
        if (!entry.bytes) continue;
        if (entry.field == 1) copy_text(tensor->key, &entry);
        if (entry.field != 2) continue;
        Reader info = reader(entry.bytes, entry.length);
        while (next_field(&info)) {
            if (info.field == 1 && info.bytes) copy_text(tensor->name, &info);
            if (info.field == 2 && !info.bytes) tensor->type = (TF_DataType)info.number;
            if (info.field == 3 && info.bytes && !read_shape(reader(info.bytes, info.length), tensor)) return false;
        }
        if (info.broken) return false;
    }
    return !entry.broken;
}

/* Reads a map entry of key (field 1) and SignatureDef (field 2: inputs 1, outputs 2). */
static bool read_signature(Reader entry, Signature* signature) {
    memset(signature, 0, sizeof *signature);
    while (next_field(&entry)) {
        if (!entry.bytes) continue;
        if (entry.field == 1) {
            size_t length = entry.length < SIGNATURE_MAX_NAME ? entry.length : SIGNATURE_MAX_NAME - 1;
            memcpy(signature->key, entry.bytes, length);
        }
        if (entry.field != 2) continue;
        Reader definition = reader(entry.bytes, entry.length);
        while (next_field(&definition)) {
            if (!definition.bytes || definition.field > 2) continue;
            bool is_input = definition.field == 1;
            int* count = is_input ? &signature->n_inputs : &signature->n_outputs;
            SignatureTensor* tensors = is_input ? signature->inputs : signature->outputs;
            if (*count == SIGNATURE_MAX_TENSORS) return false;
            if (!read_tensor(reader(definition.bytes, definition.length), &tensors[*count])) return false;
            ++*count;
        }
        if (definition.broken) return false;
    }
    return !entry.broken;
}

int read_signatures(const TF_Buffer* meta_graph, Signature* signatures, int capacity) {
    int count = 0;
    Reader message = reader(meta_graph->data, meta_graph->length);
    while (next_field(&message)) {
        if (message.field != 5 || !message.bytes || count == capacity) continue; /* MetaGraphDef.signature_def */
        if (!read_signature(reader(message.bytes, message.length), &signatures[count])) return -1;
        ++count;
    }
    return message.broken ? -1 : count;
}

const SignatureTensor* find_signature_tensor(const SignatureTensor* tensors, int count, const char* key) {
    for (int i = 0; i < count; ++i) {
        if (strcmp(tensors[i].key, key) == 0) return &tensors[i];
    }
    return NULL;
}
