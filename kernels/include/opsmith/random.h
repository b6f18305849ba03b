/* Random numbers in kernels: the same values as opsmith_runtime::random gives in Rust.
 *
 * Reserve blocks once a call (generator->reserve(generator->handle, blocks)), then compute the blocks
 * in any order, on any thread or device. Which words make which element is written at the Rust types
 * Uniform, Normal and Integers. For C, C++ and CUDA.
 */
#ifndef OPSMITH_RANDOM_H
#define OPSMITH_RANDOM_H

#include "opsmith/kernel.h"

#include <math.h>
#include <string.h>

#ifdef __CUDACC__
#define OPSMITH_INLINE static inline __host__ __device__
#else
#define OPSMITH_INLINE static inline
#endif

/* A multiplication and an addition that must not become one fused operation: with it the last bit
 * would differ from the CPU's. On the CPU compile with -ffp-contract=off if FMA instructions are on. */
#ifdef __CUDA_ARCH__
#define OPSMITH_MUL(a, b) __fmul_rn((a), (b))
#define OPSMITH_ADD(a, b) __fadd_rn((a), (b))
#else
#define OPSMITH_MUL(a, b) ((a) * (b))
#define OPSMITH_ADD(a, b) ((a) + (b))
#endif

typedef struct OpsmithBlock {
  uint32_t words[4];
} OpsmithBlock;

/* Philox 4x32-10 (Salmon et al., SC 2011) of a 128-bit counter under a 64-bit key. */
OPSMITH_INLINE OpsmithBlock opsmith_philox(uint64_t counter_low, uint64_t counter_high, uint64_t key) {
  uint32_t c0 = (uint32_t)counter_low, c1 = (uint32_t)(counter_low >> 32);
  uint32_t c2 = (uint32_t)counter_high, c3 = (uint32_t)(counter_high >> 32);
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = (uint64_t)0xD2511F53u * c0;
    const uint64_t product1 = (uint64_t)0xCD9E8D57u * c2;
    c0 = (uint32_t)(product1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)product1;
    c2 = (uint32_t)(product0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)product0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  OpsmithBlock block = {{c0, c1, c2, c3}};
  return block;
}

/* The index-th reserved block; `attempt` is 0 but for distributions that reject some bits. */
OPSMITH_INLINE OpsmithBlock opsmith_block(OpsmithStream stream, uint64_t index, uint64_t attempt) {
  return opsmith_philox(stream.offset + index, attempt, stream.seed);
}

/* Half 0 or 1 of a block as a 64-bit number. */
OPSMITH_INLINE uint64_t opsmith_block_half(OpsmithBlock block, int half) {
  return block.words[2 * half] | (uint64_t)block.words[2 * half + 1] << 32;
}

/* Element `index` of a tensor of uniform numbers in [0, 1); needs (count + 3) / 4 blocks. */
OPSMITH_INLINE float opsmith_uniform_f32(OpsmithStream stream, uint64_t index) {
  return (float)(opsmith_block(stream, index / 4, 0).words[index % 4] >> 8) * (1.0f / 16777216.0f);
}

/* Element `index` of a tensor of uniform numbers in [0, 1); needs (count + 1) / 2 blocks. */
OPSMITH_INLINE double opsmith_uniform_f64(OpsmithStream stream, uint64_t index) {
  const uint64_t bits = opsmith_block_half(opsmith_block(stream, index / 2, 0), (int)(index % 2));
  return (double)(bits >> 11) * (1.0 / 9007199254740992.0);
}

/* Element `index` of a tensor of integers from low to high - 1; needs (count + 1) / 2 blocks. */
OPSMITH_INLINE int64_t opsmith_integer(OpsmithStream stream, uint64_t index, int64_t low, int64_t high) {
  const uint64_t length = (uint64_t)high - (uint64_t)low;
  const uint64_t threshold = (0 - length) % length;
  for (uint64_t attempt = 0;; ++attempt) {
    const uint64_t bits = opsmith_block_half(opsmith_block(stream, index / 2, attempt), (int)(index % 2));
    /* The 128-bit product of bits and length, by halves. */
    const uint64_t ll = (bits & 0xffffffffu) * (length & 0xffffffffu);
    const uint64_t lh = (bits & 0xffffffffu) * (length >> 32);
    const uint64_t hl = (bits >> 32) * (length & 0xffffffffu);
    const uint64_t hh = (bits >> 32) * (length >> 32);
    const uint64_t middle = (ll >> 32) + (lh & 0xffffffffu) + (hl & 0xffffffffu);
    const uint64_t product_low = middle << 32 | (ll & 0xffffffffu);
    const uint64_t product_high = hh + (lh >> 32) + (hl >> 32) + (middle >> 32);
    if (product_low >= threshold) return (int64_t)((uint64_t)low + product_high);
  }
}

