// Teams: the threads of a block that work on one line of elements, and their combined values.
//
// In: a block of kTeamThreads threads, X by Y, both powers of two. Along x, a team is the X threads of a row of the block:
// for lines whose elements lie close together. Along y, it is the Y threads of a column: neighbouring teams have
// neighbouring lines, for lines that lie close together. Out: one value of all threads of a team, for each of them. All
// threads of a block must call; the order of combination depends on the block's shape alone, so results repeat.

namespace opsmith {

enum : int { kTeamThreads = 256, kWarp = 32, kMostDims = 8 };

struct Team {
  bool along_x;
  // Number in the team, its size, and number of the team in the block.
  u32 lane, lanes, number, teams;
};

DEVICE Team team_of(bool along_x) {
  if (along_x) return {true, threadIdx.x, blockDim.x, threadIdx.y, blockDim.y};
  return {false, threadIdx.y, blockDim.y, threadIdx.x, blockDim.x};
}

// Sizes, and strides in elements, of the dimensions that count lines, the innermost last; the step along a line.
template <int N>
struct Lines {
  u64 lines, size;
  u32 dims, along_x;
  u64 sizes[kMostDims];
  i64 strides[N][kMostDims];
  i64 steps[N];
  const void *pointers[N];
};

// A value of any type in words that threads of a warp exchange.
template <class P>
struct Words {
  enum : int { kCount = (sizeof(P) + 3) / 4 };
  u32 words[kCount];
};

// The value of the thread `offset` after this one among `width` neighbours; this thread's beyond them.
template <class P>
DEVICE P shuffled_down(const P &value, u32 offset, int width) {
  Words<P> words = {};
  COPY_BYTES(words.words, &value, sizeof(P));
  UNROLL
  for (int i = 0; i < Words<P>::kCount; ++i) words.words[i] = __shfl_down_sync(0xffffffffu, words.words[i], offset, width);
  P result;
  COPY_BYTES(&result, words.words, sizeof(P));
  return result;
}

// The value of the thread `offset` before this one among `width` neighbours; this thread's before them.
template <class P>
DEVICE P shuffled_up(const P &value, u32 offset, int width) {
  Words<P> words = {};
  COPY_BYTES(words.words, &value, sizeof(P));
  UNROLL
  for (int i = 0; i < Words<P>::kCount; ++i) words.words[i] = __shfl_up_sync(0xffffffffu, words.words[i], offset, width);
  P result;
  COPY_BYTES(&result, words.words, sizeof(P));
  return result;
}

// The value of the first of `width` neighbours.
template <class P>
DEVICE P shuffled_first(const P &value, int width) {
  Words<P> words = {};
  COPY_BYTES(words.words, &value, sizeof(P));
  UNROLL
  for (int i = 0; i < Words<P>::kCount; ++i) words.words[i] = __shfl_sync(0xffffffffu, words.words[i], 0, width);
  P result;
  COPY_BYTES(&result, words.words, sizeof(P));
  return result;
}

// The values of a team's threads merged, for each of them. `merge` is associative and commutative but for rounding.
template <class P, class Merge>
DEVICE P combined(P value, const Merge &merge, const Team &team) {
  __shared__ P values[kTeamThreads];
  if (team.along_x) {
    const int width = team.lanes < kWarp ? static_cast<int>(team.lanes) : kWarp;
    ROLLED
    for (u32 offset = static_cast<u32>(width) / 2; offset > 0; offset /= 2) {
      value = merge(value, shuffled_down(value, offset, width));
    }
    if (team.lanes <= kWarp) return shuffled_first(value, width);
    const u32 thread = threadIdx.y * blockDim.x + threadIdx.x;
    if (thread % kWarp == 0) values[thread / kWarp] = value;
    __syncthreads();
    const u32 warps = team.lanes / kWarp, first = team.number * warps;
    value = values[first];
    ROLLED
    for (u32 warp = 1; warp < warps; ++warp) value = merge(value, values[first + warp]);
    __syncthreads();
    return value;
  }
  P *const column = values + team.number;
  column[team.lane * team.teams] = value;
  __syncthreads();
  for (u32 half = team.lanes / 2; half > 0; half /= 2) {
    if (team.lane < half) {
      column[team.lane * team.teams] = merge(column[team.lane * team.teams], column[(team.lane + half) * team.teams]);
    }
    __syncthreads();
  }
  value = *column;
  __syncthreads();
  return value;
}

// Sums, and the best of numbers, as merges.
struct Adding {
  template <class C>
  DEVICE C operator()(C a, C b) const {
    return add(a, b);
  }
};
struct Larger {
  template <class C>
  DEVICE C operator()(C a, C b) const {
    return math::maximum(a, b);
  }
};
struct Smaller {
  template <class C>
  DEVICE C operator()(C a, C b) const {
    return math::minimum(a, b);
  }
};

// The running mean of numbers and the sum of their squared distances from it.
//
// Source: B. P. Welford (1962); merged as T. F. Chan, G. H. Golub, R. J. LeVeque (1979).
template <class C>
struct Moments {
  C mean, squares;
  Real<C> count;
};

template <class R>
DEVICE Moments<R> with(Moments<R> moments, R x) {
  const R count = moments.count + 1, delta = x - moments.mean, mean = moments.mean + delta / count;
  return {mean, moments.squares + delta * (x - mean), count};
}

struct MergedMoments {
  template <class R>
  DEVICE Moments<R> operator()(const Moments<R> &a, const Moments<R> &b) const {
    const R count = a.count + b.count;
    if (count == 0) return a;
    const R delta = b.mean - a.mean, part = b.count / count;
    return {a.mean + delta * part, a.squares + b.squares + delta * delta * a.count * part, count};
  }
};

// The element number `index`, in row-major order of some dimensions, in elements from the first.
template <int N>
DEVICE void add_offsets(u64 index, int dims, const u64 *sizes, const i64 (*strides)[kMostDims], i64 (&offsets)[N]) {
  ROLLED
  for (int dim = dims - 1; dim >= 0; --dim) {
    const u64 next = dim == 0 ? 0 : index / sizes[dim];
    const i64 rest = static_cast<i64>(index - next * sizes[dim]);
    UNROLL
    for (int operand = 0; operand < N; ++operand) offsets[operand] += rest * strides[operand][dim];
    index = next;
  }
}

}  // namespace opsmith
