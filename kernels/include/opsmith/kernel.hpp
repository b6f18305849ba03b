// Convenience for kernels written in C++17: typed views, loops, dispatch on dtype, exceptions.
//
//   extern "C" int my_cpu_scale(OpsmithContext* context, const OpsmithTensor* self, double factor,
//                               OpsmithTensor* out) {
//     return opsmith::run(context, [&] {
//       opsmith::dispatch(opsmith::Floating{}, out->dtype, [&](auto tag) {
//         using T = typename decltype(tag)::type;
//         opsmith::map(opsmith::view<T>(out), [&](T x) { return T(x * factor); }, opsmith::view<T>(self));
//       });
//     });
//   }
#ifndef OPSMITH_KERNEL_HPP
#define OPSMITH_KERNEL_HPP

#include <array>
#include <complex>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "opsmith/half.hpp"
#include "opsmith/kernel.h"

namespace opsmith {

/// A failure with a code of the kernel's own; any other exception has the code OPSMITH_ERROR.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, int code = OPSMITH_ERROR)
      : std::runtime_error(message), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  int code_;
};

/// Throws an Error unless the condition holds.
inline void require(bool condition, const std::string& message) {
  if (!condition) throw Error(message);
}

/// Runs a kernel's body; an exception becomes a status and a message.
template <class Body>
int run(OpsmithContext* context, Body&& body) noexcept {
  try {
    body();
    return OPSMITH_OK;
  } catch (const Error& error) {
    return opsmith_fail(context, error.code(), "%s", error.what());
  } catch (const std::bad_alloc&) {
    return opsmith_fail(context, OPSMITH_ERROR, "out of memory");
  } catch (const std::exception& error) {
    return opsmith_fail(context, OPSMITH_ERROR, "%s", error.what());
  } catch (...) {
    return opsmith_fail(context, OPSMITH_ERROR, "an exception that is not a std::exception");
  }
}

// ---- dtypes ----

/// A type as a value, so that a generic lambda can receive it.
template <class T>
struct Tag {
  using type = T;
};

/// Elements that are only stored, in no set below: the bytes of 8-bit floats, and integers of four bits, a byte each, of which the
/// low four bits count.
struct float8_e4m3fn { std::uint8_t bits; };
struct float8_e5m2 { std::uint8_t bits; };
struct int4 { std::uint8_t bits; };
struct uint4 { std::uint8_t bits; };

/// A set of element types.
template <class... Ts>
struct Types {};

using Integers = Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t, std::int16_t,
                       std::int32_t, std::int64_t>;
using Floating = Types<float16, bfloat16, float, double>;
using Complex = Types<std::complex<float>, std::complex<double>>;
using All = Types<bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t, std::int16_t,
                  std::int32_t, std::int64_t, float16, bfloat16, float, double, std::complex<float>,
                  std::complex<double>>;

/// The OPSMITH_ constant of an element type.
template <class T>
constexpr std::int32_t dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return OPSMITH_BOOL;
  else if constexpr (std::is_same_v<T, std::uint8_t>) return OPSMITH_UINT8;
  else if constexpr (std::is_same_v<T, std::uint16_t>) return OPSMITH_UINT16;
  else if constexpr (std::is_same_v<T, std::uint32_t>) return OPSMITH_UINT32;
  else if constexpr (std::is_same_v<T, std::uint64_t>) return OPSMITH_UINT64;
  else if constexpr (std::is_same_v<T, std::int8_t>) return OPSMITH_INT8;
  else if constexpr (std::is_same_v<T, std::int16_t>) return OPSMITH_INT16;
  else if constexpr (std::is_same_v<T, std::int32_t>) return OPSMITH_INT32;
  else if constexpr (std::is_same_v<T, std::int64_t>) return OPSMITH_INT64;
  else if constexpr (std::is_same_v<T, float16>) return OPSMITH_FLOAT16;
  else if constexpr (std::is_same_v<T, bfloat16>) return OPSMITH_BFLOAT16;
  else if constexpr (std::is_same_v<T, float>) return OPSMITH_FLOAT32;
  else if constexpr (std::is_same_v<T, double>) return OPSMITH_FLOAT64;
  else if constexpr (std::is_same_v<T, std::complex<float>>) return OPSMITH_COMPLEX64;
  else if constexpr (std::is_same_v<T, float8_e4m3fn>) return OPSMITH_FLOAT8_E4M3FN;
  else if constexpr (std::is_same_v<T, float8_e5m2>) return OPSMITH_FLOAT8_E5M2;
  else if constexpr (std::is_same_v<T, int4>) return OPSMITH_INT4;
  else if constexpr (std::is_same_v<T, uint4>) return OPSMITH_UINT4;
  else {
    static_assert(std::is_same_v<T, std::complex<double>>, "tensors do not hold this type");
    return OPSMITH_COMPLEX128;
  }
}

