// Normalisation of rows by their mean and deviation (layer) or their root mean square, and its gradients.
//
// In: row-major rows. Out: rows, and the statistics or gradients that are asked for. All kernels have one parameter, by
// value, a `Normalisation`; addresses that a kernel does not need, or that are not wanted, are null.
//
//   OPSMITH_NORMALISE(opsmith_kernel, float, true)            out, mean, rstd
//   OPSMITH_NORMALISE_BACKWARD(opsmith_kernel, float, true)   the gradient of the input, in `out`
//   OPSMITH_NORMALISE_FACTORS(opsmith_kernel, float, true)    sums for the gradients of weight and bias, in `partials`
//   OPSMITH_NORMALISE_FACTORS_END(opsmith_kernel, float)      these gradients, in `grad_weight` and `grad_bias`
//
// The last argument is false for the root mean square, which subtracts no mean; its `rstd` is not of the elements' type but
// of the compute type, wanted for the sums of the third kernel alone. The first two: blocks of X by Y threads, 256
// in all, X threads a row; ceil(rows / Y) blocks. The third: 32 by 8 threads, grid x ceil(size / 32), grid y `splits`;
// `partials` has 2 * splits * size elements of the compute type. The last: 256 threads, ceil(size / 256) blocks.

namespace opsmith {

struct Normalisation {
  u64 rows, size;
  double eps;
  u32 splits, padding;
  // Statistics are given to the gradients of the layer; the root mean square's gradient of the input computes them again.
  const void *in, *grad, *weight, *bias;
  void *mean, *rstd, *out, *partials, *grad_weight, *grad_bias;
};

template <class C>
struct Statistics {
  C mean, rstd;
  DEVICE C normal(C x) const { return (x - mean) * rstd; }
};

// A factor of a column, or `otherwise` if there is none.
template <class T>
DEVICE Compute<T> factor_of(const void *factors, u64 column, Compute<T> otherwise) {
  return factors == nullptr ? otherwise : to_compute(static_cast<const T *>(factors)[column]);
}

// Factors of a chunk's columns, or `otherwise` if there are none.
template <class T>
DEVICE void load_factors(const Line<const T> &factors, u64 first, u64 size, Compute<T> otherwise, Chunk<T> &chunk) {
  if (factors.start != nullptr) {
    load_chunk(factors, first, size, otherwise, chunk);
    return;
  }
  UNROLL
  for (int i = 0; i < kChunk<T>; ++i) chunk[i] = otherwise;
}

// Two passes over a row, so that a mean far from zero costs few digits. `chunks` have the row afterwards if it is held.
template <class T, bool centred, bool held>
DEVICE Statistics<Compute<T>> statistics_of(const Team &team, const Line<const T> &row, u64 size, u64 count, double eps,
                                            Chunk<T> *chunks) {
  using C = Compute<T>;
  C mean = 0, squares = 0;
  if constexpr (centred) {
    each_chunk<T, held>(team, size, [&](u64 first, int k) {
      load_chunk(row, first, size, C(0), chunks[k]);
      UNROLL
      for (int i = 0; i < kChunk<T>; ++i) mean += chunks[k][i];
    });
    mean = combined(mean, Adding(), team) / static_cast<C>(count);
  }
  each_chunk<T, held>(team, size, [&](u64 first, int k) {
    if constexpr (!held || !centred) load_chunk(row, first, size, C(0), chunks[k]);
    UNROLL
    for (int i = 0; i < kChunk<T>; ++i) {
      const C deviation = chunks[k][i] - mean;
      if (first + static_cast<u64>(i) < size) squares += deviation * deviation;
    }
  });
  squares = combined(squares, Adding(), team);
  return {mean, math::rsqrt(squares / static_cast<C>(count) + static_cast<C>(eps))};
}

template <class T, bool centred, bool held>
DEVICE void normalise_rows(const Normalisation &geometry) {
  using C = Compute<T>;
  const Team team = team_of(true);
  const u64 row = static_cast<u64>(blockIdx.x) * team.teams + team.number;
  // Teams without a row take part with none of its elements, since the others wait for all threads.
  const bool exists = row < geometry.rows;
  const u64 size = exists ? geometry.size : 0, start = exists ? row * geometry.size : 0;
  const auto in = line_of(static_cast<const T *>(geometry.in) + start, 1);
  const auto weight = line_of(static_cast<const T *>(geometry.weight), 1), bias = line_of(static_cast<const T *>(geometry.bias), 1);
  Chunk<T> chunks[held ? kHeldChunks : 1];
  const Statistics<C> statistics = statistics_of<T, centred, held>(team, in, size, geometry.size, geometry.eps, chunks);
  if (geometry.out != nullptr) {
    const auto out = line_of(static_cast<T *>(geometry.out) + start, 1);
    each_chunk<T, held>(team, size, [&](u64 first, int k) {
      if constexpr (!held) load_chunk(in, first, size, C(0), chunks[k]);
      Chunk<T> weights, biases;
      load_factors(weight, first, size, C(1), weights);
      // Minus zero shifts nothing, a zero's sign included.
      load_factors(bias, first, size, -C(0), biases);
      UNROLL
      for (int i = 0; i < kChunk<T>; ++i) chunks[k][i] = statistics.normal(chunks[k][i]) * weights[i] + biases[i];
      store_chunk(out, first, size, chunks[k]);
    });
  }
  if (!exists || team.lane != 0) return;
  if (geometry.mean != nullptr) static_cast<T *>(geometry.mean)[row] = from_compute<T>(statistics.mean);
  using Stored = choice<centred, T, C>;
  if (geometry.rstd != nullptr) static_cast<Stored *>(geometry.rstd)[row] = from_compute<Stored>(statistics.rstd);
}

template <class T, bool centred>
DEVICE void run_normalise(const Normalisation &geometry) {
  if (is_held<T>(team_of(true), geometry.size)) {
    normalise_rows<T, centred, true>(geometry);
  } else {
    normalise_rows<T, centred, false>(geometry);
  }
}

template <class C>
struct Projections {
  C of_mean, of_row;
};
struct AddingProjections {
  template <class C>
  DEVICE Projections<C> operator()(const Projections<C> &a, const Projections<C> &b) const {
    return {a.of_mean + b.of_mean, a.of_row + b.of_row};
  }
};

// The statistics that were given, if they were.
template <class T>
DEVICE Statistics<Compute<T>> given_statistics(const Normalisation &geometry, u64 row) {
  return {to_compute(static_cast<const T *>(geometry.mean)[row]), to_compute(static_cast<const T *>(geometry.rstd)[row])};
}

// `dy * weight` less its parts along the row's mean and along the row itself, which have no effect, times `rstd`.
template <class T, bool centred, bool held>
DEVICE void normalise_rows_backward(const Normalisation &geometry) {
  using C = Compute<T>;
  const Team team = team_of(true);
  const u64 row = static_cast<u64>(blockIdx.x) * team.teams + team.number;
  const bool exists = row < geometry.rows;
  const u64 size = exists ? geometry.size : 0, start = exists ? row * geometry.size : 0;
  const auto in = line_of(static_cast<const T *>(geometry.in) + start, 1), grad = line_of(static_cast<const T *>(geometry.grad) + start, 1);
  const auto weight = line_of(static_cast<const T *>(geometry.weight), 1);
  const auto out = line_of(static_cast<T *>(geometry.out) + start, 1);
  Chunk<T> chunks[held ? kHeldChunks : 1], grads[held ? kHeldChunks : 1];
  Statistics<C> statistics = {};
  if constexpr (centred) {
    if (exists) statistics = given_statistics<T>(geometry, row);
  } else {
    statistics = statistics_of<T, false, held>(team, in, size, geometry.size, geometry.eps, chunks);
  }
  // The gradients of the normalised elements of chunk k, in `grads`; the elements in `chunks`.
  const auto load = [&](u64 first, int k) {
    Chunk<T> weights;
    load_chunk(grad, first, size, C(0), grads[k]);
    load_factors(weight, first, size, C(1), weights);
    UNROLL
    for (int i = 0; i < kChunk<T>; ++i) grads[k][i] *= weights[i];
    if constexpr (!held || centred) load_chunk(in, first, size, C(0), chunks[k]);
  };
  Projections<C> sums = {0, 0};
  each_chunk<T, held>(team, size, [&](u64 first, int k) {
    load(first, k);
    UNROLL
    for (int i = 0; i < kChunk<T>; ++i) {
      if constexpr (centred) sums.of_mean += grads[k][i];
      sums.of_row += grads[k][i] * statistics.normal(chunks[k][i]);
    }
  });
  sums = combined(sums, AddingProjections(), team);
  const C count = static_cast<C>(geometry.size), of_mean = sums.of_mean / count, of_row = sums.of_row / count;
  each_chunk<T, held>(team, size, [&](u64 first, int k) {
    if constexpr (!held) load(first, k);
    UNROLL
    for (int i = 0; i < kChunk<T>; ++i) {
      grads[k][i] = statistics.rstd * (grads[k][i] - (of_mean + statistics.normal(chunks[k][i]) * of_row));
    }
    store_chunk(out, first, size, grads[k]);
  });
}

template <class T, bool centred>
DEVICE void run_normalise_backward(const Normalisation &geometry) {
  if (is_held<T>(team_of(true), geometry.size)) {
    normalise_rows_backward<T, centred, true>(geometry);
  } else {
    normalise_rows_backward<T, centred, false>(geometry);
  }
}

// A thread has a column; the rows are shared by the threads of a column of the block and by the blocks of grid y.
template <class T, bool centred>
DEVICE void run_normalise_factors(const Normalisation &geometry) {
  using C = Compute<T>;
  const Team team = team_of(false);
  const u64 column = static_cast<u64>(blockIdx.x) * team.teams + team.number;
  Projections<C> sums = {0, 0};
  if (column < geometry.size) {
    const u64 step = static_cast<u64>(gridDim.y) * team.lanes;
    for (u64 row = static_cast<u64>(blockIdx.y) * team.lanes + team.lane; row < geometry.rows; row += step) {
      Statistics<C> statistics = {};
      if constexpr (centred) {
        statistics = given_statistics<T>(geometry, row);
      } else {
        statistics.rstd = static_cast<const C *>(geometry.rstd)[row];
      }
      const C dy = to_compute(static_cast<const T *>(geometry.grad)[row * geometry.size + column]);
      sums.of_mean += dy;
      sums.of_row += dy * statistics.normal(to_compute(static_cast<const T *>(geometry.in)[row * geometry.size + column]));
    }
  }
  sums = combined(sums, AddingProjections(), team);
  if (column < geometry.size && team.lane == 0) {
    static_cast<Projections<C> *>(geometry.partials)[blockIdx.y * geometry.size + column] = sums;
  }
}

template <class T>
DEVICE void run_normalise_factors_end(const Normalisation &geometry) {
  using C = Compute<T>;
  const u64 column = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= geometry.size) return;
  Projections<C> sums = {0, 0};
  for (u64 split = 0; split < geometry.splits; ++split) {
    const auto *const partials = static_cast<const Projections<C> *>(geometry.partials);
    sums = AddingProjections()(sums, partials[split * geometry.size + column]);
  }
  if (geometry.grad_weight != nullptr) static_cast<T *>(geometry.grad_weight)[column] = from_compute<T>(sums.of_row);
  if (geometry.grad_bias != nullptr) static_cast<T *>(geometry.grad_bias)[column] = from_compute<T>(sums.of_mean);
}

}  // namespace opsmith

#define OPSMITH_NORMALISE(NAME, T, CENTRED)                                                                        \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads) NAME(opsmith::Normalisation geometry) {      \
    using namespace opsmith;                                                                                       \
    run_normalise<T, CENTRED>(geometry);                                                                           \
  }
#define OPSMITH_NORMALISE_BACKWARD(NAME, T, CENTRED)                                                               \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads) NAME(opsmith::Normalisation geometry) {      \
    using namespace opsmith;                                                                                       \
    run_normalise_backward<T, CENTRED>(geometry);                                                                  \
  }
#define OPSMITH_NORMALISE_FACTORS(NAME, T, CENTRED)                                                                \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads) NAME(opsmith::Normalisation geometry) {      \
    using namespace opsmith;                                                                                       \
    run_normalise_factors<T, CENTRED>(geometry);                                                                   \
  }
#define OPSMITH_NORMALISE_FACTORS_END(NAME, T)                                                                     \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads) NAME(opsmith::Normalisation geometry) {      \
    using namespace opsmith;                                                                                       \
    run_normalise_factors_end<T>(geometry);                                                                        \
  }
