// Moving elements between tensors of any strides.
#ifndef OPSMITH_KERNELS_CPU_STRIDED_HPP
#define OPSMITH_KERNELS_CPU_STRIDED_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "opsmith/kernel.hpp"

namespace opsmith_cpu {

constexpr int kMaxDims = 64;

/// Copies `length` elements from one row to another; the rows do not overlap.
template <class T>
void copy_row(const T* from, std::int64_t from_step, T* to, std::int64_t to_step, std::int64_t length) {
  if (from_step == 1 && to_step == 1) {
    std::copy_n(from, length, to);
  } else if (from_step == -1 && to_step == 1) {
    // Apart from the general loop, because constant steps let the compiler use vectors.
    for (std::int64_t i = 0; i < length; ++i) to[i] = from[-i];
  } else {
    for (std::int64_t i = 0; i < length; ++i) to[i * to_step] = from[i * from_step];
  }
}

/// A dimension that may count from the end as one from the start.
inline int wrap_dim(std::int64_t dim, int ndim) {
  const std::int64_t count = ndim == 0 ? 1 : ndim;
  if (dim < -count || dim >= count) {
    throw opsmith::Error("dimension " + std::to_string(dim) + " is out of range for a tensor with " +
                         std::to_string(ndim) + " dimensions; use " + std::to_string(-count) + " to " +
                         std::to_string(count - 1));
  }
  return static_cast<int>(dim < 0 ? dim + count : dim);
}

/// Refuses an output of another shape than the input's, and more dimensions than there is room for.
inline void expect_same_shape(const OpsmithTensor* self, const OpsmithTensor* out) {
  opsmith::require(self->ndim <= kMaxDims, "a tensor has more than 64 dimensions");
  bool same = self->ndim == out->ndim;
  for (int dim = 0; same && dim < self->ndim; ++dim) same = self->sizes[dim] == out->sizes[dim];
  opsmith::require(same, "the output does not have the input's shape");
}

}  // namespace opsmith_cpu

#endif
