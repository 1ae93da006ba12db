"""Models of sequences: recurrent layers, Transformers that decode step by step, audio front ends, causal convolutions.

Random, seeded weights and a dynamic batch dimension; see keras_models for what each function returns. Those that loop
are tf.Modules: a While in their graph, state that grows or is updated in each turn.
"""

import keras
import numpy as np
import tensorflow as tf
from keras import layers


def _sequence_inputs(*shape):
    return lambda batch, random: {"x": random.randn(batch, *shape).astype("float32")}


def _recurrent(make_layers, *shape):
    """A model of recurrent layers over sequences of this shape."""

    def make():
        return keras.Sequential([keras.Input(shape, name="x"), *make_layers()]), _sequence_inputs(*shape)

    return make


def masked_lstm():
    """Embedding with a mask for token 0, a bidirectional LSTM that honours it, a dense layer per step."""
    ids = keras.Input((12,), dtype="int32", name="x")
    x = layers.Embedding(30, 8, mask_zero=True)(ids)
    x = layers.Bidirectional(layers.LSTM(6, return_sequences=True))(x)
    model = keras.Model(ids, layers.TimeDistributed(layers.Dense(5, "softmax"))(x))

    def make_inputs(batch, random):
        lengths = random.randint(3, 13, (batch, 1))
        ids = random.randint(1, 30, (batch, 12))
        return {"x": (ids * (np.arange(12)[None, :] < lengths)).astype("int32")}

    return model, make_inputs


def wavenet(length=64, width=8):
    """WaveNet: dilated causal convolutions with gates, residual and skip connections."""
    x = samples = keras.Input((length, 1), name="x")
    x = layers.Conv1D(width, 2, padding="causal")(x)
    skips = []
    for dilation in (1, 2, 4, 8, 16):
        filtered = layers.Conv1D(width, 2, padding="causal", dilation_rate=dilation, activation="tanh")(x)
        gate = layers.Conv1D(width, 2, padding="causal", dilation_rate=dilation, activation="sigmoid")(x)
        gated = layers.Multiply()([filtered, gate])
        skips.append(layers.Conv1D(width, 1)(gated))
        x = layers.Add()([x, layers.Conv1D(width, 1)(gated)])
    x = layers.Conv1D(16, 1, activation="relu")(layers.ReLU()(layers.Add()(skips)))
    return keras.Model(samples, layers.Softmax()(layers.Conv1D(16, 1)(x))), _sequence_inputs(length, 1)


class AudioFrontEnd(tf.Module):
    """Short-time spectra, mel bands, cepstral coefficients, and the signal back from its spectra."""

    def __call__(self, audio, training=False):
        spectra = tf.signal.stft(audio, frame_length=256, frame_step=64, fft_length=256, pad_end=True)
        magnitudes = tf.abs(spectra)
        weights = tf.signal.linear_to_mel_weight_matrix(20, 129, 8000, 80.0, 3800.0)
        mel = tf.tensordot(magnitudes, weights, 1)
        log_mel = tf.math.log(mel + 1e-3)
        window = tf.signal.inverse_stft_window_fn(64)
        return {
            "magnitudes": magnitudes,
            "phases": tf.cos(tf.math.angle(spectra + 1e-2)),
            "log_mel": log_mel,
            "mfcc": tf.signal.mfccs_from_log_mel_spectrograms(log_mel)[..., :13],
            "audio": tf.signal.inverse_stft(spectra, 256, 64, 256, window),
            "frames": tf.signal.frame(audio, 128, 100, axis=-1),
            "mdct": tf.signal.mdct(audio, 128),
        }


