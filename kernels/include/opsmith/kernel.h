/* The C interface between opsmith's dispatcher and kernels written in C, C++ or CUDA.
 *
 * In: a call whose outputs have been inferred and allocated, and whose inputs have the declared
 * dtype. Out: 0, or another number after opsmith_fail said why. The generator declares each kernel
 * that ops.yaml names; include its header too, so that a wrong signature does not compile.
 *
 *   type in the signature   parameter                       optional (`?`): NULL if absent
 *   Tensor                  const OpsmithTensor*            const OpsmithTensor*
 *   Tensor[]                OpsmithTensors                  const OpsmithTensors*
 *   Tensor?[]               OpsmithOptionalTensors          const OpsmithOptionalTensors*
 *   bool                    bool                            const bool*
 *   int                     int64_t                         const int64_t*
 *   float                   double                          const double*
 *   Scalar                  OpsmithScalar                   const OpsmithScalar*
 *   str                     OpsmithString                   const OpsmithString*
 *   int[]                   OpsmithInts                     const OpsmithInts*
 *   float[]                 OpsmithFloats                   const OpsmithFloats*
 *   bool[]                  OpsmithBools                    const OpsmithBools*
 *   Scalar[]                OpsmithScalars                  const OpsmithScalars*
 *   str[]                   OpsmithStrings                  const OpsmithStrings*
 *   ScalarType[]            OpsmithDTypes                   const OpsmithDTypes*
 *   int[][], float[][]      OpsmithIntLists, ...FloatLists  const OpsmithIntLists*, ...
 *   bool[][], Scalar[][]    OpsmithBoolLists, ...ScalarLists
 *   str[][], ScalarType[][] OpsmithStringLists, ...DTypeLists
 *   ScalarType              int32_t (OPSMITH_FLOAT32, ...)  const int32_t*
 *   Device                  OpsmithDevice                   const OpsmithDevice*
 *   MemoryFormat            int32_t (OPSMITH_CONTIGUOUS...) const int32_t*
 *   Layout                  int32_t (OPSMITH_STRIDED)       const int32_t*
 *   Generator               const OpsmithGenerator*         the same; never NULL: the default one
 *   each output             OpsmithTensor*
 *
 * Everything a kernel receives lives until it returns. No exception may leave a kernel: C++ code
 * wraps its body in opsmith::run (kernel.hpp).
 */
#ifndef OPSMITH_KERNEL_H
#define OPSMITH_KERNEL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when a struct below changes in a way that old kernels cannot read. */
#define OPSMITH_ABI_VERSION 1

/* Longest error message with its final zero byte; a longer one is cut. */
#define OPSMITH_MESSAGE_SIZE 1024

/* What a kernel returns. Any other number is a failure of the kernel's own. */
enum { OPSMITH_OK = 0, OPSMITH_ERROR = 1 };

/* Element types: OpsmithTensor.dtype. */
enum {
  OPSMITH_BOOL = 0,
  OPSMITH_UINT8 = 1,
  OPSMITH_UINT16 = 2,
  OPSMITH_UINT32 = 3,
  OPSMITH_UINT64 = 4,
  OPSMITH_INT8 = 5,
  OPSMITH_INT16 = 6,
  OPSMITH_INT32 = 7,
  OPSMITH_INT64 = 8,
  OPSMITH_FLOAT16 = 9,
  OPSMITH_BFLOAT16 = 10,
  OPSMITH_FLOAT32 = 11,
  OPSMITH_FLOAT64 = 12,
  OPSMITH_COMPLEX64 = 13,
  OPSMITH_COMPLEX128 = 14,
  OPSMITH_FLOAT8_E4M3FN = 15,
  OPSMITH_FLOAT8_E5M2 = 16,
  OPSMITH_INT4 = 17,
  OPSMITH_UINT4 = 18,
  OPSMITH_DTYPE_COUNT = 19
};

/* Devices: OpsmithTensor.device_type. */
enum { OPSMITH_CPU = 0, OPSMITH_CUDA = 1, OPSMITH_DEVICE_TYPE_COUNT = 2 };

/* Kinds of numbers: OpsmithScalar.kind. */
enum {
  OPSMITH_SCALAR_BOOL = 0,
  OPSMITH_SCALAR_INT = 1,
  OPSMITH_SCALAR_FLOAT = 2,
  OPSMITH_SCALAR_COMPLEX = 3
};

/* Memory formats, and the only storage layout. */
enum {
  OPSMITH_CONTIGUOUS = 0,
  OPSMITH_PRESERVE = 1,
  OPSMITH_CHANNELS_LAST = 2,
  OPSMITH_CHANNELS_LAST_3D = 3
};
enum { OPSMITH_STRIDED = 0 };

typedef struct OpsmithTensor {
  /* The first element (index 0 in every dimension). On CUDA an address of the device. */
  void* data;
  /* Elements along each dimension; ndim numbers. */
  const int64_t* sizes;
  /* Elements (not bytes) to step for one step along each dimension; may be 0 or negative. */
  const int64_t* strides;
  int32_t ndim;
  int32_t dtype;
  int32_t device_type;
  int32_t device_index;
} OpsmithTensor;

/* A number of any kind. Every field is filled, whatever the kind: 2.5 has integer 2 and imag 0. */
typedef struct OpsmithScalar {
  int32_t kind;
  int32_t reserved;
  /* The value truncated toward zero. */
  int64_t integer;
  double real;
  double imag;
} OpsmithScalar;

typedef struct OpsmithDevice {
  int32_t type;
  int32_t index;
} OpsmithDevice;

