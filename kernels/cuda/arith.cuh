// Arithmetic and order of compute types: the twin of the host's `arith`.
//
// In: two numbers of one compute type. Out: their sum, product, order. Integers wrap; an integer divided by zero gives 0
// and a report; `bool` is logic. No two operations are fused: the compiler's option for that is off.

namespace opsmith {

// The neutral element of addition.
template <class T>
DEVICE T zero() {
  return T{};
}

// The neutral element of multiplication.
template <class T>
DEVICE T one() {
  if constexpr (kIsComplex<T>) {
    return T{1, 0};
  } else {
    return T(1);
  }
}

// The maximum of a real type: infinity for floats.
template <class T>
DEVICE T highest() {
  if constexpr (kIsFloat<T>) {
    return infinity<T>();
  } else if constexpr (kIsBool<T>) {
    return true;
  } else {
    return static_cast<T>(~static_cast<u64>(0) >> (64 - 8 * sizeof(T) + (kIsSigned<T> ? 1 : 0)));
  }
}

// The minimum of a real type: minus infinity for floats.
template <class T>
DEVICE T lowest() {
  if constexpr (kIsFloat<T>) {
    return -infinity<T>();
  } else if constexpr (kIsSigned<T>) {
    return static_cast<T>(-highest<T>() - 1);
  } else {
    return T(0);
  }
}

template <class T>
DEVICE T add(T a, T b) {
  if constexpr (kIsBool<T>) {
    return a | b;
  } else if constexpr (kIsInteger<T>) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  } else if constexpr (kIsComplex<T>) {
    return T{a.re + b.re, a.im + b.im};
  } else {
    return a + b;
  }
}

template <class T>
DEVICE T sub(T a, T b) {
  if constexpr (kIsBool<T>) {
    return a ^ b;
  } else if constexpr (kIsInteger<T>) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  } else if constexpr (kIsComplex<T>) {
    return T{a.re - b.re, a.im - b.im};
  } else {
    return a - b;
  }
}

template <class T>
DEVICE T mul(T a, T b) {
  if constexpr (kIsBool<T>) {
    return a & b;
  } else if constexpr (kIsInteger<T>) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  } else if constexpr (kIsComplex<T>) {
    return T{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  } else {
    return a * b;
  }
}

template <class T>
DEVICE T neg(T a) {
  if constexpr (kIsBool<T>) {
    return a;
  } else if constexpr (kIsInteger<T>) {
    return static_cast<T>(static_cast<Wrapping<T>>(0) - static_cast<Wrapping<T>>(a));
  } else if constexpr (kIsComplex<T>) {
    return T{-a.re, -a.im};
  } else {
    return -a;
  }
}

template <class R>
DEVICE R magnitude(R x) {
  if constexpr (kSame<R, float>) {
    return ::fabsf(x);
  } else {
    return ::fabs(x);
  }
}

// Smith's division, which neither overflows nor underflows where the quotient does not.
//
// Source: R. L. Smith, Algorithm 116, CACM 5 (1962); the order of operations is NumPy's.
template <class R>
DEVICE complex<R> divide_complex(complex<R> a, complex<R> b) {
  if (magnitude(b.re) >= magnitude(b.im)) {
    if (b.re == 0 && b.im == 0) return {a.re / magnitude(b.re), a.im / magnitude(b.im)};
    const R ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
    return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
  }
  const R ratio = b.re / b.im, scale = 1 / (b.im + b.re * ratio);
  return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}

template <class T>
DEVICE T div(T a, T b) {
  if constexpr (kIsBool<T>) {
    return a & b;
  } else if constexpr (kIsInteger<T>) {
    if (b == 0) {
      report(kZeroDivision);
      return 0;
    }
    if constexpr (kIsSigned<T>) {
      // The quotient of the lowest number and -1 wraps.
      if (b == T(-1)) return neg(a);
    }
    return static_cast<T>(a / b);
  } else if constexpr (kIsComplex<T>) {
    return divide_complex(a, b);
  } else {
    return a / b;
  }
}

// The remainder of the quotient rounded toward zero.
template <class T>
DEVICE T rem(T a, T b) {
  if constexpr (kIsBool<T>) {
    return false;
  } else if constexpr (kIsInteger<T>) {
    if (b == 0) {
      report(kZeroDivision);
      return 0;
    }
    if constexpr (kIsSigned<T>) {
      if (b == T(-1)) return 0;
    }
    return static_cast<T>(a % b);
  } else if constexpr (kSame<T, float>) {
    return ::fmodf(a, b);
  } else if constexpr (kSame<T, double>) {
    return ::fmod(a, b);
  } else {
    T quotient = divide_complex(a, b);
    if constexpr (kSame<Real<T>, float>) {
      quotient = T{::truncf(quotient.re), ::truncf(quotient.im)};
    } else {
      quotient = T{::trunc(quotient.re), ::trunc(quotient.im)};
    }
    return sub(a, mul(b, quotient));
  }
}

// Whether both numbers are the same; NaN differs from everything, 0.0 equals -0.0.
template <class T>
DEVICE bool equal(T a, T b) {
  if constexpr (kIsComplex<T>) {
    return a.re == b.re && a.im == b.im;
  } else {
    return a == b;
  }
}

// Order of real numbers. Every comparison with NaN is false; `false` comes before `true`.
template <class T>
DEVICE bool lt(T a, T b) {
  return a < b;
}
template <class T>
DEVICE bool le(T a, T b) {
  return a <= b;
}
template <class T>
DEVICE bool gt(T a, T b) {
  return a > b;
}
template <class T>
DEVICE bool ge(T a, T b) {
  return a >= b;
}

}  // namespace opsmith
