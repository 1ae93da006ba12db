/* Sound files: 16-bit PCM WAV with one channel. */
#ifndef EXAMPLES_C_BASIC_PITCH_WAV_H_
#define EXAMPLES_C_BASIC_PITCH_WAV_H_

#include <stdbool.h>
#include <stddef.h>

/* Writes samples in [-1, 1]; false when the file cannot be written. */
bool wav_write(const char* path, const float* samples, size_t count, int sample_rate);

/* Reads a file as `wav_write` writes it (other chunks are skipped); the caller frees the samples.
 * NULL when it cannot be read, is not 16-bit mono PCM, or has another sample rate. */
float* wav_read(const char* path, size_t* count, int sample_rate);

#endif
