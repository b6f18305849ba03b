// Attention and its gradients, in tiles of scores that are never held as a whole.
//
// In: for each head (an index of the leading dimensions) queries (L, E), keys (S, E), values (S, F), and a mask (L, S) that
// may be absent. A block has 256 threads and computes 16 rows of a result, at most 64 of their columns, over tiles of 64 of the
// other side: grid of tiles of rows, chunks of columns, heads (blocks go on in steps).

namespace opsmith {

enum : int { kAttentionThreads = 256, kTile = 16, kAcross = 64, kEach = 4 };

// Rows of one head.
template <class T>
struct HeadRows {
  T *start;
  i64 row_step, column_step;
  u64 rows, columns;

  DEVICE Compute<T> at(u64 row, u64 column) const {
    return to_compute(start[static_cast<i64>(row) * row_step + static_cast<i64>(column) * column_step]);
  }
  DEVICE void write(u64 row, u64 column, Compute<T> value) const {
    start[static_cast<i64>(row) * row_step + static_cast<i64>(column) * column_step] = from_compute<T>(value);
  }
};

enum : int { kQuery, kKey, kValue, kMask, kOut, kLogarithm, kGradOut, kGradLogarithm, kGradQuery, kGradKey, kGradValue,
             kGradMask, kOperands };

template <class T>
struct Attention {
  using C = Compute<T>;
  // The heads; operands that are absent, or not asked for, have no address.
  Strided<kOperands, u64> heads;
  // Steps of rows and columns of each operand.
  i64 steps[kOperands][2];
  u64 queries, keys, inner, width;
  u64 causal;
  // For each query of each head the product of its result and the gradient of that, less the gradient of the logarithm.
  C *products;
  C scale;

  DEVICE bool has(int operand) const { return heads.pointers[operand] != nullptr; }

  template <class E>
  DEVICE HeadRows<E> of(int operand, u64 head, u64 rows, u64 columns) const {
    i64 offset = 0;
    for (int dim = static_cast<int>(heads.dims) - 1; dim >= 0; --dim) {
      offset += static_cast<i64>(head % heads.sizes[dim]) * heads.strides[operand][dim];
      head /= heads.sizes[dim];
    }
    E *const start = has(operand) ? static_cast<E *>(const_cast<void *>(heads.pointers[operand])) + offset : nullptr;
    return {start, steps[operand][0], steps[operand][1], rows, columns};
  }

