// {{ generated }}
//
// Calls of the operators of `{{ library }}` from programs of XLA on the CPU and on devices of CUDA: three handlers for each, which call the C
// interface of the library of kernels beside this one. On a device work is in the program's stream. Attributes of a call describe its arguments: `kinds` has two numbers for each, a kind of value and a count; `integers`,
// `reals` and `texts` have their values one after the other.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/ffi/api/ffi.h"

#include "opsmith_abi.h"
#include "opsmith_kernels.h"

namespace {

namespace ffi = xla::ffi;

constexpr const char *KERNELS = "{{ kernels }}";

// The table of the library of kernels; null if it cannot be had.
const opsmith_api *open_kernels() {
  std::string failure;
  return opsmith_kernels::open(KERNELS, failure);
}

const opsmith_api *api() {
  static const opsmith_api *const found = open_kernels();
  return found;
}

uint32_t number_of(ffi::DataType type) {
  switch (type) {
    case ffi::DataType::PRED:
      return OPSMITH_TYPE_BOOL;
    case ffi::DataType::S8:
      return OPSMITH_TYPE_INT8;
    case ffi::DataType::S16:
      return OPSMITH_TYPE_INT16;
    case ffi::DataType::S32:
      return OPSMITH_TYPE_INT32;
    case ffi::DataType::S64:
      return OPSMITH_TYPE_INT64;
    case ffi::DataType::U8:
      return OPSMITH_TYPE_UINT8;
    case ffi::DataType::U16:
      return OPSMITH_TYPE_UINT16;
    case ffi::DataType::U32:
      return OPSMITH_TYPE_UINT32;
    case ffi::DataType::U64:
      return OPSMITH_TYPE_UINT64;
    case ffi::DataType::F16:
      return OPSMITH_TYPE_FLOAT16;
    case ffi::DataType::BF16:
      return OPSMITH_TYPE_BFLOAT16;
    case ffi::DataType::F32:
      return OPSMITH_TYPE_FLOAT32;
    case ffi::DataType::F64:
      return OPSMITH_TYPE_FLOAT64;
    case ffi::DataType::C64:
      return OPSMITH_TYPE_COMPLEX64;
    case ffi::DataType::C128:
      return OPSMITH_TYPE_COMPLEX128;
    default:
      return 0;
  }
}

// The device of a program: its stream, and memory until the handler returns, which later work of the stream may reuse. None on the CPU.
struct Device {
  const opsmith_stream *stream = nullptr;
  ffi::ScratchAllocator *scratch = nullptr;
};

opsmith_tensor describe(const ffi::AnyBuffer &buffer, const Device &device) {
  opsmith_tensor made{};
  uint32_t number = number_of(buffer.element_type());
  made.data = buffer.untyped_data();
  made.device_type = device.stream == nullptr ? OPSMITH_DEVICE_HOST : device.stream->device_type;
  made.device_id = device.stream == nullptr ? 0 : device.stream->device_id;
  made.ndim = static_cast<int32_t>(buffer.dimensions().size());
  made.code = static_cast<uint8_t>(number >> 8);
  made.bits = static_cast<uint8_t>(number);
  made.lanes = 1;
  made.shape = buffer.dimensions().begin();
  return made;
}

// The place of results: buffers of XLA. Without `jax_enable_x64` those of 64-bit integers have 32 bits, to which elements are narrowed.
struct Place {
  const Device &device;
  std::vector<opsmith_tensor> buffers;
  // The tensors that are narrowed, with the number of the buffer.
  std::vector<std::pair<size_t, opsmith_tensor>> wide;
  std::vector<std::vector<int64_t>> memory;
  std::string error;

  Place(ffi::RemainingRets &results, const Device &device) : device(device) {
    for (size_t at = 0; at < results.size(); ++at) {
      auto buffer = results.get<ffi::AnyBuffer>(at);
      buffers.push_back(buffer.has_value() ? describe(**buffer, device) : opsmith_tensor{});
    }
  }

  // Memory for elements that are narrowed; null if there is none.
  void *allocate_wide(size_t count) {
    if (device.scratch != nullptr) {
      return device.scratch->Allocate(count * sizeof(int64_t), alignof(int64_t)).value_or(nullptr);
    }
    memory.emplace_back(count);
    return memory.back().data();
  }

