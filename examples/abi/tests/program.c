/* A program in C that uses the operators of a library by `opsmith_abi.h` alone: lists, infers, runs, differentiates, and makes each
 * mistake. Its argument is the library. It prints what it finds; a difference ends it with status 1. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opsmith_abi.h"

static const opsmith_api *api;
static int failures = 0;

#define EXPECT(condition)                                                            \
  do {                                                                               \
    if (!(condition)) {                                                              \
      printf("line %d: %s; last error: %s\n", __LINE__, #condition, api->error_text()); \
      ++failures;                                                                    \
    }                                                                                \
  } while (0)

/* Whether a call ended with a code and a text that contains another. */
static void refused(int line, int code, int expected, const char *text) {
  if (code != expected || strstr(api->error_text(), text) == NULL) {
    printf("line %d: code %d and not %d, or another text than `%s`: %s\n", line, code, expected, text, api->error_text());
    ++failures;
  }
}
#define REFUSED(call, expected, text) refused(__LINE__, (call), (expected), (text))

/* Memory for the results of a call. */
typedef struct {
  float data[8][64];
  int64_t shapes[8][4];
  int ranks[8];
  uint32_t dtypes[8];
  int64_t count;
  int fails;
  float *given; /* the place of the first result, if not here */
  void *owners[8];
  void (*release)(void *);
} Place;

static int allocate(void *context, int64_t index, opsmith_tensor *result) {
  Place *place = (Place *)context;
  if (place->fails || index < 0 || index >= 8 || result->ndim > 4) {
    return 1;
  }
  place->ranks[index] = result->ndim;
  memcpy(place->shapes[index], result->shape, sizeof(int64_t) * (size_t)result->ndim);
  place->dtypes[index] = OPSMITH_DTYPE(result->code, result->bits);
  place->count++;
  result->data = place->given != NULL && index == 0 ? place->given : place->data[index];
  return 0;
}

static int adopt(void *context, int64_t index, const opsmith_tensor *result, void *owner, void (*release)(void *)) {
  Place *place = (Place *)context;
  place->count++;
  place->owners[index] = owner;
  place->release = release;
  memcpy(place->data[index], result->data, sizeof(place->data[index]));
  return 0;
}

static opsmith_outputs outputs_of(Place *place) {
  opsmith_outputs made = {sizeof(opsmith_outputs), place, allocate, NULL, NULL};
  memset(place, 0, sizeof(*place));
  return made;
}

static opsmith_tensor tensor(const float *data, int rank, const int64_t *shape) {
  opsmith_tensor made;
  memset(&made, 0, sizeof(made));
  made.data = (void *)data;
  made.device_type = 1;
  made.ndim = rank;
  made.code = OPSMITH_TYPE_FLOAT32 >> 8;
  made.bits = OPSMITH_TYPE_FLOAT32 & 255;
  made.lanes = 1;
  made.shape = shape;
  return made;
}

static opsmith_value of(const opsmith_tensor *given) {
  opsmith_value made;
  memset(&made, 0, sizeof(made));
  made.kind = OPSMITH_TENSOR;
  made.as.tensor = given;
  return made;
}

static opsmith_value standard(void) {
  opsmith_value made;
  memset(&made, 0, sizeof(made));
  return made;
}

static opsmith_value ints(const int64_t *items, int64_t count) {
  opsmith_value made = standard();
  made.kind = OPSMITH_INTS;
  made.count = count;
  made.as.integers = items;
  return made;
}

static opsmith_value real(double value) {
  opsmith_value made = standard();
  made.kind = OPSMITH_FLOAT;
  made.as.real = value;
  return made;
}

static const float X[6] = {1, 2, 3, 4, 5, 6};
static const int64_t SHAPE[2] = {2, 3};

