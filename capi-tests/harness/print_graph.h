/* Prints serialized graphs and functions in a fixed form: attributes sorted by name, values readable where short. */
#ifndef CAPI_TESTS_HARNESS_PRINT_GRAPH_H_
#define CAPI_TESTS_HARNESS_PRINT_GRAPH_H_

#include <stddef.h>
#include <tensorflow/c/c_api.h>

/* A GraphDef: nodes in their order, then versions, then functions. */
void print_graph_def(const TF_Buffer* graph_def);

/* A NodeDef on one line. */
void print_node_def(const void* data, size_t length);

/* A FunctionDef. */
void print_function_def(const void* data, size_t length);

/* An AttrValue. */
void print_attr_value(const void* data, size_t length);

/* Exports the graph and prints its nodes. */
void print_graph(TF_Graph* graph);

#endif
