// {{ generated }}
//
// The operators of `{{ library }}` as functions of tvm-ffi: `{{ namespace }}.NAME` takes the arguments of the signature in order, of which those with
// defaults may be left out at the end, and returns a tensor, or an array of tensors. All call the C interface of the library of kernels
// beside this one. Loading this library registers them.

#include <cstdlib>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <tvm/ffi/tvm_ffi.h>

#include "opsmith_abi.h"
#include "opsmith_kernels.h"

namespace {

namespace ffi = tvm::ffi;

constexpr const char *KERNELS = "{{ kernels }}";
constexpr const char *NAMES[] = {
{%- for operator in operators %}
    "{{ operator }}",
{%- endfor %}
};

const opsmith_api *open_kernels() {
  std::string failure;
  const opsmith_api *found = opsmith_kernels::open(KERNELS, failure);
  if (found == nullptr) {
    TVM_FFI_THROW(RuntimeError) << failure;
  }
  return found;
}

const opsmith_api &api() {
  static const opsmith_api *const found = open_kernels();
  return *found;
}

// Raises the error of a call, of Python's class.
void check(int code) {
  switch (code) {
    case OPSMITH_OK:
      return;
    case OPSMITH_SHAPE:
    case OPSMITH_VALUE:
      TVM_FFI_THROW(ValueError) << api().error_text();
    case OPSMITH_DTYPE:
    case OPSMITH_ARGUMENT:
      TVM_FFI_THROW(TypeError) << api().error_text();
    case OPSMITH_INDEX:
      TVM_FFI_THROW(IndexError) << api().error_text();
    case OPSMITH_NOT_IMPLEMENTED:
      TVM_FFI_THROW(NotImplementedError) << api().error_text();
    default:
      TVM_FFI_THROW(RuntimeError) << api().error_text();
  }
}

// Memory of a result: new, or that of the library's.
struct Memory {
  void *given = nullptr;
  void *owner = nullptr;
  void (*release)(void *) = nullptr;

  void AllocData(DLTensor *tensor) {
    if (owner != nullptr) {
      tensor->data = given;
      return;
    }
    constexpr size_t ALIGNMENT = 64;
    size_t bytes = ffi::GetDataSize(*tensor);
    tensor->data = std::aligned_alloc(ALIGNMENT, (bytes / ALIGNMENT + 1) * ALIGNMENT);
    if (tensor->data == nullptr) {
      TVM_FFI_THROW(MemoryError) << "there is no memory for " << bytes << " bytes";
    }
  }
  void FreeData(DLTensor *tensor) {
    if (owner != nullptr) {
      release(owner);
    } else {
      std::free(tensor->data);
    }
  }
};

ffi::Tensor made(const opsmith_tensor &result, Memory memory) {
  ffi::ShapeView shape(result.shape, static_cast<size_t>(result.ndim));
  return ffi::Tensor::FromNDAlloc(memory, shape, DLDataType{result.code, result.bits, result.lanes}, DLDevice{kDLCPU, 0});
}

int allocate(void *context, int64_t, opsmith_tensor *result) {
  try {
    auto &results = *static_cast<std::vector<ffi::Tensor> *>(context);
    results.push_back(made(*result, Memory{}));
    result->data = results.back().data_ptr();
    return 0;
  } catch (...) {
    return 1;
  }
}

int adopt(void *context, int64_t, const opsmith_tensor *result, void *owner, void (*release)(void *)) {
  try {
    auto &results = *static_cast<std::vector<ffi::Tensor> *>(context);
    results.reserve(results.size() + 1);
    results.push_back(made(*result, Memory{result->data, owner, release}));
    return 0;
  } catch (...) {
    return 1;
  }
}

// The arguments of a call. What values lead to is part of this object or of the call.
class Values {
 public:
  Values(const opsmith_operator &op, ffi::PackedArgs arguments) {
    if (arguments.size() > op.argument_count) {
      TVM_FFI_THROW(TypeError) << arguments.size() << " arguments were given\n  help: the signature is " << op.signature;
    }
    for (int64_t at = 0; at < op.argument_count; ++at) {
      std::string type(op.arguments[at].type);
      values.push_back(at < arguments.size() ? value(op.arguments[at], type, arguments[static_cast<int>(at)]) : opsmith_value{});
    }
  }
  std::vector<opsmith_value> values;

 private:
  const opsmith_tensor *tensor(DLTensor *given) {
    opsmith_tensor made{};
    made.data = given->data;
    made.device_type = static_cast<int32_t>(given->device.device_type);
    made.device_id = given->device.device_id;
    made.ndim = given->ndim;
    made.code = given->dtype.code;
    made.bits = given->dtype.bits;
    made.lanes = given->dtype.lanes;
    made.shape = given->shape;
    made.strides = given->strides;
    made.byte_offset = given->byte_offset;
    tensors_.push_back(made);
    return &tensors_.back();
  }

  opsmith_value text(std::string given) {
    texts_.push_back(std::move(given));
    opsmith_value made{};
    made.kind = OPSMITH_TEXT;
    made.count = static_cast<int64_t>(texts_.back().size());
    made.as.text = texts_.back().c_str();
    return made;
  }

