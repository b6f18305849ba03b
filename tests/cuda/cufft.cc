// A stand-in for cuFFT, for tests where there is no device: the functions that the runtime calls, over the memory of the stand-in
// for the driver (driver.cc).
//
// A transform is a task of its stream, computed in double precision and rounded once. Arguments are checked: plans that live and are
// made, one stream and working memory of the size that was asked for, numbers inside memory of the device. A transform from complex to
// real numbers destroys its source, as the library may. Refused requests are counted and printed. The environment:
//   STANDIN_CUFFT_VERSION=N   the version (12000)
//   STANDIN_CUFFT_FAIL=CODE   cufftXtExec returns the code
//   STANDIN_CUFFT_LOG=1       print a line for each request

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "driver.h"

extern "C" int cuMemGetAddressRange_v2(uint64_t *start, size_t *bytes, uint64_t address);
extern "C" int cuCtxGetCurrent(void **context);

namespace {

using Number = std::complex<double>;

enum { kSuccess = 0, kInvalidPlan = 1, kInvalidType = 3, kInvalidValue = 4, kExecFailed = 6, kSetupFailed = 7, kInvalidSize = 8, kNoWorkspace = 13 };
enum { kComplex = 0x29, kRealToComplex = 0x2a, kComplexToReal = 0x2c, kDouble = 0x40 };

struct Plan {
  bool allocates = true, made = false;
  int rank = 0, kind = 0;
  int64_t sizes[3] = {1, 1, 1};
  int64_t count = 0;
  size_t workspace = 0;
  void *memory = nullptr;
  void *stream = nullptr;
  void *context = nullptr;

