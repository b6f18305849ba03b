// flip(Tensor self, int[] dims) -> Tensor: the elements in reverse order along some dimensions.
//
// Any strides. A reversed dimension is one walked from its end with the opposite step.
#include "strided.hpp"

using opsmith_cpu::kMaxDims;

extern "C" int opsmith_cpu_flip(OpsmithContext* context, const OpsmithTensor* self, OpsmithInts dims,
                                OpsmithTensor* out) {
  return opsmith::run(context, [&] {
    opsmith_cpu::expect_same_shape(self, out);
    if (opsmith_numel(self) == 0) return;
    const int ndim = self->ndim;
    std::array<std::int64_t, kMaxDims> steps{};
    for (int dim = 0; dim < ndim; ++dim) steps[dim] = self->strides[dim];
    std::int64_t start = 0;
    std::array<bool, kMaxDims> reversed{};
    for (const std::int64_t given : opsmith::range(dims)) {
      const int dim = opsmith_cpu::wrap_dim(given, ndim);
      opsmith::require(!reversed[dim], "dimension " + std::to_string(given) + " is given twice");
      reversed[dim] = true;
      if (ndim == 0) continue;
      start += (self->sizes[dim] - 1) * self->strides[dim];
      steps[dim] = -self->strides[dim];
    }
    opsmith::dispatch(self->dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = static_cast<const T*>(self->data) + start;
      T* to = static_cast<T*>(out->data);
      if (ndim == 0) {
        *to = *from;
        return;
      }
      const int last = ndim - 1;
      opsmith::for_each_index(self->sizes, last, [&](const std::int64_t* index) {
        std::int64_t source = 0, target = 0;
        for (int dim = 0; dim < last; ++dim) {
          source += index[dim] * steps[dim];
          target += index[dim] * out->strides[dim];
        }
        opsmith_cpu::copy_row(from + source, steps[last], to + target, out->strides[last],
                              self->sizes[last]);
      });
    });
  });
}
