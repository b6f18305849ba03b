// Normalisation with statistics of channels (batch) or of groups of channels of a sample (group), and its gradients.
//
// In: row-major samples of channels of places, and sums that reductions made. Out: rows, statistics or gradients. All kernels
// but the folds have one parameter, by value, a `ChannelNorm`; addresses that a kernel does not need, or that are not
// wanted, are null.
//
//   OPSMITH_REDUCTION(opsmith_kernel, MeanAndVariance<float>)    a `Pair` of each channel
//   OPSMITH_CHANNEL_ROWS(opsmith_kernel, group_statistic, float) a `Pair` of each group
//   OPSMITH_CHANNELS(opsmith_kernel, settle, float)              mean and reciprocal deviation, in place
//   OPSMITH_CHANNELS(opsmith_kernel, normalise, float)           out
//   OPSMITH_CHANNEL_ROWS(opsmith_kernel, channel_sum, float)     sums of gradients, for each channel of each sample
//   OPSMITH_REDUCTION(opsmith_kernel, PairSum<float>)            these sums over samples
//   OPSMITH_CHANNELS(opsmith_kernel, project, float)             parts of a gradient that have no effect, of each statistic
//   OPSMITH_CHANNELS(opsmith_kernel, gradient, float)            the gradient of the input, in `out`
//   OPSMITH_CHANNELS(opsmith_kernel, factor_gradients, float)    the gradients of weight and bias
//
// OPSMITH_CHANNELS: a thread for each statistic, element or channel in a grid of any size. OPSMITH_CHANNEL_ROWS: X by Y
// threads, 256 in all, X a row; ceil(rows / Y) blocks.

