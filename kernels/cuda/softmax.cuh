// Softmax and its logarithm along a dimension, and their gradients.
//
// In: lines of elements, and a rule. Out: as many lines. A team of threads has a line (team.cuh), and reads it once if registers
// can hold it, else twice (chunks.cuh).
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

  template <bool held>
  DEVICE void run(const Team &team, u64 size, T *out, const i64 *steps, const T *const *inputs) const {
    const Line<const T> x = line_of(inputs[0], steps[1]);
    const Line<T> y = line_of(out, steps[0]);
    Chunk<T> chunks[held ? kHeldChunks : 1];
    Exponentials<C> sums = {-infinity<C>(), 0};
    each_chunk<T, held>(team, size, [&](u64 first, int k) {
      load_chunk(x, first, size, -infinity<C>(), chunks[k]);
      UNROLL
      for (int i = 0; i < kChunk<T>; ++i) {
        if constexpr (held) {
          sums.largest = Larger()(sums.largest, chunks[k][i]);
        } else {
          sums = with(sums, chunks[k][i]);
        }
      }
    });
    if constexpr (held) {
      sums.largest = combined(sums.largest, Larger(), team);
      // Infinity's difference from itself is NaN.
      each_chunk<T, held>(team, size, [&](u64, int k) {
        UNROLL
        for (int i = 0; i < kChunk<T>; ++i) {
          const C distance = chunks[k][i] - sums.largest, weight = math::exp(distance);
          if (chunks[k][i] != -infinity<C>()) sums.sum += weight;
          chunks[k][i] = logarithm ? distance : weight;
        }
      });
      sums.sum = combined(sums.sum, Adding(), team);
    } else {
      sums = all_of(team, sums);
    }
    const C factor = logarithm ? math::log(sums.sum) : 1 / sums.sum;
    each_chunk<T, held>(team, size, [&](u64 first, int k) {
      if constexpr (!held) load_chunk(x, first, size, C(0), chunks[k]);
      UNROLL
      for (int i = 0; i < kChunk<T>; ++i) {
        C &element = chunks[k][i];
        if constexpr (!held) element = logarithm ? element - sums.largest : math::exp(element - sums.largest);
        element = logarithm ? element - factor : element * factor;
      }
      store_chunk(y, first, size, chunks[k]);
    });
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

  template <bool held>
  DEVICE void run(const Team &team, u64 size, T *out, const i64 *steps, const T *const *inputs) const {
    const Line<const T> grad = line_of(inputs[0], steps[1]), y = line_of(inputs[1], steps[2]);
    const Line<T> target = line_of(out, steps[0]);
    Chunk<T> grads[held ? kHeldChunks : 1], outputs[held ? kHeldChunks : 1];
    C sum = 0;
    each_chunk<T, held>(team, size, [&](u64 first, int k) {
      load_chunk(grad, first, size, C(0), grads[k]);
      if (held || !logarithm) load_chunk(y, first, size, C(0), outputs[k]);
      UNROLL
      for (int i = 0; i < kChunk<T>; ++i) sum += logarithm ? grads[k][i] : grads[k][i] * outputs[k][i];
    });
    sum = combined(sum, Adding(), team);
    each_chunk<T, held>(team, size, [&](u64 first, int k) {
      if constexpr (!held) {
        load_chunk(grad, first, size, C(0), grads[k]);
        load_chunk(y, first, size, C(0), outputs[k]);
      }
      UNROLL
      for (int i = 0; i < kChunk<T>; ++i) {
        C &element = grads[k][i];
        element = logarithm ? element - math::exp(outputs[k][i]) * sum : (element - sum) * outputs[k][i];
      }
      store_chunk(target, first, size, grads[k]);
    });
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
  T *const out = static_cast<T *>(const_cast<void *>(geometry.pointers[0])) + offsets[0];
  // The same for all teams of the block, whose threads wait for each other.
  if (is_held<T>(team, geometry.size)) {
    rule.template run<true>(team, size, out, geometry.steps, inputs);
  } else {
    rule.template run<false>(team, size, out, geometry.steps, inputs);
  }
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