/// The public name of a dtype, e.g. "float32".
inline std::string dtype_name(std::int32_t dtype) {
  static constexpr std::array<const char*, OPSMITH_DTYPE_COUNT> names = {
      "bool",  "uint8",   "uint16",   "uint32",  "uint64",  "int8",      "int16",     "int32",
      "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
      "float8_e4m3fn", "float8_e5m2", "int4", "uint4"};
  if (dtype < 0 || dtype >= OPSMITH_DTYPE_COUNT) return "dtype " + std::to_string(dtype);
  return names[static_cast<std::size_t>(dtype)];
}

/// Calls `body(Tag<T>{})` with the type of a dtype; an Error if it is not in the set.
template <class... Ts, class Body>
void dispatch(Types<Ts...>, std::int32_t dtype, Body&& body) {
  const bool found = ((dtype == dtype_of<Ts>() ? (body(Tag<Ts>{}), true) : false) || ...);
  if (!found) throw Error("there is no kernel for " + dtype_name(dtype));
}

/// Calls `body(Tag<T>{})` with the type of a dtype.
template <class Body>
void dispatch(std::int32_t dtype, Body&& body) {
  dispatch(All{}, dtype, body);
}

// ---- views ----

/// A tensor's elements; T is const for inputs. A handle: copying it copies no elements.
template <class T>
struct View {
  T* data;
  const std::int64_t* sizes;
  const std::int64_t* strides;
  int ndim;

  std::int64_t size(int dim) const { return sizes[dim]; }

  std::int64_t numel() const {
    std::int64_t total = 1;
    for (int dim = 0; dim < ndim; ++dim) total *= sizes[dim];
    return total;
  }

  bool is_contiguous() const {
    const OpsmithTensor tensor = {nullptr, sizes, strides, ndim, 0, 0, 0};
    return opsmith_is_contiguous(&tensor);
  }

  /// The element at an index, one number a dimension: `x(row, column)`. Not checked.
  template <class... Index>
  T& operator()(Index... index) const {
    const std::array<std::int64_t, sizeof...(Index)> numbers = {static_cast<std::int64_t>(index)...};
    return at(numbers.data());
  }

  /// The element at an index of `ndim` numbers. Not checked.
  T& at(const std::int64_t* index) const {
    std::int64_t position = 0;
    for (int dim = 0; dim < ndim; ++dim) position += index[dim] * strides[dim];
    return data[position];
  }
};

namespace detail {
template <class T>
void expect_dtype(const OpsmithTensor* tensor) {
  if (tensor->dtype != dtype_of<T>()) {
    throw Error("expected a tensor of " + dtype_name(dtype_of<T>()) + ", got one of " +
                dtype_name(tensor->dtype));
  }
}
}  // namespace detail

/// An input's elements; an Error if they are not of type T.
template <class T>
View<const T> view(const OpsmithTensor* tensor) {
  detail::expect_dtype<T>(tensor);
  return {static_cast<const T*>(tensor->data), tensor->sizes, tensor->strides, tensor->ndim};
}

/// An output's elements; an Error if they are not of type T.
template <class T>
View<T> view(OpsmithTensor* tensor) {
  detail::expect_dtype<T>(tensor);
  return {static_cast<T*>(tensor->data), tensor->sizes, tensor->strides, tensor->ndim};
}

