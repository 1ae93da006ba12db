//! Conversion between tensors, shapes and their wire messages.
