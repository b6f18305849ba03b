// Runs the inference of definitions that were compiled with the stand-in. It reads calls, of words between spaces:
//   TYPE INPUTS { INSTANCES { DTYPE RANK SIZE… }… }… ATTRIBUTES { default | VALUE | COUNT VALUE… }…
// and prints a line for each: `refused`, or for each output `DTYPE:SIZE,…`. Before, it checks each definition.

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "register/op_def_registry.h"

namespace {

void fail(const std::string &name, const char *text) {
  std::printf("%s: %s\n", name.c_str(), text);
  std::exit(1);
}

const ops::OpParamDef *input_of(const ops::OpDef &op, const std::string &name, size_t &place) {
  for (place = 0; place < op.inputs.size(); ++place) {
    if (op.inputs[place]->name == name) {
      return op.inputs[place].get();
    }
  }
  return nullptr;
}

// All lists of dtypes and formats have one length; a source that is followed is a required input; all facts of outputs are given.
void check(const ops::OpDef &op) {
  size_t count = 0;
  auto aligned = [&](size_t length) {
    count = count == 0 ? length : count;
    return length == count;
  };
  for (const auto &one : op.inputs) {
    if (!aligned(one->types.size()) || !aligned(one->formats.size()) || one->types.empty()) {
      fail(op.name, "lists of an input are not aligned");
    }
  }
  for (const auto &one : op.outputs) {
    bool has_shape = op.shapes_ != nullptr, has_type = op.types_ != nullptr;
    if (!one->followed.empty()) {
      size_t place = 0;
      const ops::OpParamDef *source = input_of(op, one->followed, place);
      if (source == nullptr || source->kind != ops::REQUIRED) {
        fail(op.name, "an output follows no required input");
      }
      bool follows_shape = one->follow == ops::FollowType::ALL || one->follow == ops::FollowType::SHAPE;
      if (follows_shape && has_shape) {
        fail(op.name, "an output follows a shape beside inference of shapes");
      }
      has_shape = has_shape || follows_shape;
      has_type = has_type || one->follow == ops::FollowType::ALL || one->follow == ops::FollowType::DTYPE;
    }
    bool follows_type = !one->followed.empty() && one->follow != ops::FollowType::SHAPE;
    if (!has_shape || !has_type || (!follows_type && !aligned(one->types.size()))) {
      fail(op.name, "the shape or the dtype of an output is not given");
    }
  }
  for (const auto &one : op.attrs) {
    if (one->type == ' ' || (one->kind != ops::REQUIRED && one->kind != ops::OPTIONAL)) {
      fail(op.name, "an attribute has no type");
    }
  }
}

void read_inputs(std::istream &in, gert::ExtendedKernelContext &context) {
  size_t inputs = 0;
  in >> inputs;
  context.inputs.resize(inputs);
  context.infos.resize(inputs);
  for (size_t at = 0; at < inputs; ++at) {
    size_t instances = 0;
    in >> instances;
    context.infos[at].count = instances;
    for (size_t item = 0; item < instances; ++item) {
      gert::Instance made;
      int type = 0;
      size_t rank = 0;
      in >> type >> rank;
      made.desc.type = static_cast<ge::DataType>(type);
      for (size_t dim = 0; dim < rank; ++dim) {
        int64_t size = 0;
        in >> size;
        made.shape.AppendDim(size);
      }
      context.inputs[at].push_back(made);
    }
  }
}

void read_attributes(std::istream &in, const ops::OpDef &op, gert::ExtendedKernelContext &context) {
  size_t count = 0;
  in >> count;
  if (count != op.attrs.size()) {
    fail(op.name, "the call has another number of attributes");
  }
  for (const auto &attr : op.attrs) {
    gert::Value value = attr->initial;
    std::string word;
    in >> word;
    if (word == "default" && attr->kind == ops::REQUIRED) {
      fail(op.name, "a call has to give an attribute");
    }
    if (word != "default") {
      value.integers.items.clear();
      switch (attr->type) {
        case 'I':
          value.integer = std::stoll(word);
          break;
        case 'F':
          value.real = std::stof(word);
          break;
        case 'B':
          value.truth = word != "0";
          break;
        case 'S':
          value.text = word;
          break;
        default:
          for (int64_t left = std::stoll(word); left > 0; --left) {
            in >> word;
            value.integers.items.push_back(std::stoll(word));
          }
      }
    }
    context.attrs.values.push_back(value);
  }
}

void run(const ops::OpDef &op, std::istream &in) {
  gert::ExtendedKernelContext given;
  read_inputs(in, given);
  read_attributes(in, op, given);
  gert::InferShapeContext shapes;
  gert::InferDataTypeContext types;
  static_cast<gert::ExtendedKernelContext &>(shapes) = given;
  static_cast<gert::ExtendedKernelContext &>(types) = given;
  shapes.outputs.resize(op.outputs.size());
  types.outputs.resize(op.outputs.size(), ge::DT_UNDEFINED);
  for (size_t at = 0; at < op.outputs.size(); ++at) {
    const ops::OpParamDef &output = *op.outputs[at];
    size_t place = 0;
    if (!output.followed.empty() && input_of(op, output.followed, place) != nullptr && !given.inputs[place].empty()) {
      shapes.outputs[at] = given.inputs[place][0].shape;
      types.outputs[at] = given.inputs[place][0].desc.type;
    }
  }
  if ((op.shapes_ != nullptr && op.shapes_(&shapes) != ge::GRAPH_SUCCESS) ||
      (op.types_ != nullptr && op.types_(&types) != ge::GRAPH_SUCCESS)) {
    std::printf("refused\n");
    return;
  }
  for (size_t at = 0; at < op.outputs.size(); ++at) {
    std::printf("%s%d:", at == 0 ? "" : " ", static_cast<int>(types.outputs[at]));
    for (size_t dim = 0; dim < shapes.outputs[at].GetDimNum(); ++dim) {
      std::printf("%s%lld", dim == 0 ? "" : ",", static_cast<long long>(shapes.outputs[at].GetDim(dim)));
    }
  }
  std::printf("\n");
}

}  // namespace

int main() {
  for (const auto &[name, op] : ops::registry()) {
    check(*op);
  }
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string name;
    in >> name;
    auto found = ops::registry().find(name);
    if (found == ops::registry().end()) {
      fail(name, "there is no such definition");
    }
    run(*found->second, in);
  }
  return 0;
}