/// Calls `body(index)` with every index of a shape in row-major order; `index` has `ndim` numbers.
template <class Body>
void for_each_index(const std::int64_t* sizes, int ndim, Body&& body) {
  constexpr int max_dims = 64;
  require(ndim <= max_dims, "a tensor has more than 64 dimensions");
  std::array<std::int64_t, max_dims> index{};
  for (int dim = 0; dim < ndim; ++dim) {
    if (sizes[dim] == 0) return;
  }
  for (;;) {
    body(static_cast<const std::int64_t*>(index.data()));
    int dim = ndim - 1;
    while (dim >= 0 && ++index[static_cast<std::size_t>(dim)] == sizes[dim]) {
      index[static_cast<std::size_t>(dim--)] = 0;
    }
    if (dim < 0) return;
  }
}

namespace detail {
/// The stride of an operand along a dimension of the output it is broadcast to.
template <class T>
std::int64_t broadcast_stride(const View<T>& operand, int dim, int ndim) {
  const int own = dim - (ndim - operand.ndim);
  return own < 0 || operand.sizes[own] == 1 ? 0 : operand.strides[own];
}

inline std::string shape_text(const std::int64_t* sizes, int ndim) {
  std::string text = "(";
  for (int dim = 0; dim < ndim; ++dim) text += (dim > 0 ? ", " : "") + std::to_string(sizes[dim]);
  return text + ")";
}

/// An Error unless the operand's sizes are 1 or those of a shape, counted from the last dimension.
template <class T>
void require_broadcast(const View<T>& operand, const std::int64_t* sizes, int ndim) {
  bool fits = operand.ndim <= ndim;
  for (int dim = 0; fits && dim < operand.ndim; ++dim) {
    fits = operand.sizes[dim] == 1 || operand.sizes[dim] == sizes[ndim - operand.ndim + dim];
  }
  require(fits, "the shape " + shape_text(operand.sizes, operand.ndim) + " does not broadcast to " +
                    shape_text(sizes, ndim));
}

template <class T>
T* row(const View<T>& operand, const std::int64_t* index, int outer, int ndim) {
  std::int64_t position = 0;
  for (int dim = 0; dim < outer; ++dim) position += index[dim] * broadcast_stride(operand, dim, ndim);
  return operand.data + position;
}

template <class T, class Out>
bool same_contiguous(const View<T>& operand, const View<Out>& out) {
  return operand.is_contiguous() && operand.numel() == out.numel();
}

template <class Function, class Out, class... In>
void map_row(std::int64_t length, Function& function, std::int64_t out_step, Out* out,
             std::pair<const In*, std::int64_t>... in) {
  for (std::int64_t i = 0; i < length; ++i) out[i * out_step] = function(in.first[i * in.second]...);
}

template <class Function, class Out, class... In>
void map_contiguous(std::int64_t length, Function& function, Out* out, const In*... in) {
  for (std::int64_t i = 0; i < length; ++i) out[i] = function(in[i]...);
}
}  // namespace detail

/// Writes `function(inputs' elements...)` to each element of the output, inputs broadcast to it; an Error if one does not
/// broadcast. An input may be the output itself.
template <class Out, class Function, class... In>
void map(View<Out> out, Function&& function, View<const In>... inputs) {
  (detail::require_broadcast(inputs, out.sizes, out.ndim), ...);
  if (out.is_contiguous() && (detail::same_contiguous(inputs, out) && ...)) {
    return detail::map_contiguous(out.numel(), function, out.data, inputs.data...);
  }
  const int outer = out.ndim > 0 ? out.ndim - 1 : 0;
  const std::int64_t length = out.ndim > 0 ? out.sizes[outer] : 1;
  const auto step = [&](const auto& operand) {
    return out.ndim > 0 ? detail::broadcast_stride(operand, outer, out.ndim) : 0;
  };
  for_each_index(out.sizes, outer, [&](const std::int64_t* index) {
    detail::map_row<Function, Out, In...>(
        length, function, step(out), detail::row(out, index, outer, out.ndim),
        {detail::row(inputs, index, outer, out.ndim), step(inputs)}...);
  });
}

/// Calls `body(inputs' elements...)` for each index of the first view's shape, in row-major order, the
/// others broadcast to it; an Error if one does not broadcast.
template <class Body, class First, class... Rest>
void for_each(Body&& body, View<First> first, View<Rest>... rest) {
  const int ndim = first.ndim;
  (detail::require_broadcast(rest, first.sizes, ndim), ...);
  for_each_index(first.sizes, ndim, [&](const std::int64_t* index) {
    body(*detail::row(first, index, ndim, ndim), *detail::row(rest, index, ndim, ndim)...);
  });
}

