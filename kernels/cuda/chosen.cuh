// Kernels with a thread for each index that looks along a line.

namespace opsmith {

// Operand 0: the element of the line of operand 1 at the place in operand 2.
template <class T>
struct AtPlace {
  Strided<3, u64> places;
  i64 step;

  DEVICE void operator()(const i64 (&offsets)[3], const u64 (&)[8]) const {
    const i64 place = static_cast<const i64 *>(places.pointers[2])[offsets[2]];
    const T element = static_cast<const T *>(places.pointers[1])[offsets[1] + place * step];
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = element;
  }
};

// The gradient of a running product along the dimension `dim`, whose operands are the result, the gradient and the elements.
// The sum over later places of their gradient times the product without the element, exact where elements are zero.
template <class T>
struct CumprodBackward {
  Strided<3, u64> places;
  u64 dim;

  DEVICE void operator()(const i64 (&offsets)[3], const u64 (&index)[8]) const {
    using C = Compute<T>;
    const bool exists = dim < places.dims;
    const i64 place = exists ? static_cast<i64>(index[dim]) : 0;
    const i64 length = exists ? static_cast<i64>(places.sizes[dim]) : 1;
    const i64 of_grad = exists ? places.strides[1][dim] : 0, of_element = exists ? places.strides[2][dim] : 0;
    const T *const grad = static_cast<const T *>(places.pointers[1]) + offsets[1];
    const T *const elements = static_cast<const T *>(places.pointers[2]) + offsets[2];
    C others = one<C>(), sum = zero<C>();
    for (i64 back = place; back > 0; --back) others = mul(others, to_compute(elements[-back * of_element]));
    for (i64 later = 0; later < length - place; ++later) {
      if (later > 0) others = mul(others, to_compute(elements[later * of_element]));
      sum = add(sum, mul(to_compute(grad[later * of_grad]), math::conj(others)));
      if (equal(others, zero<C>())) break;
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(sum);
  }
};

}  // namespace opsmith
