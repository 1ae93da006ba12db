#include "picture.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "png.h"

enum {
    FRAME_WIDTH = 1, /* pixels per frame */
    KEY_HEIGHT = 14, /* pixels per key */
    LEFT = 64,       /* margin with the keyboard and note names */
    KEYBOARD = 24,   /* its part that the keyboard takes */
    RIGHT = 84,      /* margin with the colour scale */
    TOP = 30,
    BOTTOM = 34,
    GLYPH_WIDTH = 6,
    GLYPH_HEIGHT = 7
};

typedef struct {
    uint8_t r, g, b;
} Colour;

static const Colour WHITE = {255, 255, 255}, BLACK = {20, 20, 24}, PAPER = {30, 30, 36}, INK = {220, 220, 225},
                    GRID = {80, 80, 92};

typedef struct {
    int width, height;
    uint8_t* pixels;
} Canvas;

/* Letters as 7 rows of 5 bits, the leftmost highest. */
typedef struct {
    char letter;
    uint8_t rows[GLYPH_HEIGHT];
} Glyph;

static const Glyph GLYPHS[] = {
    {'0', {14, 17, 19, 21, 25, 17, 14}}, {'1', {4, 12, 4, 4, 4, 4, 14}},      {'2', {14, 17, 1, 6, 8, 16, 31}},
    {'3', {30, 1, 1, 14, 1, 1, 30}},     {'4', {2, 6, 10, 18, 31, 2, 2}},     {'5', {31, 16, 30, 1, 1, 17, 14}},
    {'6', {6, 8, 16, 30, 17, 17, 14}},   {'7', {31, 1, 2, 4, 8, 8, 8}},       {'8', {14, 17, 17, 14, 17, 17, 14}},
    {'9', {14, 17, 17, 15, 1, 2, 12}},   {'A', {14, 17, 17, 31, 17, 17, 17}}, {'B', {30, 17, 17, 30, 17, 17, 30}},
    {'C', {14, 17, 16, 16, 16, 17, 14}}, {'D', {30, 17, 17, 17, 17, 17, 30}}, {'E', {31, 16, 16, 30, 16, 16, 31}},
    {'F', {31, 16, 16, 30, 16, 16, 16}}, {'G', {14, 17, 16, 19, 17, 17, 15}}, {'#', {10, 10, 31, 10, 31, 10, 10}},
    {'.', {0, 0, 0, 0, 0, 12, 12}},      {'-', {0, 0, 0, 31, 0, 0, 0}},       {'a', {0, 0, 14, 1, 15, 17, 15}},
    {'b', {16, 16, 22, 25, 17, 17, 30}}, {'c', {0, 0, 14, 16, 16, 17, 14}},   {'d', {1, 1, 13, 19, 17, 17, 15}},
    {'e', {0, 0, 14, 17, 31, 16, 14}},   {'f', {6, 9, 8, 28, 8, 8, 8}},       {'h', {16, 16, 22, 25, 17, 17, 17}},
    {'i', {4, 0, 12, 4, 4, 4, 14}},      {'k', {16, 16, 18, 20, 24, 20, 18}}, {'l', {12, 4, 4, 4, 4, 4, 14}},
    {'m', {0, 0, 26, 21, 21, 21, 21}},   {'n', {0, 0, 22, 25, 17, 17, 17}},   {'o', {0, 0, 14, 17, 17, 17, 14}},
    {'p', {0, 0, 30, 17, 30, 16, 16}},   {'r', {0, 0, 22, 25, 16, 16, 16}},   {'s', {0, 0, 15, 16, 14, 1, 30}},
    {'t', {8, 8, 28, 8, 8, 9, 6}},       {'u', {0, 0, 17, 17, 17, 19, 13}},   {'w', {0, 0, 17, 17, 21, 21, 10}},
    {'y', {0, 0, 17, 17, 15, 1, 14}},
};

static void rectangle(Canvas* canvas, int x, int y, int width, int height, Colour colour) {
    for (int j = y < 0 ? 0 : y; j < y + height && j < canvas->height; ++j) {
        for (int i = x < 0 ? 0 : x; i < x + width && i < canvas->width; ++i) {
            memcpy(canvas->pixels + 3 * ((size_t)j * (size_t)canvas->width + (size_t)i), &colour, 3);
        }
    }
}

static void outline(Canvas* canvas, int x, int y, int width, int height, Colour colour) {
    rectangle(canvas, x, y, width, 1, colour);
    rectangle(canvas, x, y + height - 1, width, 1, colour);
    rectangle(canvas, x, y, 1, height, colour);
    rectangle(canvas, x + width - 1, y, 1, height, colour);
}

/* Writes letters that GLYPHS has; others leave a space. */
static void text(Canvas* canvas, int x, int y, const char* letters, Colour colour) {
    for (; *letters; ++letters, x += GLYPH_WIDTH) {
        for (size_t g = 0; g < sizeof GLYPHS / sizeof GLYPHS[0]; ++g) {
            if (GLYPHS[g].letter != *letters) continue;
            for (int j = 0; j < GLYPH_HEIGHT; ++j) {
                for (int i = 0; i < 5; ++i) {
                    if (GLYPHS[g].rows[j] >> (4 - i) & 1) rectangle(canvas, x + i, y + j, 1, 1, colour);
                }
            }
        }
    }
}

