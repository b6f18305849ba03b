// Special functions of real floats, and functions of two of them: the twins of `math::special` and `math::polygamma`.
//
// In: numbers in single or double precision. Out: a number. In single precision, `lgamma`, `digamma` and `polygamma` are
// rounded from double precision, as on the host: near their roots single precision has no digits left.

namespace opsmith {
namespace math {

constexpr double kPi = 3.141592653589793;
// The largest order whose factorial is a number.
enum : int { kMostOrder = 170 };

// The value of a polynomial; coefficients from the highest power down.
template <int N>
DEVICE double polynomial(double x, const double (&coefficients)[N]) {
  double sum = 0;
  UNROLL
  for (int i = 0; i < N; ++i) sum = sum * x + coefficients[i];
  return sum;
}

DEVICE double digamma_positive(double x) {
  double below = 0;
  while (x < 10) {
    below -= 1 / x;
    x += 1;
  }
  const double z = 1 / (x * x);
  const double series = z * polynomial(z, {1.0 / 12.0, -691.0 / 32760.0, 1.0 / 132.0, -1.0 / 240.0, 1.0 / 252.0,
                                           -1.0 / 120.0, 1.0 / 12.0});
  return below + ::log(x) - 0.5 / x - series;
}

// Recurrence up to 10, then the asymptotic series; reflection for negative numbers.
//
// Source: Cephes `psi`, with PyTorch's values at the poles.
DEVICE double digamma_real(double x) {
  if (x == 0) return ::copysign(infinity<double>(), -x);
  if (!(x < 0)) return digamma_positive(x);
  if (x == ::trunc(x)) return not_a_number<double>();
  // The tangent has period 1 here, and its fractional argument keeps more digits.
  const double fraction = x - ::trunc(x);
  return digamma_positive(1 - x) - kPi / ::tan(kPi * fraction);
}

// Σ (x + k)⁻ˢ over k from 0, for s > 1 and x > 0: summed until the terms are far out, the rest by Euler's and
// Maclaurin's formula.
DEVICE double zeta(double s, double x) {
  // Bernoulli numbers over factorials, B₂ₖ / (2k)!.
  const double terms[8] = {1.0 / 12.0,          -1.0 / 720.0,
                           1.0 / 30240.0,       -1.0 / 1209600.0,
                           1.0 / 47900160.0,    -691.0 / 1307674368000.0,
                           1.0 / 74724249600.0, -3617.0 / 10670622842880000.0};
  double sum = 0;
  while (x < 10 + s) {
    sum += ::pow(x, -s);
    x += 1;
  }
  const double power = ::pow(x, -s);
  // The k-th term has the factor s (s + 1) … (s + 2k - 2) x^(1 - s - 2k).
  double factor = s * power / x, rest = 0;
  for (int k = 0; k < 8; ++k) {
    rest += terms[k] * factor;
    const double next = s + 2.0 * k + 1;
    factor *= next * (next + 1) / (x * x);
  }
  return sum + x * power / (s - 1) + power / 2 + rest;
}

// π dⁿ/dxⁿ cot πx: with c = cot πx it is πⁿ⁺¹ times a polynomial in c, of which each is -(1 + c²) times the derivative
// of the one before. A polynomial has even or odd powers alone, so that the next one takes the places between.
DEVICE double cotangent_derivative(int order, double x) {
  double coefficients[kMostOrder + 3] = {};
  coefficients[1] = kPi;
  for (int step = 1; step <= order; ++step) {
    for (int power = (step + 1) % 2; power < step + 2; power += 2) {
      const double above = (power + 1) * coefficients[power + 1];
      const double shifted = power >= 2 ? (power - 1) * coefficients[power - 1] : 0.0;
      coefficients[power] = -kPi * (above + shifted);
    }
  }
  // The fraction is exact and keeps the cotangent's digits.
  const double cotangent = 1 / ::tan(kPi * (x - ::trunc(x)));
  double sum = 0;
  for (int power = order + 1; power >= 0; --power) {
    sum = sum * cotangent + (power % 2 == (order + 1) % 2 ? coefficients[power] : 0.0);
  }
  return sum;
}

// The first derivative of `digamma`. Below a half by reflection, whose sine is of the rounded product πx, so that the
// poles but 0 give large numbers instead of infinities.
//
// Source: PyTorch's `trigamma`.
DEVICE double trigamma(double x) {
  if (x >= 0.5) return x == infinity<double>() ? 0.0 : zeta(2, x);
  const double sine = ::sin(kPi * x);
  return kPi * kPi / (sine * sine) - zeta(2, 1 - x);
}

// The same in single precision, which the sine near the poles shows.
DEVICE float trigamma(float x) {
  if (x >= 0.5f || x != x) return static_cast<float>(trigamma(static_cast<double>(x)));
  constexpr float pi = 3.14159274f;
  const float sine = ::sinf(pi * x);
  return pi * pi / (sine * sine) - static_cast<float>(trigamma(static_cast<double>(1.0f - x)));
}

// Up from zero by the Hurwitz zeta function, ψ⁽ⁿ⁾(x) = (-1)ⁿ⁺¹ n! ζ(n + 1, x); below by reflection,
// ψ⁽ⁿ⁾(x) = (-1)ⁿ ψ⁽ⁿ⁾(1 - x) - π dⁿ/dxⁿ cot πx.
DEVICE double polygamma_real(double order, double x) {
  if (order == 0) return digamma_real(x);
  if (x != x || order != order || order < 0) return not_a_number<double>();
  if (order == 1) return trigamma(x);
  const double sign = ::fmod(order, 2.0) == 1 ? 1.0 : -1.0;
  if ((x <= 0 && x == ::trunc(x)) || order > kMostOrder) return sign * infinity<double>();
  if (x == infinity<double>()) return 0;
  const int whole = static_cast<int>(order);
  double factorial = 1;
  for (int factor = 1; factor <= whole; ++factor) factorial *= factor;
  if (!(x < 0)) return sign * factorial * zeta(whole + 1.0, x);
  // An order with a fraction loses it on this side, before the sign of the other side is found.
  const double inner = whole % 2 == 1 ? 1.0 : -1.0, mirror = 1 - x;
  double above = inner * factorial;
  if (whole == 0) {
    above = digamma_real(mirror);
  } else if (whole == 1) {
    above = trigamma(mirror);
  } else {
    above *= zeta(whole + 1.0, mirror);
  }
  return -sign * above - cotangent_derivative(whole, x);
}

// The error function, 2/√π ∫₀ˣ exp(-t²) dt.
template <class T>
DEVICE T erf(T x) {
  if constexpr (kSame<T, float>) {
    return ::erff(x);
  } else {
    return ::erf(x);
  }
}

// `1 - erf(x)`, accurate where that is tiny.
template <class T>
DEVICE T erfc(T x) {
  if constexpr (kSame<T, float>) {
    return ::erfcf(x);
  } else {
    return ::erfc(x);
  }
}

// The number whose `erf` is `x`. Beyond ±1 it is NaN.
template <class T>
DEVICE T erfinv(T x) {
  if constexpr (kSame<T, float>) {
    return ::erfinvf(x);
  } else {
    return ::erfinv(x);
  }
}

// ln |Γ(x)|. Infinite at 0, -1, -2, ….
template <class T>
DEVICE T lgamma(T x) {
  return static_cast<T>(::lgamma(static_cast<double>(x)));
}

// The derivative of `lgamma`. NaN at -1, -2, …; infinite at 0, with the sign opposite to the zero's.
template <class T>
DEVICE T digamma(T x) {
  return static_cast<T>(digamma_real(static_cast<double>(x)));
}

// The `order`-th derivative of `digamma`. Infinite at 0, -1, -2, … for orders from 1, and beyond order 170.
template <class T>
DEVICE T polygamma(T order, T x) {
  if constexpr (kSame<T, float>) {
    if (order == 1) return trigamma(x);
  }
  return static_cast<T>(polygamma_real(static_cast<double>(order), static_cast<double>(x)));
}

// The angle of the point (`x`, `y`) in radians, from -π to π.
template <class T>
DEVICE T atan2(T y, T x) {
  if constexpr (kSame<T, float>) {
    return ::atan2f(y, x);
  } else {
    return ::atan2(y, x);
  }
}

// √(a² + b²) without overflow between.
template <class T>
DEVICE T hypot(T a, T b) {
  return hypot_part(a, b);
}

}  // namespace math
}  // namespace opsmith
