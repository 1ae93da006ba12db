#include "png.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STORED = 65535 }; /* bytes in one stored block of a zlib stream */

static void put32(uint8_t* at, uint32_t value) {
    for (int i = 0; i < 4; ++i) at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static uint32_t crc32(uint32_t crc, const uint8_t* data, size_t length) {
    crc = ~crc;
    for (size_t i = 0; i < length; ++i) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

static uint32_t adler32(const uint8_t* data, size_t length) {
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < length; ++i) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static bool write_chunk(FILE* file, const char* kind, const uint8_t* data, uint32_t length) {
    uint8_t header[8], footer[4];
    put32(header, length);
    memcpy(header + 4, kind, 4);
    put32(footer, crc32(crc32(0, header + 4, 4), data, length));
    return fwrite(header, 8, 1, file) == 1 && (length == 0 || fwrite(data, length, 1, file) == 1) &&
           fwrite(footer, 4, 1, file) == 1;
}

/* Wraps `length` bytes into a zlib stream of stored blocks; the caller frees it. */
static uint8_t* zlib_stored(const uint8_t* data, size_t length, size_t* stream_length) {
    size_t n_blocks = (length + MAX_STORED - 1) / MAX_STORED;
    uint8_t* stream = malloc(2 + 5 * n_blocks + length + 4);
    if (!stream) return NULL;
    uint8_t* at = stream;
    *at++ = 0x78;
    *at++ = 0x01;
    for (size_t done = 0; done < length;) {
        size_t size = length - done < MAX_STORED ? length - done : MAX_STORED;
        *at++ = done + size == length; /* last block? type: stored */
        *at++ = (uint8_t)size;
        *at++ = (uint8_t)(size >> 8);
        *at++ = (uint8_t)~size;
        *at++ = (uint8_t)(~size >> 8);
        memcpy(at, data + done, size);
        at += size;
        done += size;
    }
    put32(at, adler32(data, length));
    *stream_length = (size_t)(at + 4 - stream);
    return stream;
}

bool png_write(const char* path, const uint8_t* pixels, uint32_t width, uint32_t height) {
    size_t row = (size_t)width * 3, length = (row + 1) * height, stream_length = 0;
    uint8_t* rows = malloc(length); /* each row begins with the number of its filter: 0, none */
    if (!rows) return false;
    for (size_t y = 0; y < height; ++y) {
        rows[y * (row + 1)] = 0;
        memcpy(rows + y * (row + 1) + 1, pixels + y * row, row);
    }
    uint8_t* stream = zlib_stored(rows, length, &stream_length);
    free(rows);
    FILE* file = stream ? fopen(path, "wb") : NULL;
    bool ok = file != NULL;
    if (file) {
        uint8_t header[13] = {0, 0, 0, 0, 0, 0, 0, 0, 8 /* bits */, 2 /* RGB */, 0, 0, 0};
        put32(header, width);
        put32(header + 4, height);
        ok = fwrite("\x89PNG\r\n\x1a\n", 8, 1, file) == 1 && write_chunk(file, "IHDR", header, sizeof header) &&
             write_chunk(file, "IDAT", stream, (uint32_t)stream_length) && write_chunk(file, "IEND", NULL, 0);
        ok = fclose(file) == 0 && ok;
    }
    free(stream);
    return ok;
}
