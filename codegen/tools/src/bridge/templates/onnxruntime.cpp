// {{ generated }}
//
// The operators of `{{ library }}` as custom operators of ONNX Runtime, in the domain `{{ namespace }}`. Inputs of a node are the tensors of the
// signature in order, those of lists one by one; attributes are its other arguments by name. All call the C interface of the library of
// kernels beside this one. `RegisterCustomOps` is the function that ONNX Runtime looks for.

#include <algorithm>
#include <atomic>
#include <cctype>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onnxruntime_interface.h"
#include "opsmith_abi.h"
#include "opsmith_kernels.h"

namespace {

constexpr const char *KERNELS = "{{ kernels }}";
constexpr const char *DOMAIN_NAME = "{{ namespace }}";
// The attribute with the lengths of lists of tensors.
constexpr const char *LENGTHS = "tensor_lists";

// An operator, with the element type in ONNX of each result, 0 for one that depends on arguments.
struct Row {
  const char *name;
  std::vector<int> types;
};

const Row ROWS[] = {
{%- for row in rows %}
    {"{{ row.name }}", { {{- row.types -}} } },
{%- endfor %}
};

// An element type: its number in the C interface and in ONNX, and its name.
struct Element {
  uint32_t own;
  int onnx;
  const char *name;
};

constexpr Element ELEMENTS[] = {
    {OPSMITH_TYPE_FLOAT32, 1, "float32"},   {OPSMITH_TYPE_UINT8, 2, "uint8"},    {OPSMITH_TYPE_INT8, 3, "int8"},
    {OPSMITH_TYPE_UINT16, 4, "uint16"},     {OPSMITH_TYPE_INT16, 5, "int16"},    {OPSMITH_TYPE_INT32, 6, "int32"},
    {OPSMITH_TYPE_INT64, 7, "int64"},       {OPSMITH_TYPE_BOOL, 9, "bool"},      {OPSMITH_TYPE_FLOAT16, 10, "float16"},
    {OPSMITH_TYPE_FLOAT64, 11, "float64"},  {OPSMITH_TYPE_UINT32, 12, "uint32"}, {OPSMITH_TYPE_UINT64, 13, "uint64"},
    {OPSMITH_TYPE_BFLOAT16, 16, "bfloat16"},
};

// An error, with a code of ONNX Runtime.
struct Failure : std::exception {
  int code;
  std::string text;

  explicit Failure(std::string text, int code = ORT_INVALID) : code(code), text(std::move(text)) {}
  const char *what() const noexcept override { return text.c_str(); }
};

const Element &element_of(int number) {
  for (const Element &one : ELEMENTS) {
    if (one.onnx == number) {
      return one;
    }
  }
  throw Failure("tensors of the element type " + std::to_string(number) + " of ONNX are not known here");
}

const Element &element_of(uint8_t code, uint8_t bits) {
  for (const Element &one : ELEMENTS) {
    if (one.own == OPSMITH_DTYPE(code, bits)) {
      return one;
    }
  }
  throw Failure("ONNX Runtime has no tensors of a result's element type: code " + std::to_string(code) + ", " + std::to_string(bits) + " bits");
}

const opsmith_api *open_kernels() {
  std::string failure;
  const opsmith_api *found = opsmith_kernels::open(KERNELS, failure);
  if (found == nullptr) {
    throw Failure(failure, ORT_FAILED);
  }
  return found;
}

const opsmith_api &kernels() {
  static const opsmith_api *const found = open_kernels();
  return *found;
}

// The table of ONNX Runtime, as of the last registration. All of a process are the same.
std::atomic<const OrtApi *> CURRENT{nullptr};

const OrtApi &ort() { return *CURRENT.load(std::memory_order_acquire); }

// Whether a function of ONNX Runtime had no error.
bool is_fine(OrtStatus *status) {
  if (status != nullptr) {
    ort().ReleaseStatus(status);
  }
  return status == nullptr;
}

void check(OrtStatus *status) {
  if (status != nullptr) {
    std::string text = ort().GetErrorMessage(status);
    ort().ReleaseStatus(status);
    throw Failure(text);
  }
}

// Throws the error of a call of the C interface.
void check_call(int code, const std::string &own) {
  switch (code) {
    case OPSMITH_OK:
      return;
    case OPSMITH_REFUSED:
      throw Failure(own);
    case OPSMITH_NOT_IMPLEMENTED:
      throw Failure(kernels().error_text(), ORT_NOT_THERE);
    case OPSMITH_MEMORY:
    case OPSMITH_DEFECT:
      throw Failure(kernels().error_text(), ORT_FAILED);
    default:
      throw Failure(kernels().error_text());
  }
}

// The status of a function that may throw. Errors name their operator.
template <typename Function>
OrtStatus *status_of(const OrtApi &api, const char *name, Function function) {
  int code = ORT_FAILED;
  std::string text;
  try {
    function();
    return nullptr;
  } catch (const Failure &failure) {
    code = failure.code;
    text = failure.text;
  } catch (const std::exception &error) {
    text = error.what();
  }
  if (text.rfind(name, 0) != 0) {
    text = std::string(name) + ": " + text;
  }
  return api.CreateStatus(code, text.c_str());
}

// The attributes of a node, whose kernel is made or whose results are inferred.
struct Source {
  const OrtKernelInfo *node = nullptr;
  const OrtShapeInferContext *inference = nullptr;

