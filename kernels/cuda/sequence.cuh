// Elements that follow from their positions alone, and places in sequences.

namespace opsmith {

// A number of the host as an element: integers truncate and wrap, floats round once.
template <class T, class From>
DEVICE T element_of(From value) {
  if constexpr (kIsInteger<T>) {
    return from_scalar<T>(value);
  } else {
    return convert<T>(value);
  }
}

// The position along the only dimension.
DEVICE i64 position(const Strided<1, u64> &places, const u64 (&index)[8]) {
  return places.dims == 0 ? 0 : static_cast<i64>(index[0]);
}

// Numbers in steps: of integers from the first pair, else from the second; from device memory if `given` is not null.
template <class T>
struct Sequence {
  Strided<1, u64> places;
  i64 start, step;
  double real_start, real_step;
  const i64 *given_start, *given_step;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    const i64 at = position(places, index);
    const i64 first = given_start != nullptr ? *given_start : start, by = given_step != nullptr ? *given_step : step;
    T *const out = static_cast<T *>(const_cast<void *>(places.pointers[0])) + offsets[0];
    if constexpr (kIsInteger<T> || kIsBool<T>) {
      *out = element_of<T>(add(first, mul(at, by)));
    } else if (given_start != nullptr) {
      *out = element_of<T>(add(first, mul(at, by)));
    } else {
      *out = element_of<T>(real_start + static_cast<double>(at) * real_step);
    }
  }
};

// Evenly spaced numbers, or the powers of a base to them. The second half is counted from the end.
template <class T>
struct Spaced {
  Strided<1, u64> places;
  c64 start, end, step;
  double base;
  u64 powers;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    const i64 at = position(places, index), count = static_cast<i64>(places.count);
    c64 value = start;
    if (at != 0) {
      const bool from_end = at >= count / 2;
      const double steps = static_cast<double>(from_end ? count - 1 - at : at);
      const c64 way = {step.re * steps, step.im * steps};
      value = from_end ? sub(end, way) : add(start, way);
    }
    if (powers != 0) {
      value = value.im == 0 ? c64{::pow(base, value.re), 0} : math::pow(c64{base, 0}, value);
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = element_of<T>(value);
  }
};

// The row and the column of each element of a triangle: operand 0 has two rows.
template <class T>
struct TriangleIndices {
  Strided<1, u64> places;
  i64 rows, columns, diagonal;
  u64 upper;

  // Elements of the rows before one. Row r has clamp(r + diagonal + 1, 0, columns) in the lower triangle, and in the upper one
  // those from column clamp(r + diagonal, 0, columns) on. Numbers wrap, and differences of them are right.
  DEVICE u64 before(i64 row) const {
    if (upper == 0) return sum_to(row + diagonal + 1) - sum_to(diagonal + 1);
    return static_cast<u64>(row) * static_cast<u64>(columns) - (sum_to(row + diagonal) - sum_to(diagonal));
  }

  // The sum of clamp(i, 0, columns) for all i below `end`.
  DEVICE u64 sum_to(i64 end) const {
    if (end <= 0) return 0;
    const u64 width = static_cast<u64>(columns), last = static_cast<u64>(end);
    if (last <= width) return half_of_product(last);
    return half_of_product(width) + (last - width) * width;
  }

  // x (x - 1) / 2
  DEVICE u64 half_of_product(u64 x) const { return x % 2 == 0 ? x / 2 * (x - 1) : x * ((x - 1) / 2); }

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    const i64 at = static_cast<i64>(index[1]);
    i64 low = 0, high = rows - 1;
    while (low < high) {
      const i64 middle = low + (high - low + 1) / 2;
      if (before(middle) <= static_cast<u64>(at)) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const i64 first = upper == 0 || low + diagonal < 0 ? 0 : low + diagonal;
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] =
        element_of<T>(index[0] == 0 ? low : first + at - static_cast<i64>(before(low)));
  }
};

// The place of each element, operand 1, in the sequence in ascending order that operand 2 starts, as operand 0.
template <class T>
struct PlaceIn {
  Strided<3, u64> places;
  i64 length, step;
  u64 right;

  DEVICE void operator()(const i64 (&offsets)[3], const u64 (&)[8]) const {
    const auto value = to_compute(static_cast<const T *>(places.pointers[1])[offsets[1]]);
    const T *const sequence = static_cast<const T *>(places.pointers[2]) + offsets[2];
    i64 low = 0, high = length;
    while (low < high) {
      const i64 middle = low + (high - low) / 2;
      const auto element = to_compute(sequence[middle * step]);
      if (right != 0 ? !gt(element, value) : !ge(element, value)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    static_cast<i64 *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = low;
  }
};

// The sum of the elements of windows that show an element, operand 0, along dimension `dim`; operand 1 is the windows, whose
// own steps are `window_step` from one to the next and `inner_step` inside.
template <class T>
struct Windows {
  Strided<2, u64> places;
  i64 windows, size, step, window_step, inner_step;
  u64 dim;

  DEVICE void operator()(const i64 (&offsets)[2], const u64 (&index)[8]) const {
    const i64 at = places.dims == 0 ? 0 : static_cast<i64>(index[dim]);
    const T *const source = static_cast<const T *>(places.pointers[1]) + offsets[1];
    auto sum = zero<Compute<T>>();
    i64 first = at < size ? 0 : (at - size) / step + 1;
    for (i64 window = first; window < windows && window * step <= at; ++window) {
      sum = add(sum, to_compute(source[window * window_step + (at - window * step) * inner_step]));
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(sum);
  }
};

// Operand 1 as operand 0, divided by how often its memory is shown, operand 2, where it is several times.
template <class T>
struct Shared {
  Strided<3, u64> places;

  DEVICE void operator()(const i64 (&offsets)[3], const u64 (&)[8]) const {
    const double count = static_cast<const double *>(places.pointers[2])[offsets[2]];
    const auto value = to_compute(static_cast<const T *>(places.pointers[1])[offsets[1]]);
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] =
        from_compute<T>(count > 1 ? div(value, from_scalar<Compute<T>>(count)) : value);
  }
};

}  // namespace opsmith
