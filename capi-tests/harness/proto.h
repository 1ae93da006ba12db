/* Just enough of the protocol buffer wire format to make messages for tests and to walk through them. */
#ifndef CAPI_TESTS_HARNESS_PROTO_H_
#define CAPI_TESTS_HARNESS_PROTO_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message being written; begin with {0}. */
typedef struct {
    uint8_t* data;
    size_t length, capacity;
} Message;

void message_int(Message* message, int field, int64_t value);
void message_bytes(Message* message, int field, const void* data, size_t length);
void message_text(Message* message, int field, const char* text);
/* Appends `part` as a submessage and frees it. */
void message_part(Message* message, int field, Message* part);
void message_free(Message* message);

/* A message being read; next_field sets what it found. */
typedef struct {
    const uint8_t *at, *end;
    int field;
    uint64_t number;      /* of a varint or fixed field */
    const uint8_t* bytes; /* of a length-delimited field, else NULL */
    size_t length;
    bool broken;
} Fields;

Fields fields_of(const void* data, size_t length);
bool next_field(Fields* fields);

#endif
