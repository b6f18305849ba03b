// {{ generated }}
//
// Rules of shapes and dtypes for CANN's inference, in terms of its contexts. A size that is not known is -1 there; a shape whose number of
// dimensions is not known has the only size -2. A rule that would have to decide something by such a size leaves the shape open.
#ifndef OPSMITH_CANN_RULES_H
#define OPSMITH_CANN_RULES_H

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "register/op_def_registry.h"

namespace opsmith_cann {

constexpr int64_t UNKNOWN_SIZE = -1;
constexpr int64_t UNKNOWN_RANK = -2;
// The value of an integer that a call leaves out.
constexpr int64_t ABSENT = std::numeric_limits<int64_t>::min();

// A decision depends on a size that is not known.
struct Unknown {};

// A call is refused, for the reason in the text.
struct Refused {
  std::string text;
};

// An integer; one that is computed from a size that is not known is not known.
class Number {
 public:
  Number(int64_t value) : value_(value) {}
  static Number unknown() {
    Number made(0);
    made.is_known_ = false;
    return made;
  }
  bool is_known() const { return is_known_; }
  int64_t value() const {
    if (!is_known_) {
      throw Unknown();
    }
    return value_;
  }

 private:
  int64_t value_;
  bool is_known_ = true;
};

template <typename Function>
Number combined(const Number &a, const Number &b, Function function) {
  return a.is_known() && b.is_known() ? Number(function(a.value(), b.value())) : Number::unknown();
}

inline int64_t divisor(int64_t value) {
  if (value == 0) {
    throw Refused{"a size is divided by zero"};
  }
  return value;
}

inline Number operator+(const Number &a, const Number &b) {
  return combined(a, b, [](int64_t x, int64_t y) { return x + y; });
}
inline Number operator-(const Number &a, const Number &b) {
  return combined(a, b, [](int64_t x, int64_t y) { return x - y; });
}
inline Number operator*(const Number &a, const Number &b) {
  return combined(a, b, [](int64_t x, int64_t y) { return x * y; });
}
inline Number operator/(const Number &a, const Number &b) {
  return combined(a, b, [](int64_t x, int64_t y) { return x / divisor(y); });
}
inline Number operator%(const Number &a, const Number &b) {
  return combined(a, b, [](int64_t x, int64_t y) { return x % divisor(y); });
}
inline Number operator-(const Number &a) { return Number(0) - a; }
inline bool operator==(const Number &a, const Number &b) { return a.value() == b.value(); }
inline bool operator!=(const Number &a, const Number &b) { return a.value() != b.value(); }
inline bool operator<(const Number &a, const Number &b) { return a.value() < b.value(); }
inline bool operator<=(const Number &a, const Number &b) { return a.value() <= b.value(); }
inline bool operator>(const Number &a, const Number &b) { return a.value() > b.value(); }
inline bool operator>=(const Number &a, const Number &b) { return a.value() >= b.value(); }

using Numbers = std::vector<Number>;
using Optional = std::optional<Numbers>;

// A dimension of a tensor, counted from the end if it is negative. A tensor without dimensions counts as one with one.
inline size_t place(const Number &dim, size_t rank) {
  int64_t count = static_cast<int64_t>(std::max<size_t>(rank, 1)), at = dim.value();
  if (at < -count || at >= count) {
    throw Refused{"dimension " + std::to_string(at) + " is out of range for a tensor with " + std::to_string(rank) + " dimensions"};
  }
  return static_cast<size_t>(at < 0 ? at + count : at);
}

template <typename T>
const T &item(const std::vector<T> &list, const Number &at) {
  int64_t count = static_cast<int64_t>(list.size()), wrapped = at.value() < 0 ? at.value() + count : at.value();
  if (wrapped < 0 || wrapped >= count) {
    throw Refused{"a list of " + std::to_string(count) + " items has no item " + std::to_string(at.value())};
  }
  return list[static_cast<size_t>(wrapped)];
}

// The dtypes, with those that rules derive from each.
struct Row {
  ge::DataType type;
  int category;  // truth values, integers, floats, complex numbers
  ge::DataType real, opmath, complex;
};

constexpr Row ROWS[] = {
{{ rows }}
};
constexpr int COUNT = static_cast<int>(sizeof(ROWS) / sizeof(ROWS[0]));

// The promoted dtype of two, by their places in ROWS; -1 if there is none.
constexpr int PROMOTED[][COUNT] = {
{{ promoted }}
};

inline int row_of(ge::DataType type) {
  for (int at = 0; at < COUNT; ++at) {
    if (ROWS[at].type == type) {
      return at;
    }
  }
  throw Refused{"an element type is not known"};
}

inline int category(ge::DataType type) { return ROWS[row_of(type)].category; }
inline bool is_int(ge::DataType type) { return category(type) == 1; }
inline bool is_float(ge::DataType type) { return category(type) == 2; }
inline bool is_complex(ge::DataType type) { return category(type) == 3; }

// A tensor of a call. In inference of dtypes its sizes are not known.
struct Tensor {
  bool is_there = false;
  bool is_ranked = false;
  Numbers known;
  ge::DataType type = ge::DT_UNDEFINED;

