// Kernels whose operands live on a device: good ones, and ones with mistakes. `launch.h` says
// how they run where there is no device.

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "custom_aot_extra.h"
#include "launch.h"

namespace {

int64_t count(int index, const int *ndims, int64_t *const *shapes) {
  int64_t product = 1;
  for (int i = 0; i < ndims[index]; ++i) product *= shapes[index][i];
  return product;
}

// The address of an operand, which must be one of the device's.
float *floats(void *address) {
  if (!is_device(address)) throw std::runtime_error("an operand is not on the device");
  return static_cast<float *>(address);
}

struct AddBody {
  const float *x, *y;
  float *out;
  ON_DEVICE void operator()(int64_t i) const { out[i] = x[i] + y[i]; }
};

struct CopyBody {
  const float *x;
  float *out;
  ON_DEVICE void operator()(int64_t i) const { out[i] = x[i]; }
};

struct SquareBody {
  const float *x;
  float *out;
  ON_DEVICE void operator()(int64_t i) const { out[i] = x[i] * x[i]; }
};

struct SquareBpropBody {
  const float *x, *dout;
  float *dx;
  ON_DEVICE void operator()(int64_t i) const { dx[i] = 2 * x[i] * dout[i]; }
};

struct AddMulDivBody {
  const float *x, *y;
  float *sum, *product, *quotient;
  ON_DEVICE void operator()(int64_t i) const {
    sum[i] = x[i] + y[i];
    product[i] = x[i] * y[i];
    quotient[i] = x[i] / y[i];
  }
};

struct AddMulDivBpropBody {
  const float *x, *y, *dsum, *dproduct, *dquotient;
  float *dx, *dy;
  ON_DEVICE void operator()(int64_t i) const {
    dx[i] = dsum[i] + dproduct[i] * y[i] + dquotient[i] / y[i];
    dy[i] = dsum[i] + dproduct[i] * x[i] - dquotient[i] * x[i] / y[i] / y[i];
  }
};

// Sums of rows or columns of a matrix, one each.
struct SumBody {
  const float *tmp;
  float *out;
  int64_t axis, rows, columns;
  ON_DEVICE void operator()(int64_t i) const {
    double sum = 0;
    const int64_t steps = axis == 0 ? rows : columns;
    for (int64_t j = 0; j < steps; ++j) sum += tmp[axis == 0 ? j * columns + i : i * columns + j];
    out[i] = static_cast<float>(sum);
  }
};

// Writes one element, by its distance from the start.
struct PokeBody {
  float *at;
  int64_t offset;
  float value;
  ON_DEVICE void operator()(int64_t) const { at[offset] = value; }
};

struct IllegalBody {
  ON_DEVICE void operator()(int64_t) const {
#ifdef __CUDACC__
    *reinterpret_cast<volatile float *>(16) = 1;
#else
    standin_lose();
#endif
  }
};

struct HangBody {
  volatile float *out;
  ON_DEVICE void operator()(int64_t) const {
    out[0] = 1;
    while (out[0] != 0) {
    }
  }
};

// Writes after a while, so that a reader that does not wait sees the old elements.
struct SlowBody {
  const float *x;
  float *out;
  ON_DEVICE void operator()(int64_t i) const {
#ifdef __CUDACC__
    const long long start = clock64();
    while (clock64() - start < 300'000'000) {
    }
#endif
    out[i] = x[i];
  }
};

struct ReduceData : AotKernelData {
  int64_t axis;
  bool keep_dim;
};

// The kernel's own data, made and destroyed where the device can be used.
struct FactsData : AotKernelData {
  ~FactsData() override { expect_context(); }
};

int copy_first(void **params, int *ndims, int64_t **shapes, void *stream, int output) {
  return launch(stream, count(0, ndims, shapes), CopyBody{floats(params[0]), floats(params[output])});
}

}  // namespace

