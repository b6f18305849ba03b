// Borders whose elements are copies of others, and their gradients.

namespace opsmith {

enum : u32 { kMirrored = 0, kNearest = 1, kAround = 2 };

// A padded tensor: for each dimension the input's size, and how much comes before and after; negative numbers cut.
struct Border {
  i64 sizes[8], before[8], after[8];
  // Strides of the operand that is read.
  i64 strides[8];
  u64 mode;

  // The element along a dimension that a place shows, which is counted from the input's first element.
  DEVICE i64 source(u32 dim, i64 place) const {
    const i64 size = sizes[dim];
    if (mode == kNearest) return place < 0 ? 0 : place >= size ? size - 1 : place;
    if (mode == kMirrored) return place < 0 ? -place : place >= size ? 2 * (size - 1) - place : place;
    const i64 start = before[dim] < 0 ? -before[dim] : 0, end = size + (after[dim] < 0 ? after[dim] : 0);
    return place < start ? place + (end - start) : place >= end ? place - (end - start) : place;
  }

  // The places that show an element, at most `kMostShown` runs of them in ascending order; returns how many there are.
  enum : int { kMostShown = 3 };
  DEVICE int shown(u32 dim, i64 element, i64 (&first)[kMostShown], i64 (&last)[kMostShown]) const {
    const i64 size = sizes[dim], begin = -before[dim], end = size + after[dim];
    int runs = 0;
    const auto run = [&](i64 from, i64 to) {
      from = from < begin ? begin : from;
      to = to >= end ? end - 1 : to;
      if (from > to) return;
      first[runs] = from;
      last[runs++] = to;
    };
    if (mode == kNearest) {
      run(element == 0 ? begin : element, element == size - 1 ? end - 1 : element);
    } else if (mode == kMirrored) {
      if (element > 0) run(-element, -element);
      run(element, element);
      if (element < size - 1) run(2 * (size - 1) - element, 2 * (size - 1) - element);
    } else {
      const i64 kept_from = before[dim] < 0 ? -before[dim] : 0, kept_to = size + (after[dim] < 0 ? after[dim] : 0);
      const i64 count = kept_to - kept_from;
      if (element < kept_from || element >= kept_to) return 0;
      run(element - count, element - count);
      run(element, element);
      run(element + count, element + count);
    }
    return runs;
  }
};

// Each place of the output: a copy of the element that it shows.
template <class T>
struct Padded {
  Strided<1, u64> places;
  const T *input;
  Border border;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    i64 from = 0;
    for (u32 dim = 0; dim < places.dims; ++dim) {
      from += border.source(dim, static_cast<i64>(index[dim]) - border.before[dim]) * border.strides[dim];
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = input[from];
  }
};

// Each element of the input: the sum over the places that show it, each sum rounded as an element.
template <class T>
struct PaddedBackward {
  Strided<1, u64> places;
  const T *grad;
  Border border;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    i64 first[8][Border::kMostShown], last[8][Border::kMostShown], at[8];
    int runs[8], run[8];
    T sum = T{};
    bool is_shown = true;
    for (u32 dim = 0; dim < places.dims; ++dim) {
      runs[dim] = border.shown(dim, static_cast<i64>(index[dim]), first[dim], last[dim]);
      run[dim] = 0;
      at[dim] = first[dim][0];
      is_shown = is_shown && runs[dim] > 0;
    }
    while (is_shown) {
      i64 from = 0;
      for (u32 dim = 0; dim < places.dims; ++dim) from += (at[dim] + border.before[dim]) * border.strides[dim];
      sum = from_compute<T>(add(to_compute(sum), to_compute(grad[from])));
      // The next combination of places, in row-major order.
      int dim = static_cast<int>(places.dims) - 1;
      for (; dim >= 0; --dim) {
        if (at[dim] < last[dim][run[dim]]) {
          ++at[dim];
          break;
        }
        if (run[dim] + 1 < runs[dim]) {
          at[dim] = first[dim][++run[dim]];
          break;
        }
        run[dim] = 0;
        at[dim] = first[dim][0];
      }
      is_shown = dim >= 0;
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = sum;
  }
};

}  // namespace opsmith
