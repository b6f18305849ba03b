// Kernels of the tests of the stand-in: good ones, and ones with a planted mistake each.

typedef unsigned long long u64;

extern "C" {
__device__ unsigned *status;
__device__ int counters[4];
}
__constant__ float kWeights[3] = {1, 2, 4};

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  return value;
}

template <class T>
__device__ T block_sum(T value) {
  __shared__ T part[32];
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
  __syncthreads();
  T sum = 0;
  for (unsigned i = 0; i < blockDim.x / 32; ++i) sum += part[i];
  __syncthreads();
  return sum;
}

template <class T>
__device__ T block_max(T value) {
  __shared__ T part[1024];
  part[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] = max(part[threadIdx.x], part[threadIdx.x + half]);
    __syncthreads();
  }
  const T largest = part[0];
  __syncthreads();
  return largest;
}

extern "C" __global__ void add_one(float *x, u64 count) {
  const u64 i = blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x;
  if (i < count) x[i] += 1;
}

// Another way to define kernels: the name comes from a macro's use.
#define ROWS(name, T)                                                                                 \
  extern "C" __global__ void __launch_bounds__(256) name(const T *x, T *out, int columns) {           \
    T sum = 0;                                                                                        \
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += x[blockIdx.x * columns + i];       \
    sum = block_sum(sum);                                                                             \
    if (threadIdx.x == 0) out[blockIdx.x] = sum;                                                      \
  }
template <class T>
__global__ void unused_template(T *x) { x[0] = 0; }

ROWS(row_sums, float)
ROWS(row_sums_double, double)

extern "C" __global__ void softmax(const float *x, float *out, int columns) {
  const float *row = x + blockIdx.x * columns;
  float largest = row[0];
  for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, row[i]);
  largest = block_max(largest);
  double sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - largest);
  sum = block_sum(sum);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    out[blockIdx.x * columns + i] = static_cast<float>(expf(row[i] - largest) / sum);
  }
}

// out: sum, largest, smallest, count of threads, sum as double by compare and swap, blocks that came last.
extern "C" __global__ void atomics(double *out, int *integers, unsigned *tickets) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(&integers[0], i);
  atomicMax(&integers[1], i);
  atomicMin(&integers[2], -i);
  atomicOr(reinterpret_cast<unsigned *>(&integers[3]), 1u << i % 31);
  atomicAdd(&out[0], 0.5);
  auto *address = reinterpret_cast<u64 *>(&out[1]);
  u64 old = *address, assumed;
  do {
    assumed = old;
    old = atomicCAS(address, assumed, static_cast<u64>(__double_as_longlong(__longlong_as_double(static_cast<long long>(assumed)) + 1)));
  } while (old != assumed);
  __threadfence();
  if (threadIdx.x == 0 && atomicInc(tickets, gridDim.x - 1) == gridDim.x - 1) integers[4] = counters[1] = 7;
}

