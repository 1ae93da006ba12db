/* The basic-pitch model: audio to posteriorgrams, how likely each piano key sounds, or begins to, at each moment.
 *
 * The network looks at windows of 43,844 samples and answers with 172 frames of 256 samples for 88 keys. Neighbouring
 * windows overlap by 30 frames; the outer 15 at each side are thrown away, where the network sees too little. */
#ifndef EXAMPLES_C_BASIC_PITCH_PITCH_MODEL_H_
#define EXAMPLES_C_BASIC_PITCH_PITCH_MODEL_H_

#include <stddef.h>

enum {
    PITCH_KEYS = 88,        /* piano keys, A0 to C8 */
    PITCH_LOWEST_MIDI = 21, /* the MIDI number of key 0 */
    PITCH_FRAME = 256       /* samples from one frame to the next */
};

typedef struct {
    size_t n_frames; /* frame i stands for the moment of sample 256 * i */
    float* note;     /* [n_frames][PITCH_KEYS], probability that the key sounds */
    float* onset;    /* [n_frames][PITCH_KEYS], probability that the key was just struck */
} Posteriorgram;

/* Loads the SavedModel in `model_folder` and runs it on the samples; exits on an error. */
Posteriorgram pitch_analyze(const char* model_folder, const float* samples, size_t n_samples);

/* Frees the arrays. */
void posteriorgram_free(Posteriorgram* posteriorgram);

#endif