  const OrtOpAttr *attribute(const char *name) const {
    const OrtOpAttr *found = nullptr;
    return is_fine(ort().ShapeInferContext_GetAttribute(inference, name, &found)) ? found : nullptr;
  }

  template <typename T>
  std::optional<T> number(const char *name, OrtStatus *(*read)(const OrtKernelInfo *, const char *, T *), int kind) const {
    T value{};
    if (node != nullptr) {
      return is_fine(read(node, name, &value)) ? std::optional<T>(value) : std::nullopt;
    }
    size_t needed = 0;
    const OrtOpAttr *found = attribute(name);
    return found != nullptr && is_fine(ort().ReadOpAttr(found, kind, &value, sizeof(T), &needed)) ? std::optional<T>(value) : std::nullopt;
  }

  template <typename T>
  std::optional<std::vector<T>> list(const char *name, OrtStatus *(*read)(const OrtKernelInfo *, const char *, T *, size_t *), int kind) const {
    size_t size = 0;
    std::vector<T> values;
    if (node != nullptr) {
      // The first call gives the length.
      if (!is_fine(read(node, name, nullptr, &size))) {
        return std::nullopt;
      }
      values.resize(std::max<size_t>(size, 1));
      if (!is_fine(read(node, name, values.data(), &size))) {
        return std::nullopt;
      }
      values.resize(size);
      return values;
    }
    const OrtOpAttr *found = attribute(name);
    // Too little room is an error, which comes with the size.
    if (found == nullptr || (!is_fine(ort().ReadOpAttr(found, kind, nullptr, 0, &size)) && size == 0)) {
      return std::nullopt;
    }
    values.resize(size / sizeof(T));
    return is_fine(ort().ReadOpAttr(found, kind, values.data(), size, &size)) ? std::optional(values) : std::nullopt;
  }

  std::optional<int64_t> integer(const char *name) const { return number<int64_t>(name, ort().KernelInfoGetAttribute_int64, ORT_INT); }
  std::optional<float> real(const char *name) const { return number<float>(name, ort().KernelInfoGetAttribute_float, ORT_FLOAT); }
  // Readers of lists find an empty one in an attribute of another kind.
  std::optional<std::vector<int64_t>> integers(const char *name) const {
    auto found = list<int64_t>(name, ort().KernelInfoGetAttributeArray_int64, ORT_INTS);
    return found && found->empty() && (integer(name) || real(name)) ? std::nullopt : found;
  }
  std::optional<std::vector<float>> reals(const char *name) const {
    return list<float>(name, ort().KernelInfoGetAttributeArray_float, ORT_FLOATS);
  }
  std::optional<std::string> text(const char *name) const {
    auto found = list<char>(name, ort().KernelInfoGetAttribute_string, ORT_STRING);
    return found ? std::optional(std::string(found->data(), strnlen(found->data(), found->size()))) : std::nullopt;
  }
};

// The attributes of a node as values of a call, in which tensors are missing. A value leads to memory of this object.
class Attributes {
 public:
  Attributes(const opsmith_operator &op, Source source) : op_(op), source_(source) {
    for (int64_t at = 0; at < op.argument_count; ++at) {
      const opsmith_argument &argument = op.arguments[at];
      types.emplace_back(argument.type);
      if (argument.optional != 0 && !types.back().empty()) {
        types.back().pop_back();
      }
      values.push_back(is_tensor(at) || is_list(at) ? opsmith_value{} : value(argument, types.back()));
    }
    lengths_ = source.integers(LENGTHS).value_or(std::vector<int64_t>());
  }

  bool is_tensor(int64_t at) const { return types[static_cast<size_t>(at)] == "Tensor"; }
  bool is_list(int64_t at) const { return types[static_cast<size_t>(at)].rfind("Tensor[", 0) == 0 || types[static_cast<size_t>(at)].rfind("Tensor?[", 0) == 0; }