extern "C" __global__ void reverse(float *x) {
  DYNAMIC_SHARED(float, values);
  values[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

// Votes of one warp and its block, for 48 threads.
extern "C" __global__ void votes(unsigned *out) {
  const unsigned lane = threadIdx.x % 32, full = threadIdx.x < 32 ? 0xffffffffu : 0xffffu;
  const unsigned even = __ballot_sync(full, lane % 2 == 0);
  const int any = __any_sync(full, lane == 3), all = __all_sync(full, lane < 16);
  const unsigned same = __match_any_sync(full, static_cast<int>(lane / 4));
  const unsigned sum = __reduce_add_sync(full, lane);
  const int count = __syncthreads_count(lane < 5);
  const int some = __syncthreads_or(threadIdx.x == 40), each = __syncthreads_and(threadIdx.x < 47);
  const unsigned third = lane % 3 == 0 ? __ballot_sync(full & 0x49249249u, lane > 3) : 0;
  if (lane != 6) return;
  unsigned *row = out + threadIdx.x / 32 * 9;
  row[0] = even, row[1] = any, row[2] = all, row[3] = same, row[4] = sum;
  row[5] = count, row[6] = some, row[7] = each, row[8] = third;
}

extern "C" __global__ void shuffles(int *out) {
  const int lane = static_cast<int>(threadIdx.x);
  out[lane] = __shfl_sync(~0u, lane, 5);
  out[32 + lane] = __shfl_sync(~0u, lane, 1, 8);
  out[64 + lane] = __shfl_up_sync(~0u, lane, 2, 16);
  out[96 + lane] = __shfl_down_sync(~0u, lane, 3);
  out[128 + lane] = __shfl_xor_sync(~0u, lane, 1, 4);
  out[160 + lane] = static_cast<int>(__shfl_xor_sync(~0u, lane * 1.5, 2));
}

extern "C" __global__ void numbers(double *out) {
  const double values[] = {erfinv(0.5),  erfcinv(1e-10),     normcdf(-10.0),      normcdfinv(0.975), erfcx(10.0),
                           erfcx(100.0), cyl_bessel_i0(1.0), cyl_bessel_i1(2.0),  cyl_bessel_i0(50.0), sinpi(0.25),
                           cospi(0.5),   sinpi(1e15 + 0.5),  rsqrt(4.0),          exp10(3.0),        erfinv(-0.999)};
  for (int i = 0; i < 15; ++i) out[i] = values[i];
  out[15] = __popc(0xf0f0u) + 100 * __clz(1) + 10000 * __ffs(8);
  out[16] = __brev(1u) + static_cast<double>(__umulhi(0x80000000u, 4u));
  out[17] = __float2int_rz(3e9f) + static_cast<double>(__double2int_rn(2.5));
  out[18] = __byte_perm(0x33221100u, 0x77665544u, 0x7531u);
  out[19] = kWeights[0] + kWeights[2] + erfcinvf(1.5f);
}

namespace outer {
namespace inner {
extern "C" __global__ void set_status(unsigned code) { atomicOr(status, code); }
}  // namespace inner
}  // namespace outer

extern "C" __global__ void copy_first(const float *x, float *out) { out[0] = x[0]; }

// The mistake: no barrier between a neighbour's write and its reader.
extern "C" __global__ void missing_barrier(const float *x, float *out) {
  __shared__ float values[256];
  values[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x > 0) out[threadIdx.x] = values[threadIdx.x - 1];
}

extern "C" __global__ void skipped_barrier(float *x) {
  if (threadIdx.x >= 24) return;
  __syncthreads();
  x[threadIdx.x] = 1;
}

extern "C" __global__ void different_barriers(float *x) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    x[threadIdx.x] = 2;
    __syncthreads();
  }
}

extern "C" __global__ void absent_lane(int *x) {
  if (threadIdx.x != 3) {
    x[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0);
  } else {
    __syncthreads();
  }
}

extern "C" __global__ void foreign_mask(int *x) { x[threadIdx.x] = __shfl_sync(0xffffu, 1, 0); }

extern "C" __global__ void store(float *x, long long at) { x[at] = 1; }
extern "C" __global__ void load(float *x, float *out, long long at) { out[0] = x[at]; }
extern "C" __global__ void store_absolute(u64 address) { *reinterpret_cast<int *>(address) = 1; }

extern "C" __global__ void overrun_shared(float *x, int at) {
  __shared__ float first[8];
  __shared__ float second[8];
  second[threadIdx.x] = 1;
  first[at + threadIdx.x] = 2;
  __syncthreads();
  x[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x];
}

extern "C" __global__ void overrun_dynamic(float *x, int at) {
  DYNAMIC_SHARED(float, values);
  values[at] = x[0];
}

__device__ __noinline__ int descend(volatile int *deep, int depth) {
  volatile int frame[256];
  frame[depth & 255] = depth;
  return depth == 0 ? frame[0] : descend(frame, depth - 1) + deep[0] + frame[1];
}
extern "C" __global__ void full_stack(int *x, int depth) { x[0] = descend(x, depth); }

extern "C" __global__ void traps() {
  if (threadIdx.x == 2) __trap();
}

extern "C" __global__ void divides(int *x, int by) { x[0] = x[0] / by; }
