// A stand-in for CANN's header of this name, for tests: the names that definitions use, with enough behind them that their inference runs.
// It was written from descriptions of the interface, and says nothing about CANN itself.
#ifndef REGISTER_OP_DEF_REGISTRY_H
#define REGISTER_OP_DEF_REGISTRY_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ge {
using graphStatus = uint32_t;
constexpr graphStatus GRAPH_SUCCESS = 0;
constexpr graphStatus GRAPH_FAILED = 0xFFFFFFFF;
enum DataType {
  DT_FLOAT = 0,
  DT_FLOAT16 = 1,
  DT_INT8 = 2,
  DT_INT32 = 3,
  DT_UINT8 = 4,
  DT_INT16 = 6,
  DT_UINT16 = 7,
  DT_UINT32 = 8,
  DT_INT64 = 9,
  DT_UINT64 = 10,
  DT_DOUBLE = 11,
  DT_BOOL = 12,
  DT_COMPLEX64 = 16,
  DT_COMPLEX128 = 17,
  DT_BF16 = 27,
  DT_UNDEFINED = 28
};
enum Format { FORMAT_ND = 2 };
}  // namespace ge

namespace gert {
class Shape {
 public:
  size_t GetDimNum() const { return sizes_.size(); }
  int64_t GetDim(size_t at) const { return sizes_.at(at); }
  void SetDimNum(size_t count) { sizes_.resize(count); }
  Shape &AppendDim(int64_t size) {
    sizes_.push_back(size);
    return *this;
  }

 private:
  std::vector<int64_t> sizes_;
};

class CompileTimeTensorDesc {
 public:
  ge::DataType GetDataType() const { return type; }
  ge::DataType type = ge::DT_UNDEFINED;
};

class AnchorInstanceInfo {
 public:
  size_t GetInstanceNum() const { return count; }
  size_t count = 0;
};

template <typename T>
class TypedContinuousVector {
 public:
  size_t GetSize() const { return items.size(); }
  const T *GetData() const { return items.data(); }
  std::vector<T> items;
};

// An attribute of a call.
struct Value {
  int64_t integer = 0;
  float real = 0;
  bool truth = false;
  std::string text;
  TypedContinuousVector<int64_t> integers;
};

class RuntimeAttrs {
 public:
  const int64_t *GetInt(size_t at) const { return at < values.size() ? &values[at].integer : nullptr; }
  const float *GetFloat(size_t at) const { return at < values.size() ? &values[at].real : nullptr; }
  const bool *GetBool(size_t at) const { return at < values.size() ? &values[at].truth : nullptr; }
  const char *GetStr(size_t at) const { return at < values.size() ? values[at].text.c_str() : nullptr; }
  const TypedContinuousVector<int64_t> *GetListInt(size_t at) const { return at < values.size() ? &values[at].integers : nullptr; }
  std::vector<Value> values;
};

// The tensors of a call: of each input of a definition its instances.
struct Instance {
  Shape shape;
  CompileTimeTensorDesc desc;
};

class ExtendedKernelContext {
 public:
  const RuntimeAttrs *GetAttrs() const { return &attrs; }
  const AnchorInstanceInfo *GetIrInputInstanceInfo(size_t at) const { return at < infos.size() ? &infos[at] : nullptr; }
  const CompileTimeTensorDesc *GetRequiredInputDesc(size_t at) const { return desc(at, 0); }
  const CompileTimeTensorDesc *GetOptionalInputDesc(size_t at) const { return desc(at, 0); }
  const CompileTimeTensorDesc *GetDynamicInputDesc(size_t at, size_t item) const { return desc(at, item); }

  RuntimeAttrs attrs;
  std::vector<std::vector<Instance>> inputs;
  std::vector<AnchorInstanceInfo> infos;

 protected:
  const Instance *instance(size_t at, size_t item) const {
    return at < inputs.size() && item < inputs[at].size() ? &inputs[at][item] : nullptr;
  }
  const CompileTimeTensorDesc *desc(size_t at, size_t item) const {
    const Instance *found = instance(at, item);
    return found == nullptr ? nullptr : &found->desc;
  }
};

class InferShapeContext : public ExtendedKernelContext {
 public:
  const Shape *GetRequiredInputShape(size_t at) const { return shape(at, 0); }
  const Shape *GetOptionalInputShape(size_t at) const { return shape(at, 0); }
  const Shape *GetDynamicInputShape(size_t at, size_t item) const { return shape(at, item); }
  Shape *GetOutputShape(size_t at) { return at < outputs.size() ? &outputs[at] : nullptr; }
  std::vector<Shape> outputs;

