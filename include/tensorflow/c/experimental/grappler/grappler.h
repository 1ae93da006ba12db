/* Graph optimizers that plug-ins add. A plug-in is a shared library that defines TF_InitGraph;
 * TF_LoadPluggableDeviceLibrary (c_api_experimental.h) loads it. The optimizer then sees each graph that a session
 * plans, unless the session's configuration says otherwise (rewrite_options: disable_meta_optimizer,
 * use_plugin_optimizers, min_graph_nodes). Structs begin with their size as who filled them in knows it. Any thread
 * may call any function; which objects threads may share is said at each type, and none may be in use when it is
 * deleted. Text and arrays that are passed in belong to the caller and are read during the call only, unless a
 * comment says otherwise. A function that takes a TF_Status sets it on every call: to OK, or to the error.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_EXPERIMENTAL_GRAPPLER_GRAPPLER_H_
#define TENSORFLOW_C_EXPERIMENTAL_GRAPPLER_GRAPPLER_H_

#include <stddef.h>
#include <stdint.h>
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_status.h"

/* Version of this interface. */
#define GO_MAJOR 0
#define GO_MINOR 0
#define GO_PATCH 1

#ifdef __cplusplus
extern "C" {
#endif

/* Whether one of the library's own passes runs: as the configuration says, not, or always. */
typedef enum TF_TriState {
  TF_TriState_Default = 0,
  TF_TriState_Off = 1,
  TF_TriState_On = 2,
} TF_TriState;

/* A graph with what is fed, fetched and kept of it. It belongs to the library and is valid during the call that it is given to, on its
 * thread. */
typedef struct TF_GrapplerItem TF_GrapplerItem;

/* Which of the library's own passes the optimizer's device does without. `TF_TriState_Off` turns one off. */
typedef struct TP_OptimizerConfigs {
  size_t struct_size;
  void *ext;
  TF_TriState disable_model_pruning;
  TF_TriState implementation_selector;
  TF_TriState function_optimization;
  TF_TriState common_subgraph_elimination;
  TF_TriState arithmetic_optimization;
  TF_TriState debug_stripper;
  TF_TriState constant_folding;
  TF_TriState shape_optimization;
  TF_TriState auto_mixed_precision;
  TF_TriState auto_mixed_precision_onednn_bfloat16;
  TF_TriState auto_mixed_precision_mkl;
  TF_TriState pin_to_host_optimization;
  TF_TriState layout_optimizer;
  TF_TriState remapping;
  TF_TriState loop_optimization;
  TF_TriState dependency_optimization;
  TF_TriState auto_parallel;
  TF_TriState memory_optimization;
  TF_TriState scoped_allocator_optimization;
} TP_OptimizerConfigs;

#define TP_OPTIMIZER_CONFIGS_STRUCT_SIZE TF_OFFSET_OF_END(TP_OptimizerConfigs, scoped_allocator_optimization)

/* The functions of an optimizer. They may be called on any thread, on one at a time. */
typedef struct TP_Optimizer {
  size_t struct_size;
  void *ext;
  /* Makes the optimizer that the other functions get, or NULL; may be left out. */
  void *(*create_func)(void);
  /* Writes an optimized GraphDef for a serialized GraphDef into an empty buffer, and OK; or an error, and the graph stays
   * as it is. ABORTED says that there was nothing to do. */
  void (*optimize_func)(void *optimizer, const TF_Buffer *graph, const TF_GrapplerItem *item, TF_Buffer *optimized_graph,
                        TF_Status *status);
  /* Frees the optimizer; needed with `create_func`. */
  void (*destroy_func)(void *optimizer);
} TP_Optimizer;

#define TP_OPTIMIZER_STRUCT_SIZE TF_OFFSET_OF_END(TP_Optimizer, destroy_func)

/* What TF_InitGraph fills in. */
typedef struct TP_OptimizerRegistrationParams {
  size_t struct_size;
  void *ext;
  /* The library's version of this interface. */
  int32_t major_version;
  int32_t minor_version;
  int32_t patch_version;
  /* The type of device whose graphs are optimized: `CPU`. One optimizer for each. */
  const char *device_type;
  TP_OptimizerConfigs *optimizer_configs;
  TP_Optimizer *optimizer;
} TP_OptimizerRegistrationParams;

#define TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE TF_OFFSET_OF_END(TP_OptimizerRegistrationParams, optimizer)

/* What a plug-in defines. TF_LoadPluggableDeviceLibrary calls it. */
void TF_InitGraph(TP_OptimizerRegistrationParams *params, TF_Status *status);

#ifdef __cplusplus
}
#endif


/**
 * The functions of a graph, and all ops. Threads may use it at the same time.
 */
typedef struct TF_FunctionLibraryDefinition TF_FunctionLibraryDefinition;

/**
 * What is known of the inputs and outputs of a graph's nodes. One thread at a time may use it.
 */
