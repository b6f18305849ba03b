// A stand-in for cuDNN's convolutions, for tests where there is no device: the functions that the runtime calls, over the memory of
// the stand-in for the driver (driver.cc).
//
// A convolution is a task of its stream, summed in the type of sums and rounded once. Arguments are checked: descriptions that live and
// go together, operands inside memory of the device, an algorithm that was proposed for the problem with the arithmetic that was then
// set, working memory. Of the proposals the first is not deterministic, the second rounds factors of single precision to TF32, the
// third does neither. Refused requests are counted and printed. The environment:
//   STANDIN_CUDNN_VERSION=N   the version (92801)
//   STANDIN_CUDNN_NONE=1      there is no algorithm
//   STANDIN_CUDNN_FAIL=CODE   convolutions return the code
//   STANDIN_CUDNN_LOG=1       print a line for each convolution that is asked for

#include "cublaslt/multiply.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "driver.h"

extern "C" int cuMemGetAddressRange_v2(uint64_t *start, size_t *bytes, uint64_t address);
extern "C" int cuCtxGetCurrent(void **context);

namespace {

using cublaslt::add;
using cublaslt::find;

enum { kSuccess = 0, kNotInitialized = 1001, kBadParam = 2000, kNotSupported = 3000, kExecutionFailed = 5000 };
enum { kReal32 = 0, kReal64 = 1, kReal16 = 2, kBrain16 = 9 };
enum { kAnyMath = 0, kMatrixMath = 1, kPlainMath = 3 };
enum Part { kOutput, kImage, kWeight };
constexpr int kMost = 5;
// Algorithms.
enum { kUnordered = 10, kRounded = 11, kPlain = 12 };

struct Handle {
  void *context, *stream;
};
struct Tensor {
  int type, dims, sizes[kMost], strides[kMost];
};
struct Weight {
  int type, dims, sizes[kMost];
};
struct Convolution {
  int dims, padding[3], stride[3], dilation[3], compute, groups, math;
};
struct Proposal {
  int algorithm, status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
};

long setting(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text ? atol(text) : otherwise;
}

int refuse(int status, const char *reason) {
  fprintf(stderr, "STANDIN cuDNN: %s\n", reason);
  standin_refuse();
  return status;
}

size_t size_of(int type) { return type == kReal64 ? 8 : type == kReal32 ? 4 : 2; }

bool in_device_memory(const void *start, int64_t bytes) {
  uint64_t first = 0;
  size_t size = 0;
  const auto address = reinterpret_cast<uint64_t>(start);
  if (cuMemGetAddressRange_v2(&first, &size, address) != 0) return false;
  return static_cast<uint64_t>(bytes) <= size - (address - first);
}

// A weight as a tensor in row-major order.
Tensor tensor_of(const Weight &weight) {
  Tensor tensor{weight.type, weight.dims, {}, {}};
  int step = 1;
  for (int dim = weight.dims - 1; dim >= 0; --dim) {
    tensor.sizes[dim] = weight.sizes[dim];
    tensor.strides[dim] = step;
    step *= weight.sizes[dim];
  }
  return tensor;
}

int64_t extent(const Tensor &tensor) {
  int64_t last = 0;
  for (int dim = 0; dim < tensor.dims; ++dim) last += static_cast<int64_t>(tensor.sizes[dim] - 1) * tensor.strides[dim];
  return (last + 1) * static_cast<int64_t>(size_of(tensor.type));
}

struct Problem {
  Tensor image, weight, output;
  Convolution convolution;
};

// The reason why descriptions do not go together; null if they do.
const char *mismatch(const Problem &p) {
  const Convolution &c = p.convolution;
  if (p.image.type != p.weight.type || p.image.type != p.output.type) return "types differ";
  if (c.compute != (p.image.type == kReal64 ? kReal64 : kReal32)) return "the type of sums does not go with the elements";
  if (p.image.dims != c.dims + 2 || p.weight.dims != p.image.dims || p.output.dims != p.image.dims) return "dimensions differ";
  if (p.image.sizes[0] != p.output.sizes[0]) return "samples differ";
  if (c.groups < 1 || p.weight.sizes[1] * c.groups != p.image.sizes[1] || p.weight.sizes[0] % c.groups != 0) return "channels differ";
  if (p.weight.sizes[0] != p.output.sizes[1]) return "outputs differ";
  for (int dim = 0; dim < c.dims; ++dim) {
    const int window = (p.weight.sizes[dim + 2] - 1) * c.dilation[dim] + 1;
    if ((p.image.sizes[dim + 2] + 2 * c.padding[dim] - window) / c.stride[dim] + 1 != p.output.sizes[dim + 2]) return "positions differ";
  }
  return nullptr;
}

struct Task {
  const void *addresses[3], *memory;
  void *target;
  Problem problem;
  Part part;
  bool rounds;
  double alpha, beta;
  size_t bytes;
};

int64_t count(const Tensor &tensor) {
  int64_t all = 1;
  for (int dim = 0; dim < tensor.dims; ++dim) all *= tensor.sizes[dim];
  return all;
}

// The place of an element by its number in row-major order.
int64_t place(const Tensor &tensor, int64_t number) {
  int64_t at = 0;
  for (int dim = tensor.dims - 1; dim >= 0; --dim) {
    at += number % tensor.sizes[dim] * tensor.strides[dim];
    number /= tensor.sizes[dim];
  }
  return at;
}

template <class E>
void run_as(const Task &task) {
  using Sum = typename E::Sum;
  const Problem &p = task.problem;
  const Convolution &c = p.convolution;
  const Tensor &target = task.part == kOutput ? p.output : task.part == kImage ? p.image : p.weight;
  std::vector<Sum> sums(static_cast<size_t>(count(target)), Sum(0));
  const auto read = [&](int operand, int64_t at) {
    return cublaslt::rounded(E::widen(static_cast<const E *>(task.addresses[operand])[at]), task.rounds);
  };
  const int64_t outputs = p.weight.sizes[0] / c.groups, channels = p.weight.sizes[1];
  const int64_t weights = count(p.weight), positions = count(p.output);
  int64_t window = 1, places = 1;
  for (int dim = 2; dim < p.image.dims; ++dim) {
    window *= p.weight.sizes[dim];
    places *= p.image.sizes[dim];
  }
  const int64_t each = positions / p.output.sizes[0] / p.output.sizes[1];
  for (int64_t y = 0; y < positions; ++y) {
    const int64_t sample = y / each / p.output.sizes[1], k = y / each % p.output.sizes[1];
    for (int64_t w = k * (weights / p.weight.sizes[0]); w < (k + 1) * (weights / p.weight.sizes[0]); ++w) {
      const int64_t channel = k / outputs * channels + w / window % channels;
      int64_t position = y % each, element = w % window, x = 0, step = 1;
      bool inside = true;
      for (int dim = c.dims - 1; dim >= 0; --dim) {
        const int64_t at = position % p.output.sizes[dim + 2] * c.stride[dim] - c.padding[dim] + element % p.weight.sizes[dim + 2] * c.dilation[dim];
        position /= p.output.sizes[dim + 2];
        element /= p.weight.sizes[dim + 2];
        inside = inside && at >= 0 && at < p.image.sizes[dim + 2];
        x += at * step;
        step *= p.image.sizes[dim + 2];
      }
      if (!inside) continue;
      x += (sample * p.image.sizes[1] + channel) * places;
      const int64_t numbers[3] = {y, x, w};
      Sum factors[2];
      int found = 0;
      const Tensor *tensors[3] = {&p.output, &p.image, &p.weight};
      for (int operand = 0; operand < 3; ++operand) {
        if (operand != task.part) factors[found++] = read(operand, place(*tensors[operand], numbers[operand]));
      }
      Sum &sum = sums[static_cast<size_t>(numbers[task.part])];
      sum = cublaslt::add_product(sum, factors[0], factors[1]);
    }
  }
  auto *result = static_cast<E *>(task.target);
  for (int64_t number = 0; number < count(target); ++number) {
    E &to = result[place(target, number)];
    Sum whole = static_cast<Sum>(task.alpha) * sums[static_cast<size_t>(number)];
    if (task.beta != 0) whole += static_cast<Sum>(task.beta) * E::widen(to);
    to = E::narrow(whole);
  }
}

void run(void *argument) {
  Task task;
  memcpy(&task, argument, sizeof task);
  if (task.memory != nullptr) memset(const_cast<void *>(task.memory), 0xEE, task.bytes);
  switch (task.problem.image.type) {
    case kReal16: run_as<cublaslt::Half>(task); break;
    case kBrain16: run_as<cublaslt::Brain>(task); break;
    case kReal32: run_as<cublaslt::Same<float>>(task); break;
    default: run_as<cublaslt::Same<double>>(task);
  }
}

int propose(void *handle, void *x, void *w, void *c, void *y, int most, int *found, Proposal *proposals) {
  const Tensor *image = find<Tensor>(x), *output = find<Tensor>(y);
  const Weight *weight = find<Weight>(w);
  const Convolution *convolution = find<Convolution>(c);
  if (find<Handle>(handle) == nullptr || image == nullptr || output == nullptr || weight == nullptr || convolution == nullptr || most < 3) {
    return refuse(kBadParam, "a description is missing");
  }
  if (const char *reason = mismatch({*image, tensor_of(*weight), *output, *convolution})) return refuse(kBadParam, reason);
  if (setting("STANDIN_CUDNN_NONE", 0) == 1) return kNotSupported;
  const size_t memory = weight->sizes[2] * weight->sizes[3] > 1 ? 512 : 0;
  proposals[0] = {kUnordered, kSuccess, 0.1f, 0, 0, convolution->math, {}};
  proposals[1] = {kRounded, kSuccess, 0.2f, memory, 1, kMatrixMath, {}};
  proposals[2] = {kPlain, kSuccess, 0.3f, memory, 1, kPlainMath, {}};
  *found = 3;
  return kSuccess;
}

int compute(Part part, void *handle, const void *alpha, void *xd, const void *x, void *wd, const void *w, void *yd, const void *y,
            void *c, int algorithm, void *memory, size_t bytes, const void *beta) {
  const Handle *own = find<Handle>(handle);
  const Tensor *image = find<Tensor>(xd), *output = find<Tensor>(yd);
  const Weight *weight = find<Weight>(wd);
  const Convolution *convolution = find<Convolution>(c);
  if (own == nullptr || image == nullptr || output == nullptr || weight == nullptr || convolution == nullptr) {
    return refuse(kBadParam, "a description is missing");
  }
  if (const long code = setting("STANDIN_CUDNN_FAIL", 0)) return static_cast<int>(code);
  void *context = nullptr;
  if (cuCtxGetCurrent(&context) != 0 || context != own->context) return refuse(kNotInitialized, "the context is another");
  if (own->stream == nullptr) return refuse(kBadParam, "no stream");
  Problem problem{*image, tensor_of(*weight), *output, *convolution};
  if (const char *reason = mismatch(problem)) return refuse(kBadParam, reason);
  if (algorithm != kRounded && algorithm != kPlain) return refuse(kBadParam, "an algorithm without an order");
  if (convolution->math != (algorithm == kPlain ? kPlainMath : kMatrixMath)) return refuse(kBadParam, "another arithmetic");
  const size_t needed = weight->sizes[2] * weight->sizes[3] > 1 ? 512 : 0;
  if (bytes < needed || (needed > 0 && !in_device_memory(memory, static_cast<int64_t>(needed)))) return refuse(kBadParam, "working memory");
  if (!in_device_memory(x, extent(problem.image)) || !in_device_memory(w, extent(problem.weight)) || !in_device_memory(y, extent(problem.output))) {
    return refuse(kBadParam, "an operand is not in memory of the device");
  }
  const bool is_double = convolution->compute == kReal64;
  const auto factor = [&](const void *number) { return is_double ? *static_cast<const double *>(number) : static_cast<double>(*static_cast<const float *>(number)); };
  const void *target = part == kOutput ? y : part == kImage ? x : w;
  const bool rounds = algorithm == kRounded && image->type == kReal32;
  const Task task{{y, x, w}, needed > 0 ? memory : nullptr, const_cast<void *>(target), problem, part, rounds, factor(alpha), factor(beta), needed};
  if (setting("STANDIN_CUDNN_LOG", 0) == 1) {
    printf("CONVOLUTION part=%d type=%d dims=%d groups=%d algorithm=%d beta=%g\n", part, image->type, convolution->dims, convolution->groups, algorithm, task.beta);
    fflush(stdout);
  }
  return standin_launch(own->stream, run, &task, sizeof task) == 0 ? kSuccess : kExecutionFailed;
}

template <class T>
int destroy(void *handle) {
  return cublaslt::remove<T>(handle) ? kSuccess : refuse(kBadParam, "no description is destroyed");
}

}  // namespace