  // The values of a call with the tensors of a node, null where one is absent; they are valid as long as `inputs`.
  std::vector<opsmith_value> bound(const std::vector<const opsmith_tensor *> &inputs) const {
    std::vector<opsmith_value> all = values;
    size_t next = 0, lists = 0;
    for (int64_t at = 0; at < op_.argument_count; ++at) {
      opsmith_value &value = all[static_cast<size_t>(at)];
      const opsmith_argument &argument = op_.arguments[at];
      if (is_tensor(at)) {
        const opsmith_tensor *tensor = next < inputs.size() ? inputs[next] : nullptr;
        ++next;
        if (tensor != nullptr) {
          value.kind = OPSMITH_TENSOR;
          value.as.tensor = tensor;
        } else if (argument.has_default == 0 && argument.optional == 0) {
          throw Failure(std::string("the node has no input `") + argument.name + "`" + help());
        } else {
          value.kind = argument.has_default != 0 ? OPSMITH_DEFAULT : OPSMITH_NONE;
        }
      } else if (is_list(at)) {
        size_t left = next < inputs.size() ? inputs.size() - next : 0;
        size_t length = lists < lengths_.size() ? static_cast<size_t>(std::max<int64_t>(lengths_[lists], 0)) : left;
        ++lists;
        if (length > left) {
          throw Failure(std::string("the list `") + argument.name + "` has " + std::to_string(length) + " tensors by the attribute `" + LENGTHS +
                        "`, and " + std::to_string(left) + " inputs are left" + help());
        }
        value.kind = OPSMITH_TENSORS;
        value.count = static_cast<int64_t>(length);
        value.as.tensors = inputs.data() + next;
        next += length;
      }
    }
    if (next < inputs.size()) {
      throw Failure("the node has " + std::to_string(inputs.size() - next) + " of " + std::to_string(inputs.size()) + " inputs too many" + help());
    }
    return all;
  }

 private:
  std::string help() const { return std::string("\n  help: the signature is ") + op_.signature; }

  [[noreturn]] void misfit(const char *name, const std::string &expected, const std::string &found) const {
    throw Failure(std::string("the attribute `") + name + "` is " + found + ", and no " + expected + help());
  }

  opsmith_value of_real(double real) const {
    opsmith_value made{};
    made.kind = OPSMITH_FLOAT;
    made.as.real = real;
    return made;
  }

  opsmith_value of_integer(int32_t kind, int64_t integer) const {
    opsmith_value made{};
    made.kind = kind;
    made.as.integer = integer;
    return made;
  }

  opsmith_value of_text(std::string text) {
    texts_.push_back(std::move(text));
    opsmith_value made{};
    made.kind = OPSMITH_TEXT;
    made.count = static_cast<int64_t>(texts_.back().size());
    made.as.text = texts_.back().c_str();
    return made;
  }

  opsmith_value of_integers(const std::vector<int64_t> &list) {
    integers_.push_back(list);
    opsmith_value made{};
    made.kind = OPSMITH_INTS;
    made.count = static_cast<int64_t>(list.size());
    made.as.integers = integers_.back().data();
    return made;
  }

  opsmith_value of_truths(const std::vector<int64_t> &list) {
    truths_.emplace_back();
    for (int64_t one : list) {
      truths_.back().push_back(one != 0 ? 1 : 0);
    }
    opsmith_value made{};
    made.kind = OPSMITH_BOOLS;
    made.count = static_cast<int64_t>(list.size());
    made.as.truths = truths_.back().data();
    return made;
  }

  opsmith_value of_reals(const std::vector<float> &list) {
    reals_.emplace_back(list.begin(), list.end());
    opsmith_value made{};
    made.kind = OPSMITH_FLOATS;
    made.count = static_cast<int64_t>(list.size());
    made.as.reals = reals_.back().data();
    return made;
  }

  // A number that is written as a text: floats of attributes have 32 bits.
  double parsed(const char *name, const std::string &text) const {
    char *end = nullptr;
    double number = std::strtod(text.c_str(), &end);
    if (text.empty() || end == nullptr || *end != 0) {
      misfit(name, "number", "the text \"" + text + "\"");
    }
    return number;
  }

