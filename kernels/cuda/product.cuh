// Products of matrices in tiles, of operands that a functor reads.
//
// In: a functor `f` with `using C` (the type of sums), `ProductShape<C> shape` as its first field, and
//   Row row(u64 stack, u64 row), C left(Row, u64 inner)          an element of the left matrix of a stack
//   Column column(u64 stack, u64 column), C right(Column, u64 inner)   one of the right matrix
//   bool left_by_inner(), right_by_inner()         whether neighbours in memory differ in the inner index
//   void finish(u64 stack, u64 row, u64 column, C sum)           takes a sum over the inner index
// Out: the writes of `finish`, for every row and column of every stack. A block has 256 threads and computes a tile of
// (16 * edge)^2 sums; grid: tiles, stacks (blocks go on in steps), parts of the inner dimension. With more than one part, sums
// go to `shape.partial`, and `OPSMITH_PRODUCT_PARTS` adds them in order.
// `OPSMITH_PRODUCT_ROWS` is for one stack and one column: teams of `team.cuh` for rows, parts along z. Must not know the meaning of operands.

namespace opsmith {

enum : int { kProductThreads = 256, kProductInner = 16 };

template <class C>
struct ProductShape {
  u64 stacks, rows, columns, inner;
  // Inner indices of a part, and the sums of each part if there are several.
  u64 part;
  C *partial;
};

// sum + a * b, rounded once where the type has such an operation.
template <class C>
DEVICE C add_product(C sum, C a, C b) {
  if constexpr (kSame<C, float>) {
    return ::fmaf(a, b, sum);
  } else if constexpr (kSame<C, double>) {
    return ::fma(a, b, sum);
  } else {
    return add(sum, mul(a, b));
  }
}

// Loads a block of inner indices of one operand: `lines` are rows of the left matrix or columns of the right one. `line_at(n)`
// describes line n, `element(line, inner)` reads.
template <int tile, class C, class LineAt, class Element>
DEVICE void load_tile(C (&target)[kProductInner][tile + 1], bool by_inner, u64 first, u64 lines, u64 start, u64 end,
                      const LineAt &line_at, const Element &element) {
  const u32 thread = threadIdx.x;
  if (by_inner) {
    for (u32 i = thread; i < tile * kProductInner; i += kProductThreads) {
      const u32 inner = i % kProductInner, line = i / kProductInner;
      const bool inside = first + line < lines && start + inner < end;
      target[inner][line] = inside ? element(line_at(first + line), start + inner) : zero<C>();
    }
    return;
  }
  // The line of a thread is the same for all its elements.
  const u32 line = thread % tile;
  if (first + line >= lines) {
    for (u32 inner = thread / tile; inner < kProductInner; inner += kProductThreads / tile) target[inner][line] = zero<C>();
    return;
  }
  const auto place = line_at(first + line);
  for (u32 inner = thread / tile; inner < kProductInner; inner += kProductThreads / tile) {
    target[inner][line] = start + inner < end ? element(place, start + inner) : zero<C>();
  }
}

template <int edge, class F>
DEVICE void run_product(const F &f) {
  using C = typename F::C;
  constexpr int kTile = 16 * edge;
  __shared__ C left[kProductInner][kTile + 1];
  __shared__ C right[kProductInner][kTile + 1];
  const ProductShape<C> &shape = f.shape;
  const u64 across = (shape.columns + kTile - 1) / kTile;
  const u64 first_row = blockIdx.x / across * kTile, first_column = blockIdx.x % across * kTile;
  const u32 x = threadIdx.x % 16, y = threadIdx.x / 16;
  const u64 begin = blockIdx.z * shape.part, rest = shape.inner - begin;
  const u64 end = begin + (rest < shape.part ? rest : shape.part);
  for (u64 stack = blockIdx.y; stack < shape.stacks; stack += gridDim.y) {
    C sums[edge][edge] = {};
    for (u64 start = begin; start < end; start += kProductInner) {
      load_tile<kTile>(left, f.left_by_inner(), first_row, shape.rows, start, end, [&](u64 row) { return f.row(stack, row); },
                       [&](const typename F::Row &row, u64 inner) { return f.left(row, inner); });
      load_tile<kTile>(right, f.right_by_inner(), first_column, shape.columns, start, end,
                       [&](u64 column) { return f.column(stack, column); },
                       [&](const typename F::Column &column, u64 inner) { return f.right(column, inner); });
      __syncthreads();
      UNROLL
      for (int inner = 0; inner < kProductInner; ++inner) {
        C a[edge], b[edge];
        UNROLL
        for (int i = 0; i < edge; ++i) {
          a[i] = left[inner][y + 16 * i];
          b[i] = right[inner][x + 16 * i];
        }
        UNROLL
        for (int i = 0; i < edge; ++i) {
          UNROLL
          for (int j = 0; j < edge; ++j) sums[i][j] = add_product(sums[i][j], a[i], b[j]);
        }
      }
      __syncthreads();
    }
    UNROLL
    for (int i = 0; i < edge; ++i) {
      UNROLL
      for (int j = 0; j < edge; ++j) {
        const u64 row = first_row + y + 16 * i, column = first_column + x + 16 * j;
        if (row >= shape.rows || column >= shape.columns) continue;
        if (gridDim.z > 1) {
          shape.partial[((blockIdx.z * shape.stacks + stack) * shape.rows + row) * shape.columns + column] = sums[i][j];
        } else {
          f.finish(stack, row, column, sums[i][j]);
        }
      }
    }
  }
}

// Adds the parts of each sum, in order.
template <class F>
DEVICE void run_product_parts(const F &f) {
  using C = typename F::C;
  const ProductShape<C> &shape = f.shape;
  const u64 each = shape.stacks * shape.rows * shape.columns, parts = (shape.inner + shape.part - 1) / shape.part;
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < each; i += step) {
    C sum = shape.partial[i];
    for (u64 part = 1; part < parts; ++part) sum = add(sum, shape.partial[part * each + i]);
    const u64 line = i / shape.columns;
    f.finish(line / shape.rows, line % shape.rows, i % shape.columns, sum);
  }
}

