// Connectionist temporal classification: the twin of `cpu::ctc`, in double precision.
//
// In: a `Paths`. A block has a sample; its threads share the states of a time, which depend on those of a neighbouring time
// alone. States of one class are a chain, so that one thread sums their shares in order. A label that is no class counts as the
// blank, and is reported.

namespace opsmith {

struct Paths {
  // (times, samples, classes), (samples, times, states), a number for each sample; row-major.
  const void *logarithms;
  void *alpha;
  void *losses;
  const void *grads;
  void *out;
  const i64 *labels;
  // For each sample: the place of its labels, their number, and the number of its times.
  const i64 *starts, *lengths, *steps;
  // For each sample: three numbers of each state and one of each class; two of each state.
  double *work;
  i64 *chains;
  u64 times, samples, classes, states;
  i64 blank;
  u64 zero_infinity;

  DEVICE i64 class_of(u64 sample, u64 state) const {
    if (state % 2 == 0) return blank;
    const i64 label = labels[starts[sample] + static_cast<i64>(state / 2)];
    if (label >= 0 && label < static_cast<i64>(classes)) return label;
    report(kIndexOutOfRange);
    return blank;
  }
  // Whether a path may go to a state from two states before: over a blank between different labels.
  DEVICE bool skips(u64 sample, u64 state) const {
    if (state < 2) return false;
    const i64 own = class_of(sample, state);
    return own != blank && own != class_of(sample, state - 2);
  }
  template <class T>
  DEVICE double logarithm(u64 sample, u64 time, i64 label) const {
    return static_cast<const T *>(logarithms)[(time * samples + sample) * classes + static_cast<u64>(label)];
  }
};

// The logarithm of a sum of exponentials.
DEVICE double log_sum(double a, double b, double c) {
  const double largest = ::fmax(::fmax(a, b), c);
  // All probabilities are zero, or one is no number: then the sum is none.
  if (largest == -infinity<double>()) return a + b + c;
  return largest + ::log(::exp(a - largest) + ::exp(b - largest) + ::exp(c - largest));
}

template <class T>
DEVICE void path_losses(const Paths &paths) {
  const u64 sample = blockIdx.x, own = 2 * static_cast<u64>(paths.lengths[sample]) + 1;
  const u64 steps = static_cast<u64>(paths.steps[sample]);
  const double none = -infinity<double>();
  double *before = paths.work + sample * 2 * paths.states, *now = before + paths.states;
  T *const alpha = static_cast<T *>(paths.alpha) + sample * paths.times * paths.states;
  for (u64 time = 0; time < paths.times; ++time) {
    for (u64 state = threadIdx.x; state < paths.states; state += blockDim.x) {
      double found = none;
      if (time < steps && state < own) {
        const bool starts = time == 0;
        const double sum = starts ? (state < 2 ? 0 : none)
                                  : log_sum(
                                        before[state], state >= 1 ? before[state - 1] : none,
                                        paths.skips(sample, state) ? before[state - 2] : none);
        found = sum + paths.logarithm<T>(sample, time, paths.class_of(sample, state));
      }
      now[state] = found;
      alpha[time * paths.states + state] = static_cast<T>(found);
    }
    __syncthreads();
    // Those of the last step stay.
    if (time < steps) {
      double *const other = before;
      before = now, now = other;
    }
  }
  if (threadIdx.x == 0) {
    const double other = own < 2 ? none : before[own - 2];
    const double loss = steps > 0 ? -log_sum(before[own - 1], other, none) : own == 1 ? 0 : -none;
    static_cast<T *>(paths.losses)[sample] = static_cast<T>(loss);
  }
}

// For each state the next one of its class, or -1; and whether it is the first one.
DEVICE void make_chains(const Paths &paths, u64 sample, u64 own, i64 *next, i64 *is_first) {
  for (u64 state = threadIdx.x; state < own; state += blockDim.x) {
    const i64 label = paths.class_of(sample, state);
    u64 after = state + 1, before = 0;
    while (after < own && paths.class_of(sample, after) != label) ++after;
    while (before < state && paths.class_of(sample, before) != label) ++before;
    next[state] = after < own ? static_cast<i64>(after) : -1;
    is_first[state] = before == state ? 1 : 0;
  }
  __syncthreads();
}

// The logarithm of the sum of the exponentials of a chain.
DEVICE double sum_of_chain(const double *values, const i64 *next, i64 first) {
  double largest = -infinity<double>(), all = 0, sum = 0;
  for (i64 state = first; state >= 0; state = next[state]) {
    largest = ::fmax(largest, values[state]), all += values[state];
  }
  if (largest == -infinity<double>()) return all;
  for (i64 state = first; state >= 0; state = next[state]) sum += ::exp(values[state] - largest);
  return largest + ::log(sum);
}

template <class T>
DEVICE void path_gradients(const Paths &paths) {
  const u64 sample = blockIdx.x, own = 2 * static_cast<u64>(paths.lengths[sample]) + 1, states = paths.states;
  const double none = -infinity<double>(), loss = static_cast<const T *>(paths.losses)[sample];
  const double grad = static_cast<const T *>(paths.grads)[sample];
  const bool is_skipped = paths.zero_infinity != 0 && loss == infinity<double>();
  const u64 steps = is_skipped ? 0 : static_cast<u64>(paths.steps[sample]);
  double *after = paths.work + sample * (3 * states + paths.classes), *now = after + states;
  double *const both = now + states, *const shares = both + states;
  i64 *const next = paths.chains + sample * 2 * states, *const is_first = next + states;
  make_chains(paths, sample, own, next, is_first);
  for (u64 time = paths.times; time-- > 0;) {
    T *const out = static_cast<T *>(paths.out) + (time * paths.samples + sample) * paths.classes;
    if (time >= steps) {
      for (u64 label = threadIdx.x; label < paths.classes; label += blockDim.x) out[label] = 0;
      continue;
    }
    const T *const alpha = static_cast<const T *>(paths.alpha) + (sample * paths.times + time) * states;
    for (u64 label = threadIdx.x; label < paths.classes; label += blockDim.x) shares[label] = none;
    for (u64 state = threadIdx.x; state < own; state += blockDim.x) {
      const bool ends = time + 1 == steps, skips = state + 2 < own && paths.skips(sample, state + 2);
      const double sum = ends ? (state + 2 >= own ? 0 : none)
                              : log_sum(
                                    after[state], state + 1 < own ? after[state + 1] : none,
                                    skips ? after[state + 2] : none);
      now[state] = sum + paths.logarithm<T>(sample, time, paths.class_of(sample, state));
      both[state] = static_cast<double>(alpha[state]) + now[state];
    }
    __syncthreads();
    for (u64 state = threadIdx.x; state < own; state += blockDim.x) {
      if (is_first[state] == 0) continue;
      shares[paths.class_of(sample, state)] = sum_of_chain(both, next, static_cast<i64>(state));
    }
    __syncthreads();
    for (u64 label = threadIdx.x; label < paths.classes; label += blockDim.x) {
      const double logarithm = paths.logarithm<T>(sample, time, static_cast<i64>(label));
      const double found = ::exp(logarithm) - ::exp(shares[label] + loss - logarithm);
      out[label] = static_cast<T>(found * grad);
    }
    __syncthreads();
    double *const other = after;
    after = now, now = other;
  }
}

// Each loss divided by the number of its labels, at least 1.
template <class T>
DEVICE void losses_by_length(const Paths &paths) {
  if (threadIdx.x != 0) return;
  const i64 length = paths.lengths[blockIdx.x];
  const double loss = static_cast<const T *>(paths.losses)[blockIdx.x];
  static_cast<T *>(paths.out)[blockIdx.x] = static_cast<T>(loss / static_cast<double>(length > 1 ? length : 1));
}

}  // namespace opsmith

#define OPSMITH_CTC(NAME, FUNCTION, T)                                                      \
  extern "C" __global__ void __launch_bounds__(256) NAME(opsmith::Paths paths) {            \
    using namespace opsmith;                                                                \
    FUNCTION<T>(paths);                                                                     \
  }
