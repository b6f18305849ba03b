// {{ generated }}
//
// The operators of `{{ library }}` as functions of MindSpore's AOT form: for each a function that runs it, `Init`, which decodes the call's
// attribute, and `InferShape`, for programs whose sizes are known when they run; and as many for its gradient and for the gradient of that.
// All call the C interface of the library of kernels beside this one.
//
// The attribute `opsmith_call` is a list of integers: the lengths of four lists, then kinds and counts of arguments, integers, bits of
// real numbers, and bytes of texts. `opsmith_given` is there if sizes were not known to the compiler: the number of results, that of
// inputs, and the number of each input's element type.

// MindSpore's own strings are of this form.
#define _GLIBCXX_USE_CXX11_ABI 0

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "opsmith_abi.h"
#include "opsmith_kernels.h"

// An object that a call keeps from `Init` on. MindSpore deletes it.
class AotKernelData {
 public:
  virtual ~AotKernelData() = default;
};

// A call's attributes. Members and the order of virtual functions are MindSpore's; names are not.
class AotExtra {
 public:
  virtual ~AotExtra() = default;
  virtual bool has(std::string name) = 0;
  virtual bool truth(std::string name) = 0;
  virtual int64_t integer(std::string name) = 0;
  virtual float real(std::string name) = 0;
  virtual std::string text(std::string name) = 0;
  virtual std::vector<int64_t> integers(std::string name) = 0;
  virtual std::vector<float> reals(std::string name) = 0;
  virtual std::vector<std::vector<int64_t>> integer_lists(std::string name) = 0;
  virtual std::vector<std::vector<float>> real_lists(std::string name) = 0;

  std::vector<size_t> workspace;
  AotKernelData *kept;
};

namespace {

constexpr const char *KERNELS = "{{ kernels }}";

using Shape = std::vector<int64_t>;

[[noreturn]] void fail(const std::string &text) { throw std::runtime_error(text); }

const opsmith_api *open_kernels() {
  std::string failure;
  const opsmith_api *found = opsmith_kernels::open(KERNELS, failure);
  if (found == nullptr) {
    fail(failure);
  }
  return found;
}

const opsmith_api &api() {
  static const opsmith_api *const found = open_kernels();
  return *found;
}

struct Type {
  const char *name;
  uint32_t number;
};

const Type TYPES[] = {
    {"bool", OPSMITH_TYPE_BOOL},
    {"uint8", OPSMITH_TYPE_UINT8},
    {"uint16", OPSMITH_TYPE_UINT16},
    {"uint32", OPSMITH_TYPE_UINT32},
    {"uint64", OPSMITH_TYPE_UINT64},
    {"int8", OPSMITH_TYPE_INT8},
    {"int16", OPSMITH_TYPE_INT16},
    {"int32", OPSMITH_TYPE_INT32},
    {"int64", OPSMITH_TYPE_INT64},
    {"float16", OPSMITH_TYPE_FLOAT16},
    {"bfloat16", OPSMITH_TYPE_BFLOAT16},
    {"float32", OPSMITH_TYPE_FLOAT32},
    {"float64", OPSMITH_TYPE_FLOAT64},
    {"complex64", OPSMITH_TYPE_COMPLEX64},
    {"complex128", OPSMITH_TYPE_COMPLEX128},
    {"float8e4m3fn", OPSMITH_TYPE_FLOAT8_E4M3FN},
    {"float8e5m2", OPSMITH_TYPE_FLOAT8_E5M2},
};

uint32_t number_of(const char *name) {
  for (const Type &type : TYPES) {
    if (std::strcmp(type.name, name) == 0) {
      return type.number;
    }
  }
  fail(std::string("the element type ") + name + " has no kernel");
}

opsmith_tensor describe(void *data, int ndim, const int64_t *shape, uint32_t number) {
  opsmith_tensor made{};
  made.data = data;
  made.device_type = 1;
  made.ndim = ndim;
  made.code = static_cast<uint8_t>(number >> 8);
  made.bits = static_cast<uint8_t>(number);
  made.lanes = 1;
  made.shape = shape;
  return made;
}

bool has_gradient(const opsmith_tensor &tensor) {
  switch (OPSMITH_DTYPE(tensor.code, tensor.bits)) {
    case OPSMITH_TYPE_FLOAT16:
    case OPSMITH_TYPE_BFLOAT16:
    case OPSMITH_TYPE_FLOAT32:
    case OPSMITH_TYPE_FLOAT64:
    case OPSMITH_TYPE_COMPLEX64:
    case OPSMITH_TYPE_COMPLEX128:
      return true;
    default:
      return false;
  }
}

// The arguments of a call but for its tensors, as `opsmith_call` has them.
struct Call : AotKernelData {
  const opsmith_operator *op;
  std::vector<int64_t> code;
  const int64_t *kinds, *integers, *reals, *letters;
  size_t argument_count = 0;
  size_t tensor_count = 0;
  std::string texts;