// Products of rows and one column, of one stack: a team for each row, of each part of the inner dimension.
template <class F>
DEVICE void run_rows(const F &f, bool along_x) {
  using C = typename F::C;
  const Team team = team_of(along_x);
  const ProductShape<C> &shape = f.shape;
  const u64 begin = blockIdx.z * shape.part, rest = shape.inner - begin;
  const u64 end = begin + (rest < shape.part ? rest : shape.part);
  const u64 step = static_cast<u64>(gridDim.x) * team.teams;
  for (u64 first = static_cast<u64>(blockIdx.x) * team.teams; first < shape.rows; first += step) {
    const u64 row = first + team.number;
    C sum = zero<C>();
    if (row < shape.rows) {
      const auto left = f.row(0, row);
      const auto right = f.column(0, 0);
      for (u64 inner = begin + team.lane; inner < end; inner += team.lanes) {
        sum = add_product(sum, f.left(left, inner), f.right(right, inner));
      }
    }
    sum = combined(sum, [](C a, C b) { return add(a, b); }, team);
    if (row >= shape.rows || team.lane != 0) continue;
    if (gridDim.z > 1) {
      shape.partial[blockIdx.z * shape.rows + row] = sum;
    } else {
      f.finish(0, row, 0, sum);
    }
  }
}

}  // namespace opsmith

#define OPSMITH_PRODUCT(NAME, EDGE, ...)                                                                       \
  extern "C" __global__ void __launch_bounds__(opsmith::kProductThreads) NAME(opsmith::__VA_ARGS__ functor) {  \
    opsmith::run_product<EDGE>(functor);                                                                       \
  }
#define OPSMITH_PRODUCT_PARTS(NAME, ...)                                                                       \
  extern "C" __global__ void __launch_bounds__(opsmith::kProductThreads) NAME(opsmith::__VA_ARGS__ functor) {  \
    opsmith::run_product_parts(functor);                                                                       \
  }
#define OPSMITH_PRODUCT_ROWS(NAME, ...)                                                       \
  extern "C" __global__ void __launch_bounds__(opsmith::kTeamThreads)                         \
      NAME(opsmith::__VA_ARGS__ functor, opsmith::u32 along_x) {                              \
    opsmith::run_rows(functor, along_x != 0);                                                 \
  }