static void lists(void) {
  const opsmith_operator *op = api->find("transpose_copy");
  EXPECT(api->size >= sizeof(opsmith_api) && api->version == OPSMITH_ABI_VERSION);
  EXPECT(strcmp(api->library, "opsmith-example-custom-op") == 0 && strlen(api->fingerprint) == 16);
  EXPECT(api->operator_count > 500 && api->operators[0]->size >= sizeof(opsmith_operator));
  EXPECT(op != NULL && op == api->operators[0] && strcmp(op->signature, "transpose_copy(Tensor x, int[] perm) -> Tensor") == 0);
  EXPECT(op->argument_count == 2 && strcmp(op->arguments[1].name, "perm") == 0 && strcmp(op->arguments[1].type, "int[]") == 0);
  EXPECT(op->result_count == 1 && !op->gives_list && op->is_differentiable && op->refusal == NULL && op->reads_arguments == 0);
  EXPECT(api->find("nothing") == NULL && api->find(NULL) == NULL);
  EXPECT(strcmp(api->find("invert_permutation")->refusal, "its results are no tensors") == 0);
  EXPECT(api->find("split.int") == NULL || api->find("split.int")->gives_list);
}

static void runs(void) {
  static Place place;
  opsmith_outputs outputs = outputs_of(&place);
  opsmith_tensor x = tensor(X, 2, SHAPE);
  const int64_t order[2] = {1, 0};
  opsmith_value arguments[3] = {of(&x), ints(order, 2), standard()};
  /* A kernel in C++. */
  EXPECT(api->run(api->find("transpose_copy"), arguments, 2, &outputs) == OPSMITH_OK);
  EXPECT(place.count == 1 && place.ranks[0] == 2 && place.shapes[0][0] == 3 && place.data[0][1] == 4 && place.data[0][2] == 2);
  /* A kernel in Rust, of strided memory: the rows from the last to the first. */
  outputs = outputs_of(&place);
  const int64_t strides[2] = {-3, 1};
  x.strides = strides;
  x.byte_offset = 3 * sizeof(float);
  EXPECT(api->run(api->find("laplacian"), arguments, 1, &outputs) == OPSMITH_OK);
  EXPECT(place.data[0][0] == 4 * -4 + 5 + 1);
  x = tensor(X, 2, SHAPE);
  /* A loop of an expression, with a default and with a value, and a composition. */
  outputs = outputs_of(&place);
  arguments[1] = standard();
  EXPECT(api->run(api->find("gaussian"), arguments, 2, &outputs) == OPSMITH_OK && place.data[0][0] > 0.606f && place.data[0][0] < 0.607f);
  arguments[1] = real(0.5);
  outputs = outputs_of(&place);
  EXPECT(api->run(api->find("heat_step"), arguments, 2, &outputs) == OPSMITH_OK && place.data[0][0] == 1 + 0.5f * (2 + 4 - 4));
  /* Several results, a list as argument, and a list as result. */
  outputs = outputs_of(&place);
  arguments[1] = standard();
  EXPECT(api->run(api->find("sort"), arguments, 3, &outputs) == OPSMITH_OK && place.count == 2 && place.dtypes[1] == OPSMITH_TYPE_INT64);
  const opsmith_tensor *items[2] = {&x, &x};
  arguments[0].kind = OPSMITH_TENSORS;
  arguments[0].count = 2;
  arguments[0].as.tensors = items;
  outputs = outputs_of(&place);
  EXPECT(api->run(api->find("cat"), arguments, 2, &outputs) == OPSMITH_OK && place.shapes[0][0] == 4 && place.data[0][6] == 1);
}

static void adopts(void) {
  static Place place;
  static float large[200 * 200];
  const int64_t shape[2] = {200, 200};
  opsmith_tensor x = tensor(large, 2, shape);
  opsmith_value arguments[2] = {of(&x), standard()};
  opsmith_outputs outputs = outputs_of(&place);
  outputs.adopt = adopt;
  large[0] = 1;
  /* The memory of a large result of a composition is handed over. */
  EXPECT(api->run(api->find("heat_step"), arguments, 2, &outputs) == OPSMITH_OK && place.owners[0] != NULL);
  EXPECT(place.data[0][1] > 0.09f && place.data[0][1] < 0.11f);
  place.release(place.owners[0]);
}

