/* For tests that state what is right, and run on ours only: a check that fails prints a line with "!!", which fails the
 * test, and the program goes on. */
#ifndef CAPI_TESTS_HARNESS_EXPECT_H_
#define CAPI_TESTS_HARNESS_EXPECT_H_

#include <tensorflow/c/c_api.h>

/* Prints "!! what" and the place unless `holds`; returns it. */
#define EXPECT(holds) expect((holds) != 0, #holds, __FILE__, __LINE__)
int expect(int holds, const char* what, const char* file, int line);

/* Expects this code, and resets the status. */
#define EXPECT_CODE(status, code) expect_code(status, code, __FILE__, __LINE__)
void expect_code(TF_Status* status, TF_Code code, const char* file, int line);

/* Expects any error, and resets the status. */
#define EXPECT_ERROR(status) expect_error(status, __FILE__, __LINE__)
void expect_error(TF_Status* status, const char* file, int line);

/* A number of this process's /proc/self/status ("VmRSS" in kB, "Threads"); 0 where there is none. */
long process_number(const char* name);

/* Runs one output without feeds and with a deadline in milliseconds; deletes the result. */
void try_fetch(TF_Session* session, TF_Output output, int deadline, TF_Status* status);

#endif
