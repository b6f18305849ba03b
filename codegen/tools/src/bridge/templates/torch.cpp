// {{ generated }}
//
// The operators of `{{ library }}` as PyTorch's own, in the namespace `{{ namespace }}`: schema, CPU kernel, inference for `torch.compile`
// and `torch.export`, gradients of the first and second order. All call the C interface of the library of kernels beside this file's
// library, by functions that receive a call's stack of arguments, as calls from Python have it.

#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_fw_primal.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/SymBool.h>
#include <c10/core/SymInt.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/library.h>

#include "opsmith_abi.h"
#include "opsmith_kernels.h"

namespace {

using at::Tensor;
using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

struct Row {
  const char *name;        // with overload
  const char *parameters;  // as a schema has them
  const char *returns;
  const char *inplace;         // the form that writes into the first argument, or null
  const char *inplace_schema;  // its signature
  const char *out;             // the form that writes into given tensors, or null
  const char *out_schema;
};

constexpr const char *NAMESPACE = "{{ namespace }}";
constexpr const char *KERNELS = "{{ kernels }}";

const Row ROWS[] = {
{%- for row in rows %}
    {{ "{" }}{{ row.name }}, {{ row.parameters }}, {{ row.returns }}, {{ row.inplace }}, {{ row.inplace_schema }}, {{ row.out }}, {{ row.out_schema }}{{ "}" }},
{%- endfor %}
};

const opsmith_api *open_kernels() {
  std::string failure;
  const opsmith_api *found = opsmith_kernels::open(KERNELS, failure);
  TORCH_CHECK(found != nullptr, failure);
  return found;
}

const opsmith_api &api() {
  static const opsmith_api *const found = open_kernels();
  return *found;
}

// Raises the exception of an error.
void check(int code) {
  if (C10_LIKELY(code == OPSMITH_OK)) {
    return;
  }
  std::string text(api().error_text());
  switch (code) {
    case OPSMITH_SHAPE:
    case OPSMITH_VALUE:
      C10_THROW_ERROR(ValueError, text);
    case OPSMITH_DTYPE:
    case OPSMITH_ARGUMENT:
      C10_THROW_ERROR(TypeError, text);
    case OPSMITH_INDEX:
      C10_THROW_ERROR(IndexError, text);
    case OPSMITH_NOT_IMPLEMENTED:
      C10_THROW_ERROR(NotImplementedError, text);
    case OPSMITH_MEMORY:
      C10_THROW_ERROR(OutOfMemoryError, text);
    default:
      C10_THROW_ERROR(Error, text);
  }
}

struct Type {
  at::ScalarType torch;
  uint32_t number;
  const char *name;
};

const Type TYPES[] = {
    {at::kBool, OPSMITH_TYPE_BOOL, "bool"},
    {at::kByte, OPSMITH_TYPE_UINT8, "uint8"},
    {at::kUInt16, OPSMITH_TYPE_UINT16, "uint16"},
    {at::kUInt32, OPSMITH_TYPE_UINT32, "uint32"},
    {at::kUInt64, OPSMITH_TYPE_UINT64, "uint64"},
    {at::kChar, OPSMITH_TYPE_INT8, "int8"},
    {at::kShort, OPSMITH_TYPE_INT16, "int16"},
    {at::kInt, OPSMITH_TYPE_INT32, "int32"},
    {at::kLong, OPSMITH_TYPE_INT64, "int64"},
    {at::kHalf, OPSMITH_TYPE_FLOAT16, "float16"},
    {at::kBFloat16, OPSMITH_TYPE_BFLOAT16, "bfloat16"},
    {at::kFloat, OPSMITH_TYPE_FLOAT32, "float32"},
    {at::kDouble, OPSMITH_TYPE_FLOAT64, "float64"},
    {at::kComplexFloat, OPSMITH_TYPE_COMPLEX64, "complex64"},
    {at::kComplexDouble, OPSMITH_TYPE_COMPLEX128, "complex128"},
    {at::kFloat8_e4m3fn, OPSMITH_TYPE_FLOAT8_E4M3FN, "float8_e4m3fn"},
    {at::kFloat8_e5m2, OPSMITH_TYPE_FLOAT8_E5M2, "float8_e5m2"},
};

const Type &type_of(at::ScalarType given) {
  for (const Type &type : TYPES) {
    if (type.torch == given) {
      return type;
    }
  }
  C10_THROW_ERROR(TypeError, std::string("the element type ") + c10::toString(given) + " has no kernel");
}

at::ScalarType torch_type(uint8_t code, uint8_t bits) {
  for (const Type &type : TYPES) {
    if (type.number == OPSMITH_DTYPE(code, bits)) {
      return type.torch;
    }
  }
  C10_THROW_ERROR(TypeError, "PyTorch has no such element type as the result");
}

enum class Kind { Tensor, Tensors, Dtype, Format, Ints, Floats, Bools, Texts, Scalars, Other };

Kind kind_of(std::string type) {
  if (!type.empty() && type.back() == '?') {
    type.pop_back();
  }
  if (type == "Tensor") return Kind::Tensor;
  if (type == "Tensor[]" || type == "Tensor?[]") return Kind::Tensors;
  if (type == "dtype") return Kind::Dtype;
  if (type == "MemoryFormat") return Kind::Format;
  if (type.rfind("int[", 0) == 0) return Kind::Ints;
  if (type == "float[]") return Kind::Floats;
  if (type.rfind("bool[", 0) == 0) return Kind::Bools;
  if (type == "str[]") return Kind::Texts;
  if (type == "Scalar[]") return Kind::Scalars;
  return Kind::Other;
}

// An operator of this library, with the operators of its derivatives.
struct Entry {
  const opsmith_operator *op;
  std::string name, overload;
  std::vector<Kind> kinds;

  int64_t count() const { return op->argument_count; }

  OperatorHandle handle(const char *prefix) const {
    return c10::Dispatcher::singleton().findSchemaOrThrow((std::string(NAMESPACE) + "::" + prefix + name).c_str(),
                                                          overload.c_str());
  }
  const OperatorHandle &pullback() const {
    std::call_once(once_, [this] {
      pullback_.emplace(handle("_pullback_"));
      second_.emplace(handle("_second_pullback_"));
    });
    return *pullback_;
  }
  const OperatorHandle &second() const {
    pullback();
    return *second_;
  }
  const OperatorHandle &functional() const {
    std::call_once(once_functional_, [this] { functional_.emplace(handle("")); });
    return *functional_;
  }

 private:
  mutable std::once_flag once_, once_functional_;
  mutable std::optional<OperatorHandle> pullback_, second_, functional_;
};

// Calls a function for each tensor among arguments, also for those in lists, in order.
template <typename Function>
void for_each_tensor(const IValue *arguments, size_t count, Function &&function) {
  for (size_t at = 0; at < count; ++at) {
    const IValue &value = arguments[at];
    if (value.isTensor()) {
      if (value.toTensor().defined()) {
        function(value.toTensor());
      }
    } else if (value.isTensorList() || (value.isList() && !value.isIntList() && !value.isDoubleList() && !value.isBoolList())) {
      for (const IValue &item : value.toListRef()) {
        if (item.isTensor() && item.toTensor().defined()) {
          function(item.toTensor());
        }
      }
    }
  }
}

// An attribute that is an integer. A symbolic one becomes a number, and a compiled program is one for it.
int64_t integer(const IValue &value) { return value.isSymInt() ? value.toSymInt().guard_int(__FILE__, __LINE__) : value.toInt(); }

// The symbols of a call: sizes that are no numbers.
struct Symbols {
  bool are_numbers = false;  // all sizes become numbers, and a compiled program is one for these
  std::vector<c10::SymInt> sizes;
  std::vector<int64_t> examples;

