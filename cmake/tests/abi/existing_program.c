/* A program linked against some release of the library. It checks that the functions it got are those of one library
 * of ours, loaded once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

extern const char* TF_Version(void);
extern void* TF_NewStatus(void);
extern void TF_DeleteStatus(void*);
extern int TF_GetCode(const void*);
extern const char* TF_Message(const void*);
extern void TF_SetStatus(void*, int, const char*);

static int libraries;

static int count(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size, (void)data;
  if (strstr(info->dlpi_name, "libtensorflow")) {
    printf("loaded %s\n", info->dlpi_name);
    libraries++;
  }
  return 0;
}

int main(void) {
  void* status = TF_NewStatus();
  int good;
  printf("TensorFlow %s\n", TF_Version());
  TF_SetStatus(status, 5, "lost");
  good = strcmp(TF_Version(), "2.21.0") == 0 && status && TF_GetCode(status) == 5 &&
         strcmp(TF_Message(status), "lost") == 0;
  TF_DeleteStatus(status);
  dl_iterate_phdr(count, NULL);
  /* Unversioned, and each node by name. */
  good = good && dlsym(RTLD_DEFAULT, "FF_CodegenSelfTest") && dlvsym(RTLD_DEFAULT, "TF_Version", "VERS_1.0") &&
         dlvsym(RTLD_DEFAULT, "TF_Version", "tensorflow");
  return good && libraries == 1 ? 0 : 1;
}
