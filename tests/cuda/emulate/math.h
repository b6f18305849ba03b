// Functions of real numbers by the names that CUDA's language has without any header: those of C, for both types and
// overloaded, and CUDA's own.

#pragma once

#define STANDIN_UNARY(name)                            \
  extern "C" double name(double) noexcept;             \
  extern "C" float name##f(float) noexcept;            \
  inline float name(float x) { return name##f(x); }
#define STANDIN_BINARY(name)                                         \
  extern "C" double name(double, double) noexcept;                   \
  extern "C" float name##f(float, float) noexcept;                   \
  inline float name(float x, float y) { return name##f(x, y); }
#define STANDIN_TO(T, name)                        \
  extern "C" T name(double) noexcept;              \
  extern "C" T name##f(float) noexcept;            \
  inline T name(float x) { return name##f(x); }

STANDIN_UNARY(acos)
STANDIN_UNARY(acosh)
STANDIN_UNARY(asin)
STANDIN_UNARY(asinh)
STANDIN_UNARY(atan)
STANDIN_UNARY(atanh)
STANDIN_UNARY(cbrt)
STANDIN_UNARY(ceil)
STANDIN_UNARY(cos)
STANDIN_UNARY(cosh)
STANDIN_UNARY(erf)
STANDIN_UNARY(erfc)
STANDIN_UNARY(exp)
STANDIN_UNARY(exp2)
STANDIN_UNARY(exp10)
STANDIN_UNARY(expm1)
STANDIN_UNARY(fabs)
STANDIN_UNARY(floor)
STANDIN_UNARY(lgamma)
STANDIN_UNARY(log)
STANDIN_UNARY(log10)
STANDIN_UNARY(log1p)
STANDIN_UNARY(log2)
STANDIN_UNARY(logb)
STANDIN_UNARY(nearbyint)
STANDIN_UNARY(rint)
STANDIN_UNARY(round)
STANDIN_UNARY(sin)
STANDIN_UNARY(sinh)
STANDIN_UNARY(sqrt)
STANDIN_UNARY(tan)
STANDIN_UNARY(tanh)
STANDIN_UNARY(tgamma)
STANDIN_UNARY(trunc)
STANDIN_UNARY(j0)
STANDIN_UNARY(j1)
STANDIN_UNARY(y0)
STANDIN_UNARY(y1)
STANDIN_BINARY(atan2)
STANDIN_BINARY(copysign)
STANDIN_BINARY(fdim)
STANDIN_BINARY(fmax)
STANDIN_BINARY(fmin)
STANDIN_BINARY(fmod)
STANDIN_BINARY(hypot)
STANDIN_BINARY(nextafter)
STANDIN_BINARY(pow)
STANDIN_BINARY(remainder)
STANDIN_TO(int, ilogb)
STANDIN_TO(long, lrint)
STANDIN_TO(long, lround)
STANDIN_TO(long long, llrint)
STANDIN_TO(long long, llround)
#undef STANDIN_TO
#undef STANDIN_BINARY
#undef STANDIN_UNARY

extern "C" {
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
double scalbn(double, int) noexcept;
float scalbnf(float, int) noexcept;
double frexp(double, int *) noexcept;
float frexpf(float, int *) noexcept;
double modf(double, double *) noexcept;
float modff(float, float *) noexcept;
double remquo(double, double, int *) noexcept;
float remquof(float, float, int *) noexcept;
void sincos(double, double *, double *) noexcept;
void sincosf(float, float *, float *) noexcept;
double jn(int, double) noexcept;
float jnf(int, float) noexcept;
double yn(int, double) noexcept;
float ynf(int, float) noexcept;
int abs(int) noexcept;
long labs(long) noexcept;
long long llabs(long long) noexcept;
void *memcpy(void *, const void *, unsigned long) noexcept;
void *memset(void *, int, unsigned long) noexcept;
}
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
inline float ldexp(float x, int n) { return ldexpf(x, n); }
inline float scalbn(float x, int n) { return scalbnf(x, n); }
inline float frexp(float x, int *n) { return frexpf(x, n); }
inline float modf(float x, float *whole) { return modff(x, whole); }
inline long abs(long x) { return labs(x); }
inline long long abs(long long x) { return llabs(x); }
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }
inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }
inline bool signbit(double x) { return __builtin_signbit(x); }
inline float nanf(const char *) { return __builtin_nanf(""); }
inline double nan(const char *) { return __builtin_nan(""); }

namespace standin {

constexpr double kPi = 3.14159265358979323846;
constexpr double kTwoOverRootPi = 1.12837916709551257390;

// x modulo 2, between -1 and 1: exact.
inline double half_turns(double x) { return x - 2 * __builtin_rint(x / 2); }

// Series of positive terms to 30, the asymptotic expansion above.
inline double bessel_i(int order, double x) {
  const double size = fabs(x);
  double sum = 1, term = 1;
  if (size <= 30) {
    const double square = size * size / 4;
    for (int k = 1; k < 200 && term > sum * 1e-17; ++k) sum += term *= square / k / (k + order);
    return order == 0 ? sum : x / 2 * sum;
  }
  for (int k = 1; k < 30; ++k) sum += term *= ((2.0 * k - 1) * (2.0 * k - 1) - 4 * order) / (8 * k * size);
  const double half = exp(size / 2);
  const double value = half / sqrt(2 * kPi * size) * sum * half;
  return order == 1 && x < 0 ? -value : value;
}

}  // namespace standin

inline double rsqrt(double x) { return 1 / sqrt(x); }
inline double rcbrt(double x) { return 1 / cbrt(x); }
inline double rhypot(double x, double y) { return 1 / hypot(x, y); }
inline double norm3d(double x, double y, double z) { return hypot(hypot(x, y), z); }
inline double norm4d(double x, double y, double z, double w) { return hypot(hypot(x, y), hypot(z, w)); }
inline double rnorm3d(double x, double y, double z) { return 1 / norm3d(x, y, z); }
inline double rnorm4d(double x, double y, double z, double w) { return 1 / norm4d(x, y, z, w); }

inline double sinpi(double x) {
  const double turns = standin::half_turns(x), size = fabs(turns);
  if (size <= 0.25) return copysign(sin(standin::kPi * size), turns);
  if (size <= 0.75) return copysign(cos(standin::kPi * (0.5 - size)), turns);
  return copysign(sin(standin::kPi * (1 - size)), size == 1 ? x : turns);
}
inline double cospi(double x) {
  const double size = fabs(standin::half_turns(x));
  if (size <= 0.25) return cos(standin::kPi * size);
  if (size <= 0.75) return sin(standin::kPi * (0.5 - size));
  return -cos(standin::kPi * (1 - size));
}
inline void sincospi(double x, double *sine, double *cosine) {
  *sine = sinpi(x);
  *cosine = cospi(x);
}

// Both inverses by Halley's method from a start within a few per cent.
inline double erfcinv(double x) {
  if (!(x >= 0 && x <= 2)) return __builtin_nan("");
  if (x == 0 || x == 2) return x == 0 ? __builtin_inf() : -__builtin_inf();
  if (x >= 1) return x == 1 ? 0 : -erfcinv(2 - x);
  const double t = sqrt(-2 * log(x / 2));
  double y = (t - (2.30753 + 0.27061 * t) / (1 + t * (0.99229 + 0.04481 * t))) * 0.70710678118654752440;
  for (int i = 0; i < 4; ++i) {
    const double error = erfc(y) - x;
    y += error / (standin::kTwoOverRootPi * exp(-y * y) - y * error);
  }
  return y;
}
inline double erfinv(double x) {
  if (fabs(x) >= 0.5) return copysign(erfcinv(1 - fabs(x)), x);
  double y = x / standin::kTwoOverRootPi;
  for (int i = 0; i < 5; ++i) {
    const double error = erf(y) - x;
    y -= error / (standin::kTwoOverRootPi * exp(-y * y) + y * error);
  }
  return x == 0 ? x : y;
}
inline double normcdf(double x) {
  // The remainder of the argument's rounding matters far from zero.
  const double scaled = -x * 0.70710678118654752440;
  const double rest = fma(-x, 0.70710678118654752440, -scaled) - x * -4.83364665672645672e-17;
  const double value = erfc(scaled);
  if (!(fabs(x) < 40)) return 0.5 * value;
  return 0.5 * (value - rest * standin::kTwoOverRootPi * exp(-scaled * scaled));
}
inline double normcdfinv(double x) { return -1.41421356237309504880 * erfcinv(2 * x); }
inline double erfcx(double x) {
  if (x < 25) {
    const double square = x * x;
    return exp(square) * (1 + fma(x, x, -square)) * erfc(x);
  }
  // The asymptotic expansion.
  double sum = 1;
  for (int k = 7; k > 0; --k) sum = 1 - (k - 0.5) / x / x * sum;
  return standin::kTwoOverRootPi / 2 / x * sum;
}
inline double cyl_bessel_i0(double x) { return standin::bessel_i(0, x); }
inline double cyl_bessel_i1(double x) { return standin::bessel_i(1, x); }

// The same for float, rounded once.
#define STANDIN_FLOAT(name)                                                                \
  inline float name##f(float x) { return static_cast<float>(name(static_cast<double>(x))); } \
  inline float name(float x) { return name##f(x); }
STANDIN_FLOAT(rsqrt)
STANDIN_FLOAT(rcbrt)
STANDIN_FLOAT(sinpi)
STANDIN_FLOAT(cospi)
STANDIN_FLOAT(erfinv)
STANDIN_FLOAT(erfcinv)
STANDIN_FLOAT(normcdf)
STANDIN_FLOAT(normcdfinv)
STANDIN_FLOAT(erfcx)
STANDIN_FLOAT(cyl_bessel_i0)
STANDIN_FLOAT(cyl_bessel_i1)
#undef STANDIN_FLOAT
inline void sincospif(float x, float *sine, float *cosine) {
  *sine = sinpif(x);
  *cosine = cospif(x);
}
inline float rhypotf(float x, float y) { return static_cast<float>(rhypot(x, y)); }
inline float norm3df(float x, float y, float z) { return static_cast<float>(norm3d(x, y, z)); }
inline float norm4df(float x, float y, float z, float w) { return static_cast<float>(norm4d(x, y, z, w)); }
inline float rnorm3df(float x, float y, float z) { return static_cast<float>(rnorm3d(x, y, z)); }
inline float rnorm4df(float x, float y, float z, float w) { return static_cast<float>(rnorm4d(x, y, z, w)); }
inline float fdividef(float x, float y) { return x / y; }

// Fast approximations, here the functions themselves.
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline void __sincosf(float x, float *sine, float *cosine) { sincosf(x, sine, cosine); }
