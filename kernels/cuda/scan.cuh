// Running folds along a dimension: sums, products, logarithms of sums of exponentials, extremes with their places.
//
// In: lines of elements, and a fold of two results, the earlier first, which is associative but for rounding. Out: for each
// element the fold of the elements up to it. A team of threads (team.cuh) has a line; each thread folds neighbouring elements
// and then the results of the threads before it. Which results are folded first depends on the block's shape alone.
//
//   OPSMITH_SCAN(opsmith_kernel, RunningSum<float>)
//
// defines a kernel with one parameter, by value: `Lines<N>` of softmax.cuh, the outputs first and the input last. Blocks have
// X by Y threads, powers of two, at most 256 in all.

namespace opsmith {

// Elements that a thread folds before it asks for the results of others.
enum : int { kScanRun = 4 };

// The folds of the threads of a team before this one, and of all.
template <class P>
struct Before {
  P earlier, all;
};

template <class Fold, class P>
DEVICE Before<P> folded_before(const Fold &fold, const P &value, const Team &team) {
  if (team.lanes == 1) return {fold.start(), value};
  __shared__ P values[kTeamThreads];
  if (!team.along_x) {
    P *const column = values + team.number;
    column[team.lane * team.teams] = value;
    __syncthreads();
    Before<P> result = {fold.start(), fold.start()};
    for (u32 lane = 0; lane < team.lanes; ++lane) {
      if (lane == team.lane) result.earlier = result.all;
      result.all = fold(result.all, column[lane * team.teams]);
    }
    __syncthreads();
    return result;
  }
  const u32 width = team.lanes < kWarp ? team.lanes : kWarp, within = team.lane % width;
  P inclusive = value;
  ROLLED
  for (u32 offset = 1; offset < width; offset *= 2) {
    const P other = shuffled_up(inclusive, offset, static_cast<int>(width));
    if (within >= offset) inclusive = fold(other, inclusive);
  }
  const P neighbour = shuffled_up(inclusive, 1, static_cast<int>(width));
  const P earlier = within == 0 ? fold.start() : neighbour;
  const u32 groups = team.lanes / width, first = team.number * groups, own = team.lane / width;
  if (within == width - 1) values[first + own] = inclusive;
  __syncthreads();
  Before<P> result = {earlier, fold.start()};
  for (u32 group = 0; group < groups; ++group) {
    if (group == own) result.earlier = fold(result.all, earlier);
    result.all = fold(result.all, values[first + group]);
  }
  __syncthreads();
  return result;
}

template <class Fold>
DEVICE void run_scan(const Lines<Fold::kOutputs + 1> &geometry) {
  using T = typename Fold::Element;
  using P = typename Fold::Partial;
  constexpr int count = Fold::kOutputs + 1;
  const Fold fold = {};
  const Team team = team_of(geometry.along_x != 0);
  const u64 line = static_cast<u64>(blockIdx.x) * team.teams + team.number;
  i64 offsets[count] = {};
  const bool exists = line < geometry.lines;
  if (exists) add_offsets(line, static_cast<int>(geometry.dims), geometry.sizes, geometry.strides, offsets);
  const T *const in = static_cast<const T *>(geometry.pointers[count - 1]) + offsets[count - 1];
  const i64 step = geometry.steps[count - 1];
  P carry = fold.start();
  for (u64 block = 0; block < geometry.size; block += static_cast<u64>(team.lanes) * kScanRun) {
    const u64 first = block + static_cast<u64>(team.lane) * kScanRun;
    P run[kScanRun];
    P last = fold.start();
    UNROLL
    for (int i = 0; i < kScanRun; ++i) {
      const u64 index = first + static_cast<u64>(i);
      if (exists && index < geometry.size) last = fold(last, fold.taken(in[static_cast<i64>(index) * step], index));
      run[i] = last;
    }
    const Before<P> before = folded_before(fold, last, team);
    const P earlier = fold(carry, before.earlier);
    UNROLL
    for (int i = 0; i < kScanRun; ++i) {
      const u64 index = first + static_cast<u64>(i);
      if (exists && index < geometry.size) fold.write(fold(earlier, run[i]), geometry, offsets, static_cast<i64>(index));
    }
    carry = fold(carry, before.all);
  }
}

// The type in which running results of compute type C are kept.
template <class C>
using Wide = choice<kSame<C, float>, double, choice<kSame<C, c32>, c64, C>>;

// Folds with one output, of the elements' type.
template <class T>
struct Running {
  using Element = T;
  using Partial = Wide<Compute<T>>;
  enum : int { kOutputs = 1 };
  DEVICE Partial taken(T element, u64) const { return convert<Partial>(to_compute(element)); }
  DEVICE void write(Partial result, const Lines<2> &geometry, const i64 *offsets, i64 index) const {
    T *const out = static_cast<T *>(const_cast<void *>(geometry.pointers[0])) + offsets[0];
    out[index * geometry.steps[0]] = from_compute<T>(convert<Compute<T>>(result));
  }
};

template <class T>
struct RunningSum : Running<T> {
  using P = typename Running<T>::Partial;
  DEVICE P start() const { return zero<P>(); }
  DEVICE P operator()(P a, P b) const { return add(a, b); }
};

template <class T>
struct RunningProduct : Running<T> {
  using P = typename Running<T>::Partial;
  DEVICE P start() const { return one<P>(); }
  DEVICE P operator()(P a, P b) const { return mul(a, b); }
};

// ln of the sum of exponentials, without overflow.
template <class T>
struct RunningLogSum : Running<T> {
  DEVICE double start() const { return -infinity<double>(); }
  DEVICE double operator()(double a, double b) const {
    if (a != a || b != b) return not_a_number<double>();
    const double low = a < b ? a : b, high = a < b ? b : a;
    if (low == high && (high == infinity<double>() || high == -infinity<double>())) return high;
    return high + ::log1p(::exp(low - high));
  }
};

// The largest or smallest element so far and its place; the last of equal ones, and NaN before all.
template <class T, bool largest>
struct RunningBest {
  using Element = T;
  struct Partial {
    T element;
    i64 index;
  };
  enum : int { kOutputs = 2 };
  DEVICE Partial start() const { return {T{}, -1}; }
  DEVICE Partial taken(T element, u64 index) const { return {element, static_cast<i64>(index)}; }
  DEVICE Partial operator()(const Partial &a, const Partial &b) const {
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    const Compute<T> old = to_compute(a.element), next = to_compute(b.element);
    if (next != next) return b;
    if (old != old) return a;
    return (largest ? next >= old : next <= old) ? b : a;
  }
  DEVICE void write(const Partial &best, const Lines<3> &geometry, const i64 *offsets, i64 index) const {
    T *const values = static_cast<T *>(const_cast<void *>(geometry.pointers[0])) + offsets[0];
    i64 *const indices = static_cast<i64 *>(const_cast<void *>(geometry.pointers[1])) + offsets[1];
    values[index * geometry.steps[0]] = best.element;
    indices[index * geometry.steps[1]] = best.index;
  }
};
template <class T>
using RunningLargest = RunningBest<T, true>;
template <class T>
using RunningSmallest = RunningBest<T, false>;

// A map of numbers, `scale` times a number and `shift`; or nothing, before the first.
template <class P>
struct Affine {
  P scale, shift;
  u64 exists;
};
struct Composed {
  template <class P>
  DEVICE Affine<P> operator()(const Affine<P> &a, const Affine<P> &b) const {
    if (a.exists == 0 || b.exists == 0) return a.exists == 0 ? b : a;
    // Behind a zero nothing counts, not even infinity.
    const P shift = equal(b.scale, zero<P>()) ? b.shift : add(b.shift, mul(b.scale, a.shift));
    return {mul(b.scale, a.scale), shift, 1};
  }
};
template <class P>
struct ComposedFromNothing : Composed {
  DEVICE Affine<P> start() const { return {zero<P>(), zero<P>(), 0}; }
};
template <class P>
struct ProductFromOne {
  DEVICE P start() const { return one<P>(); }
  DEVICE P operator()(P a, P b) const { return mul(a, b); }
};

// The gradient of a running product: each element's is the product of those before it, times the sum over places from it on of
// their gradient and the product of the elements between, which is a running composition from the end. Operands are the result,
// the gradient and the elements; `sums` has room for a number of each. Zeros need no division.
template <class T>
DEVICE void run_product_gradient(const Lines<3> &geometry, Wide<Compute<T>> *sums) {
  using P = Wide<Compute<T>>;
  const Team team = team_of(geometry.along_x != 0);
  const u64 line = static_cast<u64>(blockIdx.x) * team.teams + team.number, size = geometry.size;
  i64 offsets[3] = {};
  const bool exists = line < geometry.lines;
  if (exists) add_offsets(line, static_cast<int>(geometry.dims), geometry.sizes, geometry.strides, offsets);
  const auto number = [&](int operand, u64 at) {
    const T *const first = static_cast<const T *>(geometry.pointers[operand]) + offsets[operand];
    return convert<P>(to_compute(first[static_cast<i64>(at) * geometry.steps[operand]]));
  };
  sums += line * size;
  const ComposedFromNothing<P> composed = {};
  Affine<P> carry = composed.start();
  for (u64 block = 0; block < size; block += static_cast<u64>(team.lanes) * kScanRun) {
    const u64 first = block + static_cast<u64>(team.lane) * kScanRun;
    Affine<P> run[kScanRun], last = composed.start();
    UNROLL
    for (int i = 0; i < kScanRun; ++i) {
      const u64 back = first + static_cast<u64>(i);
      if (exists && back < size) {
        const P scale = back == 0 ? one<P>() : math::conj(number(2, size - back));
        last = composed(last, Affine<P>{scale, number(1, size - 1 - back), 1});
      }
      run[i] = last;
    }
    const Before<Affine<P>> before = folded_before(composed, last, team);
    const Affine<P> earlier = composed(carry, before.earlier);
    UNROLL
    for (int i = 0; i < kScanRun; ++i) {
      const u64 back = first + static_cast<u64>(i);
      if (exists && back < size) sums[size - 1 - back] = composed(earlier, run[i]).shift;
    }
    carry = composed(carry, before.all);
  }
  __syncthreads();
  const ProductFromOne<P> product = {};
  P all = one<P>();
  for (u64 block = 0; block < size; block += static_cast<u64>(team.lanes) * kScanRun) {
    const u64 first = block + static_cast<u64>(team.lane) * kScanRun;
    P run[kScanRun], last = one<P>();
    UNROLL
    for (int i = 0; i < kScanRun; ++i) {
      const u64 at = first + static_cast<u64>(i);
      run[i] = last;
      if (exists && at < size) last = mul(last, number(2, at));
    }
    const Before<P> before = folded_before(product, last, team);
    const P earlier = mul(all, before.earlier);
    UNROLL
    for (int i = 0; i < kScanRun; ++i) {
      const u64 at = first + static_cast<u64>(i);
      if (!exists || at >= size) continue;
      const P others = math::conj(mul(earlier, run[i]));
      const P found = mul(equal(others, zero<P>()) ? number(1, at) : sums[at], others);
      T *const out = static_cast<T *>(const_cast<void *>(geometry.pointers[0])) + offsets[0];
      out[static_cast<i64>(at) * geometry.steps[0]] = from_compute<T>(convert<Compute<T>>(found));
    }
    all = mul(all, before.all);
  }
}

}  // namespace opsmith

#define OPSMITH_SCAN(NAME, FOLD)                                                   \
  namespace opsmith {                                                              \
  using NAME##_fold = FOLD;                                                        \
  }                                                                                \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads)              \
      NAME(opsmith::Lines<opsmith::NAME##_fold::kOutputs + 1> geometry) {          \
    opsmith::run_scan<opsmith::NAME##_fold>(geometry);                             \
  }

// With two parameters: `Lines<3>`, and room for a number of each element.
#define OPSMITH_PRODUCT_GRADIENT(NAME, T)                                                    \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads)                        \
      NAME(opsmith::Lines<3> geometry, void *sums) {                                         \
    using namespace opsmith;                                                                 \
    run_product_gradient<T>(geometry, static_cast<Wide<Compute<T>> *>(sums));                \
  }
