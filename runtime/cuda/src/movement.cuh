// Movement of elements on the device: conversion between dtypes, constants, sums into a target; any layout of up to 8
// dimensions. Conversions are those of the host's copies.
//
// In: a geometry by value. Out: the target's elements. The last line of a source instantiates one kernel:
//   OPSMITH_MOVE(opsmith_kernel, bits128, u32)         elements of one dtype; the index type holds the number of elements
//   OPSMITH_TRANSPOSE(opsmith_kernel, bits128)         the same, where the sides have different innermost dimensions
//   OPSMITH_CONVERT(opsmith_kernel, float, f16, u32)   target, source
//   OPSMITH_CONVERT_ROW(opsmith_kernel, float, f16)    the same, where both sides lie one after the other
//   OPSMITH_FILL(opsmith_kernel, float, u64)
//   OPSMITH_ACCUMULATE(opsmith_kernel, float, u64)

namespace opsmith {

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;

#define DEVICE __device__ __forceinline__

// Any byte but 0 is true: memory may have any before a kernel writes it.
struct truth { u8 byte; };
struct f16 { u16 bits; };
struct bf16 { u16 bits; };
struct c32 { float re, im; };
struct c64 { double re, im; };
struct bits128 { u64 low, high; };

DEVICE u32 bits_of(float value) {
  union { float value; u32 bits; } both;
  both.value = value;
  return both.bits;
}

DEVICE float float_of(u32 bits) {
  union { u32 bits; float value; } both;
  both.bits = bits;
  return both.value;
}

// The nearest single-precision number with an odd last bit if the number is not exact, so that another rounding, to fewer
// bits, is as one.
DEVICE float rounded_to_odd(double value) {
  const float nearest = float(value);
  const u32 bits = bits_of(nearest);
  if (double(nearest) == value || value != value || (bits & 1) != 0) return nearest;
  const double back = nearest < 0 ? -double(nearest) : double(nearest), size = value < 0 ? -value : value;
  return float_of(back > size ? bits - 1 : bits + 1);
}

DEVICE float widen(bf16 value) { return float_of(u32(value.bits) << 16); }

DEVICE bf16 narrow_bf16(float value) {
  u32 bits = bits_of(value);
  if (value != value) return bf16{u16(bits >> 16 | 0x40)};
  return bf16{u16((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

#ifdef __CUDA_ARCH__

DEVICE float widen(f16 value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}

DEVICE f16 narrow_f16(float value) {
  f16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}

#else

DEVICE float widen(f16 value) {
  u32 sign = u32(value.bits & 0x8000) << 16, exponent = value.bits >> 10 & 31, mantissa = value.bits & 0x3FF;
  if (exponent == 31) return float_of(sign | 0x7F800000 | mantissa << 13);
  if (exponent != 0) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
  // Subnormal: the mantissa times 2^-24, exactly.
  float magnitude = float(mantissa) * 5.9604644775390625e-8f;
  return float_of(sign | bits_of(magnitude));
}

DEVICE f16 narrow_f16(float value) {
  u32 bits = bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return f16{u16(sign | 0x7E00 | (magnitude >> 13 & 0x3FF))};
  if (magnitude >= 0x477FF000) return f16{u16(sign | 0x7C00)};
  if (magnitude >= 0x38800000) {
    u32 rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
    return f16{u16(sign | (rounded - 0x38000000) >> 13)};
  }
  // Subnormal: 0.5 has a unit of 2^-24 in its last place, so the addition rounds to it.
  u32 rounded = bits_of(float_of(magnitude) + 0.5f);
  return f16{u16(sign | (rounded - 0x3F000000))};
}

#endif

// Floats saturate at the bounds of signed integers, and NaN gives 0.
template <class F> DEVICE i32 saturated_i32(F value) {
  if (value != value) return 0;
  if (value >= F(2147483648.0)) return 2147483647;
  if (value <= F(-2147483648.0)) return i32(-2147483647 - 1);
  return i32(value);
}

template <class F> DEVICE i64 saturated_i64(F value) {
  if (value != value) return 0;
  if (value >= F(9223372036854775808.0)) return 9223372036854775807ll;
  if (value <= F(-9223372036854775808.0)) return -9223372036854775807ll - 1;
  return i64(value);
}

template <class F> DEVICE u64 saturated_u64(F value) {
  if (value < F(0)) return u64(saturated_i64(value));
  if (value != value) return 0;
  return value >= F(18446744073709551616.0) ? ~u64(0) : u64(value);
}

// Numbers that a conversion goes through: integers and bool as they are, floats as float or double.
template <class To> struct Convert {
  template <class From> static DEVICE To from(From value) { return To(value); }
  // Narrow integers take the low bits.
  static DEVICE To from(float value) { return To(saturated_i64(value)); }
  static DEVICE To from(double value) { return To(saturated_i64(value)); }
};

template <> struct Convert<i32> {
  template <class From> static DEVICE i32 from(From value) { return i32(value); }
  static DEVICE i32 from(float value) { return saturated_i32(value); }
  static DEVICE i32 from(double value) { return saturated_i32(value); }
};

template <> struct Convert<i64> {
  template <class From> static DEVICE i64 from(From value) { return i64(value); }
  static DEVICE i64 from(float value) { return saturated_i64(value); }
  static DEVICE i64 from(double value) { return saturated_i64(value); }
};

template <> struct Convert<u64> {
  template <class From> static DEVICE u64 from(From value) { return u64(value); }
  static DEVICE u64 from(float value) { return saturated_u64(value); }
  static DEVICE u64 from(double value) { return saturated_u64(value); }
};

template <> struct Convert<truth> {
  template <class From> static DEVICE truth from(From value) { return truth{u8(value != From(0))}; }
};

template <> struct Convert<float> {
  template <class From> static DEVICE float from(From value) { return float(value); }
};

template <> struct Convert<double> {
  template <class From> static DEVICE double from(From value) { return double(value); }
};

// 16-bit floats come from float directly, and from others by way of double.
template <> struct Convert<f16> {
  template <class From> static DEVICE f16 from(From value) { return narrow_f16(rounded_to_odd(double(value))); }
  static DEVICE f16 from(float value) { return narrow_f16(value); }
};

template <> struct Convert<bf16> {
  template <class From> static DEVICE bf16 from(From value) { return narrow_bf16(rounded_to_odd(double(value))); }
  static DEVICE bf16 from(float value) { return narrow_bf16(value); }
};

// The number of an element: 16-bit floats as float, bool as an integer; others as they are.
template <class T> DEVICE T number(T value) { return value; }
DEVICE float number(f16 value) { return widen(value); }
DEVICE float number(bf16 value) { return widen(value); }
DEVICE u8 number(truth value) { return u8(value.byte != 0); }

// A complex number loses its imaginary part in a real type; it is zero only if both parts are.
template <class To, class From> struct Cast {
  static DEVICE To of(From value) { return Convert<To>::from(number(value)); }
};
template <class To> struct Cast<To, c32> {
  static DEVICE To of(c32 value) { return Convert<To>::from(value.re); }
};
template <class To> struct Cast<To, c64> {
  static DEVICE To of(c64 value) { return Convert<To>::from(value.re); }
};
template <> struct Cast<truth, c32> {
  static DEVICE truth of(c32 value) { return truth{u8(value.re != 0 || value.im != 0)}; }
};
template <> struct Cast<truth, c64> {
  static DEVICE truth of(c64 value) { return truth{u8(value.re != 0 || value.im != 0)}; }
};
template <class From> struct Cast<c32, From> {
  static DEVICE c32 of(From value) { return c32{Convert<float>::from(number(value)), 0}; }
};
template <class From> struct Cast<c64, From> {
  static DEVICE c64 of(From value) { return c64{Convert<double>::from(number(value)), 0}; }
};
template <> struct Cast<c32, c32> { static DEVICE c32 of(c32 value) { return value; } };
template <> struct Cast<c64, c64> { static DEVICE c64 of(c64 value) { return value; } };
template <> struct Cast<c32, c64> {
  static DEVICE c32 of(c64 value) { return c32{float(value.re), float(value.im)}; }
};
template <> struct Cast<c64, c32> { static DEVICE c64 of(c32 value) { return c64{value.re, value.im}; } };

// Sizes and strides in elements, the innermost dimension last; 8 dimensions, the first of size 1 where there are fewer.
struct Geometry {
  u64 count;
  u32 dims, padding;
  u64 sizes[8];
  i64 to_strides[8];
  i64 from_strides[8];
  void *to;
  const void *from;
};

struct Offsets { i64 to, from; };

// The offsets of the element at a position of the row-major order of the first dimensions.
template <class Index> DEVICE Offsets offsets(const Geometry &geometry, int dims, Index position) {
  Offsets result = {0, 0};
  for (int dim = dims - 1; dim > 0; --dim) {
    Index size = Index(geometry.sizes[dim]);
    Index rest = position / size;
    i64 index = i64(position - rest * size);
    result.to += index * geometry.to_strides[dim];
    result.from += index * geometry.from_strides[dim];
    position = rest;
  }
  if (dims > 0) {
    result.to += i64(position) * geometry.to_strides[0];
    result.from += i64(position) * geometry.from_strides[0];
  }
  return result;
}

template <class Index> DEVICE Offsets offsets(const Geometry &geometry, Index position) {
  return offsets<Index>(geometry, int(geometry.dims), position);
}

template <class Index> DEVICE Index first_position() { return Index(blockIdx.x) * Index(blockDim.x) + threadIdx.x; }
template <class Index> DEVICE Index step() { return Index(gridDim.x) * Index(blockDim.x); }

// Positions are compared as u64, so that the step past the end does not wrap.
template <class To, class From, class Index> DEVICE void convert(const Geometry &geometry) {
  To *to = static_cast<To *>(geometry.to);
  const From *from = static_cast<const From *>(geometry.from);
  for (u64 position = first_position<Index>(); position < geometry.count; position += step<Index>()) {
    Offsets at = offsets<Index>(geometry, Index(position));
    to[at.to] = Cast<To, From>::of(from[at.from]);
  }
}

// Elements that are loaded or stored at once.
template <class T, int N> struct alignas(sizeof(T) * N) Pack { T items[N]; };

// Elements a pack, so that one of the larger type has 16 bytes.
template <class A, class B> struct PackLength {
  static constexpr int value = 16 / int(sizeof(A) > sizeof(B) ? sizeof(A) : sizeof(B));
};

template <class To, class From> DEVICE void convert_row(const Geometry &geometry) {
  constexpr int kLength = PackLength<To, From>::value;
  typedef Pack<To, kLength> ToPack;
  typedef Pack<From, kLength> FromPack;
  To *to = static_cast<To *>(geometry.to);
  const From *from = static_cast<const From *>(geometry.from);
  u64 packs = geometry.count / kLength;
  if (reinterpret_cast<u64>(to) % sizeof(ToPack) != 0 || reinterpret_cast<u64>(from) % sizeof(FromPack) != 0) packs = 0;
  for (u64 number = first_position<u64>(); number < packs; number += step<u64>()) {
    FromPack source = reinterpret_cast<const FromPack *>(from)[number];
    ToPack target;
    for (int item = 0; item < kLength; ++item) target.items[item] = Cast<To, From>::of(source.items[item]);
    reinterpret_cast<ToPack *>(to)[number] = target;
  }
  for (u64 at = packs * kLength + first_position<u64>(); at < geometry.count; at += step<u64>()) {
    to[at] = Cast<To, From>::of(from[at]);
  }
}

template <class T, class Index> DEVICE void move(const Geometry &geometry) {
  T *to = static_cast<T *>(geometry.to);
  const T *from = static_cast<const T *>(geometry.from);
  for (u64 position = first_position<Index>(); position < geometry.count; position += step<Index>()) {
    Offsets at = offsets<Index>(geometry, Index(position));
    to[at.to] = from[at.from];
  }
}

// Moves tiles of 32 by 32 elements, 256 threads a tile: the source's stride along the dimension before the last is 1, the
// target's along the last. Rows of a tile are read and written with consecutive addresses; its padding avoids conflicts
// of banks.
template <class T> DEVICE void transpose(const Geometry &geometry, T (*tile)[33]) {
  T *to = static_cast<T *>(geometry.to);
  const T *from = static_cast<const T *>(geometry.from);
  int row_dim = int(geometry.dims) - 2, col_dim = row_dim + 1;
  u64 rows = geometry.sizes[row_dim], cols = geometry.sizes[col_dim];
  u64 col_tiles = (cols + 31) / 32, tiles = (rows + 31) / 32 * col_tiles;
  u64 all = geometry.count / (rows * cols) * tiles;
  int x = threadIdx.x % 32, y = threadIdx.x / 32;
  for (u64 number = blockIdx.x; number < all; number += gridDim.x) {
    Offsets at = offsets<u64>(geometry, row_dim, number / tiles);
    u64 row = number % tiles / col_tiles * 32, col = number % tiles % col_tiles * 32;
    for (int part = y; part < 32; part += 8) {
      if (row + x < rows && col + part < cols) {
        tile[part][x] = from[at.from + i64(row + x) + i64(col + part) * geometry.from_strides[col_dim]];
      }
    }
    __syncthreads();
    for (int part = y; part < 32; part += 8) {
      if (row + part < rows && col + x < cols) {
        to[at.to + i64(row + part) * geometry.to_strides[row_dim] + i64(col + x)] = tile[x][part];
      }
    }
    __syncthreads();
  }
}

template <class T, class Index> DEVICE void fill(const Geometry &geometry, T value) {
  T *to = static_cast<T *>(geometry.to);
  for (u64 position = first_position<Index>(); position < geometry.count; position += step<Index>()) {
    to[offsets<Index>(geometry, Index(position)).to] = value;
  }
}

DEVICE float sum(float one, float other) { return one + other; }
DEVICE double sum(double one, double other) { return one + other; }
DEVICE f16 sum(f16 one, f16 other) { return narrow_f16(widen(one) + widen(other)); }
DEVICE bf16 sum(bf16 one, bf16 other) { return narrow_bf16(widen(one) + widen(other)); }
DEVICE c32 sum(c32 one, c32 other) { return c32{one.re + other.re, one.im + other.im}; }
DEVICE c64 sum(c64 one, c64 other) { return c64{one.re + other.re, one.im + other.im}; }

// A thread has all addends of its targets, in row-major order: positions of `targets` are distinct elements, or one
// thread has all; those of `addends` have one target each.
template <class T, class Index> DEVICE void accumulate(const Geometry &targets, const Geometry &addends) {
  T *to = static_cast<T *>(targets.to);
  const T *from = static_cast<const T *>(targets.from);
  for (u64 position = first_position<Index>(); position < targets.count; position += step<Index>()) {
    Offsets at = offsets<Index>(targets, Index(position));
    for (u64 addend = 0; addend < addends.count; ++addend) {
      Offsets within = offsets<Index>(addends, Index(addend));
      T *target = to + at.to + within.to;
      *target = sum(*target, from[at.from + within.from]);
    }
  }
}

}  // namespace opsmith

#define OPSMITH_MOVE(kernel, T, Index)                                            \
  extern "C" __global__ void __launch_bounds__(256) kernel(opsmith::Geometry g) { \
    using namespace opsmith;                                                      \
    opsmith::move<T, Index>(g);                                                   \
  }

#define OPSMITH_TRANSPOSE(kernel, T)                                              \
  extern "C" __global__ void __launch_bounds__(256) kernel(opsmith::Geometry g) { \
    using namespace opsmith;                                                      \
    __shared__ T tile[32][33];                                                    \
    opsmith::transpose<T>(g, tile);                                               \
  }

#define OPSMITH_CONVERT(kernel, To, From, Index)                                  \
  extern "C" __global__ void __launch_bounds__(256) kernel(opsmith::Geometry g) { \
    using namespace opsmith;                                                      \
    opsmith::convert<To, From, Index>(g);                                         \
  }

#define OPSMITH_CONVERT_ROW(kernel, To, From)                                     \
  extern "C" __global__ void __launch_bounds__(256) kernel(opsmith::Geometry g) { \
    using namespace opsmith;                                                      \
    opsmith::convert_row<To, From>(g);                                            \
  }

// One kernel of a source: the alias has one meaning.
#define OPSMITH_FILL(kernel, T, Index)                              \
  namespace opsmith {                                               \
  typedef T fill_element;                                           \
  }                                                                 \
  extern "C" __global__ void __launch_bounds__(256)                 \
      kernel(opsmith::Geometry g, opsmith::fill_element value) {    \
    opsmith::fill<opsmith::fill_element, opsmith::Index>(g, value); \
  }

#define OPSMITH_ACCUMULATE(kernel, T, Index)                         \
  extern "C" __global__ void __launch_bounds__(256)                  \
      kernel(opsmith::Geometry targets, opsmith::Geometry addends) { \
    using namespace opsmith;                                         \
    opsmith::accumulate<T, Index>(targets, addends);                 \
  }