extern "C" {

int Add(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *) {
  if (nparam != 3) return 1;
  for (int i = 0; i < nparam; ++i) {
    if (strcmp(dtypes[i], "float32") != 0) return 2;
  }
  AddBody body{floats(params[0]), floats(params[1]), floats(params[2])};
  return launch(stream, count(2, ndims, shapes), body);
}

int Square(int nparam, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  if (nparam != 2) return 1;
  return launch(stream, count(0, ndims, shapes), SquareBody{floats(params[0]), floats(params[1])});
}

int SquareBprop(int nparam, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  if (nparam != 4) return 1;
  SquareBpropBody body{floats(params[0]), floats(params[2]), floats(params[3])};
  return launch(stream, count(0, ndims, shapes), body);
}

int AddMulDiv(int nparam, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  if (nparam != 5) return 1;
  AddMulDivBody body{floats(params[0]), floats(params[1]), floats(params[2]), floats(params[3]), floats(params[4])};
  return launch(stream, count(0, ndims, shapes), body);
}

int AddMulDivBprop(int nparam, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  if (nparam != 7) return 1;
  AddMulDivBpropBody body{floats(params[0]), floats(params[1]), floats(params[2]), floats(params[3]),
                          floats(params[4]), floats(params[5]), floats(params[6])};
  return launch(stream, count(0, ndims, shapes), body);
}

// Add, then sum over an axis: the documented example.
int ReduceInit(int *ndims, int64_t **shapes, const char **, AotExtra *extra) {
  extra->SetWorkSpace({static_cast<size_t>(count(0, ndims, shapes)) * sizeof(float)});
  auto *data = new ReduceData;
  data->axis = extra->Attr<int64_t>("axis");
  data->keep_dim = extra->Attr<bool>("keep_dim");
  extra->SetKernelData(data);
  return 0;
}

std::vector<int64_t> ReduceInferShape(int *, int64_t **shapes, AotExtra *extra) {
  if (shapes[0][0] == -2) return {-2};
  const auto axis = extra->Attr<int64_t>("axis");
  if (!extra->Attr<bool>("keep_dim")) return {shapes[0][1 - axis]};
  return axis == 0 ? std::vector<int64_t>{1, shapes[0][1]} : std::vector<int64_t>{shapes[0][0], 1};
}

int Reduce(int nparam, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *extra) {
  if (nparam != 4) return 1;
  auto *data = static_cast<ReduceData *>(static_cast<AotExtra *>(extra)->KernelData());
  float *tmp = floats(params[3]);
  AddBody add{floats(params[0]), floats(params[1]), tmp};
  if (const int code = launch(stream, count(0, ndims, shapes), add)) return code;
  SumBody sum{tmp, floats(params[2]), data->axis, shapes[0][0], shapes[0][1]};
  return launch(stream, count(2, ndims, shapes), sum);
}

int FactsInit(int *, int64_t **, const char **, AotExtra *extra) {
  expect_context();
  extra->SetKernelData(new FactsData);
  return 0;
}

// Looks at its arguments: x, an input that may be absent, out.
int Facts(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra) {
  if (nparam != 3) return 1;
  if (stream == nullptr || extra == nullptr) return 2;
  if (!is_device(params[0]) || !is_device(params[2])) return 3;
  if (is_device(params) || is_device(shapes) || is_device(stream)) return 4;
  const bool absent = strcmp(dtypes[1], "none") == 0;
  if (absent != (params[1] == nullptr) || (absent && ndims[1] != 0)) return 5;
  if (!absent && !is_device(params[1])) return 6;
  return copy_first(params, ndims, shapes, stream, 2);
}

// The sum of a list.
int SumOfList(int nparam, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  float *out = floats(params[nparam - 1]);
  if (const int code = copy_first(params, ndims, shapes, stream, nparam - 1)) return code;
  for (int i = 1; i + 1 < nparam; ++i) {
    if (const int code = launch(stream, count(0, ndims, shapes), AddBody{out, floats(params[i]), out})) return code;
  }
  return 0;
}

int IgnoresStream(int, void **params, int *ndims, int64_t **shapes, const char **, void *, void *) {
  return copy_first(params, ndims, shapes, nullptr, 1);
}

int Slow(int, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  return launch(stream, count(0, ndims, shapes), SlowBody{floats(params[0]), floats(params[1])});
}

int Seven(int, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  copy_first(params, ndims, shapes, stream, 1);
  return 7;
}

int Throws(int, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  copy_first(params, ndims, shapes, stream, 1);
  throw std::runtime_error("the weather is bad");
}

int InitFailsInit(int *, int64_t **, const char **, AotExtra *) { return -3; }
int InitFails(int, void **, int *, int64_t **, const char **, void *, void *) { return 0; }

int WorkspaceInit(int *ndims, int64_t **shapes, AotExtra *extra) {
  extra->SetWorkSpace({static_cast<size_t>(count(0, ndims, shapes)) * sizeof(float)});
  return 0;
}

int PastWorkspaceInit(int *ndims, int64_t **shapes, const char **, AotExtra *extra) {
  return WorkspaceInit(ndims, shapes, extra);
}

int PastWorkspace(int, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  launch(stream, 1, PokeBody{floats(params[2]), count(0, ndims, shapes), 1});
  return copy_first(params, ndims, shapes, stream, 1);
}

int FarPastWorkspaceInit(int *ndims, int64_t **shapes, const char **, AotExtra *extra) {
  return WorkspaceInit(ndims, shapes, extra);
}

int FarPastWorkspace(int, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  launch(stream, 1, PokeBody{floats(params[2]), count(0, ndims, shapes) + 128, 1});
  return copy_first(params, ndims, shapes, stream, 1);
}

int Forget(int, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  return launch(stream, count(0, ndims, shapes) - 1, CopyBody{floats(params[0]), floats(params[1])});
}

int ChangeInput(int, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  launch(stream, 1, PokeBody{floats(params[0]), 2, 77});
  return copy_first(params, ndims, shapes, stream, 1);
}

int PastOutput(int, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  launch(stream, 1, PokeBody{floats(params[1]), count(0, ndims, shapes), 1});
  return copy_first(params, ndims, shapes, stream, 1);
}

int BeforeOutput(int, void **params, int *ndims, int64_t **shapes, const char **, void *stream, void *) {
  launch(stream, 1, PokeBody{floats(params[1]), -1, 1});
  return copy_first(params, ndims, shapes, stream, 1);
}

int Illegal(int, void **, int *, int64_t **, const char **, void *stream, void *) {
  return launch(stream, 1, IllegalBody{});
}

int Hang(int, void **params, int *, int64_t **, const char **, void *stream, void *) {
  return launch(stream, 1, HangBody{floats(params[1])});
}
}
