/* TF_Status: codes, messages, payloads, errno; TF_Buffer: ownership. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"

static void new_status(void) {
    TF_Status* status = TF_NewStatus();
    print_status("new", status);
    TF_DeleteStatus(status);
}

static void set_and_overwrite(void) {
    TF_Status* status = TF_NewStatus();
    for (int code = 1; code <= 16; ++code) {
        TF_SetStatus(status, (TF_Code)code, "something");
        print_status("set", status);
    }
    TF_SetStatus(status, TF_OK, "");
    print_status("back to OK", status);
    TF_SetStatus(status, TF_OK, "ignored");
    print_status("OK with a message", status);
    TF_SetStatus(status, TF_INTERNAL, "");
    print_status("no message", status);
    TF_DeleteStatus(status);
}

static void long_message(void) {
    char* text = malloc(100001);
    memset(text, 'x', 100000);
    text[100000] = '\0';
    TF_Status* status = TF_NewStatus();
    TF_SetStatus(status, TF_UNKNOWN, text);
    printf("length %zu\n", strlen(TF_Message(status)));
    TF_DeleteStatus(status);
    free(text);
}

static void print_payload(const char* key, const char* value, void* capture) {
    printf("%s payload %s = %s\n", (const char*)capture, key, value);
}

static void payloads(void) {
    TF_Status* status = TF_NewStatus();
    TF_SetPayload(status, "ignored/on", "an OK status");
    TF_ForEachPayload(status, print_payload, "first");
    TF_SetStatus(status, TF_NOT_FOUND, "gone");
    TF_SetPayload(status, "type.example/one", "1");
    TF_SetPayload(status, "type.example/one", "2");
    TF_ForEachPayload(status, print_payload, "second");
    TF_SetStatus(status, TF_ABORTED, "again");
    TF_ForEachPayload(status, print_payload, "third");
    print_status("end", status);
    TF_DeleteStatus(status);
}

static void from_errno(void) {
    static const int NUMBERS[] = {0,      EINVAL, ENAMETOOLONG, ENOENT, ENODEV, EEXIST,    EPERM,  EACCES,    ENOTEMPTY,
                                  ENOSPC, EISDIR, EMFILE,       EPIPE,  ESTALE, ETIMEDOUT, EINTR,  ECANCELED, ENOSYS,
                                  EAGAIN, EBUSY,  EFBIG,        ERANGE, EDOM,   EIO,       ENOMEM, ENOTDIR,   EROFS};
    TF_Status* status = TF_NewStatus();
    for (int i = 0; i < N_ELEMENTS(NUMBERS); ++i) {
        TF_SetStatusFromIOError(status, NUMBERS[i], "the file");
        print_status("from errno", status);
    }
    TF_DeleteStatus(status);
}

static void empty_buffer(void) {
    TF_Buffer* buffer = TF_NewBuffer();
    printf("data %s length %zu deallocator %s\n", buffer->data ? "set" : "NULL", buffer->length,
           buffer->data_deallocator ? "set" : "NULL");
    TF_DeleteBuffer(buffer);
}

static void buffer_from_string(void) {
    char text[] = "ab\0cd";
    TF_Buffer* buffer = TF_NewBufferFromString(text, 5);
    memset(text, 'x', 5);
    printf("%zu bytes: ", buffer->length);
    print_bytes(buffer->data, buffer->length);
    TF_Buffer copy = TF_GetBuffer(buffer);
    printf("\nsame data: %d, length %zu\n", copy.data == buffer->data, copy.length);
    TF_DeleteBuffer(buffer);
    buffer = TF_NewBufferFromString(text, 0);
    printf("empty: length %zu\n", buffer->length);
    TF_DeleteBuffer(buffer);
}

static int n_deallocated = 0;

static void deallocate(void* data, size_t length) {
    ++n_deallocated;
    printf("deallocate '%s' length %zu\n", (const char*)data, length);
}

static void buffer_deallocator(void) {
    static char text[] = "mine";
    TF_Buffer* buffer = TF_NewBuffer();
    buffer->data = text;
    buffer->length = 4;
    buffer->data_deallocator = deallocate;
    TF_DeleteBuffer(buffer);
    printf("called %d times\n", n_deallocated);
}

static const Case CASES[] = {
    {"new_status", new_status},
    {"set_and_overwrite", set_and_overwrite},
    {"long_message", long_message},
    {"payloads", payloads},
    {"from_errno", from_errno},
    {"empty_buffer", empty_buffer},
    {"buffer_from_string", buffer_from_string},
    {"buffer_deallocator", buffer_deallocator},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
