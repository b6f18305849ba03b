// The 16-bit floating-point types, as C++17 types that convert to and from float.
#ifndef OPSMITH_HALF_HPP
#define OPSMITH_HALF_HPP

#include <cstdint>
#include <cstring>

namespace opsmith {

namespace detail {

template <class To, class From>
To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits need the same size");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

inline std::uint16_t half_from_float(float value) {
  const auto bits = bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // NaN: keeps the upper payload, becomes quiet
    return static_cast<std::uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  }
  if (magnitude >= 0x47800000u) return sign | 0x7c00u;  // from 65536 on: infinity
  if (magnitude < 0x38800000u) {
    // Below the smallest normal half. The last bit of a float near 0.5 is worth 2^-24, as a
    // subnormal half's is, so this addition rounds at the right place.
    const float sum = bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (bit_cast<std::uint32_t>(sum) - 0x3f000000u));
  }
  // Another exponent bias; then to the nearest, ties to even. A carry may reach infinity.
  const std::uint32_t rebiased = magnitude - 0x38000000u;
  return static_cast<std::uint16_t>(sign | (rebiased + 0xfffu + (rebiased >> 13 & 1u)) >> 13);
}

inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = half >> 10 & 31u;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 31) {
    const std::uint32_t quiet = mantissa == 0 ? 0 : 0x400000u;
    return bit_cast<float>(sign | 0x7f800000u | quiet | mantissa << 13);
  }
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * (1.0f / 16777216.0f);
    return bit_cast<float>(sign | bit_cast<std::uint32_t>(magnitude));
  }
  return bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

inline std::uint16_t bfloat_from_float(float value) {
  const auto bits = bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline float bfloat_to_float(std::uint16_t bfloat) {
  return bit_cast<float>(static_cast<std::uint32_t>(bfloat) << 16);
}

}  // namespace detail

/// IEEE 754 binary16. Arithmetic happens in float; rounding back is to the nearest, ties to even.
struct float16 {
  std::uint16_t bits = 0;
  float16() = default;
  float16(float value) : bits(detail::half_from_float(value)) {}
  operator float() const { return detail::half_to_float(bits); }
};

/// The upper half of a binary32.
struct bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  bfloat16(float value) : bits(detail::bfloat_from_float(value)) {}
  operator float() const { return detail::bfloat_to_float(bits); }
};

}  // namespace opsmith

#endif
