// Larger, smaller, true, false: the twin of `math::order`.
//
// In: numbers of one compute type. Out: one of them, or a truth value.

namespace opsmith {
namespace math {

// Whether the number is not zero; NaN is.
template <class T>
DEVICE bool truth(T x) {
  return !equal(x, zero<T>());
}

template <class T>
DEVICE bool logical_and(T a, T b) {
  return truth(a) && truth(b);
}

template <class T>
DEVICE bool logical_or(T a, T b) {
  return truth(a) || truth(b);
}

template <class T>
DEVICE bool logical_xor(T a, T b) {
  return truth(a) != truth(b);
}

template <class T>
DEVICE bool logical_not(T x) {
  return !truth(x);
}

// `a` if the condition holds, else `b`.
template <class T>
DEVICE T select(bool condition, T a, T b) {
  return condition ? a : b;
}

// The larger number, or NaN if one is.
template <class T>
DEVICE T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}

// The smaller number, or NaN if one is.
template <class T>
DEVICE T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}

// The larger number; NaN only if both are.
template <class T>
DEVICE T fmax(T a, T b) {
  return a >= b || b != b ? a : b;
}

// The smaller number; NaN only if both are.
template <class T>
DEVICE T fmin(T a, T b) {
  return a <= b || b != b ? a : b;
}

// At least `low`. NaN in either gives NaN.
template <class T>
DEVICE T clamp_min(T x, T low) {
  return maximum(x, low);
}

// At most `high`. NaN in either gives NaN.
template <class T>
DEVICE T clamp_max(T x, T high) {
  return minimum(x, high);
}

// At least `low` and at most `high`; `high` if they are the wrong way round. NaN in any gives NaN.
template <class T>
DEVICE T clamp(T x, T low, T high) {
  return minimum(maximum(x, low), high);
}

}  // namespace math
}  // namespace opsmith