  bool is(int single) const { return kind == single || kind == (single | kDouble); }
  int64_t numbers() const { return sizes[0] * sizes[1] * sizes[2]; }
  // Numbers of a transform of which the first half of the last dimension is there.
  int64_t half() const { return numbers() / sizes[rank - 1] * (sizes[rank - 1] / 2 + 1); }
  size_t part() const { return (kind & kDouble) != 0 ? 8 : 4; }
  size_t from_bytes() const {
    return part() * static_cast<size_t>(count * (is(kRealToComplex) ? numbers() : 2 * (is(kComplexToReal) ? half() : numbers())));
  }
  size_t to_bytes() const {
    return part() * static_cast<size_t>(count * (is(kComplexToReal) ? numbers() : 2 * (is(kRealToComplex) ? half() : numbers())));
  }
};

std::mutex lock;
std::map<int, Plan> plans;
int last_plan = 0;

long setting(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text ? atol(text) : otherwise;
}

int refuse(int status, const char *reason) {
  fprintf(stderr, "STANDIN cuFFT: %s\n", reason);
  standin_refuse();
  return status;
}

Plan *find(int handle) {
  auto known = plans.find(handle);
  return known == plans.end() ? nullptr : &known->second;
}

bool in_device_memory(const void *start, size_t bytes) {
  uint64_t first = 0;
  size_t size = 0;
  const auto address = reinterpret_cast<uint64_t>(start);
  if (cuMemGetAddressRange_v2(&first, &size, address) != 0) return false;
  return bytes <= size - (address - first);
}

// The transform of every `step`-th of `n` numbers, by the smallest factor of n.
void transform_line(const Number *from, int64_t step, int64_t n, Number *to, const std::vector<Number> &roots) {
  const auto whole = static_cast<int64_t>(roots.size());
  int64_t factor = 2;
  while (factor * factor <= n && n % factor != 0) ++factor;
  if (n % factor != 0) factor = n;
  const int64_t part = n / factor;
  if (part < 1 || n == 1) {
    if (n == 1) to[0] = from[0];
    return;
  }
  std::vector<Number> parts(static_cast<size_t>(n));
  for (int64_t r = 0; r < factor; ++r) transform_line(from + r * step, step * factor, part, &parts[static_cast<size_t>(r * part)], roots);
  for (int64_t k = 0; k < n; ++k) {
    Number sum = 0;
    for (int64_t r = 0; r < factor; ++r) {
      sum += roots[static_cast<size_t>(r * k % n * (whole / n))] * parts[static_cast<size_t>(r * part + k % part)];
    }
    to[k] = sum;
  }
}

std::vector<Number> roots_of(int64_t n, int direction) {
  std::vector<Number> roots(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) roots[static_cast<size_t>(k)] = std::polar(1.0, direction * 2 * M_PI * static_cast<double>(k) / static_cast<double>(n));
  return roots;
}

// Transforms along one dimension, in place.
void transform_dim(std::vector<Number> &numbers, const int64_t (&sizes)[3], int dim, int direction) {
  const int64_t n = sizes[dim];
  int64_t inner = 1;
  for (int after = dim + 1; after < 3; ++after) inner *= sizes[after];
  const auto roots = roots_of(n, direction);
  std::vector<Number> line(static_cast<size_t>(n)), result(static_cast<size_t>(n));
  const auto count = static_cast<int64_t>(numbers.size());
  for (int64_t start = 0; start < count; start += n * inner) {
    for (int64_t at = 0; at < inner; ++at) {
      for (int64_t k = 0; k < n; ++k) line[static_cast<size_t>(k)] = numbers[static_cast<size_t>(start + k * inner + at)];
      transform_line(line.data(), 1, n, result.data(), roots);
      for (int64_t k = 0; k < n; ++k) numbers[static_cast<size_t>(start + k * inner + at)] = result[static_cast<size_t>(k)];
    }
  }
}

struct Request {
  void *from, *to, *memory;
  int direction;
  Plan plan;
};

template <class R>
void run_as(const Request &request) {
  const Plan &plan = request.plan;
  const int last = plan.rank - 1;
  const int64_t whole = plan.numbers(), half = plan.half(), n = plan.sizes[last], kept = n / 2 + 1;
  for (int64_t number = 0; number < plan.count; ++number) {
    if (plan.is(kComplexToReal)) {
      const auto *from = static_cast<const std::complex<R> *>(request.from) + number * half;
      auto *to = static_cast<R *>(request.to) + number * whole;
      std::vector<Number> numbers(from, from + half);
      int64_t sizes[3] = {plan.sizes[0], plan.sizes[1], plan.sizes[2]};
      sizes[last] = kept;
      for (int dim = 0; dim < last; ++dim) transform_dim(numbers, sizes, dim, 1);
      const auto roots = roots_of(n, 1);
      std::vector<Number> line(static_cast<size_t>(n)), result(static_cast<size_t>(n));
      for (int64_t row = 0; row < half / kept; ++row) {
        const Number *own = &numbers[static_cast<size_t>(row * kept)];
        for (int64_t k = 0; k < n; ++k) line[static_cast<size_t>(k)] = k < kept ? own[k] : std::conj(own[n - k]);
        // Those that are their own conjugates are real.
        line[0] = line[0].real();
        if (n % 2 == 0) line[static_cast<size_t>(n / 2)] = line[static_cast<size_t>(n / 2)].real();
        transform_line(line.data(), 1, n, result.data(), roots);
        for (int64_t k = 0; k < n; ++k) to[row * n + k] = static_cast<R>(result[static_cast<size_t>(k)].real());
      }
      continue;
    }
    std::vector<Number> numbers(static_cast<size_t>(whole));
    if (plan.is(kRealToComplex)) {
      const auto *from = static_cast<const R *>(request.from) + number * whole;
      for (int64_t i = 0; i < whole; ++i) numbers[static_cast<size_t>(i)] = static_cast<double>(from[i]);
    } else {
      const auto *from = static_cast<const std::complex<R> *>(request.from) + number * whole;
      for (int64_t i = 0; i < whole; ++i) numbers[static_cast<size_t>(i)] = Number(from[i]);
    }
    for (int dim = 0; dim < plan.rank; ++dim) transform_dim(numbers, plan.sizes, dim, plan.is(kRealToComplex) ? -1 : request.direction);
    const int64_t stored = plan.is(kRealToComplex) ? kept : n;
    auto *to = static_cast<std::complex<R> *>(request.to) + number * (whole / n * stored);
    for (int64_t row = 0; row < whole / n; ++row) {
      for (int64_t k = 0; k < stored; ++k) to[row * stored + k] = std::complex<R>(numbers[static_cast<size_t>(row * n + k)]);
    }
  }
  if (plan.is(kComplexToReal)) memset(request.from, 0xEE, plan.from_bytes());
}

void run(void *argument) {
  // Copies: recorded work runs several times.
  Request request;
  memcpy(static_cast<void *>(&request), argument, sizeof request);
  if (request.memory != nullptr) memset(request.memory, 0xEE, request.plan.workspace);
  if ((request.plan.kind & kDouble) != 0) {
    run_as<double>(request);
  } else {
    run_as<float>(request);
  }
}

}  // namespace

