// Loops over several expressions: each thread computes all of them for its elements, and intermediate results stay in registers.
//
// In: a type `Chain` with `void operator()(elements of the operands) const`, which writes the first `kResults` and reads the
// others, and a geometry of `loop.cuh`, whose first operands are the results. Out: the elements of the results. All elements of a
// thread's step are read before one is written. Must not know the expressions.

namespace opsmith {

template <int results, class T, int width>
DEVICE Pack<T, width> chain_read(const void *pointer, i64 pack, int operand) {
  if (operand < results) return Pack<T, width>{};
  return static_cast<const Pack<T, width> *>(pointer)[pack];
}

template <int results, class T, int width>
DEVICE void chain_write(const void *pointer, i64 pack, int operand, const Pack<T, width> &elements) {
  if (operand < results) static_cast<Pack<T, width> *>(const_cast<void *>(pointer))[pack] = elements;
}

template <int width, class Chain, int N, class... Ts, int... positions>
DEVICE void chain_step(const Chain &chain, const void *const (&pointers)[N], const i64 (&places)[N], Types<Ts...>,
                       Positions<positions...>) {
  [&](Pack<Ts, width>... packs) {
    UNROLL
    for (int i = 0; i < width; ++i) chain(packs.elements[i]...);
    (chain_write<Chain::kResults, Ts, width>(pointers[positions], places[positions], positions, packs), ...);
  }(chain_read<Chain::kResults, Ts, width>(pointers[positions], places[positions], positions)...);
}

template <class Chain, int N, class... Ts, int... positions>
DEVICE void run_chain(const Chain &chain, const Contiguous<N> &geometry, Types<Ts...> types, Positions<positions...> all,
                      u64 thread, u64 step) {
  constexpr int width = kWidth<Ts...>;
  bool aligned = true;
  ((aligned = aligned && is_aligned<Ts>(geometry.pointers[positions], width)), ...);
  const u64 packs = aligned ? geometry.count / width : 0;
  for (u64 pack = thread; pack < packs; pack += step) {
    const i64 places[N] = {(static_cast<void>(positions), static_cast<i64>(pack))...};
    chain_step<width>(chain, geometry.pointers, places, types, all);
  }
  for (u64 i = packs * width + thread; i < geometry.count; i += step) {
    const i64 places[N] = {(static_cast<void>(positions), static_cast<i64>(i))...};
    chain_step<1>(chain, geometry.pointers, places, types, all);
  }
}

template <class Chain, int N, class Index, class... Ts, int... positions>
DEVICE void run_chain(const Chain &chain, const Strided<N, Index> &geometry, Types<Ts...> types, Positions<positions...> all,
                      u64 thread, u64 step) {
  for (u64 i = thread; i < geometry.count; i += step) {
    i64 places[N] = {};
    Index rest = static_cast<Index>(i);
    for (int dim = static_cast<int>(geometry.dims) - 1; dim >= 0; --dim) {
      const Index next = dim == 0 ? Index(0) : static_cast<Index>(rest / geometry.sizes[dim]);
      const i64 index = static_cast<i64>(static_cast<Index>(rest - next * geometry.sizes[dim]));
      UNROLL
      for (int operand = 0; operand < N; ++operand) places[operand] += index * geometry.strides[operand][dim];
      rest = next;
    }
    chain_step<1>(chain, geometry.pointers, places, types, all);
  }
}

// Chains of one type over operands of several sizes, and the first block of each; `count` of them.
template <class Chain, int most>
struct Chains {
  static_assert(most % 2 == 0, "whole words before the items");
  struct Item {
    Chain chain;
    Contiguous<Chain::kOperands> geometry;
  };
  u32 count;
  u32 first[most + 1];
  Item items[most];
};

}  // namespace opsmith

// The kernel of `opsmith::Chain`, for a form of its operands.
#define OPSMITH_CHAIN(NAME, KIND)                                                                               \
  namespace opsmith {                                                                                           \
  using NAME##_geometry = OPSMITH_GEOMETRY_##KIND(Chain::kOperands);                                            \
  using NAME##_positions = Counted<Chain::kOperands>::type;                                                     \
  }                                                                                                             \
  extern "C" __global__ void __launch_bounds__(opsmith::kLoopThreads)                                           \
      NAME(opsmith::Chain chain, opsmith::NAME##_geometry geometry) {                                           \
    const opsmith::u64 step = static_cast<opsmith::u64>(gridDim.x) * blockDim.x;                                \
    const opsmith::u64 thread = static_cast<opsmith::u64>(blockIdx.x) * blockDim.x + threadIdx.x;               \
    opsmith::run_chain(chain, geometry, opsmith::Chain::Operands{}, opsmith::NAME##_positions{}, thread, step); \
  }

// The kernel of up to `MOST` such chains over contiguous operands.
#define OPSMITH_CHAINS(NAME, MOST)                                                                              \
  namespace opsmith {                                                                                           \
  using NAME##_chains = Chains<Chain, MOST>;                                                                    \
  using NAME##_positions = Counted<Chain::kOperands>::type;                                                     \
  }                                                                                                             \
  extern "C" __global__ void __launch_bounds__(opsmith::kLoopThreads) NAME(opsmith::NAME##_chains all) {        \
    opsmith::u32 number = 0;                                                                                    \
    while (number + 1 < all.count && blockIdx.x >= all.first[number + 1]) ++number;                             \
    const opsmith::u32 first = all.first[number], blocks = all.first[number + 1] - first;                       \
    const opsmith::u64 step = static_cast<opsmith::u64>(blocks) * blockDim.x;                                   \
    const opsmith::u64 thread = static_cast<opsmith::u64>(blockIdx.x - first) * blockDim.x + threadIdx.x;       \
    opsmith::run_chain(all.items[number].chain, all.items[number].geometry, opsmith::Chain::Operands{},         \
                       opsmith::NAME##_positions{}, thread, step);                                              \
  }
