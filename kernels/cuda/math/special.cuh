// Special functions of real floats, and functions of two of them: the twins of
// `math::special`, `math::polygamma` and `math::bessel`.
//
// In: numbers in single or double precision. Out: a number. In single precision, `lgamma`, `digamma`, `polygamma` and
// Bessel functions are rounded from double precision, as on the host: near their roots single precision has no digits left.

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

// The sum of Chebyshev polynomials, by Clenshaw's recurrence; coefficients from the highest degree down.
template <int N>
DEVICE double chebyshev(double t, const double (&coefficients)[N]) {
  double above = 0, next = 0;
  for (int at = 0; at < N; ++at) {
    const double sum = 2 * t * next - above + coefficients[at];
    above = next;
    next = sum;
  }
  return next - t * above;
}

// The modified Bessel function of order 0 times e^-|x|: series up to 8 and beyond.
DEVICE double scaled_bessel_0(double x) {
  const double size = ::fabs(x);
  if (size <= 1) {
    // The power series, where a sum of Chebyshev polynomials cancels.
    double sum = 1;
    for (int k = 11; k >= 1; --k) sum = 1 + sum * (x * x / 4) / (k * k);
    return ::exp(-size) * sum;
  }
  if (size <= 8) {
    const double small[29] = {
        3.3307945188222384e-17, -2.431279846547955e-16, 1.715391285555133e-15,
        -1.1685332877993451e-14, 7.676185498604936e-14, -4.856446783111929e-13,
        2.95505266312964e-12, -1.726826291441556e-11, 9.675809035373237e-11,
        -5.189795601635263e-10, 2.6598237246823866e-09, -1.300025009986248e-08,
        6.046995022541919e-08, -2.670793853940612e-07, 1.1173875391201037e-06,
        -4.4167383584587505e-06, 1.6448448070728896e-05, -5.754195010082104e-05,
        0.00018850288509584165, -0.0005763755745385824, 0.0016394756169413357,
        -0.004324309995050576, 0.010546460394594998, -0.02373741480589947, 0.04930528423967071,
        -0.09490109704804764, 0.17162090152220877, -0.3046826723431984, 0.33839763720473803};
    return chebyshev(size / 4 - 1, small);
  }
  const double large[25] = {
        -7.233180487874754e-18, -4.830504485944182e-18, 4.46562142029676e-17,
        3.461222867697461e-17, -2.8276239805165836e-16, -3.425485619677219e-16,
        1.7725601330565263e-15, 3.8116806693526224e-15, -9.554846698828307e-15,
        -4.150569347287222e-14, 1.54008621752141e-14, 3.8527783827421426e-13,
        7.180124451383666e-13, -1.7941785315068062e-12, -1.3215811840447713e-11,
        -3.1499165279632416e-11, 1.1889147107846439e-11, 4.94060238822497e-10,
        3.3962320257083865e-09, 2.266668990498178e-08, 2.0489185894690638e-07,
        2.8913705208347567e-06, 6.889758346916825e-05, 0.0033691164782556943, 0.4022452055070544};
  const double value = chebyshev(16 / size - 1, large) / ::sqrt(size);
  return value;
}

// I0(x).
template <class T>
DEVICE T i0(T x) {
  const double wide = static_cast<double>(x);
  return static_cast<T>(::exp(::fabs(wide)) * scaled_bessel_0(wide));
}

// I0(x) e^-|x|, without overflow.
template <class T>
DEVICE T i0e(T x) {
  return static_cast<T>(scaled_bessel_0(static_cast<double>(x)));
}

// The modified Bessel function of order 1 times e^-|x|: series up to 8 and beyond.
DEVICE double scaled_bessel_1(double x) {
  const double size = ::fabs(x);
  if (size <= 8) {
    const double small[29] = {
        2.7779141127610464e-18, -2.111421214358166e-17, 1.5536319577362005e-16,
        -1.1055969477353862e-15, 7.600684294735408e-15, -5.042185504727912e-14,
        3.223793365945575e-13, -1.9839743977649436e-12, 1.1736186298890901e-11,
        -6.663489723502027e-11, 3.625590281552117e-10, -1.8872497517228294e-09,
        9.381537386495773e-09, -4.445059128796328e-08, 2.0032947535521353e-07,
        -8.568720264695455e-07, 3.4702513081376785e-06, -1.3273163656039436e-05,
        4.781565107550054e-05, -0.00016176081582589674, 0.0005122859561685758,
        -0.0015135724506312532, 0.004156422944312888, -0.010564084894626197,
        0.024726449030626516, -0.05294598120809499, 0.1026436586898471, -0.17641651835783406,
        0.12629359322181682};
    return x * chebyshev(size / 4 - 1, small);
  }
  const double large[25] = {
        7.517296310842105e-18, 4.414348323071708e-18, -4.6503053684893586e-17,
        -3.209525921993424e-17, 2.96262899764595e-16, 3.3082023109209285e-16,
        -1.8803547755107825e-15, -3.8144030724370075e-15, 1.0420276984128802e-14,
        4.272440016711951e-14, -2.1015418427726643e-14, -4.0835511110921974e-13,
        -7.198551776245908e-13, 2.0356285441470896e-12, 1.4125807436613782e-11,
        3.2526035830154884e-11, -1.8974958123505413e-11, -5.589743462196584e-10,
        -3.835380385964237e-09, -2.6314688468895196e-08, -2.512236237870209e-07,
        -3.882564808877691e-06, -0.00011058893876262371, -0.009761097491361469,
        0.38928811750914005};
  const double value = chebyshev(16 / size - 1, large) / ::sqrt(size);
  return ::copysign(value, x);
}

// I1(x).
template <class T>
DEVICE T i1(T x) {
  const double wide = static_cast<double>(x);
  return static_cast<T>(::exp(::fabs(wide)) * scaled_bessel_1(wide));
}

// I1(x) e^-|x|, without overflow.
template <class T>
DEVICE T i1e(T x) {
  return static_cast<T>(scaled_bessel_1(static_cast<double>(x)));
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
