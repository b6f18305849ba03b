// Products of tiles of 16-bit floats by a warp, with sums in single precision, and the tiles in shared memory.
//
// In: tiles in rows of shared memory, at addresses that are multiples of 16 bytes. Out: fragments, which are those of PTX's
// `mma.m16n8k16`: of the left matrix (16 x 16) lane 4 * g + t has rows g and g + 8 at columns 2t, 2t + 1, then the same at columns
// 2t + 8, 2t + 9; of the right matrix (16 x 8) column g at rows 2t, 2t + 1, then 2t + 8, 2t + 9; of sums (16 x 8) rows g and g + 8 at
// columns 2t, 2t + 1. Where there is no such instruction, as on the stand-in, products are made of shuffles.

// Devices before 8.0 are not asked for these kernels; archives have no image for them.
#define OPSMITH_LEAST_ARCHITECTURE 80

#if !defined(OPSMITH_EMULATED) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define OPSMITH_TENSOR_CORES 1
#endif

namespace opsmith {

enum : u32 { kBand = 16, kWide = 8 };

struct LeftFragment {
  u32 parts[4];
};
struct RightFragment {
  u32 parts[2];
};

// The sum of the products of two pairs of elements, added to `sum`.
template <class T>
DEVICE float add_pair(float sum, u32 a, u32 b) {
  const T low_a = {static_cast<u16>(a)}, low_b = {static_cast<u16>(b)};
  const T high_a = {static_cast<u16>(a >> 16)}, high_b = {static_cast<u16>(b >> 16)};
  return ::fmaf(to_float(high_a), to_float(high_b), ::fmaf(to_float(low_a), to_float(low_b), sum));
}

template <class T>
DEVICE u32 pair_of(float low, float high) {
  return from_compute<T>(low).bits | static_cast<u32>(from_compute<T>(high).bits) << 16;
}

// Adds the product to the sums.
template <class T>
DEVICE void add_tile_product(float (&sums)[4], const LeftFragment &left, const RightFragment &right) {
#ifdef OPSMITH_TENSOR_CORES
  if constexpr (kSame<T, f16>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left.parts[0]), "r"(left.parts[1]), "r"(left.parts[2]), "r"(left.parts[3]), "r"(right.parts[0]), "r"(right.parts[1]));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left.parts[0]), "r"(left.parts[1]), "r"(left.parts[2]), "r"(left.parts[3]), "r"(right.parts[0]), "r"(right.parts[1]));
  }
#else
  const int group = static_cast<int>(threadIdx.x % kWarp) / 4, pair = static_cast<int>(threadIdx.x % 4);
  for (int source = 0; source < 4; ++source) {
    u32 a[4];
    for (int i = 0; i < 4; ++i) a[i] = __shfl_sync(0xffffffffu, left.parts[i], group * 4 + source);
    for (int j = 0; j < 2; ++j) {
      for (int half = 0; half < 2; ++half) {
        const u32 b = __shfl_sync(0xffffffffu, right.parts[half], 4 * (2 * pair + j) + source);
        for (int row = 0; row < 2; ++row) sums[2 * row + j] = add_pair<T>(sums[2 * row + j], a[row + 2 * half], b);
      }
    }
  }
#endif
}

#ifdef OPSMITH_TENSOR_CORES
DEVICE u32 shared_address(const void *address) {
  u32 result;
  asm("{ .reg .u64 place; cvta.to.shared.u64 place, %1; cvt.u32.u64 %0, place; }" : "=r"(result) : "l"(address));
  return result;
}
#else
// Two elements that are neighbours in memory, or `step` apart.
template <class T>
DEVICE u32 pair_at(const T *place, u32 step) {
  return place[0].bits | static_cast<u32>(place[step].bits) << 16;
}
#endif

// The 16 x 16 elements of a tile whose rows are `stride` apart.
template <class T>
DEVICE LeftFragment load_left(const T *tile, u32 stride) {
  const u32 lane = threadIdx.x % kWarp;
  LeftFragment result;
#ifdef OPSMITH_TENSOR_CORES
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(result.parts[0]), "=r"(result.parts[1]), "=r"(result.parts[2]), "=r"(result.parts[3])
               : "r"(shared_address(tile + lane % 16 * stride + lane / 16 * 8)) : "memory");
#else
  for (u32 i = 0; i < 4; ++i) result.parts[i] = pair_at(tile + (lane / 4 + i % 2 * 8) * stride + lane % 4 * 2 + i / 2 * 8, 1);
#endif
  return result;
}

// Two right matrices, which are transposed in the tile: its rows are 16 columns of them, its columns the inner index.
template <class T>
DEVICE void load_right(RightFragment (&result)[2], const T *tile, u32 stride) {
  const u32 lane = threadIdx.x % kWarp;
#ifdef OPSMITH_TENSOR_CORES
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(result[0].parts[0]), "=r"(result[0].parts[1]), "=r"(result[1].parts[0]), "=r"(result[1].parts[1])
               : "r"(shared_address(tile + (lane / 16 * 8 + lane % 8) * stride + lane / 8 % 2 * 8)) : "memory");
#else
  for (u32 i = 0; i < 4; ++i) {
    result[i / 2].parts[i % 2] = pair_at(tile + (lane / 4 + i / 2 * 8) * stride + lane % 4 * 2 + i % 2 * 8, 1);
  }
#endif
}

// Two right matrices as they lie in the tile: its rows are the inner index, its columns 16 columns of them.
template <class T>
DEVICE void load_right_rows(RightFragment (&result)[2], const T *tile, u32 stride) {
  const u32 lane = threadIdx.x % kWarp;
#ifdef OPSMITH_TENSOR_CORES
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(result[0].parts[0]), "=r"(result[0].parts[1]), "=r"(result[1].parts[0]), "=r"(result[1].parts[1])
               : "r"(shared_address(tile + (lane / 8 % 2 * 8 + lane % 8) * stride + lane / 16 * 8)) : "memory");
#else
  for (u32 i = 0; i < 4; ++i) {
    result[i / 2].parts[i % 2] = pair_at(tile + (lane % 4 * 2 + i % 2 * 8) * stride + lane / 4 + i / 2 * 8, stride);
  }
#endif
}

// Starts a copy of 16 bytes to shared memory, or writes zeros if `exists` is false; `source` is an address in either case.
DEVICE void copy_wide(void *target, const void *source, bool exists) {
#ifdef OPSMITH_TENSOR_CORES
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(target)), "l"(source), "r"(exists ? 16 : 0)
               : "memory");
#else
  u64 bytes[2] = {0, 0};
  if (exists) COPY_BYTES(bytes, source, sizeof bytes);
  COPY_BYTES(target, bytes, sizeof bytes);
#endif
}

// The copies that were started since the last call are a group.
DEVICE void end_copies() {
#ifdef OPSMITH_TENSOR_CORES
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for this thread's copies, but for those of the last `groups` groups.
template <int groups>
DEVICE void wait_copies() {
#ifdef OPSMITH_TENSOR_CORES
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
#endif
}

}  // namespace opsmith
