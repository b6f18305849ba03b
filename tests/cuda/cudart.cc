// A stand-in for the part of CUDA's runtime that launches kernels, beside that of the driver (driver.cc):
// code compiled by nvcc runs with it where there is no device, with the kernels themselves written again below.
// Libraries are linked with it by `-cudart shared`.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "driver.h"

struct dim3 {
  unsigned x, y, z;
};

namespace {

constexpr size_t kArguments = 5;

// A launch, with the arguments as they were.
struct Launch {
  dim3 grid, block;
  uint64_t arguments[kArguments];

  template <class T>
  T argument(int index) const {
    T value;
    memcpy(&value, &arguments[index], sizeof value);
    return value;
  }
};

// A kernel by a part of its name on the device, the bytes of each argument, and each thread of the launch in turn.
struct Emulation {
  const char *name;
  size_t bytes[kArguments];
  void (*thread)(const Launch &, int64_t first, int64_t step);
};

// The two kernels of the guide on CUDA.
template <class T>
void scale_weights(const Launch &launch, int64_t first, int64_t step) {
  auto *weight = launch.argument<const T *>(0);
  auto *scaled = launch.argument<T *>(2);
  for (int64_t i = first; i < launch.argument<int64_t>(3); i += step) scaled[i] = weight[i] * launch.argument<T>(1);
}

template <class T>
void add_rows(const Launch &launch, int64_t first, int64_t step) {
  auto *x = launch.argument<const T *>(0);
  auto *scaled = launch.argument<const T *>(1);
  auto *out = launch.argument<T *>(2);
  const auto columns = launch.argument<int64_t>(4);
  for (int64_t row = first; row < launch.argument<int64_t>(3); row += step) {
    out[row] = 0;
    for (int64_t column = 0; column < columns; ++column) out[row] += x[row * columns + column] * scaled[column];
  }
}

const Emulation kEmulations[] = {
    {"HalveElements",
     {8, 8, 8},
     [](const Launch &launch, int64_t first, int64_t step) {
       auto *x = launch.argument<const float *>(0);
       auto *out = launch.argument<float *>(1);
       for (int64_t i = first; i < launch.argument<int64_t>(2); i += step) out[i] = x[i] / 2;
     }},
    {"ScaleWeightsIf", {8, 4, 8, 8}, scale_weights<float>},
    {"ScaleWeightsId", {8, 8, 8, 8}, scale_weights<double>},
    {"AddRowsIf", {8, 8, 8, 8, 8}, add_rows<float>},
    {"AddRowsId", {8, 8, 8, 8, 8}, add_rows<double>},
    {"SquareElements",
     {8, 8, 8},
     [](const Launch &launch, int64_t first, int64_t step) {
       auto *x = launch.argument<const float *>(0);
       auto *out = launch.argument<float *>(1);
       for (int64_t i = first; i < launch.argument<int64_t>(2); i += step) out[i] = x[i] * x[i];
     }},
    {"SquareGradient",
     {8, 8, 8, 8},
     [](const Launch &launch, int64_t first, int64_t step) {
       auto *x = launch.argument<const float *>(0);
       auto *dout = launch.argument<const float *>(1);
       auto *dx = launch.argument<float *>(2);
       for (int64_t i = first; i < launch.argument<int64_t>(3); i += step) dx[i] = 2 * x[i] * dout[i];
     }},
};

struct Queued {
  Launch launch;
  const Emulation *emulation;
};

void run(void *raw) {
  auto *queued = static_cast<Queued *>(raw);
  const int64_t step = static_cast<int64_t>(queued->launch.grid.x) * queued->launch.block.x;
  for (int64_t first = 0; first < step; ++first) queued->emulation->thread(queued->launch, first, step);
}

struct Configuration {
  dim3 grid, block;
  size_t shared;
  void *stream;
};

std::map<const void *, const Emulation *> known;
thread_local Configuration configuration;
thread_local int last = 0;
constexpr int kNoKernel = 98;

}  // namespace

extern "C" {

void **__cudaRegisterFatBinary(void *binary) { return new void *(binary); }
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **handle) { delete handle; }

void __cudaRegisterFunction(void **, const char *function, char *, const char *name, int, void *, void *, void *,
                            void *, int *) {
  for (const Emulation &emulation : kEmulations) {
    if (strstr(name, emulation.name) != nullptr) known[function] = &emulation;
  }
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
  configuration = {grid, block, shared, stream};
  return 0;
}

int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *static_cast<void **>(stream) = configuration.stream;
  return 0;
}

int __cudaGetKernel(const void **kernel, const void *function) {
  *kernel = function;
  return 0;
}

int __cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t, void *stream) {
  auto found = known.find(kernel);
  if (found == known.end()) return last = kNoKernel;
  Queued queued{{grid, block, {}}, found->second};
  for (size_t i = 0; i < kArguments && found->second->bytes[i] > 0; ++i) {
    memcpy(&queued.launch.arguments[i], arguments[i], found->second->bytes[i]);
  }
  return last = standin_launch(stream, run, &queued, sizeof queued);
}

int cudaGetLastError() {
  const int error = last;
  last = 0;
  return error;
}
}
