// roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor: the elements moved along some dimensions,
// those beyond the end back in at the start.
//
// Without dimensions the elements move in row-major order. Any strides.
#include "strided.hpp"

using opsmith_cpu::kMaxDims;

namespace {

/// The remainder of a division that rounds down; `size` is positive.
std::int64_t wrap(std::int64_t index, std::int64_t size) {
  const std::int64_t rest = index % size;
  return rest < 0 ? rest + size : rest;
}

/// The index, in each dimension, of an element given by its number in row-major order.
void split_index(std::int64_t number, const OpsmithTensor* tensor, std::int64_t* index) {
  for (int dim = tensor->ndim; dim-- > 0;) {
    index[dim] = number % tensor->sizes[dim];
    number /= tensor->sizes[dim];
  }
}

template <class T>
void roll_elements(const OpsmithTensor* self, std::int64_t shift, OpsmithTensor* out) {
  const T* from = static_cast<const T*>(self->data);
  T* to = static_cast<T*>(out->data);
  const std::int64_t numel = opsmith_numel(self);
  shift = wrap(shift, numel);
  if (opsmith_is_contiguous(self) && opsmith_is_contiguous(out)) {
    opsmith_cpu::copy_row(from, 1, to + shift, 1, numel - shift);
    opsmith_cpu::copy_row(from + numel - shift, 1, to, 1, shift);
    return;
  }
  std::array<std::int64_t, kMaxDims> source{}, target{};
  for (std::int64_t number = 0; number < numel; ++number) {
    split_index(number, self, source.data());
    split_index(wrap(number + shift, numel), out, target.data());
    std::int64_t source_at = 0, target_at = 0;
    for (int dim = 0; dim < self->ndim; ++dim) {
      source_at += source[dim] * self->strides[dim];
      target_at += target[dim] * out->strides[dim];
    }
    to[target_at] = from[source_at];
  }
}

template <class T>
void roll_dims(const OpsmithTensor* self, const std::array<std::int64_t, kMaxDims>& shifts,
               OpsmithTensor* out) {
  const T* from = static_cast<const T*>(self->data);
  T* to = static_cast<T*>(out->data);
  const int last = self->ndim - 1;
  const std::int64_t length = self->sizes[last], shift = shifts[last];
  const std::int64_t from_step = self->strides[last], to_step = out->strides[last];
  opsmith::for_each_index(self->sizes, last, [&](const std::int64_t* index) {
    std::int64_t source = 0, target = 0;
    for (int dim = 0; dim < last; ++dim) {
      source += index[dim] * self->strides[dim];
      target += wrap(index[dim] + shifts[dim], self->sizes[dim]) * out->strides[dim];
    }
    // A row moves in two pieces: all but the last elements up, those to the start.
    opsmith_cpu::copy_row(from + source, from_step, to + target + shift * to_step, to_step, length - shift);
    opsmith_cpu::copy_row(from + source + (length - shift) * from_step, from_step, to + target, to_step,
                          shift);
  });
}

}  // namespace

extern "C" int opsmith_cpu_roll(OpsmithContext* context, const OpsmithTensor* self, OpsmithInts shifts,
                                OpsmithInts dims, OpsmithTensor* out) {
  return opsmith::run(context, [&] {
    opsmith_cpu::expect_same_shape(self, out);
    if (opsmith_numel(self) == 0) return;
    const bool flat = dims.length == 0;
    opsmith::require(flat ? shifts.length == 1 : shifts.length == dims.length,
                     std::to_string(shifts.length) + " shifts are given for " + std::to_string(dims.length) +
                         " dimensions");
    std::array<std::int64_t, kMaxDims> by{};
    for (std::size_t entry = 0; entry < dims.length; ++entry) {
      const int dim = opsmith_cpu::wrap_dim(dims.data[entry], self->ndim);
      // Each shift alone is brought into range, so that their sum cannot overflow.
      if (self->ndim > 0) by[dim] = wrap(by[dim] + wrap(shifts.data[entry], self->sizes[dim]), self->sizes[dim]);
    }
    opsmith::dispatch(self->dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (flat || self->ndim == 0) {
        roll_elements<T>(self, flat ? shifts.data[0] : 0, out);
      } else {
        roll_dims<T>(self, by, out);
      }
    });
  });
}