/* Lists: `length` entries from `data`, which may be anything if there are none. */
typedef struct OpsmithInts { const int64_t* data; size_t length; } OpsmithInts;
typedef struct OpsmithFloats { const double* data; size_t length; } OpsmithFloats;
typedef struct OpsmithBools { const bool* data; size_t length; } OpsmithBools;
typedef struct OpsmithScalars { const OpsmithScalar* data; size_t length; } OpsmithScalars;
typedef struct OpsmithTensors { const OpsmithTensor* data; size_t length; } OpsmithTensors;
/* Entries may be NULL: absent. */
typedef struct OpsmithOptionalTensors { const OpsmithTensor* const* data; size_t length; } OpsmithOptionalTensors;
/* UTF-8 without a final zero byte. */
typedef struct OpsmithString { const char* data; size_t length; } OpsmithString;

typedef struct OpsmithStrings { const OpsmithString* data; size_t length; } OpsmithStrings;
typedef struct OpsmithDTypes { const int32_t* data; size_t length; } OpsmithDTypes;

/* Lists of lists: `length` rows, one after the other from `data`. Row i is the entries from ends[i - 1],
 * or 0 for the first, up to before ends[i]. */
typedef struct OpsmithIntLists { const int64_t* data; const size_t* ends; size_t length; } OpsmithIntLists;
typedef struct OpsmithFloatLists { const double* data; const size_t* ends; size_t length; } OpsmithFloatLists;
typedef struct OpsmithBoolLists { const bool* data; const size_t* ends; size_t length; } OpsmithBoolLists;
typedef struct OpsmithScalarLists {
  const OpsmithScalar* data;
  const size_t* ends;
  size_t length;
} OpsmithScalarLists;
typedef struct OpsmithStringLists {
  const OpsmithString* data;
  const size_t* ends;
  size_t length;
} OpsmithStringLists;
typedef struct OpsmithDTypeLists { const int32_t* data; const size_t* ends; size_t length; } OpsmithDTypeLists;

/* Blocks of random bits that were reserved for one call; see random.h. */
typedef struct OpsmithStream {
  uint64_t seed;
  uint64_t offset;
} OpsmithStream;

typedef struct OpsmithGenerator {
  void* handle;
  /* Takes the next `blocks` blocks of the generator; no other call gets them. */
  OpsmithStream (*reserve)(void* handle, uint64_t blocks);
} OpsmithGenerator;

/* What surrounds a call. Fields are only ever added at the end, and struct_size says which exist. */
typedef struct OpsmithContext {
  uint32_t struct_size;
  uint32_t abi_version;
  /* The CUstream to launch on; NULL on the CPU. */
  void* stream;
  /* Memory for this call, on the call's device, aligned to 64 bytes, with arbitrary content; it is
   * taken back after the kernel returns. NULL if there is none. Use opsmith_scratch. */
  void* (*allocate)(struct OpsmithContext* context, size_t bytes);
  char message[OPSMITH_MESSAGE_SIZE];
  /* Calls body(data, first, last) with ranges that together cover the numbers from 0 to before count, each but
   * the last of a multiple of `chunk`. Use opsmith_parallel_for. */
  void (*parallel_for)(struct OpsmithContext* context, int64_t count, int64_t chunk,
                       void (*body)(void* data, int64_t first, int64_t last), void* data);
} OpsmithContext;

/* Memory for this call, see OpsmithContext.allocate. */
static inline void* opsmith_scratch(OpsmithContext* context, size_t bytes) {
  return context->allocate(context, bytes);
}

/* Calls body(data, first, last) with ranges that together cover the numbers from 0 to before count, in
 * several threads if that is faster: `chunk` numbers should take some microseconds, and the first chunk is
 * timed. Ranges begin at multiples of `chunk`, so the computation of each chunk does not depend on the
 * number of threads. The body must not use the context, and no exception may leave it: a failure is noted in
 * `data`, under a lock, and reported when this returns. */
static inline void opsmith_parallel_for(OpsmithContext* context, int64_t count, int64_t chunk,
                                        void (*body)(void* data, int64_t first, int64_t last), void* data) {
  if (context->struct_size > offsetof(OpsmithContext, parallel_for)) {
    context->parallel_for(context, count, chunk, body, data);
  } else if (count > 0) {
    body(data, 0, count);
  }
}

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
/* Says why the kernel fails; `return opsmith_fail(context, OPSMITH_ERROR, "dim %d is negative", dim);`.
 * Gives the code back, or OPSMITH_ERROR for the code 0. */
static inline int opsmith_fail(OpsmithContext* context, int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(context->message, sizeof context->message, format, arguments);
  va_end(arguments);
  return code == OPSMITH_OK ? OPSMITH_ERROR : code;
}

/* Number of elements of a tensor. */
static inline int64_t opsmith_numel(const OpsmithTensor* tensor) {
  int64_t total = 1;
  for (int32_t dim = 0; dim < tensor->ndim; ++dim) total *= tensor->sizes[dim];
  return total;
}

/* Whether the elements lie in memory in row-major order without gaps. */
static inline bool opsmith_is_contiguous(const OpsmithTensor* tensor) {
  int64_t expected = 1;
  for (int32_t dim = tensor->ndim; dim-- > 0;) {
    if (tensor->sizes[dim] == 0) return true;
    if (tensor->sizes[dim] == 1) continue;
    if (tensor->strides[dim] != expected) return false;
    expected *= tensor->sizes[dim];
  }
  return true;
}

#ifdef __cplusplus
}
#endif
#endif
