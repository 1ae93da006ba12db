/* loading [--other-first] LIBRARY [OTHER]: loads the library at run time, alone or beside another one, calls it,
 * compiles a kernel, closes it, loads it again, and uses it from a thread that ends after the close. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef const char* (*version_function)(void);
typedef void* (*new_status_function)(void);
typedef void (*status_function)(void*);
typedef int (*code_function)(const void*);

/* Loading must stay far below a frame: nothing runs at load time. */
static const double LIMIT_MILLISECONDS = 20;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
}

static void* open_library(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fprintf(stderr, "%s\n", dlerror());
  return library;
}

static int use(void* library, const char* what) {
  version_function version = (version_function)dlsym(library, "TF_Version");
  new_status_function new_status = (new_status_function)dlsym(library, "TF_NewStatus");
  status_function delete_status = (status_function)dlsym(library, "TF_DeleteStatus");
  status_function self_test = (status_function)dlsym(library, "FF_CodegenSelfTest");
  code_function code = (code_function)dlsym(library, "TF_GetCode");
  void* status;
  int outcome = 0;
  if (!version || !new_status || !delete_status || !code) return 1;
  status = new_status();
  if (self_test) {
    double start = now();
    self_test(status);
    outcome = code(status);
    printf("%s: %s, self test %d after %.1f ms\n", what, version(), outcome, now() - start);
  } else {
    printf("%s: %s\n", what, version());
  }
  delete_status(status);
  return outcome != 0 && outcome != 12;
}

static void* use_in_thread(void* library) { return use(library, "in a thread") ? library : NULL; }

int main(int count, char** arguments) {
  int other_first = count > 1 && strcmp(arguments[1], "--other-first") == 0;
  char** paths = arguments + 1 + other_first;
  int paths_count = count - 1 - other_first;
  void *library, *other = NULL, *failed = NULL;
  pthread_t thread;
  double start, loaded;
  if (paths_count < 1) return 2;
  if (other_first && !(other = open_library(paths[1]))) return 1;
  start = now();
  if (!(library = open_library(paths[0]))) return 1;
  loaded = now() - start;
  printf("loaded in %.2f ms\n", loaded);
  if (paths_count > 1 && !other && !(other = open_library(paths[1]))) return 1;
  if (use(library, "first")) return 1;
  if (other && dlsym(other, "TF_Version") && use(other, "the other")) return 1;
  if (pthread_create(&thread, NULL, use_in_thread, library)) return 1;
  dlclose(library);
  pthread_join(thread, &failed);
  if (failed) return 1;
  if (!(library = open_library(paths[0])) || use(library, "loaded again")) return 1;
  dlclose(library);
  return loaded > LIMIT_MILLISECONDS;
}
