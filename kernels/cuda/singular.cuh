// Singular values and vectors by one-sided rotations: the twin of `cpu::factor::singular`.
//
// In and out: a `Matrices`. A matrix with at least as many rows as columns (else its adjoint) is reflected to a triangle, whose
// rows are rotated in pairs until all are orthogonal. The pairs of a round have numbers of one sum, so that no row is in two of them,
// and a warp has a pair. Each row meets the others in the order of the host, whose pairs come row by row: so rotations are the same.
//
// Source: M. R. Hestenes (1958); rounds: F. T. Luk and H. Park (1989).

namespace opsmith {

// Replaces two rows by `cosine * first - sine * second` and `conj(sine) * first + cosine * second`; a warp's work.
template <class T>
DEVICE void rotate_rows(T *first, T *second, u64 count, T cosine, T sine) {
  const T back = math::conj(sine);
  for (u64 at = threadIdx.x % kWarp; at < count; at += kWarp) {
    const T x = first[at], y = second[at];
    first[at] = sub(mul(cosine, x), mul(sine, y));
    second[at] = add(mul(back, x), mul(cosine, y));
  }
}

template <class T>
struct Overlap {
  T both;
  Real<T> first, second;
};
struct AddingOverlaps {
  template <class T>
  DEVICE Overlap<T> operator()(const Overlap<T> &a, const Overlap<T> &b) const {
    return {add(a.both, b.both), a.first + b.first, a.second + b.second};
  }
};

// Makes two rows orthogonal, and turns those of `turns` alike; whether they were not before. A warp's work.
template <class T>
DEVICE bool rotate_pair(T *first, T *second, u64 n, T *turns_first, T *turns_second, bool with_turns) {
  using R = Real<T>;
  Overlap<T> found = {zero<T>(), 0, 0};
  for (u64 at = threadIdx.x % kWarp; at < n; at += kWarp) {
    const T x = first[at], y = second[at];
    found = AddingOverlaps{}(
        found, Overlap<T>{mul(x, math::conj(y)), math::real(mul(x, math::conj(x))), math::real(mul(y, math::conj(y)))});
  }
  found = of_warp(found, AddingOverlaps{});
  const R size = math::abs(found.both), tolerance = kEpsilon<R> * root_of(static_cast<R>(n));
  if (size <= tolerance * root_of(found.first) * root_of(found.second) || size <= kLeast<R>) return false;
  const R ratio = (found.second - found.first) / (2 * size);
  const R tangent = with_sign(R(1), ratio) / (magnitude(ratio) + math::hypot_part(ratio, R(1)));
  const R cosine = 1 / math::hypot_part(tangent, R(1));
  const T sine = mul(of_real<T>(cosine * tangent / size), found.both);
  rotate_rows(first, second, n, of_real<T>(cosine), sine);
  if (with_turns) rotate_rows(turns_first, turns_second, n, of_real<T>(cosine), sine);
  return true;
}

// Rotates rows until every two are orthogonal, and `turns` as well.
template <class T>
DEVICE void orthogonalize(T *rows, T *turns, u64 n, bool with_turns) {
  for (int pass = 0; pass < 60; ++pass) {
    u32 changed = 0;
    ROLLED
    for (u64 round = 1; round + 2 < 2 * n; ++round) {
      // Pairs whose numbers have this sum.
      const u64 highest = round < n ? 0 : round - (n - 1), count = (round + 1) / 2 - highest;
      for_warps(count, [&](u64 pair) {
        const u64 above = highest + pair, below = round - above;
        T *const first = turns + above * n, *const second = turns + below * n;
        if (rotate_pair(rows + above * n, rows + below * n, n, first, second, with_turns)) changed = 1;
      });
      __syncthreads();
    }
    if (of_block(changed, EitherOf{}) == 0) return;
  }
}

// The root of the sum of squares of a row, scaled; a warp's work.
template <class T>
DEVICE Real<T> norm_of_warp(const T *row, u64 count) {
  using R = Real<T>;
  R largest = 0, sum = 0;
  for (u64 at = threadIdx.x % kWarp; at < count; at += kWarp) {
    const R size = parts_of(row[at]);
    largest = size > largest ? size : largest;
  }
  largest = of_warp(largest, [](R a, R b) { return a > b ? a : b; });
  if (largest == 0) return 0;
  for (u64 at = threadIdx.x % kWarp; at < count; at += kWarp) {
    const R re = math::real(row[at]) / largest, im = math::imag(row[at]) / largest;
    sum += re * re + im * im;
  }
  return largest * root_of(of_warp(sum, Adding{}));
}

// A row orthogonal to the `above` first ones, which are orthonormal; it begins with the axis that is farthest from them.
template <class T>
DEVICE void complete_row(T *unit, u64 above, u64 n, Real<T> *inside) {
  using R = Real<T>;
  __shared__ u64 chosen;
  for_places(n, [&](u64 axis) {
    R sum = 0;
    for (u64 row = 0; row < above; ++row) {
      const R size = math::abs(unit[row * n + axis]);
      sum += size * size;
    }
    inside[axis] = sum;
  });
  __syncthreads();
  if (threadIdx.x == 0) {
    u64 best = 0;
    for (u64 axis = 1; axis < n; ++axis) best = inside[axis] < inside[best] ? axis : best;
    chosen = best;
  }
  __syncthreads();
  T *const row = unit + above * n;
  for_places(n, [&](u64 at) { row[at] = at == chosen ? one<T>() : zero<T>(); });
  __syncthreads();
  for (u64 turn = 0; turn < 2 * above; ++turn) {
    const T *const other = unit + (turn < above ? turn : turn - above) * n;
    T part = zero<T>();
    for_places(n, [&](u64 at) { part = add(part, mul(row[at], math::conj(other[at]))); });
    part = of_block(part, Adding{});
    for_places(n, [&](u64 at) { row[at] = sub(row[at], mul(part, other[at])); });
    __syncthreads();
  }
  const R length = norm_of_block(row, n);
  __syncthreads();
  for_places(n, [&](u64 at) { row[at] = mul(of_real<T>(1 / length), row[at]); });
  __syncthreads();
}

// Rows in an order, scaled to length 1; those too short for that are replaced by rows orthogonal to all others.
template <class T>
DEVICE void unit_rows(const T *rows, const Real<T> *lengths, const u32 *order, u64 n, T *unit, Real<T> *inside) {
  using R = Real<T>;
  const R least = root_of(kLeast<R>);
  for_elements(n, n, [&](u64 row, u64 column) {
    const R length = lengths[order[row]];
    unit[row * n + column] = length > least ? mul(of_real<T>(1 / length), rows[order[row] * n + column]) : zero<T>();
  });
  __syncthreads();
  for (u64 row = 0; row < n; ++row) {
    if (!(lengths[order[row]] > least)) complete_row(unit, row, n, inside);
  }
}

// Operands: U, the values, the adjoint of V, the matrix. Options: whether there are vectors.
template <class T>
DEVICE void singular(const Matrices &matrices, u64 number, unsigned char *room) {
  using R = Real<T>;
  const bool with_vectors = matrices.has(0), wide = matrices.operands[3].rows < matrices.operands[3].columns;
  u64 m = matrices.operands[3].rows, n = matrices.operands[3].columns;
  Matrix<T> from = matrix_of<T>(matrices, 3, number), u = matrix_of<T>(matrices, 0, number);
  Matrix<T> v = matrix_of<T>(matrices, 2, number);
  u64 left_columns = matrices.operands[0].columns;
  if (wide) {
    // A = (U S V)ᴴ of the adjoint: the factors are exchanged.
    const u64 rows = m;
    m = n, n = rows, from = from.adjoint();
    const Matrix<T> other = u.adjoint();
    u = v.adjoint(), v = other, left_columns = matrices.operands[2].rows;
  }
  if (!is_finite_matrix(from, m, n)) {
    if (threadIdx.x == 0) matrices.refuse(number, 0);
    return;
  }
  T *const work = take<T>(room, m * n), *const factors = take<T>(room, n);
  T *const rows = take<T>(room, n * n), *const turns = take<T>(room, n * n);
  R *const lengths = take<R>(room, n), *const inside = take<R>(room, n);
  u32 *const order = take<u32>(room, n);
  load_columns(work, from, m, n);
  R scale = 0;
  for_places(m * n, [&](u64 at) {
    const R size = math::abs(work[at]);
    scale = size > scale ? size : scale;
  });
  scale = of_block(scale, [](R a, R b) { return a > b ? a : b; });
  __syncthreads();
  reflect_all(work, m, n, factors);
  for_elements(n, n, [&](u64 row, u64 column) {
    const T element = row <= column ? work[column * m + row] : zero<T>();
    rows[row * n + column] = scale > 0 ? div(element, of_real<T>(scale)) : element;
    turns[row * n + column] = row == column ? one<T>() : zero<T>();
  });
  __syncthreads();
  orthogonalize(rows, turns, n, with_vectors);
  for_warps(n, [&](u64 row) {
    const R length = norm_of_warp(rows + row * n, n);
    if (threadIdx.x % kWarp == 0) lengths[row] = length;
  });
  __syncthreads();
  put_in_order(lengths, n, order, [](R a, R b) { return a > b; });
  const Matrix<R> values = matrix_of<R>(matrices, 1, number);
  for_places(n, [&](u64 at) { values.set(0, at, lengths[order[at]] * scale); });
  if (!with_vectors) return;

  T *const unit = take<T>(room, n * n), *const left = take<T>(room, m * left_columns);
  unit_rows(rows, lengths, order, n, unit, inside);
  T *const turned = take<T>(room, n);
  for_places(n, [&](u64 row) { turned[row] = turn_of(unit + row * n, n); });
  __syncthreads();
  // The adjoint of the rotations, its columns in order, below it the identity for columns beyond. Column and row turn together.
  for_elements(left_columns, m, [&](u64 column, u64 row) {
    const bool is_turned = row < n && column < n;
    left[column * m + row] = is_turned ? mul(math::conj(turns[order[column] * n + row]), math::conj(turned[column]))
                             : row == column ? one<T>()
                                             : zero<T>();
  });
  __syncthreads();
  apply_all(work, m, n, factors, left, left_columns);
  for_elements(m, left_columns, [&](u64 row, u64 column) { u.set(row, column, left[column * m + row]); });
  for_elements(n, n, [&](u64 row, u64 column) { v.set(row, column, mul(unit[row * n + column], turned[row])); });
}

}  // namespace opsmith
