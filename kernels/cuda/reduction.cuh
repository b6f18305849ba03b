// Reductions: many elements to one, over any dimensions.
//
// In: a fold and a geometry. Out: an element for each output. A fold has the types `Element`, `Partial` and `Out` and the
// functions
//   Partial start() const;                                    the value of no elements
//   Partial take(Partial, Element, u64 index) const;          with one more; its number in row-major order
//   Partial operator()(Partial, Partial) const;               merged: associative and commutative but for rounding
//   Out finish(Partial, u64 count) const;                     of `count` elements
//
//   OPSMITH_REDUCTION(opsmith_kernel, Sum<float>)
//
// defines a kernel with two parameters, by value: the fold (its members are numbers of the call) and a `Reduction`. Blocks
// have 256 threads, X by Y, both powers of two; grid x is for outputs: ceil(outputs / Y) blocks if `along_x`, else
// ceil(outputs / X). Grid y may be more than 1 where outputs are few: its blocks share the elements of each output and write
// partial values to `partials` (outputs times grid y of them), which OPSMITH_REDUCTION_END's kernel merges: the same
// parameters, one thread for each output, `splits` being the first one's grid y.
//
// Choice of X for `along_x` (the innermost reduced dimension has smaller strides than the kept ones): the least power of two
// not below the number of elements, from 1 to 256. Otherwise X is 32 or more, and Y the rest.