class Attention(tf.Module):
    """Multi-head attention in plain ops; `visible` broadcasts to [batch, heads, queries, keys]."""

    def __init__(self, random, width, heads):
        super().__init__()
        self.heads = heads
        self.weights = [tf.Variable((random.randn(width, width) / width**0.5).astype("float32")) for _ in range(4)]

    def split(self, x):
        """[batch, length, width] to [batch, heads, length, depth]."""
        batch, length, width = tf.shape(x)[0], tf.shape(x)[1], x.shape[2]
        return tf.transpose(tf.reshape(x, [batch, length, self.heads, width // self.heads]), [0, 2, 1, 3])

    def keys_and_values(self, x):
        """What a query attends to, for a cache."""
        return self.split(tf.tensordot(x, self.weights[1], 1)), self.split(tf.tensordot(x, self.weights[2], 1))

    def __call__(self, x, keys, values, visible):
        queries = self.split(tf.tensordot(x, self.weights[0], 1))
        scores = tf.einsum("bhqd,bhkd->bhqk", queries, keys) / tf.sqrt(float(queries.shape[-1]))
        weights = tf.nn.softmax(tf.where(visible, scores, -1e9))
        mixed = tf.transpose(tf.matmul(weights, values), [0, 2, 1, 3])
        return tf.tensordot(tf.reshape(mixed, tf.shape(x)), self.weights[3], 1)


class Translator(tf.Module):
    """Transformer encoder and decoder; beam search with a length penalty, the whole prefix again in each turn."""

    WIDTH, HEADS, VOCABULARY, STEPS, BEAMS = 16, 2, 20, 6, 3

    def __init__(self):
        super().__init__()
        random = np.random.RandomState(3)
        self.embedding = tf.Variable(random.randn(self.VOCABULARY, self.WIDTH).astype("float32"))
        self.position = tf.Variable(random.randn(32, self.WIDTH).astype("float32") * 0.3)
        self.encoder, self.decoder, self.cross = (Attention(random, self.WIDTH, self.HEADS) for _ in range(3))

    def normalized(self, x):
        """Layer normalization without weights."""
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, None, None, 1e-6)

    def embed(self, ids):
        """Tokens with their places."""
        return tf.nn.embedding_lookup(self.embedding, ids) + self.position[: tf.shape(ids)[1]]

    def logits(self, ids, memory, memory_visible):
        """The next token's logits for each row of ids."""
        x = self.embed(ids)
        causal = tf.linalg.band_part(tf.ones([tf.shape(ids)[1]] * 2), -1, 0) > 0
        x = self.normalized(x + self.decoder(x, *self.decoder.keys_and_values(x), causal))
        x = self.normalized(x + self.cross(x, *self.cross.keys_and_values(memory), memory_visible))
        return tf.matmul(x[:, -1], self.embedding, transpose_b=True)

    def __call__(self, ids, training=False):
        visible = (ids > 0)[:, None, None, :]
        x = self.embed(ids)
        memory = self.normalized(x + self.encoder(x, *self.encoder.keys_and_values(x), visible))
        batch, beams = tf.shape(ids)[0], self.BEAMS
        memory, visible = tf.repeat(memory, beams, axis=0), tf.repeat(visible, beams, axis=0)
        sequences = tf.ones([batch * beams, 1], tf.int32)
        scores = tf.tile([[0.0] + [-1e6] * (beams - 1)], [batch, 1])
        shapes = (tf.TensorShape([]), tf.TensorShape([None, None]), tf.TensorShape([None, beams]))

        def step(turn, sequences, scores):
            log_p = tf.nn.log_softmax(self.logits(sequences, memory, visible))
            total = tf.reshape(scores[:, :, None] + tf.reshape(log_p, [batch, beams, -1]), [batch, -1])
            scores, flat = tf.math.top_k(total, beams)
            parents = flat // self.VOCABULARY + tf.range(batch)[:, None] * beams
            chosen = tf.gather(sequences, tf.reshape(parents, [-1]))
            sequences = tf.concat([chosen, tf.reshape(flat % self.VOCABULARY, [-1, 1])], axis=1)
            return turn + 1, sequences, scores

        start = (tf.constant(0), sequences, scores)
        _, sequences, scores = tf.while_loop(lambda turn, *_: turn < self.STEPS, step, start, shape_invariants=shapes)
        return {"sequences": tf.reshape(sequences, [batch, beams, -1]), "scores": scores / self.STEPS**0.6}


class Generator(Translator):
    """GPT: a decoder that writes one token a turn and keeps keys and values of those before in a cache."""

    def __call__(self, ids, training=False):
        batch, length = tf.shape(ids)[0], tf.shape(ids)[1]
        total = length + self.STEPS
        depth = self.WIDTH // self.HEADS
        cache = tf.zeros([2, batch, self.HEADS, total, depth])
        out = tf.TensorArray(tf.int32, size=total, element_shape=[None]).unstack(tf.transpose(tf.pad(ids, [[0, 0], [0, self.STEPS]])))

        def step(turn, token, cache, out):
            x = (tf.gather(self.embedding, token) + self.position[turn])[:, None]
            new = tf.stack(self.decoder.keys_and_values(x))
            here = tf.one_hot(turn, total)[None, None, None, :, None]
            cache = cache * (1 - here) + new * here
            visible = tf.range(total)[None, None, None, :] <= turn
            x = self.normalized(x + self.decoder(x, cache[0], cache[1], visible))[:, 0]
            best = tf.argmax(tf.matmul(x, self.embedding, transpose_b=True), axis=-1, output_type=tf.int32)
            given = turn + 1 < length
            token = tf.cond(given, lambda: ids[:, tf.minimum(turn + 1, length - 1)], lambda: best)
            return turn + 1, token, cache, out.write(turn + 1, token)

        start = (tf.constant(0), ids[:, 0], cache, out)
        _, _, cache, out = tf.while_loop(lambda turn, *_: turn + 1 < total, step, start)
        return {"tokens": tf.transpose(out.stack()), "cache": cache}


def _decoding(module, length):
    def make_inputs(batch, random):
        ids = random.randint(1, module.VOCABULARY, (batch, length)).astype("int32")
        if batch > 1:
            ids[1, length // 2 :] = 0
        return {"x": ids}

    return lambda: (module(), make_inputs)


# Those with a While that reads variables.
LOOPS = ("beam_search", "gpt_cache")
# Those that are tf.Modules without Keras layers, and so SavedModels of plain functions.
MODULES = {
    "audio_front_end": lambda: (AudioFrontEnd(), _sequence_inputs(1024)),
    "beam_search": _decoding(Translator, 7),
    "gpt_cache": _decoding(Generator, 4),
}
MODELS = {
    "lstm": _recurrent(lambda: [layers.LSTM(8, return_sequences=True), layers.LSTM(6)], 7, 4),
    "gru": _recurrent(lambda: [layers.GRU(8, return_sequences=True), layers.GRU(6, reset_after=False)], 7, 4),
    "simple_rnn": _recurrent(lambda: [layers.SimpleRNN(8, return_sequences=True, go_backwards=True)], 7, 4),
    "bidirectional": _recurrent(lambda: [layers.Bidirectional(layers.GRU(5, return_sequences=True))], 7, 4),
    "conv_lstm": _recurrent(lambda: [layers.ConvLSTM2D(4, 3, padding="same", return_sequences=True)], 3, 8, 8, 1),
    "masked_lstm": masked_lstm,
    "wavenet": wavenet,
} | MODULES