  const Numbers &sizes() const {
    if (!is_ranked) {
      throw Unknown();
    }
    return known;
  }
  Number dim() const { return static_cast<int64_t>(sizes().size()); }
  Number size(const Number &at) const {
    size_t found = place(at, sizes().size());
    if (known.empty()) {
      throw Refused{"a tensor without dimensions has no sizes"};
    }
    return known[found];
  }
  Number numel() const {
    Number all = 1;
    for (const Number &size : sizes()) {
      all = all * size;
    }
    return all;
  }
  ge::DataType dtype() const { return type; }
};

using Tensors = std::vector<Tensor>;
using Operands = std::vector<const Tensor *>;

inline void add_operand(Operands &all, const Tensor &one) {
  if (one.is_there) {
    all.push_back(&one);
  }
}
inline void add_operand(Operands &all, const Tensors &list) {
  for (const Tensor &one : list) {
    add_operand(all, one);
  }
}
template <typename... Args>
Operands operands(const Args &...args) {
  Operands all;
  (add_operand(all, args), ...);
  return all;
}

// Refuses a shape of more elements than memory can hold.
inline Numbers checked(Numbers sizes) {
  int64_t count = 1;
  bool is_empty = std::any_of(sizes.begin(), sizes.end(), [](const Number &size) { return size.is_known() && size.value() == 0; });
  for (const Number &size : sizes) {
    if (!size.is_known() || is_empty) {
      continue;
    }
    if (size.value() < 0 || count > std::numeric_limits<int64_t>::max() / size.value()) {
      throw Refused{size.value() < 0 ? "a size is negative" : "a result has too many elements"};
    }
    count *= size.value();
  }
  return sizes;
}

inline Number broadcast_size(const Number &a, const Number &b) {
  if (!a.is_known() || !b.is_known()) {
    const Number &known = a.is_known() ? a : b;
    return known.is_known() && known.value() != 1 ? known : Number::unknown();
  }
  if (a.value() != b.value() && a.value() != 1 && b.value() != 1) {
    throw Refused{"the sizes " + std::to_string(a.value()) + " and " + std::to_string(b.value()) + " do not broadcast"};
  }
  return a.value() == 1 ? b : a;
}

inline Numbers broadcast_two(const Numbers &a, const Numbers &b) {
  size_t rank = std::max(a.size(), b.size());
  Numbers result;
  for (size_t at = 0; at < rank; ++at) {
    Number left = at + a.size() < rank ? Number(1) : a[at + a.size() - rank];
    Number right = at + b.size() < rank ? Number(1) : b[at + b.size() - rank];
    result.push_back(broadcast_size(left, right));
  }
  return result;
}

inline Number unified(const Number &a, const Number &b) {
  if (a.is_known() && b.is_known() && a.value() != b.value()) {
    throw Refused{"the sizes " + std::to_string(a.value()) + " and " + std::to_string(b.value()) + " differ"};
  }
  return a.is_known() ? a : b;
}

inline Numbers follow(const Tensor &tensor) { return tensor.sizes(); }

inline Numbers broadcast(const Operands &all) {
  Numbers result;
  bool is_first = true;
  for (const Tensor *one : all) {
    result = is_first ? one->sizes() : broadcast_two(result, one->sizes());
    is_first = false;
  }
  return checked(result);
}

inline Numbers reduce(const Tensor &tensor, const Optional &dims, bool keep) {
  const Numbers &sizes = tensor.sizes();
  std::vector<bool> reduced(std::max<size_t>(sizes.size(), 1), !dims || dims->empty());
  for (const Number &dim : dims.value_or(Numbers())) {
    size_t at = place(dim, sizes.size());
    if (reduced[at]) {
      throw Refused{"dimension " + std::to_string(dim.value()) + " is given twice"};
    }
    reduced[at] = true;
  }
  Numbers result;
  for (size_t at = 0; at < sizes.size(); ++at) {
    if (!reduced[at]) {
      result.push_back(sizes[at]);
    } else if (keep) {
      result.push_back(1);
    }
  }
  return result;
}

inline Numbers matmul(const Tensor &left, const Tensor &right) {
  const Numbers &a = left.sizes(), &b = right.sizes();
  if (a.empty() || b.empty()) {
    throw Refused{"a matrix product needs operands with at least one dimension"};
  }
  unified(a.back(), b[b.size() < 2 ? 0 : b.size() - 2]);
  size_t before_a = a.size() < 2 ? 0 : a.size() - 2, before_b = b.size() < 2 ? 0 : b.size() - 2;
  auto begin = [](const Numbers &list, size_t count) { return Numbers(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count)); };
  Numbers result = broadcast_two(begin(a, before_a), begin(b, before_b));
  if (a.size() >= 2) {
    result.push_back(a[a.size() - 2]);
  }
  if (b.size() >= 2) {
    result.push_back(b.back());
  }
  return checked(result);
}

