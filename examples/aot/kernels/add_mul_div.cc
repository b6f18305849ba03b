// Three outputs: x + y, x * y, x / y; and their gradient. float32, x and y of one shape.

#include <cstdint>

namespace {

int64_t Count(int ndim, const int64_t *shape) {
  int64_t count = 1;
  for (int i = 0; i < ndim; ++i) count *= shape[i];
  return count;
}

}  // namespace

extern "C" int AddMulDiv(int, void **params, int *ndims, int64_t **shapes, const char **, void *, void *) {
  auto *x = static_cast<const float *>(params[0]), *y = static_cast<const float *>(params[1]);
  auto *sum = static_cast<float *>(params[2]), *product = static_cast<float *>(params[3]);
  auto *quotient = static_cast<float *>(params[4]);
  const int64_t count = Count(ndims[0], shapes[0]);
  for (int64_t i = 0; i < count; ++i) {
    sum[i] = x[i] + y[i];
    product[i] = x[i] * y[i];
    quotient[i] = x[i] / y[i];
  }
  return 0;
}

// In: x, y, and the gradients of sum, product and quotient. Out: dx, dy.
extern "C" int AddMulDivBprop(int, void **params, int *ndims, int64_t **shapes, const char **, void *, void *) {
  auto *x = static_cast<const float *>(params[0]), *y = static_cast<const float *>(params[1]);
  auto *dsum = static_cast<const float *>(params[2]), *dproduct = static_cast<const float *>(params[3]);
  auto *dquotient = static_cast<const float *>(params[4]);
  auto *dx = static_cast<float *>(params[5]), *dy = static_cast<float *>(params[6]);
  const int64_t count = Count(ndims[0], shapes[0]);
  for (int64_t i = 0; i < count; ++i) {
    dx[i] = dsum[i] + dproduct[i] * y[i] + dquotient[i] / y[i];
    dy[i] = dsum[i] + dproduct[i] * x[i] - dquotient[i] * x[i] / y[i] / y[i];
  }
  return 0;
}
