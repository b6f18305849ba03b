// The interface of custom kernels that are compiled ahead of time: their functions, and data besides tensors.
//
// A kernel is a function `F` and up to three beside it, all extern "C":
//
//   int F(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra)
//   int FInit(int *ndims, int64_t **shapes, const char **dtypes, AotExtra *extra)
//   std::vector<int64_t> FInferShape(int *ndims, int64_t **shapes, AotExtra *extra)
//   TypeId FInferType(std::vector<TypeId> dtypes, AotExtra *extra)
//
// `params` are inputs, outputs and workspaces, in this order; `ndims`, `shapes` and `dtypes` are of inputs
// and outputs only. FInit and F get the same `extra`: FInit reads attributes, asks for workspaces, and may
// leave an object of its own for F. Anything but 0 is an error. With several outputs FInferShape returns a
// vector of shapes, and FInferType a vector of types. See docs of opsmith_runtime::aot.
//
// `stream` is null for a kernel of the host. A kernel for a CUDA device gets a stream of it, and addresses of
// its memory in `params`; all other arrays, and `params` itself, are in memory of the host. Its work in the
// stream need not be done when it returns. It returns the result of cudaGetLastError for its launches.
//
// The order of virtual functions and fields is the interface; libraries that were built with another
// header of the same interface run as well.

#ifndef OPSMITH_CUSTOM_AOT_EXTRA_H_
#define OPSMITH_CUSTOM_AOT_EXTRA_H_

#include <cstddef>
#include <cstdint>
// Sources written for the interface count on this one.
#include <iostream>
#include <string>
#include <type_traits>
#include <vector>

// The types that FInferType takes and gives; the numbers are the interface.
enum TypeId : int {
  kTypeUnknown = 0,
  kNumberTypeBool = 30,
  kNumberTypeInt8 = 32,
  kNumberTypeInt16 = 33,
  kNumberTypeInt32 = 34,
  kNumberTypeInt64 = 35,
  kNumberTypeUInt8 = 37,
  kNumberTypeUInt16 = 38,
  kNumberTypeUInt32 = 39,
  kNumberTypeUInt64 = 40,
  kNumberTypeFloat16 = 42,
  kNumberTypeFloat32 = 43,
  kNumberTypeFloat64 = 44,
  kNumberTypeBFloat16 = 45,
  kNumberTypeComplex64 = 51,
  kNumberTypeComplex128 = 52,
};

class AotExtra;

// An object of the kernel's own, made in FInit with `new`, destroyed with the kernel. Derive from it. A kernel may delete
// it earlier: the AotExtra that holds it then holds none.
class AotKernelData {
 public:
  AotKernelData() = default;
  // The holder is that of one object.
  AotKernelData(const AotKernelData &) {}
  AotKernelData &operator=(const AotKernelData &) { return *this; }
  virtual ~AotKernelData();

 private:
  friend class AotExtra;
  // Only code of this class and of SetKernelData reads it: hosts know no field.
  AotExtra *holder_ = nullptr;
};

// Attributes, workspaces and the kernel's object. The host makes and destroys it: a kernel that deletes it fails.
class AotExtra {
 public:
  AotExtra() = default;
  virtual ~AotExtra() = default;

  // Whether there is an attribute of that name.
  virtual bool HasAttr(std::string name) = 0;

  // An attribute: bool, int64_t, float, std::string, std::vector of int64_t or float, or a vector of such
  // vectors. Throws if there is none of that name and type.
  template <typename T>
  T Attr(std::string name);

  // Asks for workspaces of these sizes in bytes.
  void SetWorkSpace(const std::vector<size_t> &workspace) { workspace_ = workspace; }
  const std::vector<size_t> &WorkSpace() const { return workspace_; }

  // Leaves an object for F, which is deleted with the kernel. Another one that was left before is the kernel's again.
  void SetKernelData(AotKernelData *kernel_data) {
    if (kernel_data_ != nullptr) kernel_data_->holder_ = nullptr;
    kernel_data_ = kernel_data;
    if (kernel_data_ != nullptr) kernel_data_->holder_ = this;
  }
  AotKernelData *KernelData() const { return kernel_data_; }
  void DestructKernelData() {
    AotKernelData *kernel_data = kernel_data_;
    kernel_data_ = nullptr;
    delete kernel_data;
  }

 private:
  friend class AotKernelData;

  template <typename T>
  struct Always : std::false_type {};

  // The callees of Attr. The host implements them; their order must stay.
  virtual bool GetAttrBool(std::string name) = 0;
  virtual int64_t GetAttrInt(std::string name) = 0;
  virtual float GetAttrFloat(std::string name) = 0;
  virtual std::string GetAttrStr(std::string name) = 0;
  virtual std::vector<int64_t> GetAttrIntVec(std::string name) = 0;
  virtual std::vector<float> GetAttrFloatVec(std::string name) = 0;
  virtual std::vector<std::vector<int64_t>> GetAttrInt2DVec(std::string name) = 0;
  virtual std::vector<std::vector<float>> GetAttrFloat2DVec(std::string name) = 0;

  std::vector<size_t> workspace_;
  AotKernelData *kernel_data_ = nullptr;
};

inline AotKernelData::~AotKernelData() {
  if (holder_ != nullptr && holder_->kernel_data_ == this) holder_->kernel_data_ = nullptr;
}

template <typename T>
T AotExtra::Attr(std::string name) {
  if constexpr (std::is_same_v<T, bool>) {
    return GetAttrBool(name);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return GetAttrInt(name);
  } else if constexpr (std::is_same_v<T, float>) {
    return GetAttrFloat(name);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return GetAttrStr(name);
  } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    return GetAttrIntVec(name);
  } else if constexpr (std::is_same_v<T, std::vector<float>>) {
    return GetAttrFloatVec(name);
  } else if constexpr (std::is_same_v<T, std::vector<std::vector<int64_t>>>) {
    return GetAttrInt2DVec(name);
  } else if constexpr (std::is_same_v<T, std::vector<std::vector<float>>>) {
    return GetAttrFloat2DVec(name);
  } else {
    static_assert(Always<T>::value,
                  "attributes are bool, int64_t, float, std::string, std::vector of int64_t or float, or a "
                  "vector of such vectors");
  }
}

#endif  // OPSMITH_CUSTOM_AOT_EXTRA_H_