/* ln x of a positive normal x; the coefficients are those of Cephes' logf. */
OPSMITH_INLINE float opsmith_random_ln(float value) {
  const float coefficients[8] = {-1.151461e-1f,  1.1676999e-1f, -1.2420141e-1f, 1.4249323e-1f,
                                 -1.6668058e-1f, 2.0000715e-1f, -2.4999994e-1f, 3.333333e-1f};
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint32_t shifted = bits - 0x3f3504f3u;
  const float exponent = (float)((int32_t)shifted >> 23);
  bits = (shifted & 0x007fffffu) + 0x3f3504f3u;
  float mantissa;
  memcpy(&mantissa, &bits, sizeof mantissa);
  const float x = OPSMITH_ADD(mantissa, -1.0f);
  const float square = OPSMITH_MUL(x, x);
  float tail = 7.0376836e-2f;
  for (int term = 0; term < 8; ++term) tail = OPSMITH_ADD(OPSMITH_MUL(tail, x), coefficients[term]);
  tail = OPSMITH_MUL(OPSMITH_MUL(tail, x), square);
  tail = OPSMITH_ADD(tail, -OPSMITH_MUL(2.1219444e-4f, exponent));
  tail = OPSMITH_ADD(tail, -OPSMITH_MUL(0.5f, square));
  return OPSMITH_ADD(OPSMITH_ADD(x, tail), OPSMITH_MUL(0.6933594f, exponent));
}

/* Element `index` of a tensor of normal numbers; needs (count + 3) / 4 blocks. */
OPSMITH_INLINE float opsmith_normal_f32(OpsmithStream stream, uint64_t index) {
  const OpsmithBlock block = opsmith_block(stream, index / 4, 0);
  const int pair = (int)(index % 4 / 2) * 2;
  const float step = 1.0f / 4294967296.0f;
  const float uniform = OPSMITH_MUL(OPSMITH_ADD((float)block.words[pair], 1.0f), step);
  const float squared = OPSMITH_MUL(-2.0f, opsmith_random_ln(uniform));
  const float radius = sqrtf(squared > 0.0f ? squared : 0.0f);
  /* Cosine and sine of word / 2^32 of a turn: the nearest quarter turn, and the rest. */
  const uint32_t turn = block.words[pair + 1];
  const uint32_t quarter = (turn + (1u << 29)) >> 30;
  const float x = OPSMITH_MUL((float)(int32_t)(turn - (quarter << 30)), OPSMITH_MUL(6.2831855f, step));
  const float z = OPSMITH_MUL(x, x);
  float sine = OPSMITH_ADD(OPSMITH_MUL(-1.9515296e-4f, z), 8.332161e-3f);
  sine = OPSMITH_ADD(OPSMITH_MUL(sine, z), -1.6666655e-1f);
  sine = OPSMITH_ADD(OPSMITH_MUL(OPSMITH_MUL(sine, z), x), x);
  float cosine = OPSMITH_ADD(OPSMITH_MUL(2.4433157e-5f, z), -1.3887316e-3f);
  cosine = OPSMITH_ADD(OPSMITH_MUL(cosine, z), 4.1666646e-2f);
  cosine = OPSMITH_ADD(OPSMITH_MUL(OPSMITH_MUL(cosine, z), z), -OPSMITH_MUL(0.5f, z));
  cosine = OPSMITH_ADD(cosine, 1.0f);
  /* Odd quarters exchange sine and cosine. */
  const bool swap = (quarter & 1) != 0;
  const bool odd = index % 2 != 0;
  float value = odd != swap ? sine : cosine;
  const uint32_t q = quarter & 3;
  const bool negative = odd ? (q == 2 || q == 3) : (q == 1 || q == 2);
  return OPSMITH_MUL(radius, negative ? -value : value);
}

#endif
