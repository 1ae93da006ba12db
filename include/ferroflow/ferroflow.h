/* Functions of this library beyond the TensorFlow C API. Their names start with FF_. */
#ifndef FERROFLOW_FERROFLOW_H_
#define FERROFLOW_FERROFLOW_H_

#ifdef __cplusplus
extern "C" {
#endif

struct TF_Status;

/* Compiles a small kernel for this processor, runs it and compares the result; compiles it for NVPTX.
 * status: OK; UNIMPLEMENTED in a library without LLVM; PERMISSION_DENIED where the system allows no compiled code;
 * INTERNAL with what went wrong. */
extern void FF_CodegenSelfTest(struct TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif /* FERROFLOW_FERROFLOW_H_ */
