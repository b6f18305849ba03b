// Softmax and its logarithm along a dimension, and their gradients.
//
// In: lines of elements, and a rule. Out: as many lines. A team of threads has a line (team.cuh), and reads it twice.
//
//   OPSMITH_SOFTMAX(opsmith_kernel, Softmax<float>)
//   OPSMITH_SOFTMAX(opsmith_kernel, SoftmaxBackward<float>)
//
// (and `Log…`) define a kernel with one parameter, by value: `Lines<2>` (team.cuh) of output and input, or `Lines<3>` of the
// gradient of the input, that of the output, and the output. Blocks have 256 threads, X by Y, both powers of two. `along_x`,
// where the elements of a line lie close together: X threads a line, ceil(lines / Y) blocks; else Y threads a line,
// ceil(lines / X) blocks, X 32 or more.

namespace opsmith {

// The largest number and the sum of exponentials of the distances from it. Minus infinity adds nothing; infinity and NaN
// make the sum NaN.
template <class C>
struct Exponentials {
  C largest, sum;
};

template <class C>
DEVICE Exponentials<C> with(Exponentials<C> sums, C x) {
  if (x == -infinity<C>()) return sums;
  // Of infinity, the difference from itself is NaN.
  if (x > sums.largest) return {x, sums.sum * math::exp(sums.largest - x) + (1 + (x - x))};
  return {sums.largest, sums.sum + math::exp(x - sums.largest)};
}

// Those of a team's threads together. Each sum is scaled once, so that a number for each thread gives no further rounding.
template <class C>
DEVICE Exponentials<C> all_of(const Team &team, const Exponentials<C> &sums) {
  const C largest = combined(sums.largest, Larger(), team);
  // Where there is no number, the sum is 0 or NaN.
  const C scaled = sums.largest == largest ? sums.sum : sums.sum * math::exp(sums.largest - largest);
  return {largest, combined(scaled, Adding(), team)};
}

// exp(x) along a line, divided by its sum, or the logarithm of that.
template <class T, bool logarithm>
struct SoftmaxRule {
  using Element = T;
  using C = Compute<T>;
  enum : int { kOperands = 2 };

  DEVICE void operator()(const Team &team, u64 size, T *out, const i64 *steps, const T *const *inputs) const {
    const T *const x = inputs[0];
    Exponentials<C> sums = {-infinity<C>(), 0};
    for (u64 i = team.lane; i < size; i += team.lanes) sums = with(sums, to_compute(x[static_cast<i64>(i) * steps[1]]));
    sums = all_of(team, sums);
    const C factor = logarithm ? math::log(sums.sum) : 1 / sums.sum;
    for (u64 i = team.lane; i < size; i += team.lanes) {
      const C distance = to_compute(x[static_cast<i64>(i) * steps[1]]) - sums.largest;
      out[static_cast<i64>(i) * steps[0]] = from_compute<T>(logarithm ? distance - factor : math::exp(distance) * factor);
    }
  }
};
template <class T>
using Softmax = SoftmaxRule<T, false>;
template <class T>
using LogSoftmax = SoftmaxRule<T, true>;

// The gradient: `(grad - sum(grad * y)) * y`, or of the logarithm `grad - exp(y) * sum(grad)`.
template <class T, bool logarithm>
struct SoftmaxBackwardRule {
  using Element = T;
  using C = Compute<T>;
  enum : int { kOperands = 3 };

  DEVICE void operator()(const Team &team, u64 size, T *out, const i64 *steps, const T *const *inputs) const {
    const T *const grad = inputs[0], *const y = inputs[1];
    C sum = 0;
    for (u64 i = team.lane; i < size; i += team.lanes) {
      const C term = to_compute(grad[static_cast<i64>(i) * steps[1]]);
      sum += logarithm ? term : term * to_compute(y[static_cast<i64>(i) * steps[2]]);
    }
    sum = combined(sum, Adding(), team);
    for (u64 i = team.lane; i < size; i += team.lanes) {
      const C of_output = to_compute(grad[static_cast<i64>(i) * steps[1]]), output = to_compute(y[static_cast<i64>(i) * steps[2]]);
      const C result = logarithm ? of_output - math::exp(output) * sum : (of_output - sum) * output;
      out[static_cast<i64>(i) * steps[0]] = from_compute<T>(result);
    }
  }
};
template <class T>
using SoftmaxBackward = SoftmaxBackwardRule<T, false>;
template <class T>
using LogSoftmaxBackward = SoftmaxBackwardRule<T, true>;

template <class Rule>
DEVICE void run_lines(const Rule &rule, const Lines<Rule::kOperands> &geometry) {
  using T = typename Rule::Element;
  constexpr int count = Rule::kOperands;
  const Team team = team_of(geometry.along_x != 0);
  const u64 line = static_cast<u64>(blockIdx.x) * team.teams + team.number;
  i64 offsets[count] = {};
  // Teams without a line take part with none of its elements, since the others wait for all threads.
  const u64 size = line < geometry.lines ? geometry.size : 0;
  if (size > 0) add_offsets(line, static_cast<int>(geometry.dims), geometry.sizes, geometry.strides, offsets);
  const T *inputs[count - 1];
  UNROLL
  for (int i = 1; i < count; ++i) inputs[i - 1] = static_cast<const T *>(geometry.pointers[i]) + offsets[i];
  rule(team, size, static_cast<T *>(const_cast<void *>(geometry.pointers[0])) + offsets[0], geometry.steps, inputs);
}

}  // namespace opsmith

#define OPSMITH_SOFTMAX(NAME, RULE)                                                \
  namespace opsmith {                                                              \
  using NAME##_rule = RULE;                                                        \
  }                                                                                \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads)              \
      NAME(opsmith::Lines<opsmith::NAME##_rule::kOperands> geometry) {             \
    opsmith::run_lines(opsmith::NAME##_rule(), geometry);                          \
  }
