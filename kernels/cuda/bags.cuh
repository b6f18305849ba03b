// Sums, means and maxima of rows of a table, a bag of indices at a time.

namespace opsmith {

enum : u32 { kSumOfBag, kMeanOfBag, kMaximumOfBag };

// Indices, and where each bag starts; the last one ends at the last start if `ends`, else with the indices. All lists have
// steps of their own.
struct Bags {
  const i64 *indices, *starts;
  i64 index_step, start_step;
  u64 count, bags, rows;
  i64 padding;

  DEVICE i64 start(u64 bag) const { return starts[static_cast<i64>(bag) * start_step]; }

  // Indices of the last bag go on to the end of all: a start behind the last bag only limits them from below.
  DEVICE i64 end(u64 bag) const {
    const i64 end = bag + 1 < bags ? start(bag + 1) : static_cast<i64>(count);
    const bool is_right = start(bag) >= 0 && start(bag) <= end && end <= static_cast<i64>(count) && (bag != 0 || start(0) == 0);
    if (is_right) return end;
    report(kIndexOutOfRange);
    return start(bag);
  }
};

// Columns of bags: operands are the results, the columns of the table, and the origins of maxima.
template <class T>
struct BagColumns {
  Strided<3, u64> places;
  Bags bags;
  i64 row_step;
  const T *factors;
  i64 factor_step;
  u32 mode, padding;

  DEVICE void operator()(const i64 (&offsets)[3], const u64 (&index)[8]) const {
    using C = Compute<T>;
    const T *const column = static_cast<const T *>(places.pointers[1]) + offsets[1];
    C value = zero<C>();
    i64 found = 0, origin = 0;
    for (i64 at = bags.start(index[0]), end = bags.end(index[0]); at < end; ++at) {
      const i64 row = bags.indices[at * bags.index_step];
      if (row < 0 || row >= static_cast<i64>(bags.rows)) {
        report(kIndexOutOfRange);
        continue;
      }
      if (row == bags.padding) continue;
      ++found;
      const C element = to_compute(column[row * row_step]);
      if (mode != kMaximumOfBag) {
        value = add(value, mul(factors != nullptr ? to_compute(factors[at * factor_step]) : one<C>(), element));
      } else if (found == 1 || gt(element, value)) {
        value = element;
        origin = row;
      }
    }
    if (mode == kMeanOfBag) value = div(value, from_scalar<C>(found > 1 ? found : static_cast<i64>(1)));
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(value);
    if (mode == kMaximumOfBag) static_cast<i64 *>(const_cast<void *>(places.pointers[2]))[offsets[2]] = origin;
  }
};

// The number of indices of each bag, operand 0, for means and maxima.
template <class T>
struct BagSizes {
  Strided<1, u64> places;
  Bags bags;
  u64 mode;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    T found = 0;
    for (i64 at = bags.start(index[0]), end = bags.end(index[0]); at < end; ++at) {
      found += bags.indices[at * bags.index_step] != bags.padding;
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = mode == kSumOfBag ? 0 : found;
  }
};

// The bag of each index, operand 0: the last that starts at it or before.
template <class T>
struct BagOf {
  Strided<1, u64> places;
  Bags bags;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    u64 low = 0, high = bags.bags;
    while (low < high) {
      const u64 middle = low + (high - low) / 2;
      if (bags.start(middle) <= static_cast<i64>(index[0])) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = static_cast<T>(low) - 1;
  }
};

}  // namespace opsmith