static void differentiates(void) {
  static Place place;
  opsmith_outputs outputs = outputs_of(&place);
  const float ones[6] = {1, 1, 1, 1, 1, 1};
  opsmith_tensor x = tensor(X, 2, SHAPE), gradient = tensor(ones, 2, SHAPE), result;
  opsmith_value arguments[2] = {of(&x), standard()};
  const uint8_t wanted[1] = {1}, unwanted[1] = {0};
  const opsmith_operator *gaussian = api->find("gaussian");
  EXPECT(gaussian->takes_results == 1 && gaussian->reads_results == 1);
  EXPECT(api->run(gaussian, arguments, 2, &outputs) == OPSMITH_OK);
  float made[6];
  memcpy(made, place.data[0], sizeof(made));
  result = tensor(made, 2, SHAPE);
  const opsmith_tensor *results[1] = {&result}, *gradients[1] = {&gradient}, *none[1] = {NULL};
  outputs = outputs_of(&place);
  EXPECT(api->gradient(gaussian, arguments, 2, results, gradients, 1, wanted, 1, &outputs) == OPSMITH_OK);
  EXPECT(place.count == 1 && place.data[0][1] == made[1] * -2.0f);
  /* Without results the operator runs again; without a gradient there are zeros. */
  outputs = outputs_of(&place);
  EXPECT(api->gradient(gaussian, arguments, 2, NULL, gradients, 1, wanted, 1, &outputs) == OPSMITH_OK && place.data[0][1] == made[1] * -2.0f);
  outputs = outputs_of(&place);
  EXPECT(api->gradient(gaussian, arguments, 2, results, none, 1, wanted, 1, &outputs) == OPSMITH_OK && place.count == 1 && place.data[0][1] == 0);
  outputs = outputs_of(&place);
  EXPECT(api->gradient(gaussian, arguments, 2, results, gradients, 1, unwanted, 1, &outputs) == OPSMITH_OK && place.count == 0);
  /* A composition. */
  outputs = outputs_of(&place);
  EXPECT(api->gradient(api->find("heat_step"), arguments, 2, NULL, gradients, 1, wanted, 1, &outputs) == OPSMITH_OK);
  EXPECT(place.data[0][1] > 0.89f && place.data[0][1] < 0.91f);
  /* The second derivative: exp(-x²/2)'' = (x² - 1) exp(-x²/2), by the gradient of the gradient with respect to the argument. */
  const opsmith_tensor *cotangents[1] = {&gradient};
  const uint8_t needed[2] = {0, 1};
  outputs = outputs_of(&place);
  EXPECT(api->second_gradient(gaussian, arguments, 2, results, gradients, 1, wanted, 1, cotangents, 1, needed, 2, &outputs) == OPSMITH_OK);
  EXPECT(place.count == 1 && place.data[1][1] > 0.405f && place.data[1][1] < 0.407f);
  /* Forward mode: along a tangent of the argument, and along two of them, which is the second derivative again. */
  EXPECT(gaussian->is_pointwise == 1 && api->find("transpose_copy")->is_pointwise == 0);
  outputs = outputs_of(&place);
  EXPECT(api->tangent(gaussian, arguments, 2, cotangents, NULL, 1, wanted, 1, &outputs) == OPSMITH_OK);
  EXPECT(place.count == 1 && place.data[0][1] > made[1] * -2.0f - 1e-6f && place.data[0][1] < made[1] * -2.0f + 1e-6f);
  outputs = outputs_of(&place);
  EXPECT(api->tangent(gaussian, arguments, 2, cotangents, cotangents, 1, wanted, 1, &outputs) == OPSMITH_OK);
  EXPECT(place.count == 1 && place.data[0][1] > 0.405f && place.data[0][1] < 0.407f);
  outputs = outputs_of(&place);
  EXPECT(api->tangent(gaussian, arguments, 2, none, NULL, 1, wanted, 1, &outputs) == OPSMITH_OK && place.count == 1 && place.data[0][1] == 0);
  REFUSED(api->tangent(gaussian, arguments, 2, cotangents, NULL, 2, wanted, 1, &outputs), OPSMITH_INTERFACE, "2 tangents for 1 tensors");
  REFUSED(api->tangent(gaussian, arguments, 2, cotangents, NULL, 1, needed, 2, &outputs), OPSMITH_INTERFACE, "2 items for 1 results");
  REFUSED(api->gradient(gaussian, arguments, 2, results, gradients, 1, wanted, 2, &outputs), OPSMITH_INTERFACE, "items for 1 tensors");
  REFUSED(api->second_gradient(gaussian, arguments, 2, results, gradients, 1, wanted, 1, cotangents, 0, needed, 2, &outputs),
          OPSMITH_INTERFACE, "do not fit");
}

