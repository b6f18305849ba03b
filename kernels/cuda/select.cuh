// The element of a line that has a place in order, and the one that occurs most often.
//
// In: lines of real numbers. Out: for each line, an element and its place along the line. A block has a line. Order is that of
// keys: NaN has the largest, minus zero that of zero; equal elements are in order of their places.
//
//   OPSMITH_SELECT(opsmith_kernel, Median<float>)
//
// defines a kernel with two parameters, by value: `Lines<3>` of softmax.cuh (values, indices, input; `indices` may be null), and
// the rank that `KthValue` looks for, or the address of the entries in which `Mode` looks. 256 threads, a block for each line.

namespace opsmith {

template <class T>
struct Key {
  using C = Compute<T>;
  enum : int { kBits = 8 * static_cast<int>(sizeof(C)) };
  static constexpr u64 kNaN = ~static_cast<u64>(0) >> (64 - kBits);

  // A number that is larger for a larger element.
  DEVICE static u64 of(T element) {
    const C x = to_compute(element);
    if constexpr (kSame<C, float>) {
      if (x != x) return kNaN;
      const u32 bits = __float_as_uint(x + 0.0f);
      return (bits >> 31) == 0 ? bits | 0x80000000u : ~bits;
    } else if constexpr (kSame<C, double>) {
      if (x != x) return kNaN;
      const u64 bits = static_cast<u64>(__double_as_longlong(x + 0.0));
      return (bits >> 63) == 0 ? bits | (static_cast<u64>(1) << 63) : ~bits;
    } else if constexpr (kIsSigned<C>) {
      return (static_cast<u64>(static_cast<i64>(x)) ^ (static_cast<u64>(1) << (kBits - 1))) & kNaN;
    } else {
      return static_cast<u64>(x);
    }
  }
  DEVICE static bool is_nan(T element) {
    const C x = to_compute(element);
    return x != x;
  }
};

// Ranks, from 0 on, of lines with so many elements, of which some are numbers.
template <class T>
struct Median {
  using Element = T;
  DEVICE static u64 rank(u64 size, u64 numbers, u64) { return numbers < size ? numbers : (numbers - 1) / 2; }
};
template <class T>
struct NanMedian {
  using Element = T;
  DEVICE static u64 rank(u64, u64 numbers, u64) { return numbers == 0 ? 0 : (numbers - 1) / 2; }
};
template <class T>
struct KthValue {
  using Element = T;
  DEVICE static u64 rank(u64, u64, u64 given) { return given; }
};

// A digit of the wanted entry: the one in whose entries the rank falls; `rank` becomes that among them.
DEVICE u32 digit_of_rank(const u64 *counts, u64 &rank) {
  u32 digit = 0;
  while (digit < 255 && rank >= counts[digit]) rank -= counts[digit++];
  return digit;
}

// Finds the digits of the entry from the highest on, eight bits at a time: first those of its key, then those of its place.
template <class Rule>
DEVICE u64 selected_place(const Rule &, const typename Rule::Element *in, i64 step, u64 size, u64 given) {
  using T = typename Rule::Element;
  __shared__ u64 counts[256];
  u64 numbers = 0;
  for (u64 i = threadIdx.x; i < size; i += blockDim.x) numbers += Key<T>::is_nan(in[static_cast<i64>(i) * step]) ? 0 : 1;
  numbers = combined(numbers, Adding(), team_of(true));
  u64 rank = Rule::rank(size, numbers, given), key = 0, place = 0;
  int place_bits = 0;
  while (place_bits < 64 && (size - 1) >> place_bits != 0) place_bits += 8;
  for (int shift = Key<T>::kBits + place_bits - 8; shift >= 0; shift -= 8) {
    counts[threadIdx.x] = 0;
    __syncthreads();
    const bool of_key = shift >= place_bits;
    const int within = of_key ? shift - place_bits : shift;
    for (u64 i = threadIdx.x; i < size; i += blockDim.x) {
      const u64 own = Key<T>::of(in[static_cast<i64>(i) * step]);
      // Bits above the digit, of which there are none at first.
      const int above = within + 8;
      const bool fits = of_key ? above >= 64 || own >> above == key : own == key && (above >= 64 || i >> above == place);
      if (fits) atomicAdd(&counts[((of_key ? own : i) >> within) & 255], static_cast<u64>(1));
    }
    __syncthreads();
    const u64 digit = digit_of_rank(counts, rank);
    if (of_key) {
      key = key << 8 | digit;
    } else {
      place = place << 8 | digit;
    }
    __syncthreads();
  }
  return place;
}

template <class T>
struct Mode {
  using Element = T;
};

struct Often {
  u64 count, key, place;
};
// More often, then smaller; the last of equal numbers, and the first NaN.
template <class T>
struct MoreOften {
  DEVICE Often operator()(const Often &a, const Often &b) const {
    if (a.count != b.count) return a.count > b.count ? a : b;
    if (a.key != b.key) return a.key < b.key ? a : b;
    const bool is_nan = kIsFloat<Compute<T>> && a.key == Key<T>::kNaN;
    return (a.place > b.place) != is_nan ? a : b;
  }
};

// `given` is the address of the entries of all lines in order (order.cuh); the last of each run of equal ones knows its length.
template <class T>
DEVICE u64 selected_place(const Mode<T> &, const T *, i64, u64 size, u64 given) {
  const MoreOften<T> better = {};
  const Entry *const entries = reinterpret_cast<const Entry *>(given) + blockIdx.x * size;
  Often best = {0, 0, 0};
  for (u64 i = threadIdx.x; i < size; i += blockDim.x) {
    const Entry entry = entries[i];
    // NaN differs from itself.
    const bool is_nan = kIsFloat<Compute<T>> && entry.key == Key<T>::kNaN;
    if (!is_nan && i + 1 < size && entries[i + 1].key == entry.key) continue;
    u64 first = is_nan ? i : 0, end = i;
    while (first < end) {
      const u64 middle = first + (end - first) / 2;
      if (entries[middle].key < entry.key) {
        first = middle + 1;
      } else {
        end = middle;
      }
    }
    best = better(best, Often{i + 1 - first, entry.key, entry.place});
  }
  return combined(best, better, team_of(true)).place;
}

template <class Rule>
DEVICE void run_select(const Lines<3> &geometry, u64 given) {
  using T = typename Rule::Element;
  i64 offsets[3] = {};
  add_offsets(blockIdx.x, static_cast<int>(geometry.dims), geometry.sizes, geometry.strides, offsets);
  const T *const in = static_cast<const T *>(geometry.pointers[2]) + offsets[2];
  const i64 step = geometry.steps[2];
  const u64 place = selected_place(Rule(), in, step, geometry.size, given);
  if (threadIdx.x != 0) return;
  static_cast<T *>(const_cast<void *>(geometry.pointers[0]))[offsets[0]] = in[static_cast<i64>(place) * step];
  if (geometry.pointers[1] != nullptr) {
    static_cast<i64 *>(const_cast<void *>(geometry.pointers[1]))[offsets[1]] = static_cast<i64>(place);
  }
}

}  // namespace opsmith

#define OPSMITH_SELECT(NAME, RULE)                                                 \
  namespace opsmith {                                                              \
  using NAME##_rule = RULE;                                                        \
  }                                                                                \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads)              \
      NAME(opsmith::Lines<3> geometry, opsmith::u64 given) {                       \
    opsmith::run_select<opsmith::NAME##_rule>(geometry, given);                    \
  }
