// A stand-in for cuBLASLt, for tests where there is no device: the functions that the runtime calls, over the memory of the
// stand-in for the driver (driver.cc).
//
// A product is a task of its stream, done as late as the driver's stand-in does work. Every argument is checked as strictly as
// the library's documentation allows: descriptions that live, types that go together, layouts inside memory of the device,
// alignments that were promised when the algorithm was chosen, working memory of at least the size that was asked for, results
// that overlap no factor. Refused requests are counted and printed. The environment:
//   STANDIN_CUBLASLT_VERSION=N      the version (130100)
//   STANDIN_CUBLASLT_TOOLKIT=N      that of its CUDA (13000)
//   STANDIN_CUBLASLT_START=CODE     cublasLtCreate returns the code
//   STANDIN_CUBLASLT_NONE=WHAT      there is no algorithm: for any product (all), or with an epilogue (epilogue)
//   STANDIN_CUBLASLT_FAIL=CODE      cublasLtMatmul returns the code
//   STANDIN_CUBLASLT_LOG=1          print a line for each product that is asked for

#include "cublaslt/descriptions.h"
#include "cublaslt/multiply.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver.h"

extern "C" int cuMemGetAddressRange_v2(uint64_t *start, size_t *bytes, uint64_t address);
extern "C" int cuCtxGetCurrent(void **context);

using namespace cublaslt;

static long setting(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text ? atol(text) : otherwise;
}

static int refuse(int status, const char *format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "STANDIN cuBLASLt: %s\n", text);
  standin_refuse();
  return status;
}

static bool in_device_memory(const void *start, int64_t bytes) {
  uint64_t first = 0;
  size_t size = 0;
  const auto address = reinterpret_cast<uint64_t>(start);
  if (cuMemGetAddressRange_v2(&first, &size, address) != 0) return false;
  return static_cast<uint64_t>(bytes) <= size - (address - first);
}

// The elements from the first to the last of a stack of matrices.
static int64_t extent(const Layout &layout) {
  return (layout.stacks - 1) * layout.stack_stride + (static_cast<int64_t>(layout.columns) - 1) * layout.leading +
         static_cast<int64_t>(layout.rows);
}

static bool is_aligned(const void *start, uint32_t bytes) { return reinterpret_cast<uint64_t>(start) % bytes == 0; }

static bool overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes) {
  const auto *first = static_cast<const char *>(a), *second = static_cast<const char *>(b);
  return first < second + b_bytes && second < first + a_bytes;
}

// The reason why layouts and types do not go together; null if they do.
static const char *mismatch(const Product &product, const Layout &a, const Layout &b, const Layout &c, const Layout &d) {
  const uint64_t m = product.transpose_a ? a.columns : a.rows, k = product.transpose_a ? a.rows : a.columns;
  const uint64_t inner = product.transpose_b ? b.columns : b.rows, n = product.transpose_b ? b.rows : b.columns;
  if (k != inner) return "inner sizes differ";
  if (m != d.rows || n != d.columns) return "the result has other sizes";
  if (c.rows != d.rows || c.columns != d.columns) return "the addend has other sizes";
  if (a.stacks != d.stacks || b.stacks != d.stacks || c.stacks != d.stacks) return "numbers of matrices differ";
  if (d.stacks > 1 && d.stack_stride == 0) return "all results are at one place";
  const int type = d.type;
  if (a.type != type || b.type != type || c.type != type) return "types of elements differ";
  const bool fits = (type == kReal32 && product.scale == kReal32) || (type == kComplex32 && product.scale == kComplex32) ||
                    ((type == kReal16 || type == kBrain16) && product.scale == kReal32);
  const bool is_single = fits && (product.compute == kCompute32 || (product.compute == kComputeTf32 && type != kReal16 && type != kBrain16));
  const bool is_double = product.compute == kCompute64 && product.scale == type && (type == kReal64 || type == kComplex64);
  if (!is_single && !is_double) return "the types of sums and factors do not go with the elements";
  const bool is_complex = type == kComplex32 || type == kComplex64;
  if (is_complex && product.epilogue != kEpilogueNone) return "complex products have no epilogue";
  return nullptr;
}