  std::optional<opsmith_value> one(const char *name, const std::string &type) {
    auto integer = source_.integer(name);
    if (type == "bool" || type == "int") {
      return integer ? std::optional(of_integer(type == "int" ? OPSMITH_INT : OPSMITH_BOOL, *integer)) : std::nullopt;
    }
    auto text = source_.text(name);
    if (type == "dtype") {
      auto is_named = [&](const Element &element) { return *text == element.name; };
      if (text && std::none_of(std::begin(ELEMENTS), std::end(ELEMENTS), is_named)) {
        misfit(name, "dtype that ONNX Runtime has tensors of", "the text \"" + *text + "\"");
      }
      return text ? std::optional(of_text(*text)) : integer ? std::optional(of_text(element_of(static_cast<int>(*integer)).name)) : std::nullopt;
    }
    if (type == "str" || type == "Device" || type == "MemoryFormat") {
      return text ? std::optional(of_text(*text)) : std::nullopt;
    }
    auto real = source_.real(name);
    if (real) {
      return of_real(*real);
    }
    if (integer) {
      return type == "float" ? of_real(static_cast<double>(*integer)) : of_integer(OPSMITH_INT, *integer);
    }
    if (text && type == "Scalar" && (*text == "true" || *text == "false")) {
      return of_integer(OPSMITH_BOOL, *text == "true" ? 1 : 0);
    }
    return text ? std::optional(of_real(parsed(name, *text))) : std::nullopt;
  }

  std::optional<opsmith_value> several(const char *name, const std::string &type) {
    if (type.rfind("float[", 0) == 0 || type.rfind("Scalar[", 0) == 0) {
      auto reals = source_.reals(name);
      if (reals && (!reals->empty() || type[0] == 'f')) {
        return of_reals(*reals);
      }
    }
    auto integers = source_.integers(name);
    if (!integers) {
      auto integer = source_.integer(name);
      if (!integer) {
        return std::nullopt;
      }
      integers = {*integer};
    }
    return type.rfind("bool[", 0) == 0 ? of_truths(*integers) : of_integers(*integers);
  }

  opsmith_value value(const opsmith_argument &argument, const std::string &type) {
    const char *name = argument.name;
    constexpr const char *NUMBERS[] = {"int[", "bool[", "float[", "Scalar["};
    bool is_list = std::any_of(std::begin(NUMBERS), std::end(NUMBERS), [&](const char *one) { return type.rfind(one, 0) == 0; });
    auto found = is_list ? several(name, type) : type.find('[') == std::string::npos ? one(name, type) : std::nullopt;
    if (found) {
      return *found;
    }
    if (auto integer = source_.integer(name)) {
      misfit(name, type, "the number " + std::to_string(*integer));
    }
    if (auto real = source_.real(name)) {
      misfit(name, type, "the number " + std::to_string(*real));
    }
    if (auto text = source_.text(name); text && !text->empty()) {
      misfit(name, type, "the text \"" + *text + "\"");
    }
    if (argument.has_default == 0 && argument.optional == 0) {
      throw Failure(std::string("the node has no attribute `") + name + "`" + help());
    }
    return of_integer(argument.has_default != 0 ? OPSMITH_DEFAULT : OPSMITH_NONE, 0);
  }

  const opsmith_operator &op_;
  Source source_;
  std::vector<std::string> types;
  std::vector<opsmith_value> values;
  std::vector<int64_t> lengths_;
  // Items of a deque do not move when it grows.
  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> integers_;
  std::deque<std::vector<double>> reals_;
  std::deque<std::vector<uint8_t>> truths_;
};

// The element type and the sizes of a tensor; a size that is no number has a name, or an empty one.
struct Known {
  const Element *element = nullptr;
  std::vector<int64_t> sizes;
  std::vector<std::string> names;
};

Known known(const OrtTensorTypeAndShapeInfo *info) {
  int number = 0;
  size_t rank = 0;
  check(ort().GetTensorElementType(info, &number));
  check(ort().GetDimensionsCount(info, &rank));
  Known found;
  found.element = &element_of(number);
  found.sizes.resize(rank);
  std::vector<const char *> names(rank);
  check(ort().GetDimensions(info, found.sizes.data(), rank));
  check(ort().GetSymbolicDimensions(info, names.data(), rank));
  for (const char *name : names) {
    found.names.emplace_back(name == nullptr ? "" : name);
  }
  return found;
}

// The sizes of results as texts of formulas, in the names of a model.
class Formulas {
 public:
  Formulas(const char *op, const opsmith_inference &found, const std::vector<std::string> &symbols) : op_(op) {
    for (int64_t at = 0; at < found.node_count; ++at) {
      add(found.nodes[at], symbols);
    }
  }

  // The number of a size, or -1 with the name of its formula.
  std::pair<int64_t, std::string> size(int64_t node) const {
    const Part &part = parts_[static_cast<size_t>(node)];
    return part.number ? std::pair(*part.number, std::string()) : std::pair(int64_t{-1}, part.text);
  }

