// Size, sign, parts and rounding of numbers: the twin of `math::number`.
//
// In: a number of a compute type. Out: a number, or whether something holds. On types that make a function idle it has
// the obvious result: an integer rounds to itself.

namespace opsmith {
namespace math {

DEVICE float abs_part(float x) { return ::fabsf(x); }
DEVICE double abs_part(double x) { return ::fabs(x); }
DEVICE float floor_part(float x) { return ::floorf(x); }
DEVICE double floor_part(double x) { return ::floor(x); }
DEVICE float ceil_part(float x) { return ::ceilf(x); }
DEVICE double ceil_part(double x) { return ::ceil(x); }
// To nearest, halves to even.
DEVICE float round_part(float x) { return ::rintf(x); }
DEVICE double round_part(double x) { return ::rint(x); }
DEVICE float trunc_part(float x) { return ::truncf(x); }
DEVICE double trunc_part(double x) { return ::trunc(x); }
DEVICE float hypot_part(float a, float b) { return ::hypotf(a, b); }
DEVICE double hypot_part(double a, double b) { return ::hypot(a, b); }

// Distance from zero, a real number. The lowest signed integer has no positive counterpart and stays.
template <class T>
DEVICE Real<T> abs(T x) {
  if constexpr (kIsComplex<T>) {
    return hypot_part(x.re, x.im);
  } else if constexpr (kIsFloat<T>) {
    return abs_part(x);
  } else if constexpr (kIsSigned<T>) {
    return x < 0 ? opsmith::neg(x) : x;
  } else {
    return x;
  }
}

// The number scaled to size 1, or 0. The sign of NaN is 0.
template <class T>
DEVICE T sgn(T x) {
  if constexpr (kIsComplex<T>) {
    const Real<T> size = hypot_part(x.re, x.im);
    return size == 0 ? T{0, 0} : T{x.re / size, x.im / size};
  } else if constexpr (kIsBool<T>) {
    return x;
  } else if constexpr (kIsUnsigned<T>) {
    return x != 0 ? 1 : 0;
  } else {
    return static_cast<T>((x > 0 ? 1 : 0) - (x < 0 ? 1 : 0));
  }
}

// The same, of real numbers.
template <class T>
DEVICE T sign(T x) {
  return sgn(x);
}

// Complex conjugate; a real number is its own.
template <class T>
DEVICE T conj(T x) {
  if constexpr (kIsComplex<T>) {
    return T{x.re, -x.im};
  } else {
    return x;
  }
}

template <class T>
DEVICE Real<T> real(T x) {
  if constexpr (kIsComplex<T>) {
    return x.re;
  } else {
    return x;
  }
}

// The imaginary part; of a real number, 0.
template <class T>
DEVICE Real<T> imag(T x) {
  if constexpr (kIsComplex<T>) {
    return x.im;
  } else {
    return zero<T>();
  }
}

// Whether the number, or a part of it, is NaN.
template <class T>
DEVICE bool is_nan(T x) {
  return !equal(x, x);
}

// Whether the number, or a part of it, is infinite.
template <class T>
DEVICE bool is_inf(T x) {
  if constexpr (kIsComplex<T>) {
    return is_inf(x.re) || is_inf(x.im);
  } else if constexpr (kIsFloat<T>) {
    return abs_part(x) == infinity<T>();
  } else {
    return false;
  }
}

// Whether the number is neither infinite nor NaN, in no part.
template <class T>
DEVICE bool is_finite(T x) {
  if constexpr (kIsComplex<T>) {
    return is_finite(x.re) && is_finite(x.im);
  } else if constexpr (kIsFloat<T>) {
    return abs_part(x) < infinity<T>();
  } else {
    return true;
  }
}

#define OPSMITH_BY_PARTS(name)                            \
  template <class T>                                      \
  DEVICE T name(T x) {                                    \
    if constexpr (kIsComplex<T>) {                        \
      return T{name##_part(x.re), name##_part(x.im)};     \
    } else if constexpr (kIsFloat<T>) {                   \
      return name##_part(x);                              \
    } else {                                              \
      return x;                                           \
    }                                                     \
  }
OPSMITH_BY_PARTS(floor)
OPSMITH_BY_PARTS(ceil)
OPSMITH_BY_PARTS(round)
OPSMITH_BY_PARTS(trunc)
#undef OPSMITH_BY_PARTS

// The part that `trunc` takes away.
template <class T>
DEVICE T frac(T x) {
  return sub(x, math::trunc(x));
}

}  // namespace math
}  // namespace opsmith
