#include "notes.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const float ONSET_THRESHOLD = 0.5f;
static const float NOTE_THRESHOLD = 0.3f;
enum {
    PATIENCE = 8,    /* frames below the threshold after which a note is over */
    MIN_LENGTH = 10, /* frames; shorter ones are noise */
    MIN_DISTANCE = 6 /* frames between two strokes of one key */
};

void note_name(int pitch, char* name) {
    static const char* const NAMES[] = {"C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"};
    snprintf(name, NOTE_NAME_SIZE, "%s%d", NAMES[pitch % 12], pitch / 12 - 1);
}

static float value(const float* frames, size_t frame, int key) { return frames[frame * PITCH_KEYS + (size_t)key]; }

/* True when the onset probability is high here and higher than nearby, the first of equals. */
static bool is_peak(const Posteriorgram* p, size_t frame, int key) {
    float here = value(p->onset, frame, key);
    if (here < ONSET_THRESHOLD) return false;
    size_t first = frame > MIN_DISTANCE ? frame - MIN_DISTANCE : 0;
    for (size_t i = first; i <= frame + MIN_DISTANCE && i < p->n_frames; ++i) {
        float other = value(p->onset, i, key);
        if (other > here || (other == here && i < frame)) return false;
    }
    return true;
}

static size_t find_end(const Posteriorgram* p, size_t start, int key) {
    size_t last = start;
    for (size_t i = start + 1; i < p->n_frames && i - last <= PATIENCE; ++i) {
        if (is_peak(p, i, key)) break;
        if (value(p->note, i, key) >= NOTE_THRESHOLD) last = i;
    }
    return last + 1;
}

static int compare(const void* a, const void* b) {
    const Note *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return x->pitch - y->pitch;
}

Note* notes_decode(const Posteriorgram* posteriorgram, double seconds_per_frame, size_t* count) {
    size_t capacity = 0;
    Note* notes = NULL;
    *count = 0;
    for (int key = 0; key < PITCH_KEYS; ++key) {
        for (size_t frame = 0; frame < posteriorgram->n_frames; ++frame) {
            if (!is_peak(posteriorgram, frame, key)) continue;
            size_t end = find_end(posteriorgram, frame, key);
            if (end - frame < MIN_LENGTH) continue;
            if (*count == capacity) {
                capacity = capacity ? 2 * capacity : 64;
                Note* larger = realloc(notes, capacity * sizeof *notes);
                if (!larger) return notes;
                notes = larger;
            }
            Note note = {PITCH_LOWEST_MIDI + key, (double)frame * seconds_per_frame, (double)end * seconds_per_frame};
            notes[(*count)++] = note;
        }
    }
    if (notes) qsort(notes, *count, sizeof *notes, compare);
    return notes;
}
