// Attention and its gradients, in tiles of scores that are never held as a whole.
//
// In: for each head (an index of the leading dimensions) queries (L, E), keys (S, E), values (S, F), and a mask (L, S) that
// may be absent. A block has 128 threads, 16 along x and 8 along y. It computes 8 * `each` rows of a result, at most
// 16 * `groups` * kVector of their columns, over tiles of 16 * `each` rows of the other side: grid of blocks of rows, chunks of columns,
// heads (blocks go on in steps). A thread has `each` rows, y * each + i, and for each the scores of `each` of the other side, in
// groups of neighbours that one access of 16 bytes has (column_of): in shared memory, for `each` of 8 in float32, 4 accesses serve 64
// products and sums.

namespace opsmith {

enum : int { kAttentionThreads = 128, kAlongX = 16, kAlongY = 8, kInner = 16 };

// Numbers of an access of 16 bytes.
template <class C>
inline constexpr int kVector = 16 / static_cast<int>(sizeof(C));

// Rows of one head.
template <class T>
struct HeadRows {
  T *start;
  i64 row_step, column_step;
  u64 rows, columns;

  DEVICE T *place(u64 row, u64 column) const {
    return start + static_cast<i64>(row) * row_step + static_cast<i64>(column) * column_step;
  }
  DEVICE Compute<T> at(u64 row, u64 column) const { return to_compute(*place(row, column)); }
  DEVICE void write(u64 row, u64 column, Compute<T> value) const { *place(row, column) = from_compute<T>(value); }
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

// The number of a thread's column j among those of a tile.
template <class C>
DEVICE u32 column_of(int j) {
  const u32 part = static_cast<u32>(j) / kVector<C>, rest = static_cast<u32>(j) % kVector<C>;
  return (part * kAlongX + threadIdx.x % kAlongX) * kVector<C> + rest;
}

// Shared memory of a block: columns of both sides (the margin spreads the rows of a store over banks), and a tile of weights by columns.
template <class C, int each>
struct AttentionTiles {
  using Vector = Pack<C, kVector<C>>;
  static constexpr int kRows = kAlongY * each, kAcross = kAlongX * each;
  C left[kInner][kRows + kVector<C>], right[kInner][kAcross + kVector<C>];
  Vector weights[kAcross][kRows / kVector<C>];

