/* Writes PNG pictures: 8-bit RGB, not compressed (the zlib stream inside consists of stored blocks). */
#ifndef EXAMPLES_C_BASIC_PITCH_PNG_H_
#define EXAMPLES_C_BASIC_PITCH_PNG_H_

#include <stdbool.h>
#include <stdint.h>

/* `pixels` holds height * width * 3 bytes, row by row from the top. False when the file cannot be written. */
bool png_write(const char* path, const uint8_t* pixels, uint32_t width, uint32_t height);

#endif
