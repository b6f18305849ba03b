// Attributes as values of C++. In: values as Rust writes them. Out: numbers and vectors, or an exception. Must not know
// which class of object reads them.

#include <stdexcept>

#include "host.h"

namespace opsmith_aot {

// A value that was found, with its memory.
class Attributes::Found {
 public:
  Found(const Attributes &attributes, std::string_view name, Type type) : release_(attributes.release_) {
    if (!attributes.find_(attributes.context_, name.data(), name.size(), type, &value_)) {
      const std::runtime_error error(static_cast<const char *>(value_.items));
      release_(value_.owner);
      throw error;
    }
  }
  Found(const Found &) = delete;
  Found &operator=(const Found &) = delete;
  ~Found() {
    if (value_.owner != nullptr) release_(value_.owner);
  }

  const Value *operator->() const { return &value_; }

  // The items as a vector of another type of number.
  template <typename From, typename To>
  std::vector<To> List() const {
    return Part<From, To>(0, value_.count);
  }

  template <typename From, typename To>
  std::vector<std::vector<To>> Lists() const {
    std::vector<std::vector<To>> lists;
    lists.reserve(value_.lists);
    size_t start = 0;
    for (size_t i = 0; i < value_.lists; ++i) {
      lists.push_back(Part<From, To>(start, value_.ends[i]));
      start = value_.ends[i];
    }
    return lists;
  }

 private:
  template <typename From, typename To>
  std::vector<To> Part(size_t start, size_t end) const {
    const From *items = static_cast<const From *>(value_.items);
    std::vector<To> part;
    part.reserve(end - start);
    for (size_t i = start; i < end; ++i) part.push_back(static_cast<To>(items[i]));
    return part;
  }

  Value value_ = {};
  void (*release_)(void *);
};

bool Attributes::Bool(std::string_view name) const { return Found(*this, name, Type::kBool)->integer != 0; }

int64_t Attributes::Int(std::string_view name) const { return Found(*this, name, Type::kInt)->integer; }

float Attributes::Float(std::string_view name) const {
  return static_cast<float>(Found(*this, name, Type::kFloat)->real);
}

std::vector<char> Attributes::Text(std::string_view name) const {
  return Found(*this, name, Type::kText).List<char, char>();
}

std::vector<int64_t> Attributes::Ints(std::string_view name) const {
  return Found(*this, name, Type::kInts).List<int64_t, int64_t>();
}

std::vector<float> Attributes::Floats(std::string_view name) const {
  return Found(*this, name, Type::kFloats).List<double, float>();
}

std::vector<std::vector<int64_t>> Attributes::IntLists(std::string_view name) const {
  return Found(*this, name, Type::kIntLists).Lists<int64_t, int64_t>();
}

std::vector<std::vector<float>> Attributes::FloatLists(std::string_view name) const {
  return Found(*this, name, Type::kFloatLists).Lists<double, float>();
}

}  // namespace opsmith_aot