  int64_t number(const c10::SymInt &size) {
    if (auto known = size.maybe_as_int()) {
      return *known;
    }
    if (are_numbers) {
      return size.guard_int(__FILE__, __LINE__);
    }
    std::string text = size.toSymNode()->str();
    for (size_t at = 0; at < sizes.size(); ++at) {
      if (sizes[at].toSymNode()->str() == text) {
        return -1 - static_cast<int64_t>(at);
      }
    }
    sizes.push_back(size);
    examples.push_back(-1);
    return -static_cast<int64_t>(sizes.size());
  }
};

// Arguments of a call as the C interface has them. What they lead to is part of this object or of the stack.
class Values {
 public:
  Values(const Entry &entry, const IValue *arguments, Symbols *symbols = nullptr) : symbols_(symbols) {
    size_t tensors = 0;
    for_each_tensor(arguments, entry.count(), [&](const Tensor &) { ++tensors; });
    tensors_.reserve(tensors);
    for (int64_t at = 0; at < entry.count(); ++at) {
      values_.push_back(value(entry.kinds[at], arguments[at]));
    }
  }
  const opsmith_value *data() const { return values_.data(); }
  int64_t count() const { return static_cast<int64_t>(values_.size()); }

  static opsmith_tensor describe(const Tensor &tensor) {
    opsmith_tensor made{};
    uint32_t number = type_of(tensor.scalar_type()).number;
    made.data = const_cast<void *>(tensor.const_data_ptr());
    made.device_type = 1;
    made.ndim = static_cast<int32_t>(tensor.dim());
    made.code = static_cast<uint8_t>(number >> 8);
    made.bits = static_cast<uint8_t>(number);
    made.lanes = 1;
    made.shape = tensor.sizes().data();
    made.strides = tensor.strides().data();
    return made;
  }

 private:
  const opsmith_tensor *add(const Tensor &tensor) {
    if (symbols_ == nullptr) {
      tensors_.push_back(describe(tensor));
      return &tensors_.back();
    }
    std::vector<int64_t> sizes;
    for (const c10::SymInt &size : tensor.sym_sizes()) {
      sizes.push_back(symbols_->number(size));
    }
    uint32_t number = type_of(tensor.scalar_type()).number;
    opsmith_tensor made{};
    made.device_type = 1;
    made.ndim = static_cast<int32_t>(sizes.size());
    made.code = static_cast<uint8_t>(number >> 8);
    made.bits = static_cast<uint8_t>(number);
    made.lanes = 1;
    ints_.push_back(std::move(sizes));
    made.shape = ints_.back().data();
    tensors_.push_back(made);
    return &tensors_.back();
  }

  opsmith_value text(const char *text) {
    opsmith_value made{};
    made.kind = OPSMITH_TEXT;
    made.count = static_cast<int64_t>(std::char_traits<char>::length(text));
    made.as.text = text;
    return made;
  }

  opsmith_value value(Kind kind, const IValue &given) {
    opsmith_value made{};
    made.kind = OPSMITH_NONE;
    if (given.isNone() || (given.isTensor() && !given.toTensor().defined())) {
      return made;
    }
    if (given.isTensor()) {
      made.kind = OPSMITH_TENSOR;
      made.as.tensor = add(given.toTensor());
    } else if (kind == Kind::Dtype) {
      return text(type_of(given.toScalarType()).name);
    } else if (kind == Kind::Format) {
      switch (given.toMemoryFormat()) {
        case at::MemoryFormat::Contiguous:
          return text("contiguous");
        case at::MemoryFormat::Preserve:
          return text("preserve");
        case at::MemoryFormat::ChannelsLast:
          return text("channels_last");
        case at::MemoryFormat::ChannelsLast3d:
          return text("channels_last_3d");
        default:
          C10_THROW_ERROR(ValueError, "the memory format is not known");
      }
    } else if (given.isBool()) {
      made.kind = OPSMITH_BOOL;
      made.as.integer = given.toBool();
    } else if (given.isInt() || given.isSymInt()) {
      made.kind = OPSMITH_INT;
      made.as.integer = integer(given);
    } else if (given.isDouble()) {
      made.kind = OPSMITH_FLOAT;
      made.as.real = given.toDouble();
    } else if (given.isComplexDouble()) {
      made.kind = OPSMITH_COMPLEX;
      made.as.parts[0] = given.toComplexDouble().real();
      made.as.parts[1] = given.toComplexDouble().imag();
    } else if (given.isString()) {
      made = text(given.toStringRef().c_str());
      made.count = static_cast<int64_t>(given.toStringRef().size());
    } else if (given.isDevice()) {
      texts_.push_back(given.toDevice().str());
      return text(texts_.back().c_str());
    } else if (given.isList()) {
      return list(kind, given.toListRef());
    } else {
      C10_THROW_ERROR(TypeError, std::string("an argument of the type ") + given.tagKind() + " has no value in the C interface");
    }
    return made;
  }

  opsmith_value list(Kind kind, c10::ArrayRef<IValue> items) {
    opsmith_value made{};
    made.count = static_cast<int64_t>(items.size());
    bool are_reals = kind == Kind::Floats;
    if (kind == Kind::Scalars) {
      for (const IValue &item : items) {
        are_reals = are_reals || item.isDouble();
      }
    }
    if (kind == Kind::Tensors) {
      lists_.emplace_back();
      for (const IValue &item : items) {
        bool is_there = item.isTensor() && item.toTensor().defined();
        lists_.back().push_back(is_there ? add(item.toTensor()) : nullptr);
      }
      made.kind = OPSMITH_TENSORS;
      made.as.tensors = lists_.back().data();
    } else if (are_reals) {
      reals_.emplace_back();
      for (const IValue &item : items) {
        reals_.back().push_back(item.isDouble() ? item.toDouble() : static_cast<double>(integer(item)));
      }
      made.kind = OPSMITH_FLOATS;
      made.as.reals = reals_.back().data();
    } else if (kind == Kind::Bools) {
      truths_.emplace_back();
      for (const IValue &item : items) {
        truths_.back().push_back(item.toBool() ? 1 : 0);
      }
      made.kind = OPSMITH_BOOLS;
      made.as.truths = truths_.back().data();
    } else if (kind == Kind::Texts) {
      pointers_.emplace_back();
      for (const IValue &item : items) {
        pointers_.back().push_back(item.toStringRef().c_str());
      }
      made.kind = OPSMITH_TEXTS;
      made.as.texts = pointers_.back().data();
    } else {
      ints_.emplace_back();
      for (const IValue &item : items) {
        ints_.back().push_back(integer(item));
      }
      made.kind = OPSMITH_INTS;
      made.as.integers = ints_.back().data();
    }
    return made;
  }