  Call(const char *name, AotExtra &extra) : op(api().find(name)), code(extra.integers("opsmith_call")) {
    if (op == nullptr) {
      fail(std::string("the library of kernels has no operator `") + name + "`; build it again");
    }
    if (code.size() < 4 || code.size() != 4 + static_cast<size_t>(code[0] + code[1] + code[2] + code[3])) {
      fail(std::string("the call of `") + name + "` has no description; make it by the package of Python");
    }
    kinds = code.data() + 4;
    integers = kinds + code[0];
    reals = integers + code[1];
    letters = reals + code[2];
    argument_count = static_cast<size_t>(code[0]) / 2;
    texts.assign(letters, letters + code[3]);
    const int64_t *integer = integers;
    for (size_t at = 0; at < argument_count; ++at) {
      int64_t kind = kinds[2 * at], count = kinds[2 * at + 1];
      tensor_count += kind == OPSMITH_TENSOR ? 1 : 0;
      if (kind == OPSMITH_TENSORS) {
        for (int64_t item = 0; item < count; ++item) {
          tensor_count += integer[item] != 0 ? 1 : 0;
        }
      }
      bool is_one = kind == OPSMITH_BOOL || kind == OPSMITH_INT;
      bool is_list = kind == OPSMITH_TENSORS || kind == OPSMITH_INTS || kind == OPSMITH_BOOLS || kind == OPSMITH_TEXTS;
      integer += is_one ? 1 : is_list ? count : 0;
    }
  }

  size_t result_count() const { return static_cast<size_t>(op->result_count); }
};

// The arguments of a call with its tensors.
class Values {
 public:
  Values(const Call &call, const opsmith_tensor *tensors) : tensor_(tensors) {
    const int64_t *integer = call.integers, *real = call.reals;
    const char *text = call.texts.data();
    for (size_t at = 0; at < call.argument_count; ++at) {
      opsmith_value value{};
      value.kind = static_cast<int32_t>(call.kinds[2 * at]);
      value.count = call.kinds[2 * at + 1];
      auto count = static_cast<size_t>(value.count);
      switch (value.kind) {
        case OPSMITH_TENSOR:
          value.as.tensor = tensor_++;
          break;
        case OPSMITH_TENSORS:
          lists_.emplace_back();
          for (size_t item = 0; item < count; ++item) {
            lists_.back().push_back(*integer++ != 0 ? tensor_++ : nullptr);
          }
          value.as.tensors = lists_.back().data();
          break;
        case OPSMITH_BOOL:
        case OPSMITH_INT:
          value.as.integer = *integer++;
          break;
        case OPSMITH_FLOAT:
          std::memcpy(&value.as.real, real++, sizeof(double));
          break;
        case OPSMITH_COMPLEX:
          std::memcpy(value.as.parts, real, 2 * sizeof(double));
          real += 2;
          break;
        case OPSMITH_TEXT:
          value.as.text = text;
          text += count;
          break;
        case OPSMITH_INTS:
          value.as.integers = integer;
          integer += count;
          break;
        case OPSMITH_FLOATS:
          reals_.emplace_back(count);
          std::memcpy(reals_.back().data(), real, count * sizeof(double));
          real += count;
          value.as.reals = reals_.back().data();
          break;
        case OPSMITH_BOOLS:
          truths_.emplace_back(integer, integer + count);
          integer += count;
          value.as.truths = truths_.back().data();
          break;
        case OPSMITH_TEXTS:
          // The lengths of texts are among the integers.
          pointers_.emplace_back();
          for (size_t item = 0; item < count; ++item) {
            strings_.emplace_back(text, static_cast<size_t>(*integer));
            pointers_.back().push_back(strings_.back().c_str());
            text += *integer++;
          }
          value.as.texts = pointers_.back().data();
          break;
        default:
          break;
      }
      values_.push_back(value);
    }
  }
  const opsmith_value *data() const { return values_.data(); }
  int64_t count() const { return static_cast<int64_t>(values_.size()); }

