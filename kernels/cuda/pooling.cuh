// Pooling: the mean or the largest element of windows, or of parts that together make up a dimension, and the gradients.

namespace opsmith {

// Elements that a position sees along one dimension.
struct Range {
  i64 first, end;
  // How many elements a mean divides by: border elements may count too.
  i64 counted;
};

// Positions of a window, or parts of each dimension.
struct Pooling {
  Sliding sliding;
  // Whether positions are parts, and whether elements of the border count.
  u32 adaptive, counts_border;
  // Divisor of means, 0 for the number of elements, and whether each sum is rounded as an element.
  i64 divisor;
  u64 rounds;

  // number * sizes / parts, rounded down, without a product of both.
  DEVICE static i64 scaled(u64 number, u64 sizes, u64 parts) {
    return static_cast<i64>(number * (sizes / parts) + number * (sizes % parts) / parts);
  }

  DEVICE Range range(int dim, i64 position) const {
    const u64 input = sliding.input[dim], output = sliding.output[dim];
    const i64 size = static_cast<i64>(input);
    if (adaptive != 0) {
      const u64 next = static_cast<u64>(position) + 1;
      const i64 first = scaled(static_cast<u64>(position), input, output), end = scaled(next, input, output);
      const bool is_whole = next * (input % output) % output == 0;
      const i64 past = is_whole ? end : end + 1;
      return {first, past, past - first};
    }
    const i64 start = position * sliding.stride[dim] - sliding.padding[dim], step = sliding.dilation[dim];
    const i64 reach = start + (static_cast<i64>(sliding.kernel[dim]) - 1) * step + 1;
    const i64 first = start < 0 ? start + (step - 1 - start) / step * step : start, end = reach < size ? reach : size;
    const i64 padded = size + sliding.padding[dim];
    return {first, end, counts_border != 0 ? (reach < padded ? reach : padded) - start : end - first};
  }

  // The positions, of windows without dilation, that see a place: from the first to before the last.
  DEVICE void positions(int dim, i64 place, i64 &first, i64 &last) const {
    const u64 input = sliding.input[dim], output = sliding.output[dim], at = static_cast<u64>(place);
    if (adaptive != 0) {
      first = scaled(at, output, input);
      last = scaled(at + 1, output, input) + ((at + 1) * (output % input) % input == 0 ? 0 : 1);
      return;
    }
    const i64 stride = sliding.stride[dim], from = place + sliding.padding[dim];
    const i64 before = from - static_cast<i64>(sliding.kernel[dim]) + 1;
    first = before <= 0 ? 0 : (before + stride - 1) / stride;
    last = from / stride + 1;
    if (last > static_cast<i64>(output)) last = static_cast<i64>(output);
  }

  template <class C>
  DEVICE C divided(C sum, const Range (&ranges)[3]) const {
    const i64 counted = divisor != 0 ? divisor : ranges[0].counted * ranges[1].counted * ranges[2].counted;
    return div(sum, from_scalar<C>(counted));
  }
};

// A number as an element holds it.
template <class T>
DEVICE Compute<T> held(Compute<T> value) {
  return to_compute(from_compute<T>(value));
}

template <class T>
struct Means {
  Strided<1, u64> places;
  Images<T> input;
  Pooling pooling;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    using C = Compute<T>;
    Range ranges[3];
    for (int dim = 0; dim < 3; ++dim) ranges[dim] = pooling.range(dim, static_cast<i64>(index[dim + 2]));
    const T *const plane = input.plane(index[0], index[1]);
    C sum = zero<C>();
    for (i64 a = ranges[0].first; a < ranges[0].end; ++a) {
      for (i64 b = ranges[1].first; b < ranges[1].end; ++b) {
        for (i64 c = ranges[2].first; c < ranges[2].end; ++c) {
          sum = add(sum, to_compute(plane[input.offset({a, b, c})]));
          if (pooling.rounds != 0) sum = held<T>(sum);
        }
      }
    }
    T *const out = static_cast<T *>(const_cast<void *>(places.pointers[0]));
    out[offsets[0]] = from_compute<T>(pooling.divided(sum, ranges));
  }
};

