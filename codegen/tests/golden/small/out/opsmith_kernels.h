/* @generated from spec.yaml by codegen/src/emit/header.rs: the kernels in C and C++ that it names. */
#ifndef OPSMITH_KERNELS_H
#define OPSMITH_KERNELS_H

#include <opsmith/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)
 * spec.yaml:52, defined in kernels/largest.cc */
int golden_largest(OpsmithContext* context, const OpsmithTensor* self, const int64_t* dim, OpsmithTensor* values_out, OpsmithTensor* indices_out);

#ifdef __cplusplus
}
#endif
#endif