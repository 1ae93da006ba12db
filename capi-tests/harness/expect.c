#include "expect.h"

#include <stdio.h>
#include <string.h>

#include "proto.h"

int expect(int holds, const char* what, const char* file, int line) {
    if (!holds) printf("!! %s:%d: %s\n", file, line, what);
    return holds;
}

void expect_code(TF_Status* status, TF_Code code, const char* file, int line) {
    if (TF_GetCode(status) != code)
        printf("!! %s:%d: code %d instead of %d: %.300s\n", file, line, TF_GetCode(status), code, TF_Message(status));
    TF_SetStatus(status, TF_OK, "");
}

void expect_error(TF_Status* status, const char* file, int line) {
    if (TF_GetCode(status) == TF_OK) printf("!! %s:%d: no error\n", file, line);
    if (TF_GetCode(status) == TF_INTERNAL) printf("!! %s:%d: %.300s\n", file, line, TF_Message(status));
    TF_SetStatus(status, TF_OK, "");
}

long process_number(const char* name) {
    FILE* file = fopen("/proc/self/status", "r");
    char line[256];
    long number = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) == 0) sscanf(line + strlen(name), ": %ld", &number);
    }
    if (file) fclose(file);
    return number;
}

void try_fetch(TF_Session* session, TF_Output output, int deadline, TF_Status* status) {
    Message message = {0};
    message_int(&message, 2, deadline);
    TF_Buffer* options = TF_NewBufferFromString(message.data, message.length);
    TF_Tensor* result = NULL;
    TF_SessionRun(session, options, NULL, NULL, 0, &output, &result, 1, NULL, 0, NULL, status);
    if ((TF_GetCode(status) == TF_OK) != (result != NULL)) printf("!! a result that does not fit the status\n");
    TF_DeleteTensor(result);
    TF_DeleteBuffer(options);
    message_free(&message);
}
