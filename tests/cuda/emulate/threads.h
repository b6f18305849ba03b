// Threads of a block, as a kernel sees them: indices, barriers, collectives of a warp, atomic operations.

#pragma once

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

namespace standin {
static Builtins builtins;
static const Services *services;
}  // namespace standin

#define threadIdx (standin::builtins.thread)
#define blockIdx (standin::builtins.block)
#define blockDim (standin::builtins.block_size)
#define gridDim (standin::builtins.grid_size)
static constexpr int warpSize = 32;

// The call's place as a default argument: the caller's line, whatever is inlined or duplicated.
#define STANDIN_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(STANDIN_SITE) { standin::services->barrier(standin::kBarrier, 0, {file, line}); }
inline int __syncthreads_or(int predicate, STANDIN_SITE) {
  return standin::services->barrier(standin::kBarrierOr, predicate, {file, line});
}
inline int __syncthreads_and(int predicate, STANDIN_SITE) {
  return standin::services->barrier(standin::kBarrierAnd, predicate, {file, line});
}
inline int __syncthreads_count(int predicate, STANDIN_SITE) {
  return standin::services->barrier(standin::kBarrierCount, predicate, {file, line});
}

inline void __syncwarp(unsigned mask = 0xffffffffu, STANDIN_SITE) {
  standin::services->gather(mask, standin::kSyncWarp, 0, nullptr, {file, line});
}

namespace standin {

template <class T>
inline u64 to_bits(T value) {
  u64 bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T>
inline T from_bits(u64 bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
inline T shuffle(unsigned mask, T value, int source, Site site) {
  return from_bits<T>(services->shuffle(mask, to_bits(value), source, site));
}

// Segments of `width` lanes, as CUDA documents the four shuffles. Up, down and xor keep the lane's own value at the ends.
inline int shuffle_source(int kind, int argument, int width) {
  const int lane = services->lane();
  const int first = lane & ~(width - 1);
  int source = lane;
  if (kind == 0) source = first + (argument & (width - 1));
  if (kind == 1 && lane - argument >= first) source = lane - argument;
  if (kind == 2 && lane + argument < first + width) source = lane + argument;
  if (kind == 3 && (lane ^ argument) < first + width) source = lane ^ argument;
  return source;
}

}  // namespace standin

#define STANDIN_SHUFFLES(T)                                                                        \
  inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, STANDIN_SITE) {         \
    return standin::shuffle(mask, value, standin::shuffle_source(0, source, width), {file, line}); \
  }                                                                                                \
  inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, STANDIN_SITE) {  \
    return standin::shuffle(mask, value, standin::shuffle_source(1, delta, width), {file, line});  \
  }                                                                                                \
  inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, STANDIN_SITE) { \
    return standin::shuffle(mask, value, standin::shuffle_source(2, delta, width), {file, line});  \
  }                                                                                                \
  inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, STANDIN_SITE) {      \
    return standin::shuffle(mask, value, standin::shuffle_source(3, lanes, width), {file, line});  \
  }
STANDIN_SHUFFLES(int)
STANDIN_SHUFFLES(unsigned)
STANDIN_SHUFFLES(long)
STANDIN_SHUFFLES(unsigned long)
STANDIN_SHUFFLES(long long)
STANDIN_SHUFFLES(unsigned long long)
STANDIN_SHUFFLES(float)
STANDIN_SHUFFLES(double)
#undef STANDIN_SHUFFLES

inline unsigned __activemask() { return standin::services->alive(); }

inline unsigned __ballot_sync(unsigned mask, int predicate, STANDIN_SITE) {
  standin::u64 all[32];
  const unsigned lanes = standin::services->gather(mask, standin::kVote, predicate != 0, all, {file, line});
  unsigned votes = 0;
  for (int i = 0; i < 32; ++i) {
    if (lanes >> i & 1 && all[i]) votes |= 1u << i;
  }
  return votes;
}
inline int __any_sync(unsigned mask, int predicate, STANDIN_SITE) {
  return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, STANDIN_SITE) {
  return __ballot_sync(mask, !predicate, file, line) == 0;
}

#define STANDIN_MATCHES(T)                                                                              \
  inline unsigned __match_any_sync(unsigned mask, T value, STANDIN_SITE) {                              \
    standin::u64 all[32], own = standin::to_bits(value);                                                \
    const unsigned lanes = standin::services->gather(mask, standin::kMatch, own, all, {file, line});    \
    unsigned equal = 0;                                                                                 \
    for (int i = 0; i < 32; ++i) {                                                                      \
      if (lanes >> i & 1 && all[i] == own) equal |= 1u << i;                                            \
    }                                                                                                   \
    return equal;                                                                                       \
  }                                                                                                     \
  inline unsigned __match_all_sync(unsigned mask, T value, int *predicate, STANDIN_SITE) {              \
    standin::u64 all[32], own = standin::to_bits(value);                                                \
    const unsigned lanes = standin::services->gather(mask, standin::kMatch, own, all, {file, line});    \
    *predicate = 1;                                                                                     \
    for (int i = 0; i < 32; ++i) {                                                                      \
      if (lanes >> i & 1 && all[i] != own) *predicate = 0;                                              \
    }                                                                                                   \
    return *predicate ? lanes : 0;                                                                      \
  }