 private:
  // `strength` is 0 of a sum, 1 of a product, 2 of a name.
  struct Part {
    std::optional<int64_t> number;
    std::string text;
    int strength;
  };

  // A name that no other size of a process has.
  std::string fresh() const {
    static std::atomic<int64_t> made{0};
    return std::string(op_) + "." + std::to_string(made++);
  }

  std::string operand(int64_t node, int least) const {
    const Part &part = parts_[static_cast<size_t>(node)];
    return part.strength < least ? "(" + part.text + ")" : part.text;
  }

  void add(const opsmith_node &node, const std::vector<std::string> &symbols) {
    constexpr size_t LONGEST = 200;
    Part made{std::nullopt, std::string(), 2};
    switch (node.kind) {
      case OPSMITH_NODE_NUMBER:
        made.number = node.a;
        made.text = std::to_string(node.a);
        break;
      case OPSMITH_NODE_SYMBOL:
        made.text = symbols[static_cast<size_t>(node.a)];
        if (!std::all_of(made.text.begin(), made.text.end(), [](unsigned char one) { return std::isalnum(one) != 0 || one == '_' || one == '.'; })) {
          made.strength = 0;
        }
        break;
      case OPSMITH_NODE_ADD:
        made = {std::nullopt, operand(node.a, 0) + " + " + operand(node.b, 0), 0};
        break;
      case OPSMITH_NODE_MULTIPLY:
        made = {std::nullopt, operand(node.a, 1) + " * " + operand(node.b, 1), 1};
        break;
      case OPSMITH_NODE_QUOTIENT:
        made = {std::nullopt, operand(node.a, 2) + " / " + operand(node.b, 2), 1};
        break;
      case OPSMITH_NODE_REMAINDER:
        made = {std::nullopt, operand(node.a, 2) + " % " + operand(node.b, 2), 1};
        break;
      case OPSMITH_NODE_MAXIMUM:
        made.text = "max(" + operand(node.a, 0) + ", " + operand(node.b, 0) + ")";
        break;
      case OPSMITH_NODE_MINIMUM:
        made.text = "min(" + operand(node.a, 0) + ", " + operand(node.b, 0) + ")";
        break;
      case OPSMITH_NODE_FRESH:
        made.text = fresh();
        break;
      default:
        break;  // A condition, which is no size.
    }
    if (made.text.size() > LONGEST) {
      made = {std::nullopt, fresh(), 2};
    }
    parts_.push_back(std::move(made));
  }