  Symbols *symbols_;
  c10::SmallVector<opsmith_value, 8> values_;
  c10::SmallVector<opsmith_tensor, 4> tensors_;
  // Lists of lists: what an inner one has does not move when the outer one grows.
  std::vector<std::vector<const opsmith_tensor *>> lists_;
  std::vector<std::vector<int64_t>> ints_;
  std::vector<std::vector<double>> reals_;
  std::vector<std::vector<uint8_t>> truths_;
  std::vector<std::vector<const char *>> pointers_;
  std::vector<std::string> texts_;
};

// Results in memory of PyTorch's.
class Results {
 public:
  Results() : outputs_{sizeof(opsmith_outputs), this, allocate, adopt, nullptr} {}
  const opsmith_outputs *outputs() const { return &outputs_; }
  c10::SmallVector<Tensor, 2> tensors;
  std::exception_ptr error;

  // Raises the error of a call, above all one of a function below.
  void check(int code) const {
    if (C10_UNLIKELY(code == OPSMITH_REFUSED && error != nullptr)) {
      std::rethrow_exception(error);
    }
    ::check(code);
  }

 private:
  static int allocate(void *context, int64_t, opsmith_tensor *result) {
    auto &own = *static_cast<Results *>(context);
    try {
      at::IntArrayRef sizes(result->shape, static_cast<size_t>(result->ndim));
      own.tensors.emplace_back(at::detail::empty_cpu(sizes, torch_type(result->code, result->bits)));
      result->data = own.tensors.back().mutable_data_ptr();
      return 0;
    } catch (...) {
      own.error = std::current_exception();
      return 1;
    }
  }
  static int adopt(void *context, int64_t, const opsmith_tensor *result, void *owner, void (*release)(void *)) {
    auto &own = *static_cast<Results *>(context);
    try {
      at::IntArrayRef sizes(result->shape, static_cast<size_t>(result->ndim));
      at::IntArrayRef strides(result->strides, static_cast<size_t>(result->ndim));
      auto type = torch_type(result->code, result->bits);
      own.tensors.push_back(at::from_blob(
          result->data, sizes, strides, [owner, release](void *) { release(owner); }, at::TensorOptions().dtype(type)));
      return 0;
    } catch (...) {
      own.error = std::current_exception();
      return 1;
    }
  }
  opsmith_outputs outputs_;
};

void push(const Entry &entry, Stack *stack, at::ArrayRef<Tensor> results) {
  if (entry.op->gives_list) {
    stack->emplace_back(c10::List<Tensor>(results));
    return;
  }
  for (const Tensor &result : results) {
    stack->emplace_back(result);
  }
}

// The kernel on the host.
struct Kernel : c10::OperatorKernel {
  explicit Kernel(const Entry &entry) : entry(entry) {}
  const Entry &entry;

  void operator()(const OperatorHandle &, DispatchKeySet, Stack *stack) {
    Results results;
    {
      Values values(entry, stack->data() + stack->size() - entry.count());
      results.check(api().run(entry.op, values.data(), values.count(), results.outputs()));
    }
    torch::jit::drop(*stack, entry.count());
    push(entry, stack, results.tensors);
  }
};

// Sizes of inference in PyTorch's arithmetic.
class Sizes {
 public:
  Sizes(const opsmith_inference &found, const Symbols &symbols) : found_(found), symbols_(symbols) {
    for (int64_t at = 0; at < found.guard_count; ++at) {
      const opsmith_guard &guard = found.guards[at];
      TORCH_SYM_CHECK(condition(guard.node), "these sizes are not possible: needed is ", guard.text);
    }
  }

  c10::SymInt size(int64_t at) const {
    const opsmith_node &node = found_.nodes[at];
    switch (node.kind) {
      case OPSMITH_NODE_NUMBER:
        return node.a;
      case OPSMITH_NODE_SYMBOL:
        return symbols_.sizes[node.a];
      case OPSMITH_NODE_ADD:
        return size(node.a) + size(node.b);
      case OPSMITH_NODE_MULTIPLY:
        return size(node.a) * size(node.b);
      case OPSMITH_NODE_QUOTIENT:
        return size(node.a) / size(node.b);
      case OPSMITH_NODE_REMAINDER:
        return size(node.a) % size(node.b);
      case OPSMITH_NODE_MAXIMUM:
        return size(node.a).max(size(node.b));
      case OPSMITH_NODE_MINIMUM:
        return size(node.a).min(size(node.b));
      default:
        C10_THROW_ERROR(NotImplementedError, "a size of a result is known after the run only");
    }
  }

 private:
  c10::SymBool condition(int64_t at) const {
    const opsmith_node &node = found_.nodes[at];
    switch (node.kind) {
      case OPSMITH_NODE_EQUAL:
        return size(node.a).sym_eq(size(node.b));
      case OPSMITH_NODE_LESS:
        return size(node.a).sym_lt(size(node.b));
      case OPSMITH_NODE_NOT:
        return ~condition(node.a);
      case OPSMITH_NODE_AND:
        return condition(node.a) & condition(node.b);
      default:
        return condition(node.a) | condition(node.b);
    }
  }

  const opsmith_inference &found_;
  const Symbols &symbols_;
};

// Inference, for tensors without memory.
struct Meta : c10::OperatorKernel {
  explicit Meta(const Entry &entry) : entry(entry) {}
  const Entry &entry;

  void operator()(const OperatorHandle &, DispatchKeySet, Stack *stack) {
    const IValue *arguments = stack->data() + stack->size() - entry.count();
    Symbols symbols;
    const opsmith_inference *found = nullptr;
    int code = infer(arguments, symbols, &found);
    if (code != OPSMITH_OK && !symbols.sizes.empty()) {
      // Sizes whose formula is not known, or a number of results that depends on a size.
      symbols = Symbols{true, {}, {}};
      code = infer(arguments, symbols, &found);
    }
    check(code);
    std::unique_ptr<const opsmith_inference, void (*)(const opsmith_inference *)> owner(found, api().release_inference);
    Sizes sizes(*found, symbols);
    std::vector<Tensor> results;
    for (int64_t at = 0; at < found->result_count; ++at) {
      const opsmith_result &result = found->results[at];
      std::vector<c10::SymInt> shape;
      for (int32_t dim = 0; dim < result.ndim; ++dim) {
        shape.push_back(sizes.size(result.sizes[dim]));
      }
      auto options = at::TensorOptions().dtype(torch_type(result.code, result.bits)).device(at::kMeta);
      results.push_back(at::empty_symint(shape, options));
    }
    torch::jit::drop(*stack, entry.count());
    push(entry, stack, results);
  }

