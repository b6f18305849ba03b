// `AotExtraDualABI`: the variant of `AotExtra` whose names of attributes, and texts, are vectors, so that the layout of
// std::string matters nowhere. The order of virtual functions and fields is the interface.

#include <new>
#include <utility>

#include "host.h"

namespace opsmith_aot {
namespace {

using Characters = std::vector<char>;

class KernelData {
 public:
  virtual ~KernelData() = default;
};

class Interface {
 public:
  virtual ~Interface() = default;
  // With a std::string of either layout, which is passed by its address. Both begin with the address of the text.
  virtual bool HasAttr(const char *const *name) = 0;

 protected:
  virtual bool HasAttr(Characters name) = 0;
  virtual bool GetAttrBool(Characters name) = 0;
  virtual int64_t GetAttrInt(Characters name) = 0;
  virtual float GetAttrFloat(Characters name) = 0;
  virtual Characters GetAttrStr(Characters name) = 0;
  virtual std::vector<int64_t> GetAttrIntVec(Characters name) = 0;
  virtual std::vector<float> GetAttrFloatVec(Characters name) = 0;
  virtual std::vector<std::vector<int64_t>> GetAttrInt2DVec(Characters name) = 0;
  virtual std::vector<std::vector<float>> GetAttrFloat2DVec(Characters name) = 0;

  std::vector<size_t> workspace_;
  KernelData *kernel_data_ = nullptr;
};

std::string_view View(const Characters &name) { return {name.data(), name.size()}; }

class DualExtra final : public Interface, public Object {
 public:
  DualExtra(const Attributes &attributes, std::vector<size_t> workspaces, void *data) : attributes_(attributes) {
    workspace_ = std::move(workspaces);
    kernel_data_ = static_cast<KernelData *>(data);
  }
  static void operator delete(void *memory) { NoteDeleted(memory); }

  bool HasAttr(const char *const *name) override { return attributes_.Has(*name); }

  const std::vector<size_t> &WorkSpaces() const override { return workspace_; }
  void *Data() const override { return kernel_data_; }
  void DestroyData() override {
    KernelData *data = kernel_data_;
    kernel_data_ = nullptr;
    delete data;
  }

 private:
  bool HasAttr(Characters name) override { return attributes_.Has(View(name)); }
  bool GetAttrBool(Characters name) override { return attributes_.Bool(View(name)); }
  int64_t GetAttrInt(Characters name) override { return attributes_.Int(View(name)); }
  float GetAttrFloat(Characters name) override { return attributes_.Float(View(name)); }
  Characters GetAttrStr(Characters name) override { return attributes_.Text(View(name)); }
  std::vector<int64_t> GetAttrIntVec(Characters name) override { return attributes_.Ints(View(name)); }
  std::vector<float> GetAttrFloatVec(Characters name) override { return attributes_.Floats(View(name)); }
  std::vector<std::vector<int64_t>> GetAttrInt2DVec(Characters name) override {
    return attributes_.IntLists(View(name));
  }
  std::vector<std::vector<float>> GetAttrFloat2DVec(Characters name) override {
    return attributes_.FloatLists(View(name));
  }

  const Attributes attributes_;
};

static_assert(sizeof(DualExtra) <= kObjectSize);

}  // namespace

Object *MakeDual(void *memory, const Attributes &attributes, std::vector<size_t> workspaces, void *data) {
  return new (memory) DualExtra(attributes, std::move(workspaces), data);
}

}  // namespace opsmith_aot