extern "C" {

size_t cublasLtGetVersion(void) { return static_cast<size_t>(setting("STANDIN_CUBLASLT_VERSION", 130100)); }
size_t cublasLtGetCudartVersion(void) { return static_cast<size_t>(setting("STANDIN_CUBLASLT_TOOLKIT", 13000)); }

const char *cublasLtGetStatusName(int status) {
  switch (status) {
    case kSuccess: return "CUBLAS_STATUS_SUCCESS";
    case kNotInitialized: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case kInvalidValue: return "CUBLAS_STATUS_INVALID_VALUE";
    case kExecutionFailed: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case kNotSupported: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_UNKNOWN";
  }
}

const char *cublasLtGetStatusString(int status) {
  return status == kExecutionFailed ? "the stand-in was told to fail" : "a status of the stand-in";
}

int cublasLtCreate(void **handle) {
  if (const long code = setting("STANDIN_CUBLASLT_START", 0)) return static_cast<int>(code);
  void *context = nullptr;
  if (cuCtxGetCurrent(&context) != 0 || context == nullptr) return refuse(kNotInitialized, "no context is entered");
  *handle = add(Handle{context});
  return kSuccess;
}

int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  if (size_of(type) == 0) return refuse(kInvalidValue, "type %d", type);
  if (rows == 0 || columns == 0) return refuse(kInvalidValue, "a matrix of %llu x %llu", (unsigned long long)rows, (unsigned long long)columns);
  if (leading < static_cast<int64_t>(rows)) return refuse(kInvalidValue, "columns of %llu are %lld apart", (unsigned long long)rows, (long long)leading);
  *layout = add(Layout{type, rows, columns, leading, 1, 0});
  return kSuccess;
}

int cublasLtMatrixLayoutSetAttribute(void *handle, int attribute, const void *value, size_t bytes) {
  Layout *layout = find<Layout>(handle);
  if (layout == nullptr) return refuse(kInvalidValue, "no layout");
  if (attribute == kLayoutStacks && bytes == 4) return take(&layout->stacks, value);
  if (attribute == kLayoutStackStride && bytes == 8) return take(&layout->stack_stride, value);
  return refuse(kInvalidValue, "attribute %d of %zu bytes of a layout", attribute, bytes);
}

int cublasLtMatrixLayoutDestroy(void *handle) { return remove<Layout>(handle) ? kSuccess : refuse(kInvalidValue, "no layout"); }

int cublasLtMatmulDescCreate(void **product, int compute, int scale) {
  *product = add(Product{compute, scale, kPlain, kPlain, kEpilogueNone, nullptr});
  return kSuccess;
}

int cublasLtMatmulDescSetAttribute(void *handle, int attribute, const void *value, size_t bytes) {
  Product *product = find<Product>(handle);
  if (product == nullptr) return refuse(kInvalidValue, "no product");
  if (attribute == kProductTransposeA && bytes == 4) return take(&product->transpose_a, value);
  if (attribute == kProductTransposeB && bytes == 4) return take(&product->transpose_b, value);
  if (attribute == kProductEpilogue && bytes == 4) return take(&product->epilogue, value);
  if (attribute == kProductBias && bytes == 8) return take(&product->bias, value);
  return refuse(kInvalidValue, "attribute %d of %zu bytes of a product", attribute, bytes);
}

int cublasLtMatmulDescDestroy(void *handle) { return remove<Product>(handle) ? kSuccess : refuse(kInvalidValue, "no product"); }

int cublasLtMatmulPreferenceCreate(void **preference) {
  *preference = add(Preference{0, 7, {256, 256, 256, 256}});
  return kSuccess;
}

int cublasLtMatmulPreferenceSetAttribute(void *handle, int attribute, const void *value, size_t bytes) {
  Preference *preference = find<Preference>(handle);
  if (preference == nullptr) return refuse(kInvalidValue, "no preference");
  if (attribute == kPreferWorkspace && bytes == 8) return take(&preference->workspace, value);
  if (attribute == kPreferReductions && bytes == 4) return take(&preference->reductions, value);
  if (attribute >= kPreferAlignmentA && attribute < kPreferAlignmentA + 4 && bytes == 4) {
    return take(&preference->alignments[attribute - kPreferAlignmentA], value);
  }
  return refuse(kInvalidValue, "attribute %d of %zu bytes of a preference", attribute, bytes);
}

int cublasLtMatmulPreferenceDestroy(void *handle) {
  return remove<Preference>(handle) ? kSuccess : refuse(kInvalidValue, "no preference");
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product_handle, void *a, void *b, void *c, void *d, void *preference_handle,
                                   int most, Proposal *proposals, int *found) {
  const Product *product = find<Product>(product_handle);
  const Layout *layouts[] = {find<Layout>(a), find<Layout>(b), find<Layout>(c), find<Layout>(d)};
  const Preference *preference = find<Preference>(preference_handle);
  bool all = find<Handle>(handle) != nullptr && product != nullptr && preference != nullptr && most >= 1;
  for (const Layout *layout : layouts) all = all && layout != nullptr;
  if (!all) return refuse(kInvalidValue, "a description is missing");
  const char *none = getenv("STANDIN_CUBLASLT_NONE");
  *found = 0;
  if (none != nullptr && strcmp(none, "all") == 0) return kNotSupported;
  // The other way to say so.
  if (none != nullptr && strcmp(none, "epilogue") == 0 && product->epilogue != kEpilogueNone) return kSuccess;
  if (const char *reason = mismatch(*product, *layouts[0], *layouts[1], *layouts[2], *layouts[3])) {
    return refuse(kInvalidValue, "%s", reason);
  }
  if ((product->epilogue & kEpilogueBias) != 0 && product->bias == nullptr) return refuse(kInvalidValue, "the bias has no address");
  Proposal &proposal = proposals[0];
  proposal = Proposal{};
  proposal.algorithm.problem = problem_hash(*product, layouts);
  for (int i = 0; i < 4; ++i) proposal.algorithm.alignments[i] = preference->alignments[i];
  // Sums of many addends have parts.
  const uint64_t inner = product->transpose_a ? layouts[0]->rows : layouts[0]->columns;
  const bool has_parts = inner >= 32 && (preference->reductions & 2) != 0;
  proposal.workspace = has_parts ? 1024 : 0;
  if (proposal.workspace > preference->workspace) proposal.workspace = 0;
  proposal.algorithm.workspace = proposal.workspace;
  *found = 1;
  return kSuccess;
}