 private:
  int infer(const IValue *arguments, Symbols &symbols, const opsmith_inference **found) const {
    Values values(entry, arguments, &symbols);
    return api().infer(entry.op, values.data(), values.count(), symbols.examples.data(),
                       static_cast<int64_t>(symbols.sizes.size()), found);
  }
};

std::vector<Tensor> tensors_of(const IValue *arguments, size_t count) {
  std::vector<Tensor> found;
  for_each_tensor(arguments, count, [&](const Tensor &tensor) { found.push_back(tensor); });
  return found;
}

// Whether a call is recorded: a tensor among its arguments requires a gradient.
bool is_tracked(const IValue *arguments, size_t count) {
  bool found = false;
  for_each_tensor(arguments, count, [&](const Tensor &tensor) { found = found || tensor.requires_grad(); });
  return found && at::GradMode::is_enabled();
}

// Whether a tensor among arguments has a tangent, that of forward mode.
bool has_tangents(const IValue *arguments, size_t count) {
  bool found = false;
  for_each_tensor(arguments, count, [&](const Tensor &tensor) { found = found || tensor._fw_grad(0).defined(); });
  return found;
}

// Whether no mode, transform or other key takes part in calls of this thread.
bool is_ordinary() {
  constexpr DispatchKeySet USUAL({DispatchKey::BackendSelect, DispatchKey::ADInplaceOrView});
  return (c10::impl::tls_local_dispatch_key_set().included_ - USUAL).empty();
}

// A tensor of a shape whose elements are not read: one element stands for all. Undefined if it takes the dispatcher to make it.
Tensor shape_alone(c10::SymIntArrayRef sizes, const at::TensorOptions &options) {
  auto numbers = c10::asIntArrayRefSlowOpt(sizes);
  if (!numbers || options.device().type() != at::kCPU || options.layout() != at::kStrided || !is_ordinary()) {
    return Tensor();
  }
  // As long as the largest element.
  static const c10::Storage element = at::detail::empty_cpu({1}, at::kComplexDouble).zero_().storage();
  auto made = c10::make_intrusive<c10::TensorImpl>(c10::Storage(element), DispatchKeySet(DispatchKey::CPU), options.dtype());
  made->set_sizes_and_strides(*numbers, c10::SmallVector<int64_t, 4>(sizes.size(), 0));
  return Tensor(std::move(made));
}

// A tensor for the backward pass: itself, or its shape alone if no formula reads its elements.
class Kept {
 public:
  Kept(const Tensor &tensor, bool is_result, bool is_read) {
    if (is_read) {
      saved_ = torch::autograd::SavedVariable(tensor, is_result);
    } else {
      sizes_.assign(tensor.sym_sizes().begin(), tensor.sym_sizes().end());
      options_ = tensor.options();
      is_shape_ = true;
    }
  }
  Tensor tensor(const c10::intrusive_ptr<torch::autograd::Node> &node) const {
    if (!is_shape_) {
      return saved_.unpack(node);
    }
    Tensor made = shape_alone(sizes_, options_);
    return made.defined() ? made : at::zeros({}, options_).expand_symint(sizes_);
  }
  void release() { saved_.reset_data(); }

 private:
  torch::autograd::SavedVariable saved_;
  c10::SmallVector<c10::SymInt, 4> sizes_;
  at::TensorOptions options_;
  bool is_shape_ = false;
};

// Arguments of a call, with the tensors kept for the backward pass.
class Arguments {
 public:
  Arguments(const IValue *arguments, size_t count, uint64_t reads) {
    slots_.reserve(count);
    kept_.reserve(count);
    for (size_t at = 0; at < count; ++at) {
      bool is_read = at >= 64 || (reads >> at & 1) != 0;
      const IValue &value = arguments[at];
      auto start = static_cast<int64_t>(places_.size());
      if (value.isTensor()) {
        slots_.push_back(Slot{IValue(), Slot::ONE, keep(value, is_read), 1});
      } else if (value.isTensorList() || value.isOptionalTensorList()) {
        auto items = value.toListRef();
        for (const IValue &item : items) {
          places_.push_back(keep(item, is_read));
        }
        auto kind = value.isTensorList() ? Slot::LIST : Slot::OPTIONALS;
        slots_.push_back(Slot{IValue(), kind, start, static_cast<int64_t>(items.size())});
      } else {
        slots_.push_back(Slot{value, Slot::PLAIN, 0, 0});
      }
    }
  }

  // Pushes the arguments.
  void push(Stack *stack, const c10::intrusive_ptr<torch::autograd::Node> &node) const {
    auto tensor = [&](int64_t place) { return place < 0 ? Tensor() : kept_[place].tensor(node); };
    for (const Slot &slot : slots_) {
      if (slot.kind == Slot::ONE) {
        stack->emplace_back(tensor(slot.start));
      } else if (slot.kind == Slot::LIST) {
        c10::List<Tensor> list;
        for (int64_t at = slot.start; at < slot.start + slot.count; ++at) {
          list.push_back(tensor(places_[at]));
        }
        stack->emplace_back(std::move(list));
      } else if (slot.kind == Slot::OPTIONALS) {
        c10::List<std::optional<Tensor>> list;
        for (int64_t at = slot.start; at < slot.start + slot.count; ++at) {
          list.push_back(places_[at] < 0 ? std::nullopt : std::make_optional(tensor(places_[at])));
        }
        stack->emplace_back(std::move(list));
      } else {
        stack->push_back(slot.value);
      }
    }
  }
  void release() {
    for (Kept &kept : kept_) {
      kept.release();
    }
  }

 private:
  // An argument: a value without tensors, or the place of one kept tensor, or those of a list among `places_`; -1 for an absent one.
  struct Slot {
    enum Form { PLAIN, ONE, LIST, OPTIONALS };
    IValue value;
    Form kind;
    int64_t start;
    int64_t count;
  };

  int64_t keep(const IValue &item, bool is_read) {
    if (!item.isTensor() || !item.toTensor().defined()) {
      return -1;
    }
    kept_.emplace_back(item.toTensor(), false, is_read);
    return static_cast<int64_t>(kept_.size()) - 1;
  }

  std::vector<Slot> slots_;
  std::vector<int64_t> places_;
  std::vector<Kept> kept_;
};

// The keys of a call below those of differentiation.
DispatchKeySet below(DispatchKeySet keys) { return keys & c10::after_ADInplaceOrView_keyset; }

bool is_plain(DispatchKeySet keys) { return below(keys) == DispatchKeySet(DispatchKey::CPU); }

// Tensors of a list for the C interface, null for absent ones.
struct Pointers {
  c10::SmallVector<opsmith_tensor, 4> tensors;
  c10::SmallVector<const opsmith_tensor *, 4> items;

  explicit Pointers(const torch::autograd::variable_list &given) {
    tensors.reserve(given.size());
    for (const Tensor &tensor : given) {
      add(tensor);
    }
  }
  explicit Pointers(const IValue &list) {
    auto given = list.toListRef();
    tensors.reserve(given.size());
    for (const IValue &item : given) {
      add(item.isTensor() ? item.toTensor() : Tensor());
    }
  }
  int64_t count() const { return static_cast<int64_t>(items.size()); }

