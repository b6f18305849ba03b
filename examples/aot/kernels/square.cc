// Squares, and their gradient: dx = 2 * x * dout. float32, any shape.

#include <cstdint>

namespace {

int64_t Count(int ndim, const int64_t *shape) {
  int64_t count = 1;
  for (int i = 0; i < ndim; ++i) count *= shape[i];
  return count;
}

}  // namespace

extern "C" int Square(int, void **params, int *ndims, int64_t **shapes, const char **, void *, void *) {
  auto *x = static_cast<const float *>(params[0]);
  auto *out = static_cast<float *>(params[1]);
  const int64_t count = Count(ndims[0], shapes[0]);
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] * x[i];
  return 0;
}

// In: x, out, dout. Out: dx.
extern "C" int SquareBprop(int, void **params, int *ndims, int64_t **shapes, const char **, void *, void *) {
  auto *x = static_cast<const float *>(params[0]);
  auto *dout = static_cast<const float *>(params[2]);
  auto *dx = static_cast<float *>(params[3]);
  const int64_t count = Count(ndims[0], shapes[0]);
  for (int64_t i = 0; i < count; ++i) dx[i] = 2 * x[i] * dout[i];
  return 0;
}
