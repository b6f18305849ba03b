// Matrices with zeros on one side of a diagonal, and with ones on it.

namespace opsmith {

// Zeros above (upper = 0) or below (upper = 1) the diagonal of the last two dimensions of operand 0, in place.
template <class T>
struct Triangle {
  Strided<1, u64> places;
  i64 diagonal;
  u64 upper;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    const i64 column = static_cast<i64>(index[places.dims - 1]), row = static_cast<i64>(index[places.dims - 2]);
    const i64 past = column - row;
    const bool kept = upper != 0 ? past >= diagonal : past <= diagonal;
    if (!kept) static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = T{};
  }
};

// Ones on the main diagonal of operand 0, a matrix, and zeros elsewhere.
template <class T>
struct Identity {
  Strided<1, u64> places;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = convert<T>(i32(index[0] == index[1]));
  }
};

}  // namespace opsmith