 private:
  void add(const Tensor &tensor) {
    if (!tensor.defined()) {
      items.push_back(nullptr);
      return;
    }
    tensors.push_back(Values::describe(tensor));
    items.push_back(&tensors.back());
  }
};

// Whether tensors are ordinary ones of the host, in a call without modes and transforms, and without tangents.
bool are_plain(const torch::autograd::variable_list &tensors) {
  auto local = c10::impl::tls_local_dispatch_key_set();
  // The dispatcher passes this key over; no operator here has a kernel for it.
  DispatchKeySet excluded = local.excluded_ | DispatchKeySet(DispatchKey::BackendSelect);
  for (const Tensor &tensor : tensors) {
    if (tensor.defined() && (!is_plain((tensor.key_set() | local.included_) - excluded) || tensor._fw_grad(0).defined())) {
      return false;
    }
  }
  return true;
}

// Computes gradients: `_pullback_NAME` without the dispatcher.
void pull(const Entry &entry, const Pointers &gradients, const Pointers &results, at::ArrayRef<uint8_t> wanted, const IValue *arguments,
          Results &found) {
  Values values(entry, arguments);
  found.check(api().gradient(entry.op, values.data(), values.count(), entry.op->takes_results ? results.items.data() : nullptr,
                             gradients.items.data(), gradients.count(), wanted.data(), static_cast<int64_t>(wanted.size()),
                             found.outputs()));
}

// The node of a call's derivative.
struct Backward : torch::autograd::Node {
  Backward(const Entry &entry, const IValue *arguments)
      : entry(entry),
        // If a formula reads a result, second derivatives go through it to all arguments.
        arguments(arguments, entry.count(), entry.op->reads_results != 0 ? ~uint64_t(0) : entry.op->reads_arguments) {}
  const Entry &entry;
  Arguments arguments;
  std::vector<Kept> results;

  std::string name() const override { return std::string(NAMESPACE) + "::" + entry.op->name + "Backward"; }
  void release_variables() override {
    std::lock_guard<std::mutex> lock(mutex_);
    arguments.release();
    for (Kept &kept : results) {
      kept.release();
    }
  }
  torch::autograd::variable_list apply(torch::autograd::variable_list &&gradients) override {
    std::lock_guard<std::mutex> lock(mutex_);
    auto self = c10::intrusive_ptr<torch::autograd::Node>::unsafe_reclaim_from_nonowning(this);
    bool is_any = false;
    for (const Tensor &gradient : gradients) {
      is_any = is_any || gradient.defined();
    }
    torch::autograd::variable_list found(num_outputs());
    if (!is_any) {
      return found;
    }
    torch::autograd::variable_list of_results;
    for (const Kept &kept : results) {
      of_results.push_back(kept.tensor(self));
    }
    c10::SmallVector<uint8_t, 8> wanted;
    for (size_t at = 0; at < num_outputs(); ++at) {
      wanted.push_back(task_should_compute_output(at) ? 1 : 0);
    }
    Stack own;
    own.reserve(entry.count());
    arguments.push(&own, self);
    auto list = pulled(gradients, of_results, wanted, own);
    size_t next = 0;
    for (size_t at = 0; at < num_outputs(); ++at) {
      if (wanted[at] != 0) {
        found[at] = std::move(list.at(next++));
      }
    }
    return found;
  }

 private:
  // The gradients: by the kernel at once if the call is not recorded and no mode, transform or other key takes part.
  torch::autograd::variable_list pulled(const torch::autograd::variable_list &gradients,
                                        const torch::autograd::variable_list &of_results, at::ArrayRef<uint8_t> wanted,
                                        const Stack &own) const {
    if (!at::GradMode::is_enabled() && are_plain(gradients) && are_plain(of_results) && are_plain(tensors_of(own.data(), own.size()))) {
      Results found;
      pull(entry, Pointers(gradients), Pointers(of_results), wanted, own.data(), found);
      return torch::autograd::variable_list(found.tensors.begin(), found.tensors.end());
    }
    c10::List<std::optional<Tensor>> given;
    for (const Tensor &gradient : gradients) {
      given.push_back(gradient.defined() ? std::make_optional(gradient) : std::nullopt);
    }
    c10::List<bool> truths;
    for (uint8_t truth : wanted) {
      truths.push_back(truth != 0);
    }
    Stack stack;
    stack.reserve(own.size() + 3);
    stack.emplace_back(std::move(given));
    stack.emplace_back(c10::List<Tensor>(of_results));
    stack.emplace_back(std::move(truths));
    stack.insert(stack.end(), own.begin(), own.end());
    entry.pullback().callBoxed(&stack);
    return stack[0].toTensorVector();
  }
};

// Runs what is below differentiation: the kernel at once if no mode or transform takes part.
template <typename Functor>
void run_below(Functor &kernel, const OperatorHandle &op, DispatchKeySet keys, Stack *stack) {
  if (is_plain(keys)) {
    kernel(op, keys, stack);
    return;
  }
  at::AutoDispatchBelowADInplaceOrView guard;
  op.redispatchBoxed(below(keys), stack);
}

Tensor without_tangent(const Tensor &tensor) { return tensor.defined() && tensor._fw_grad(0).defined() ? tensor._fw_primal(0) : tensor; }

// An argument, its tensors without tangents. Edges of reverse mode stay.
IValue without_tangents(const IValue &value) {
  if (value.isTensor()) {
    return without_tangent(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor &tensor : value.toTensorVector()) {
      list.push_back(without_tangent(tensor));
    }
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const IValue &item : value.toListRef()) {
      list.push_back(item.isTensor() ? std::make_optional(without_tangent(item.toTensor())) : std::nullopt);
    }
    return list;
  }
  return value;
}

// The tangents of results, from those of arguments: the gradient is linear in the gradients of results, and its transpose maps tangents.
void set_tangents(const Entry &entry, const Stack &arguments, const std::vector<Tensor> &results) {
  c10::List<bool> wanted, needed;
  c10::List<std::optional<Tensor>> tangents, starts;
  for_each_tensor(arguments.data(), arguments.size(), [&](const Tensor &tensor) {
    const Tensor &tangent = tensor._fw_grad(0);
    wanted.push_back(tangent.defined());
    if (tangent.defined()) {
      tangents.push_back(tangent);
    }
  });
  std::vector<Tensor> reached;
  c10::List<Tensor> of_results;
  for (size_t at = 0; at < results.size(); ++at) {
    size_t bit = entry.op->gives_list ? 0 : at;
    bool is_reached = (entry.op->differentiable_results >> bit & 1) != 0 &&
                      torch::autograd::isDifferentiableType(results[at].scalar_type());
    needed.push_back(is_reached);
    starts.push_back(is_reached ? std::make_optional(at::zeros_like(results[at].detach())) : std::nullopt);
    if (is_reached) {
      reached.push_back(results[at]);
    }
    if (entry.op->takes_results) {
      of_results.push_back(results[at]);
    }
  }
  for (size_t at = 0; at < wanted.size(); ++at) {
    needed.push_back(false);
  }
  Stack stack;
  stack.emplace_back(std::move(tangents));
  stack.emplace_back(std::move(needed));
  stack.emplace_back(std::move(starts));
  stack.emplace_back(std::move(of_results));
  stack.emplace_back(std::move(wanted));
  for (const IValue &argument : arguments) {
    stack.push_back(without_tangents(argument));
  }
  entry.second().callBoxed(&stack);
  auto found = stack[0].toTensorVector();
  for (size_t at = 0; at < reached.size(); ++at) {
    reached[at]._set_fw_grad(found.at(at), 0, false);
  }
}