int cublasLtMatmul(void *handle, void *product_handle, const void *alpha, const void *a, void *a_layout, const void *b,
                   void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                   const Algorithm *algorithm, void *workspace, size_t workspace_bytes, void *stream) {
  const Handle *own = find<Handle>(handle);
  const Product *product = find<Product>(product_handle);
  const Layout *layouts[] = {find<Layout>(a_layout), find<Layout>(b_layout), find<Layout>(c_layout), find<Layout>(d_layout)};
  bool all = own != nullptr && product != nullptr && algorithm != nullptr && alpha != nullptr && beta != nullptr;
  for (const Layout *layout : layouts) all = all && layout != nullptr;
  if (!all) return refuse(kInvalidValue, "a description is missing");
  if (const long code = setting("STANDIN_CUBLASLT_FAIL", 0)) return static_cast<int>(code);
  void *context = nullptr;
  if (cuCtxGetCurrent(&context) != 0 || context != own->context) return refuse(kNotInitialized, "the context is another");
  if (const char *reason = mismatch(*product, *layouts[0], *layouts[1], *layouts[2], *layouts[3])) return refuse(kInvalidValue, "%s", reason);
  if (algorithm->problem != problem_hash(*product, layouts)) return refuse(kInvalidValue, "the algorithm is of another problem");
  const void *operands[] = {a, b, c, d};
  int64_t bytes[4];
  for (int i = 0; i < 4; ++i) {
    bytes[i] = extent(*layouts[i]) * static_cast<int64_t>(size_of(layouts[i]->type));
    if (!in_device_memory(operands[i], bytes[i])) return refuse(kInvalidValue, "operand %d is not in memory of the device", i);
    if (!is_aligned(operands[i], algorithm->alignments[i])) return refuse(kInvalidValue, "operand %d is not aligned as promised", i);
  }
  if (overlap(a, bytes[0], d, bytes[3]) || overlap(b, bytes[1], d, bytes[3])) return refuse(kInvalidValue, "the result overlaps a factor");
  if (c != d && !is_zero(beta, product->scale) && overlap(c, bytes[2], d, bytes[3])) {
    return refuse(kInvalidValue, "the result overlaps the addend");
  }
  const bool has_bias = (product->epilogue & kEpilogueBias) != 0;
  const auto bias_bytes = static_cast<int64_t>(layouts[3]->rows * size_of(layouts[3]->type));
  if (has_bias && !in_device_memory(product->bias, bias_bytes)) return refuse(kInvalidValue, "the bias is not in memory of the device");
  if (workspace_bytes < algorithm->workspace) return refuse(kInvalidValue, "%zu bytes of working memory", workspace_bytes);
  if (algorithm->workspace > 0 && (!in_device_memory(workspace, static_cast<int64_t>(algorithm->workspace)) || !is_aligned(workspace, 256))) {
    return refuse(kInvalidValue, "the working memory is not in memory of the device, or not aligned");
  }
  Multiplication task{};
  for (int i = 0; i < 4; ++i) task.layouts[i] = *layouts[i];
  task.product = *product;
  task.a = a;
  task.b = b;
  task.c = c;
  task.d = d;
  task.bias = has_bias ? product->bias : nullptr;
  task.workspace = algorithm->workspace > 0 ? workspace : nullptr;
  task.workspace_bytes = algorithm->workspace;
  memcpy(task.alpha, alpha, size_of(product->scale));
  memcpy(task.beta, beta, size_of(product->scale));
  if (setting("STANDIN_CUBLASLT_LOG", 0) == 1) {
    printf("PRODUCT type=%d compute=%d m=%llu n=%llu k=%llu stacks=%d ops=%d%d epilogue=%d workspace=%zu\n", layouts[3]->type,
           product->compute, (unsigned long long)layouts[3]->rows, (unsigned long long)layouts[3]->columns,
           (unsigned long long)(product->transpose_a ? layouts[0]->rows : layouts[0]->columns), layouts[3]->stacks,
           product->transpose_a, product->transpose_b, product->epilogue, algorithm->workspace);
    fflush(stdout);
  }
  return standin_launch(stream, multiply, &task, sizeof task) == 0 ? kSuccess : kExecutionFailed;
}
}
