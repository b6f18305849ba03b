// Factors of matrices by elimination: Cholesky's, those with exchanged rows, and the solutions, inverses and determinants that
// they give. The twin of `cpu::factor`.
//
// In and out: a `Matrices`, whose operands each function lists. A step of an elimination is one loop of the block's threads
// over the rest of the matrix.

namespace opsmith {

// Replaces `b` by the solution of `a x = b`, reading one triangle of `a`.
template <class T>
DEVICE void solve_triangle(const Matrix<T> &a, u64 n, bool upper, bool unit, const Matrix<T> &b, u64 columns) {
  ROLLED
  for (u64 step = 0; step < n; ++step) {
    const u64 row = upper ? n - 1 - step : step, rest = n - 1 - step;
    if (!unit) {
      const T divisor = a.at(row, row);
      for_places(columns, [&](u64 column) { b.set(row, column, div(b.at(row, column), divisor)); });
      __syncthreads();
    }
    for_elements(rest, columns, [&](u64 at, u64 column) {
      const u64 other = upper ? at : row + 1 + at;
      b.set(other, column, sub(b.at(other, column), mul(a.at(other, row), b.at(row, column))));
    });
    __syncthreads();
  }
}

// Operands: the solution, the triangular matrix, the right side. Options: upper, left, ones on the diagonal.
template <class T>
DEVICE void solve_triangular(const Matrices &matrices, u64 number, unsigned char *) {
  Matrix<T> x = matrix_of<T>(matrices, 0, number), a = matrix_of<T>(matrices, 1, number);
  Matrix<T> b = matrix_of<T>(matrices, 2, number);
  u64 rows = matrices.operands[0].rows, columns = matrices.operands[0].columns;
  bool upper = matrices.has(0);
  if (!matrices.has(1)) {
    const u64 exchanged = rows;
    rows = columns, columns = exchanged;
    x = x.transposed(), a = a.transposed(), b = b.transposed();
    upper = !upper;
  }
  for_elements(rows, columns, [&](u64 row, u64 column) { x.set(row, column, b.at(row, column)); });
  __syncthreads();
  solve_triangle(a, rows, upper, matrices.has(2), x, columns);
}

// Operands: the factor, `info`, the matrix. Options: upper, whether failures are refused.
template <class T>
DEVICE void cholesky(const Matrices &matrices, u64 number, unsigned char *) {
  using R = Real<T>;
  const bool upper = matrices.has(0);
  Matrix<T> l = matrix_of<T>(matrices, 0, number), a = matrix_of<T>(matrices, 2, number);
  if (upper) l = l.adjoint(), a = a.adjoint();
  const u64 n = matrices.operands[0].rows;
  for_elements(n, n, [&](u64 row, u64 column) { l.set(row, column, column <= row ? a.at(row, column) : zero<T>()); });
  __syncthreads();
  u64 failed = 0;
  ROLLED
  for (u64 column = 0; column < n; ++column) {
    const R square = math::real(l.at(column, column));
    if (!(square > 0)) {
      failed = column + 1;
      break;
    }
    const T diagonal = of_real<T>(root_of(square));
    const u64 rest = n - 1 - column;
    __syncthreads();
    for_places(rest + 1, [&](u64 at) {
      const u64 row = column + at;
      l.set(row, column, at == 0 ? diagonal : div(l.at(row, column), diagonal));
    });
    __syncthreads();
    for_elements(rest, rest, [&](u64 at, u64 to) {
      if (to > at) return;
      const u64 row = column + 1 + at, other = column + 1 + to;
      l.set(row, other, sub(l.at(row, other), mul(l.at(row, column), math::conj(l.at(other, column)))));
    });
    __syncthreads();
  }
  if (failed > 0) {
    // All threads have read the diagonal.
    __syncthreads();
    // As on the host, the rows before are the factor's, and the others are the matrix's.
    const u64 left = failed - 1;
    for_elements(n - left, n, [&](u64 at, u64 column) {
      const u64 row = left + at;
      if (column <= row && (row > left || column == row)) l.set(row, column, a.at(row, column));
    });
  }
  if (threadIdx.x == 0) {
    *matrix_of<i32>(matrices, 1, number).start = static_cast<i32>(failed);
    if (failed > 0 && matrices.has(1)) matrices.refuse(number, failed);
  }
}

// A candidate for a pivot; of equal ones the first is taken.
template <class R>
struct Pivot {
  R size;
  u64 row;
};
struct BetterPivot {
  template <class R>
  DEVICE Pivot<R> operator()(const Pivot<R> &a, const Pivot<R> &b) const {
    return b.size > a.size || (b.size == a.size && b.row < a.row) ? b : a;
  }
};

// The row from a diagonal element on whose element of that column is largest. NaN on the diagonal stays, elsewhere it loses.
template <class T>
DEVICE u64 pivot_row(const Matrix<T> &a, u64 column, u64 rows) {
  using R = Real<T>;
  Pivot<R> best = {-1, column};
  for_places(rows - column, [&](u64 at) {
    R size = parts_of(a.at(column + at, column));
    if (size != size) size = at == 0 ? infinity<R>() : R(-1);
    best = BetterPivot{}(best, Pivot<R>{size, column + at});
  });
  return of_block(best, BetterPivot{}).row;
}

// Factors in place; `pivots` have the row, counted from 1, that each was exchanged with. The first zero on the diagonal, counted
// from 1, or 0.
template <class T>
DEVICE u64 eliminate(const Matrix<T> &a, u64 rows, u64 columns, const Matrix<i32> &pivots, bool exchanges) {
  const u64 steps = rows < columns ? rows : columns;
  u64 first_zero = 0;
  ROLLED
  for (u64 step = 0; step < steps; ++step) {
    const u64 from = exchanges ? pivot_row(a, step, rows) : step;
    if (threadIdx.x == 0) pivots.set(0, step, static_cast<i32>(from) + 1);
    const T diagonal = a.at(from, step);
    if (equal(diagonal, zero<T>())) {
      if (first_zero == 0) first_zero = step + 1;
      continue;
    }
    __syncthreads();
    if (from != step) {
      for_places(columns, [&](u64 column) {
        const T element = a.at(from, column);
        a.set(from, column, a.at(step, column));
        a.set(step, column, element);
      });
      __syncthreads();
    }
    const u64 below = rows - 1 - step, beside = columns - 1 - step;
    for_places(below, [&](u64 at) { a.set(step + 1 + at, step, div(a.at(step + 1 + at, step), diagonal)); });
    __syncthreads();
    for_elements(below, beside, [&](u64 at, u64 to) {
      const u64 row = step + 1 + at, column = step + 1 + to;
      a.set(row, column, sub(a.at(row, column), mul(a.at(row, step), a.at(step, column))));
    });
    __syncthreads();
  }
  return first_zero;
}

template <class T>
DEVICE void copy_matrix(const Matrix<T> &to, const Matrix<T> &from, u64 rows, u64 columns) {
  for_elements(rows, columns, [&](u64 row, u64 column) { to.set(row, column, from.at(row, column)); });
  __syncthreads();
}

// Operands: the factors, the pivots, `info`, the matrix. Options: whether rows are exchanged, whether zeros are refused.
template <class T>
DEVICE void lu_factor(const Matrices &matrices, u64 number, unsigned char *) {
  const Matrix<T> lu = matrix_of<T>(matrices, 0, number);
  const u64 rows = matrices.operands[0].rows, columns = matrices.operands[0].columns;
  copy_matrix(lu, matrix_of<T>(matrices, 3, number), rows, columns);
  const u64 zeros = eliminate(lu, rows, columns, matrix_of<i32>(matrices, 1, number), matrices.has(0));
  if (threadIdx.x == 0) {
    *matrix_of<i32>(matrices, 2, number).start = static_cast<i32>(zeros);
    if (zeros > 0 && matrices.has(1)) matrices.refuse(number, zeros);
  }
}

// Exchanges rows of `x` as an elimination did, or back. A thread has its own columns.
template <class T>
DEVICE void exchange_rows(const Matrix<T> &x, u64 columns, const Matrix<i32> &pivots, u64 n, bool back) {
  for_places(columns, [&](u64 column) {
    for (u64 step = 0; step < n; ++step) {
      const u64 row = back ? n - 1 - step : step;
      const i64 pivot = static_cast<i64>(pivots.at(0, row)) - 1;
      if (pivot < 0 || pivot >= static_cast<i64>(n)) {
        report(kIndexOutOfRange);
        continue;
      }
      const T element = x.at(row, column);
      x.set(row, column, x.at(static_cast<u64>(pivot), column));
      x.set(static_cast<u64>(pivot), column, element);
    }
  });
  __syncthreads();
}

// Replaces `x` by the solution of the system with factored matrices, or with their adjoints.
template <class T>
DEVICE void solve_factored(
    const Matrix<T> &lu, const Matrix<i32> &pivots, u64 n, bool adjoint, const Matrix<T> &x, u64 columns) {
  if (!adjoint) exchange_rows(x, columns, pivots, n, false);
  const Matrix<T> factors = adjoint ? lu.adjoint() : lu;
  solve_triangle(factors, n, false, !adjoint, x, columns);
  solve_triangle(factors, n, true, adjoint, x, columns);
  if (adjoint) exchange_rows(x, columns, pivots, n, true);
}

// Operands: the solution, the factors, the pivots, the right side. Options: left, adjoint.
template <class T>
DEVICE void lu_solve(const Matrices &matrices, u64 number, unsigned char *) {
  Matrix<T> x = matrix_of<T>(matrices, 0, number), b = matrix_of<T>(matrices, 3, number);
  u64 rows = matrices.operands[0].rows, columns = matrices.operands[0].columns;
  bool adjoint = matrices.has(1);
  if (!matrices.has(0)) {
    const u64 exchanged = rows;
    rows = columns, columns = exchanged;
    x = x.adjoint(), b = b.adjoint();
    adjoint = !adjoint;
  }
  copy_matrix(x, b, rows, columns);
  solve_factored(matrix_of<T>(matrices, 1, number), matrix_of<i32>(matrices, 2, number), rows, adjoint, x, columns);
}

// A copy of a square matrix in working memory, factored, its pivots behind it; the first zero on the diagonal.
template <class T>
DEVICE u64 factor_copy(const Matrix<T> &a, u64 n, unsigned char *room, Matrix<T> *lu, Matrix<i32> *pivots) {
  *lu = row_major(take<T>(room, n * n), n);
  *pivots = row_major(take<i32>(room, n), n);
  copy_matrix(*lu, a, n, n);
  const u64 zeros = eliminate(*lu, n, n, *pivots, true);
  __syncthreads();
  return zeros;
}

template <class T>
DEVICE void set_identity(const Matrix<T> &x, u64 rows, u64 columns) {
  for_elements(rows, columns, [&](u64 row, u64 column) { x.set(row, column, row == column ? one<T>() : zero<T>()); });
  __syncthreads();
}

// Operands: the inverse, `info`, the matrix. Options: whether zeros are refused.
template <class T>
DEVICE void inverse(const Matrices &matrices, u64 number, unsigned char *room) {
  const Matrix<T> x = matrix_of<T>(matrices, 0, number);
  const u64 n = matrices.operands[0].rows;
  Matrix<T> lu;
  Matrix<i32> pivots;
  const u64 zeros = factor_copy(matrix_of<T>(matrices, 2, number), n, room, &lu, &pivots);
  set_identity(x, n, n);
  solve_factored(lu, pivots, n, false, x, n);
  if (threadIdx.x == 0) {
    *matrix_of<i32>(matrices, 1, number).start = static_cast<i32>(zeros);
    if (zeros > 0 && matrices.has(0)) matrices.refuse(number, zeros);
  }
}

// The sign that exchanges of rows give a determinant.
template <class T>
DEVICE T exchange_sign(const Matrix<i32> &pivots, u64 n) {
  u64 moved = 0;
  for (u64 row = 0; row < n; ++row) moved += static_cast<u64>(pivots.at(0, row)) != row + 1 ? 1 : 0;
  return moved % 2 == 0 ? one<T>() : neg(one<T>());
}

template <class T>
DEVICE T determinant_of(const Matrix<T> &lu, const Matrix<i32> &pivots, u64 n) {
  T product = exchange_sign<T>(pivots, n);
  for (u64 at = 0; at < n; ++at) product = mul(product, lu.at(at, at));
  return product;
}

// Operands: the determinant, the factors, the pivots, the matrix.
template <class T>
DEVICE void determinant(const Matrices &matrices, u64 number, unsigned char *) {
  const Matrix<T> lu = matrix_of<T>(matrices, 1, number);
  const Matrix<i32> pivots = matrix_of<i32>(matrices, 2, number);
  const u64 n = matrices.operands[1].rows;
  copy_matrix(lu, matrix_of<T>(matrices, 3, number), n, n);
  eliminate(lu, n, n, pivots, true);
  if (threadIdx.x == 0) *matrix_of<T>(matrices, 0, number).start = determinant_of(lu, pivots, n);
}

// Operands: the sign, the logarithm, the factors, the pivots, the matrix.
template <class T>
DEVICE void log_determinant(const Matrices &matrices, u64 number, unsigned char *) {
  using R = Real<T>;
  const Matrix<T> lu = matrix_of<T>(matrices, 2, number);
  const Matrix<i32> pivots = matrix_of<i32>(matrices, 3, number);
  const u64 n = matrices.operands[2].rows;
  copy_matrix(lu, matrix_of<T>(matrices, 4, number), n, n);
  eliminate(lu, n, n, pivots, true);
  if (threadIdx.x != 0) return;
  T sign = exchange_sign<T>(pivots, n);
  R sum = 0;
  for (u64 at = 0; at < n; ++at) {
    const T element = lu.at(at, at);
    const R size = math::abs(element);
    sign = size == 0 ? zero<T>() : mul(sign, div(element, of_real<T>(size)));
    sum += math::log(size);
  }
  *matrix_of<T>(matrices, 0, number).start = sign;
  *matrix_of<R>(matrices, 1, number).start = sum;
}

// Operands: the cofactors, the matrix. Zeros on the diagonal of the factors are replaced by a small number.
template <class T>
DEVICE void cofactors(const Matrices &matrices, u64 number, unsigned char *room) {
  using R = Real<T>;
  const u64 n = matrices.operands[0].rows;
  Matrix<T> lu;
  Matrix<i32> pivots;
  factor_copy(matrix_of<T>(matrices, 1, number), n, room, &lu, &pivots);
  const T least = of_real<T>(kEpsilon<R> * kEpsilon<R>);
  for_places(n, [&](u64 at) {
    if (equal(lu.at(at, at), zero<T>())) lu.set(at, at, least);
  });
  __syncthreads();
  const T size = determinant_of(lu, pivots, n);
  const Matrix<T> x = matrix_of<T>(matrices, 0, number).transposed();
  set_identity(x, n, n);
  solve_factored(lu, pivots, n, false, x, n);
  for_elements(n, n, [&](u64 row, u64 column) { x.set(row, column, mul(x.at(row, column), size)); });
}

}  // namespace opsmith