// Records a call.
struct Autograd : c10::OperatorKernel {
  explicit Autograd(const Entry &entry) : entry(entry), kernel(entry) {}
  const Entry &entry;
  Kernel kernel;

  void operator()(const OperatorHandle &op, DispatchKeySet keys, Stack *stack) {
    size_t count = entry.count();
    const IValue *arguments = stack->data() + stack->size() - count;
    if (C10_UNLIKELY(has_tangents(arguments, count))) {
      Stack kept(arguments, arguments + count);
      size_t start = stack->size() - count;
      reverse(op, keys, stack);
      set_tangents(entry, kept, tensors_of(stack->data() + start, stack->size() - start));
      return;
    }
    reverse(op, keys, stack);
  }

 private:
  void reverse(const OperatorHandle &op, DispatchKeySet keys, Stack *stack) {
    size_t count = entry.count();
    const IValue *arguments = stack->data() + stack->size() - count;
    if (!is_tracked(arguments, count)) {
      run_below(kernel, op, keys, stack);
      return;
    }
    std::vector<Tensor> tensors = tensors_of(arguments, count);
    auto node = c10::make_intrusive<Backward>(entry, arguments);
    node->set_next_edges(torch::autograd::collect_next_edges(tensors));
    size_t start = stack->size() - count;
    run_below(kernel, op, keys, stack);
    std::vector<Tensor> results = tensors_of(stack->data() + start, stack->size() - start);
    for (size_t at = 0; at < results.size(); ++at) {
      size_t bit = entry.op->gives_list ? 0 : at;
      bool has_gradient = (entry.op->differentiable_results >> bit & 1) != 0;
      if (has_gradient && torch::autograd::isDifferentiableType(results[at].scalar_type())) {
        torch::autograd::set_history(results[at], node);
      } else {
        node->add_input_metadata(torch::autograd::Node::undefined_input());
      }
    }
    if (entry.op->takes_results) {
      for (size_t at = 0; at < results.size(); ++at) {
        size_t bit = entry.op->gives_list ? 0 : at;
        node->results.emplace_back(results[at], true, (entry.op->reads_results >> bit & 1) != 0);
      }
    }
  }
};

std::vector<uint8_t> truths(const IValue &list) {
  std::vector<uint8_t> found;
  for (bool truth : list.toBoolList()) {
    found.push_back(truth ? 1 : 0);
  }
  return found;
}

void give(Stack *stack, size_t count, at::ArrayRef<Tensor> found) {
  torch::jit::drop(*stack, count);
  stack->emplace_back(c10::List<Tensor>(found));
}

// `_pullback_NAME(gradients, results, wanted, ...)`: the gradients of arguments.
struct Pullback : c10::OperatorKernel {
  explicit Pullback(const Entry &entry) : entry(entry) {}
  const Entry &entry;
  static constexpr size_t OWN = 3;

  void operator()(const OperatorHandle &, DispatchKeySet, Stack *stack) {
    size_t count = entry.count() + OWN;
    const IValue *own = stack->data() + stack->size() - count;
    Results found;
    {
      Pointers gradients(own[0]), results(own[1]);
      pull(entry, gradients, results, truths(own[2]), own + OWN, found);
    }
    give(stack, count, found.tensors);
  }
};

// `_second_pullback_NAME(cotangents, needed, gradients, results, wanted, ...)`: the gradients of gradients and arguments.
struct SecondPullback : c10::OperatorKernel {
  explicit SecondPullback(const Entry &entry) : entry(entry) {}
  const Entry &entry;
  static constexpr size_t OWN = 5;

  void operator()(const OperatorHandle &, DispatchKeySet, Stack *stack) {
    size_t count = entry.count() + OWN;
    const IValue *own = stack->data() + stack->size() - count;
    Results found;
    {
      Pointers cotangents(own[0]), gradients(own[2]), results(own[3]);
      std::vector<uint8_t> needed = truths(own[1]), wanted = truths(own[4]);
      Values values(entry, own + OWN);
      found.check(api().second_gradient(
          entry.op, values.data(), values.count(), entry.op->takes_results ? results.items.data() : nullptr,
          gradients.items.data(), gradients.count(), wanted.data(), static_cast<int64_t>(wanted.size()),
          cotangents.items.data(), cotangents.count(), needed.data(), static_cast<int64_t>(needed.size()), found.outputs()));
    }
    give(stack, count, found.tensors);
  }
};

Tensor empty_as(const Tensor &tensor) {
  return at::empty_symint(tensor.sym_sizes(), tensor.options().memory_format(std::nullopt));
}

struct PullbackMeta : c10::OperatorKernel {
  explicit PullbackMeta(const Entry &entry) : entry(entry) {}
  const Entry &entry;

  void operator()(const OperatorHandle &, DispatchKeySet, Stack *stack) {
    size_t count = entry.count() + Pullback::OWN;
    const IValue *own = stack->data() + stack->size() - count;
    auto wanted = own[2].toBoolList();
    std::vector<Tensor> found;
    size_t at = 0;
    for_each_tensor(own + Pullback::OWN, entry.count(), [&](const Tensor &tensor) {
      if (wanted.get(at++)) {
        found.push_back(empty_as(tensor));
      }
    });
    give(stack, count, found);
  }
};

struct SecondPullbackMeta : c10::OperatorKernel {
  explicit SecondPullbackMeta(const Entry &entry) : entry(entry) {}
  const Entry &entry;

  void operator()(const OperatorHandle &, DispatchKeySet, Stack *stack) {
    size_t count = entry.count() + SecondPullback::OWN;
    const IValue *own = stack->data() + stack->size() - count;
    auto needed = own[1].toBoolList();
    std::vector<Tensor> found;
    size_t at = 0;
    for (const IValue &gradient : own[2].toListRef()) {
      bool is_there = gradient.isTensor() && gradient.toTensor().defined();
      if (needed.get(at++) && is_there) {
        found.push_back(empty_as(gradient.toTensor()));
      }
    }
    for_each_tensor(own + SecondPullback::OWN, entry.count(), [&](const Tensor &tensor) {
      if (needed.get(at++)) {
        found.push_back(empty_as(tensor));
      }
    });
    give(stack, count, found);
  }
};

// The node of a gradient's derivative. Its edges are those of the present gradients, then those of the arguments.
struct SecondBackward : torch::autograd::Node {
  SecondBackward(const Entry &entry, const IValue *own)
      : entry(entry), arguments(own, entry.count() + Pullback::OWN, ~uint64_t(0)) {
    for (const IValue &gradient : own[0].toListRef()) {
      is_there.push_back(gradient.isTensor() && gradient.toTensor().defined());
    }
  }
  const Entry &entry;
  Arguments arguments;
  std::vector<bool> is_there;
  size_t skipped = 0;  // edges of results, to which no gradient flows from here

