// Long lines in order, by digits of 8 bits of their keys, from the lowest on.
//
// In: lines of entries (order.cuh) in the order of their places. Out: the entries of each line in ascending order of their keys, equal
// keys in the order of their places. A pass orders entries by one digit and keeps the order of equal ones: blocks count their digits;
// running sums of these numbers, over lines, digits and blocks, say where the entries of each begin; blocks move them there,
// by way of shared memory, so that neighbours in a block's part of a digit are written together. Where keys have 32 bits, passes
// move words of 8 bytes, with key and place, in place of entries of 16.

namespace opsmith {

enum : int { kDigits = 256, kRadixThreads = 256, kRadixWarps = kRadixThreads / 32 };

struct Word {
  u64 bits;
};

// `blocks` of each line; `upper` are the bits of keys that words lack.
struct Digits {
  const void *from;
  void *to;
  u64 *counts;
  u64 lines, size, blocks, upper;
  u32 shift, padding;
};

DEVICE u32 digit_of(const Word &word, u32 shift) { return static_cast<u32>(word.bits >> (32 + shift)) % kDigits; }
DEVICE u32 digit_of(const Entry &entry, u32 shift) { return static_cast<u32>(entry.key >> shift) % kDigits; }

DEVICE void change(const Entry &from, Word &to, u64) { to.bits = from.key << 32 | from.place; }
DEVICE void change(const Word &from, Entry &to, u64 upper) { to = {upper | from.bits >> 32, from.bits & 0xffffffffu}; }
DEVICE void change(const Word &from, Word &to, u64) { to = from; }
DEVICE void change(const Entry &from, Entry &to, u64) { to = from; }

// Entries of a thread, so that those of a block take 32 KiB of shared memory.
template <class Moved>
inline constexpr int kItems = 128 / static_cast<int>(sizeof(Moved));

template <class From, class Moved>
DEVICE void count_digits(const Digits &digits) {
  constexpr u32 kCount = kRadixThreads * kItems<Moved>;
  __shared__ u32 counts[kDigits];
  for (u64 number = blockIdx.x; number < digits.lines * digits.blocks; number += gridDim.x) {
    const u64 line = number / digits.blocks, block = number % digits.blocks;
    const From *const from = static_cast<const From *>(digits.from) + line * digits.size;
    counts[threadIdx.x] = 0;
    __syncthreads();
    UNROLL
    for (u32 i = 0; i < kItems<Moved>; ++i) {
      const u64 at = block * kCount + i * kRadixThreads + threadIdx.x;
      if (at < digits.size) atomicAdd(&counts[digit_of(from[at], digits.shift)], 1u);
    }
    __syncthreads();
    digits.counts[(line * kDigits + threadIdx.x) * digits.blocks + block] = counts[threadIdx.x];
    __syncthreads();
  }
}

// The sum of the numbers of the threads before, of all threads of a block.
DEVICE u32 sum_before(u32 own, u32 (&of_warps)[kRadixWarps]) {
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  u32 sum = own;
  for (u32 lanes = 1; lanes < 32; lanes *= 2) {
    const u32 other = __shfl_up_sync(0xffffffffu, sum, lanes);
    if (lane >= lanes) sum += other;
  }
  if (lane == 31) of_warps[warp] = sum;
  __syncthreads();
  sum -= own;
  for (u32 i = 0; i < warp; ++i) sum += of_warps[i];
  return sum;
}

template <class From, class Moved, class To>
DEVICE void move_digits(const Digits &digits) {
  constexpr u32 kItemsOfWarp = 32 * kItems<Moved>, kCount = kRadixThreads * kItems<Moved>;
  __shared__ Moved moved[kCount];
  // For each warp the number of its entries of a digit so far, then the place of the first in the block.
  __shared__ u32 counts[kRadixWarps][kDigits];
  // What to add to the place of an entry in the block, for its place among all.
  __shared__ u64 starts[kDigits];
  __shared__ u32 of_warps[kRadixWarps];
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (u64 number = blockIdx.x; number < digits.lines * digits.blocks; number += gridDim.x) {
    const u64 line = number / digits.blocks, block = number % digits.blocks, first = block * kCount;
    const From *const from = static_cast<const From *>(digits.from) + line * digits.size + first;
    const u32 present = digits.size - first < kCount ? static_cast<u32>(digits.size - first) : kCount;
    UNROLL
    for (u32 i = 0; i < kRadixWarps; ++i) counts[i][threadIdx.x] = 0;
    __syncthreads();
    Moved own[kItems<Moved>];
    u32 ranks[kItems<Moved>];
    UNROLL
    for (u32 i = 0; i < kItems<Moved>; ++i) {
      const u32 at = warp * kItemsOfWarp + i * 32 + lane;
      const bool exists = at < present;
      if (exists) change(from[at], own[i], digits.upper);
      const u32 digit = exists ? digit_of(own[i], digits.shift) : kDigits;
      const u32 peers = __match_any_sync(0xffffffffu, digit), before = peers & ((1u << lane) - 1);
      ranks[i] = exists ? counts[warp][digit] + static_cast<u32>(__popc(before)) : 0;
      __syncwarp();
      if (exists && before == 0) counts[warp][digit] += static_cast<u32>(__popc(peers));
      __syncwarp();
    }
    __syncthreads();
    // A thread has a digit.
    u32 of_digit = 0;
    UNROLL
    for (u32 i = 0; i < kRadixWarps; ++i) {
      const u32 count = counts[i][threadIdx.x];
      counts[i][threadIdx.x] = of_digit;
      of_digit += count;
    }
    const u32 before = sum_before(of_digit, of_warps);
    UNROLL
    for (u32 i = 0; i < kRadixWarps; ++i) counts[i][threadIdx.x] += before;
    starts[threadIdx.x] = digits.counts[(line * kDigits + threadIdx.x) * digits.blocks + block] - of_digit - before;
    __syncthreads();
    UNROLL
    for (u32 i = 0; i < kItems<Moved>; ++i) {
      if (warp * kItemsOfWarp + i * 32 + lane < present) {
        moved[counts[warp][digit_of(own[i], digits.shift)] + ranks[i]] = own[i];
      }
    }
    __syncthreads();
    UNROLL
    for (u32 i = 0; i < kItems<Moved>; ++i) {
      const u32 at = i * kRadixThreads + threadIdx.x;
      if (at >= present) continue;
      change(moved[at], static_cast<To *>(digits.to)[starts[digit_of(moved[at], digits.shift)] + at], digits.upper);
    }
    __syncthreads();
  }
}

}  // namespace opsmith

#define OPSMITH_COUNT_DIGITS(NAME, FROM, MOVED)                                                           \
  extern "C" __global__ void __launch_bounds__(opsmith::kRadixThreads) NAME(opsmith::Digits digits) {     \
    opsmith::count_digits<opsmith::FROM, opsmith::MOVED>(digits);                                         \
  }
#define OPSMITH_MOVE_DIGITS(NAME, FROM, MOVED, TO)                                                        \
  extern "C" __global__ void __launch_bounds__(opsmith::kRadixThreads) NAME(opsmith::Digits digits) {     \
    opsmith::move_digits<opsmith::FROM, opsmith::MOVED, opsmith::TO>(digits);                             \
  }