 private:
  const opsmith_tensor *tensor_;
  std::vector<opsmith_value> values_;
  // Items of a deque do not move when it grows.
  std::deque<std::vector<const opsmith_tensor *>> lists_;
  std::deque<std::vector<double>> reals_;
  std::deque<std::vector<uint8_t>> truths_;
  std::deque<std::vector<const char *>> pointers_;
  std::deque<std::string> strings_;
};

// The place of results: tensors of MindSpore. `places` has the number of the tensor for each index that the interface gives.
struct Place {
  std::vector<opsmith_tensor> tensors;
  std::vector<int64_t> places;
  std::string error;
  opsmith_outputs outputs{sizeof(opsmith_outputs), this, allocate, nullptr, nullptr};

  static int allocate(void *context, int64_t index, opsmith_tensor *result) {
    auto &own = *static_cast<Place *>(context);
    auto at = static_cast<size_t>(index);
    at = at < own.places.size() ? static_cast<size_t>(own.places[at]) : own.tensors.size();
    if (at >= own.tensors.size()) {
      own.error = "the program expects fewer results";
      return 1;
    }
    const opsmith_tensor &tensor = own.tensors[at];
    bool is_same = tensor.ndim == result->ndim && tensor.code == result->code && tensor.bits == result->bits;
    for (int32_t dim = 0; dim < result->ndim && is_same; ++dim) {
      is_same = tensor.shape[dim] == result->shape[dim];
    }
    if (!is_same) {
      own.error = "a result has another shape or element type than the program expects";
      return 1;
    }
    result->data = tensor.data;
    return 0;
  }

  void check(int code) const {
    if (code != OPSMITH_OK) {
      fail(code == OPSMITH_REFUSED ? error : std::string(api().error_text()));
    }
  }
};

void fill_with_zeros(const opsmith_tensor &tensor) {
  size_t bytes = tensor.bits / 8;
  for (int32_t dim = 0; dim < tensor.ndim; ++dim) {
    bytes *= static_cast<size_t>(tensor.shape[dim]);
  }
  std::memset(tensor.data, 0, bytes);
}

// The tensors of a call: inputs, then results.
std::vector<opsmith_tensor> tensors_of(int count, void **data, int *ndims, int64_t **shapes, const char **dtypes) {
  std::vector<opsmith_tensor> found;
  for (int at = 0; at < count; ++at) {
    found.push_back(describe(data[at], ndims[at], shapes[at], number_of(dtypes[at])));
  }
  return found;
}

void run(const Call &call, std::vector<opsmith_tensor> given) {
  if (given.size() < call.tensor_count) {
    fail(std::string("`") + call.op->name + "` got fewer tensors than it was made for");
  }
  Place place;
  place.tensors.assign(given.begin() + static_cast<ptrdiff_t>(call.tensor_count), given.end());
  for (size_t at = 0; at < place.tensors.size(); ++at) {
    place.places.push_back(static_cast<int64_t>(at));
  }
  Values values(call, given.data());
  place.check(api().run(call.op, values.data(), values.count(), &place.outputs));
}

// The parts of the inputs of a gradient: the call's tensors, its results if a formula needs them, and the gradients of results, of which
// those without one are null.
struct Pull {
  const Call &call;
  std::vector<const opsmith_tensor *> results, gradients;
  std::vector<uint8_t> wanted;

