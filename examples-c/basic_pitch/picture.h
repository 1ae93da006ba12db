/* Draws a note posteriorgram: time to the right, piano keys upwards, brighter where a note is more likely. */
#ifndef EXAMPLES_C_BASIC_PITCH_PICTURE_H_
#define EXAMPLES_C_BASIC_PITCH_PICTURE_H_

#include <stdbool.h>
#include <stddef.h>

#include "notes.h"
#include "pitch_model.h"

/* Writes a PNG file with the part of the keyboard around the heard notes, which are framed in white.
 * False when the file cannot be written. */
bool picture_write(const char* path, const Posteriorgram* posteriorgram, const Note* notes, size_t n_notes,
                   double seconds_per_frame);

#endif
