// output = sum over `axis` of (x + y), for matrices of float32. In: x, y of one shape. Out: the sums, with
// the summed dimension as 1 if `keep_dim`. Workspace: x + y.

#include <vector>

#include "custom_aot_extra.h"

namespace {

struct Attributes : AotKernelData {
  int64_t axis = 0;
  bool keep_dim = false;
};

int64_t Count(int ndim, const int64_t *shape) {
  int64_t count = 1;
  for (int i = 0; i < ndim; ++i) count *= shape[i];
  return count;
}

// The attribute may be left out.
bool KeepDim(AotExtra *extra) { return extra->HasAttr("keep_dim") && extra->Attr<bool>("keep_dim"); }

}  // namespace

extern "C" int CustomKernelInit(int *ndims, int64_t **shapes, const char **, AotExtra *extra) {
  extra->SetWorkSpace({static_cast<size_t>(Count(ndims[0], shapes[0])) * sizeof(float)});
  auto *attributes = new Attributes;
  attributes->axis = extra->Attr<int64_t>("axis");
  attributes->keep_dim = KeepDim(extra);
  extra->SetKernelData(attributes);
  return ndims[0] == 2 ? 0 : 1;
}

extern "C" std::vector<int64_t> CustomKernelInferShape(int *, int64_t **shapes, AotExtra *extra) {
  // The only entry of a shape whose number of dimensions is not known.
  const int64_t unknown_rank = -2;
  if (shapes[0][0] == unknown_rank) return {unknown_rank};
  const int64_t axis = extra->Attr<int64_t>("axis");
  if (!KeepDim(extra)) return {shapes[0][1 - axis]};
  std::vector<int64_t> shape = {shapes[0][0], shapes[0][1]};
  shape[axis] = 1;
  return shape;
}

extern "C" int CustomKernel(int nparam, void **params, int *ndims, int64_t **shapes, const char **, void *,
                            void *extra_void) {
  if (nparam != 4) return 2;
  auto *x = static_cast<const float *>(params[0]);
  auto *y = static_cast<const float *>(params[1]);
  auto *output = static_cast<float *>(params[2]);
  auto *sum = static_cast<float *>(params[3]);
  const auto *attributes = static_cast<Attributes *>(static_cast<AotExtra *>(extra_void)->KernelData());
  const int64_t count = Count(ndims[0], shapes[0]), rows = shapes[0][0], columns = shapes[0][1];
  for (int64_t i = 0; i < count; ++i) sum[i] = x[i] + y[i];
  // Along a row elements follow each other, along a column they are a row apart.
  const bool rowwise = attributes->axis == 1;
  const int64_t outer = rowwise ? rows : columns, inner = rowwise ? columns : rows;
  const int64_t outer_step = rowwise ? columns : 1, inner_step = rowwise ? 1 : columns;
  for (int64_t i = 0; i < outer; ++i) {
    double total = 0;
    for (int64_t j = 0; j < inner; ++j) total += sum[i * outer_step + j * inner_step];
    output[i] = static_cast<float>(total);
  }
  return 0;
}
