#include "wav.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(uint8_t* at, int n_bytes, uint32_t value) {
    for (int i = 0; i < n_bytes; ++i) at[i] = (uint8_t)(value >> (8 * i));
}

static uint32_t get(const uint8_t* at, int n_bytes) {
    uint32_t value = 0;
    for (int i = 0; i < n_bytes; ++i) value |= (uint32_t)at[i] << (8 * i);
    return value;
}

bool wav_write(const char* path, const float* samples, size_t count, int sample_rate) {
    FILE* file = fopen(path, "wb");
    if (!file) return false;
    uint8_t header[44];
    memcpy(header, "RIFF....WAVEfmt ", 16);
    put(header + 4, 4, (uint32_t)(36 + 2 * count));
    put(header + 16, 4, 16); /* size of the format chunk */
    put(header + 20, 2, 1);  /* PCM */
    put(header + 22, 2, 1);  /* channels */
    put(header + 24, 4, (uint32_t)sample_rate);
    put(header + 28, 4, (uint32_t)sample_rate * 2); /* bytes per second */
    put(header + 32, 2, 2);                         /* bytes per frame */
    put(header + 34, 2, 16);                        /* bits per sample */
    memcpy(header + 36, "data", 4);
    put(header + 40, 4, (uint32_t)(2 * count));
    bool ok = fwrite(header, sizeof header, 1, file) == 1;
    for (size_t i = 0; ok && i < count; ++i) {
        uint8_t bytes[2];
        float clipped = fminf(1.0f, fmaxf(-1.0f, samples[i]));
        put(bytes, 2, (uint32_t)(int32_t)lrintf(clipped * 32767.0f));
        ok = fwrite(bytes, sizeof bytes, 1, file) == 1;
    }
    return fclose(file) == 0 && ok;
}

/* Advances to the chunk of that kind; returns its size, or -1. */
static long find_chunk(FILE* file, const char* kind) {
    uint8_t header[8];
    while (fread(header, sizeof header, 1, file) == 1) {
        uint32_t size = get(header + 4, 4);
        if (size > INT32_MAX - 1) return -1;
        if (memcmp(header, kind, 4) == 0) return (long)size;
        if (fseek(file, (long)(size + size % 2), SEEK_CUR) != 0) return -1;
    }
    return -1;
}

static float* read_samples(FILE* file, size_t* count, int sample_rate) {
    uint8_t riff[12], format[16];
    if (fread(riff, sizeof riff, 1, file) != 1 || memcmp(riff, "RIFF", 4) != 0 || memcmp(riff + 8, "WAVE", 4) != 0) {
        return NULL;
    }
    long size = find_chunk(file, "fmt ");
    if (size < 16 || fread(format, sizeof format, 1, file) != 1 || fseek(file, size - 16, SEEK_CUR) != 0) return NULL;
    if (get(format, 2) != 1 || get(format + 2, 2) != 1 || get(format + 14, 2) != 16) return NULL;
    if (get(format + 4, 4) != (uint32_t)sample_rate) return NULL;
    size = find_chunk(file, "data");
    if (size < 0) return NULL;
    *count = (size_t)size / 2;
    float* samples = malloc((*count + 1) * sizeof *samples);
    for (size_t i = 0; samples && i < *count; ++i) {
        uint8_t bytes[2];
        if (fread(bytes, sizeof bytes, 1, file) != 1) {
            free(samples);
            return NULL;
        }
        samples[i] = (float)(int16_t)get(bytes, 2) / 32767.0f;
    }
    return samples;
}

float* wav_read(const char* path, size_t* count, int sample_rate) {
    FILE* file = fopen(path, "rb");
    if (!file) return NULL;
    float* samples = read_samples(file, count, sample_rate);
    fclose(file);
    return samples;
}
