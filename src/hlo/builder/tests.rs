//! Tests of the builder: what it refuses, and the shapes of what it makes.