  DEVICE C score(u64 query, u64 key, C product, const HeadRows<T> &mask) const {
    C score = mul(scale, product);
    if (mask.start != nullptr) score = add(score, mask.at(query, key));
    return causal != 0 && key > query ? lowest<C>() : score;
  }
};

// A number to subtract from scores: the largest, or 0 where all are minus infinity, whose difference would be NaN.
template <class C>
DEVICE C base_of(C largest) {
  return largest == lowest<C>() ? C(0) : largest;
}

// Shared memory of a block: rows of both sides, and a tile of weights.
template <class C>
struct AttentionTiles {
  C left[kTile][kTile + 1], right[kTile][kAcross + 1], weights[kTile][kAcross + 1], factors[kTile];
};

// Products of the 16 rows of `a` from `first` on with the 64 of `b` from `second` on: thread (x, y) has those of row y with rows
// x, x + 16, …
template <class T, class C>
DEVICE void row_products(const HeadRows<T> &a, u64 first, const HeadRows<T> &b, u64 second, AttentionTiles<C> &tiles,
                         C (&sums)[kEach]) {
  const u32 x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  for (int j = 0; j < kEach; ++j) sums[j] = C(0);
  for (u64 start = 0; start < a.columns; start += kTile) {
    const bool inside = start + x < a.columns;
    tiles.left[y][x] = inside && first + y < a.rows ? a.at(first + y, start + x) : C(0);
    for (int j = 0; j < kEach; ++j) {
      const u32 row = y + kTile * j;
      tiles.right[x][row] = inside && second + row < b.rows ? b.at(second + row, start + x) : C(0);
    }
    __syncthreads();
    UNROLL
    for (int i = 0; i < kTile; ++i) {
      UNROLL
      for (int j = 0; j < kEach; ++j) sums[j] = add_product(sums[j], tiles.left[y][i], tiles.right[i][x + kTile * j]);
    }
    __syncthreads();
  }
}

// Adds weights times the rows of `b` from `second` on: thread t has column t % 64 of rows t / 64, t / 64 + 4, …
template <class T, class C>
DEVICE void add_rows(const AttentionTiles<C> &tiles, const HeadRows<T> &b, u64 second, u64 column, C (&sums)[kEach]) {
  if (column >= b.columns) return;
  const u64 rest = b.rows - second;
  const int count = rest < kAcross ? static_cast<int>(rest) : kAcross;
  for (int i = 0; i < count; ++i) {
    const C element = b.at(second + static_cast<u64>(i), column);
    UNROLL
    for (int j = 0; j < kEach; ++j) {
      sums[j] = add_product(sums[j], tiles.weights[threadIdx.x / kAcross + kEach * j][i], element);
    }
  }
}

template <class C, class Merge>
DEVICE C merged_row(C value, const Merge &merge) {
  for (int lanes = kTile / 2; lanes > 0; lanes /= 2) value = merge(value, __shfl_xor_sync(0xffffffffu, value, lanes, kTile));
  return value;
}

template <class T>
DEVICE void run_attention(const Attention<T> &f) {
  using C = Compute<T>;
  __shared__ AttentionTiles<C> tiles;
  const u32 x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  const u64 first = static_cast<u64>(blockIdx.x) * kTile, column = static_cast<u64>(blockIdx.y) * kAcross + threadIdx.x % kAcross;
  const u64 end = f.causal != 0 && first + kTile < f.keys ? first + kTile : f.keys;
  const auto larger = [](C a, C b) { return math::maximum(a, b); };
  const auto plus = [](C a, C b) { return a + b; };
  for (u64 head = blockIdx.z; head < f.heads.count; head += gridDim.z) {
    const auto query = f.template of<T>(kQuery, head, f.queries, f.inner), key = f.template of<T>(kKey, head, f.keys, f.inner);
    const auto value = f.template of<T>(kValue, head, f.keys, f.width), mask = f.template of<T>(kMask, head, f.queries, f.keys);
    C largest = lowest<C>(), sum = 0, results[kEach] = {};
    for (u64 start = 0; start < end; start += kAcross) {
      C scores[kEach];
      row_products(query, first, key, start, tiles, scores);
      C highest = largest;
      for (int j = 0; j < kEach; ++j) {
        const u64 number = start + x + kTile * j;
        const bool exists = first + y < f.queries && number < f.keys;
        scores[j] = exists ? f.score(first + y, number, scores[j], mask) : lowest<C>();
        highest = math::maximum(highest, scores[j]);
      }
      highest = merged_row(highest, larger);
      const C base = base_of(highest), factor = math::exp(largest - base);
      C part = 0;
      for (int j = 0; j < kEach; ++j) {
        const C weight = math::exp(scores[j] - base);
        tiles.weights[y][x + kTile * j] = weight;
        part += weight;
      }
      if (x == 0) tiles.factors[y] = factor;
      sum = sum * factor + merged_row(part, plus);
      largest = highest;
      __syncthreads();
      for (int j = 0; j < kEach; ++j) results[j] *= tiles.factors[threadIdx.x / kAcross + kEach * j];
      add_rows(tiles, value, start, column, results);
      __syncthreads();
    }
    if (x == 0) tiles.factors[y] = sum == 0 ? C(0) : 1 / sum;
    __syncthreads();
    const auto out = f.template of<T>(kOut, head, f.queries, f.width);
    for (int j = 0; j < kEach; ++j) {
      const u32 row = threadIdx.x / kAcross + kEach * static_cast<u32>(j);
      if (first + row < f.queries && column < f.width) out.write(first + row, column, results[j] * tiles.factors[row]);
    }
    if (blockIdx.y == 0 && x == 0 && first + y < f.queries) {
      const C logarithm = base_of(largest) + math::log(sum);
      f.template of<C>(kLogarithm, head, f.queries, 1).write(first + y, 0, logarithm);
    }
    __syncthreads();
  }
}

// Writes `products`; a block has 16 queries.
template <class T>
DEVICE void run_attention_products(const Attention<T> &f) {
  using C = Compute<T>;
  const u32 x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  const u64 row = static_cast<u64>(blockIdx.x) * kTile + y;
  for (u64 head = blockIdx.z; head < f.heads.count; head += gridDim.z) {
    const auto out = f.template of<T>(kOut, head, f.queries, f.width), grad = f.template of<T>(kGradOut, head, f.queries, f.width);
    C sum = 0;
    if (row < f.queries) {
      for (u64 i = x; i < f.width; i += kTile) sum = add_product(sum, grad.at(row, i), out.at(row, i));
    }
    sum = merged_row(sum, [](C a, C b) { return a + b; });
    if (row >= f.queries || x != 0) continue;
    const auto of_logarithm = f.template of<C>(kGradLogarithm, head, f.queries, 1);
    if (of_logarithm.start != nullptr) sum -= of_logarithm.at(row, 0);
    f.products[head * f.queries + row] = sum;
  }
}

// The gradients of queries and mask (`by_key` is false: 16 queries of a block, 64 keys of a tile), or of keys and values (the
// other way around). Chunks of columns are those of queries or keys; with `of_value`, those of values.
template <class T, bool by_key, bool of_value>
DEVICE void run_attention_backward(const Attention<T> &f) {
  using C = Compute<T>;
  __shared__ AttentionTiles<C> tiles;
  const u32 x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  const u64 first = static_cast<u64>(blockIdx.x) * kTile, column = static_cast<u64>(blockIdx.y) * kAcross + threadIdx.x % kAcross;
  // Under a causal mask, queries have the keys up to their own number.
  u64 begin = 0, end = by_key ? f.queries : f.keys;
  if (f.causal != 0 && by_key) begin = first / kAcross * kAcross;
  if (f.causal != 0 && !by_key && first + kTile < end) end = first + kTile;
  for (u64 head = blockIdx.z; head < f.heads.count; head += gridDim.z) {
    const auto query = f.template of<T>(kQuery, head, f.queries, f.inner), key = f.template of<T>(kKey, head, f.keys, f.inner);
    const auto value = f.template of<T>(kValue, head, f.keys, f.width), mask = f.template of<T>(kMask, head, f.queries, f.keys);
    const auto grad = f.template of<T>(kGradOut, head, f.queries, f.width);
    const auto of_mask = f.template of<T>(kGradMask, head, f.queries, f.keys);
    const auto logarithms = f.template of<C>(kLogarithm, head, f.queries, 1);
    C results[kEach] = {};
    for (u64 start = begin; start < end; start += kAcross) {
      C scores[kEach], slopes[kEach] = {};
      if (by_key) {
        row_products(key, first, query, start, tiles, scores);
        if (!of_value) row_products(value, first, grad, start, tiles, slopes);
      } else {
        row_products(query, first, key, start, tiles, scores);
        row_products(grad, first, value, start, tiles, slopes);
      }
      for (int j = 0; j < kEach; ++j) {
        const u64 own = first + y, other = start + x + kTile * static_cast<u64>(j);
        const u64 row = by_key ? other : own, number = by_key ? own : other;
        C weight = 0;
        if (row < f.queries && number < f.keys) {
          weight = math::exp(f.score(row, number, scores[j], mask) - base_of(logarithms.at(row, 0)));
          if (!of_value) weight = weight * (slopes[j] - f.products[head * f.queries + row]);
          if (!by_key && blockIdx.y == 0 && of_mask.start != nullptr) of_mask.write(row, number, weight);
        }
        tiles.weights[y][x + kTile * j] = weight;
      }
      __syncthreads();
      if (f.has(by_key ? (of_value ? kGradValue : kGradKey) : kGradQuery)) {
        add_rows(tiles, of_value ? grad : by_key ? query : key, start, column, results);
      }
      __syncthreads();
    }
    // Beyond the diagonal the mask's gradient is 0.
    if (!by_key && blockIdx.y == 0 && of_mask.start != nullptr && first + y < f.queries) {
      const u64 past = (end + kAcross - 1) / kAcross * kAcross;
      for (u64 number = past + x; number < f.keys; number += kTile) of_mask.write(first + y, number, C(0));
    }
    const int operand = by_key ? (of_value ? kGradValue : kGradKey) : kGradQuery;
    const auto out = f.template of<T>(operand, head, by_key ? f.keys : f.queries, of_value ? f.width : f.inner);
    for (int j = 0; j < kEach; ++j) {
      const u64 row = first + threadIdx.x / kAcross + kEach * static_cast<u64>(j);
      if (out.start == nullptr || row >= out.rows || column >= out.columns) continue;
      out.write(row, column, of_value ? results[j] : mul(f.scale, results[j]));
    }
  }
}

}  // namespace opsmith

#define OPSMITH_ATTENTION(NAME, TYPE, ...)                                                 \
  extern "C" __global__ void __launch_bounds__(opsmith::kAttentionThreads)                 \
      NAME(opsmith::Attention<opsmith::TYPE> attention) {                                  \
    opsmith::__VA_ARGS__(attention);                                                              \
  }
