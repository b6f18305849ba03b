// A kernel that does nothing, with two inputs, a workspace and two attributes: the cost left is the call.

#include <vector>

#include "custom_aot_extra.h"

namespace {
struct Attributes : AotKernelData {
  int64_t axis = 0;
  bool keep_dim = false;
};
}  // namespace

extern "C" int NothingInit(int *, int64_t **shapes, const char **, AotExtra *extra) {
  extra->SetWorkSpace({static_cast<size_t>(shapes[0][0] * shapes[0][1]) * sizeof(float)});
  auto *attributes = new Attributes;
  attributes->axis = extra->Attr<int64_t>("axis");
  attributes->keep_dim = extra->Attr<bool>("keep_dim");
  extra->SetKernelData(attributes);
  return 0;
}

extern "C" std::vector<int64_t> NothingInferShape(int *, int64_t **shapes, AotExtra *) { return {shapes[0][0]}; }

extern "C" int Nothing(int, void **, int *, int64_t **, const char **, void *, void *) { return 0; }
