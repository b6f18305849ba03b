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

}  // namespace opsmith
