// Stacks of matrices of any strides, each the work of one block.
//
// In: a `Matrices`: operands with the same stack, whose dimensions before the last two are counted row-major. Out: the matrix
// of an operand, loops of a block's threads over its elements, and sums of a warp or a block. Blocks have a power of two of
// threads, a warp at least, all along x. Results depend on sizes alone.
//
// A `Room` is the part of working memory that belongs to this block.

namespace opsmith {

// An operand: the strides of its stack are 0 where it is repeated.
struct Operand {
  void *start;
  u64 rows, columns;
  i64 row_step, column_step;
  i64 steps[kMostDims];
};

enum : int { kMostOperands = 5 };

struct Matrices {
  u64 count;
  u64 dims;
  u64 sizes[kMostDims];
  Operand operands[kMostOperands];
  // Working memory: `room` bytes of each block.
  unsigned char *memory;
  u64 room;
  // The options of an operator, one bit each.
  u64 options;
  // The least of `number << 32 | place` of the matrices that an operator refuses.
  u64 *refused;

  DEVICE bool has(int option) const { return (options >> option & 1) != 0; }
  DEVICE void refuse(u64 number, u64 place) const { atomicMin(refused, number << 32 | place); }
};

// Elements as rows and columns; conjugated where they are read and written, if asked for.
template <class T>
struct Matrix {
  T *start;
  i64 row_step, column_step;
  bool conjugate;

  DEVICE T at(u64 row, u64 column) const {
    const T element = start[static_cast<i64>(row) * row_step + static_cast<i64>(column) * column_step];
    return conjugate ? math::conj(element) : element;
  }
  DEVICE void set(u64 row, u64 column, T element) const {
    start[static_cast<i64>(row) * row_step + static_cast<i64>(column) * column_step] =
        conjugate ? math::conj(element) : element;
  }
  DEVICE Matrix transposed() const { return {start, column_step, row_step, conjugate}; }
  DEVICE Matrix adjoint() const { return {start, column_step, row_step, !conjugate}; }
};

// The matrix of one number in the stack of an operand.
template <class T>
DEVICE Matrix<T> matrix_of(const Matrices &matrices, int operand, u64 number) {
  const Operand &of = matrices.operands[operand];
  i64 offset = 0;
  ROLLED
  for (int dim = static_cast<int>(matrices.dims) - 1; dim >= 0; --dim) {
    const u64 next = number / matrices.sizes[dim];
    offset += static_cast<i64>(number - next * matrices.sizes[dim]) * of.steps[dim];
    number = next;
  }
  return {static_cast<T *>(of.start) + offset, of.row_step, of.column_step, false};
}

// Working memory in row-major order.
template <class T>
DEVICE Matrix<T> row_major(T *start, u64 columns) {
  return {start, static_cast<i64>(columns), 1, false};
}

// The first so many elements of working memory, which moves on behind them.
template <class T>
DEVICE T *take(unsigned char *&room, u64 count) {
  T *const first = reinterpret_cast<T *>(room);
  room += (count * sizeof(T) + 15) / 16 * 16;
  return first;
}

// A number without an imaginary part.
template <class T>
DEVICE T of_real(Real<T> value) {
  if constexpr (kIsComplex<T>) {
    return T{value, 0};
  } else {
    return value;
  }
}

// The sum of the sizes of the parts, by which pivots are chosen.
template <class T>
DEVICE Real<T> parts_of(T value) {
  if constexpr (kIsComplex<T>) {
    return magnitude(value.re) + magnitude(value.im);
  } else {
    return magnitude(value);
  }
}

template <class R>
DEVICE R root_of(R value) {
  if constexpr (kSame<R, float>) {
    return ::sqrtf(value);
  } else {
    return ::sqrt(value);
  }
}

template <class R>
DEVICE R with_sign(R value, R sign) {
  if constexpr (kSame<R, float>) {
    return ::copysignf(value, sign);
  } else {
    return ::copysign(value, sign);
  }
}

// The distance from 1 to the next number, and the least positive number of full precision.
template <class R>
inline constexpr R kEpsilon = kSame<R, float> ? static_cast<R>(0x1p-23) : static_cast<R>(0x1p-52);
template <class R>
inline constexpr R kLeast = kSame<R, float> ? static_cast<R>(0x1p-126) : static_cast<R>(0x1p-1022);

// All rows and columns, shared by the threads of the block; those of a warp have neighbouring columns.
template <class Each>
DEVICE void for_elements(u64 rows, u64 columns, const Each &each) {
  u32 shift = 0;
  while (shift < 5 && (1u << shift) < columns) ++shift;
  const u32 width = 1u << shift;
  for (u64 row = threadIdx.x >> shift; row < rows; row += blockDim.x >> shift) {
    for (u64 column = threadIdx.x & (width - 1); column < columns; column += width) each(row, column);
  }
}

// All places, shared by the threads of the block.
template <class Each>
DEVICE void for_places(u64 count, const Each &each) {
  for (u64 place = threadIdx.x; place < count; place += blockDim.x) each(place);
}

// All places, each the work of a warp.
template <class Each>
DEVICE void for_warps(u64 count, const Each &each) {
  for (u64 place = threadIdx.x / kWarp; place < count; place += blockDim.x / kWarp) each(place);
}

// A value merged over the lanes of a warp, for each of them.
template <class P, class Merge>
DEVICE P of_warp(P value, const Merge &merge) {
  ROLLED
  for (u32 offset = kWarp / 2; offset > 0; offset /= 2) value = merge(value, shuffled_down(value, offset, kWarp));
  return shuffled_first(value, kWarp);
}

// A value merged over the threads of the block, for each of them.
template <class P, class Merge>
DEVICE P of_block(P value, const Merge &merge) {
  return combined(value, merge, Team{true, threadIdx.x, blockDim.x, 0, 1});
}

struct EitherOf {
  DEVICE u32 operator()(u32 a, u32 b) const { return a | b; }
};

// Whether all elements of a matrix are finite.
template <class T>
DEVICE bool is_finite_matrix(const Matrix<T> &matrix, u64 rows, u64 columns) {
  u32 found = 0;
  for_elements(rows, columns, [&](u64 row, u64 column) {
    const T element = matrix.at(row, column);
    if (!math::is_finite(element)) found = 1;
  });
  return of_block(found, EitherOf{}) == 0;
}

}  // namespace opsmith

// A kernel whose block calls FUNCTION<T>(matrices, number, room) for some matrices, one after the other.
#define OPSMITH_MATRICES(NAME, FUNCTION, T)                                                                 \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads) NAME(opsmith::Matrices matrices) {    \
    using namespace opsmith;                                                                                \
    unsigned char *const room = matrices.memory + blockIdx.x * matrices.room;                               \
    for (u64 number = blockIdx.x; number < matrices.count; number += gridDim.x) {                           \
      FUNCTION<T>(matrices, number, room);                                                                  \
      __syncthreads();                                                                                      \
    }                                                                                                       \
  }
