// Eigenvalues and eigenvectors of symmetric and Hermitian matrices: the twin of `cpu::factor::hermitian`.
//
// In and out: a `Matrices`. Householder's reduction to a tridiagonal matrix by the block; the rotations of the implicit QL
// algorithm follow from that matrix alone, so one thread computes those of a step, and each applies them to columns of its own.

namespace opsmith {

// A block of a tridiagonal matrix, and the rotations of one step on it: of the rows `first` to `end`, from the last on.
template <class R>
struct Rotations {
  u64 first, end;
  // Whether there is a step; without, whether the values converged.
  bool is_step, is_done;
};

// One step of the QL algorithm with an implicit shift, on the block between two places; the first row that it rotates.
template <class R>
DEVICE u64 ql_step(R *diagonal, R *beside, u64 start, u64 end, R *cosines, R *sines) {
  const R ratio = (diagonal[start + 1] - diagonal[start]) / (2 * beside[start]);
  const R of_ratio = math::hypot_part(ratio, R(1));
  R shifted = diagonal[end] - diagonal[start] + beside[start] / (ratio + with_sign(of_ratio, ratio));
  R sine = 1, cosine = 1, moved = 0;
  for (u64 at = end; at-- > start;) {
    const R off = sine * beside[at], kept = cosine * beside[at], length = math::hypot_part(off, shifted);
    beside[at + 1] = length;
    if (length == 0) {
      diagonal[at + 1] -= moved;
      beside[end] = 0;
      return at + 1;
    }
    sine = off / length, cosine = shifted / length;
    shifted = diagonal[at + 1] - moved;
    const R turned = (diagonal[at] - shifted) * sine + 2 * cosine * kept;
    moved = sine * turned;
    diagonal[at + 1] = shifted + moved;
    shifted = cosine * turned - kept;
    cosines[at] = cosine, sines[at] = sine;
  }
  diagonal[start] -= moved;
  beside[start] = shifted;
  beside[end] = 0;
  return start;
}

// The next step from the first row on that is not yet apart.
template <class R>
DEVICE Rotations<R> next_step(u64 n, u64 &start, u64 &steps, R *diagonal, R *beside, R *cosines, R *sines) {
  for (; start < n; ++start) {
    u64 end = start;
    while (end + 1 < n &&
           !(magnitude(beside[end]) <= kEpsilon<R> * (magnitude(diagonal[end]) + magnitude(diagonal[end + 1])))) {
      ++end;
    }
    if (end == start) continue;
    if (++steps > 60 * n) return {0, 0, false, false};
    return {ql_step(diagonal, beside, start, end, cosines, sines), end, true, false};
  }
  return {0, 0, false, true};
}

// Makes a tridiagonal matrix diagonal; rotations are applied to `rows` of n elements, if there are any. Whether it converged.
template <class R>
DEVICE bool diagonalize(u64 n, R *diagonal, R *beside, R *cosines, R *sines, R *rows) {
  __shared__ Rotations<R> made;
  u64 start = 0, steps = 0;
  for (;;) {
    if (threadIdx.x == 0) made = next_step(n, start, steps, diagonal, beside, cosines, sines);
    __syncthreads();
    const Rotations<R> step = made;
    if (step.is_step && rows != nullptr) {
      for_places(n, [&](u64 column) {
        R below = rows[step.end * n + column];
        for (u64 at = step.end; at-- > step.first;) {
          const R above = rows[at * n + column], cosine = cosines[at], sine = sines[at];
          rows[(at + 1) * n + column] = sine * above + cosine * below;
          below = cosine * above - sine * below;
        }
        rows[step.first * n + column] = below;
      });
    }
    __syncthreads();
    if (!step.is_step) return step.is_done;
  }
}

// Rows of the identity.
template <class R>
DEVICE void set_identity_rows(R *rows, u64 n) {
  for_elements(n, n, [&](u64 row, u64 column) { rows[row * n + column] = row == column ? R(1) : R(0); });
  __syncthreads();
}

// Reflects the rows and columns from one on of a Hermitian matrix in row-major order.
template <class T>
DEVICE void reflect_both(T *a, u64 n, u64 from, const T *vector, T factor, T *sums) {
  if (equal(factor, zero<T>())) return;
  const u32 lane = threadIdx.x % kWarp;
  const u64 rest = n - from;
  const auto of_vector = [&](u64 at) { return at == 0 ? one<T>() : vector[at]; };
  for_warps(rest, [&](u64 row) {
    T sum = zero<T>();
    for (u64 at = lane; at < rest; at += kWarp) sum = add(sum, mul(a[(from + row) * n + from + at], of_vector(at)));
    sum = of_warp(sum, Adding{});
    if (lane == 0) sums[row] = mul(factor, sum);
  });
  __syncthreads();
  T overlap = zero<T>();
  for_places(rest, [&](u64 at) { overlap = add(overlap, mul(of_vector(at), math::conj(sums[at]))); });
  overlap = of_block(overlap, Adding{});
  const T half = mul(mul(of_real<T>(static_cast<Real<T>>(-0.5)), factor), overlap);
  __syncthreads();
  for_places(rest, [&](u64 at) { sums[at] = add(sums[at], mul(half, of_vector(at))); });
  __syncthreads();
  for_elements(rest, rest, [&](u64 row, u64 column) {
    T &element = a[(from + row) * n + from + column];
    element = sub(element, mul(of_vector(row), math::conj(sums[column])));
    element = sub(element, mul(sums[row], math::conj(of_vector(column))));
  });
  __syncthreads();
}

// Operands: the values, the vectors, the matrix. Options: whether the upper triangle is read, whether there are vectors.
template <class T>
DEVICE void eigen(const Matrices &matrices, u64 number, unsigned char *room) {
  using R = Real<T>;
  const u64 n = matrices.operands[2].rows;
  const bool with_vectors = matrices.has(1);
  Matrix<T> from = matrix_of<T>(matrices, 2, number);
  if (matrices.has(0)) from = from.adjoint();
  const Matrix<T> vectors = matrix_of<T>(matrices, 1, number);
  const Matrix<R> values = matrix_of<R>(matrices, 0, number);
  T *const a = take<T>(room, n * n), *const reflected = take<T>(room, n * n);
  T *const factors = take<T>(room, n), *const sums = take<T>(room, n);
  R *const diagonal = take<R>(room, n), *const beside = take<R>(room, n);
  R *const cosines = take<R>(room, n), *const sines = take<R>(room, n);
  u32 *const order = take<u32>(room, n);
  for_elements(n, n, [&](u64 row, u64 column) {
    const T element = row < column ? math::conj(from.at(column, row)) : from.at(row, column);
    a[row * n + column] = row == column ? of_real<T>(math::real(element)) : element;
  });
  __syncthreads();
  if (!is_finite_matrix(row_major(a, n), n, n)) {
    for_places(n, [&](u64 at) { values.set(0, at, not_a_number<R>()); });
    if (with_vectors) {
      for_elements(n, n, [&](u64 row, u64 column) { vectors.set(row, column, of_real<T>(not_a_number<R>())); });
    }
    return;
  }
  ROLLED
  for (u64 step = 0; step < n; ++step) {
    if (threadIdx.x == 0) diagonal[step] = math::real(a[step * n + step]), beside[step] = 0;
    if (step + 1 == n) break;
    T *const vector = reflected + step * n + step + 1;
    for_places(n - step - 1, [&](u64 at) { vector[at] = a[(step + 1 + at) * n + step]; });
    __syncthreads();
    const Reflection<T> made = reflection_of(vector, n - step - 1);
    reflect_both(a, n, step + 1, vector, made.factor, sums);
    if (threadIdx.x == 0) beside[step] = made.left, factors[step] = made.factor;
  }
  __syncthreads();
  // The matrix is in the tridiagonal one now, and its memory free for as many rows of real numbers.
  R *const rows = with_vectors ? reinterpret_cast<R *>(a) : nullptr;
  if (with_vectors) set_identity_rows(rows, n);
  if (!diagonalize(n, diagonal, beside, cosines, sines, rows)) {
    if (threadIdx.x == 0) matrices.refuse(number, 0);
    return;
  }
  put_in_order(diagonal, n, order, [](R x, R y) { return x < y; });
  for_places(n, [&](u64 at) { values.set(0, at, diagonal[order[at]]); });
  if (!with_vectors) return;
  T *const columns = take<T>(room, n * n);
  for_elements(n, n, [&](u64 column, u64 row) { columns[column * n + row] = of_real<T>(rows[order[column] * n + row]); });
  __syncthreads();
  ROLLED
  for (u64 step = n - 1; step-- > 0;) {
    reflect_columns(columns, n, n, step + 1, n, reflected + step * n + step + 1, factors[step]);
    __syncthreads();
  }
  T *const turns = sums;
  for_places(n, [&](u64 column) { turns[column] = turn_of(columns + column * n, n); });
  __syncthreads();
  for_elements(n, n, [&](u64 row, u64 column) {
    vectors.set(row, column, mul(columns[column * n + row], turns[column]));
  });
}

}  // namespace opsmith
