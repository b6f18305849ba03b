// The variant of the interface `custom_aot_extra.h` whose names of attributes are vectors, so that kernels can be
// compiled with either layout of std::string. Libraries count on the order of virtual functions
// and fields; see that header for their purposes.

#ifndef OPSMITH_TESTS_CUSTOM_AOT_EXTRA_DUAL_ABI_H_
#define OPSMITH_TESTS_CUSTOM_AOT_EXTRA_DUAL_ABI_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

class AotKernelDataDualABI {
 public:
  virtual ~AotKernelDataDualABI() = default;
};

class AotExtraDualABI {
  using Name = std::vector<char>;
  static Name Characters(const std::string &name) { return Name(name.begin(), name.end()); }

 public:
  virtual ~AotExtraDualABI() = default;
  virtual bool HasAttr(std::string name) { return HasAttr(Characters(name)); }

  template <typename T>
  T Attr(std::string name) {
    const Name characters = Characters(name);
    if constexpr (std::is_same_v<T, bool>) {
      return GetAttrBool(characters);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return GetAttrInt(characters);
    } else if constexpr (std::is_same_v<T, float>) {
      return GetAttrFloat(characters);
    } else if constexpr (std::is_same_v<T, std::string>) {
      const std::vector<char> text = GetAttrStr(characters);
      return std::string(text.begin(), text.end());
    } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
      return GetAttrIntVec(characters);
    } else if constexpr (std::is_same_v<T, std::vector<float>>) {
      return GetAttrFloatVec(characters);
    } else if constexpr (std::is_same_v<T, std::vector<std::vector<int64_t>>>) {
      return GetAttrInt2DVec(characters);
    } else {
      return GetAttrFloat2DVec(characters);
    }
  }

  void SetWorkSpace(const std::vector<size_t> &sizes) { workspace_ = sizes; }
  const std::vector<size_t> &WorkSpace() const { return workspace_; }
  void SetKernelData(AotKernelDataDualABI *data) { kernel_data_ = data; }
  AotKernelDataDualABI *KernelData() const { return kernel_data_; }

 private:
  virtual bool HasAttr(Name name) = 0;
  virtual bool GetAttrBool(Name name) = 0;
  virtual int64_t GetAttrInt(Name name) = 0;
  virtual float GetAttrFloat(Name name) = 0;
  virtual std::vector<char> GetAttrStr(Name name) = 0;
  virtual std::vector<int64_t> GetAttrIntVec(Name name) = 0;
  virtual std::vector<float> GetAttrFloatVec(Name name) = 0;
  virtual std::vector<std::vector<int64_t>> GetAttrInt2DVec(Name name) = 0;
  virtual std::vector<std::vector<float>> GetAttrFloat2DVec(Name name) = 0;

  std::vector<size_t> workspace_;
  AotKernelDataDualABI *kernel_data_ = nullptr;
};

#endif  // OPSMITH_TESTS_CUSTOM_AOT_EXTRA_DUAL_ABI_H_
