/* A plug-in whose registration functions do what the macro WRONG says: each wrong in one way. */
#include <string.h>
#include <tensorflow/c/experimental/grappler/grappler.h>

#define EXPORT __attribute__((visibility("default")))

static void optimize(void* optimizer, const TF_Buffer* graph, const TF_GrapplerItem* item, TF_Buffer* optimized,
                     TF_Status* status) {
    (void)optimizer, (void)graph, (void)item, (void)optimized, (void)status;
}

EXPORT void TF_InitGraph(TP_OptimizerRegistrationParams* params, TF_Status* status) {
    params->struct_size = TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE;
    params->device_type = "NONE";
    params->optimizer_configs->struct_size = TP_OPTIMIZER_CONFIGS_STRUCT_SIZE;
    params->optimizer->struct_size = TP_OPTIMIZER_STRUCT_SIZE;
    params->optimizer->optimize_func = optimize;
    TF_SetStatus(status, TF_OK, "");
#if WRONG == 1
    params->device_type = NULL;
#elif WRONG == 2
    params->struct_size = 0;
#elif WRONG == 3
    params->optimizer->optimize_func = NULL;
#elif WRONG == 4
    TF_SetStatus(status, TF_DATA_LOSS, "it says no");
#elif WRONG == 5
    params->optimizer->struct_size = 0;
#elif WRONG == 6
    params->optimizer_configs->struct_size = 0;
#endif
}