  int allocate(size_t place, opsmith_tensor *result) {
    if (place >= buffers.size()) {
      error = "the program expects fewer results";
      return 1;
    }
    const opsmith_tensor &buffer = buffers[place];
    int64_t count = 1;
    bool is_same = buffer.ndim == result->ndim && buffer.device_type == result->device_type && buffer.device_id == result->device_id;
    for (int32_t dim = 0; dim < result->ndim && is_same; ++dim) {
      is_same = buffer.shape[dim] == result->shape[dim];
      count *= result->shape[dim];
    }
    bool is_narrowed = OPSMITH_DTYPE(result->code, result->bits) == OPSMITH_TYPE_INT64 &&
                       OPSMITH_DTYPE(buffer.code, buffer.bits) == OPSMITH_TYPE_INT32;
    if (!is_same || (!is_narrowed && (buffer.code != result->code || buffer.bits != result->bits))) {
      error = "a result has another shape, element type or device than the program expects";
      return 1;
    }
    result->data = buffer.data;
    if (is_narrowed && count > 0) {
      opsmith_tensor made = buffer;
      made.code = result->code;
      made.bits = result->bits;
      made.data = result->data = allocate_wide(static_cast<size_t>(count));
      if (made.data == nullptr) {
        error = "the device has no memory for integers of 64 bits, which the program narrows";
        return 1;
      }
      wide.emplace_back(place, made);
    }
    return 0;
  }

  int finish() const {
    for (const auto &[place, source] : wide) {
      if (int code = api()->convert(&buffers[place], &source, device.stream); code != OPSMITH_OK) {
        return code;
      }
    }
    return OPSMITH_OK;
  }
};

// Results of a call are in order; gradients come by the number of their tensor, of which `places` has the buffers.
struct Context {
  Place *place;
  std::vector<int64_t> places;
};

int allocate(void *context, int64_t index, opsmith_tensor *result) {
  auto &own = *static_cast<Context *>(context);
  size_t place = static_cast<size_t>(index);
  if (!own.places.empty()) {
    place = place < own.places.size() ? static_cast<size_t>(own.places[place]) : own.place->buffers.size();
  }
  return own.place->allocate(place, result);
}

// The arguments of a call, decoded from attributes.
struct Call {
  const opsmith_operator *op = nullptr;
  std::vector<opsmith_tensor> tensors;
  std::vector<opsmith_value> values;
  std::vector<std::vector<const opsmith_tensor *>> lists;
  std::vector<std::vector<uint8_t>> truths;
  std::vector<std::vector<std::string>> strings;
  std::vector<std::vector<const char *>> pointers;
  size_t used = 0;  // arrays

  ffi::Error decode(const Device &device, ffi::RemainingArgs &arguments, ffi::Dictionary &attributes) {
    if (api() == nullptr) {
      return ffi::Error(ffi::ErrorCode::kInternal, "the library of kernels cannot be loaded, or has another version");
    }
    auto name = attributes.get<std::string_view>("operator");
    auto kinds = attributes.get<ffi::Span<const int64_t>>("kinds");
    auto integers = attributes.get<ffi::Span<const int64_t>>("integers");
    auto reals = attributes.get<ffi::Span<const double>>("reals");
    auto texts = attributes.get<std::string_view>("texts");
    if (!name.has_value() || !kinds.has_value() || !integers.has_value() || !reals.has_value() || !texts.has_value()) {
      return ffi::Error::InvalidArgument("the program's call has no description");
    }
    op = api()->find(std::string(*name).c_str());
    if (op == nullptr) {
      return ffi::Error::InvalidArgument("the library of kernels has no operator " + std::string(*name));
    }
    for (size_t at = 0; at < arguments.size(); ++at) {
      auto buffer = arguments.get<ffi::AnyBuffer>(at);
      tensors.push_back(buffer.has_value() ? describe(*buffer, device) : opsmith_tensor{});
    }
    const int64_t *integer = integers->begin();
    const double *real = reals->begin();
    const char *text = texts->data();
    for (size_t at = 0; at + 1 < kinds->size(); at += 2) {
      opsmith_value value{};
      value.kind = static_cast<int32_t>(kinds->begin()[at]);
      value.count = kinds->begin()[at + 1];
      auto count = static_cast<size_t>(value.count);
      switch (value.kind) {
        case OPSMITH_TENSOR:
          value.as.tensor = array();
          break;
        case OPSMITH_TENSORS:
          lists.emplace_back();
          for (size_t item = 0; item < count; ++item) {
            lists.back().push_back(*integer++ != 0 ? array() : nullptr);
          }
          value.as.tensors = lists.back().data();
          break;
        case OPSMITH_BOOL:
        case OPSMITH_INT:
          value.as.integer = *integer++;
          break;
        case OPSMITH_FLOAT:
          value.as.real = *real++;
          break;
        case OPSMITH_COMPLEX:
          value.as.parts[0] = *real++;
          value.as.parts[1] = *real++;
          break;
        case OPSMITH_TEXT:
          value.as.text = text;
          text += count;
          break;
        case OPSMITH_INTS:
          value.as.integers = integer;
          integer += count;
          break;
        case OPSMITH_FLOATS:
          value.as.reals = real;
          real += count;
          break;
        case OPSMITH_BOOLS:
          truths.emplace_back(integer, integer + count);
          value.as.truths = truths.back().data();
          integer += count;
          break;
        case OPSMITH_TEXTS:
          // The lengths of texts are among the integers.
          strings.emplace_back();
          pointers.emplace_back();
          for (size_t item = 0; item < count; ++item) {
            strings.back().emplace_back(text, static_cast<size_t>(*integer));
            text += *integer++;
          }
          for (const std::string &one : strings.back()) {
            pointers.back().push_back(one.c_str());
          }
          value.as.texts = pointers.back().data();
          break;
        default:
          break;
      }
      values.push_back(value);
    }
    return ffi::Error::Success();
  }