  const char *op_;
  std::vector<Part> parts_;
};

// The results of a node before it runs.
std::vector<Known> infer(const opsmith_operator &op, const Attributes &attributes, const std::vector<std::optional<Known>> &inputs) {
  static std::atomic<int64_t> unnamed{0};
  std::vector<std::string> symbols;
  std::deque<std::vector<int64_t>> sizes;
  std::deque<opsmith_tensor> tensors;
  std::vector<const opsmith_tensor *> given;
  for (const std::optional<Known> &input : inputs) {
    if (!input) {
      given.push_back(nullptr);
      continue;
    }
    sizes.push_back(input->sizes);
    for (size_t at = 0; at < sizes.back().size(); ++at) {
      if (sizes.back()[at] >= 0) {
        continue;
      }
      std::string name = input->names[at].empty() ? "size" + std::to_string(unnamed++) : input->names[at];
      auto place = std::find(symbols.begin(), symbols.end(), name);
      sizes.back()[at] = -1 - (place - symbols.begin());
      if (place == symbols.end()) {
        symbols.push_back(name);
      }
    }
    opsmith_tensor tensor{};
    tensor.device_type = 1;
    tensor.ndim = static_cast<int32_t>(sizes.back().size());
    tensor.code = static_cast<uint8_t>(input->element->own >> 8);
    tensor.bits = static_cast<uint8_t>(input->element->own);
    tensor.lanes = 1;
    tensor.shape = sizes.back().data();
    tensors.push_back(tensor);
    given.push_back(&tensors.back());
  }
  std::vector<opsmith_value> values = attributes.bound(given);
  std::vector<int64_t> examples(symbols.size(), -1);
  const opsmith_inference *found = nullptr;
  int code = kernels().infer(&op, values.data(), static_cast<int64_t>(values.size()), examples.data(), static_cast<int64_t>(examples.size()), &found);
  check_call(code, "");
  std::unique_ptr<const opsmith_inference, void (*)(const opsmith_inference *)> owner(found, kernels().release_inference);
  Formulas formulas(op.name, *found, symbols);
  std::vector<Known> results;
  for (int64_t at = 0; at < found->result_count; ++at) {
    const opsmith_result &result = found->results[at];
    Known one;
    one.element = &element_of(result.code, result.bits);
    for (int32_t dim = 0; dim < result.ndim; ++dim) {
      auto [number, name] = formulas.size(result.sizes[dim]);
      one.sizes.push_back(number);
      one.names.push_back(name);
    }
    results.push_back(std::move(one));
  }
  return results;
}

// A tensor without declared sizes looks like one without dimensions: nothing can be inferred from it.
bool are_known(const std::vector<std::optional<Known>> &inputs) {
  return std::none_of(inputs.begin(), inputs.end(), [](const std::optional<Known> &one) { return one && one->sizes.empty(); });
}

// Gives the shapes and element types of results to the model.
void infer_node(const opsmith_operator &op, OrtShapeInferContext *context) {
  size_t count = 0;
  check(ort().ShapeInferContext_GetInputCount(context, &count));
  std::vector<std::optional<Known>> inputs;
  for (size_t at = 0; at < count; ++at) {
    OrtTensorTypeAndShapeInfo *info = nullptr;
    bool is_there = is_fine(ort().ShapeInferContext_GetInputTypeShape(context, at, &info)) && info != nullptr;
    inputs.push_back(is_there ? std::optional(known(info)) : std::nullopt);
  }
  if (!are_known(inputs)) {
    return;
  }
  Source source;
  source.inference = context;
  std::vector<Known> results = infer(op, Attributes(op, source), inputs);
  for (size_t at = 0; at < results.size(); ++at) {
    std::vector<const char *> names;
    for (const std::string &name : results[at].names) {
      names.push_back(name.c_str());
    }
    OrtTensorTypeAndShapeInfo *made = nullptr;
    check(ort().CreateTensorTypeAndShapeInfo(&made));
    std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo *)> owner(made, ort().ReleaseTensorTypeAndShapeInfo);
    check(ort().SetTensorElementType(made, results[at].element->onnx));
    check(ort().SetDimensions(made, results[at].sizes.data(), results[at].sizes.size()));
    check(ort().SetSymbolicDimensions(made, names.data(), names.size()));
    // An output that the node leaves out is an error, which changes nothing.
    is_fine(ort().ShapeInferContext_SetOutputTypeShape(context, at, made));
  }
}

// The declared type of an input or an output; nothing if it is absent.
std::optional<Known> declared(const OrtKernelInfo *node, size_t at, bool is_output) {
  OrtTypeInfo *type = nullptr;
  auto read = is_output ? ort().KernelInfo_GetOutputTypeInfo : ort().KernelInfo_GetInputTypeInfo;
  if (!is_fine(read(node, at, &type)) || type == nullptr) {
    return std::nullopt;
  }
  std::unique_ptr<OrtTypeInfo, void (*)(OrtTypeInfo *)> owner(type, ort().ReleaseTypeInfo);
  const OrtTensorTypeAndShapeInfo *tensor = nullptr;
  check(ort().CastTypeInfoToTensorInfo(type, &tensor));
  if (tensor == nullptr) {
    throw Failure("an operator takes and gives tensors alone");
  }
  return known(tensor);
}

[[noreturn]] void refuse_output(size_t at, const Element &output, const Element &result) {
  throw Failure("output " + std::to_string(at) + " of the node is " + output.name + ", its result " + result.name +
                "\n  help: declare the output's element type in the model's `value_info`, or cast the inputs");
}

// A call: its inputs, and the place of its results.
struct Call {
  OrtKernelContext *context;
  size_t outputs = 0;
  size_t given = 0;
  std::deque<std::vector<int64_t>> sizes;
  std::deque<opsmith_tensor> tensors;
  std::deque<std::vector<uint64_t>> unused;
  std::string error;

