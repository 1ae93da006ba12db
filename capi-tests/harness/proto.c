#include "proto.h"

#include <stdlib.h>
#include <string.h>

static void append(Message* message, const void* data, size_t length) {
    if (message->length + length > message->capacity) {
        message->capacity = 2 * (message->length + length) + 64;
        message->data = realloc(message->data, message->capacity);
        if (!message->data) abort();
    }
    if (length > 0) memcpy(message->data + message->length, data, length);
    message->length += length;
}

static void append_varint(Message* message, uint64_t value) {
    do {
        uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        append(message, &byte, 1);
        value >>= 7;
    } while (value);
}

void message_int(Message* message, int field, int64_t value) {
    append_varint(message, (uint64_t)field << 3);
    append_varint(message, (uint64_t)value);
}

void message_bytes(Message* message, int field, const void* data, size_t length) {
    append_varint(message, (uint64_t)field << 3 | 2);
    append_varint(message, length);
    append(message, data, length);
}

void message_text(Message* message, int field, const char* text) { message_bytes(message, field, text, strlen(text)); }

void message_part(Message* message, int field, Message* part) {
    message_bytes(message, field, part->data, part->length);
    message_free(part);
}

void message_free(Message* message) {
    free(message->data);
    memset(message, 0, sizeof *message);
}

Fields fields_of(const void* data, size_t length) {
    Fields fields = {data, (const uint8_t*)data + length, 0, 0, NULL, 0, false};
    return fields;
}

static uint64_t read_varint(Fields* fields) {
    uint64_t value = 0;
    for (int shift = 0; fields->at < fields->end && shift < 64; shift += 7) {
        uint8_t byte = *fields->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    fields->broken = true;
    return 0;
}

bool next_field(Fields* fields) {
    if (fields->broken || fields->at >= fields->end) return false;
    uint64_t tag = read_varint(fields);
    fields->field = (int)(tag >> 3);
    fields->bytes = NULL;
    fields->number = 0;
    size_t length = 0;
    switch (tag & 7) {
        case 0: fields->number = read_varint(fields); return !fields->broken;
        case 1: length = 8; break;
        case 2: length = read_varint(fields); break;
        case 5: length = 4; break;
        default: fields->broken = true;
    }
    if (fields->broken || length > (size_t)(fields->end - fields->at)) {
        fields->broken = true;
        return false;
    }
    if ((tag & 7) == 2) {
        fields->bytes = fields->at;
        fields->length = length;
    } else {
        memcpy(&fields->number, fields->at, length);
    }
    fields->at += length;
    return true;
}
