// Counts of elements in parts of a range, and of numbers.

namespace opsmith {

// Operand 0, `bins` counts of zero: that of the part in which the element of operand 1 lies becomes one more.
template <class T>
struct Histogram {
  Strided<2, u64> places;
  double first, last;
  u64 bins;

  DEVICE void operator()(const i64 (&offsets)[2], const u64 (&)[8]) const {
    using C = Compute<T>;
    // The bounds as elements.
    const C low = to_compute(convert<T>(first)), high = to_compute(convert<T>(last));
    const C parts = to_compute(convert<T>(static_cast<double>(bins)));
    const C x = to_compute(static_cast<const T *>(places.pointers[1])[offsets[1]]);
    if (!(x >= low && x <= high)) return;
    const i64 place = truncated<i64>(to_compute(from_compute<T>((x - low) * parts / (high - low))));
    const i64 end = static_cast<i64>(bins) - 1;
    u64 *const counts = static_cast<u64 *>(const_cast<void *>(places.pointers[0]));
    atomicAdd(&counts[place < 0 ? 0 : place > end ? end : place], static_cast<u64>(1));
  }
};

// Operand 0, `bins` counts of zero: that of the number in operand 1 becomes one more.
template <class T>
struct Count {
  Strided<2, u64> places;
  u64 bins;

  DEVICE void operator()(const i64 (&offsets)[2], const u64 (&)[8]) const {
    const i64 number = static_cast<const i64 *>(places.pointers[1])[offsets[1]];
    if (number < 0 || static_cast<u64>(number) >= bins) {
      report(kIndexOutOfRange);
      return;
    }
    atomicAdd(&static_cast<u64 *>(const_cast<void *>(places.pointers[0]))[number], static_cast<u64>(1));
  }
};

}  // namespace opsmith
