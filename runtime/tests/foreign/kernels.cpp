// Kernels that the test `foreign.rs` calls through the C interface.

#include "opsmith/kernel.hpp"
#include "opsmith/random.h"

extern "C" int test_scale(OpsmithContext* context, const OpsmithTensor* self, OpsmithScalar factor,
                          OpsmithTensor* out) {
  return opsmith::run(context, [&] {
    opsmith::dispatch(out->dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T by = opsmith::to<T>(factor);
      opsmith::map(opsmith::view<T>(out), [&](T x) { return static_cast<T>(x * by); }, opsmith::view<T>(self));
    });
  });
}

extern "C" int test_axpy(OpsmithContext* context, const double* alpha, const OpsmithTensor* x,
                         const OpsmithTensor* y, OpsmithTensor* out) {
  return opsmith::run(context, [&] {
    opsmith::dispatch(opsmith::Floating{}, out->dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const float a = static_cast<float>(opsmith::value_or(alpha, 1.0));
      opsmith::map(
          opsmith::view<T>(out), [a](T left, T right) { return static_cast<T>(a * left + right); },
          opsmith::view<T>(x), opsmith::view<T>(y));
    });
  });
}

extern "C" int test_total(OpsmithContext* context, OpsmithTensors tensors, OpsmithOptionalTensors more,
                          OpsmithInts ints, OpsmithString name, OpsmithTensor* out) {
  return opsmith::run(context, [&] {
    opsmith::require(opsmith::text(name) == "sum", "the name is " + std::string(opsmith::text(name)));
    double total = 0;
    const auto add = [&](const OpsmithTensor& tensor) {
      opsmith::for_each([&](double value) { total += value; }, opsmith::view<double>(&tensor));
    };
    for (const auto& tensor : opsmith::range(tensors)) add(tensor);
    for (const auto* tensor : opsmith::range(more)) {
      if (tensor != nullptr) add(*tensor);
    }
    for (const auto value : opsmith::range(ints)) total += static_cast<double>(value);
    auto* copy = opsmith::scratch<double>(context, 100);
    copy[99] = total;
    opsmith::view<double>(out)() = copy[99];
  });
}

extern "C" int test_fail(OpsmithContext* context, int64_t how) {
  if (how == 0) return opsmith_fail(context, OPSMITH_ERROR, "dim %d is negative", -3);
  if (how == 1) return 7;
  if (how == 2) return opsmith_fail(context, 9, "%s", std::string(5000, 'x').c_str());
  return opsmith::run(context, [&] {
    if (how == 3) throw opsmith::Error("the sizes differ", 4);
    if (how == 4) throw std::out_of_range("index 9");
    if (how == 5) throw 42;
    if (how == 6) opsmith::scratch<char>(context, static_cast<size_t>(1) << 50);
    if (how == 7) opsmith::dispatch(opsmith::Floating{}, OPSMITH_INT32, [](auto) {});
    opsmith_fail(context, OPSMITH_ERROR, "a message without a failing status");
  });
}

extern "C" int test_random(OpsmithContext* context, const OpsmithGenerator* generator, OpsmithTensor* uniform,
                           OpsmithTensor* normal, OpsmithTensor* wide, OpsmithTensor* integers) {
  return opsmith::run(context, [&] {
    const auto reserve = [&](const OpsmithTensor* out, int64_t per_block) {
      const auto blocks = (opsmith_numel(out) + per_block - 1) / per_block;
      return generator->reserve(generator->handle, static_cast<uint64_t>(blocks));
    };
    const auto fill = [](auto out, auto&& element) {
      for (int64_t i = 0; i < out.numel(); ++i) out(i) = element(static_cast<uint64_t>(i));
    };
    auto stream = reserve(uniform, 4);
    fill(opsmith::view<float>(uniform), [&](uint64_t i) { return opsmith_uniform_f32(stream, i); });
    stream = reserve(normal, 4);
    fill(opsmith::view<float>(normal), [&](uint64_t i) { return opsmith_normal_f32(stream, i); });
    stream = reserve(wide, 2);
    fill(opsmith::view<double>(wide), [&](uint64_t i) { return opsmith_uniform_f64(stream, i); });
    stream = reserve(integers, 2);
    // Nearly half of all words are rejected for this length.
    fill(opsmith::view<int64_t>(integers),
         [&](uint64_t i) { return opsmith_integer(stream, i, -4611686018427387904, 4611686018427387909); });
  });
}

extern "C" uint16_t test_half_from_float(float value) { return opsmith::float16(value).bits; }
extern "C" uint16_t test_bfloat_from_float(float value) { return opsmith::bfloat16(value).bits; }
extern "C" float test_half_to_float(uint16_t bits) {
  opsmith::float16 half;
  half.bits = bits;
  return half;
}
extern "C" float test_bfloat_to_float(uint16_t bits) {
  opsmith::bfloat16 bfloat;
  bfloat.bits = bits;
  return bfloat;
}

extern "C" int test_squares(OpsmithContext* context, int64_t failing, OpsmithTensor* out) {
  return opsmith::run(context, [&] {
    const auto squares = opsmith::view<double>(out);
    opsmith::parallel_for(context, squares.numel(), 1000, [&](std::int64_t first, std::int64_t last) {
      for (auto i = first; i < last; ++i) {
        opsmith::require(i < failing, "number " + std::to_string(i) + " is too large");
        squares(i) = static_cast<double>(i) * static_cast<double>(i);
      }
    });
  });
}
