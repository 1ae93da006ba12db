/* The tune that the demo plays, and its synthesis: a scale and the beginning of Beethoven's "Ode to Joy". */
#ifndef EXAMPLES_C_BASIC_PITCH_MELODY_H_
#define EXAMPLES_C_BASIC_PITCH_MELODY_H_

#include <stddef.h>

#include "notes.h"

/* Samples per second of everything in this demo; the model accepts no other. */
enum { SAMPLE_RATE = 22050 };

/* Returns the notes of the tune in order of time and sets `*count`. */
const Note* melody_notes(size_t* count);

/* Returns the tune as samples in [-1, 1], half a second of silence at both ends; the caller frees it.
 * Each note is a sum of harmonics with a quick attack and an exponential decay, somewhat like a plucked string. */
float* melody_synthesize(size_t* n_samples);

#endif
