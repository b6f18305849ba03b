// Loops over elements: kernels around the function of a pointwise expression.
//
// In: a type `Loop` with `R operator()(elements of the inputs) const`, the result's type `R`, `kInputs`, and constants of
// a call as members; a geometry. Out: an element of operand 0 for each index; operands 1, 2, … are the inputs in the order
// of the function's parameters, whose types are read off the function. Must not know the expression.
//
//   OPSMITH_LOOP(opsmith_kernel, Loop0<float>, contiguous)
//
// defines a kernel with two parameters, by value: the loop and `Contiguous<N>`; `strided32` and `strided64` have
// `Strided<N, u32>` and `Strided<N, u64>`. N counts the output. A block has 256 threads; one block for each
// 1024 elements, at most 2^20, is enough: threads go on in steps of the whole grid.

namespace opsmith {

// Operands whose elements lie one after the other, in one order.
template <int N>
struct Contiguous {
  u64 count;
  const void *pointers[N];
};

// Operands of any strides, in elements; the innermost dimension is the last, `dims - 1`. Sizes of `u32` are for counts
// below 2^31.
template <int N, class Index>
struct Strided {
  u64 count;
  u32 dims;
  u32 padding;
  Index sizes[8];
  i64 strides[N][8];
  const void *pointers[N];
};

enum : int { kLoopThreads = 256 };

// A list of types and positions.
template <class... Ts>
struct Types {};
template <int... positions>
struct Positions {};
template <int count, int... positions>
struct Counted {
  using type = typename Counted<count - 1, count - 1, positions...>::type;
};
template <int... positions>
struct Counted<0, positions...> {
  using type = Positions<positions...>;
};

// The types of the inputs' elements: the function's parameters.
template <class F>
struct Parameters;
template <class Loop, class R, class... Ts>
struct Parameters<R (Loop::*)(Ts...) const> {
  using types = Types<Ts...>;
};
template <class Loop>
using InputsOf = typename Parameters<decltype(&Loop::operator())>::types;

// The size of the largest type.
template <class... Ts>
struct Widest {
  static constexpr int size = 1;
};
template <class T, class... Ts>
struct Widest<T, Ts...> {
  static constexpr int rest = Widest<Ts...>::size, own = static_cast<int>(sizeof(T));
  static constexpr int size = own > rest ? own : rest;
};

// Elements of a thread's step: the widest operand moves 16 bytes, narrower ones less.
template <class... Ts>
inline constexpr int kWidth = Widest<Ts...>::size >= 16 ? 1 : 16 / Widest<Ts...>::size;

template <class Loop, int N, class... Ts, int... positions>
DEVICE void run_contiguous(const Loop &loop, const Contiguous<N> &geometry, Types<Ts...>, Positions<positions...>) {
  static_assert(sizeof...(Ts) + 1 == N, "an operand for each parameter, and the output");
  using R = typename Loop::R;
  constexpr int width = kWidth<R, Ts...>;
  R *const out = static_cast<R *>(const_cast<void *>(geometry.pointers[0]));
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  const u64 thread = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
  bool aligned = is_aligned<R>(out, width);
  ((aligned = aligned && is_aligned<Ts>(geometry.pointers[positions + 1], width)), ...);
  const u64 packs = aligned ? geometry.count / width : 0;
  for (u64 pack = thread; pack < packs; pack += step) {
    Pack<R, width> result;
    [&](Pack<Ts, width>... inputs) {
      UNROLL
      for (int i = 0; i < width; ++i) result.elements[i] = loop(inputs.elements[i]...);
    }(static_cast<const Pack<Ts, width> *>(geometry.pointers[positions + 1])[pack]...);
    reinterpret_cast<Pack<R, width> *>(out)[pack] = result;
  }
  for (u64 i = packs * width + thread; i < geometry.count; i += step) {
    out[i] = loop(static_cast<const Ts *>(geometry.pointers[positions + 1])[i]...);
  }
}

template <class Loop, int N, class Index, class... Ts, int... positions>
DEVICE void run_strided(const Loop &loop, const Strided<N, Index> &geometry, Types<Ts...>, Positions<positions...>) {
  static_assert(sizeof...(Ts) + 1 == N, "an operand for each parameter, and the output");
  using R = typename Loop::R;
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < geometry.count; i += step) {
    i64 offsets[N] = {};
    Index rest = static_cast<Index>(i);
    for (int dim = static_cast<int>(geometry.dims) - 1; dim >= 0; --dim) {
      // The outermost dimension needs no division: its index is the rest.
      const Index next = dim == 0 ? Index(0) : static_cast<Index>(rest / geometry.sizes[dim]);
      const i64 index = static_cast<i64>(static_cast<Index>(rest - next * geometry.sizes[dim]));
      UNROLL
      for (int operand = 0; operand < N; ++operand) offsets[operand] += index * geometry.strides[operand][dim];
      rest = next;
    }
    static_cast<R *>(const_cast<void *>(geometry.pointers[0]))[offsets[0]] =
        loop(static_cast<const Ts *>(geometry.pointers[positions + 1])[offsets[positions + 1]]...);
  }
}

// A loop without inputs has no operand but the output.
template <class Loop>
using PositionsOf = typename Counted<Loop::kInputs>::type;

}  // namespace opsmith

#define OPSMITH_GEOMETRY_contiguous(N) Contiguous<N>
#define OPSMITH_GEOMETRY_strided32(N) Strided<N, u32>
#define OPSMITH_GEOMETRY_strided64(N) Strided<N, u64>
#define OPSMITH_RUN_contiguous run_contiguous
#define OPSMITH_RUN_strided32 run_strided
#define OPSMITH_RUN_strided64 run_strided

// The kernel of a loop, whose type is one of this namespace or of none.
#define OPSMITH_LOOP(NAME, LOOP, KIND)                                                              \
  namespace opsmith {                                                                               \
  using NAME##_loop = LOOP;                                                                         \
  using NAME##_geometry = OPSMITH_GEOMETRY_##KIND(NAME##_loop::kInputs + 1);                        \
  }                                                                                                 \
  extern "C" __global__ void __launch_bounds__(opsmith::kLoopThreads)                               \
      NAME(opsmith::NAME##_loop loop, opsmith::NAME##_geometry geometry) {                          \
    using Loop = opsmith::NAME##_loop;                                                              \
    opsmith::OPSMITH_RUN_##KIND(loop, geometry, opsmith::InputsOf<Loop>{}, opsmith::PositionsOf<Loop>{}); \
  }