  void describe(const OrtValue *value, opsmith_tensor &tensor, const Element *&element) {
    OrtTensorTypeAndShapeInfo *info = nullptr;
    check(ort().GetTensorTypeAndShape(value, &info));
    std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo *)> owner(info, ort().ReleaseTensorTypeAndShapeInfo);
    Known found = known(info);
    element = found.element;
    sizes.push_back(std::move(found.sizes));
    tensor.device_type = 1;
    tensor.ndim = static_cast<int32_t>(sizes.back().size());
    tensor.code = static_cast<uint8_t>(element->own >> 8);
    tensor.bits = static_cast<uint8_t>(element->own);
    tensor.lanes = 1;
    tensor.shape = sizes.back().data();
    check(ort().GetTensorMutableData(const_cast<OrtValue *>(value), &tensor.data));
  }

  // Memory of ONNX Runtime for a result, or memory of the call for one that the node leaves out.
  void allocate(size_t at, opsmith_tensor *result) {
    alignas(64) static uint8_t nothing[64];
    ++given;
    OrtValue *value = nullptr;
    if (at < outputs) {
      check(ort().KernelContext_GetOutput(context, at, result->shape, static_cast<size_t>(result->ndim), &value));
    }
    if (value == nullptr) {
      size_t count = 1;
      for (int32_t dim = 0; dim < result->ndim; ++dim) {
        count *= static_cast<size_t>(result->shape[dim]);
      }
      constexpr size_t LARGEST = 16;
      unused.emplace_back(count * std::max<size_t>(result->bits / CHAR_BIT, 1) / sizeof(uint64_t) + LARGEST);
      result->data = unused.back().data();
      return;
    }
    opsmith_tensor tensor{};
    const Element *element = nullptr;
    describe(value, tensor, element);
    const Element &own = element_of(result->code, result->bits);
    if (element != &own) {
      refuse_output(at, *element, own);
    }
    result->data = tensor.data == nullptr ? nothing : tensor.data;
  }
};

int allocate(void *context, int64_t index, opsmith_tensor *result) {
  auto &call = *static_cast<Call *>(context);
  try {
    call.allocate(static_cast<size_t>(index), result);
    return 0;
  } catch (const std::exception &error) {
    call.error = error.what();
    return 1;
  }
}

// A node of a session.
class Node {
 public:
  Node(const opsmith_operator &op, const OrtKernelInfo *node) : op(op), attributes_(op, Source{node, nullptr}) {
    size_t inputs = 0, outputs = 0;
    check(ort().KernelInfo_GetInputCount(node, &inputs));
    check(ort().KernelInfo_GetOutputCount(node, &outputs));
    std::vector<std::optional<Known>> given;
    for (size_t at = 0; at < inputs; ++at) {
      given.push_back(declared(node, at, false));
    }
    std::vector<Known> results;
    try {
      results = infer(op, attributes_, given);
    } catch (const Failure &) {
      if (are_known(given)) {
        throw;
      }
      return;
    }
    if (outputs > results.size()) {
      throw Failure("the node has " + std::to_string(outputs) + " outputs, the operator " + std::to_string(results.size()) + " results");
    }
    for (size_t at = 0; at < outputs; ++at) {
      auto output = declared(node, at, true);
      if (output && output->element != results[at].element) {
        refuse_output(at, *output->element, *results[at].element);
      }
    }
  }

  void run(OrtKernelContext *context) const {
    Call call{};
    call.context = context;
    size_t inputs = 0;
    check(ort().KernelContext_GetInputCount(context, &inputs));
    check(ort().KernelContext_GetOutputCount(context, &call.outputs));
    std::vector<const opsmith_tensor *> given;
    for (size_t at = 0; at < inputs; ++at) {
      const OrtValue *value = nullptr;
      check(ort().KernelContext_GetInput(context, at, &value));
      if (value == nullptr) {
        given.push_back(nullptr);
        continue;
      }
      const Element *element = nullptr;
      call.tensors.emplace_back();
      call.describe(value, call.tensors.back(), element);
      given.push_back(&call.tensors.back());
    }
    std::vector<opsmith_value> values = attributes_.bound(given);
    opsmith_outputs outputs{sizeof(opsmith_outputs), &call, allocate, nullptr, nullptr};
    check_call(kernels().run(&op, values.data(), static_cast<int64_t>(values.size()), &outputs), call.error);
    if (call.given < call.outputs) {
      throw Failure("the node has " + std::to_string(call.outputs) + " outputs, the operator " + std::to_string(call.given) + " results");
    }
  }

  const opsmith_operator &op;

 private:
  Attributes attributes_;
};

// A registered operator. The table is its first part, so that functions of the table find the rest.
struct Operator : OrtCustomOp {
  const opsmith_operator *op = nullptr;
  std::vector<int> inputs;
  std::vector<int> types;
};

const Operator &of(const OrtCustomOp *table) { return *static_cast<const Operator *>(table); }

// The inputs of a node: behind the first list all are one of any number.
std::vector<int> inputs_of(const opsmith_operator &op) {
  std::vector<int> found;
  for (int64_t at = 0; at < op.argument_count; ++at) {
    std::string type = op.arguments[at].type;
    if (type == "Tensor" || type == "Tensor?") {
      found.push_back(op.arguments[at].optional != 0 || op.arguments[at].has_default != 0 ? ORT_OPTIONAL : ORT_REQUIRED);
    } else if (type.rfind("Tensor", 0) == 0) {
      found.push_back(ORT_VARIADIC);
      break;
    }
  }
  return found;
}