  Pull(const Call &call, const std::vector<opsmith_tensor> &given, size_t result_count) : call(call) {
    const opsmith_tensor *next = given.data() + call.tensor_count;
    for (size_t at = 0; at < result_count && call.op->takes_results != 0; ++at) {
      results.push_back(next++);
    }
    for (size_t at = 0; at < result_count; ++at, ++next) {
      size_t bit = call.op->gives_list != 0 ? 0 : at;
      bool flows = (call.op->differentiable_results >> bit & 1) != 0 && has_gradient(*next);
      gradients.push_back(flows ? next : nullptr);
    }
    for (size_t at = 0; at < call.tensor_count; ++at) {
      wanted.push_back(has_gradient(given[at]) ? 1 : 0);
    }
  }
  const opsmith_tensor *const *results_or_null() const { return call.op->takes_results != 0 ? results.data() : nullptr; }
  int64_t count() const { return static_cast<int64_t>(gradients.size()); }
};

// The number of a call's results, from that of all tensors of a gradient's call: some times the call's tensors, and the rest.
size_t results_among(const Call &call, size_t all, size_t times, size_t rest) {
  size_t own = times * call.tensor_count;
  if (all < own || (all - own) % rest != 0) {
    fail(std::string("a gradient of `") + call.op->name + "` got another number of tensors than it was made for");
  }
  return (all - own) / rest;
}

void gradient(const Call &call, std::vector<opsmith_tensor> given) {
  size_t count = results_among(call, given.size(), 2, 1 + call.op->takes_results);
  Pull pull(call, given, count);
  Place place;
  place.tensors.assign(given.end() - static_cast<ptrdiff_t>(call.tensor_count), given.end());
  for (size_t at = 0; at < call.tensor_count; ++at) {
    place.places.push_back(static_cast<int64_t>(at));
    if (pull.wanted[at] == 0) {
      fill_with_zeros(place.tensors[at]);
    }
  }
  Values values(call, given.data());
  place.check(api().gradient(call.op, values.data(), values.count(), pull.results_or_null(), pull.gradients.data(), pull.count(),
                             pull.wanted.data(), static_cast<int64_t>(pull.wanted.size()), &place.outputs));
}

// Behind the inputs of a gradient are the gradients of its results. Results are the gradients of its inputs, zeros for a call's results:
// a formula that reads them is differentiated through them to the tensors.
void second_gradient(const Call &call, std::vector<opsmith_tensor> given) {
  size_t count = results_among(call, given.size(), 3, 2 * (1 + call.op->takes_results));
  Pull pull(call, given, count);
  size_t kept = call.tensor_count + pull.results.size(), inputs = kept + count;
  std::vector<const opsmith_tensor *> cotangents;
  for (size_t at = 0; at < call.tensor_count; ++at) {
    if (pull.wanted[at] != 0) {
      cotangents.push_back(&given[inputs + at]);
    }
  }
  Place place;
  place.tensors.assign(given.begin() + static_cast<ptrdiff_t>(inputs + call.tensor_count), given.end());
  std::vector<uint8_t> needed;
  for (size_t at = 0; at < count; ++at) {
    needed.push_back(pull.gradients[at] != nullptr ? 1 : 0);
    place.places.push_back(static_cast<int64_t>(kept + at));
  }
  for (size_t at = 0; at < call.tensor_count; ++at) {
    needed.push_back(pull.wanted[at]);
    place.places.push_back(static_cast<int64_t>(at));
  }
  for (const opsmith_tensor &tensor : place.tensors) {
    fill_with_zeros(tensor);
  }
  Values values(call, given.data());
  place.check(api().second_gradient(call.op, values.data(), values.count(), pull.results_or_null(), pull.gradients.data(),
                                    pull.count(), pull.wanted.data(), static_cast<int64_t>(pull.wanted.size()), cotangents.data(),
                                    static_cast<int64_t>(cotangents.size()), needed.data(), static_cast<int64_t>(needed.size()),
                                    &place.outputs));
}

using Body = void (*)(const Call &, std::vector<opsmith_tensor>);

// The function of a call. Mistakes leave it as exceptions, whose text MindSpore's own error has.
int main_of(Body body, const char *name, int count, void **data, int *ndims, int64_t **shapes, const char **dtypes, void *extra) {
  if (extra == nullptr) {
    fail(std::string("`") + name + "` got no attributes");
  }
  auto &given = *static_cast<AotExtra *>(extra);
  auto tensors = tensors_of(count, data, ndims, shapes, dtypes);
  if (given.kept != nullptr) {
    body(*static_cast<const Call *>(given.kept), std::move(tensors));
  } else {
    body(Call(name, given), std::move(tensors));
  }
  return 0;
}

int init_of(const char *name, AotExtra *extra) {
  auto made = std::make_unique<Call>(name, *extra);
  delete extra->kept;
  extra->kept = made.release();
  return 0;
}

// The shapes of results. A size that MindSpore does not know is -1 here and there.
std::vector<Shape> shapes_of(const char *name, int *ndims, int64_t **shapes, AotExtra *extra) {
  Call call(name, *extra);
  std::vector<int64_t> given = extra->integers("opsmith_given");
  if (given.size() < 2 + call.tensor_count) {
    fail(std::string("the element types of the tensors of `") + name + "` are not known");
  }
  std::vector<Shape> sizes;
  std::vector<opsmith_tensor> tensors;
  int64_t symbols = 0;
  for (size_t at = 0; at < call.tensor_count; ++at) {
    sizes.emplace_back(shapes[at], shapes[at] + ndims[at]);
    for (int64_t &size : sizes.back()) {
      size = size < 0 ? -1 - symbols++ : size;
    }
  }
  for (size_t at = 0; at < call.tensor_count; ++at) {
    tensors.push_back(describe(nullptr, ndims[at], sizes[at].data(), static_cast<uint32_t>(given[2 + at])));
  }
  Values values(call, tensors.data());
  std::vector<int64_t> examples(static_cast<size_t>(symbols), -1);
  const opsmith_inference *found = nullptr;
  if (api().infer(call.op, values.data(), values.count(), examples.data(), symbols, &found) != OPSMITH_OK) {
    fail(api().error_text());
  }
  std::unique_ptr<const opsmith_inference, void (*)(const opsmith_inference *)> owner(found, api().release_inference);
  std::vector<Shape> made;
  for (int64_t at = 0; at < found->result_count; ++at) {
    const opsmith_result &result = found->results[at];
    made.emplace_back();
    for (int32_t dim = 0; dim < result.ndim; ++dim) {
      const opsmith_node &node = found->nodes[result.sizes[dim]];
      made.back().push_back(node.kind == OPSMITH_NODE_NUMBER ? node.a : -1);
    }
  }
  return made;
}

// The shapes of a gradient's results: those of its first inputs.
std::vector<Shape> shapes_of_inputs(int *ndims, int64_t **shapes, AotExtra *extra) {
  std::vector<int64_t> given = extra->integers("opsmith_given");
  std::vector<Shape> made;
  for (int64_t at = 0; !given.empty() && at < given[0]; ++at) {
    made.emplace_back(shapes[at], shapes[at] + ndims[at]);
  }
  return made;
}

Shape only(std::vector<Shape> shapes) { return std::move(shapes.at(0)); }

std::vector<Shape> all(std::vector<Shape> shapes) { return shapes; }

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

#define MAIN(symbol, name, body)                                                                                             \
  EXPORTED int symbol(int count, void **data, int *ndims, int64_t **shapes, const char **dtypes, void *, void *extra) {      \
    return main_of(body, name, count, data, ndims, shapes, dtypes, extra);                                                   \
  }                                                                                                                          \
  EXPORTED int symbol##Init(int *, int64_t **, const char **, AotExtra *extra) { return init_of(name, extra); }

#define GRADIENT(symbol, name, body)                                                                     \
  MAIN(symbol, name, body)                                                                               \
  EXPORTED std::vector<Shape> symbol##InferShape(int *ndims, int64_t **shapes, AotExtra *extra) {        \
    return shapes_of_inputs(ndims, shapes, extra);                                                       \
  }

#define OPERATOR(symbol, name, Shapes, chosen)                                                 \
  MAIN(symbol, name, run)                                                                      \
  EXPORTED Shapes symbol##InferShape(int *ndims, int64_t **shapes, AotExtra *extra) {          \
    return chosen(shapes_of(name, ndims, shapes, extra));                                      \
  }                                                                                            \
  GRADIENT(symbol##_gradient, name, gradient)                                                  \
  GRADIENT(symbol##_second_gradient, name, second_gradient)
{% for row in rows %}
OPERATOR(op_{{ row.symbol }}, "{{ row.name }}", {{ "std::vector<Shape>, all" if row.is_several else "Shape, only" }})
{%- endfor %}