inline bool is_empty_vector(const Numbers &sizes) { return sizes.size() == 1 && sizes[0] == 0; }

inline Numbers cat(const Tensors &tensors, const Number &dim) {
  if (tensors.empty()) {
    throw Refused{"an empty list of tensors cannot be joined"};
  }
  const Tensor *first = &tensors[0];
  for (const Tensor &one : tensors) {
    if (one.sizes().size() != 1) {
      first = &one;
      break;
    }
  }
  Numbers result = first->sizes();
  size_t at = place(dim, result.size());
  if (result.empty()) {
    throw Refused{"tensors without dimensions cannot be joined"};
  }
  result[at] = 0;
  for (const Tensor &one : tensors) {
    const Numbers &sizes = one.sizes();
    if (result.size() != 1 && is_empty_vector(sizes)) {
      continue;
    }
    if (sizes.size() != result.size()) {
      throw Refused{"tensors of different numbers of dimensions cannot be joined"};
    }
    for (size_t other = 0; other < sizes.size(); ++other) {
      result[other] = other == at ? result[other] + sizes[other] : unified(result[other], sizes[other]);
    }
  }
  return checked(result);
}

inline Numbers full(const Numbers &sizes) { return checked(sizes); }

inline ge::DataType promoted(ge::DataType a, ge::DataType b) {
  int found = PROMOTED[row_of(a)][row_of(b)];
  if (found < 0) {
    throw Refused{"two element types have no common one"};
  }
  return ROWS[found].type;
}

inline ge::DataType same(const Operands &all) {
  for (const Tensor *one : all) {
    if (one->type != all[0]->type) {
      throw Refused{"the operands have different element types"};
    }
  }
  return all.empty() ? ge::DT_FLOAT : all[0]->type;
}

// Tensors count as ones with dimensions: CANN infers dtypes without shapes. A number changes the dtype if its category is higher.
inline ge::DataType promote(const Operands &all, int number = 0) {
  ge::DataType result = all.empty() ? ge::DT_FLOAT : all[0]->type;
  for (const Tensor *one : all) {
    result = promoted(result, one->type);
  }
  if (category(result) >= number) {
    return result;
  }
  return number == 1 ? ge::DT_INT64 : ge::DT_FLOAT;
}

