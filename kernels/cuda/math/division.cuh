// Quotients rounded to integers, and their remainders: the twin of `math::division`.
//
// In: two integers or floats. Out: a number. An integer divided by zero gives 0 and a report.

namespace opsmith {
namespace math {

// Whether truncation rounded up: there is a rest, and its sign is not the divisor's.
template <class T>
DEVICE bool rounded_up(T rest, T divisor) {
  if constexpr (kIsUnsigned<T>) {
    return false;
  } else {
    return rest != 0 && (rest < 0) != (divisor < 0);
  }
}

// The quotient rounded toward minus infinity; of floats exact even where the quotient rounds up to an integer.
//
// Source: Python's `//`.
template <class T>
DEVICE T floor_div(T a, T b) {
  if constexpr (kIsInteger<T>) {
    const T quotient = div(a, b);
    return rounded_up(rem(a, b), b) ? sub(quotient, T(1)) : quotient;
  } else {
    if (b == 0) return a / b;
    const T rest = rem(a, b);
    T quotient = (a - rest) / b;
    if (rounded_up(rest, b)) quotient -= 1;
    if (quotient == 0) return math::copysign(T(0), a / b);
    const T floor = math::floor(quotient);
    return quotient - floor > T(0.5) ? floor + 1 : floor;
  }
}

// The quotient rounded toward zero.
template <class T>
DEVICE T trunc_div(T a, T b) {
  if constexpr (kIsInteger<T>) {
    return div(a, b);
  } else {
    return math::trunc(a / b);
  }
}

// Remainder of `floor_div`; has the divisor's sign.
template <class T>
DEVICE T remainder(T a, T b) {
  const T rest = rem(a, b);
  return rounded_up(rest, b) ? add(rest, b) : rest;
}

// Remainder of `trunc_div`; has the dividend's sign.
template <class T>
DEVICE T fmod(T a, T b) {
  return rem(a, b);
}

}  // namespace math
}  // namespace opsmith
