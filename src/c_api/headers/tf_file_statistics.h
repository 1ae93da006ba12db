#ifndef TENSORFLOW_C_TF_FILE_STATISTICS_H_
#define TENSORFLOW_C_TF_FILE_STATISTICS_H_

#include <stdbool.h>
#include <stdint.h>

/* What is known of a file. */
typedef struct TF_FileStatistics {
  /* Bytes. */
  int64_t length;
  /* Time of the last change, in nanoseconds since 1970. */
  int64_t mtime_nsec;
  /* Whether it is a folder. */
  bool is_directory;
} TF_FileStatistics;

#endif /* TENSORFLOW_C_TF_FILE_STATISTICS_H_ */