STANDIN_MATCHES(int)
STANDIN_MATCHES(unsigned)
STANDIN_MATCHES(long long)
STANDIN_MATCHES(unsigned long long)
STANDIN_MATCHES(float)
STANDIN_MATCHES(double)
#undef STANDIN_MATCHES

#define STANDIN_REDUCE(T, name, combine)                                                              \
  inline T name(unsigned mask, T value, STANDIN_SITE) {                                               \
    standin::u64 all[32], own = standin::to_bits(value);                                              \
    unsigned lanes = standin::services->gather(mask, standin::kReduce, own, all, {file, line});       \
    lanes &= ~(1u << standin::services->lane());                                                      \
    T a = value;                                                                                      \
    for (int i = 0; i < 32; ++i) {                                                                    \
      const T b = standin::from_bits<T>(all[i]);                                                      \
      if (lanes >> i & 1) a = combine;                                                                \
    }                                                                                                 \
    return a;                                                                                         \
  }
STANDIN_REDUCE(unsigned, __reduce_add_sync, a + b)
STANDIN_REDUCE(int, __reduce_add_sync, static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)))
STANDIN_REDUCE(unsigned, __reduce_min_sync, a < b ? a : b)
STANDIN_REDUCE(int, __reduce_min_sync, a < b ? a : b)
STANDIN_REDUCE(unsigned, __reduce_max_sync, a < b ? b : a)
STANDIN_REDUCE(int, __reduce_max_sync, a < b ? b : a)
STANDIN_REDUCE(unsigned, __reduce_and_sync, a & b)
STANDIN_REDUCE(unsigned, __reduce_or_sync, a | b)
STANDIN_REDUCE(unsigned, __reduce_xor_sync, a ^ b)
#undef STANDIN_REDUCE

inline void __threadfence() { asm volatile("" ::: "memory"); }
inline void __threadfence_block() { asm volatile("" ::: "memory"); }
inline void __threadfence_system() { asm volatile("" ::: "memory"); }

namespace standin {
inline long long cycles() {
#if defined(__x86_64__)
  return static_cast<long long>(__builtin_ia32_rdtsc());
#else
  static long long count = 0;
  return count += 100;
#endif
}
}  // namespace standin

inline void __trap(STANDIN_SITE) { standin::services->fail("__trap was called", {file, line}); }
inline void __brkpt() {}
inline void __nanosleep(unsigned) {}
inline long long clock64() { return standin::cycles(); }
inline long long clock() { return clock64(); }
extern "C" int printf(const char *format, ...);

template <class T>
inline T __ldg(const T *address) {
  return *address;
}
template <class T>
inline T __ldcs(const T *address) {
  return *address;
}
template <class T>
inline T __ldcg(const T *address) {
  return *address;
}
template <class T>
inline void __stcs(T *address, T value) {
  *address = value;
}
template <class T>
inline void __stcg(T *address, T value) {
  *address = value;
}

// One thread runs at a time, so each is the plain operation.
#define STANDIN_ATOMIC(T, name, expression)     \
  inline T name(T *address, T b) {              \
    const T a = *address;                       \
    *address = static_cast<T>(expression);      \
    return a;                                   \
  }                                             \
  inline T name##_block(T *address, T value) {  \
    return name(address, value);                \
  }                                             \
  inline T name##_system(T *address, T value) { \
    return name(address, value);                \
  }
STANDIN_ATOMIC(int, atomicAdd, static_cast<unsigned>(a) + static_cast<unsigned>(b))
STANDIN_ATOMIC(unsigned, atomicAdd, a + b)
STANDIN_ATOMIC(unsigned long long, atomicAdd, a + b)
STANDIN_ATOMIC(float, atomicAdd, a + b)
STANDIN_ATOMIC(double, atomicAdd, a + b)
STANDIN_ATOMIC(int, atomicSub, static_cast<unsigned>(a) - static_cast<unsigned>(b))
STANDIN_ATOMIC(unsigned, atomicSub, a - b)
#define STANDIN_ATOMICS(T)              \
  STANDIN_ATOMIC(T, atomicAnd, a &b)    \
  STANDIN_ATOMIC(T, atomicOr, a | b)    \
  STANDIN_ATOMIC(T, atomicXor, a ^ b)   \
  STANDIN_ATOMIC(T, atomicExch, b)      \
  STANDIN_ATOMIC(T, atomicMin, a < b ? a : b) \
  STANDIN_ATOMIC(T, atomicMax, a < b ? b : a)
STANDIN_ATOMICS(int)
STANDIN_ATOMICS(unsigned)
STANDIN_ATOMICS(unsigned long long)
STANDIN_ATOMIC(long long, atomicMin, a < b ? a : b)
STANDIN_ATOMIC(long long, atomicMax, a < b ? b : a)
STANDIN_ATOMIC(float, atomicExch, b)
STANDIN_ATOMIC(unsigned, atomicInc, a >= b ? 0 : a + 1)
STANDIN_ATOMIC(unsigned, atomicDec, a == 0 || a > b ? b : a - 1)
#undef STANDIN_ATOMICS
#undef STANDIN_ATOMIC

#define STANDIN_CAS(T)                                  \
  inline T atomicCAS(T *address, T expected, T value) { \
    const T old = *address;                             \
    if (old == expected) *address = value;              \
    return old;                                         \
  }
STANDIN_CAS(int)
STANDIN_CAS(unsigned)
STANDIN_CAS(unsigned short)
STANDIN_CAS(unsigned long long)
#undef STANDIN_CAS
