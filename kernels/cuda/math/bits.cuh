// Bits of integers, signs as bits, neighbours of floats: the twins of `math::bits` and `math::sign_bit`.
//
// In: numbers of one compute type. Out: a number of it, or whether it has a minus sign. On `bool`, functions of bits are
// the logical ones.

namespace opsmith {
namespace math {

template <class T>
DEVICE T bitwise_and(T a, T b) {
  return static_cast<T>(a & b);
}

template <class T>
DEVICE T bitwise_or(T a, T b) {
  return static_cast<T>(a | b);
}

template <class T>
DEVICE T bitwise_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}

template <class T>
DEVICE T bitwise_not(T x) {
  if constexpr (kIsBool<T>) {
    return !x;
  } else {
    return static_cast<T>(~x);
  }
}

// Bits moved up. A count that is negative or not less than the width gives 0.
template <class T>
DEVICE T shift_left(T x, T by) {
  if constexpr (kIsBool<T>) {
    return x && !by;
  } else {
    // A negative count is huge as an unsigned one, so one comparison refuses both.
    const u64 count = static_cast<u64>(by);
    return count < 8 * sizeof(T) ? static_cast<T>(static_cast<Wrapping<T>>(x) << count) : T(0);
  }
}

// Bits moved down, the sign repeated. A count that is negative or not less than the width leaves only the sign: 0 or -1.
template <class T>
DEVICE T shift_right(T x, T by) {
  if constexpr (kIsBool<T>) {
    return x && !by;
  } else {
    const u64 count = static_cast<u64>(by), last = 8 * sizeof(T) - 1;
    if (count <= last) return static_cast<T>(x >> count);
    return kIsSigned<T> ? static_cast<T>(x >> last) : T(0);
  }
}

// Whether the number has a minus sign, as -0 has.
template <class T>
DEVICE bool sign_bit(T x) {
  if constexpr (kSame<T, float>) {
    return __float_as_int(x) < 0;
  } else if constexpr (kSame<T, double>) {
    return __double_as_longlong(x) < 0;
  } else if constexpr (kIsSigned<T>) {
    return x < 0;
  } else {
    return false;
  }
}

// The size of `a` with the sign of `b`, that of a zero or NaN too.
template <class T>
DEVICE T copysign(T a, T b) {
  if constexpr (kSame<T, float>) {
    return ::copysignf(a, b);
  } else {
    return ::copysign(a, b);
  }
}

// The next number after `a` on the way to `b`, which is given back if both are equal.
template <class T>
DEVICE T next_after(T a, T b) {
  if (a != a || b != b) return a + b;
  if (a == b) return b;
  // The size grows by one unit away from zero and shrinks toward it; from zero there is only away.
  const bool up = a < b, away = a == 0 || (a > 0) == up;
  if constexpr (kSame<T, float>) {
    const u32 bits = a == 0 ? (up ? 0u : 0x80000000u) : __float_as_uint(a);
    return __uint_as_float(away ? bits + 1u : bits - 1u);
  } else {
    const u64 bits = a == 0 ? (up ? 0ull : 0x8000000000000000ull) : static_cast<u64>(__double_as_longlong(a));
    return __longlong_as_double(static_cast<i64>(away ? bits + 1u : bits - 1u));
  }
}

}  // namespace math
}  // namespace opsmith
