// Distances between rows: p-norms of their differences, and the gradients.

namespace opsmith {

enum : u64 { kCount = 0, kSum = 1, kEuclid = 2, kLargest = 3, kPower = 4 };

// A norm of differences: its kind, and p.
struct Norm {
  u64 kind;
  double p;

  template <class T>
  DEVICE Compute<T> largest(const T *a, i64 a_step, const T *b, i64 b_step, i64 width) const {
    Compute<T> result = 0;
    for (i64 i = 0; i < width; ++i) {
      result = math::maximum(result, math::abs(to_compute(a[i * a_step]) - to_compute(b[i * b_step])));
    }
    return result;
  }

  template <class T>
  DEVICE Compute<T> distance(const T *a, i64 a_step, const T *b, i64 b_step, i64 width) const {
    using C = Compute<T>;
    if (kind == kLargest) return largest(a, a_step, b, b_step, width);
    C sum = 0;
    for (i64 i = 0; i < width; ++i) {
      const C difference = math::abs(to_compute(a[i * a_step]) - to_compute(b[i * b_step]));
      if (kind == kCount) {
        sum += difference == 0 ? C(0) : C(1);
      } else if (kind == kSum) {
        sum += difference;
      } else if (kind == kEuclid) {
        sum += difference * difference;
      } else {
        sum += math::pow(difference, static_cast<C>(p));
      }
    }
    if (kind == kEuclid) return math::sqrt(sum);
    return kind == kPower ? math::pow(sum, static_cast<C>(1 / p)) : sum;
  }

  // The slope of a distance, which is not 0, by one element of the first row; `largest` is the largest difference.
  template <class C>
  DEVICE C slope(C difference, C distance, C largest) const {
    if (kind == kCount) return 0;
    // A distance of NaN has no slope either.
    if (kind == kSum) return difference != difference ? difference : math::sgn(difference);
    if (kind == kEuclid) return difference / distance;
    if (kind == kLargest) return math::abs(difference) == largest ? math::sgn(difference) : C(0);
    // Below 1 the slope at equal columns is infinite; they contribute nothing.
    if (p < 1 && difference == 0) return 0;
    return math::sgn(difference) * math::pow(math::abs(difference) / distance, static_cast<C>(p - 1));
  }
};

// Distances of each row of one matrix to each of another.
template <class T>
struct Distances {
  // The result, and the rows of the operands.
  Strided<3, u64> places;
  i64 steps[2], width;
  Norm norm;

  DEVICE void operator()(const i64 (&offsets)[3], const u64 (&)[8]) const {
    const T *const a = static_cast<const T *>(places.pointers[1]) + offsets[1];
    const T *const b = static_cast<const T *>(places.pointers[2]) + offsets[2];
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] =
        from_compute<T>(norm.distance<T>(a, steps[0], b, steps[1], width));
  }
};

// The gradient by the first matrix: for each element the sum over the rows of the second.
template <class T>
struct DistancesBackward {
  // The result, rows of the first matrix, the second matrix, gradients and distances of a row.
  Strided<5, u64> places;
  i64 steps[2], width;
  // Rows of the second matrix, and the stride of each operand from one to the next.
  i64 rows, second_step, grad_step, distance_step;
  Norm norm;

  DEVICE void operator()(const i64 (&offsets)[5], const u64 (&index)[8]) const {
    using C = Compute<T>;
    const i64 column = static_cast<i64>(index[places.dims - 1]);
    const T *const a = static_cast<const T *>(places.pointers[1]) + offsets[1];
    const T *b = static_cast<const T *>(places.pointers[2]) + offsets[2];
    const T *grad = static_cast<const T *>(places.pointers[3]) + offsets[3];
    const T *distances = static_cast<const T *>(places.pointers[4]) + offsets[4];
    C sum = 0;
    for (i64 row = 0; row < rows; ++row, b += second_step, grad += grad_step, distances += distance_step) {
      const C distance = to_compute(*distances);
      if (distance == 0) continue;
      const C largest = norm.kind == kLargest ? norm.largest<T>(a, steps[0], b, steps[1], width) : distance;
      const C difference = to_compute(a[column * steps[0]]) - to_compute(b[column * steps[1]]);
      sum = sum + to_compute(*grad) * norm.slope(difference, distance, largest);
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(sum);
  }
};

// Rows of one matrix and the number of each pair of them: of the first row with those after it, then of the second.
struct Pairs {
  i64 rows, width, row_step, step;

  DEVICE i64 number(i64 first, i64 second) const { return first * rows - first * (first + 1) / 2 + second - first - 1; }
};

template <class T>
struct PairDistances {
  Strided<1, u64> places;
  const T *matrix;
  Pairs pairs;
  Norm norm;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    const i64 number = static_cast<i64>(index[0]);
    // The last row whose first pair is not after this one.
    i64 low = 0, high = pairs.rows - 1;
    while (low + 1 < high) {
      const i64 middle = (low + high) / 2;
      if (pairs.number(middle, middle + 1) <= number) {
        low = middle;
      } else {
        high = middle;
      }
    }
    const i64 second = low + 1 + number - pairs.number(low, low + 1);
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(norm.distance<T>(
        matrix + low * pairs.row_step, pairs.step, matrix + second * pairs.row_step, pairs.step, pairs.width));
  }
};

template <class T>
struct PairDistancesBackward {
  Strided<1, u64> places;
  const T *matrix, *grad, *distances;
  i64 grad_step, distance_step;
  Pairs pairs;
  Norm norm;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    using C = Compute<T>;
    const i64 row = static_cast<i64>(index[0]), column = static_cast<i64>(index[1]);
    const T *const a = matrix + row * pairs.row_step;
    C sum = 0;
    for (i64 other = 0; other < pairs.rows; ++other) {
      if (other == row) continue;
      const i64 number = other < row ? pairs.number(other, row) : pairs.number(row, other);
      const C distance = to_compute(distances[number * distance_step]);
      if (distance == 0) continue;
      const T *const b = matrix + other * pairs.row_step;
      const C largest = norm.kind == kLargest ? norm.largest<T>(a, pairs.step, b, pairs.step, pairs.width) : distance;
      const C difference = to_compute(a[column * pairs.step]) - to_compute(b[column * pairs.step]);
      sum = sum + to_compute(grad[number * grad_step]) * norm.slope(difference, distance, largest);
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = from_compute<T>(sum);
  }
};

}  // namespace opsmith
