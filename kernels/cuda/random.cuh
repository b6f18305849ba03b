// Random elements: the same for the same seed and place in the generator's sequence as on the host.
//
// In: a stream of blocks, and operands whose elements are counted in row-major order. Out: for element i, a number that depends
// on the stream and i alone.

namespace opsmith {

struct Stream {
  u64 seed, offset;
};

struct Block {
  u32 words[4];
};

// Philox 4x32-10 of the counter (offset + index, attempt).
//
// Source: J. K. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).
DEVICE Block block_of(const Stream &stream, u64 index, u64 attempt) {
  const u64 at = stream.offset + index;
  u32 c0 = static_cast<u32>(at), c1 = static_cast<u32>(at >> 32);
  u32 c2 = static_cast<u32>(attempt), c3 = static_cast<u32>(attempt >> 32);
  u32 k0 = static_cast<u32>(stream.seed), k1 = static_cast<u32>(stream.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 product0 = 0xD2511F53ull * c0, product1 = 0xCD9E8D57ull * c2;
    c0 = static_cast<u32>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<u32>(product1);
    c2 = static_cast<u32>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<u32>(product0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Half `half` of a block.
DEVICE u64 half_of(const Block &block, u64 half) {
  return static_cast<u64>(block.words[2 * half]) | static_cast<u64>(block.words[2 * half + 1]) << 32;
}

// From 0 to below 1: as many upper bits of a word as the type has, of a half for `double`.
template <class T>
DEVICE T uniform(const Stream &stream, u64 at) {
  if constexpr (kSame<T, double>) {
    return static_cast<double>(half_of(block_of(stream, at / 2, 0), at % 2) >> 11) * 0x1p-53;
  } else {
    constexpr int bits = kSame<T, float> ? 24 : kSame<T, f16> ? 11 : 8;
    const u32 word = block_of(stream, at / 4, 0).words[at % 4];
    return from_compute<T>(static_cast<float>(word >> (32 - bits)) * (1.0f / static_cast<float>(1u << bits)));
  }
}

// The natural logarithm of a positive normal number, by additions and multiplications.
DEVICE float logarithm(float value) {
  const u32 sqrt_half = 0x3f3504f3u, shifted = __float_as_uint(value) - sqrt_half;
  const float exponent = static_cast<float>(static_cast<i32>(shifted) >> 23);
  const float x = __uint_as_float((shifted & 0x007fffffu) + sqrt_half) - 1.0f, square = x * x;
  const float coefficients[8] = {-1.151461e-1f, 1.1676999e-1f, -1.2420141e-1f, 1.4249323e-1f,
                                 -1.6668057e-1f, 2.0000715e-1f, -2.4999994e-1f, 3.333333e-1f};
  float tail = 7.0376836e-2f;
  UNROLL
  for (int i = 0; i < 8; ++i) tail = tail * x + coefficients[i];
  tail = tail * x * square - 2.1219444e-4f * exponent - 0.5f * square;
  return (x + tail) + 0.6933594f * exponent;
}

// Two independent normal numbers from two words, by additions, multiplications and a square root.
//
// Source: G. E. P. Box, M. E. Muller (1958); the polynomials are those of the Cephes library.
DEVICE complex<float> normal_pair(u32 first, u32 second) {
  const float unit = 1.0f / 4294967296.0f;
  const float uniform = (static_cast<float>(first) + 1.0f) * unit, squared = -2.0f * logarithm(uniform);
  const float radius = ::sqrtf(squared > 0.0f ? squared : 0.0f);
  const u32 quarter = (second + (1u << 29)) >> 30;
  const i32 rest = static_cast<i32>(second - (quarter << 30));
  const float x = static_cast<float>(rest) * (6.2831855f * unit), square = x * x;
  const float odd = ((-1.9515296e-4f * square + 8.332161e-3f) * square - 1.6666655e-1f) * square * x + x;
  const float even =
      ((2.4433157e-5f * square - 1.3887316e-3f) * square + 4.1666646e-2f) * square * square - 0.5f * square + 1.0f;
  const float cosine = (quarter & 1u) == 0 ? even : odd, sine = (quarter & 1u) == 0 ? odd : even;
  const auto with_sign = [](float value, u32 negative) { return __uint_as_float(__float_as_uint(value) ^ negative << 31); };
  return {radius * with_sign(cosine, (quarter + 1) >> 1 & 1u), radius * with_sign(sine, quarter >> 1 & 1u)};
}

// Of mean 0 and deviation 1.
template <class T>
DEVICE T normal(const Stream &stream, u64 at) {
  if constexpr (kSame<T, double>) {
    const Block block = block_of(stream, at / 2, 0);
    const u64 first = half_of(block, 0) >> 11, second = half_of(block, 1) >> 11;
    const double radius = ::sqrt(-2.0 * ::log(static_cast<double>(first + 1) * 0x1p-53));
    const double angle = 6.283185307179586477 * (static_cast<double>(second) * 0x1p-53);
    return radius * (at % 2 == 0 ? ::cos(angle) : ::sin(angle));
  } else {
    const Block block = block_of(stream, at / 4, 0);
    const u64 pair = at % 4 / 2;
    const complex<float> numbers = normal_pair(block.words[2 * pair], block.words[2 * pair + 1]);
    return from_compute<T>(at % 2 == 0 ? numbers.re : numbers.im);
  }
}

// The upper half of a product of two numbers of 64 bits.
DEVICE u64 upper_product(u64 a, u64 b) {
  const u64 mask = 0xffffffffull, low = (a & mask) * (b & mask);
  const u64 middle = (a >> 32) * (b & mask) + (low >> 32), other = (a & mask) * (b >> 32) + (middle & mask);
  return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
}

// Integers of a range, all equally likely.
//
// Source: D. Lemire, Fast Random Integer Generation in an Interval (2019).
DEVICE i64 integer(const Stream &stream, u64 at, i64 low, u64 length) {
  u64 bits = half_of(block_of(stream, at / 2, 0), at % 2);
  for (u64 attempt = 1;; ++attempt) {
    const u64 rest = bits * length;
    if (rest >= length || rest >= (0 - length) % length) {
      return static_cast<i64>(static_cast<u64>(low) + upper_product(bits, length));
    }
    bits = half_of(block_of(stream, at / 2, attempt), at % 2);
  }
}

enum : u32 { kUniform, kNormal };

// Operand 0, and operand 1 with the number of each element in row-major order as its offset.
template <class T>
struct Drawn {
  Strided<2, u64> places;
  Stream stream;
  u32 kind, scaled;
  Compute<T> shift, factor;

  DEVICE void operator()(const i64 (&offsets)[2], const u64 (&)[8]) const {
    const u64 at = static_cast<u64>(offsets[1]);
    T number = kind == kNormal ? normal<T>(stream, at) : uniform<T>(stream, at);
    if (scaled != 0) number = from_compute<T>(to_compute(number) * factor + shift);
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = number;
  }
};

template <class T>
struct DrawnInteger {
  Strided<2, u64> places;
  Stream stream;
  i64 low;
  u64 length;

  DEVICE void operator()(const i64 (&offsets)[2], const u64 (&)[8]) const {
    const i64 number = integer(stream, static_cast<u64>(offsets[1]), low, length);
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = convert<T>(number);
  }
};

// 1 with a probability: `p`, or that of operand 2 if it is there.
template <class T>
struct Chance {
  Strided<3, u64> places;
  Stream stream;
  double p;
  u64 *wrong;

  DEVICE void operator()(const i64 (&offsets)[3], const u64 (&)[8]) const {
    double chance = p;
    if (places.pointers[2] != nullptr) {
      chance = convert<double>(static_cast<const T *>(places.pointers[2])[offsets[2]]);
      if (!(chance >= 0 && chance <= 1)) atomicMin(wrong, static_cast<u64>(offsets[1]));
    }
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] =
        convert<T>(uniform<double>(stream, static_cast<u64>(offsets[1])) < chance);
  }
};

// Operand 1 times `scale` where it is kept, as operand 0; the mask, operand 2; and the number of each element. Without
// `draws`, all are kept.
template <class T>
struct Dropout {
  Strided<4, u64> places;
  Stream stream;
  double p;
  u64 draws;
  Compute<T> scale;

  DEVICE void operator()(const i64 (&offsets)[4], const u64 (&)[8]) const {
    const bool keep =
        draws == 0 || static_cast<double>(uniform<float>(stream, static_cast<u64>(offsets[3]))) >= p;
    const auto element = to_compute(static_cast<const T *>(places.pointers[1])[offsets[1]]);
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = keep ? from_compute<T>(mul(element, scale)) : T{};
    static_cast<bool *>(const_cast<void *>(places.pointers[2]))[offsets[2]] = keep;
  }
};

}  // namespace opsmith