namespace opsmith {

// Sizes, and strides in elements; the innermost dimension of each list is its last.
struct Reduction {
  u64 outputs, count;
  u32 kept, reduced;
  u32 along_x, splits;
  u64 kept_sizes[kMostDims];
  // Of the output, then of the input.
  i64 kept_strides[2][kMostDims];
  u64 reduced_sizes[kMostDims];
  i64 reduced_strides[kMostDims];
  void *out;
  const void *in;
  void *partials;
};

// The fold of a thread's elements: every `step`-th from `first` on.
template <class Fold>
DEVICE typename Fold::Partial taken(const Fold &fold, const Reduction &geometry, i64 base, u64 first, u64 step) {
  using T = typename Fold::Element;
  typename Fold::Partial partial = fold.start();
  const T *const in = static_cast<const T *>(geometry.in) + base;
  if (geometry.reduced <= 1) {
    const i64 stride = geometry.reduced == 0 ? 0 : geometry.reduced_strides[0];
    // Several accumulators, since each take waits for the one before.
    constexpr int kParts = 4;
    typename Fold::Partial parts[kParts];
    UNROLL
    for (int part = 0; part < kParts; ++part) parts[part] = fold.start();
    u64 index = first;
    constexpr int width = sizeof(T) >= 16 ? 1 : 16 / static_cast<int>(sizeof(T));
    const u64 packs = geometry.count / width;
    // Neighbouring elements with wide accesses, where each thread has some.
    if (width > 1 && stride == 1 && packs >= step && is_aligned<T>(in, width)) {
      for (u64 pack = first; pack < packs; pack += step) {
        const Pack<T, width> elements = reinterpret_cast<const Pack<T, width> *>(in)[pack];
        UNROLL
        for (int i = 0; i < width; ++i) {
          parts[i % kParts] = fold.take(parts[i % kParts], elements.elements[i], pack * width + static_cast<u64>(i));
        }
      }
      index += packs * width;
    }
    for (; index + (kParts - 1) * step < geometry.count; index += kParts * step) {
      T elements[kParts];
      UNROLL
      for (int part = 0; part < kParts; ++part) elements[part] = in[static_cast<i64>(index + part * step) * stride];
      UNROLL
      for (int part = 0; part < kParts; ++part) parts[part] = fold.take(parts[part], elements[part], index + part * step);
    }
    ROLLED
    for (; index < geometry.count; index += step) {
      parts[0] = fold.take(parts[0], in[static_cast<i64>(index) * stride], index);
    }
    return fold(fold(parts[0], parts[1]), fold(parts[2], parts[3]));
  }
  ROLLED
  for (u64 index = first; index < geometry.count; index += step) {
    i64 offsets[1] = {0};
    add_offsets(index, static_cast<int>(geometry.reduced), geometry.reduced_sizes, &geometry.reduced_strides, offsets);
    partial = fold.take(partial, in[offsets[0]], index);
  }
  return partial;
}

template <class Fold>
DEVICE void write_output(const Fold &fold, const Reduction &geometry, i64 offset, typename Fold::Partial partial) {
  static_cast<typename Fold::Out *>(geometry.out)[offset] = fold.finish(partial, geometry.count);
}

template <class Fold>
DEVICE void run_reduction(const Fold &fold, const Reduction &geometry) {
  const Team team = team_of(geometry.along_x != 0);
  const u64 output = static_cast<u64>(blockIdx.x) * team.teams + team.number;
  const bool exists = output < geometry.outputs;
  // Of the output, of the input.
  i64 offsets[2] = {0, 0};
  typename Fold::Partial partial = fold.start();
  if (exists) {
    add_offsets(output, static_cast<int>(geometry.kept), geometry.kept_sizes, geometry.kept_strides, offsets);
    const u64 first = static_cast<u64>(blockIdx.y) * team.lanes + team.lane;
    partial = taken(fold, geometry, offsets[1], first, static_cast<u64>(gridDim.y) * team.lanes);
  }
  partial = combined(partial, fold, team);
  if (!exists || team.lane != 0) return;
  if (gridDim.y == 1) {
    write_output(fold, geometry, offsets[0], partial);
  } else {
    static_cast<typename Fold::Partial *>(geometry.partials)[blockIdx.y * geometry.outputs + output] = partial;
  }
}

template <class Fold>
DEVICE void run_reduction_end(const Fold &fold, const Reduction &geometry) {
  const u64 output = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (output >= geometry.outputs) return;
  const auto *const partials = static_cast<const typename Fold::Partial *>(geometry.partials) + output;
  typename Fold::Partial partial = partials[0];
  for (u64 split = 1; split < geometry.splits; ++split) partial = fold(partial, partials[split * geometry.outputs]);
  i64 offsets[2] = {0, 0};
  add_offsets(output, static_cast<int>(geometry.kept), geometry.kept_sizes, geometry.kept_strides, offsets);
  write_output(fold, geometry, offsets[0], partial);
}

// The sum; 0 without elements. 16-bit floats accumulate in single precision.
template <class T>
struct Sum : Adding {
  using Element = T;
  using Partial = Compute<T>;
  using Out = T;
  DEVICE Partial start() const { return zero<Partial>(); }
  DEVICE Partial take(Partial sum, T element, u64) const { return add(sum, to_compute(element)); }
  DEVICE T finish(Partial sum, u64) const { return from_compute<T>(sum); }
};

// The mean of floats or complex numbers; NaN without elements.
template <class T>
struct Mean : Sum<T> {
  DEVICE T finish(Compute<T> sum, u64 count) const {
    return from_compute<T>(div(sum, from_scalar<Compute<T>>(static_cast<i64>(count))));
  }
};

// The product; 1 without elements.
template <class T>
struct Product {
  using Element = T;
  using Partial = Compute<T>;
  using Out = T;
  DEVICE Partial start() const { return one<Partial>(); }
  DEVICE Partial take(Partial product, T element, u64) const { return mul(product, to_compute(element)); }
  DEVICE Partial operator()(Partial a, Partial b) const { return mul(a, b); }
  DEVICE T finish(Partial product, u64) const { return from_compute<T>(product); }
};

// The largest or smallest element; NaN if there is one.
template <class T, bool largest>
struct Extreme : choice<largest, Larger, Smaller> {
  using Element = T;
  using Partial = Compute<T>;
  using Out = T;
  DEVICE Partial start() const {
    if constexpr (largest) {
      return lowest<Partial>();
    } else {
      return highest<Partial>();
    }
  }
  DEVICE Partial take(Partial best, T element, u64) const { return (*this)(best, to_compute(element)); }
  DEVICE T finish(Partial best, u64) const { return from_compute<T>(best); }
};
template <class T>
using Largest = Extreme<T, true>;
template <class T>
using Smallest = Extreme<T, false>;

// The element and the place of the largest or smallest one; the first of equal ones, and NaN before all.
template <class T, bool largest>
struct Best {
  using C = Compute<T>;
  struct Partial {
    C value;
    i64 index;
  };
  using Element = T;
  using Out = i64;
  DEVICE Partial start() const { return {zero<C>(), -1}; }
  DEVICE Partial take(Partial best, T element, u64 index) const {
    return (*this)(best, Partial{to_compute(element), static_cast<i64>(index)});
  }
  DEVICE Partial operator()(Partial a, Partial b) const {
    if (b.index < 0) return a;
    if (a.index < 0) return b;
    const bool first = a.index < b.index, nan_a = a.value != a.value, nan_b = b.value != b.value;
    if (nan_a || nan_b) return nan_a && (!nan_b || first) ? a : b;
    if (a.value == b.value) return first ? a : b;
    return (a.value > b.value) == largest ? a : b;
  }
  DEVICE i64 finish(Partial best, u64) const { return best.index; }
};
template <class T>
using ArgLargest = Best<T, true>;
template <class T>
using ArgSmallest = Best<T, false>;

// Whether an element is not zero, or whether all are not.
template <class T, bool all>
struct Truth {
  using Element = T;
  using Partial = bool;
  using Out = bool;
  DEVICE bool start() const { return all; }
  DEVICE bool take(bool found, T element, u64) const { return (*this)(found, math::truth(to_compute(element))); }
  DEVICE bool operator()(bool a, bool b) const { return all ? a && b : a || b; }
  DEVICE bool finish(bool found, u64) const { return found; }
};
template <class T>
using Any = Truth<T, false>;
template <class T>
using All = Truth<T, true>;

// (∑ |x|^ord)^(1 / ord), in double precision, rounded once, so that sums and powers overflow only where the norm does. The
// infinite orders are the largest and the smallest size, 0 counts the elements that are not zero.
template <class T>
struct Norm {
  using Element = T;
  using Partial = double;
  using Out = Real<T>;
  double ord;