typedef struct TF_GraphProperties TF_GraphProperties;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Writes how many nodes an optimizer must leave as they are, because they are fed or fetched, and the bytes of their names.
 */
TF_CAPI_EXPORT extern
void TF_GetNodesToPreserveListSize(const TF_GrapplerItem *item,
                                   int *num_values,
                                   size_t *storage_size,
                                   TF_Status *status);

/**
 * Writes addresses and lengths of those names, `num_values` at most; their bytes go into `storage`, without zero bytes
 * between them. INVALID_ARGUMENT when it has too little room.
 */
TF_CAPI_EXPORT extern
void TF_GetNodesToPreserveList(const TF_GrapplerItem *item,
                               char**values,
                               size_t *lengths,
                               int num_values,
                               void *storage,
                               size_t storage_size,
                               TF_Status *status);

/**
 * Writes how many outputs are fetched and nodes run, and the bytes of their names.
 */
TF_CAPI_EXPORT extern
void TF_GetFetchNodesListSize(const TF_GrapplerItem *item,
                              int *num_values,
                              size_t *storage_size,
                              TF_Status *status);

/**
 * Writes addresses and lengths of those names, as `TF_GetNodesToPreserveList` does.
 */
TF_CAPI_EXPORT extern
void TF_GetFetchNodesList(const TF_GrapplerItem *item,
                          char**values,
                          size_t *lengths,
                          int num_values,
                          void *storage,
                          size_t storage_size,
                          TF_Status *status);

/**
 * What is known of a graph, nothing at first. The item must outlive it. Free it with `TF_DeleteGraphProperties`. NULL for
 * NULL.
 */
TF_CAPI_EXPORT extern
TF_GraphProperties *TF_NewGraphProperties(const TF_GrapplerItem *item);

/**
 * Frees what is known of a graph; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteGraphProperties(TF_GraphProperties *graph_properties);

/**
 * Infers types and shapes of the inputs and outputs of the graph; an extent that is not known is -1. Fed outputs have unknown shapes unless
 * `assume_valid_feeds`; with `include_input_tensor_values` or `include_output_tensor_values`, the values of constants are
 * there, too. `aggressive_shape_inference` changes nothing: constants are always folded.
 */
TF_CAPI_EXPORT extern
void TF_InferStatically(TF_GraphProperties *graph_properties,
                        unsigned char assume_valid_feeds,
                        unsigned char aggressive_shape_inference,
                        unsigned char include_input_tensor_values,
                        unsigned char include_output_tensor_values,
                        TF_Status *s);

/**
 * Writes the number of inputs of a node; 0 for a name that no node has, or before `TF_InferStatically`.
 */
TF_CAPI_EXPORT extern
void TF_GetInputPropertiesListSize(TF_GraphProperties *graph_properties,
                                   const char *name,
                                   int *num_values,
                                   TF_Status *status);

/**
 * Writes the number of outputs of a node; 0 likewise.
 */
TF_CAPI_EXPORT extern
void TF_GetOutputPropertiesListSize(TF_GraphProperties *graph_properties,
                                    const char *name,
                                    int *num_values,
                                    TF_Status *status);

/**
 * Writes what is known of the inputs of a node, `num_values` at most, as serialized `OpInfo.TensorProperties` into empty
 * buffers of the caller's. INVALID_ARGUMENT for a buffer that is not empty.
 */
TF_CAPI_EXPORT extern
void TF_GetInputPropertiesList(TF_GraphProperties *graph_properties,
                               const char *name,
                               TF_Buffer**properties,
                               int num_values,
                               TF_Status *status);

/**
 * Writes what is known of the outputs of a node, likewise.
 */
TF_CAPI_EXPORT extern
void TF_GetOutputPropertiesList(TF_GraphProperties *graph_properties,
                                const char *name,
                                TF_Buffer**properties,
                                int num_values,
                                TF_Status *status);

/**
 * The functions of a serialized GraphDef, and all ops. Free it with `TF_DeleteFunctionLibraryDefinition`. NULL with
 * INVALID_ARGUMENT for other bytes.
 */
TF_CAPI_EXPORT extern
TF_FunctionLibraryDefinition *TF_NewFunctionLibraryDefinition(const TF_Buffer *graph_buf,
                                                                     TF_Status *status);

/**
 * Frees a library; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteFunctionLibraryDefinition(TF_FunctionLibraryDefinition *fn_lib);

/**
 * Writes the definition of an op, or of a function as an op, as a serialized `OpDef` into an empty buffer. NOT_FOUND when
 * there is none of this name.
 */
TF_CAPI_EXPORT extern
void TF_LookUpOpDef(TF_FunctionLibraryDefinition *fn_lib,
                    const char *name,
                    TF_Buffer *buf,
                    TF_Status *s);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*TENSORFLOW_C_EXPERIMENTAL_GRAPPLER_GRAPPLER_H_ */
