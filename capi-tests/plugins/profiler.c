/* A plug-in with a profiler; built with WRONG it lacks something. */
#include <tensorflow/c/experimental/pluggable_profiler/pluggable_profiler.h>

#define EXPORT __attribute__((visibility("default")))

static void start(const TP_Profiler* profiler, TF_Status* status) {
    (void)profiler;
    TF_SetStatus(status, TF_OK, "");
}

static void collect(const TP_Profiler* profiler, uint8_t* buffer, size_t* size, TF_Status* status) {
    (void)profiler, (void)buffer;
    *size = 0;
    TF_SetStatus(status, TF_OK, "");
}

static void destroy(TP_Profiler* profiler) { (void)profiler; }
static void destroy_functions(TP_ProfilerFns* functions) { (void)functions; }

EXPORT void TF_InitProfiler(TF_ProfilerRegistrationParams* params, TF_Status* status) {
    params->struct_size = TF_PROFILER_REGISTRATION_PARAMS_STRUCT_SIZE;
    params->profiler->struct_size = TP_PROFILER_STRUCT_SIZE;
    params->profiler->device_type = "CAPI_TESTS";
    params->profiler_fns->struct_size = TP_PROFILER_FNS_STRUCT_SIZE;
    params->profiler_fns->start = start;
    params->profiler_fns->stop = start;
    params->profiler_fns->collect_data_xspace = collect;
    params->destroy_profiler = destroy;
    params->destroy_profiler_fns = destroy_functions;
    TF_SetStatus(status, TF_OK, "");
#if WRONG == 1
    params->profiler->device_type = 0;
#elif WRONG == 2
    params->profiler_fns->stop = 0;
#elif WRONG == 3
    params->destroy_profiler = 0;
#endif
}