  std::string name() const override { return std::string(NAMESPACE) + "::" + entry.op->name + "SecondBackward"; }
  void release_variables() override {
    std::lock_guard<std::mutex> lock(mutex_);
    arguments.release();
  }
  torch::autograd::variable_list apply(torch::autograd::variable_list &&cotangents) override {
    std::lock_guard<std::mutex> lock(mutex_);
    auto self = c10::intrusive_ptr<torch::autograd::Node>::unsafe_reclaim_from_nonowning(this);
    c10::List<std::optional<Tensor>> given;
    for (const Tensor &cotangent : cotangents) {
      given.push_back(cotangent.defined() ? std::make_optional(cotangent) : std::nullopt);
    }
    // `needed` has an item for each gradient, also for absent ones.
    c10::List<bool> needed;
    std::vector<size_t> edges;
    size_t edge = 0;
    for (bool there : is_there) {
      bool is_needed = there && task_should_compute_output(edge);
      needed.push_back(is_needed);
      if (is_needed) {
        edges.push_back(edge);
      }
      edge += there ? 1 : 0;
    }
    edge += skipped;
    for (; edge < num_outputs(); ++edge) {
      bool is_needed = task_should_compute_output(edge);
      needed.push_back(is_needed);
      if (is_needed) {
        edges.push_back(edge);
      }
    }
    Stack stack;
    stack.emplace_back(std::move(given));
    stack.emplace_back(std::move(needed));
    arguments.push(&stack, self);
    entry.second().callBoxed(&stack);
    torch::autograd::variable_list found(num_outputs());
    auto list = stack[0].toTensorVector();
    for (size_t at = 0; at < edges.size(); ++at) {
      found[edges[at]] = std::move(list.at(at));
    }
    return found;
  }
};

// Records the call of a gradient.
struct PullbackAutograd : c10::OperatorKernel {
  explicit PullbackAutograd(const Entry &entry) : entry(entry), kernel(entry) {}
  const Entry &entry;
  Pullback kernel;

  void operator()(const OperatorHandle &op, DispatchKeySet keys, Stack *stack) {
    size_t count = entry.count() + Pullback::OWN;
    size_t start = stack->size() - count;
    const IValue *own = stack->data() + start;
    TORCH_CHECK_NOT_IMPLEMENTED(!has_tangents(own, count), "a gradient of `", entry.op->name,
                                "` has no derivative in forward mode\n  help: differentiate in forward mode first, or in reverse mode twice");
    if (!is_tracked(own, count)) {
      run_below(kernel, op, keys, stack);
      return;
    }
    std::vector<Tensor> tensors = tensors_of(own, count);
    auto node = c10::make_intrusive<SecondBackward>(entry, own);
    node->skipped = tensors_of(own + 1, 1).size();
    node->set_next_edges(torch::autograd::collect_next_edges(tensors));
    run_below(kernel, op, keys, stack);
    for (const Tensor &result : tensors_of(stack->data() + start, 1)) {
      torch::autograd::set_history(result, node);
    }
  }
};

// The node of a second gradient, through which no derivative goes.
struct Refusal : torch::autograd::Node {
  explicit Refusal(const Entry &entry) : entry(entry) {}
  const Entry &entry;

  std::string name() const override { return std::string(NAMESPACE) + "::" + entry.op->name + "ThirdBackward"; }
  torch::autograd::variable_list apply(torch::autograd::variable_list &&) override {
    C10_THROW_ERROR(NotImplementedError, std::string("`") + entry.op->name + "` has derivatives of the first and second order alone, of which "
                                         "forward mode takes both");
  }
};

// Records the call of a second gradient, so that a derivative of it is an error.
struct SecondPullbackAutograd : c10::OperatorKernel {
  explicit SecondPullbackAutograd(const Entry &entry) : entry(entry), kernel(entry) {}
  const Entry &entry;
  SecondPullback kernel;

  void operator()(const OperatorHandle &op, DispatchKeySet keys, Stack *stack) {
    size_t count = entry.count() + SecondPullback::OWN, start = stack->size() - count;
    const IValue *own = stack->data() + start;
    TORCH_CHECK_NOT_IMPLEMENTED(!has_tangents(own, count), "`", entry.op->name,
                                "` has no derivative of the second order in forward mode\n  help: use reverse mode twice");
    bool is_recorded = is_tracked(own, count);
    auto node = is_recorded ? c10::make_intrusive<Refusal>(entry) : c10::intrusive_ptr<Refusal>();
    if (is_recorded) {
      node->set_next_edges(torch::autograd::collect_next_edges(tensors_of(own, count)));
    }
    run_below(kernel, op, keys, stack);
    if (is_recorded) {
      for (const Tensor &result : tensors_of(stack->data() + start, 1)) {
        torch::autograd::set_history(result, node);
      }
    }
  }
};

// Writes a result into the tensor of a form: the first argument, whose sizes it must have, or `out`, which gets its sizes.
template <bool IS_OUT>
void write(const Tensor &target, const Tensor &result, const Entry &entry) {
  if (IS_OUT) {
    at::native::resize_output_symint(target, result.sym_sizes());
  } else if (target.sym_sizes() != result.sym_sizes()) {
    std::stringstream text;
    text << "`" << entry.op->name << "` has a result of the shape " << result.sym_sizes() << ", and writes into a tensor of "
         << target.sym_sizes();
    C10_THROW_ERROR(ValueError, text.str());
  }
  if (!c10::canCast(result.scalar_type(), target.scalar_type())) {
    C10_THROW_ERROR(TypeError, std::string("`") + entry.op->name + "` has a result of " + c10::toString(result.scalar_type()) +
                                   ", which a tensor of " + c10::toString(target.scalar_type()) + " cannot have");
  }
  target.copy_(result);
}

template <bool IS_OUT>
void write_all(const std::vector<Tensor> &targets, const std::vector<Tensor> &results, const Entry &entry) {
  TORCH_CHECK_VALUE(targets.size() == results.size(), "`", entry.op->name, "` has ", results.size(), " results, and writes into ",
                    targets.size(), " tensors");
  for (size_t at = 0; at < targets.size(); ++at) {
    write<IS_OUT>(targets[at], results[at], entry);
  }
}

// The tensors that a form writes: those of its first argument, or `out` for each result, which are its last arguments.
template <bool IS_OUT>
std::vector<Tensor> targets_of(const Stack &stack, const Entry &entry) {
  return IS_OUT ? tensors_of(stack.data() + stack.size() - entry.op->result_count, entry.op->result_count)
                : tensors_of(stack.data() + stack.size() - entry.count(), 1);
}

// Number of arguments of a form: those of the operator, and for `out` one that no call gives (`NOT_FUNCTIONAL` in the
// emitter), and the targets.
template <bool IS_OUT>
size_t arguments_of_form(const Entry &entry) {
  return entry.count() + (IS_OUT ? 1 + entry.op->result_count : 0);
}

// Takes the arguments of a form, and gives the tensors that it wrote. The form in place of a list returns nothing.
void finish(Stack *stack, size_t count, const std::vector<Tensor> &targets, const Entry &entry) {
  torch::jit::drop(*stack, count);
  if (!entry.op->gives_list) {
    for (const Tensor &target : targets) {
      stack->emplace_back(target);
    }
  }
}

// A form that writes, on the host and for tensors without memory: the functional kernel, whose results are copied. Formulas of kernels may read
// an argument after they wrote, so that memory of arguments is no place for results.
template <typename Functional, bool IS_OUT>
struct Writing : c10::OperatorKernel {
  explicit Writing(const Entry &entry) : entry(entry), kernel(entry) {}
  const Entry &entry;
  Functional kernel;

