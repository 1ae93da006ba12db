"""The tune of the demo (examples-c/basic_pitch/melody.c), cut into the windows that the basic-pitch model looks at."""

import numpy as np

RATE, WINDOW, MARGIN = 22050, 43844, 15 * 256
SILENCE, BEAT, SOUNDING, HARMONICS = 0.5, 0.5, 0.9, 6
PITCHES = [60, 62, 64, 65, 67, 69, 71, 72, 64, 64, 65, 67, 67, 65, 64, 62, 60, 60, 62, 64, 64, 62, 62]
BEATS = [1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1.5, 0.5, 2]


def samples():
    """The tune, with silence before and after it."""
    starts = SILENCE + BEAT * np.concatenate([[0], np.cumsum(BEATS)])
    result = np.zeros(int((starts[-2] + BEATS[-1] * BEAT * SOUNDING + SILENCE) * RATE), "float32")
    for pitch, beats, start in zip(PITCHES, BEATS, starts):
        frequency, length = 440.0 * 2.0 ** ((pitch - 69) / 12.0), beats * BEAT * SOUNDING
        time = np.arange(int(length * RATE)) / RATE
        wave = sum(np.sin(2.0 * np.pi * k * frequency * time) / k**2 for k in range(1, HARMONICS + 1))
        envelope = np.minimum(1.0, time / 0.008) * np.minimum(1.0, (length - time) / 0.03) * np.exp(-1.5 * time)
        first = int(start * RATE)
        result[first : first + len(time)] += (0.35 * wave * envelope).astype("float32")
    return result


def windows():
    """Overlapping windows, zeros around them: [n, WINDOW, 1]. The last one is silent."""
    hop = WINDOW - 2 * MARGIN
    tune = samples()
    count = -(-len(tune) // hop)
    padded = np.zeros(MARGIN + count * hop + WINDOW, "float32")
    padded[MARGIN : MARGIN + len(tune)] = tune
    return np.stack([padded[i * hop : i * hop + WINDOW, None] for i in range(count)])
