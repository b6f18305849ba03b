// Kernels with a thread for each index of operands of any strides.
//
// In: a functor with `Strided<N, u64> places`, and `DEVICE void operator()(const i64 (&offsets)[N], const u64 (&index)[8])
// const`, where offsets are those of the operands in elements and index is that of each dimension, outermost first. Out:
// whatever the functor writes. `OPSMITH_EACH(opsmith_kernel, Triangle<float>)` defines a kernel with the functor as its
// parameter; the launch is that of `loop.cuh`.

namespace opsmith {

template <class Functor, int N>
DEVICE void run_each(const Functor &functor, const Strided<N, u64> &places) {
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < places.count; i += step) {
    i64 offsets[N] = {};
    u64 index[8] = {};
    u64 rest = i;
    for (int dim = static_cast<int>(places.dims) - 1; dim >= 0; --dim) {
      const u64 next = dim == 0 ? 0 : rest / places.sizes[dim];
      index[dim] = rest - next * places.sizes[dim];
      for (int operand = 0; operand < N; ++operand) {
        offsets[operand] += static_cast<i64>(index[dim]) * places.strides[operand][dim];
      }
      rest = next;
    }
    functor(offsets, index);
  }
}

// An operand of four dimensions.
template <class T>
struct Field {
  T *start;
  i64 strides[4];

  DEVICE T &at(i64 a, i64 b, i64 c, i64 d) const {
    return start[a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3]];
  }
};

}  // namespace opsmith

#define OPSMITH_EACH(NAME, FUNCTOR)                                                                       \
  extern "C" __global__ void __launch_bounds__(opsmith::kLoopThreads) NAME(opsmith::FUNCTOR functor) {    \
    opsmith::run_each(functor, functor.places);                                                           \
  }
