// Elementary functions and powers: the twins of `math::inexact`, `math::power` and `math::parts`.
//
// In: numbers of a compute type. Out: a number of it. Floats are the functions of CUDA; complex numbers of single
// precision are rounded ones of double precision, so that neither cancellation nor overflow between shows.

namespace opsmith {
namespace math {

DEVICE float rsqrt_real(float x) { return 1.0f / ::sqrtf(x); }
DEVICE double rsqrt_real(double x) { return 1.0 / ::sqrt(x); }
DEVICE float reciprocal_real(float x) { return 1.0f / x; }
DEVICE double reciprocal_real(double x) { return 1.0 / x; }
// The exponential of a negative number only, so that nothing overflows.
DEVICE float sigmoid_real(float x) {
  const float small = ::expf(-::fabsf(x));
  return (x < 0 ? small : 1.0f) / (1.0f + small);
}
DEVICE double sigmoid_real(double x) {
  const double small = ::exp(-::fabs(x));
  return (x < 0 ? small : 1.0) / (1.0 + small);
}

#define OPSMITH_ELEMENTARY(name, in_single, in_double)                          \
  template <class T>                                                            \
  DEVICE T name(T x) {                                                          \
    if constexpr (kSame<T, float>) {                                            \
      return in_single(x);                                                      \
    } else if constexpr (kSame<T, double>) {                                    \
      return in_double(x);                                                      \
    } else if constexpr (kSame<T, c64>) {                                       \
      return complex64::name(x);                                                \
    } else {                                                                    \
      return complex64::narrowed(complex64::name(complex64::widened(x)));       \
    }                                                                           \
  }
OPSMITH_ELEMENTARY(exp, ::expf, ::exp)
OPSMITH_ELEMENTARY(exp2, ::exp2f, ::exp2)
OPSMITH_ELEMENTARY(expm1, ::expm1f, ::expm1)
OPSMITH_ELEMENTARY(log, ::logf, ::log)
OPSMITH_ELEMENTARY(log1p, ::log1pf, ::log1p)
OPSMITH_ELEMENTARY(log2, ::log2f, ::log2)
OPSMITH_ELEMENTARY(log10, ::log10f, ::log10)
OPSMITH_ELEMENTARY(sqrt, ::sqrtf, ::sqrt)
OPSMITH_ELEMENTARY(rsqrt, rsqrt_real, rsqrt_real)
OPSMITH_ELEMENTARY(reciprocal, reciprocal_real, reciprocal_real)
OPSMITH_ELEMENTARY(sin, ::sinf, ::sin)
OPSMITH_ELEMENTARY(cos, ::cosf, ::cos)
OPSMITH_ELEMENTARY(tan, ::tanf, ::tan)
OPSMITH_ELEMENTARY(asin, ::asinf, ::asin)
OPSMITH_ELEMENTARY(acos, ::acosf, ::acos)
OPSMITH_ELEMENTARY(atan, ::atanf, ::atan)
OPSMITH_ELEMENTARY(sinh, ::sinhf, ::sinh)
OPSMITH_ELEMENTARY(cosh, ::coshf, ::cosh)
OPSMITH_ELEMENTARY(tanh, ::tanhf, ::tanh)
OPSMITH_ELEMENTARY(asinh, ::asinhf, ::asinh)
OPSMITH_ELEMENTARY(acosh, ::acoshf, ::acosh)
OPSMITH_ELEMENTARY(atanh, ::atanhf, ::atanh)
OPSMITH_ELEMENTARY(sigmoid, sigmoid_real, sigmoid_real)
#undef OPSMITH_ELEMENTARY

// `base` to the power of `exponent`. Integers wrap; a negative exponent gives the quotient rounded toward zero, which is
// 0 unless the base is 1 or -1. Floats follow C's `pow`: with exponent 0 it is 1 for every base, NaN included.
template <class T>
DEVICE T pow(T base, T exponent) {
  if constexpr (kSame<T, float>) {
    return ::powf(base, exponent);
  } else if constexpr (kSame<T, double>) {
    return ::pow(base, exponent);
  } else if constexpr (kSame<T, c64>) {
    return complex64::pow(base, exponent);
  } else if constexpr (kSame<T, c32>) {
    return complex64::pow_single(base, exponent);
  } else {
    if constexpr (kIsSigned<T>) {
      if (exponent < 0) {
        if (base == T(-1)) return exponent % 2 == 0 ? T(1) : T(-1);
        return base == 1 ? T(1) : T(0);
      }
    }
    T result = 1;
    for (u64 rest = static_cast<u64>(exponent); rest > 0; rest >>= 1) {
      if ((rest & 1u) != 0) result = mul(result, base);
      base = mul(base, base);
    }
    return result;
  }
}

}  // namespace math
}  // namespace opsmith