namespace opsmith {

template <class C>
struct Pair {
  C first, second;
};

struct AddingPairs {
  template <class C>
  DEVICE Pair<C> operator()(const Pair<C> &a, const Pair<C> &b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

struct ChannelNorm {
  u64 samples, channels, places;
  // Statistics in all, channels of one, and statistics of a sample: 0 if samples share them.
  u64 statistics, channels_of_one, of_sample;
  // The input of `settle`: 0 for pairs, 1 for given means and variances, 2 for means and reciprocal deviations.
  u64 given;
  double eps, momentum, unbiased;
  const void *in, *grad, *weight, *bias, *given_mean, *given_spread;
  // Pairs: of statistics; sums for each channel; the parts without effect.
  void *pairs, *sums, *along;
  void *out, *mean, *rstd, *running_mean, *running_var, *grad_weight, *grad_bias;
};

// The mean and the variance, divided by the number of elements; NaN without elements.
template <class T>
struct MeanAndVariance : MergedMoments {
  using C = Compute<T>;
  using Element = T;
  using Partial = Moments<C>;
  using Out = Pair<C>;
  DEVICE Partial start() const { return {}; }
  DEVICE Partial take(const Partial &moments, T element, u64) const { return with(moments, to_compute(element)); }
  DEVICE Out finish(const Partial &moments, u64 count) const {
    if (count == 0) return {not_a_number<C>(), not_a_number<C>()};
    return {moments.mean, moments.squares / static_cast<C>(count)};
  }
};

template <class T>
struct PairSum : AddingPairs {
  using Element = Pair<Compute<T>>;
  using Partial = Element;
  using Out = Element;
  DEVICE Partial start() const { return {0, 0}; }
  DEVICE Partial take(const Partial &sum, const Element &element, u64) const { return (*this)(sum, element); }
  DEVICE Out finish(const Partial &sum, u64) const { return sum; }
};

template <class T>
DEVICE Compute<T> factor_at(const void *factors, u64 channel, Compute<T> otherwise) {
  return factors == nullptr ? otherwise : to_compute(static_cast<const T *>(factors)[channel]);
}

template <class T>
DEVICE void write_at(void *elements, u64 index, Compute<T> value) {
  if (elements != nullptr) static_cast<T *>(elements)[index] = from_compute<T>(value);
}

template <class T>
DEVICE Pair<Compute<T>> &pair_at(void *pairs, u64 index) {
  return static_cast<Pair<Compute<T>> *>(pairs)[index];
}

// Calls `body` with the number of each element that is this thread's, its channel and its statistic.
template <class Index, class Body>
DEVICE void walk_elements(const ChannelNorm &norm, const Body &body) {
  const u64 count = norm.samples * norm.channels * norm.places, step = static_cast<u64>(gridDim.x) * blockDim.x;
  const Index places = static_cast<Index>(norm.places), channels = static_cast<Index>(norm.channels);
  const Index of_one = static_cast<Index>(norm.channels_of_one);
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const Index row = static_cast<Index>(i) / places, sample = row / channels, channel = row - sample * channels;
    body(i, static_cast<u64>(channel), static_cast<u64>(sample) * norm.of_sample + static_cast<u64>(channel / of_one));
  }
}

template <class Body>
DEVICE void for_each_element(const ChannelNorm &norm, const Body &body) {
  if (norm.samples * norm.channels * norm.places <= 0xffffffffull) {
    walk_elements<u32>(norm, body);
  } else {
    walk_elements<u64>(norm, body);
  }
}

template <class Body>
DEVICE void for_each_of(u64 count, const Body &body) {
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) body(i);
}

// Statistics of the elements, or given ones, as mean and reciprocal deviation; also running ones mixed with them.
template <class T>
DEVICE void settle(const ChannelNorm &norm) {
  using C = Compute<T>;
  for_each_of(norm.statistics, [&](u64 i) {
    Pair<C> &pair = pair_at<T>(norm.pairs, i);
    Pair<C> result = pair;
    if (norm.given != 0) result = {factor_at<T>(norm.given_mean, i, C(0)), factor_at<T>(norm.given_spread, i, C(0))};
    if (norm.running_mean != nullptr) {
      const C old_mean = factor_at<T>(norm.given_mean, i, C(0)), old = factor_at<T>(norm.given_spread, i, C(0));
      const C keep = static_cast<C>(1.0 - norm.momentum), part = static_cast<C>(norm.momentum);
      const bool mixed = norm.given == 0;
      write_at<T>(norm.running_mean, i, mixed ? old_mean * keep + result.first * part : old_mean);
      write_at<T>(norm.running_var, i, mixed ? old * keep + result.second * (part * static_cast<C>(norm.unbiased)) : old);
    }
    if (norm.given != 2) result.second = math::rsqrt(result.second + static_cast<C>(norm.eps));
    write_at<T>(norm.mean, i, result.first);
    write_at<T>(norm.rstd, i, result.second);
    pair = result;
  });
}

template <class T>
DEVICE void normalise(const ChannelNorm &norm) {
  using C = Compute<T>;
  for_each_element(norm, [&](u64 i, u64 channel, u64 statistic) {
    const Pair<C> pair = pair_at<T>(norm.pairs, statistic);
    const C scale = pair.second * factor_at<T>(norm.weight, channel, C(1));
    const C deviation = to_compute(static_cast<const T *>(norm.in)[i]) - pair.first;
    write_at<T>(norm.out, i, deviation * scale + factor_at<T>(norm.bias, channel, C(0)));
  });
}

// The mean and the variance of a group, whose elements lie together: two passes, so that a mean far from zero costs few digits.
template <class T>
DEVICE void group_statistic(const ChannelNorm &norm, const Team &team, u64 row) {
  using C = Compute<T>;
  const bool exists = row < norm.statistics;
  const u64 size = norm.channels_of_one * norm.places, own = exists ? size : 0;
  const T *const in = static_cast<const T *>(norm.in) + (exists ? row * size : 0);
  C mean = 0, squares = 0;
  for (u64 i = team.lane; i < own; i += team.lanes) mean += to_compute(in[i]);
  mean = combined(mean, Adding(), team) / static_cast<C>(size);
  for (u64 i = team.lane; i < own; i += team.lanes) {
    const C deviation = to_compute(in[i]) - mean;
    squares += deviation * deviation;
  }
  squares = combined(squares, Adding(), team);
  if (exists && team.lane == 0) pair_at<T>(norm.pairs, row) = {mean, squares / static_cast<C>(size)};
}

// For each channel of each sample, the sums of the gradient and of its product with the normalised elements.
template <class T>
DEVICE void channel_sum(const ChannelNorm &norm, const Team &team, u64 row) {
  using C = Compute<T>;
  // Teams without a row take part with none of its elements, since the others wait for all threads.
  const bool exists = row < norm.samples * norm.channels;
  Pair<C> sums = {0, 0};
  if (exists) {
    const u64 sample = row / norm.channels, channel = row - sample * norm.channels;
    const Pair<C> pair = pair_at<T>(norm.pairs, sample * norm.of_sample + channel / norm.channels_of_one);
    const T *const in = static_cast<const T *>(norm.in) + row * norm.places;
    const T *const grad = static_cast<const T *>(norm.grad) + row * norm.places;
    for (u64 i = team.lane; i < norm.places; i += team.lanes) {
      const C dy = to_compute(grad[i]);
      sums.first += dy;
      sums.second += dy * ((to_compute(in[i]) - pair.first) * pair.second);
    }
  }
  sums = combined(sums, AddingPairs(), team);
  if (exists && team.lane == 0) pair_at<T>(norm.sums, row) = sums;
}

// The means of the scaled gradient and of its product with the normalised elements, from the sums of a statistic's channels.
template <class T>
DEVICE void project(const ChannelNorm &norm) {
  using C = Compute<T>;
  const u64 samples = norm.of_sample == 0 ? norm.samples : 1;
  const C count = static_cast<C>(samples * norm.channels_of_one * norm.places);
  for_each_of(norm.statistics, [&](u64 i) {
    Pair<C> along = {0, 0};
    for (u64 k = 0; k < norm.channels_of_one; ++k) {
      const u64 place = i * norm.channels_of_one + k;
      const C weight = factor_at<T>(norm.weight, place % norm.channels, C(1));
      const Pair<C> sums = pair_at<T>(norm.sums, place);
      along = {along.first + weight * sums.first, along.second + weight * sums.second};
    }
    pair_at<T>(norm.along, i) = {along.first / count, along.second / count};
  });
}

// Without `along`, statistics do not depend on the elements.
template <class T>
DEVICE void gradient(const ChannelNorm &norm) {
  using C = Compute<T>;
  for_each_element(norm, [&](u64 i, u64 channel, u64 statistic) {
    const Pair<C> pair = pair_at<T>(norm.pairs, statistic);
    C rest = to_compute(static_cast<const T *>(norm.grad)[i]) * factor_at<T>(norm.weight, channel, C(1));
    if (norm.along != nullptr) {
      const Pair<C> along = pair_at<T>(norm.along, statistic);
      const C normal = (to_compute(static_cast<const T *>(norm.in)[i]) - pair.first) * pair.second;
      rest -= along.first + normal * along.second;
    }
    write_at<T>(norm.out, i, rest * pair.second);
  });
}

template <class T>
DEVICE void factor_gradients(const ChannelNorm &norm) {
  for_each_of(norm.channels, [&](u64 channel) {
    const Pair<Compute<T>> sums = pair_at<T>(norm.sums, channel);
    write_at<T>(norm.grad_weight, channel, sums.second);
    write_at<T>(norm.grad_bias, channel, sums.first);
  });
}

}  // namespace opsmith

#define OPSMITH_CHANNELS(NAME, FUNCTION, T)                                                                        \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads) NAME(opsmith::ChannelNorm norm) {            \
    using namespace opsmith;                                                                                       \
    FUNCTION<T>(norm);                                                                                             \
  }
#define OPSMITH_CHANNEL_ROWS(NAME, FUNCTION, T)                                                                    \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads) NAME(opsmith::ChannelNorm norm) {            \
    using namespace opsmith;                                                                                       \
    const Team team = team_of(true);                                                                               \
    FUNCTION<T>(norm, team, static_cast<u64>(blockIdx.x) * team.teams + team.number);                              \
  }