/* From black through purple and orange to light yellow. */
static Colour heat(float value) {
    static const Colour STOPS[] = {{0, 0, 4}, {87, 16, 110}, {188, 55, 84}, {249, 142, 9}, {252, 255, 164}};
    float scaled = (value < 0 ? 0 : value > 1 ? 1 : value) * 4.0f;
    int stop = scaled >= 4.0f ? 3 : (int)scaled;
    float part = scaled - (float)stop;
    const Colour *a = &STOPS[stop], *b = &STOPS[stop + 1];
    Colour colour = {(uint8_t)((1 - part) * a->r + part * b->r), (uint8_t)((1 - part) * a->g + part * b->g),
                     (uint8_t)((1 - part) * a->b + part * b->b)};
    return colour;
}

static int key_top(int key, int highest) { return TOP + (highest - key) * KEY_HEIGHT; }

static void draw_keyboard(Canvas* canvas, int lowest, int highest) {
    for (int key = lowest; key <= highest; ++key) {
        int pitch = key + PITCH_LOWEST_MIDI, y = key_top(key, highest);
        bool is_black = strchr("\1\3\6\10\12", pitch % 12) && pitch % 12 != 0;
        rectangle(canvas, LEFT - KEYBOARD, y, KEYBOARD - 2, KEY_HEIGHT - 1, WHITE);
        if (is_black) rectangle(canvas, LEFT - KEYBOARD, y, KEYBOARD * 2 / 3, KEY_HEIGHT - 1, BLACK);
        char name[NOTE_NAME_SIZE];
        note_name(pitch, name);
        text(canvas, LEFT - KEYBOARD - 4 - GLYPH_WIDTH * (int)strlen(name), y + 3, name, is_black ? GRID : INK);
    }
}

static void draw_cells(Canvas* canvas, const Posteriorgram* p, int lowest, int highest) {
    for (size_t frame = 0; frame < p->n_frames; ++frame) {
        for (int key = lowest; key <= highest; ++key) {
            Colour colour = heat(p->note[frame * PITCH_KEYS + (size_t)key]);
            rectangle(canvas, LEFT + (int)frame * FRAME_WIDTH, key_top(key, highest), FRAME_WIDTH, KEY_HEIGHT, colour);
        }
    }
}

static void draw_time_axis(Canvas* canvas, size_t n_frames, int bottom, double seconds_per_frame) {
    for (int second = 0; second < (double)n_frames * seconds_per_frame; ++second) {
        int x = LEFT + (int)(second / seconds_per_frame * FRAME_WIDTH);
        rectangle(canvas, x, bottom, 1, 5, INK);
        char label[16];
        snprintf(label, sizeof label, "%d", second);
        text(canvas, x - GLYPH_WIDTH * (int)strlen(label) / 2 + 1, bottom + 8, label, INK);
    }
    text(canvas, LEFT, bottom + 22, "seconds", INK);
}

static void draw_scale(Canvas* canvas, int x, int bottom) {
    int height = bottom - TOP;
    for (int i = 0; i < height; ++i) rectangle(canvas, x, bottom - 1 - i, 14, 1, heat((float)i / (float)(height - 1)));
    text(canvas, x + 20, bottom - GLYPH_HEIGHT, "0.0", INK);
    text(canvas, x + 20, TOP + height / 2, "0.5", INK);
    text(canvas, x + 20, TOP, "1.0", INK);
}

bool picture_write(const char* path, const Posteriorgram* posteriorgram, const Note* notes, size_t n_notes,
                   double seconds_per_frame) {
    int lowest = PITCH_KEYS, highest = 0;
    for (size_t i = 0; i < n_notes; ++i) {
        int key = notes[i].pitch - PITCH_LOWEST_MIDI;
        if (key < lowest) lowest = key;
        if (key > highest) highest = key;
    }
    if (n_notes == 0) lowest = 0, highest = PITCH_KEYS - 1;
    lowest = lowest > 8 ? lowest - 8 : 0;
    highest = highest < PITCH_KEYS - 14 ? highest + 13 : PITCH_KEYS - 1;

    int bottom = TOP + (highest - lowest + 1) * KEY_HEIGHT, right = LEFT + (int)posteriorgram->n_frames * FRAME_WIDTH;
    Canvas canvas = {right + RIGHT, bottom + BOTTOM, NULL};
    canvas.pixels = malloc((size_t)canvas.width * (size_t)canvas.height * 3);
    if (!canvas.pixels) return false;
    rectangle(&canvas, 0, 0, canvas.width, canvas.height, PAPER);
    text(&canvas, LEFT, 12, "how likely each key sounds - framed are the notes heard", INK);
    draw_cells(&canvas, posteriorgram, lowest, highest);
    draw_keyboard(&canvas, lowest, highest);
    draw_time_axis(&canvas, posteriorgram->n_frames, bottom, seconds_per_frame);
    draw_scale(&canvas, right + 16, bottom);
    for (size_t i = 0; i < n_notes; ++i) {
        int x = LEFT + (int)(notes[i].start / seconds_per_frame) * FRAME_WIDTH;
        int width = (int)((notes[i].end - notes[i].start) / seconds_per_frame) * FRAME_WIDTH;
        outline(&canvas, x, key_top(notes[i].pitch - PITCH_LOWEST_MIDI, highest), width, KEY_HEIGHT, WHITE);
    }
    bool ok = png_write(path, canvas.pixels, (uint32_t)canvas.width, (uint32_t)canvas.height);
    free(canvas.pixels);
    return ok;
}
