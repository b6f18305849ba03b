// Bits and roundings of numbers: CUDA's intrinsic functions for integers, conversions and single operations.

#pragma once

inline int __float_as_int(float x) { return standin::from_bits<int>(standin::to_bits(x)); }
inline unsigned __float_as_uint(float x) { return standin::from_bits<unsigned>(standin::to_bits(x)); }
inline float __int_as_float(int x) { return standin::from_bits<float>(standin::to_bits(x)); }
inline float __uint_as_float(unsigned x) { return standin::from_bits<float>(standin::to_bits(x)); }
inline long long __double_as_longlong(double x) { return standin::from_bits<long long>(standin::to_bits(x)); }
inline double __longlong_as_double(long long x) { return standin::from_bits<double>(standin::to_bits(x)); }
inline int __double2hiint(double x) { return static_cast<int>(standin::to_bits(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(standin::to_bits(x)); }
inline double __hiloint2double(int high, int low) {
  return standin::from_bits<double>(static_cast<standin::u64>(static_cast<unsigned>(high)) << 32 |
                                    static_cast<unsigned>(low));
}

// The compiler's own would call a library that a loaded text lacks.
inline int __popcll(unsigned long long x) {
  x -= x >> 1 & 0x5555555555555555;
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return static_cast<int>(x * 0x0101010101010101 >> 56);
}
inline int __popc(unsigned x) { return __popcll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline unsigned long long __brevll(unsigned long long x) {
  x = (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
  x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f0f0f0f0f) | (x & 0x0f0f0f0f0f0f0f0f) << 4;
  return __builtin_bswap64(x);
}
inline unsigned __brev(unsigned x) { return static_cast<unsigned>(__brevll(x) >> 32); }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned part = selector >> 4 * i;
    const auto byte = static_cast<unsigned>(bytes >> 8 * (part & 7)) & 0xff;
    // The fourth bit of a selector repeats the byte's sign.
    result |= (part & 8 ? (byte & 0x80 ? 0xff : 0) : byte) << 8 * i;
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}
inline int __mulhi(int x, int y) { return static_cast<int>(static_cast<long long>(x) * y >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<unsigned long long>(x) * y >> 32);
}
__extension__ typedef __int128 standin_i128;
__extension__ typedef unsigned __int128 standin_u128;
inline long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<standin_i128>(x) * y >> 64);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<standin_u128>(x) * y >> 64);
}
inline int __mul24(int x, int y) {
  const auto low = [](int value) { return static_cast<int>(static_cast<unsigned>(value) << 8) >> 8; };
  return static_cast<int>(static_cast<long long>(low(x)) * low(y));
}
inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }

// CUDA's selection for all pairs of types that its language has.
#define STANDIN_ORDER_OF(T)                          \
  inline T min(T a, T b) { return b < a ? b : a; }   \
  inline T max(T a, T b) { return a < b ? b : a; }
STANDIN_ORDER_OF(int)
STANDIN_ORDER_OF(unsigned)
STANDIN_ORDER_OF(long)
STANDIN_ORDER_OF(unsigned long)
STANDIN_ORDER_OF(long long)
STANDIN_ORDER_OF(unsigned long long)
#undef STANDIN_ORDER_OF
inline float min(float a, float b) { return __builtin_fminf(a, b); }
inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
inline double min(double a, double b) { return __builtin_fmin(a, b); }
inline double max(double a, double b) { return __builtin_fmax(a, b); }
inline long long llmin(long long a, long long b) { return min(a, b); }
inline long long llmax(long long a, long long b) { return max(a, b); }
inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }

// Single operations, rounded to nearest; the compiler joins none (-ffp-contract=off).
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
inline float __frsqrt_rn(float x) { return static_cast<float>(1 / __builtin_sqrt(static_cast<double>(x))); }
inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __drcp_rn(double x) { return 1 / x; }
inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
inline double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }

namespace standin {

// CUDA's conversion of a float to an integer: bounded; not-a-number gives 0 for 32 bits, the sign bit alone for 64 of them.
template <class I, class F>
inline I to_integer(F x) {
  constexpr bool is_signed = static_cast<I>(-1) < 0;
  constexpr int bits = sizeof(I) * 8 - is_signed;
  constexpr I lowest = is_signed ? static_cast<I>(static_cast<u64>(1) << (bits & 63)) : 0;
  constexpr I largest = static_cast<I>(~static_cast<u64>(0) >> (64 - bits));
  if (x != x) return sizeof(I) == 4 ? 0 : static_cast<I>(static_cast<u64>(1) << 63);
  const F bound = static_cast<F>(2) * static_cast<F>(static_cast<u64>(1) << (bits - 1));
  if (x >= bound) return largest;
  if (x < (is_signed ? -bound : 0)) return lowest;
  return static_cast<I>(x);
}

}  // namespace standin

#define STANDIN_CONVERSIONS(F, f, I, i, suffix)                                                        \
  inline I __##f##2##i##_rn(F x) { return standin::to_integer<I>(__builtin_rint##suffix(x)); }  \
  inline I __##f##2##i##_rz(F x) { return standin::to_integer<I>(__builtin_trunc##suffix(x)); }        \
  inline I __##f##2##i##_rd(F x) { return standin::to_integer<I>(__builtin_floor##suffix(x)); }        \
  inline I __##f##2##i##_ru(F x) { return standin::to_integer<I>(__builtin_ceil##suffix(x)); }         \
  inline F __##i##2##f##_rn(I x) { return static_cast<F>(x); }
STANDIN_CONVERSIONS(float, float, int, int, f)
STANDIN_CONVERSIONS(float, float, unsigned, uint, f)
STANDIN_CONVERSIONS(float, float, long long, ll, f)
STANDIN_CONVERSIONS(float, float, unsigned long long, ull, f)
STANDIN_CONVERSIONS(double, double, int, int, )
STANDIN_CONVERSIONS(double, double, unsigned, uint, )
STANDIN_CONVERSIONS(double, double, long long, ll, )
STANDIN_CONVERSIONS(double, double, unsigned long long, ull, )
#undef STANDIN_CONVERSIONS
inline float __double2float_rn(double x) { return static_cast<float>(x); }
