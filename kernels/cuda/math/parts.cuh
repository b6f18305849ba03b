// Complex numbers from their parts: the twin of `math::parts`. Last of the functions: in this namespace, the name of the
// type is hidden from here on.

namespace opsmith {
namespace math {

// The number with the real part of `real` and the real part of `imag` as its imaginary part.
template <class T>
DEVICE T complex(T real, T imag) {
  return T{real.re, imag.re};
}

}  // namespace math
}  // namespace opsmith
