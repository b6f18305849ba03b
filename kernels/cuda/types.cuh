// Element types of tensors on a device, their compute types, and conversions.
//
// In: nothing; no header is included, so that the run-time compiler needs none. Out: the types under the names of the
// Rust side, `Compute`, `Real`, conversions with the meaning of Rust's `as`, and `report`. Must not know operators.

#ifndef OPSMITH_EMULATED
// Shared memory whose size the launch gives; one declaration for all types, since two of one name would clash.
#define DYNAMIC_SHARED(T, name)                                                   \
  extern __shared__ __align__(16) unsigned char opsmith_dynamic_shared[];         \
  T *name = reinterpret_cast<T *>(opsmith_dynamic_shared)
#endif

#define DEVICE __device__ __forceinline__

// UNROLL: the loop after it is written out; ROLLED: it is not. COPY_BYTES: bytes of one object to another, which registers may be.
#ifdef OPSMITH_EMULATED
#define UNROLL
#define ROLLED
#define COPY_BYTES __builtin_memcpy
#else
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#define COPY_BYTES memcpy
#endif

// Bits of errors that kernels met; the runtime sets the pointer after loading, to memory that the host reads too.
extern "C" {
__device__ unsigned *opsmith_status = nullptr;
}

namespace opsmith {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long long;

enum : unsigned { kZeroDivision = 1, kIndexOutOfRange = 2 };

// Notes an error of this launch. Results stay defined; the host finds the bits when it waits.
DEVICE void report(unsigned code) {
  if (opsmith_status != nullptr) atomicOr(opsmith_status, code);
}

template <class R>
struct complex {
  R re, im;
};
using c32 = complex<float>;
using c64 = complex<double>;

// 16-bit floats: storage only, arithmetic is that of `float`.
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};

template <bool condition, class A, class B>
struct Choice {
  using type = A;
};
template <class A, class B>
struct Choice<false, A, B> {
  using type = B;
};
template <bool condition, class A, class B>
using choice = typename Choice<condition, A, B>::type;

template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

template <class T>
inline constexpr bool kIsComplex = false;
template <class R>
inline constexpr bool kIsComplex<complex<R>> = true;
template <class T>
inline constexpr bool kIsBool = kSame<T, bool>;
template <class T>
inline constexpr bool kIsHalf = kSame<T, f16> || kSame<T, bf16>;
template <class T>
inline constexpr bool kIsFloat = kSame<T, float> || kSame<T, double>;
template <class T>
inline constexpr bool kIsUnsigned = kSame<T, u8> || kSame<T, u16> || kSame<T, u32> || kSame<T, u64>;
template <class T>
inline constexpr bool kIsSigned = kSame<T, i8> || kSame<T, i16> || kSame<T, i32> || kSame<T, i64>;
template <class T>
inline constexpr bool kIsInteger = kIsUnsigned<T> || kIsSigned<T>;

template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<complex<R>> {
  using type = R;
};
// The type of a part; the type itself unless complex.
template <class T>
using Real = typename RealOf<T>::type;

// The type of arithmetic.
template <class T>
using Compute = choice<kIsHalf<T>, float, T>;

// The unsigned integer in which an integer type wraps; no narrower than C++'s arithmetic.
template <class T>
using Wrapping = choice<sizeof(T) == 8, u64, u32>;

template <class T>
DEVICE T infinity();
template <>
DEVICE float infinity<float>() {
  return __int_as_float(0x7f800000);
}
template <>
DEVICE double infinity<double>() {
  return __longlong_as_double(0x7ff0000000000000ll);
}
template <class T>
DEVICE T not_a_number();
template <>
DEVICE float not_a_number<float>() {
  return __int_as_float(0x7fc00000);
}
template <>
DEVICE double not_a_number<double>() {
  return __longlong_as_double(0x7ff8000000000000ll);
}

DEVICE float to_float(f16 x) {
#ifdef OPSMITH_EMULATED
  const u32 sign = static_cast<u32>(x.bits & 0x8000u) << 16, size = x.bits & 0x7fffu;
  // A subnormal is an integer of units of 2^-24; else the exponent's bias changes from 15 to 127.
  if (size < 0x400u) return __uint_as_float(__float_as_uint(static_cast<float>(size) * 0x1p-24f) | sign);
  if (size >= 0x7c00u) return __uint_as_float(sign | 0x7f800000u | (size & 0x3ffu) << 13 | (size > 0x7c00u ? 0x400000u : 0u));
  return __uint_as_float(sign | ((size << 13) + (112u << 23)));
#else
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
  return result;
#endif
}

DEVICE f16 to_f16(float x) {
#ifdef OPSMITH_EMULATED
  const u32 bits = __float_as_uint(x), size = bits & 0x7fffffffu;
  const u16 sign = static_cast<u16>(bits >> 16 & 0x8000u);
  u32 result;
  if (size > 0x7f800000u) {
    result = 0x7e00u | (size >> 13 & 0x3ffu);
  } else if (size >= 0x477ff000u) {
    result = 0x7c00u;
  } else if (size >= 0x38800000u) {
    result = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
  } else {
    // Adding 0.5 leaves units of 2^-24 in the low bits, rounded to nearest even.
    result = __float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000u;
  }
  return f16{static_cast<u16>(sign | result)};
#else
  f16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
#endif
}

