// Householder's reflections `I - tau v vᴴ` with the signs of LAPACK, and the factors Q and R that they give. The twin of
// `cpu::factor::orthogonal`.
//
// Matrices are in working memory, one column after the other, so that a warp reflects a column by itself. The first element of
// `v` is 1 and not kept.

namespace opsmith {

// The root of the sum of squares of elements, scaled so that it does not overflow; for each thread of a block.
template <class T>
DEVICE Real<T> norm_of_block(const T *elements, u64 count) {
  using R = Real<T>;
  R largest = 0, sum = 0;
  for_places(count, [&](u64 at) {
    const R size = parts_of(elements[at]);
    largest = size > largest ? size : largest;
    sum += size;
  });
  largest = of_block(largest, [](R a, R b) { return a > b ? a : b; });
  sum = of_block(sum, Adding{});
  // NaN is larger than nothing, but must not be lost.
  if (largest == 0) return sum;
  R squares = 0;
  for_places(count, [&](u64 at) {
    const R re = math::real(elements[at]) / largest, im = math::imag(elements[at]) / largest;
    squares += re * re + im * im;
  });
  return largest * root_of(of_block(squares, Adding{}));
}

// Replaces elements after the first, of `count`, by those of the vector whose reflection leaves the first alone. The factor,
// which is 0 if nothing is to be reflected, and the first element after it.
template <class T>
struct Reflection {
  T factor;
  Real<T> left;
};

template <class T>
DEVICE Reflection<T> reflection_of(T *elements, u64 count) {
  using R = Real<T>;
  const T alpha = elements[0];
  const R length = norm_of_block(elements + 1, count - 1);
  __syncthreads();
  if (length == 0 && math::imag(alpha) == 0) return {zero<T>(), math::real(alpha)};
  const R beta = -with_sign(math::hypot_part(math::abs(alpha), length), math::real(alpha));
  const T factor = div(sub(of_real<T>(beta), alpha), of_real<T>(beta));
  const T scale = div(one<T>(), sub(alpha, of_real<T>(beta)));
  for_places(count - 1, [&](u64 at) { elements[1 + at] = mul(elements[1 + at], scale); });
  __syncthreads();
  return {factor, beta};
}

// Reflects columns of `rows` elements from `from` on by the vector of the elements `from` and later, each by a warp. `stride` is
// the distance of columns.
template <class T>
DEVICE void reflect_columns(T *columns, u64 count, u64 stride, u64 from, u64 rows, const T *vector, T factor) {
  if (equal(factor, zero<T>())) return;
  const u32 lane = threadIdx.x % kWarp;
  for_warps(count, [&](u64 number) {
    T *const column = columns + number * stride;
    T sum = zero<T>();
    for (u64 at = from + lane; at < rows; at += kWarp) {
      sum = add(sum, at == from ? column[at] : mul(math::conj(vector[at - from]), column[at]));
    }
    sum = mul(factor, of_warp(sum, Adding{}));
    for (u64 at = from + lane; at < rows; at += kWarp) {
      column[at] = sub(column[at], at == from ? sum : mul(vector[at - from], sum));
    }
  });
}

// A matrix after reflections of its columns: R on and above the diagonal, below it the vectors.
template <class T>
DEVICE void reflect_all(T *matrix, u64 rows, u64 columns, T *factors) {
  const u64 steps = rows < columns ? rows : columns;
  ROLLED
  for (u64 step = 0; step < steps; ++step) {
    T *const column = matrix + step * rows + step;
    const Reflection<T> made = reflection_of(column, rows - step);
    reflect_columns(
        matrix + (step + 1) * rows, columns - step - 1, rows, step, rows, column, math::conj(made.factor));
    __syncthreads();
    if (threadIdx.x == 0) column[0] = of_real<T>(made.left), factors[step] = made.factor;
    __syncthreads();
  }
}

// The product of all reflections with columns.
template <class T>
DEVICE void apply_all(const T *matrix, u64 rows, u64 steps, const T *factors, T *to, u64 count) {
  ROLLED
  for (u64 step = steps; step-- > 0;) {
    reflect_columns(to, count, rows, step, rows, matrix + step * rows + step, factors[step]);
    __syncthreads();
  }
}

// The copy of a matrix in working memory, column by column, times a factor.
template <class T>
DEVICE void load_columns(T *to, const Matrix<T> &from, u64 rows, u64 columns) {
  for_elements(rows, columns, [&](u64 row, u64 column) { to[column * rows + row] = from.at(row, column); });
  __syncthreads();
}

// Operands: Q (not of the mode without), R, the matrix. Options: whether there is a Q.
template <class T>
DEVICE void orthogonal(const Matrices &matrices, u64 number, unsigned char *room) {
  const u64 rows = matrices.operands[2].rows, columns = matrices.operands[2].columns;
  const u64 steps = rows < columns ? rows : columns, kept = matrices.operands[1].rows;
  T *const work = take<T>(room, rows * columns), *const factors = take<T>(room, steps);
  load_columns(work, matrix_of<T>(matrices, 2, number), rows, columns);
  reflect_all(work, rows, columns, factors);
  const Matrix<T> r = matrix_of<T>(matrices, 1, number);
  for_elements(kept, columns, [&](u64 row, u64 column) {
    r.set(row, column, row <= column && row < rows ? work[column * rows + row] : zero<T>());
  });
  if (!matrices.has(0)) return;
  const u64 count = matrices.operands[0].columns;
  T *const q = take<T>(room, rows * count);
  for_elements(count, rows, [&](u64 column, u64 row) { q[column * rows + row] = row == column ? one<T>() : zero<T>(); });
  __syncthreads();
  apply_all(work, rows, steps, factors, q, count);
  const Matrix<T> out = matrix_of<T>(matrices, 0, number);
  for_elements(rows, count, [&](u64 row, u64 column) { out.set(row, column, q[column * rows + row]); });
}

// The number of size 1 that makes the largest of elements positive; one thread's work. Elements of about one size do not take
// turns by rounding: an earlier one wins.
template <class T>
DEVICE T turn_of(const T *elements, u64 count) {
  using R = Real<T>;
  const R margin = R(1) + static_cast<R>(1e-3);
  T largest = zero<T>();
  for (u64 at = 0; at < count; ++at) {
    if (math::abs(elements[at]) > math::abs(largest) * margin) largest = elements[at];
  }
  if (equal(largest, zero<T>())) return one<T>();
  return div(math::conj(largest), of_real<T>(math::abs(largest)));
}

// The place of each of some numbers in order, equal ones in that of their places.
template <class R, class Before>
DEVICE void put_in_order(const R *values, u64 count, u32 *order, const Before &before) {
  // Numbers that have no order would leave places without one.
  for_places(count, [&](u64 at) { order[at] = static_cast<u32>(at); });
  __syncthreads();
  for_places(count, [&](u64 at) {
    u64 place = 0;
    for (u64 other = 0; other < count; ++other) {
      const bool comes_first = before(values[other], values[at]);
      place += comes_first || (!before(values[at], values[other]) && other < at) ? 1 : 0;
    }
    order[place] = static_cast<u32>(at);
  });
  __syncthreads();
}

}  // namespace opsmith
