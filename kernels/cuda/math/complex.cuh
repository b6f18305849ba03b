// Elementary functions of complex numbers in double precision: the twin of `math::complex`.
//
// In and out: `c64`. Branch cuts, infinities and signs of zero are those of C99 annex G.
//
// Source of the formulas: W. Kahan, "Branch cuts for complex elementary functions" (1987).

namespace opsmith {
namespace complex64 {

constexpr double kHalfPi = 1.5707963267948966, kLn2 = 0.6931471805599453;
// Above this, products of two parts overflow.
constexpr double kLarge = 1e150;

// Exchanges the parts: the mirror that turns hyperbolic functions into circular ones.
DEVICE c64 swap(c64 z) { return {z.im, z.re}; }

DEVICE bool is_infinite(double x) { return ::fabs(x) == infinity<double>(); }
DEVICE bool is_finite(double x) { return ::fabs(x) < infinity<double>(); }
DEVICE double nan() { return not_a_number<double>(); }

DEVICE c64 sqrt(c64 z) {
  double x = z.re, y = z.im;
  if (x == 0 && y == 0) return {0, y};
  if (is_infinite(y)) return {infinity<double>(), y};
  if (x != x) return {x, nan()};
  if (is_infinite(x)) {
    if (x > 0) return {x, y != y ? y : ::copysign(0.0, y)};
    return {y != y ? y : 0.0, ::copysign(infinity<double>(), y)};
  }
  // Scale by powers of four, so that the root scales by powers of two, exactly.
  const double size = ::fmax(::fabs(x), ::fabs(y));
  double scale = 1, back = 1;
  if (size > 1e300) {
    scale = 0x1p-4, back = 4;
  } else if (size < 1e-290) {
    scale = 0x1p108, back = 0x1p-54;
  }
  x *= scale, y *= scale;
  const double root = ::sqrt((::fabs(x) + ::hypot(x, y)) * 0.5), other = y / (2.0 * root);
  if (x >= 0) return {root * back, other * back};
  return {::fabs(other) * back, ::copysign(root, y) * back};
}

DEVICE c64 exp(c64 z) {
  const double x = z.re, y = z.im;
  if (y == 0) return {::exp(x), y};
  if (!is_finite(y)) {
    if (!is_infinite(x)) return {nan(), nan()};
    return x > 0 ? c64{x, nan()} : c64{0, 0};
  }
  const double sin = ::sin(y), cos = ::cos(y);
  if (x > 709 && x < 1500) {
    // Two factors, because the product may be finite where exp(x) is not.
    const double half = ::exp(x * 0.5);
    return {half * cos * half, half * sin * half};
  }
  const double size = ::exp(x);
  return {size * cos, size * sin};
}

DEVICE c64 expm1(c64 z) {
  // (eˣ - 1) cos y - 2 sin²(y/2) is the real part of eᶻ - 1 without its cancellation near 0.
  const double half = ::sin(z.im * 0.5);
  return {::expm1(z.re) * ::cos(z.im) - 2.0 * half * half, ::exp(z.re) * ::sin(z.im)};
}

DEVICE double log_modulus(c64 z) {
  const double x = ::fabs(z.re), y = ::fabs(z.im);
  const double high = x < y ? y : x, low = x < y ? x : y;
  const double modulus = ::hypot(high, low);
  // ln(1 + (|z|² - 1)) / 2: the logarithm itself would lose the digits near 1.
  if (modulus > 0.5 && modulus < 2) return 0.5 * ::log1p((high - 1) * (high + 1) + low * low);
  if (is_infinite(modulus) && is_finite(high)) return ::log(::hypot(high * 0.5, low * 0.5)) + kLn2;
  return ::log(modulus);
}

DEVICE c64 log(c64 z) { return {log_modulus(z), ::atan2(z.im, z.re)}; }

DEVICE c64 log1p(c64 z) {
  const double x = z.re, y = z.im, angle = ::atan2(y, x + 1);
  if (::hypot(x, y) >= 0.5) return {log_modulus({x + 1, y}), angle};
  const double excess = x * (2 + x) + y * y;
  return {excess == 0 ? x : 0.5 * ::log1p(excess), angle};
}

DEVICE double sign_of(double x) { return x != x ? x : ::copysign(1.0, x); }

DEVICE c64 sinh(c64 z) {
  const double x = z.re, y = z.im;
  if (y == 0) return {::sinh(x), y};
  if (!is_finite(y)) return {x == 0 || is_infinite(x) ? x : nan(), nan()};
  const double sin = ::sin(y), cos = ::cos(y);
  if (::fabs(x) > 709) {
    // Two factors of sinh |x|, where that is half of exp |x| and may overflow.
    const double half = ::exp(::fabs(x) * 0.5), first = half * 0.5;
    return {first * cos * half * sign_of(x), first * sin * half};
  }
  return {::sinh(x) * cos, ::cosh(x) * sin};
}

DEVICE c64 cosh(c64 z) {
  const double x = z.re, y = z.im;
  if (y == 0) return {::cosh(x), x != x ? y : ::copysign(0.0, x) * sign_of(y)};
  if (!is_finite(y)) return {is_infinite(x) ? infinity<double>() : nan(), x == 0 ? x : nan()};
  const double sin = ::sin(y), cos = ::cos(y);
  if (::fabs(x) > 709) {
    const double half = ::exp(::fabs(x) * 0.5), first = half * 0.5;
    return {first * cos * half, first * sin * half * sign_of(x)};
  }
  return {::cosh(x) * cos, ::sinh(x) * sin};
}

DEVICE c64 tanh(c64 z) {
  const double x = z.re, y = z.im;
  if (x != x) return {x, y == 0 ? y : nan()};
  if (is_infinite(x)) return {sign_of(x), ::copysign(0.0, is_finite(y) ? ::sin(2 * y) : y)};
  if (!is_finite(y)) return {x == 0 ? x : nan(), nan()};
  if (::fabs(x) >= 22) {
    // sinh² + cos² is e²ˣ / 4 here.
    const double small = ::exp(-::fabs(x));
    return {sign_of(x), 4 * ::sin(y) * ::cos(y) * small * small};
  }
  const double tangent = ::tan(y), beta = 1 + tangent * tangent, sinh = ::sinh(x);
  const double rho = ::sqrt(1 + sinh * sinh);
  if (is_infinite(tangent)) return {rho / sinh, 1 / tangent};
  const double scale = 1 + beta * sinh * sinh;
  return {beta * rho * sinh / scale, tangent / scale};
}

DEVICE c64 sin(c64 z) { return swap(complex64::sinh(swap(z))); }
DEVICE c64 cos(c64 z) { return complex64::cosh({-z.im, z.re}); }
DEVICE c64 tan(c64 z) { return swap(complex64::tanh(swap(z))); }

DEVICE c64 asin(c64 z) {
  const double x = z.re, y = z.im;
  if (is_infinite(x) || is_infinite(y)) {
    return {x != x ? x : ::atan2(x, ::fabs(y)), ::copysign(infinity<double>(), y)};
  }
  if (y != y && x == 0) return {x, y};
  const c64 minus = complex64::sqrt({1 - x, -y}), plus = complex64::sqrt({1 + x, y});
  return {::atan2(x, minus.re * plus.re - minus.im * plus.im), ::asinh(minus.re * plus.im - minus.im * plus.re)};
}

DEVICE c64 acos(c64 z) {
  const double x = z.re, y = z.im;
  if (is_infinite(x) || is_infinite(y)) {
    return {x != x ? x : ::atan2(::fabs(y), x), -::copysign(infinity<double>(), y)};
  }
  if (y != y && x == 0) return {kHalfPi, y};
  const c64 minus = complex64::sqrt({1 - x, -y}), plus = complex64::sqrt({1 + x, y});
  return {2 * ::atan2(minus.re, plus.re), ::asinh(plus.re * minus.im - plus.im * minus.re)};
}

DEVICE c64 atanh(c64 z) {
  const double x = z.re, y = z.im;
  if (is_infinite(x) || is_infinite(y)) return {::copysign(0.0, x), y != y ? y : ::copysign(kHalfPi, y)};
  if (y != y && x == 0) return {x, y};
  if (::fabs(x) > kLarge || ::fabs(y) > kLarge) {
    const double modulus = ::hypot(x * 0.5, y * 0.5);
    return {x / modulus / modulus * 0.25, ::copysign(kHalfPi, y)};
  }
  const double size = ::fabs(x), below = 1 - size;
  // At one, y² would vanish.
  const double re = below == 0 && ::fabs(y) < 1e-150 ? 0.5 * (kLn2 - ::log(::fabs(y)))
                                                     : 0.25 * ::log1p(4 * size / (below * below + y * y));
  return {::copysign(re, x), 0.5 * ::atan2(2 * y, below * (1 + size) - y * y)};
}

DEVICE c64 asinh(c64 z) { return swap(complex64::asin(swap(z))); }
DEVICE c64 acosh(c64 z) {
  const c64 mirror = complex64::acos(z);
  return {::fabs(mirror.im), ::copysign(mirror.re, z.im)};
}
DEVICE c64 atan(c64 z) { return swap(complex64::atanh(swap(z))); }

// Each part by itself: a product of complex numbers makes NaN of infinities.
DEVICE c64 scaled(c64 z, double factor) { return {z.re * factor, z.im * factor}; }

DEVICE c64 exp2(c64 z) { return complex64::exp(scaled(z, kLn2)); }
DEVICE c64 log2(c64 z) { return scaled(complex64::log(z), 1.4426950408889634); }
DEVICE c64 log10(c64 z) { return scaled(complex64::log(z), 0.4342944819032518); }
DEVICE c64 reciprocal(c64 z) { return divide_complex(c64{1, 0}, z); }
DEVICE c64 rsqrt(c64 z) { return reciprocal(complex64::sqrt(z)); }
DEVICE c64 sigmoid(c64 z) { return reciprocal(add(c64{1, 0}, complex64::exp(neg(z)))); }

// Powers that the logarithm does not give: of base 0, and with exponent 0.
DEVICE bool is_special_power(c64 base, c64 exponent, c64 *power) {
  if (equal(exponent, c64{0, 0})) {
    *power = {1, 0};
    return true;
  }
  if (equal(base, c64{0, 0})) {
    *power = exponent.re > 0 ? c64{0, 0} : c64{nan(), nan()};
    return true;
  }
  return false;
}

DEVICE c64 pow(c64 base, c64 exponent) {
  c64 power;
  if (is_special_power(base, exponent, &power)) return power;
  return complex64::exp(mul(exponent, complex64::log(base)));
}

// The functions below are those of FreeBSD's msun in single precision, as the host's `libm` has them: they err as the C library's do,
// where the nearest numbers would give another power.
DEVICE float atan_single(float x) {
  const u32 bits = __float_as_uint(x), size = bits & 0x7fffffffu;
  const bool is_negative = (bits >> 31) != 0;
  if (size >= 0x4c800000u) return x != x ? x : is_negative ? -1.5707962513f : 1.5707962513f;
  if (size < 0x39800000u) return x;
  float high = 0, low = 0;
  const bool is_small = size < 0x3ee00000u;
  if (!is_small) {
    x = ::fabsf(x);
    if (size < 0x3f300000u) {
      x = (2 * x - 1) / (2 + x);
      high = 4.6364760399e-01f, low = 5.0121582440e-09f;
    } else if (size < 0x3f980000u) {
      x = (x - 1) / (x + 1);
      high = 7.8539812565e-01f, low = 3.7748947079e-08f;
    } else if (size < 0x401c0000u) {
      x = (x - 1.5f) / (1 + 1.5f * x);
      high = 9.8279368877e-01f, low = 3.4473217170e-08f;
    } else {
      x = -1 / x;
      high = 1.5707962513f, low = 7.5497894159e-08f;
    }
  }
  const float z = x * x, w = z * z;
  const float odd = z * (3.3333328366e-01f + w * (1.4253635705e-01f + w * 6.1687607318e-02f));
  const float even = w * (-1.9999158382e-01f + w * -1.0648017377e-01f);
  if (is_small) return x - x * (odd + even);
  const float angle = high - ((x * (odd + even) - low) - x);
  return is_negative ? -angle : angle;
}

DEVICE float atan2_single(float y, float x) {
  if (x != x || y != y) return x + y;
  const u32 x_bits = __float_as_uint(x), y_bits = __float_as_uint(y);
  const u32 x_size = x_bits & 0x7fffffffu, y_size = y_bits & 0x7fffffffu, infinite = 0x7f800000u, far = 26u << 23;
  const bool left = (x_bits >> 31) != 0, below = (y_bits >> 31) != 0;
  const float pi = 3.1415927410f, rest = -8.7422776573e-08f;
  if (x_bits == 0x3f800000u) return atan_single(y);
  if (y_size == 0) return !left ? y : below ? -pi : pi;
  const float quarter = below ? -pi / 2 : pi / 2;
  if (x_size == 0) return quarter;
  if (x_size == infinite) {
    const float angle = y_size == infinite ? (left ? 3 * pi / 4 : pi / 4) : left ? pi : 0.0f;
    return below ? -angle : angle;
  }
  if (x_size + far < y_size || y_size == infinite) return quarter;
  const float z = left && y_size + far < x_size ? 0.0f : atan_single(::fabsf(y / x));
  if (!left) return below ? -z : z;
  return below ? (z - rest) - pi : pi - (z - rest);
}

// For arguments above -1.
DEVICE float log1p_single(float x) {
  const u32 bits = __float_as_uint(x);
  if (bits << 1 < 0x33800000u << 1 || (bits >= 0x7f800000u && bits >> 31 == 0)) return x;
  int exponent = 0;
  float rest = 0, f = x;
  // Unless 1 + x is between the roots of a half and of two.
  if (!(bits >> 31 != 0 ? bits <= 0xbe95f619u : bits < 0x3ed413d0u)) {
    const u32 sum = __float_as_uint(1 + x), moved = sum + (0x3f800000u - 0x3f3504f3u);
    exponent = static_cast<int>(moved >> 23) - 0x7f;
    const float whole = __uint_as_float(sum);
    if (exponent < 25) rest = (exponent >= 2 ? 1 - (whole - x) : x - (whole - 1)) / whole;
    f = __uint_as_float((moved & 0x007fffffu) + 0x3f3504f3u) - 1;
  }
  const float s = f / (2 + f), z = s * s, w = z * z;
  const float sum = z * (0.66666662693f + w * 0.28498786688f) + w * (0.40000972152f + w * 0.24279078841f);
  const float half = 0.5f * f * f, scale = static_cast<float>(exponent);
  return s * (half + sum) + (scale * 9.0580006145e-06f + rest) - half + f + scale * 6.9313812256e-01f;
}

// The logarithm with its parts rounded to single precision on the way, as C's `clogf` rounds them.
DEVICE c32 log_single(c32 z) {
  const float x = ::fabsf(z.re), y = ::fabsf(z.im);
  const float high = x < y ? y : x, low = x < y ? x : y;
  const double wide_high = high, wide_low = low;
  const float angle = atan2_single(z.im, z.re);
  if (high == 1) return {log1p_single(low * low) / 2, angle};
  if (high > 1 && high < 2 && low < 1) {
    const float square = (high - 1) * (high + 1);
    return {log1p_single(low >= 1.1920929e-7f ? square + low * low : square) / 2, angle};
  }
  if (high >= 0.5f && high < 1 && high * high + low * low >= 0.5f) {
    const double square = (wide_high - 1) * (wide_high + 1) + wide_low * wide_low;
    return {log1p_single(static_cast<float>(square)) / 2, angle};
  }
  const double modulus = ::hypot(wide_high, wide_low);
  const float rounded = static_cast<float>(modulus);
  // A modulus beyond single precision has a logarithm within.
  const bool beyond = rounded == infinity<float>() && high < infinity<float>();
  return {static_cast<float>(::log(beyond ? modulus : static_cast<double>(rounded))), angle};
}

DEVICE c64 widened(c32 z) { return {z.re, z.im}; }
DEVICE c32 narrowed(c64 z) { return {static_cast<float>(z.re), static_cast<float>(z.im)}; }

// The power in single precision, by a logarithm and its product with the exponent rounded as in C's `cpowf`: the angle
// and size of a large power show it.
DEVICE c32 pow_single(c32 base, c32 exponent) {
  c64 power;
  if (is_special_power(widened(base), widened(exponent), &power)) return narrowed(power);
  return narrowed(complex64::exp(widened(mul(exponent, log_single(base)))));
}

}  // namespace complex64
}  // namespace opsmith
