/* Notes, their names, and how they are read out of a posteriorgram. */
#ifndef EXAMPLES_C_BASIC_PITCH_NOTES_H_
#define EXAMPLES_C_BASIC_PITCH_NOTES_H_

#include <stddef.h>

#include "pitch_model.h"

enum { NOTE_NAME_SIZE = 16 };

typedef struct {
    int pitch;         /* MIDI number: 60 is middle C, C4 */
    double start, end; /* seconds */
} Note;

/* Writes a name like "C#4" into `name`, which has room for NOTE_NAME_SIZE characters. */
void note_name(int pitch, char* name);

/* Finds the notes: each peak of the onset probability begins one, which lasts until the key's note probability stays
 * low or the key is struck again. Returns them in order of time, sets `*count`; the caller frees them. */
Note* notes_decode(const Posteriorgram* posteriorgram, double seconds_per_frame, size_t* count);

#endif
