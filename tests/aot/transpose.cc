// The transpose of a matrix of float32.

#include <cstdint>
#include <vector>

class AotExtra;

extern "C" std::vector<int64_t> TransposeInferShape(int *, int64_t **shapes, AotExtra *) {
  return {shapes[0][1], shapes[0][0]};
}

extern "C" int Transpose(int, void **params, int *, int64_t **shapes, const char **, void *, void *) {
  auto *x = static_cast<const float *>(params[0]);
  auto *out = static_cast<float *>(params[1]);
  const int64_t rows = shapes[0][0], columns = shapes[0][1];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) out[j * rows + i] = x[i * columns + j];
  }
  return 0;
}
