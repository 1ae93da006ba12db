/* Models that `ferroflow compile` made: what their headers stand on, and what libferroflow_aot.a defines.
 *
 * The header of a model wraps these functions with names and types of its own; use that one. Link the model's object, this
 * archive and libm. There is nothing else to install.
 *
 * A model is used by one thread at a time; models of one program share its code and weights. Nothing here aborts for bad
 * input: errors are codes (those of TF_Code) with messages.
 */
#ifndef FERROFLOW_AOT_H_
#define FERROFLOW_AOT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The code of a fusion in an object. */
typedef struct FF_AotFusion {
  uint64_t structure;
  void (*function)(const uint64_t*, int64_t, int64_t, int64_t, int64_t, uint8_t*);
} FF_AotFusion;

/* A compiled model in an object. Its fields are between the compiler and the runtime. */
typedef struct FF_AotProgram {
  uint64_t version;
  uint64_t level;
  const uint8_t* text;
  uint64_t text_size;
  const uint8_t* weights;
  uint64_t weights_size;
  uint64_t weights_hash;
  const FF_AotFusion* fusions;
  uint64_t num_fusions;
  const char* name;
} FF_AotProgram;

/* A model with memory for its arguments and results. One thread at a time may use it. */
typedef struct FF_AotModel FF_AotModel;

typedef struct FF_AotOptions {
  /* sizeof(FF_AotOptions). */
  size_t struct_size;
  /* Threads that a run may use, the caller's among them; 0 and 1 for the caller's only. Results do not depend on it. */
  int threads;
  /* The file of the weights, where they are not in the object; else NULL. */
  const char* weights_file;
} FF_AotOptions;

/* Makes a model; `options` may be NULL. NULL for a NULL program. Where something is wrong (no weights, an object of another
 * version) the model exists all the same, every run fails, and the code and message say why. Free it by FF_AotModelDelete. */
extern FF_AotModel* FF_AotModelNew(const FF_AotProgram* program, const FF_AotOptions* options);

/* Frees a model; NULL is nothing. */
extern void FF_AotModelDelete(FF_AotModel* model);

/* Runs the model. 0, or the code of an error. */
extern int FF_AotModelRun(FF_AotModel* model);

/* The code of what went wrong last, 0 for nothing: set when the model is made and by each run. */
extern int FF_AotModelCode(const FF_AotModel* model);

/* Its message, "" for nothing; valid until the next run. */
extern const char* FF_AotModelMessage(const FF_AotModel* model);

/* How many arguments there are; 0 for a model that could not be made. */
extern size_t FF_AotModelNumArguments(const FF_AotModel* model);

/* How many results there are, likewise. */
extern size_t FF_AotModelNumResults(const FF_AotModel* model);

/* The bytes of an argument; 0 where there is none. */
extern size_t FF_AotModelArgumentSize(const FF_AotModel* model, size_t index);

/* The bytes of a result, likewise. */
extern size_t FF_AotModelResultSize(const FF_AotModel* model, size_t index);

/* The memory for an argument, to be filled before a run; it belongs to the model and keeps what it holds. NULL where there is none. */
extern void* FF_AotModelArgument(FF_AotModel* model, size_t index);

/* Lets runs read an argument from the caller's memory, which stays the caller's and must live until another is set: in place
 * where it is aligned to 64 bytes, else by a copy in each run. 1, or 0 where there is no such argument. */
extern int FF_AotModelSetArgument(FF_AotModel* model, size_t index, const void* data);

/* A result of the last run that succeeded, valid until the next run; NULL before. */
extern const void* FF_AotModelResult(const FF_AotModel* model, size_t index);

/* How many of the program's fusions run as machine code; the others are evaluated, as on processors that the object was
 * not made for. */
extern size_t FF_AotModelNumFusions(const FF_AotModel* model);

#ifdef __cplusplus
}
#endif

#endif  /* FERROFLOW_AOT_H_ */
