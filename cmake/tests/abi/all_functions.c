/* A program linked against some release of the library that names every one of its functions (functions.h, written from
 * functions.txt): all must be found, in one library, and not all at one place. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define FUNCTION(name) extern void name(void);
#include "functions.h"
#undef FUNCTION
#define FUNCTION(name) {#name, name},

static const struct {
  const char* name;
  void (*address)(void);
} FUNCTIONS[] = {
#include "functions.h"
};

int main(void) {
  int count = (int)(sizeof(FUNCTIONS) / sizeof(FUNCTIONS[0])), bad = 0;
  const char* library = NULL;
  for (int i = 0; i < count; ++i) {
    Dl_info info = {0};
    void* address = NULL;
    memcpy(&address, &FUNCTIONS[i].address, sizeof(address));
    if (!address || !dladdr(address, &info) || !strstr(info.dli_fname, "libtensorflow")) {
      printf("not in the library: %s\n", FUNCTIONS[i].name);
      ++bad;
    } else if (library && strcmp(library, info.dli_fname) != 0) {
      printf("in another library: %s in %s\n", FUNCTIONS[i].name, info.dli_fname);
      ++bad;
    } else {
      library = info.dli_fname;
    }
  }
  printf("%d functions in %s\n", count, library ? library : "no library");
  /* Beside them, what only this library has: it is not the one that the program was linked against. */
  return bad || !dlsym(RTLD_DEFAULT, "FF_CodegenSelfTest");
}