  const opsmith_tensor *array() { return used < tensors.size() ? &tensors[used++] : nullptr; }
  int64_t count() const { return static_cast<int64_t>(values.size()); }
};

ffi::Error outcome(int code, Place &place) {
  if (code == OPSMITH_OK) {
    code = place.finish();
  }
  if (code == OPSMITH_OK) {
    return ffi::Error::Success();
  }
  return ffi::Error::InvalidArgument(code == OPSMITH_REFUSED ? place.error : std::string(api()->error_text()));
}

ffi::Error run(const Device &device, ffi::RemainingArgs arguments, ffi::RemainingRets results, ffi::Dictionary attributes) {
  Call call;
  ffi::Error error = call.decode(device, arguments, attributes);
  if (error.failure()) {
    return error;
  }
  Place place(results, device);
  Context context{&place, {}};
  opsmith_outputs outputs{sizeof(opsmith_outputs), &context, allocate, nullptr, device.stream};
  return outcome(api()->run(call.op, call.values.data(), call.count(), &outputs), place);
}

// Truth values of an attribute; none if it is missing.
std::vector<uint8_t> mask(ffi::Dictionary &attributes, const char *name) {
  auto found = attributes.get<ffi::Span<const int64_t>>(name);
  std::vector<uint8_t> made;
  for (size_t at = 0; found.has_value() && at < found->size(); ++at) {
    made.push_back(found->begin()[at] != 0 ? 1 : 0);
  }
  return made;
}

// The next arrays where a mask says so, null elsewhere.
std::vector<const opsmith_tensor *> arrays_of(Call &call, const std::vector<uint8_t> &mask) {
  std::vector<const opsmith_tensor *> made;
  for (uint8_t is_there : mask) {
    made.push_back(is_there != 0 ? call.array() : nullptr);
  }
  return made;
}

// The places of results that a mask names, by their numbers; a result behind `before` others.
std::vector<int64_t> places_of(const std::vector<uint8_t> &mask, size_t before) {
  std::vector<int64_t> made(before, -1);
  int64_t next = 0;
  for (uint8_t is_there : mask) {
    made.push_back(is_there != 0 ? next++ : -1);
  }
  return made;
}

bool any(const std::vector<uint8_t> &mask) {
  for (uint8_t one : mask) {
    if (one != 0) {
      return true;
    }
  }
  return false;
}

// Behind the arguments are the results of the call, if `kept` is not 0, the gradients that `flows` names, and, for the derivatives of
// gradients, the tangents that `moved` names. `others` names the tensors whose gradients are results.
ffi::Error gradient(const Device &device, ffi::RemainingArgs arguments, ffi::RemainingRets results, ffi::Dictionary attributes) {
  Call call;
  ffi::Error error = call.decode(device, arguments, attributes);
  if (error.failure()) {
    return error;
  }
  std::vector<uint8_t> flows = mask(attributes, "flows"), moved = mask(attributes, "moved"), wanted = mask(attributes, "others");
  auto kept = attributes.get<int64_t>("kept");
  std::vector<uint8_t> all(kept.has_value() ? static_cast<size_t>(*kept) : 0, 1);
  auto of_call = arrays_of(call, all), gradients = arrays_of(call, flows);
  auto count = static_cast<int64_t>(flows.size()), tensors = static_cast<int64_t>(wanted.size());
  const opsmith_tensor *const *given = of_call.empty() ? nullptr : of_call.data();
  Place place(results, device);
  if (!any(moved)) {
    Context context{&place, places_of(wanted, 0)};
    opsmith_outputs outputs{sizeof(opsmith_outputs), &context, allocate, nullptr, device.stream};
    return outcome(api()->gradient(call.op, call.values.data(), call.count(), given, gradients.data(), count, wanted.data(), tensors,
                                   &outputs),
                   place);
  }
  std::vector<const opsmith_tensor *> steps;
  for (const opsmith_tensor *step : arrays_of(call, moved)) {
    if (step != nullptr) {
      steps.push_back(step);
    }
  }
  std::vector<uint8_t> needed(flows.size(), 0);
  needed.insert(needed.end(), wanted.begin(), wanted.end());
  Context context{&place, places_of(wanted, flows.size())};
  opsmith_outputs outputs{sizeof(opsmith_outputs), &context, allocate, nullptr, device.stream};
  return outcome(api()->second_gradient(call.op, call.values.data(), call.count(), given, gradients.data(), count, moved.data(), tensors,
                                        steps.data(), static_cast<int64_t>(steps.size()), needed.data(),
                                        static_cast<int64_t>(needed.size()), &outputs),
                 place);
}

// Behind the arguments are the tangents that `moved` names, then those that `others` names, of the second order. `flows` names the results.
ffi::Error tangent(const Device &device, ffi::RemainingArgs arguments, ffi::RemainingRets results, ffi::Dictionary attributes) {
  Call call;
  ffi::Error error = call.decode(device, arguments, attributes);
  if (error.failure()) {
    return error;
  }
  std::vector<uint8_t> flows = mask(attributes, "flows"), moved = mask(attributes, "moved"), second = mask(attributes, "others");
  auto steps = arrays_of(call, moved), others = arrays_of(call, second);
  Place place(results, device);
  Context context{&place, places_of(flows, 0)};
  opsmith_outputs outputs{sizeof(opsmith_outputs), &context, allocate, nullptr, device.stream};
  return outcome(api()->tangent(call.op, call.values.data(), call.count(), steps.data(), any(second) ? others.data() : nullptr,
                                static_cast<int64_t>(steps.size()), flows.data(), static_cast<int64_t>(flows.size()), &outputs),
                 place);
}

using Handler = ffi::Error (*)(const Device &, ffi::RemainingArgs, ffi::RemainingRets, ffi::Dictionary);

// A handler on the CPU.
template <Handler handler>
ffi::Error on_host(ffi::RemainingArgs arguments, ffi::RemainingRets results, ffi::Dictionary attributes) {
  return handler(Device{}, arguments, results, attributes);
}

// A handler on a device of CUDA, whose stream has the type `void *` here, so that no header of CUDA is needed.
template <Handler handler>
ffi::Error on_cuda(void *handle, int32_t number, ffi::ScratchAllocator scratch, ffi::RemainingArgs arguments, ffi::RemainingRets results,
                   ffi::Dictionary attributes) {
  opsmith_stream stream{OPSMITH_DEVICE_CUDA, number, handle};
  return handler(Device{&stream, &scratch}, arguments, results, attributes);
}

auto bind_host() { return ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attrs(); }

auto bind_cuda() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::PlatformStream<void *>>()
      .Ctx<ffi::DeviceOrdinal>()
      .Ctx<ffi::ScratchAllocator>()
      .RemainingArgs()
      .RemainingRets()
      .Attrs();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(opsmith_jax_run_cpu, on_host<run>, bind_host());
XLA_FFI_DEFINE_HANDLER_SYMBOL(opsmith_jax_gradient_cpu, on_host<gradient>, bind_host());
XLA_FFI_DEFINE_HANDLER_SYMBOL(opsmith_jax_tangent_cpu, on_host<tangent>, bind_host());
XLA_FFI_DEFINE_HANDLER_SYMBOL(opsmith_jax_run_cuda, on_cuda<run>, bind_cuda());
XLA_FFI_DEFINE_HANDLER_SYMBOL(opsmith_jax_gradient_cuda, on_cuda<gradient>, bind_cuda());
XLA_FFI_DEFINE_HANDLER_SYMBOL(opsmith_jax_tangent_cuda, on_cuda<tangent>, bind_cuda());