// ---- attributes ----

/// Entries of a list, for `for (auto dim : opsmith::range(dims))`.
template <class T>
struct Range {
  const T* data;
  std::size_t length;
  const T* begin() const { return data; }
  const T* end() const { return data + length; }
  std::size_t size() const { return length; }
  const T& operator[](std::size_t index) const { return data[index]; }
};

inline Range<std::int64_t> range(OpsmithInts list) { return {list.data, list.length}; }
inline Range<double> range(OpsmithFloats list) { return {list.data, list.length}; }
inline Range<bool> range(OpsmithBools list) { return {list.data, list.length}; }
inline Range<OpsmithScalar> range(OpsmithScalars list) { return {list.data, list.length}; }
inline Range<OpsmithTensor> range(OpsmithTensors list) { return {list.data, list.length}; }
inline Range<const OpsmithTensor*> range(OpsmithOptionalTensors list) { return {list.data, list.length}; }

inline Range<OpsmithString> range(OpsmithStrings list) { return {list.data, list.length}; }
inline Range<std::int32_t> range(OpsmithDTypes list) { return {list.data, list.length}; }

/// A row of a list of lists: `for (std::size_t i = 0; i < pairs.length; ++i) opsmith::row(pairs, i)`.
template <class Lists>
auto row(const Lists& lists, std::size_t index) {
  using T = std::remove_const_t<std::remove_pointer_t<decltype(lists.data)>>;
  const std::size_t start = index == 0 ? 0 : lists.ends[index - 1];
  return Range<T>{lists.data + start, lists.ends[index] - start};
}

inline std::string_view text(OpsmithString string) { return {string.data, string.length}; }

/// The scalar as an element type: integers wrap, a complex number loses its imaginary part in a real type.
template <class T>
T to(const OpsmithScalar& scalar) {
  if constexpr (std::is_same_v<T, bool>) return scalar.real != 0 || scalar.imag != 0;
  else if constexpr (std::is_integral_v<T>) return static_cast<T>(scalar.integer);
  else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    using Real = typename T::value_type;
    return T(static_cast<Real>(scalar.real), static_cast<Real>(scalar.imag));
  } else if constexpr (std::is_same_v<T, double>) return scalar.real;
  else return T(static_cast<float>(scalar.real));
}

/// What a pointer to an optional value points to, or the default.
template <class T>
T value_or(const T* optional, T otherwise) {
  return optional == nullptr ? otherwise : *optional;
}

/// Memory for `count` values for the time of the call; std::bad_alloc if there is none.
template <class T>
T* scratch(OpsmithContext* context, std::size_t count) {
  if (count > SIZE_MAX / sizeof(T)) throw std::bad_alloc();
  void* memory = opsmith_scratch(context, count * sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<T*>(memory);
}

/// Calls `body(first, last)` with ranges that together cover the numbers from 0 to before `count`, in several threads
/// if that is faster; `chunk` numbers should take some microseconds. Throws the exception of the first range that has
/// one. The body must not use the context.
///
///   opsmith::parallel_for(context, rows, 64, [&](std::int64_t first, std::int64_t last) {
///     for (auto row = first; row < last; ++row) normalise(row);
///   });
template <class Body>
void parallel_for(OpsmithContext* context, std::int64_t count, std::int64_t chunk, Body&& body) {
  struct Loop {
    std::remove_reference_t<Body>& body;
    std::mutex lock;
    std::int64_t failed;
    std::exception_ptr error;
  } loop{body, {}, 0, nullptr};
  opsmith_parallel_for(
      context, count, chunk,
      [](void* data, std::int64_t first, std::int64_t last) noexcept {
        auto& loop = *static_cast<Loop*>(data);
        try {
          loop.body(first, last);
        } catch (...) {
          const std::lock_guard<std::mutex> guard(loop.lock);
          if (loop.error == nullptr || first < loop.failed) {
            loop.failed = first;
            loop.error = std::current_exception();
          }
        }
      },
      &loop);
  if (loop.error != nullptr) std::rethrow_exception(loop.error);
}

}  // namespace opsmith

#endif