DEVICE float to_float(bf16 x) { return __uint_as_float(static_cast<u32>(x.bits) << 16); }

DEVICE bf16 to_bf16(float x) {
#if !defined(OPSMITH_EMULATED) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  bf16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
#else
  const u32 bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bf16{static_cast<u16>(bits >> 16 | 0x40u)};
  return bf16{static_cast<u16>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
#endif
}

// Widened to the compute type.
template <class T>
DEVICE Compute<T> to_compute(T value) {
  if constexpr (kIsHalf<T>) {
    return to_float(value);
  } else {
    return value;
  }
}

// Rounded from the compute type.
template <class T>
DEVICE T from_compute(Compute<T> value) {
  if constexpr (kSame<T, f16>) {
    return to_f16(value);
  } else if constexpr (kSame<T, bf16>) {
    return to_bf16(value);
  } else {
    return value;
  }
}

// A float as an integer of 32 or more bits: truncated, limited to the range, NaN as 0.
template <class I, class F>
DEVICE I truncated(F value) {
  constexpr bool is_signed = kIsSigned<I>;
  constexpr int bits = 8 * static_cast<int>(sizeof(I)) - (is_signed ? 1 : 0);
  constexpr u64 highest = ~static_cast<u64>(0) >> (64 - bits);
  // The first number beyond the range, exact in every float type.
  const F end = static_cast<F>(highest / 2 + 1) * 2;
  if (value != value) return 0;
  if (value >= end) return static_cast<I>(highest);
  if (is_signed ? value < -end : value < 0) return is_signed ? static_cast<I>(highest + 1) : 0;
  return static_cast<I>(value);
}

// The nearest single-precision number with an odd last bit if the number is not exact, so that another rounding, to
// fewer bits, is as one.
DEVICE float rounded_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const u32 bits = __float_as_uint(nearest);
  if (static_cast<double>(nearest) == value || value != value || (bits & 1u) != 0) return nearest;
  return __uint_as_float(::fabs(static_cast<double>(nearest)) > ::fabs(value) ? bits - 1u : bits + 1u);
}

// An element as one of another type, as the host converts tensors: integers wrap, floats truncate, zero alone is
// `false`, a complex number loses its imaginary part in a real type.
template <class To, class From>
DEVICE To convert(From value) {
  if constexpr (kSame<To, From>) {
    return value;
  } else if constexpr (kIsHalf<From>) {
    return convert<To>(to_float(value));
  } else if constexpr (kIsComplex<To> && kIsComplex<From>) {
    return To{static_cast<Real<To>>(value.re), static_cast<Real<To>>(value.im)};
  } else if constexpr (kIsComplex<To>) {
    return To{convert<Real<To>>(value), 0};
  } else if constexpr (kIsBool<To> && kIsComplex<From>) {
    return value.re != 0 || value.im != 0;
  } else if constexpr (kIsComplex<From>) {
    return convert<To>(value.re);
  } else if constexpr (kIsHalf<To>) {
    if constexpr (kSame<From, float>) {
      return from_compute<To>(value);
    } else {
      return from_compute<To>(rounded_to_odd(convert<double>(value)));
    }
  } else if constexpr (kIsBool<To>) {
    return value != From(0);
  } else if constexpr (kIsInteger<To> && kIsFloat<From>) {
    if constexpr (kSame<To, u64>) {
      return value < 0 ? static_cast<u64>(truncated<i64>(value)) : truncated<u64>(value);
    } else if constexpr (kSame<To, i32>) {
      return truncated<i32>(value);
    } else {
      // Narrow integers wrap, after the value became one of 64 bits.
      return static_cast<To>(truncated<i64>(value));
    }
  } else {
    return static_cast<To>(value);
  }
}

// A number of the host's types (bool, i64, double, c64) as an element of a compute type: floats become integers of 64
// bits before they wrap.
template <class C, class From>
DEVICE C from_scalar(From value) {
  if constexpr (kIsInteger<C> && (kIsFloat<From> || kIsComplex<From>)) {
    const double number = convert<double>(value);
    if constexpr (kSame<C, u64> && kIsFloat<From>) {
      return number > 0 ? truncated<u64>(number) : static_cast<u64>(truncated<i64>(number));
    } else {
      return static_cast<C>(truncated<i64>(number));
    }
  } else if constexpr (kSame<Real<C>, float> && kSame<From, i64>) {
    // By way of double precision, as the host's scalars.
    return convert<C>(static_cast<double>(value));
  } else {
    return convert<C>(value);
  }
}

// Adjacent elements as many as one access moves.
template <class T, int width>
struct alignas(sizeof(T) * width) Pack {
  T elements[width];
};

// Whether an address is one of such elements.
template <class T>
DEVICE bool is_aligned(const void *pointer, int width) {
  return reinterpret_cast<u64>(pointer) % (sizeof(T) * static_cast<u64>(width)) == 0;
}

}  // namespace opsmith
