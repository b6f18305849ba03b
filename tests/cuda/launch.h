// One way to write kernels of tests, two ways to run them: nvcc compiles them for a device, any other
// compiler for the stand-in of the driver (driver.cc).

#pragma once

#include <cstdint>

#ifdef __CUDACC__

#define ON_DEVICE __device__

template <class Body>
__global__ void ForEach(int64_t count, Body body) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count; i += step) body(i);
}

// Calls `body` with 0, 1, … below `count`, on a stream; 0 if it was launched.
template <class Body>
int launch(void *stream, int64_t count, Body body) {
  if (count == 0) return 0;
  const int64_t blocks = (count + 255) / 256;
  ForEach<<<static_cast<int>(blocks < 1024 ? blocks : 1024), 256, 0, static_cast<cudaStream_t>(stream)>>>(count, body);
  return static_cast<int>(cudaGetLastError());
}

inline bool is_device(const void *address) {
  cudaPointerAttributes attributes;
  return cudaPointerGetAttributes(&attributes, address) == cudaSuccess && attributes.type == cudaMemoryTypeDevice;
}

// CUDA's runtime enters a context by itself.
inline void expect_context() {}

#else

#include "driver.h"

#define ON_DEVICE

template <class Body>
struct Launched {
  int64_t count;
  Body body;

  static void run(void *raw) {
    auto *launched = static_cast<Launched *>(raw);
    for (int64_t i = 0; i < launched->count; ++i) launched->body(i);
  }
};

template <class Body>
int launch(void *stream, int64_t count, Body body) {
  if (count == 0) return 0;
  Launched<Body> launched{count, body};
  return standin_launch(stream, Launched<Body>::run, &launched, sizeof launched);
}

inline bool is_device(const void *address) { return standin_is_device(address) != 0; }

inline void expect_context() { standin_expect_context(); }

#endif