  opsmith_value value(const opsmith_argument &argument, const std::string &type, ffi::AnyView given) {
    opsmith_value made{};
    if (given == nullptr) {
      made.kind = OPSMITH_NONE;
    } else if (auto tensor = given.try_cast<DLTensor *>()) {
      made.kind = OPSMITH_TENSOR;
      made.as.tensor = this->tensor(*tensor);
    } else if (given.type_index() == ffi::TypeIndex::kTVMFFIBool) {
      made.kind = OPSMITH_BOOL;
      made.as.integer = given.cast<bool>() ? 1 : 0;
    } else if (given.type_index() == ffi::TypeIndex::kTVMFFIInt) {
      made.kind = OPSMITH_INT;
      made.as.integer = given.cast<int64_t>();
    } else if (given.type_index() == ffi::TypeIndex::kTVMFFIFloat) {
      made.kind = OPSMITH_FLOAT;
      made.as.real = given.cast<double>();
    } else if (given.type_index() == ffi::TypeIndex::kTVMFFIDataType) {
      return text(ffi::DLDataTypeToString(given.cast<DLDataType>()));
    } else if (auto string = given.try_cast<ffi::String>()) {
      return text(*string);
    } else if (auto array = given.try_cast<ffi::Array<ffi::Any>>()) {
      return list(argument, type, *array);
    } else if (auto shape = given.try_cast<ffi::Shape>()) {
      ints_.emplace_back(shape->begin(), shape->end());
      made.kind = OPSMITH_INTS;
      made.count = static_cast<int64_t>(ints_.back().size());
      made.as.integers = ints_.back().data();
    } else {
      TVM_FFI_THROW(TypeError) << "`" << argument.name << "` must be " << type << ", got " << given.GetTypeKey();
    }
    return made;
  }

  opsmith_value list(const opsmith_argument &argument, const std::string &type, const ffi::Array<ffi::Any> &items) {
    opsmith_value made{};
    made.count = static_cast<int64_t>(items.size());
    bool are_reals = type.rfind("float[", 0) == 0;
    for (const ffi::Any &item : items) {
      are_reals = are_reals || item.type_index() == ffi::TypeIndex::kTVMFFIFloat;
    }
    if (type.rfind("Tensor", 0) == 0) {
      pointers_.emplace_back();
      for (const ffi::Any &item : items) {
        auto tensor = item.try_cast<ffi::Tensor>();
        if (!tensor && item != nullptr) {
          TVM_FFI_THROW(TypeError) << "`" << argument.name << "` must be a list of tensors, got one with " << item.GetTypeKey();
        }
        pointers_.back().push_back(tensor ? this->tensor(const_cast<DLTensor *>(tensor->GetDLTensorPtr())) : nullptr);
      }
      made.kind = OPSMITH_TENSORS;
      made.as.tensors = pointers_.back().data();
    } else if (type.rfind("str[", 0) == 0) {
      strings_.emplace_back();
      for (const ffi::Any &item : items) {
        texts_.push_back(item.cast<ffi::String>());
        strings_.back().push_back(texts_.back().c_str());
      }
      made.kind = OPSMITH_TEXTS;
      made.as.texts = strings_.back().data();
    } else if (are_reals) {
      reals_.emplace_back();
      for (const ffi::Any &item : items) {
        reals_.back().push_back(item.cast<double>());
      }
      made.kind = OPSMITH_FLOATS;
      made.as.reals = reals_.back().data();
    } else if (type.rfind("bool[", 0) == 0) {
      truths_.emplace_back();
      for (const ffi::Any &item : items) {
        truths_.back().push_back(item.cast<bool>() ? 1 : 0);
      }
      made.kind = OPSMITH_BOOLS;
      made.as.truths = truths_.back().data();
    } else {
      ints_.emplace_back();
      for (const ffi::Any &item : items) {
        ints_.back().push_back(item.cast<int64_t>());
      }
      made.kind = OPSMITH_INTS;
      made.as.integers = ints_.back().data();
    }
    return made;
  }

  // Items of a deque do not move when it grows.
  std::deque<opsmith_tensor> tensors_;
  std::deque<std::string> texts_;
  std::deque<std::vector<const opsmith_tensor *>> pointers_;
  std::deque<std::vector<const char *>> strings_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<double>> reals_;
  std::deque<std::vector<uint8_t>> truths_;
};

void call(const opsmith_operator &op, ffi::PackedArgs arguments, ffi::Any *result) {
  Values values(op, arguments);
  std::vector<ffi::Tensor> results;
  opsmith_outputs outputs{sizeof(opsmith_outputs), &results, allocate, adopt, nullptr};
  check(api().run(&op, values.values.data(), static_cast<int64_t>(values.values.size()), &outputs));
  if (results.size() == 1 && !op.gives_list) {
    *result = results[0];
  } else {
    *result = ffi::Array<ffi::Tensor>(results.begin(), results.end());
  }
}

void define(const char *name) {
  const opsmith_operator *op = api().find(name);
  if (op == nullptr) {
    TVM_FFI_THROW(RuntimeError) << "the library of kernels has no operator `" << name << "`; build it again";
  }
  auto function = [op](ffi::PackedArgs arguments, ffi::Any *result) { call(*op, arguments, result); };
  ffi::Function::SetGlobal(std::string("{{ namespace }}.") + name, ffi::Function::FromPacked(function), true);
}

}  // namespace

// Registers the functions; returns nothing, or raises an error. A loader calls it once.
extern "C" __attribute__((visibility("default"))) int __tvm_ffi_opsmith_register(void *, const TVMFFIAny *, int32_t, TVMFFIAny *) {
  TVM_FFI_SAFE_CALL_BEGIN();
  for (const char *name : NAMES) {
    define(name);
  }
  TVM_FFI_SAFE_CALL_END();
}