extern "C" {

int cufftGetVersion(int *version) {
  *version = static_cast<int>(setting("STANDIN_CUFFT_VERSION", 12000));
  return kSuccess;
}

int cufftCreate(int *plan) {
  std::lock_guard<std::mutex> guard(lock);
  *plan = ++last_plan;
  plans[*plan] = Plan{};
  return kSuccess;
}

int cufftDestroy(int handle) {
  std::lock_guard<std::mutex> guard(lock);
  return plans.erase(handle) == 1 ? kSuccess : refuse(kInvalidPlan, "no plan is destroyed");
}

int cufftSetAutoAllocation(int handle, int allocates) {
  std::lock_guard<std::mutex> guard(lock);
  Plan *plan = find(handle);
  if (plan == nullptr) return refuse(kInvalidPlan, "no plan");
  plan->allocates = allocates != 0;
  return kSuccess;
}

int cufftMakePlanMany64(int handle, int rank, int64_t *sizes, int64_t *from_sizes, int64_t, int64_t, int64_t *to_sizes, int64_t, int64_t,
                        int kind, int64_t count, size_t *workspace) {
  std::lock_guard<std::mutex> guard(lock);
  Plan *plan = find(handle);
  if (plan == nullptr || plan->made) return refuse(kInvalidPlan, "no plan, or one that is made");
  void *context = nullptr;
  if (cuCtxGetCurrent(&context) != 0 || context == nullptr) return refuse(kSetupFailed, "no context is entered");
  if (rank < 1 || rank > 3 || count < 1) return refuse(kInvalidSize, "a rank or a count");
  if (from_sizes != nullptr || to_sizes != nullptr || plan->allocates) return refuse(kInvalidValue, "numbers with gaps, or working memory of its own");
  plan->kind = kind;
  if (!plan->is(kComplex) && !plan->is(kRealToComplex) && !plan->is(kComplexToReal)) return refuse(kInvalidType, "a kind");
  plan->rank = rank;
  for (int dim = 0; dim < rank; ++dim) {
    if (sizes[dim] < 1) return refuse(kInvalidSize, "a size");
    plan->sizes[dim] = sizes[dim];
  }
  plan->count = count;
  // Lines of one number need none.
  plan->workspace = plan->numbers() > 1 ? 1024 : 0;
  plan->context = context;
  plan->made = true;
  *workspace = plan->workspace;
  return kSuccess;
}

int cufftSetWorkArea(int handle, void *memory) {
  std::lock_guard<std::mutex> guard(lock);
  Plan *plan = find(handle);
  if (plan == nullptr || !plan->made) return refuse(kInvalidPlan, "no plan");
  if (!in_device_memory(memory, plan->workspace)) return refuse(kInvalidValue, "the working memory is not in memory of the device");
  plan->memory = memory;
  return kSuccess;
}

int cufftSetStream(int handle, void *stream) {
  std::lock_guard<std::mutex> guard(lock);
  Plan *plan = find(handle);
  if (plan == nullptr) return refuse(kInvalidPlan, "no plan");
  plan->stream = stream;
  return kSuccess;
}

int cufftXtExec(int handle, void *from, void *to, int direction) {
  std::lock_guard<std::mutex> guard(lock);
  Plan *plan = find(handle);
  if (plan == nullptr || !plan->made) return refuse(kInvalidPlan, "no plan");
  if (const long code = setting("STANDIN_CUFFT_FAIL", 0)) return static_cast<int>(code);
  void *context = nullptr;
  if (cuCtxGetCurrent(&context) != 0 || context != plan->context) return refuse(kExecFailed, "the context is another");
  if (plan->stream == nullptr) return refuse(kExecFailed, "no stream");
  if (plan->workspace > 0 && plan->memory == nullptr) return refuse(kNoWorkspace, "no working memory");
  if (direction != 1 && direction != -1) return refuse(kInvalidValue, "a direction");
  if (!in_device_memory(from, plan->from_bytes()) || !in_device_memory(to, plan->to_bytes())) {
    return refuse(kInvalidValue, "numbers are not in memory of the device");
  }
  const auto *first = static_cast<const char *>(from), *second = static_cast<const char *>(to);
  if (first < second + plan->to_bytes() && second < first + plan->from_bytes()) return refuse(kInvalidValue, "numbers overlap");
  if (setting("STANDIN_CUFFT_LOG", 0) == 1) {
    printf("TRANSFORM kind=%#x rank=%d last=%lld count=%lld direction=%d\n", plan->kind, plan->rank,
           static_cast<long long>(plan->sizes[plan->rank - 1]), static_cast<long long>(plan->count), direction);
    fflush(stdout);
  }
  // Its addresses are checked when memory is freed.
  const Request request{from, to, plan->workspace > 0 ? plan->memory : nullptr, direction, *plan};
  // Another request brings its own.
  void *stream = plan->stream;
  plan->memory = nullptr;
  plan->stream = nullptr;
  return standin_launch(stream, run, &request, sizeof request) == 0 ? kSuccess : kExecFailed;
}
}
