// Running sums of numbers, and the elements that a mask picks.
//
// In: numbers in one line. Out: the sum up to each. Blocks of kScan numbers are summed, the sums of blocks by one block, and
// then each block runs through its numbers again.

namespace opsmith {

enum : int { kScan = 1024, kScanThreads = 256 };

struct Scan {
  u64 *numbers;
  u64 *blocks;
  u64 count;
};

// The sum of the values of the threads before this one, and of all; every thread of the block calls.
struct Before {
  u64 before, all;
};
DEVICE Before sum_before(u64 value) {
  __shared__ u64 sums[kScanThreads];
  sums[threadIdx.x] = value;
  __syncthreads();
  for (u32 step = 1; step < kScanThreads; step *= 2) {
    const u64 other = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
    __syncthreads();
    sums[threadIdx.x] += other;
    __syncthreads();
  }
  const Before result = {sums[threadIdx.x] - value, sums[kScanThreads - 1]};
  __syncthreads();
  return result;
}

DEVICE void sum_blocks(const Scan &scan) {
  const u64 first = static_cast<u64>(blockIdx.x) * kScan;
  u64 sum = 0;
  for (u64 i = first + threadIdx.x; i < first + kScan && i < scan.count; i += kScanThreads) sum += scan.numbers[i];
  const Before of_block = sum_before(sum);
  if (threadIdx.x == 0) scan.blocks[blockIdx.x] = of_block.all;
}

// One block: the sum of all blocks before each.
DEVICE void sum_sums(const Scan &scan) {
  const u64 blocks = (scan.count + kScan - 1) / kScan;
  u64 start = 0;
  for (u64 first = 0; first < blocks; first += kScanThreads) {
    const u64 at = first + threadIdx.x;
    const Before own = sum_before(at < blocks ? scan.blocks[at] : 0);
    if (at < blocks) scan.blocks[at] = start + own.before;
    start += own.all;
  }
}

DEVICE void run_sums(const Scan &scan) {
  const u64 first = static_cast<u64>(blockIdx.x) * kScan;
  u64 start = scan.blocks[blockIdx.x];
  for (u64 part = first; part < first + kScan; part += kScanThreads) {
    const u64 at = part + threadIdx.x;
    const u64 number = at < scan.count ? scan.numbers[at] : 0;
    const Before own = sum_before(number);
    if (at < scan.count) scan.numbers[at] = start + own.before + number;
    start += own.all;
  }
}

// Whether an element is not zero, as a number: operand 0 has the numbers, operand 1 the elements.
template <class T>
struct Flags {
  Strided<2, u64> places;

  DEVICE void operator()(const i64 (&offsets)[2], const u64 (&)[8]) const {
    static_cast<u64 *>(const_cast<void *>(places.pointers[0]))[offsets[0]] =
        math::truth(to_compute(static_cast<const T *>(places.pointers[1])[offsets[1]]));
  }
};

// The number of a picked element among them, from 1 on; 0 of one that is not picked. `sums` has the running sums.
DEVICE u64 picked(const u64 *sums, i64 at) {
  const u64 before = at == 0 ? 0 : sums[at - 1];
  return sums[at] != before ? sums[at] : 0;
}

// The position of a number as often as the number says, one after the other; operand 0 has the running sums of all. `most` is the
// sum that the output has room for.
template <class T>
struct Repeated {
  Strided<1, u64> places;
  T *out;
  u64 most, last;
  i64 step;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&)[8]) const {
    const u64 *const sums = static_cast<const u64 *>(places.pointers[0]);
    const u64 at = static_cast<u64>(offsets[0]);
    const u64 first = at == 0 ? 0 : sums[at - 1];
    // A negative number, or another sum.
    if (sums[at] < first || sums[at] > most || (at == last && sums[at] != most)) return report(kIndexOutOfRange);
    for (u64 place = first; place < sums[at]; ++place) out[static_cast<i64>(place) * step] = static_cast<T>(at);
  }
};

// The picked elements of operand 1, one after the other; operand 0 has the running sums.
template <class T>
struct Picked {
  Strided<2, u64> places;
  T *out;
  u64 most;
  i64 step;
  // Whether more than `most` are an error.
  u64 strict;

  DEVICE void operator()(const i64 (&offsets)[2], const u64 (&)[8]) const {
    const u64 number = picked(static_cast<const u64 *>(places.pointers[0]), offsets[0]);
    if (number == 0) return;
    if (number > most) {
      if (strict != 0) report(kIndexOutOfRange);
      return;
    }
    out[static_cast<i64>(number - 1) * step] = static_cast<const T *>(places.pointers[1])[offsets[1]];
  }
};

// The place in each dimension of the picked elements; operand 0 has the running sums.
template <class T>
struct PickedPlaces {
  Strided<1, u64> places;
  i64 *out;
  u64 most;
  i64 step, dim_step;

  DEVICE void operator()(const i64 (&offsets)[1], const u64 (&index)[8]) const {
    const u64 number = picked(static_cast<const u64 *>(places.pointers[0]), offsets[0]);
    if (number == 0) return;
    if (number > most) return report(kIndexOutOfRange);
    i64 *const row = out + static_cast<i64>(number - 1) * step;
    for (u32 dim = 0; dim < places.dims; ++dim) row[dim * dim_step] = static_cast<i64>(index[dim]);
  }
};

// Elements of operand 2 or, where picked, the next of `source`, as operand 0; operand 1 has the running sums.
template <class T>
struct Replaced {
  Strided<3, u64> places;
  const T *source;
  u64 most;

  DEVICE void operator()(const i64 (&offsets)[3], const u64 (&)[8]) const {
    const u64 number = picked(static_cast<const u64 *>(places.pointers[1]), offsets[1]);
    if (number > most) report(kIndexOutOfRange);
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] =
        number != 0 && number <= most ? source[number - 1] : static_cast<const T *>(places.pointers[2])[offsets[2]];
  }
};

}  // namespace opsmith

#define OPSMITH_SCAN(NAME, PASS)                                                                          \
  extern "C" __global__ void __launch_bounds__(opsmith::kScanThreads) NAME(opsmith::Scan scan) {          \
    opsmith::PASS(scan);                                                                                  \
  }