 private:
  const Shape *shape(size_t at, size_t item) const {
    const Instance *found = instance(at, item);
    return found == nullptr ? nullptr : &found->shape;
  }
};

class InferDataTypeContext : public ExtendedKernelContext {
 public:
  ge::DataType GetRequiredInputDataType(size_t at) const { return type(at, 0); }
  ge::DataType GetOptionalInputDataType(size_t at) const { return type(at, 0); }
  ge::DataType GetDynamicInputDataType(size_t at, size_t item) const { return type(at, item); }
  ge::graphStatus SetOutputDataType(size_t at, ge::DataType type) {
    outputs.at(at) = type;
    return ge::GRAPH_SUCCESS;
  }
  std::vector<ge::DataType> outputs;

 private:
  ge::DataType type(size_t at, size_t item) const {
    const CompileTimeTensorDesc *found = desc(at, item);
    return found == nullptr ? ge::DT_UNDEFINED : found->type;
  }
};
}  // namespace gert

namespace ops {
enum Option { IGNORE = 0, OPTIONAL = 1, REQUIRED = 2, DYNAMIC = 3, VIRTUAL = 4 };
enum class FollowType { ALL = 0, DTYPE = 1, FORMAT = 2, SHAPE = 3 };

class OpParamDef {
 public:
  explicit OpParamDef(const char *name) : name(name) {}
  OpParamDef &ParamType(Option value) {
    kind = value;
    return *this;
  }
  OpParamDef &DataType(std::vector<ge::DataType> list) {
    types = std::move(list);
    return *this;
  }
  OpParamDef &Format(std::vector<ge::Format> list) {
    formats = std::move(list);
    return *this;
  }
  OpParamDef &Follow(const char *source, FollowType value = FollowType::ALL) {
    followed = source;
    follow = value;
    return *this;
  }
  std::string name, followed;
  Option kind = REQUIRED;
  FollowType follow = FollowType::FORMAT;
  std::vector<ge::DataType> types;
  std::vector<ge::Format> formats;
};

class OpAttrDef {
 public:
  explicit OpAttrDef(const char *name) : name(name) {}
  OpAttrDef &AttrType(Option value) {
    kind = value;
    return *this;
  }
  OpAttrDef &Int() { return of('I'); }
  OpAttrDef &Int(int64_t value) {
    initial.integer = value;
    return of('I');
  }
  OpAttrDef &Float() { return of('F'); }
  OpAttrDef &Float(float value) {
    initial.real = value;
    return of('F');
  }
  OpAttrDef &Bool() { return of('B'); }
  OpAttrDef &Bool(bool value) {
    initial.truth = value;
    return of('B');
  }
  OpAttrDef &String() { return of('S'); }
  OpAttrDef &String(const char *value) {
    initial.text = value;
    return of('S');
  }
  OpAttrDef &ListInt() { return of('L'); }
  OpAttrDef &ListInt(std::vector<int64_t> value) {
    initial.integers.items = std::move(value);
    return of('L');
  }
  OpAttrDef &ListFloat() { return of('R'); }
  OpAttrDef &ListFloat(std::vector<float>) { return of('R'); }
  OpAttrDef &ListBool() { return of('T'); }
  OpAttrDef &ListBool(std::vector<bool>) { return of('T'); }
  std::string name;
  Option kind = REQUIRED;
  char type = ' ';
  gert::Value initial;

 private:
  OpAttrDef &of(char kind) {
    type = kind;
    return *this;
  }
};

// Parts of a definition keep their places while others are added.
class OpDef {
 public:
  using Shapes = ge::graphStatus (*)(gert::InferShapeContext *);
  using Types = ge::graphStatus (*)(gert::InferDataTypeContext *);
  explicit OpDef(const char *name) : name(name) {}
  OpParamDef &Input(const char *name) {
    inputs.push_back(std::make_unique<OpParamDef>(name));
    return *inputs.back();
  }
  OpParamDef &Output(const char *name) {
    outputs.push_back(std::make_unique<OpParamDef>(name));
    return *outputs.back();
  }
  OpAttrDef &Attr(const char *name) {
    attrs.push_back(std::make_unique<OpAttrDef>(name));
    return *attrs.back();
  }
  OpDef &SetInferShape(Shapes function) {
    shapes_ = function;
    return *this;
  }
  OpDef &SetInferDataType(Types function) {
    types_ = function;
    return *this;
  }
  std::string name;
  std::vector<std::unique_ptr<OpParamDef>> inputs, outputs;
  std::vector<std::unique_ptr<OpAttrDef>> attrs;
  Shapes shapes_ = nullptr;
  Types types_ = nullptr;
};

inline std::map<std::string, std::unique_ptr<OpDef>> &registry() {
  static std::map<std::string, std::unique_ptr<OpDef>> all;
  return all;
}

template <typename T>
int registered(const char *name) {
  registry().emplace(name, std::make_unique<T>(name));
  return 0;
}
}  // namespace ops

#define OP_ADD(kind) [[maybe_unused]] static const int registered_##kind = ops::registered<kind>(#kind)

#endif