  DEVICE bool is_extreme() const { return ord == infinity<double>() || ord == -infinity<double>(); }
  DEVICE double start() const { return ord == -infinity<double>() ? infinity<double>() : 0.0; }
  DEVICE double take(double sum, T element, u64) const {
    double size;
    if constexpr (kIsComplex<T>) {
      size = ::hypot(static_cast<double>(element.re), static_cast<double>(element.im));
    } else {
      size = ::fabs(static_cast<double>(to_compute(element)));
    }
    if (ord == 2) return sum + size * size;
    if (ord == 1 || is_extreme()) return (*this)(sum, size);
    if (ord == 0) return sum + (size != 0 ? 1 : 0);
    return sum + ::pow(size, ord);
  }
  DEVICE double operator()(double a, double b) const {
    if (!is_extreme()) return a + b;
    return ord > 0 ? math::maximum(a, b) : math::minimum(a, b);
  }
  DEVICE Out finish(double sum, u64) const {
    double norm = sum;
    if (ord == 2) {
      norm = ::sqrt(sum);
    } else if (ord != 0 && ord != 1 && !is_extreme()) {
      norm = ::pow(sum, 1 / ord);
    }
    return convert<Out>(norm);
  }
};

// The sum of squared distances from the mean, divided by the number of elements less `correction`, or its root. In double
// precision, so that a mean far from zero costs no digits; a complex number's distance is that of both parts.
template <class T, bool root>
struct Spread {
  struct OfParts {
    Moments<double> re, im;
  };
  using Element = T;
  using Partial = choice<kIsComplex<T>, OfParts, Moments<double>>;
  using Out = Real<T>;
  double correction;

  DEVICE Partial start() const { return {}; }
  DEVICE Partial take(Partial moments, T element, u64) const {
    if constexpr (kIsComplex<T>) {
      return {with(moments.re, static_cast<double>(element.re)), with(moments.im, static_cast<double>(element.im))};
    } else {
      return with(moments, static_cast<double>(to_compute(element)));
    }
  }
  DEVICE Partial operator()(const Partial &a, const Partial &b) const {
    const MergedMoments merged;
    if constexpr (kIsComplex<T>) {
      return {merged(a.re, b.re), merged(a.im, b.im)};
    } else {
      return merged(a, b);
    }
  }
  DEVICE Out finish(Partial moments, u64 count) const {
    const double divisor = static_cast<double>(count) - correction;
    double squares;
    if constexpr (kIsComplex<T>) {
      squares = moments.re.squares + moments.im.squares;
    } else {
      squares = moments.squares;
    }
    const double variance = squares / (divisor > 0 ? divisor : 0.0);
    return convert<Out>(root ? ::sqrt(variance) : variance);
  }
};
template <class T>
using Variance = Spread<T, false>;
template <class T>
using Deviation = Spread<T, true>;

}  // namespace opsmith

#define OPSMITH_REDUCTION(NAME, FOLD)                                              \
  namespace opsmith {                                                              \
  using NAME##_fold = FOLD;                                                        \
  }                                                                                \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads)              \
      NAME(opsmith::NAME##_fold fold, opsmith::Reduction geometry) {               \
    opsmith::run_reduction(fold, geometry);                                        \
  }

#define OPSMITH_REDUCTION_END(NAME, FOLD)                                          \
  namespace opsmith {                                                              \
  using NAME##_fold = FOLD;                                                        \
  }                                                                                \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads)              \
      NAME(opsmith::NAME##_fold fold, opsmith::Reduction geometry) {               \
    opsmith::run_reduction_end(fold, geometry);                                    \
  }