  // The weights of a column and a part of this thread's rows. Places are exchanged within a column, so that threads that
  // store neighbouring columns meet in no bank.
  DEVICE Vector &weights_of(u32 column, int part) {
    const u32 place = threadIdx.x / kAlongX * (each / kVector<C>) + static_cast<u32>(part);
    return weights[column][place ^ (column / kVector<C> % 8)];
  }
};

// Adds the products of `each` numbers with those of groups of columns.
template <class C, int each, int groups>
DEVICE void add_outer(const Pack<C, kVector<C>> (&a)[each / kVector<C>], const C *right, C (&sums)[each][groups * kVector<C>]) {
  UNROLL
  for (int group = 0; group < groups; ++group) {
    const auto b = *reinterpret_cast<const Pack<C, kVector<C>> *>(right + column_of<C>(group * kVector<C>));
    UNROLL
    for (int i = 0; i < each; ++i) {
      UNROLL
      for (int j = 0; j < kVector<C>; ++j) {
        C &sum = sums[i][group * kVector<C> + j];
        sum = add_product(sum, a[i / kVector<C>].elements[i % kVector<C>], b.elements[j]);
      }
    }
  }
}

// Copies 16 columns of rows to shared memory, with zeros beyond.
template <int count, int width, class T, class C>
DEVICE void load_columns(const HeadRows<T> &from, u64 first, u64 start, C (&to)[kInner][width]) {
  constexpr int kStep = kAttentionThreads / kInner;
  const u32 inner = threadIdx.x % kInner, own = threadIdx.x / kInner;
  const u64 left = from.rows > first + own ? from.rows - first - own : 0;
  const int rows = start + inner >= from.columns ? 0 : left < count ? static_cast<int>(left) : count;
  const T *place = from.place(first + own, start + inner);
  const i64 step = kStep * from.row_step;
  ROLLED
  for (int row = 0; row < count; row += 4 * kStep) {
    UNROLL
    for (int i = 0; i < 4 * kStep; i += kStep) {
      to[inner][own + static_cast<u32>(row + i)] = row + i < rows ? to_compute(*place) : C(0);
      place += step;
    }
  }
}

// Products of the rows of `a` from `first` on with those of `b` from `second` on.
template <class T, class C, int each>
DEVICE void row_products(const HeadRows<T> &a, u64 first, const HeadRows<T> &b, u64 second, AttentionTiles<C, each> &tiles,
                         C (&sums)[each][each]) {
  UNROLL
  for (int i = 0; i < each; ++i) {
    UNROLL
    for (int j = 0; j < each; ++j) sums[i][j] = C(0);
  }
  ROLLED
  for (u64 start = 0; start < a.columns; start += kInner) {
    load_columns<AttentionTiles<C, each>::kRows>(a, first, start, tiles.left);
    load_columns<AttentionTiles<C, each>::kAcross>(b, second, start, tiles.right);
    __syncthreads();
    const C *left = tiles.left[0] + threadIdx.x / kAlongX * each, *right = tiles.right[0];
    ROLLED
    for (int part = 0; part < kInner; part += 2) {
      UNROLL
      for (int i = 0; i < 2; ++i) {
        Pack<C, kVector<C>> numbers[each / kVector<C>];
        UNROLL
        for (int j = 0; j < each / kVector<C>; ++j) numbers[j] = reinterpret_cast<const Pack<C, kVector<C>> *>(left)[j];
        add_outer<C, each, each / kVector<C>>(numbers, right, sums);
        left += sizeof(tiles.left[0]) / sizeof(C);
        right += sizeof(tiles.right[0]) / sizeof(C);
      }
    }
    __syncthreads();
  }
}

template <class C, int each>
DEVICE void store_weights(AttentionTiles<C, each> &tiles, const C (&weights)[each][each]) {
  UNROLL
  for (int j = 0; j < each; ++j) {
    UNROLL
    for (int part = 0; part < each / kVector<C>; ++part) {
      auto &place = tiles.weights_of(column_of<C>(j), part);
      UNROLL
      for (int i = 0; i < kVector<C>; ++i) place.elements[i] = weights[part * kVector<C> + i][j];
    }
  }
}

// Calls `body(weight, i, column)` for each weight of this thread, of its row i, which the body may change. A column
// at a time, so that few registers are in use.
template <class C, int each, class Body>
DEVICE void for_each_weight(AttentionTiles<C, each> &tiles, const Body &body) {
  ROLLED
  for (int j = 0; j < each; ++j) {
    UNROLL
    for (int part = 0; part < each / kVector<C>; ++part) {
      auto &place = tiles.weights_of(column_of<C>(j), part);
      auto weights = place;
      UNROLL
      for (int i = 0; i < kVector<C>; ++i) body(weights.elements[i], part * kVector<C> + i, column_of<C>(j));
      place = weights;
    }
  }
}

// Adds the weights of all threads times the rows of `b` from `second` on, of which a block has the columns from `first` on.
template <int groups, class T, class C, int each>
DEVICE void add_rows(AttentionTiles<C, each> &tiles, const HeadRows<T> &b, u64 second, u64 first,
                     C (&sums)[each][groups * kVector<C>]) {
  constexpr u32 kColumns = kAlongX * groups * kVector<C>;
  const u64 rest = b.rows - second;
  const u32 count = rest < tiles.kAcross ? static_cast<u32>(rest) : tiles.kAcross;
  ROLLED
  for (u32 start = 0; start < count; start += kInner) {
    UNROLL
    for (u32 i = 0; i < kInner * kColumns / kAttentionThreads; ++i) {
      const u32 place = i * kAttentionThreads + threadIdx.x, row = place / kColumns, column = place % kColumns;
      const bool exists = start + row < count && first + column < b.columns;
      tiles.right[row][column] = exists ? b.at(second + start + row, first + column) : C(0);
    }
    __syncthreads();
    ROLLED
    for (u32 part = 0; part < kInner; part += 2) {
      UNROLL
      for (u32 i = 0; i < 2; ++i) {
        Pack<C, kVector<C>> numbers[each / kVector<C>];
        UNROLL
        for (int j = 0; j < each / kVector<C>; ++j) numbers[j] = tiles.weights_of(start + part + i, j);
        add_outer<C, each, groups>(numbers, tiles.right[part + i], sums);
      }
    }
    __syncthreads();
  }
}

// Merges numbers of the 16 threads that have a row.
template <class C, class Merge>
DEVICE C merged_row(C value, const Merge &merge) {
  for (int lanes = kAlongX / 2; lanes > 0; lanes /= 2) value = merge(value, __shfl_xor_sync(0xffffffffu, value, lanes, kAlongX));
  return value;
}

template <class T, int each, int groups>
DEVICE void run_attention(const Attention<T> &f) {
  using C = Compute<T>;
  __shared__ AttentionTiles<C, each> tiles;
  const u64 first = static_cast<u64>(blockIdx.x) * tiles.kRows, own = first + threadIdx.x / kAlongX * each;
  const u64 column = static_cast<u64>(blockIdx.y) * (kAlongX * groups * kVector<C>);
  const u64 end = f.causal != 0 && first + tiles.kRows < f.keys ? first + tiles.kRows : f.keys;
  for (u64 head = blockIdx.z; head < f.heads.count; head += gridDim.z) {
    const auto query = f.template of<T>(kQuery, head, f.queries, f.inner), key = f.template of<T>(kKey, head, f.keys, f.inner);
    const auto value = f.template of<T>(kValue, head, f.keys, f.width), mask = f.template of<T>(kMask, head, f.queries, f.keys);
    C largest[each], sums[each] = {}, results[each][groups * kVector<C>] = {};
    UNROLL
    for (int i = 0; i < each; ++i) largest[i] = lowest<C>();
    ROLLED
    for (u64 start = 0; start < end; start += tiles.kAcross) {
      C scores[each][each], highest[each];
      row_products(query, first, key, start, tiles, scores);
      store_weights(tiles, scores);
      UNROLL
      for (int i = 0; i < each; ++i) highest[i] = largest[i];
      for_each_weight(tiles, [&](C &score, int i, u32 across) {
        const u64 row = own + static_cast<u64>(i), number = start + across;
        score = row < f.queries && number < f.keys ? f.score(row, number, score, mask) : lowest<C>();
        highest[i] = math::maximum(highest[i], score);
      });
      UNROLL
      for (int i = 0; i < each; ++i) {
        highest[i] = merged_row(highest[i], [](C a, C b) { return math::maximum(a, b); });
        const C factor = math::exp(largest[i] - base_of(highest[i]));
        largest[i] = highest[i];
        sums[i] *= factor;
        UNROLL
        for (int j = 0; j < groups * kVector<C>; ++j) results[i][j] *= factor;
      }
      for_each_weight(tiles, [&](C &score, int i, u32) {
        score = math::exp(score - base_of(largest[i]));
        sums[i] += score;
      });
      add_rows<groups>(tiles, value, start, column, results);
    }
    const auto out = f.template of<T>(kOut, head, f.queries, f.width);
    const auto logarithms = f.template of<C>(kLogarithm, head, f.queries, 1);
    UNROLL
    for (int i = 0; i < each; ++i) {
      const u64 row = own + static_cast<u64>(i);
      // Threads have the sums of their own columns.
      sums[i] = merged_row(sums[i], [](C a, C b) { return a + b; });
      if (row >= f.queries) continue;
      const C factor = sums[i] == 0 ? C(0) : 1 / sums[i];
      UNROLL
      for (int j = 0; j < groups * kVector<C>; ++j) {
        const u64 number = column + column_of<C>(j);
        if (number < f.width) out.write(row, number, results[i][j] * factor);
      }
      if (blockIdx.y == 0 && threadIdx.x % kAlongX == 0) logarithms.write(row, 0, base_of(largest[i]) + math::log(sums[i]));
    }
  }
}

// Writes `products`; a block has 8 queries.
template <class T>
DEVICE void run_attention_products(const Attention<T> &f) {
  using C = Compute<T>;
  const u32 x = threadIdx.x % kAlongX, y = threadIdx.x / kAlongX;
  const u64 row = static_cast<u64>(blockIdx.x) * kAlongY + y;
  for (u64 head = blockIdx.z; head < f.heads.count; head += gridDim.z) {
    const auto out = f.template of<T>(kOut, head, f.queries, f.width), grad = f.template of<T>(kGradOut, head, f.queries, f.width);
    C sum = 0;
    if (row < f.queries) {
      for (u64 i = x; i < f.width; i += kAlongX) sum = add_product(sum, grad.at(row, i), out.at(row, i));
    }
    sum = merged_row(sum, [](C a, C b) { return a + b; });
    if (row >= f.queries || x != 0) continue;
    const auto of_logarithm = f.template of<C>(kGradLogarithm, head, f.queries, 1);
    if (of_logarithm.start != nullptr) sum -= of_logarithm.at(row, 0);
    f.products[head * f.queries + row] = sum;
  }
}

// The gradients of queries and mask (`by_key` is false: rows of a block are queries), or of keys and values (the other way around).
// Chunks of columns are those of queries or keys; with `of_value`, those of values. Weights stay in shared memory while the slopes
// take their registers.
template <class T, bool by_key, bool of_value, int each, int groups>
DEVICE void run_attention_backward(const Attention<T> &f) {
  using C = Compute<T>;
  __shared__ AttentionTiles<C, each> tiles;
  const u64 first = static_cast<u64>(blockIdx.x) * tiles.kRows, own = first + threadIdx.x / kAlongX * each;
  const u64 column = static_cast<u64>(blockIdx.y) * (kAlongX * groups * kVector<C>);
  const int operand = by_key ? (of_value ? kGradValue : kGradKey) : kGradQuery;
  // Under a causal mask, queries have the keys up to their own number.
  u64 begin = 0, end = by_key ? f.queries : f.keys;
  if (f.causal != 0 && by_key) begin = first / tiles.kAcross * tiles.kAcross;
  if (f.causal != 0 && !by_key && first + tiles.kRows < end) end = first + tiles.kRows;
  for (u64 head = blockIdx.z; head < f.heads.count; head += gridDim.z) {
    const auto query = f.template of<T>(kQuery, head, f.queries, f.inner), key = f.template of<T>(kKey, head, f.keys, f.inner);
    const auto value = f.template of<T>(kValue, head, f.keys, f.width), mask = f.template of<T>(kMask, head, f.queries, f.keys);
    const auto grad = f.template of<T>(kGradOut, head, f.queries, f.width);
    auto of_mask = f.template of<T>(kGradMask, head, f.queries, f.keys);
    if (by_key || blockIdx.y != 0) of_mask.start = nullptr;
    const auto logarithms = f.template of<C>(kLogarithm, head, f.queries, 1);
    const C *const products = f.products + head * f.queries;
    C results[each][groups * kVector<C>] = {};
    ROLLED
    for (u64 start = begin; start < end; start += tiles.kAcross) {
      C numbers[each][each];
      // Whether a weight of this thread exists, and its query and key.
      const auto exists = [&](int i, u32 across, u64 &row, u64 &number) {
        const u64 mine = own + static_cast<u64>(i), other = start + across;
        row = by_key ? other : mine;
        number = by_key ? mine : other;
        return row < f.queries && number < f.keys;
      };
      row_products(by_key ? key : query, first, by_key ? query : key, start, tiles, numbers);
      store_weights(tiles, numbers);
      for_each_weight(tiles, [&](C &weight, int i, u32 across) {
        u64 row, number;
        weight = exists(i, across, row, number)
                     ? math::exp(f.score(row, number, weight, mask) - base_of(logarithms.at(row, 0)))
                     : C(0);
      });
      if constexpr (!of_value) {
        row_products(by_key ? value : grad, first, by_key ? grad : value, start, tiles, numbers);
        UNROLL
        for (int k = 0; k < each; ++k) {
          const u64 row = by_key ? start + column_of<C>(k) : own + static_cast<u64>(k);
          const C product = row < f.queries ? products[row] : C(0);
          UNROLL
          for (int l = 0; l < each; ++l) {
            const int i = by_key ? l : k, j = by_key ? k : l;
            C &weight = tiles.weights_of(column_of<C>(j), i / kVector<C>).elements[i % kVector<C>];
            weight *= numbers[i][j] - product;
          }
        }
        if (of_mask.start != nullptr) {
          for_each_weight(tiles, [&](C &weight, int i, u32 across) {
            u64 row, number;
            if (exists(i, across, row, number)) of_mask.write(row, number, weight);
          });
        }
      }
      if (f.has(operand)) add_rows<groups>(tiles, of_value ? grad : by_key ? query : key, start, column, results);
    }
    // Beyond the diagonal the mask's gradient is 0.
    if (of_mask.start != nullptr) {
      const u64 past = (end + tiles.kAcross - 1) / tiles.kAcross * tiles.kAcross;
      for (u64 row = own; row < own + each && row < f.queries; ++row) {
        for (u64 number = past + threadIdx.x % kAlongX; number < f.keys; number += kAlongX) of_mask.write(row, number, C(0));
      }
    }
    if (!f.has(operand)) continue;
    const auto out = f.template of<T>(operand, head, by_key ? f.keys : f.queries, of_value ? f.width : f.inner);
    UNROLL
    for (int i = 0; i < each; ++i) {
      UNROLL
      for (int j = 0; j < groups * kVector<C>; ++j) {
        const u64 row = own + static_cast<u64>(i), number = column + column_of<C>(j);
        if (row < out.rows && number < out.columns) {
          out.write(row, number, of_value ? results[i][j] : mul(f.scale, results[i][j]));
        }
      }
    }
  }
}

}  // namespace opsmith

#define OPSMITH_ATTENTION(NAME, TYPE, ...)                                                 \
  extern "C" __global__ void __launch_bounds__(opsmith::kAttentionThreads, 2)              \
      NAME(opsmith::Attention<opsmith::TYPE> attention) {                                  \
    opsmith::__VA_ARGS__(attention);                                                       \
  }
