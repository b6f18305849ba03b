// The work of a product of the stand-in for cuBLASLt: sums in the type of sums, in the order of the inner index.

#pragma once

#include <cmath>
#include <complex>
#include <cstring>

#include "descriptions.h"

namespace cublaslt {

struct Multiplication {
  const void *a, *b, *c;
  void *d;
  const void *bias;
  void *workspace;
  size_t workspace_bytes;
  Layout layouts[4];
  Product product;
  alignas(16) char alpha[16];
  alignas(16) char beta[16];
};

inline float float_of(uint32_t bits) {
  float number;
  memcpy(&number, &bits, 4);
  return number;
}
inline uint32_t bits_of(float number) {
  uint32_t bits;
  memcpy(&bits, &number, 4);
  return bits;
}

// Floats of 16 bits.
struct Half {
  using Sum = float;
  uint16_t bits;

  static float widen(Half half) {
    const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000) << 16, fraction = half.bits & 0x3FF;
    const int exponent = half.bits >> 10 & 31;
    if (exponent == 31) return float_of(sign | 0x7F800000u | fraction << 13);
    const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                     : std::ldexp(static_cast<float>(fraction | 0x400), exponent - 25);
    return sign != 0 ? -size : size;
  }
  static Half narrow(float number) {
    const auto sign = static_cast<uint16_t>(bits_of(number) >> 16 & 0x8000);
    if (std::isnan(number)) return {static_cast<uint16_t>(sign | 0x7E00)};
    const float size = std::fabs(number);
    if (size >= 65520.0f) return {static_cast<uint16_t>(sign | 0x7C00)};
    int exponent = 0;
    std::frexp(size, &exponent);
    // The unit of the last place; `nearbyint` rounds to even.
    const int unit = (exponent < -13 ? -13 : exponent) - 11;
    const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, -unit)));
    // A carry moves into the exponent by itself.
    const uint32_t rest = steps < 1024 ? steps : (static_cast<uint32_t>(unit + 25) << 10) + (steps - 1024);
    return {static_cast<uint16_t>(sign | rest)};
  }
};

struct Brain {
  using Sum = float;
  uint16_t bits;

  static float widen(Brain brain) { return float_of(static_cast<uint32_t>(brain.bits) << 16); }
  static Brain narrow(float number) {
    const uint32_t bits = bits_of(number);
    if (std::isnan(number)) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
    return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
  }
};

// Types that sum in themselves.
template <class T>
struct Same {
  using Sum = T;
  T number;
  static T widen(Same element) { return element.number; }
  static Same narrow(T number) { return {number}; }
};

// Ten bits of the fraction, as TF32 has them.
inline float to_tf32(float number) {
  if (!std::isfinite(number)) return number;
  return float_of((bits_of(number) + 0x1000u) & ~0x1FFFu);
}
template <class T>
T rounded(T number, bool) {
  return number;
}
template <>
inline float rounded(float number, bool is_tf32) {
  return is_tf32 ? to_tf32(number) : number;
}
template <>
inline std::complex<float> rounded(std::complex<float> number, bool is_tf32) {
  return is_tf32 ? std::complex<float>(to_tf32(number.real()), to_tf32(number.imag())) : number;
}

template <class T>
T add_product(T sum, T a, T b) {
  return std::fma(a, b, sum);
}
template <class R>
std::complex<R> add_product(std::complex<R> sum, std::complex<R> a, std::complex<R> b) {
  return {sum.real() + (a.real() * b.real() - a.imag() * b.imag()), sum.imag() + (a.real() * b.imag() + a.imag() * b.real())};
}

template <class T>
T activated(T number, int epilogue) {
  if ((epilogue & kEpilogueRelu) != 0) number = number < 0 ? T(0) : number;
  if ((epilogue & kEpilogueGelu) != 0) {
    const T inner = std::sqrt(T(2) / T(M_PI)) * (number + T(0.044715) * number * number * number);
    number = number / 2 * (1 + std::tanh(inner));
  }
  return number;
}
template <class R>
std::complex<R> activated(std::complex<R> number, int) {
  return number;
}

template <class E>
void multiply_as(const Multiplication &task) {
  using Sum = typename E::Sum;
  const Layout &a = task.layouts[0], &b = task.layouts[1], &c = task.layouts[2], &d = task.layouts[3];
  const bool turn_a = task.product.transpose_a != kPlain, turn_b = task.product.transpose_b != kPlain;
  const bool is_tf32 = task.product.compute == kComputeTf32;
  const auto inner = static_cast<int64_t>(turn_a ? a.rows : a.columns);
  Sum alpha, beta;
  memcpy(&alpha, task.alpha, sizeof alpha);
  memcpy(&beta, task.beta, sizeof beta);
  const bool adds = !is_zero(task.beta, task.product.scale);
  for (int64_t stack = 0; stack < d.stacks; ++stack) {
    const auto *left = static_cast<const E *>(task.a) + stack * a.stack_stride;
    const auto *right = static_cast<const E *>(task.b) + stack * b.stack_stride;
    const auto *addend = static_cast<const E *>(task.c) + stack * c.stack_stride;
    auto *result = static_cast<E *>(task.d) + stack * d.stack_stride;
    for (int64_t column = 0; column < static_cast<int64_t>(d.columns); ++column) {
      for (int64_t row = 0; row < static_cast<int64_t>(d.rows); ++row) {
        Sum sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          const E x = left[turn_a ? row * a.leading + k : k * a.leading + row];
          const E y = right[turn_b ? k * b.leading + column : column * b.leading + k];
          sum = add_product(sum, rounded(E::widen(x), is_tf32), rounded(E::widen(y), is_tf32));
        }
        Sum whole = alpha * sum;
        if (adds) whole += beta * E::widen(addend[column * c.leading + row]);
        if (task.bias != nullptr) whole += E::widen(static_cast<const E *>(task.bias)[row]);
        result[column * d.leading + row] = E::narrow(activated(whole, task.product.epilogue));
      }
    }
  }
}

// A task of a stream: the argument is a `Multiplication`.
inline void multiply(void *argument) {
  Multiplication task;
  memcpy(&task, argument, sizeof task);
  // An algorithm leaves anything there.
  if (task.workspace != nullptr) memset(task.workspace, 0xEE, task.workspace_bytes);
  switch (task.layouts[3].type) {
    case kReal16: return multiply_as<Half>(task);
    case kBrain16: return multiply_as<Brain>(task);
    case kReal32: return multiply_as<Same<float>>(task);
    case kReal64: return multiply_as<Same<double>>(task);
    case kComplex32: return multiply_as<Same<std::complex<float>>>(task);
    default: return multiply_as<Same<std::complex<double>>>(task);
  }
}

}  // namespace cublaslt