// The gradient of means: for each element the sum over the positions that see it, each sum rounded as an element.
template <class T>
struct MeansBackward {
  Strided<1, u64> places;
  Images<T> grad;
  Pooling pooling;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    using C = Compute<T>;
    i64 first[3], last[3];
    for (int dim = 0; dim < 3; ++dim) pooling.positions(dim, static_cast<i64>(index[dim + 2]), first[dim], last[dim]);
    const T *const plane = grad.plane(index[0], index[1]);
    C sum = zero<C>();
    for (i64 a = first[0]; a < last[0]; ++a) {
      for (i64 b = first[1]; b < last[1]; ++b) {
        for (i64 c = first[2]; c < last[2]; ++c) {
          const Range ranges[3] = {pooling.range(0, a), pooling.range(1, b), pooling.range(2, c)};
          const C part = held<T>(pooling.divided(to_compute(plane[grad.offset({a, b, c})]), ranges));
          sum = held<T>(add(sum, part));
        }
      }
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(sum);
  }
};

// The largest element of each position, and its number in the plane. NaN is larger than everything.
template <class T>
struct Largest {
  // Values and indices.
  Strided<2, u64> places;
  Images<T> input;
  Pooling pooling;

  DEVICE void operator()(const i64 (&offsets)[2], const u64 (&index)[8]) const {
    using C = Compute<T>;
    Range ranges[3];
    for (int dim = 0; dim < 3; ++dim) ranges[dim] = pooling.range(dim, static_cast<i64>(index[dim + 2]));
    const T *const plane = input.plane(index[0], index[1]);
    const Sliding &sliding = pooling.sliding;
    C best = lowest<C>();
    i64 place = 0;
    bool found = false;
    for (i64 a = ranges[0].first; a < ranges[0].end; a += sliding.dilation[0]) {
      for (i64 b = ranges[1].first; b < ranges[1].end; b += sliding.dilation[1]) {
        for (i64 c = ranges[2].first; c < ranges[2].end; c += sliding.dilation[2]) {
          const C value = to_compute(plane[input.offset({a, b, c})]);
          if (found && !gt(value, best) && equal(value, value)) continue;
          best = value;
          place = (a * static_cast<i64>(sliding.input[1]) + b) * static_cast<i64>(sliding.input[2]) + c;
          found = true;
        }
      }
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(best);
    static_cast<i64 *>(const_cast<void *>(places.pointers[1]))[offsets[1]] = place;
  }
};

// Puts each position into the list of the element that its index, of type `T`, names.
template <class T>
struct PutPositions {
  Strided<1, u64> places;
  Lists lists;
  // Positions and elements of a plane.
  u64 positions, elements;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    const i64 element = static_cast<const T *>(places.pointers[0])[offsets[0]];
    u64 number = 0;
    for (u32 dim = 0; dim < places.dims; ++dim) number = number * places.sizes[dim] + index[dim];
    if (element < 0 || static_cast<u64>(element) >= elements) {
      report(kIndexOutOfRange);
      return;
    }
    put(lists, number / positions * elements + static_cast<u64>(element), static_cast<i64>(number));
  }
};

// The gradient of largest elements: for each element the sum over the positions in its list, in their order.
template <class T>
struct LargestBackward {
  Strided<1, u64> places;
  Images<T> grad;
  Lists lists;
  u64 output[3];

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    using C = Compute<T>;
    u64 place = 0;
    for (u32 dim = 0; dim < places.dims; ++dim) place = place * places.sizes[dim] + index[dim];
    sort(lists, place);
    const u64 positions = count(output);
    const T *const plane = grad.plane(index[0], index[1]);
    C sum = zero<C>();
    for (i64 number = lists.heads[place]; number >= 0; number = lists.next[number]) {
      i64 position[3];
      split(static_cast<u64>(number) % positions, output, position);
      sum = add(sum, to_compute(plane[grad.offset(position)]));
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(sum);
  }
};

}  // namespace opsmith
