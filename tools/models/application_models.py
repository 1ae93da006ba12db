"""Networks of keras.applications at small image sizes, and convolutional networks of other arrangements.

Random, seeded weights, normalizations calibrated, a dynamic batch dimension; see keras_models for what each function
returns.
"""

import keras
import tensorflow as tf
from keras import layers

from keras_models import calibrated, image_inputs

# name: (constructor in keras.applications, extent of the square images). Ten classes each.
APPLICATIONS = {
    "convnext_tiny": ("ConvNeXtTiny", 64),
    "densenet121": ("DenseNet121", 64),
    "efficientnet_b0": ("EfficientNetB0", 64),
    "efficientnet_v2_b0": ("EfficientNetV2B0", 64),
    "inception_resnet_v2": ("InceptionResNetV2", 80),
    "inception_v3": ("InceptionV3", 80),
    "mobilenet": ("MobileNet", 64),
    "mobilenet_v3_large": ("MobileNetV3Large", 64),
    "mobilenet_v3_small": ("MobileNetV3Small", 64),
    "nasnet_mobile": ("NASNetMobile", 64),
    "resnet50_v2": ("ResNet50V2", 64),
    "resnet101": ("ResNet101", 64),
    "vgg16": ("VGG16", 64),
    "xception": ("Xception", 80),
}


def application(name):
    """The function that makes one row of APPLICATIONS. The logits are an output too: a softmax of random ones saturates."""
    constructor, extent = APPLICATIONS[name]
    shape = (extent, extent, 3)

    def make():
        network = getattr(keras.applications, constructor)
        model = network(weights=None, input_shape=shape, classes=10, classifier_activation=None)
        outputs = {"logits": model.output, "y": layers.Softmax()(model.output)}
        return calibrated(keras.Model(model.input, outputs), shape, images=32), image_inputs(shape)

    return make


def unet(extent=32, widths=(8, 16, 32)):
    """U-Net: down by pooling, up by transposed convolutions and by resizing, skip connections, a mask per pixel."""
    shape = (extent, extent, 3)

    def block(x, width):
        for _ in range(2):
            x = layers.Conv2D(width, 3, padding="same", use_bias=False)(x)
            x = layers.ReLU()(layers.BatchNormalization()(x))
        return x

    x = image = keras.Input(shape, name="x")
    skips = []
    for width in widths:
        x = block(x, width)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = block(x, 2 * widths[-1])
    for level, (width, skip) in enumerate(zip(reversed(widths), reversed(skips))):
        if level % 2:
            x = layers.Conv2D(width, 2, padding="same")(layers.UpSampling2D(interpolation="bilinear")(x))
        else:
            x = layers.Conv2DTranspose(width, 2, strides=2, padding="same")(x)
        x = block(layers.Concatenate()([skip, x]), width)
    model = keras.Model(image, layers.Conv2D(2, 1, activation="softmax")(x))
    return calibrated(model, shape), image_inputs(shape)


class Detector(tf.Module):
    """A small convolutional backbone, YOLO's grid of anchored boxes, and non-maximum suppression per class."""

    ANCHORS = ((0.1, 0.15), (0.3, 0.25), (0.6, 0.7))
    CLASSES = 4

    def __init__(self, shape):
        super().__init__()
        outputs = len(self.ANCHORS) * (5 + self.CLASSES)
        stack = [keras.Input(shape)]
        for width in (8, 16, 32):
            stack += [layers.Conv2D(width, 3, strides=2, padding="same"), layers.BatchNormalization(), layers.LeakyReLU(0.1)]
        self.backbone = calibrated(keras.Sequential([*stack, layers.Conv2D(outputs, 1)]), shape)

    def __call__(self, images, training=False):
        grid = self.backbone(images, training=training)
        batch, rows, columns = tf.unstack(tf.shape(grid)[:3])
        cells = tf.reshape(grid, [batch, rows, columns, len(self.ANCHORS), 5 + self.CLASSES])
        xy, wh, objectness, classes = tf.split(cells, [2, 2, 1, self.CLASSES], axis=-1)
        offsets = tf.stack(tf.meshgrid(tf.range(columns), tf.range(rows)), axis=-1)
        extents = tf.cast(tf.stack([columns, rows]), tf.float32)
        centres = (tf.sigmoid(xy) + tf.cast(offsets[None, :, :, None], tf.float32)) / extents
        halves = tf.constant(self.ANCHORS) * tf.exp(tf.clip_by_value(wh, -4.0, 4.0)) / 2
        boxes = tf.concat([(centres - halves)[..., ::-1], (centres + halves)[..., ::-1]], axis=-1)
        boxes = tf.reshape(boxes, [batch, -1, 1, 4])
        scores = tf.reshape(tf.sigmoid(objectness) * tf.sigmoid(classes), [batch, -1, self.CLASSES])
        combined = tf.image.combined_non_max_suppression(boxes, scores, 5, 12, 0.45, 0.2, clip_boxes=True)
        first, best = boxes[0, :, 0], tf.reduce_max(scores[0], axis=-1)
        indices, soft_scores = tf.image.non_max_suppression_with_scores(first, best, 10, 0.45, 0.1, soft_nms_sigma=0.5)
        padded, valid = tf.image.non_max_suppression_padded(first, best, 10, 0.45, 0.2, pad_to_max_output_size=True)
        return {
            "boxes": combined.nmsed_boxes,
            "scores": combined.nmsed_scores,
            "classes": combined.nmsed_classes,
            "valid": combined.valid_detections,
            "soft_indices": indices,
            "soft_scores": soft_scores,
            "kept": tf.gather(first, padded),
            "n_kept": valid,
            "plain": tf.image.non_max_suppression(first, best, 10, 0.45),
            "crops": tf.image.crop_and_resize(images[:1], tf.gather(first, padded), tf.zeros_like(padded), [5, 5]),
        }


def detector():
    """Detector on 64x64 images."""
    shape = (64, 64, 3)
    return Detector(shape), image_inputs(shape)


MODELS = {name: application(name) for name in APPLICATIONS} | {"unet": unet, "detector": detector}