inline ge::DataType floating(ge::DataType type) { return category(type) < 2 ? ge::DT_FLOAT : type; }
inline ge::DataType promote_float(const Operands &all, int number = 0) { return floating(promote(all, number)); }
inline ge::DataType real(ge::DataType type) { return ROWS[row_of(type)].real; }
inline ge::DataType opmath(ge::DataType type) { return ROWS[row_of(type)].opmath; }
inline ge::DataType complex(ge::DataType type) { return ROWS[row_of(type)].complex; }
inline ge::DataType accumulate(ge::DataType type, const std::optional<ge::DataType> &given) {
  return given.value_or(category(type) < 2 ? ge::DT_INT64 : type);
}
inline ge::DataType or_default(const std::optional<ge::DataType> &given) { return given.value_or(ge::DT_FLOAT); }

inline bool contains(const Numbers &list, const Number &value) { return std::find(list.begin(), list.end(), value) != list.end(); }
inline Numbers concat(Numbers list, const Numbers &rest) {
  list.insert(list.end(), rest.begin(), rest.end());
  return list;
}
// One integer stands for as many as a list has.
inline Numbers repeated(const Numbers &list, size_t length) { return list.size() == 1 ? Numbers(length, list[0]) : list; }
inline Optional repeated(const std::optional<Number> &value, size_t length) {
  return value ? Optional(Numbers(length, *value)) : std::nullopt;
}
template <typename T>
const T &given(const std::optional<T> &value) {
  if (!value) {
    throw Refused{"an argument is absent"};
  }
  return *value;
}

inline Tensor described(const gert::Shape *shape) {
  Tensor made;
  made.is_there = shape != nullptr;
  if (shape == nullptr) {
    return made;
  }
  made.is_ranked = true;
  for (size_t at = 0; at < shape->GetDimNum(); ++at) {
    int64_t size = shape->GetDim(at);
    made.is_ranked = made.is_ranked && size != UNKNOWN_RANK;
    made.known.push_back(size < 0 ? Number::unknown() : Number(size));
  }
  return made;
}

// The tensors of a call, by the places of its inputs: sizes in inference of shapes, dtypes in inference of dtypes.
template <typename Tag, typename Type>
Tensor with_type(Tensor tensor, const Tag *tag, Type type) {
  tensor.type = tag == nullptr ? ge::DT_UNDEFINED : type(*tag);
  return tensor;
}
inline Tensor described(const gert::Shape *shape, const gert::CompileTimeTensorDesc *tag) {
  return with_type(described(shape), tag, [](const gert::CompileTimeTensorDesc &one) { return one.GetDataType(); });
}
inline Tensor required(const gert::InferShapeContext *context, size_t at) {
  return described(context->GetRequiredInputShape(at), context->GetRequiredInputDesc(at));
}
inline Tensor optional(const gert::InferShapeContext *context, size_t at) {
  return described(context->GetOptionalInputShape(at), context->GetOptionalInputDesc(at));
}
inline Tensors dynamic(const gert::InferShapeContext *context, size_t at) {
  Tensors all;
  const gert::AnchorInstanceInfo *info = context->GetIrInputInstanceInfo(at);
  for (size_t item = 0; info != nullptr && item < info->GetInstanceNum(); ++item) {
    all.push_back(described(context->GetDynamicInputShape(at, item), context->GetDynamicInputDesc(at, item)));
  }
  return all;
}

