#include "melody.h"

#include <math.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;
static const double SILENCE = 0.5;  /* seconds before and after the tune */
static const double BEAT = 0.5;     /* seconds */
static const double SOUNDING = 0.9; /* the part of its time that a note sounds */
enum { HARMONICS = 6 };

typedef struct {
    int pitch; /* MIDI number: 60 is middle C */
    double beats;
} Score;

static const Score SCORE[] = {
    /* a scale */
    {60, 1},
    {62, 1},
    {64, 1},
    {65, 1},
    {67, 1},
    {69, 1},
    {71, 1},
    {72, 2},
    /* Ode to Joy */
    {64, 1},
    {64, 1},
    {65, 1},
    {67, 1},
    {67, 1},
    {65, 1},
    {64, 1},
    {62, 1},
    {60, 1},
    {60, 1},
    {62, 1},
    {64, 1},
    {64, 1.5},
    {62, 0.5},
    {62, 2},
};
enum { SCORE_LENGTH = sizeof SCORE / sizeof SCORE[0] };

const Note* melody_notes(size_t* count) {
    static Note notes[SCORE_LENGTH];
    double time = SILENCE;
    for (size_t i = 0; i < SCORE_LENGTH; ++i) {
        notes[i].pitch = SCORE[i].pitch;
        notes[i].start = time;
        notes[i].end = time + SCORE[i].beats * BEAT * SOUNDING;
        time += SCORE[i].beats * BEAT;
    }
    *count = SCORE_LENGTH;
    return notes;
}

static void add_note(float* samples, const Note* note) {
    double frequency = 440.0 * pow(2.0, (note->pitch - 69) / 12.0);
    double length = note->end - note->start;
    size_t first = (size_t)(note->start * SAMPLE_RATE), count = (size_t)(length * SAMPLE_RATE);
    for (size_t i = 0; i < count; ++i) {
        double time = (double)i / SAMPLE_RATE, wave = 0.0;
        for (int k = 1; k <= HARMONICS; ++k) wave += sin(2.0 * PI * k * frequency * time) / (k * k);
        double attack = fmin(1.0, time / 0.008), release = fmin(1.0, (length - time) / 0.03);
        samples[first + i] += (float)(0.35 * wave * attack * release * exp(-1.5 * time));
    }
}

float* melody_synthesize(size_t* n_samples) {
    size_t count;
    const Note* notes = melody_notes(&count);
    *n_samples = (size_t)((notes[count - 1].end + SILENCE) * SAMPLE_RATE);
    float* samples = calloc(*n_samples, sizeof *samples);
    for (size_t i = 0; samples && i < count; ++i) add_note(samples, &notes[i]);
    return samples;
}