static void converts(void) {
  const int64_t numbers[6] = {1, -2, 3, 1LL << 32 | 4, 5, 6};
  int32_t made[6] = {0};
  opsmith_tensor source = tensor((const float *)(const void *)numbers, 2, SHAPE), target = tensor((const float *)(const void *)made, 2, SHAPE);
  source.code = OPSMITH_TYPE_INT64 >> 8;
  source.bits = OPSMITH_TYPE_INT64 & 255;
  target.code = OPSMITH_TYPE_INT32 >> 8;
  target.bits = OPSMITH_TYPE_INT32 & 255;
  EXPECT(api->convert(&target, &source, NULL) == OPSMITH_OK && made[0] == 1 && made[1] == -2 && made[3] == 4);
  REFUSED(api->convert(&target, NULL, NULL), OPSMITH_INTERFACE, "the tensor `source` is null");
  source.ndim = 1;
  REFUSED(api->convert(&target, &source, NULL), OPSMITH_INTERFACE, "one shape");
  REFUSED(api->convert(&target, &target, NULL), OPSMITH_ALIASING, "the memory of the target is that of the source");
}

static void infers(void) {
  const opsmith_inference *found = NULL;
  const int64_t order[2] = {1, 0}, symbols[2] = {-1, -2}, examples[2] = {5, -1};
  opsmith_tensor x = tensor(NULL, 2, SHAPE);
  opsmith_value arguments[2] = {of(&x), ints(order, 2)};
  EXPECT(api->infer(api->find("transpose_copy"), arguments, 2, NULL, 0, &found) == OPSMITH_OK && found->result_count == 1);
  EXPECT(found->results[0].ndim == 2 && found->nodes[found->results[0].sizes[0]].kind == OPSMITH_NODE_NUMBER);
  EXPECT(found->nodes[found->results[0].sizes[0]].a == 3 && found->guard_count == 0);
  api->release_inference(found);
  /* Two matrices of unknown sizes below each other: the sum of the rows, if the columns are equal. */
  const int64_t others[2] = {-1, -1};
  opsmith_tensor y;
  x.shape = symbols;
  y = x;
  y.shape = others;
  const opsmith_tensor *items[2] = {&x, &y};
  arguments[0].kind = OPSMITH_TENSORS;
  arguments[0].count = 2;
  arguments[0].as.tensors = items;
  arguments[1] = standard();
  EXPECT(api->infer(api->find("cat"), arguments, 2, examples, 2, &found) == OPSMITH_OK);
  const opsmith_node *rows = &found->nodes[found->results[0].sizes[0]];
  EXPECT(rows->kind == OPSMITH_NODE_MULTIPLY && found->nodes[rows->a].a == 2 && found->nodes[rows->b].kind == OPSMITH_NODE_SYMBOL);
  EXPECT(found->guard_count == 1 && found->nodes[found->guards[0].node].kind == OPSMITH_NODE_EQUAL);
  api->release_inference(found);
  api->release_inference(NULL);
  REFUSED(api->infer(api->find("cat"), arguments, 2, examples, 1, &found), OPSMITH_INTERFACE, "the symbol 1");
  EXPECT(found == NULL);
  REFUSED(api->infer(api->find("cat"), arguments, 2, examples, 2, NULL), OPSMITH_INTERFACE, "`found` is null");
}

