// Descriptions of the stand-in for cuBLASLt, and the numbers of `cublasLt.h` that it takes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

namespace cublaslt {

enum { kSuccess = 0, kNotInitialized = 1, kInvalidValue = 7, kExecutionFailed = 13, kNotSupported = 15 };
enum { kReal32 = 0, kReal64 = 1, kReal16 = 2, kComplex32 = 4, kComplex64 = 5, kBrain16 = 14 };
enum { kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77 };
enum { kPlain = 0, kTransposed = 1 };
enum { kLayoutStacks = 5, kLayoutStackStride = 6 };
enum { kProductTransposeA = 3, kProductTransposeB = 4, kProductEpilogue = 7, kProductBias = 8 };
enum { kEpilogueNone = 1, kEpilogueRelu = 2, kEpilogueBias = 4, kEpilogueGelu = 32 };
enum { kPreferWorkspace = 1, kPreferReductions = 3, kPreferAlignmentA = 5 };

struct Handle {
  void *context;
};

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t stacks;
  int64_t stack_stride;
};

struct Product {
  int compute, scale;
  int32_t transpose_a, transpose_b, epilogue;
  const void *bias;
};

struct Preference {
  uint64_t workspace;
  uint32_t reductions;
  uint32_t alignments[4];
};

struct Algorithm {
  uint64_t problem;
  uint64_t workspace;
  uint64_t alignments[4];
  uint64_t rest[2];
};

struct Proposal {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

inline size_t size_of(int type) {
  switch (type) {
    case kReal16:
    case kBrain16: return 2;
    case kReal32: return 4;
    case kReal64:
    case kComplex32: return 8;
    case kComplex64: return 16;
    default: return 0;
  }
}

inline bool is_zero(const void *number, int type) {
  static const char zeros[16] = {};
  return memcmp(number, zeros, size_of(type)) == 0;
}

inline std::mutex &lock() {
  static std::mutex own;
  return own;
}

// All descriptions of a kind that live.
template <class T>
std::map<void *, std::unique_ptr<T>> &all() {
  static std::map<void *, std::unique_ptr<T>> own;
  return own;
}

template <class T>
void *add(const T &value) {
  std::lock_guard<std::mutex> guard(lock());
  auto made = std::make_unique<T>(value);
  void *handle = made.get();
  all<T>()[handle] = std::move(made);
  return handle;
}

template <class T>
T *find(void *handle) {
  std::lock_guard<std::mutex> guard(lock());
  auto known = all<T>().find(handle);
  return known == all<T>().end() ? nullptr : known->second.get();
}

template <class T>
bool remove(void *handle) {
  std::lock_guard<std::mutex> guard(lock());
  return all<T>().erase(handle) == 1;
}

template <class T>
int take(T *target, const void *value) {
  memcpy(target, value, sizeof(T));
  return kSuccess;
}

// A number that tells problems apart; the address of a bias is no part of it.
inline uint64_t problem_hash(const Product &product, const Layout *const (&layouts)[4]) {
  uint64_t hash = 0xcbf29ce484222325u;
  auto mix = [&](uint64_t number) { hash = (hash ^ number) * 0x100000001b3u; };
  for (const int number : {product.compute, product.scale, product.transpose_a, product.transpose_b, product.epilogue}) {
    mix(static_cast<uint64_t>(number));
  }
  for (const Layout *layout : layouts) {
    mix(static_cast<uint64_t>(layout->type));
    mix(layout->rows);
    mix(layout->columns);
    mix(static_cast<uint64_t>(layout->leading));
    mix(static_cast<uint64_t>(layout->stacks));
    mix(static_cast<uint64_t>(layout->stack_stride));
  }
  return hash;
}

}  // namespace cublaslt
