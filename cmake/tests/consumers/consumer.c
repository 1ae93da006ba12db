/* Prints the version and checks that a status works; the least that proves headers and library. */
#include <ferroflow/ferroflow.h>
#include <stdio.h>
#include <string.h>
#if defined(__has_include)
#if __has_include(<tensorflow/c/c_api.h>)
#include <tensorflow/c/c_api.h>
#define HAVE_HEADERS
#endif
#endif
#ifndef HAVE_HEADERS
typedef struct TF_Status TF_Status;
extern const char* TF_Version(void);
extern TF_Status* TF_NewStatus(void);
extern void TF_DeleteStatus(TF_Status*);
extern int TF_GetCode(const TF_Status*);
extern const char* TF_Message(const TF_Status*);
#endif

enum { OK = 0, UNIMPLEMENTED = 12 };

int main(void) {
  TF_Status* status = TF_NewStatus();
  int code;
  printf("TensorFlow %s\n", TF_Version());
  FF_CodegenSelfTest(status);
  code = (int)TF_GetCode(status);
  if (code == UNIMPLEMENTED) printf("no compiler in this library\n");
  if (code != OK && code != UNIMPLEMENTED) printf("compiler: %s\n", TF_Message(status));
  TF_DeleteStatus(status);
  return strncmp(TF_Version(), "2.", 2) != 0 || (code != OK && code != UNIMPLEMENTED);
}