OrtStatus *create(const OrtCustomOp *table, const OrtApi *api, const OrtKernelInfo *node, void **kernel) {
  const opsmith_operator &op = *of(table).op;
  return status_of(*api, op.name, [&] { *kernel = new Node(op, node); });
}

OrtStatus *compute(void *kernel, OrtKernelContext *call) {
  const Node &node = *static_cast<const Node *>(kernel);
  return status_of(ort(), node.op.name, [&] { node.run(call); });
}

OrtStatus *infer_shapes(const OrtCustomOp *table, OrtShapeInferContext *node) {
  const opsmith_operator &op = *of(table).op;
  return status_of(ort(), op.name, [&] { infer_node(op, node); });
}

std::unique_ptr<Operator> made(const Row &row) {
  auto made = std::make_unique<Operator>();
  made->op = kernels().find(row.name);
  if (made->op == nullptr) {
    throw Failure(std::string("the library of kernels has no operator `") + row.name + "`; build it again");
  }
  made->inputs = inputs_of(*made->op);
  made->types = made->op->gives_list != 0 ? std::vector<int>{0} : row.types;
  made->version = ORT_VERSION;
  made->GetName = [](const OrtCustomOp *table) { return of(table).op->name; };
  made->GetExecutionProviderType = [](const OrtCustomOp *) -> const char * { return nullptr; };
  made->GetInputType = [](const OrtCustomOp *, size_t) { return 0; };
  made->GetInputTypeCount = [](const OrtCustomOp *table) { return of(table).inputs.size(); };
  made->GetOutputType = [](const OrtCustomOp *table, size_t at) { return at < of(table).types.size() ? of(table).types[at] : 0; };
  made->GetOutputTypeCount = [](const OrtCustomOp *table) { return of(table).types.size(); };
  made->KernelDestroy = [](void *kernel) { delete static_cast<Node *>(kernel); };
  made->GetInputCharacteristic = [](const OrtCustomOp *table, size_t at) { return at < of(table).inputs.size() ? of(table).inputs[at] : 0; };
  // An optional output may be left out, and have any element type.
  made->GetOutputCharacteristic = [](const OrtCustomOp *table, size_t) -> int { return of(table).op->gives_list != 0 ? ORT_VARIADIC : ORT_OPTIONAL; };
  made->GetInputMemoryType = [](const OrtCustomOp *, size_t) { return 0; };
  made->GetVariadicInputMinArity = [](const OrtCustomOp *) { return 1; };
  // Lists have tensors of any element types, as have the inputs behind them.
  made->GetVariadicInputHomogeneity = [](const OrtCustomOp *) { return 0; };
  made->GetVariadicOutputMinArity = [](const OrtCustomOp *) { return 1; };
  made->GetVariadicOutputHomogeneity = [](const OrtCustomOp *) { return 0; };
  made->CreateKernelV2 = create;
  made->KernelComputeV2 = compute;
  made->InferOutputShapeFn = infer_shapes;
  made->GetStartVersion = [](const OrtCustomOp *) { return 1; };
  made->GetEndVersion = [](const OrtCustomOp *) { return INT_MAX; };
  return made;
}

// The operators, as long as the process lives, and the domain of each table of ONNX Runtime.
OrtCustomOpDomain *domain() {
  static std::mutex lock;
  static auto &operators = *new std::vector<std::unique_ptr<Operator>>();
  static auto &domains = *new std::map<const OrtApi *, OrtCustomOpDomain *>();
  std::lock_guard<std::mutex> guard(lock);
  if (operators.empty()) {
    std::vector<std::unique_ptr<Operator>> all;
    for (const Row &row : ROWS) {
      all.push_back(made(row));
    }
    operators = std::move(all);
  }
  OrtCustomOpDomain *&found = domains[&ort()];
  if (found == nullptr) {
    OrtCustomOpDomain *made = nullptr;
    check(ort().CreateCustomOpDomain(DOMAIN_NAME, &made));
    for (const auto &one : operators) {
      check(ort().CustomOpDomain_Add(made, one.get()));
    }
    found = made;
  }
  return found;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base) {
  const OrtApi *api = base->GetApi(ORT_VERSION);
  if (api == nullptr) {
    // Functions for statuses are those of the first version.
    const OrtApi *first = base->GetApi(1);
    return first == nullptr ? nullptr : first->CreateStatus(ORT_NOT_THERE, "{{ library }} needs ONNX Runtime 1.17 or newer");
  }
  CURRENT.store(api, std::memory_order_release);
  return status_of(*api, "{{ library }}", [&] { check(ort().AddCustomOpDomain(options, domain())); });
}
