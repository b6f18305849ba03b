// Attention and its gradients of 16-bit floats, by tensor cores: scores of a tile are in registers alone.
//
// In: the parameter of attention.cuh, with at most `width` columns of queries, keys and values. Out: its results; weights, and the
// gradients of scores, are rounded to the operands' dtype before they are multiplied. A block is four warps. Without overlaps and
// atomic operations, so that results repeat: the gradient of queries is computed apart from those of keys and values.
// Grid: tiles of rows, 1, heads (blocks go on in steps).

namespace opsmith {

enum : int { kWarps = 4, kMatrixThreads = kWarps * kWarp };

// Elements between rows of tiles: rows begin in different banks.
template <int width>
inline constexpr u32 kTileStride = width + 8;

// Rows of a tile of the other side: as many as registers can hold the scores of.
template <int width, int bands>
inline constexpr int kForwardTile = width > 64 && bands > 1 ? 32 : 64;
template <int width>
inline constexpr int kGradTile = width > 64 ? 32 : 64;

// Whether rows can be copied by 16 bytes.
template <class T>
DEVICE bool in_wide_rows(const HeadRows<T> &a) {
  return a.column_step == 1 && a.row_step % kWide == 0 && a.columns % kWide == 0 && reinterpret_cast<u64>(a.start) % 16 == 0;
}

// Starts copies of `count` rows from `first` on to a tile; zeros beyond the rows and columns.
template <int width, int count, class T>
DEVICE void load_rows(T *tile, const HeadRows<T> &a, u64 first) {
  if (in_wide_rows(a)) {
    constexpr u32 kEachRow = width / kWide;
    for (u32 i = threadIdx.x; i < count * kEachRow; i += kMatrixThreads) {
      const u32 row = i / kEachRow, column = i % kEachRow * kWide;
      const bool exists = first + row < a.rows && column < a.columns;
      const T *const source = exists ? a.start + static_cast<i64>(first + row) * a.row_step + column : a.start;
      copy_wide(tile + row * kTileStride<width> + column, source, exists);
    }
    return;
  }
  for (u32 i = threadIdx.x; i < count * width; i += kMatrixThreads) {
    const u32 row = i / width, column = i % width;
    const bool exists = first + row < a.rows && column < a.columns;
    tile[row * kTileStride<width> + column] =
        exists ? a.start[static_cast<i64>(first + row) * a.row_step + static_cast<i64>(column) * a.column_step] : T{0};
  }
}

// Calls `body(start, tile of a, tile of b)` for tiles of `count` rows of both from `begin` on, while the next ones are copied. `stages` has
// room for four; copies that were started before end with the first two.
template <int width, int count, class T, class Body>
DEVICE void each_pair_of_tiles(T *stages, const HeadRows<T> &a, const HeadRows<T> &b, u64 begin, u64 end, const Body &body) {
  constexpr u32 kPart = count * kTileStride<width>;
  const auto load = [&](u32 stage, u64 first) {
    load_rows<width, count>(stages + 2 * stage * kPart, a, first);
    load_rows<width, count>(stages + (2 * stage + 1) * kPart, b, first);
  };
  load(0, begin);
  end_copies();
  u32 stage = 0;
  for (u64 start = begin; start < end; start += count, stage ^= 1) {
    if (start + count < end) load(stage ^ 1, start + count);
    end_copies();
    wait_copies<1>();
    __syncthreads();
    body(start, stages + 2 * stage * kPart, stages + (2 * stage + 1) * kPart);
    __syncthreads();
  }
}

// Products of 16 rows of a tile with `count` rows of another one.
template <int width, int count, class T>
DEVICE void tile_products(float (&sums)[count / 8][4], const T *left, const T *right) {
  UNROLL
  for (int i = 0; i < count / 8; ++i) {
    UNROLL
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  }
  UNROLL
  for (int inner = 0; inner < width; inner += 16) {
    const LeftFragment a = load_left(left + inner, kTileStride<width>);
    UNROLL
    for (int i = 0; i < count; i += 16) {
      RightFragment b[2];
      load_right(b, right + static_cast<u32>(i) * kTileStride<width> + inner, kTileStride<width>);
      add_tile_product<T>(sums[i / 8], a, b[0]);
      add_tile_product<T>(sums[i / 8 + 1], a, b[1]);
    }
  }
}

// Adds the products of weights, which are fragments of sums, with the `count` rows of a tile.
template <int width, int count, class T>
DEVICE void add_weighted_rows(float (&sums)[width / 8][4], const float (&weights)[count / 8][4], const T *rows) {
  UNROLL
  for (int i = 0; i < count; i += 16) {
    const float(&low)[4] = weights[i / 8], (&high)[4] = weights[i / 8 + 1];
    const LeftFragment a = {{pair_of<T>(low[0], low[1]), pair_of<T>(low[2], low[3]), pair_of<T>(high[0], high[1]),
                             pair_of<T>(high[2], high[3])}};
    UNROLL
    for (int j = 0; j < width; j += 16) {
      RightFragment b[2];
      load_right_rows(b, rows + static_cast<u32>(i) * kTileStride<width> + j, kTileStride<width>);
      add_tile_product<T>(sums[j / 8], a, b[0]);
      add_tile_product<T>(sums[j / 8 + 1], a, b[1]);
    }
  }
}

// Writes the lane's part of 16 rows of sums, each times the factor of its row.
template <int width, class T>
DEVICE void write_rows(const HeadRows<T> &out, u64 first, const float (&sums)[width / 8][4], float top, float bottom) {
  const u32 lane = threadIdx.x % kWarp;
  const u64 row = first + lane / 4;
  const bool paired = out.column_step == 1 && out.row_step % 2 == 0 && out.columns % 2 == 0 && reinterpret_cast<u64>(out.start) % 4 == 0;
  UNROLL
  for (int i = 0; i < width / 8; ++i) {
    const u64 column = static_cast<u64>(8 * i) + lane % 4 * 2;
    UNROLL
    for (int half = 0; half < 2; ++half) {
      const u64 own = row + static_cast<u64>(8 * half);
      const float factor = half == 0 ? top : bottom, a = sums[i][2 * half] * factor, b = sums[i][2 * half + 1] * factor;
      if (own >= out.rows || column >= out.columns) continue;
      if (paired) {
        *reinterpret_cast<u32 *>(out.start + static_cast<i64>(own) * out.row_step + static_cast<i64>(column)) = pair_of<T>(a, b);
        continue;
      }
      out.write(own, column, a);
      if (column + 1 < out.columns) out.write(own, column + 1, b);
    }
  }
}

enum : u32 { kAllLanes = 0xffffffffu };
inline constexpr float kLog2E = 1.44269504088896340736f, kLn2 = 0.69314718055994530942f;

// The score in units of ln 2 of a query and a key; minus infinity beyond the keys.
template <class T>
DEVICE float scaled_score(const Attention<T> &f, u64 query, u64 key, float product, const HeadRows<T> &mask) {
  if (query >= f.queries || key >= f.keys || (f.causal != 0 && key > query)) return lowest<float>();
  const float score = product * (f.scale * kLog2E);
  return mask.start != nullptr ? ::fmaf(mask.at(query, key), kLog2E, score) : score;
}

// A block has 64 queries a band: 16 of each of a warp's bands.
template <class T, int width, int bands>
DEVICE void run_tensor_attention(const Attention<T> &f) {
  constexpr int kKeys = kForwardTile<width, bands>, kQueries = kWarps * kBand * bands;
  DYNAMIC_SHARED(T, query_tile);
  T *const key_tile = query_tile + kQueries * kTileStride<width>, *const value_tile = key_tile + kKeys * kTileStride<width>;
  const u32 lane = threadIdx.x % kWarp, own = threadIdx.x / kWarp * kBand * bands;
  const u64 first = static_cast<u64>(blockIdx.x) * kQueries;
  const u64 end = f.causal != 0 && first + kQueries < f.keys ? first + kQueries : f.keys;
  for (u64 head = blockIdx.z; head < f.heads.count; head += gridDim.z) {
    const auto query = f.template of<T>(kQuery, head, f.queries, f.inner), key = f.template of<T>(kKey, head, f.keys, f.inner);
    const auto value = f.template of<T>(kValue, head, f.keys, f.width), mask = f.template of<T>(kMask, head, f.queries, f.keys);
    load_rows<width, kQueries>(query_tile, query, first);
    load_rows<width, kKeys>(key_tile, key, 0);
    end_copies();
    float largest[bands][2], sums[bands][2], results[bands][width / 8][4] = {};
    UNROLL
    for (int band = 0; band < bands; ++band) {
      largest[band][0] = largest[band][1] = lowest<float>();
      sums[band][0] = sums[band][1] = 0;
    }
    for (u64 start = 0; start < end; start += kKeys) {
      wait_copies<0>();
      __syncthreads();
      load_rows<width, kKeys>(value_tile, value, start);
      end_copies();
      float scores[bands][kKeys / 8][4];
      UNROLL
      for (int band = 0; band < bands; ++band) {
        tile_products<width, kKeys>(scores[band], query_tile + (own + kBand * band) * kTileStride<width>, key_tile);
      }
      __syncthreads();
      if (start + kKeys < end) load_rows<width, kKeys>(key_tile, key, start + kKeys);
      end_copies();
      const bool whole = mask.start == nullptr && start + kKeys <= f.keys && (f.causal == 0 || start + kKeys <= first + own + 1);
      UNROLL
      for (int band = 0; band < bands; ++band) {
        float highest[2] = {largest[band][0], largest[band][1]};
        UNROLL
        for (int i = 0; i < kKeys / 8; ++i) {
          UNROLL
          for (int j = 0; j < 4; ++j) {
            float &score = scores[band][i][j];
            const u64 row = first + own + static_cast<u64>(kBand * band + j / 2 * 8) + lane / 4;
            score = whole ? score * (f.scale * kLog2E)
                          : scaled_score(f, row, start + static_cast<u64>(8 * i + j % 2) + lane % 4 * 2, score, mask);
            highest[j / 2] = ::fmaxf(highest[j / 2], score);
          }
        }
        UNROLL
        for (int half = 0; half < 2; ++half) {
          float &high = highest[half];
          high = ::fmaxf(high, __shfl_xor_sync(kAllLanes, high, 1));
          high = ::fmaxf(high, __shfl_xor_sync(kAllLanes, high, 2));
          const float base = base_of(high), factor = ::exp2f(largest[band][half] - base);
          float part = 0;
          UNROLL
          for (int i = 0; i < kKeys / 8; ++i) {
            UNROLL
            for (int j = 2 * half; j < 2 * half + 2; ++j) {
              scores[band][i][j] = ::exp2f(scores[band][i][j] - base);
              part += scores[band][i][j];
            }
          }
          // Each lane has the sum of its own columns.
          sums[band][half] = ::fmaf(sums[band][half], factor, part);
          largest[band][half] = high;
          UNROLL
          for (int i = 0; i < width / 8; ++i) {
            results[band][i][2 * half] *= factor;
            results[band][i][2 * half + 1] *= factor;
          }
        }
      }
      wait_copies<1>();
      __syncthreads();
      UNROLL
      for (int band = 0; band < bands; ++band) add_weighted_rows<width, kKeys>(results[band], scores[band], value_tile);
    }
    const auto out = f.template of<T>(kOut, head, f.queries, f.width);
    const auto logarithms = f.template of<float>(kLogarithm, head, f.queries, 1);
    UNROLL
    for (int band = 0; band < bands; ++band) {
      const u64 row = first + own + static_cast<u64>(kBand * band);
      float factors[2];
      UNROLL
      for (int half = 0; half < 2; ++half) {
        float sum = sums[band][half];
        sum += __shfl_xor_sync(kAllLanes, sum, 1);
        sum += __shfl_xor_sync(kAllLanes, sum, 2);
        factors[half] = sum == 0 ? 0.0f : 1 / sum;
        const u64 number = row + static_cast<u64>(8 * half) + lane / 4;
        if (lane % 4 == 0 && number < f.queries) {
          logarithms.write(number, 0, base_of(largest[band][half]) * kLn2 + math::log(sum));
        }
      }
      write_rows<width>(out, row, results[band], factors[0], factors[1]);
    }
    wait_copies<0>();
    __syncthreads();
  }
}

// The gradients of queries and mask; a block has 64 queries.
template <class T, int width>
DEVICE void run_tensor_attention_of_queries(const Attention<T> &f) {
  constexpr int kKeys = kGradTile<width>, kQueries = kWarps * kBand;
  DYNAMIC_SHARED(T, query_tile);
  T *const grad_tile = query_tile + kQueries * kTileStride<width>, *const stages = grad_tile + kQueries * kTileStride<width>;
  const u32 lane = threadIdx.x % kWarp, own = threadIdx.x / kWarp * kBand;
  const u64 first = static_cast<u64>(blockIdx.x) * kQueries;
  const u64 end = f.causal != 0 && first + kQueries < f.keys ? first + kQueries : f.keys;
  for (u64 head = blockIdx.z; head < f.heads.count; head += gridDim.z) {
    const auto query = f.template of<T>(kQuery, head, f.queries, f.inner), key = f.template of<T>(kKey, head, f.keys, f.inner);
    const auto value = f.template of<T>(kValue, head, f.keys, f.width), mask = f.template of<T>(kMask, head, f.queries, f.keys);
    const auto grad = f.template of<T>(kGradOut, head, f.queries, f.width);
    const auto of_mask = f.template of<T>(kGradMask, head, f.queries, f.keys);
    const auto logarithms = f.template of<float>(kLogarithm, head, f.queries, 1);
    load_rows<width, kQueries>(query_tile, query, first);
    load_rows<width, kQueries>(grad_tile, grad, first);
    float bases[2], products[2], results[width / 8][4] = {};
    UNROLL
    for (int half = 0; half < 2; ++half) {
      const u64 row = first + own + static_cast<u64>(8 * half) + lane / 4;
      const bool exists = row < f.queries;
      bases[half] = exists ? base_of(logarithms.at(row, 0)) * kLog2E : 0.0f;
      products[half] = exists ? f.products[head * f.queries + row] : 0.0f;
    }
    each_pair_of_tiles<width, kKeys>(stages, key, value, 0, end, [&](u64 start, const T *key_tile, const T *value_tile) {
      float scores[kKeys / 8][4], slopes[kKeys / 8][4];
      tile_products<width, kKeys>(scores, query_tile + own * kTileStride<width>, key_tile);
      tile_products<width, kKeys>(slopes, grad_tile + own * kTileStride<width>, value_tile);
      UNROLL
      for (int i = 0; i < kKeys / 8; ++i) {
        UNROLL
        for (int j = 0; j < 4; ++j) {
          const u64 row = first + own + static_cast<u64>(j / 2 * 8) + lane / 4;
          const u64 number = start + static_cast<u64>(8 * i + j % 2) + lane % 4 * 2;
          const float weight = ::exp2f(scaled_score(f, row, number, scores[i][j], mask) - bases[j / 2]);
          // A key beyond the last has the weight 0, and no slope.
          scores[i][j] = weight * (slopes[i][j] - products[j / 2]);
          if (of_mask.start != nullptr && row < f.queries && number < f.keys) of_mask.write(row, number, scores[i][j]);
        }
      }
      add_weighted_rows<width, kKeys>(results, scores, key_tile);
    });
    // Beyond the diagonal the mask's gradient is 0.
    if (of_mask.start != nullptr) {
      const u64 past = (end + kKeys - 1) / kKeys * kKeys, rest = f.keys > past ? f.keys - past : 0;
      const u64 rows = f.queries - first < kQueries ? f.queries - first : kQueries;
      for (u64 i = threadIdx.x; i < rows * rest; i += kMatrixThreads) of_mask.write(first + i / rest, past + i % rest, 0.0f);
    }
    const auto out = f.template of<T>(kGradQuery, head, f.queries, f.inner);
    if (out.start != nullptr) write_rows<width>(out, first + own, results, f.scale, f.scale);
    wait_copies<0>();
    __syncthreads();
  }
}

// The gradients of keys and values; a block has 64 keys.
template <class T, int width>
DEVICE void run_tensor_attention_of_keys(const Attention<T> &f) {
  constexpr int kQueries = kGradTile<width>, kKeys = kWarps * kBand;
  DYNAMIC_SHARED(T, key_tile);
  T *const value_tile = key_tile + kKeys * kTileStride<width>, *const stages = value_tile + kKeys * kTileStride<width>;
  const u32 lane = threadIdx.x % kWarp, own = threadIdx.x / kWarp * kBand;
  const u64 first = static_cast<u64>(blockIdx.x) * kKeys;
  // Under a causal mask, queries have the keys up to their own number.
  const u64 begin = f.causal != 0 ? first / kQueries * kQueries : 0;
  for (u64 head = blockIdx.z; head < f.heads.count; head += gridDim.z) {
    const auto query = f.template of<T>(kQuery, head, f.queries, f.inner), key = f.template of<T>(kKey, head, f.keys, f.inner);
    const auto value = f.template of<T>(kValue, head, f.keys, f.width), mask = f.template of<T>(kMask, head, f.queries, f.keys);
    const auto grad = f.template of<T>(kGradOut, head, f.queries, f.width);
    const auto logarithms = f.template of<float>(kLogarithm, head, f.queries, 1);
    load_rows<width, kKeys>(key_tile, key, first);
    load_rows<width, kKeys>(value_tile, value, first);
    float of_keys[width / 8][4] = {}, of_values[width / 8][4] = {};
    each_pair_of_tiles<width, kQueries>(stages, query, grad, begin, f.queries, [&](u64 start, const T *query_tile, const T *grad_tile) {
      // Rows are keys, columns queries.
      float scores[kQueries / 8][4], slopes[kQueries / 8][4];
      tile_products<width, kQueries>(scores, key_tile + own * kTileStride<width>, query_tile);
      tile_products<width, kQueries>(slopes, value_tile + own * kTileStride<width>, grad_tile);
      UNROLL
      for (int i = 0; i < kQueries / 8; ++i) {
        UNROLL
        for (int side = 0; side < 2; ++side) {
          const u64 row = start + static_cast<u64>(8 * i + side) + lane % 4 * 2;
          const bool exists = row < f.queries;
          const float base = exists ? base_of(logarithms.at(row, 0)) * kLog2E : 0.0f;
          const float product = exists ? f.products[head * f.queries + row] : 0.0f;
          UNROLL
          for (int j = side; j < 4; j += 2) {
            const u64 number = first + own + static_cast<u64>(j / 2 * 8) + lane / 4;
            scores[i][j] = ::exp2f(scaled_score(f, row, number, scores[i][j], mask) - base);
            slopes[i][j] = scores[i][j] * (slopes[i][j] - product);
          }
        }
      }
      add_weighted_rows<width, kQueries>(of_values, scores, grad_tile);
      add_weighted_rows<width, kQueries>(of_keys, slopes, query_tile);
    });
    const auto key_out = f.template of<T>(kGradKey, head, f.keys, f.inner);
    const auto value_out = f.template of<T>(kGradValue, head, f.keys, f.width);
    if (key_out.start != nullptr) write_rows<width>(key_out, first + own, of_keys, f.scale, f.scale);
    if (value_out.start != nullptr) write_rows<width>(value_out, first + own, of_values, 1.0f, 1.0f);
    wait_copies<0>();
    __syncthreads();
  }
}

}  // namespace opsmith

#define OPSMITH_TENSOR_ATTENTION(NAME, TYPE, ...)                                              \
  extern "C" __global__ void __launch_bounds__(opsmith::kMatrixThreads)                        \
      NAME(opsmith::Attention<opsmith::TYPE> attention) {                                      \
    opsmith::__VA_ARGS__(attention);                                                           \
  }
