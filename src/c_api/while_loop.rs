//! Loops in a graph.
