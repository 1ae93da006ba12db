/* Listens to a melody: synthesizes one as a WAV file, lets the basic-pitch SavedModel hear it, prints the notes in
 * words, and draws the note posteriorgram.
 *
 *   basic_pitch MODEL_FOLDER OUTPUT_FOLDER [FILE.wav]
 *
 * writes OUTPUT_FOLDER/melody.wav and OUTPUT_FOLDER/notes.png. With FILE.wav (16-bit mono, 22,050 Hz) it listens to
 * that instead. Exits with 1 when the notes heard are not the ones played, and with 77 when there is no model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/example.h"
#include "melody.h"
#include "notes.h"
#include "picture.h"
#include "pitch_model.h"
#include "wav.h"

static const double SECONDS_PER_FRAME = (double)PITCH_FRAME / SAMPLE_RATE;
static const double TOLERANCE = 0.05; /* seconds by which a note may seem to begin too early or late */

static int compare(const Note* heard, size_t n_heard, const Note* played, size_t n_played) {
    int wrong = n_heard != n_played;
    for (size_t i = 0; i < n_heard && i < n_played; ++i) {
        wrong += heard[i].pitch != played[i].pitch || fabs(heard[i].start - played[i].start) > TOLERANCE;
    }
    return wrong;
}

static void save_melody(const char* path) {
    size_t n_samples;
    float* samples = melody_synthesize(&n_samples);
    if (!samples || !wav_write(path, samples, n_samples, SAMPLE_RATE)) fail("cannot write %s", path);
    printf("played a melody of %.1f s into %s\n", (double)n_samples / SAMPLE_RATE, path);
    free(samples);
}

int main(int argc, char** argv) {
    if (argc < 3) fail("usage: basic_pitch MODEL_FOLDER OUTPUT_FOLDER [FILE.wav]");
    char wav[1024], png[1024], model[1024];
    snprintf(model, sizeof model, "%s/saved_model.pb", argv[1]);
    FILE* file = fopen(model, "rb");
    if (!file) {
        printf("no model in %s: tools/demo/fetch_basic_pitch.sh downloads it\n", argv[1]);
        return 77;
    }
    fclose(file);
    snprintf(wav, sizeof wav, "%s", argc > 3 ? argv[3] : "");
    if (argc == 3) {
        snprintf(wav, sizeof wav, "%s/melody.wav", argv[2]);
        save_melody(wav);
    }

    size_t n_samples, n_heard, n_played;
    float* samples = wav_read(wav, &n_samples, SAMPLE_RATE);
    if (!samples) fail("%s is not a 16-bit mono WAV file of %d Hz", wav, SAMPLE_RATE);
    Posteriorgram posteriorgram = pitch_analyze(argv[1], samples, n_samples);
    Note* heard = notes_decode(&posteriorgram, SECONDS_PER_FRAME, &n_heard);
    printf("heard %zu notes:\n", n_heard);
    for (size_t i = 0; i < n_heard; ++i) {
        char name[NOTE_NAME_SIZE];
        note_name(heard[i].pitch, name);
        printf("  %s from %.2f s to %.2f s\n", name, heard[i].start, heard[i].end);
    }
    snprintf(png, sizeof png, "%s/notes.png", argv[2]);
    if (!picture_write(png, &posteriorgram, heard, n_heard, SECONDS_PER_FRAME)) fail("cannot write %s", png);
    printf("drew %s\n", png);

    int wrong = 0;
    if (argc == 3) {
        const Note* played = melody_notes(&n_played);
        wrong = compare(heard, n_heard, played, n_played);
        if (wrong)
            printf("these are NOT the %zu notes played\n", n_played);
        else
            printf("these are the %zu notes played\n", n_played);
    }
    free(heard);
    free(samples);
    posteriorgram_free(&posteriorgram);
    return wrong != 0;
}
