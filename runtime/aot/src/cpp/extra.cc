// `AotExtra` of the public header, which kernels read attributes from and leave workspace sizes and data in.
//
// Compiled twice, with each layout of std::string; `OPSMITH_MAKE` is the name of the function that makes an object of
// that layout. The header is included in an unnamed namespace: classes of one name and two layouts of arguments have
// tables and functions of their own in each object file, which the linker cannot merge.

#include <cstring>
#include <iostream>
#include <new>
#include <string>
#include <type_traits>

#include "host.h"

namespace {

#include "../custom_aot_extra.h"

using opsmith_aot::Attributes;
using opsmith_aot::NoteDeleted;
using opsmith_aot::ThrowMistaken;

// The longest name of an attribute that is recognised, in bytes.
constexpr size_t kLongestName = 4096;

// Whether text of a std::string of the old layout is at an address: it follows its length, its capacity and its count
// of owners.
[[maybe_unused]] bool IsOldText(const char *text) {
  size_t header[3];
  std::memcpy(header, text - sizeof header, sizeof header);
  const auto [length, capacity, owners] = header;
  return length <= capacity && length <= kLongestName && strnlen(text, length + 1) == length;
}

// Whether the argument of a kernel is a std::vector<char> and no string. Its first three words can be read: it is a
// temporary of the kernel, which frames of callers follow.
bool IsVector(const void *argument) {
  uintptr_t words[2];
  std::memcpy(words, argument, sizeof words);
  // The address of a string's text is never null; that of no elements is.
  if (words[0] == 0) return true;
#if _GLIBCXX_USE_CXX11_ABI
  // The length of a text, which is smaller than any address, or the end of the vector.
  return words[1] >= words[0];
#else
  // The buffer of a vector follows words of the heap, so that the words before it can be read, too.
  return !IsOldText(reinterpret_cast<const char *>(words[0]));
#endif
}

class Extra final : public AotExtra, public opsmith_aot::Object {
 public:
  Extra(const Attributes &attributes, bool guess) : attributes_(attributes), guess_(guess), self_(this) {}
  static void operator delete(void *memory) { NoteDeleted(memory); }

  // Both layouts begin with the address of the text, so that the name is read whichever the library has.
  bool HasAttr(std::string name) override { return attributes_.Has(name.c_str()); }

  // The last function of `AotExtraDualABI`, where `AotExtra` has none: it precedes all others of this class.
  virtual void LastOfDual() { ThrowMistaken(); }

  const std::vector<size_t> &WorkSpaces() const override { return WorkSpace(); }
  void *Data() const override { return KernelData(); }
  void DestroyData() override { DestructKernelData(); }

 private:
  const char *Name(const std::string &name) const {
    if (guess_ && IsVector(&name)) ThrowMistaken();
    return name.c_str();
  }

  bool GetAttrBool(std::string name) override { return attributes_.Bool(Name(name)); }
  int64_t GetAttrInt(std::string name) override { return attributes_.Int(Name(name)); }
  float GetAttrFloat(std::string name) override { return attributes_.Float(Name(name)); }
  std::string GetAttrStr(std::string name) override {
    // `AotExtraDualABI` has its GetAttrFloat here. Where the address of a result is passed before all arguments (x86-64),
    // the name of that function arrives as the object: a temporary of the kernel, too.
    if (self_ != this) ThrowMistaken();
    const std::vector<char> text = attributes_.Text(Name(name));
    return std::string(text.begin(), text.end());
  }
  std::vector<int64_t> GetAttrIntVec(std::string name) override { return attributes_.Ints(Name(name)); }
  std::vector<float> GetAttrFloatVec(std::string name) override { return attributes_.Floats(Name(name)); }
  std::vector<std::vector<int64_t>> GetAttrInt2DVec(std::string name) override {
    return attributes_.IntLists(Name(name));
  }
  std::vector<std::vector<float>> GetAttrFloat2DVec(std::string name) override {
    return attributes_.FloatLists(Name(name));
  }

  const Attributes attributes_;
  const bool guess_;
  // Its own address, by which it is recognised.
  const Extra *const self_;
};

static_assert(sizeof(Extra) <= opsmith_aot::kObjectSize);

}  // namespace

opsmith_aot::Object *opsmith_aot::OPSMITH_MAKE(void *memory, const Attributes &attributes, bool guess) {
  return new (memory) Extra(attributes, guess);
}