extern "C" {

size_t cudnnGetVersion(void) { return static_cast<size_t>(setting("STANDIN_CUDNN_VERSION", 92801)); }
size_t cudnnGetCudartVersion(void) { return 13000; }
const char *cudnnGetErrorString(int status) {
  return status == kExecutionFailed ? "CUDNN_STATUS_EXECUTION_FAILED" : status == kNotSupported ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_OF_THE_STAND_IN";
}

int cudnnCreate(void **handle) {
  void *context = nullptr;
  if (cuCtxGetCurrent(&context) != 0 || context == nullptr) return refuse(kNotInitialized, "no context is entered");
  *handle = add(Handle{context, nullptr});
  return kSuccess;
}
int cudnnSetStream(void *handle, void *stream) {
  Handle *own = find<Handle>(handle);
  if (own == nullptr) return refuse(kBadParam, "no handle");
  own->stream = stream;
  return kSuccess;
}

int cudnnCreateTensorDescriptor(void **tensor) {
  *tensor = add(Tensor{});
  return kSuccess;
}
int cudnnSetTensorNdDescriptor(void *handle, int type, int dims, const int *sizes, const int *strides) {
  Tensor *tensor = find<Tensor>(handle);
  if (tensor == nullptr || dims < 4 || dims > kMost) return refuse(kBadParam, "a tensor's dimensions");
  tensor->type = type;
  tensor->dims = dims;
  for (int dim = 0; dim < dims; ++dim) {
    if (sizes[dim] < 1 || strides[dim] < 1) return refuse(kBadParam, "a tensor's size or stride");
    tensor->sizes[dim] = sizes[dim];
    tensor->strides[dim] = strides[dim];
  }
  return kSuccess;
}
int cudnnDestroyTensorDescriptor(void *tensor) { return destroy<Tensor>(tensor); }

int cudnnCreateFilterDescriptor(void **weight) {
  *weight = add(Weight{});
  return kSuccess;
}
int cudnnSetFilterNdDescriptor(void *handle, int type, int order, int dims, const int *sizes) {
  Weight *weight = find<Weight>(handle);
  if (weight == nullptr || dims < 4 || dims > kMost || order != 0) return refuse(kBadParam, "a weight's dimensions");
  weight->type = type;
  weight->dims = dims;
  for (int dim = 0; dim < dims; ++dim) {
    if (sizes[dim] < 1) return refuse(kBadParam, "a weight's size");
    weight->sizes[dim] = sizes[dim];
  }
  return kSuccess;
}
int cudnnDestroyFilterDescriptor(void *weight) { return destroy<Weight>(weight); }

int cudnnCreateConvolutionDescriptor(void **convolution) {
  *convolution = add(Convolution{0, {}, {}, {}, 0, 1, kAnyMath});
  return kSuccess;
}
int cudnnSetConvolutionNdDescriptor(void *handle, int dims, const int *padding, const int *stride, const int *dilation, int mode, int compute_type) {
  Convolution *convolution = find<Convolution>(handle);
  if (convolution == nullptr || dims < 2 || dims > 3 || mode != 1) return refuse(kBadParam, "a convolution's dimensions");
  convolution->dims = dims;
  convolution->compute = compute_type;
  for (int dim = 0; dim < dims; ++dim) {
    if (padding[dim] < 0 || stride[dim] < 1 || dilation[dim] < 1) return refuse(kBadParam, "a convolution's numbers");
    convolution->padding[dim] = padding[dim];
    convolution->stride[dim] = stride[dim];
    convolution->dilation[dim] = dilation[dim];
  }
  return kSuccess;
}
int cudnnSetConvolutionGroupCount(void *handle, int groups) {
  Convolution *convolution = find<Convolution>(handle);
  if (convolution == nullptr) return refuse(kBadParam, "no convolution");
  convolution->groups = groups;
  return kSuccess;
}
int cudnnSetConvolutionMathType(void *handle, int math) {
  Convolution *convolution = find<Convolution>(handle);
  if (convolution == nullptr) return refuse(kBadParam, "no convolution");
  convolution->math = math;
  return kSuccess;
}
int cudnnDestroyConvolutionDescriptor(void *convolution) { return destroy<Convolution>(convolution); }

int cudnnGetConvolutionForwardAlgorithm_v7(void *h, void *x, void *w, void *c, void *y, int most, int *found, Proposal *proposals) {
  return propose(h, x, w, c, y, most, found, proposals);
}
int cudnnGetConvolutionBackwardDataAlgorithm_v7(void *h, void *w, void *y, void *c, void *x, int most, int *found, Proposal *proposals) {
  return propose(h, x, w, c, y, most, found, proposals);
}
int cudnnGetConvolutionBackwardFilterAlgorithm_v7(void *h, void *x, void *y, void *c, void *w, int most, int *found, Proposal *proposals) {
  return propose(h, x, w, c, y, most, found, proposals);
}

int cudnnConvolutionForward(void *h, const void *alpha, void *xd, const void *x, void *wd, const void *w, void *c, int algorithm,
                            void *memory, size_t bytes, const void *beta, void *yd, void *y) {
  return compute(kOutput, h, alpha, xd, x, wd, w, yd, y, c, algorithm, memory, bytes, beta);
}
int cudnnConvolutionBackwardData(void *h, const void *alpha, void *wd, const void *w, void *yd, const void *y, void *c, int algorithm,
                                 void *memory, size_t bytes, const void *beta, void *xd, void *x) {
  return compute(kImage, h, alpha, xd, x, wd, w, yd, y, c, algorithm, memory, bytes, beta);
}
int cudnnConvolutionBackwardFilter(void *h, const void *alpha, void *xd, const void *x, void *yd, const void *y, void *c, int algorithm,
                                   void *memory, size_t bytes, const void *beta, void *wd, void *w) {
  return compute(kWeight, h, alpha, xd, x, wd, w, yd, y, c, algorithm, memory, bytes, beta);
}
}