  void operator()(const OperatorHandle &op, DispatchKeySet keys, Stack *stack) {
    at::AutoDispatchBelowADInplaceOrView guard;
    size_t count = arguments_of_form<IS_OUT>(entry);
    std::vector<Tensor> targets = targets_of<IS_OUT>(*stack, entry);
    auto start = stack->end() - static_cast<ptrdiff_t>(count);
    TORCH_CHECK_TYPE(!IS_OUT || (start + entry.count())->isNone(), "`", entry.op->name, "` has an argument `_form` that no call gives");
    Stack inner(start, start + entry.count());
    kernel(op, keys, &inner);
    write_all<IS_OUT>(targets, tensors_of(inner.data(), inner.size()), entry);
    finish(stack, count, targets, entry);
  }
};

// Counts a write: the versions of the tensors.
template <bool IS_OUT>
struct Version : c10::OperatorKernel {
  explicit Version(const Entry &entry) : entry(entry) {}
  const Entry &entry;

  void operator()(const OperatorHandle &op, DispatchKeySet keys, Stack *stack) {
    std::vector<Tensor> targets = targets_of<IS_OUT>(*stack, entry);
    {
      at::AutoDispatchBelowADInplaceOrView guard;
      op.redispatchBoxed(below(keys), stack);
    }
    for (const Tensor &target : targets) {
      torch::autograd::increment_version(target);
    }
  }
};

// Records a call of the form that writes into the first argument: the functional form, of a copy, since formulas may read the elements before
// the call, and a copy back, both of which PyTorch differentiates.
struct InplaceAutograd : c10::OperatorKernel {
  explicit InplaceAutograd(const Entry &entry) : entry(entry) {}
  const Entry &entry;

  void operator()(const OperatorHandle &op, DispatchKeySet keys, Stack *stack) {
    size_t count = entry.count();
    const IValue *arguments = stack->data() + stack->size() - count;
    bool is_recorded = is_tracked(arguments, count);
    if (!is_recorded && !has_tangents(arguments, count)) {
      op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
      return;
    }
    std::vector<Tensor> targets = targets_of<false>(*stack, entry), copies;
    for (const Tensor &target : targets) {
      torch::autograd::check_inplace(target, is_recorded);
      copies.push_back(target.clone());
    }
    Stack inner(arguments, arguments + count);
    inner[0] = entry.op->gives_list ? IValue(c10::List<Tensor>(copies)) : IValue(copies.front());
    entry.functional().callBoxed(&inner);
    write_all<false>(targets, tensors_of(inner.data(), inner.size()), entry);
    finish(stack, count, targets, entry);
  }
};

// The form that writes into given tensors has no derivative, as PyTorch's own.
struct OutAutograd : c10::OperatorKernel {
  explicit OutAutograd(const Entry &entry) : entry(entry) {}
  const Entry &entry;

  void operator()(const OperatorHandle &op, DispatchKeySet keys, Stack *stack) {
    size_t count = arguments_of_form<true>(entry);
    const IValue *arguments = stack->data() + stack->size() - count;
    TORCH_CHECK(!is_tracked(arguments, count) && !has_tangents(arguments, count), entry.op->name,
                "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad"
                "\n  help: call the form without `out`");
    op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
  }
};

template <typename Functor>
torch::CppFunction function(DispatchKey key, const Entry &entry) {
  return torch::dispatch(key, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Functor>(entry)));
}

std::string named(const char *prefix, const Row &row, const char *first) {
  return std::string(prefix) + row.name + "(" + first + row.parameters + ")";
}

template <bool IS_OUT>
void define_form(torch::Library &library, const Entry &entry, const char *name, const char *schema, at::Tag tag) {
  std::vector<at::Tag> chosen{at::Tag::pt2_compliant_tag};
  // PyTorch's compilers take the tag of forms in place for those of a tensor, not of a list.
  if (IS_OUT || !entry.op->gives_list) {
    chosen.push_back(tag);
  }
  const std::vector<at::Tag> &tags = chosen;
  library.def(schema, tags);
  library.impl(name, function<Writing<Kernel, IS_OUT>>(DispatchKey::CPU, entry));
  library.impl(name, function<Writing<Meta, IS_OUT>>(DispatchKey::Meta, entry));
  library.impl(name, function<Version<IS_OUT>>(DispatchKey::ADInplaceOrView, entry));
}

void define_forms(torch::Library &library, const Row &row, const Entry &entry) {
  if (row.inplace != nullptr) {
    define_form<false>(library, entry, row.inplace, row.inplace_schema, at::Tag::inplace);
    library.impl(row.inplace, function<InplaceAutograd>(DispatchKey::Autograd, entry));
  }
  if (row.out != nullptr) {
    define_form<true>(library, entry, row.out, row.out_schema, at::Tag::out);
    library.impl(row.out, function<OutAutograd>(DispatchKey::Autograd, entry));
  }
}

void define(torch::Library &library, const Row &row) {
  auto *made = new Entry();  // operators live as long as the process
  Entry &entry = *made;
  entry.op = api().find(row.name);
  TORCH_CHECK(entry.op != nullptr, "the library of kernels has no operator `", row.name, "`; build it again");
  std::string full(row.name);
  auto dot = full.find('.');
  entry.name = full.substr(0, dot);
  entry.overload = dot == std::string::npos ? "" : full.substr(dot + 1);
  for (int64_t at = 0; at < entry.op->argument_count; ++at) {
    entry.kinds.push_back(kind_of(entry.op->arguments[at].type));
  }
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  library.def((named("", row, "") + " -> " + row.returns).c_str(), tags);
  library.impl(row.name, function<Kernel>(DispatchKey::CPU, entry));
  library.impl(row.name, function<Meta>(DispatchKey::Meta, entry));
  define_forms(library, row, entry);
  if (!entry.op->is_differentiable) {
    return;
  }
  std::string pullback = std::string("_pullback_") + row.name, second = std::string("_second_pullback_") + row.name;
  std::string lists = "Tensor?[] of_results_, Tensor[] results_, bool[] wanted_, ";
  library.def((named("_pullback_", row, lists.c_str()) + " -> Tensor[]").c_str(), tags);
  lists = "Tensor?[] cotangents_, bool[] needed_, " + lists;
  library.def((named("_second_pullback_", row, lists.c_str()) + " -> Tensor[]").c_str(), tags);
  library.impl(row.name, function<Autograd>(DispatchKey::Autograd, entry));
  library.impl(pullback.c_str(), function<Pullback>(DispatchKey::CPU, entry));
  library.impl(pullback.c_str(), function<PullbackMeta>(DispatchKey::Meta, entry));
  library.impl(pullback.c_str(), function<PullbackAutograd>(DispatchKey::Autograd, entry));
  library.impl(second.c_str(), function<SecondPullback>(DispatchKey::CPU, entry));
  library.impl(second.c_str(), function<SecondPullbackMeta>(DispatchKey::Meta, entry));
  library.impl(second.c_str(), function<SecondPullbackAutograd>(DispatchKey::Autograd, entry));
}

TORCH_LIBRARY_FRAGMENT({{ namespace }}, library) {
  for (const Row &row : ROWS) {
    define(library, row);
  }
}

}  // namespace