static void mistakes(void) {
  static Place place;
  opsmith_outputs outputs = outputs_of(&place);
  opsmith_tensor x = tensor(X, 2, SHAPE);
  const int64_t order[2] = {1, 0}, wrong[2] = {0, 7}, negative[2] = {-4, 2}, far[2] = {INT64_MAX, INT64_MAX};
  opsmith_value arguments[2] = {of(&x), ints(order, 2)};
  const opsmith_operator *op = api->find("transpose_copy");
  REFUSED(api->run(NULL, arguments, 2, &outputs), OPSMITH_INTERFACE, "the operator is null");
  REFUSED(api->run(op, arguments, 1, &outputs), OPSMITH_INTERFACE, "1 arguments were given, the signature has 2");
  REFUSED(api->run(op, NULL, 2, &outputs), OPSMITH_INTERFACE, "`arguments` is null");
  REFUSED(api->run(op, arguments, -2, &outputs), OPSMITH_INTERFACE, "impossible length");
  REFUSED(api->run(op, arguments, 2, NULL), OPSMITH_INTERFACE, "`outputs` is null");
  outputs.size = 8;
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_INTERFACE, "set `size`");
  outputs.size = sizeof(outputs);
  outputs.allocate = NULL;
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_INTERFACE, "no function `allocate`");
  outputs.allocate = allocate;
  place.fails = 1;
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_REFUSED, "the caller's function");
  place.fails = 0;
  arguments[0] = of(NULL);
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_INTERFACE, "the tensor `x` is null");
  arguments[0] = of(&x);
  arguments[0].kind = 99;
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_INTERFACE, "the unknown kind 99");
  arguments[0] = real(1.5);
  arguments[1] = standard();
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_ARGUMENT, "`perm` is missing");
  arguments[0] = of(&x);
  arguments[1] = real(1.5);
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_ARGUMENT, "`perm` must be a list of ints");
  arguments[1] = ints(wrong, 2);
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_INDEX, "dimension 7 is out of range");
  arguments[1] = ints(NULL, 2);
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_INTERFACE, "`perm` is null");
  arguments[1] = ints(order, 2);
  x.bits = 7;
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_INTERFACE, "the element type of `x` is not known: code 2, 7 bits");
  x = tensor(X, 2, SHAPE);
  x.device_type = OPSMITH_DEVICE_CUDA;
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_INTERFACE, "a device of the kind 2, number 0, and the call names no stream");
  opsmith_stream stream = {9, 3, NULL};
  outputs.stream = &stream;
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_INTERFACE, "`stream` is on a device of the kind 9, number 3; the kinds are 1 (the host)");
  outputs.stream = NULL;
  x = tensor(NULL, 2, SHAPE);
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_INTERFACE, "has elements and no memory");
  x = tensor(X, 2, NULL);
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_INTERFACE, "`x` is null, with 2 items");
  x = tensor(X, -1, SHAPE);
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_INTERFACE, "impossible length -1");
  x = tensor((const float *)((const char *)X + 1), 2, SHAPE);
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_INTERFACE, "not aligned");
  x = tensor(X, 2, negative);
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_SHAPE, "negative size");
  x = tensor(X, 2, SHAPE);
  x.strides = far;
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_SHAPE, "beyond all memory");
  x = tensor(X, 2, SHAPE);
  x.code = OPSMITH_TYPE_INT64 >> 8;
  x.bits = 64;
  REFUSED(api->run(api->find("laplacian"), arguments, 1, &outputs), OPSMITH_NOT_IMPLEMENTED, "int64");
  float memory[6] = {0};
  x = tensor(memory, 2, SHAPE);
  place.given = memory + 2;
  REFUSED(api->run(op, arguments, 2, &outputs), OPSMITH_ALIASING, "the memory of result 0 is that of another tensor");
  REFUSED(api->run(api->find("invert_permutation"), arguments + 1, 1, &outputs), OPSMITH_INTERFACE, "no tensors");
}

int main(int count, char **arguments) {
  void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) {
    printf("the library cannot be loaded: %s\n", dlerror());
    return 1;
  }
  opsmith_abi_function table = NULL;
  *(void **)&table = dlsym(library, "opsmith_abi");
  api = table == NULL ? NULL : table(OPSMITH_ABI_VERSION);
  if (api == NULL || table(OPSMITH_ABI_VERSION + 1) != NULL || table(OPSMITH_ABI_VERSION) != api) {
    printf("the library does not know the version\n");
    return 1;
  }
  printf("sizes %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu\n", sizeof(opsmith_tensor), sizeof(opsmith_value),
         sizeof(opsmith_outputs), sizeof(opsmith_stream), sizeof(opsmith_argument), sizeof(opsmith_operator), sizeof(opsmith_node),
         sizeof(opsmith_result), sizeof(opsmith_guard), sizeof(opsmith_inference), sizeof(opsmith_api),
         offsetof(opsmith_api, error_text), offsetof(opsmith_outputs, stream));
  lists();
  runs();
  adopts();
  differentiates();
  converts();
  infers();
  mistakes();
  printf("%d failures\n", failures);
  return failures != 0;
}