inline Tensor typed(ge::DataType type) {
  Tensor made;
  made.is_there = type != ge::DT_UNDEFINED;
  made.type = type;
  return made;
}
inline Tensor required(const gert::InferDataTypeContext *context, size_t at) { return typed(context->GetRequiredInputDataType(at)); }
inline Tensor optional(const gert::InferDataTypeContext *context, size_t at) { return typed(context->GetOptionalInputDataType(at)); }
inline Tensors dynamic(const gert::InferDataTypeContext *context, size_t at) {
  Tensors all;
  const gert::AnchorInstanceInfo *info = context->GetIrInputInstanceInfo(at);
  for (size_t item = 0; info != nullptr && item < info->GetInstanceNum(); ++item) {
    all.push_back(typed(context->GetDynamicInputDataType(at, item)));
  }
  return all;
}

// The attributes of a call, by their places.
template <typename T>
T read(const T *value) {
  if (value == nullptr) {
    throw Refused{"an attribute is missing"};
  }
  return *value;
}
template <typename Context>
Number integer(const Context *context, size_t at) {
  return read(context->GetAttrs()->GetInt(at));
}
template <typename Context>
std::optional<Number> optional_integer(const Context *context, size_t at) {
  int64_t value = read(context->GetAttrs()->GetInt(at));
  return value == ABSENT ? std::nullopt : std::optional<Number>(value);
}
template <typename Context>
double real_number(const Context *context, size_t at) {
  return static_cast<double>(read(context->GetAttrs()->GetFloat(at)));
}
template <typename Context>
bool truth(const Context *context, size_t at) {
  return read(context->GetAttrs()->GetBool(at));
}
template <typename Context>
std::string text(const Context *context, size_t at) {
  const char *found = context->GetAttrs()->GetStr(at);
  return found == nullptr ? std::string() : std::string(found);
}
template <typename Context>
Numbers integers(const Context *context, size_t at) {
  const auto *list = context->GetAttrs()->GetListInt(at);
  return list == nullptr ? Numbers() : Numbers(list->GetData(), list->GetData() + list->GetSize());
}
// A list without items is an absent one.
template <typename Context>
Optional optional_integers(const Context *context, size_t at) {
  Numbers list = integers(context, at);
  return list.empty() ? std::nullopt : Optional(list);
}
template <typename Context>
ge::DataType element_type(const Context *context, size_t at) {
  return static_cast<ge::DataType>(read(context->GetAttrs()->GetInt(at)));
}
template <typename Context>
std::optional<ge::DataType> optional_element_type(const Context *context, size_t at) {
  ge::DataType type = element_type(context, at);
  return type == ge::DT_UNDEFINED ? std::nullopt : std::optional<ge::DataType>(type);
}

// Refuses a call that does not meet a condition; one that depends on sizes that are not known is left to the kernel.
template <typename Condition>
void require(Condition condition, const char *text) {
  bool holds = true;
  try {
    holds = condition();
  } catch (const Unknown &) {
    return;
  }
  if (!holds) {
    throw Refused{std::string("it needs ") + text};
  }
}

inline void set(gert::InferShapeContext *context, size_t at, const Numbers &sizes) {
  gert::Shape *shape = context->GetOutputShape(at);
  if (shape == nullptr) {
    throw Refused{"an output is missing"};
  }
  shape->SetDimNum(0);
  for (const Number &size : sizes) {
    shape->AppendDim(size.is_known() ? size.value() : UNKNOWN_SIZE);
  }
}

// Sets the shape of an output, which stays open if its rule cannot decide it.
template <typename Rule>
void set_shape(gert::InferShapeContext *context, size_t at, Rule rule) {
  try {
    set(context, at, rule());
  } catch (const Unknown &) {
    gert::Shape *shape = context->GetOutputShape(at);
    if (shape != nullptr) {
      shape->SetDimNum(0);
      shape->AppendDim(UNKNOWN_RANK);
    }
  }
}

template <typename Function>
ge::graphStatus outcome(const char *name, Function function) {
  try {
    function();
    return ge::GRAPH_SUCCESS;
  } catch (const Refused &refused) {
    std::fprintf(stderr, "%s: %s\n", name, refused.text.c_str());
  } catch (const Unknown &) {
    std::fprintf(stderr, "%s: a dtype depends on sizes, which CANN does not tell\n", name);
  }
  return ge::GRAPH_FAILED;
}

}  // namespace opsmith_cann

#endif
