// Products of stacks of matrices, of a matrix and a vector, and of two vectors, of any strides.

namespace opsmith {

// Functions of each element of a result.
enum : u64 { kNoActivation = 0, kRelu = 1, kTanhGelu = 2 };

template <class C>
DEVICE C activated(C x, u64 activation) {
  if constexpr (kSame<C, float> || kSame<C, double>) {
    if (activation == kRelu) return x < C(0) ? C(0) : x;
    if (activation == kTanhGelu) {
      return C(0.5) * x * (C(1) + math::tanh(C(0.7978845608028654) * (x + C(0.044715) * x * x * x)));
    }
  }
  return x;
}

// result = activation(keep * bias + scale * sum); the bias is absent if its address is null.
template <class T>
struct Scaled {
  using C = Compute<T>;
  T *out;
  const T *bias;
  // Stack, row, column.
  i64 out_strides[3], bias_strides[3];
  C keep, scale;
  u64 activation;

  DEVICE void write(u64 stack, u64 row, u64 column, C sum) const {
    const i64 at[3] = {static_cast<i64>(stack), static_cast<i64>(row), static_cast<i64>(column)};
    i64 to = 0, from = 0;
    for (int dim = 0; dim < 3; ++dim) {
      to += at[dim] * out_strides[dim];
      from += at[dim] * bias_strides[dim];
    }
    C result = mul(scale, sum);
    if (bias != nullptr) result = add(mul(keep, to_compute(bias[from])), result);
    out[to] = from_compute<T>(activated(result, activation));
  }
};

// A product of matrices, the first one's elements conjugated if so said.
template <class T, bool conjugates = false>
struct Matrices {
  using C = Compute<T>;
  ProductShape<C> shape;
  // Strides of stack, row, column of each operand.
  const T *left_start, *right_start;
  i64 left_strides[3], right_strides[3];
  Scaled<T> result;

  using Row = const T *;
  using Column = const T *;
  DEVICE bool left_by_inner() const { return left_strides[2] <= left_strides[1]; }
  DEVICE bool right_by_inner() const { return right_strides[1] < right_strides[2]; }
  DEVICE Row row(u64 stack, u64 row) const {
    return left_start + (static_cast<i64>(stack) * left_strides[0] + static_cast<i64>(row) * left_strides[1]);
  }
  DEVICE Column column(u64 stack, u64 column) const {
    return right_start + (static_cast<i64>(stack) * right_strides[0] + static_cast<i64>(column) * right_strides[2]);
  }
  DEVICE C left(Row row, u64 inner) const {
    const C element = to_compute(row[static_cast<i64>(inner) * left_strides[2]]);
    return conjugates ? math::conj(element) : element;
  }
  DEVICE C right(Column column, u64 inner) const { return to_compute(column[static_cast<i64>(inner) * right_strides[1]]); }
  DEVICE void finish(u64 stack, u64 row, u64 column, C sum) const { result.write(stack, row, column, sum); }
};

}  // namespace opsmith
