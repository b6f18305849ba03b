// The C++ half of custom kernels, and its border with the Rust half (`extra.rs`, whose declarations have the same
// order).
//
// In: attributes, which Rust finds and converts. Out: objects that kernels take for an `AotExtra` or an
// `AotExtraDualABI`, and calls of kernels' functions with exceptions caught. No `std::string` is part of this
// header: its two layouts would make one name mean two things. Must not know tensors.

#ifndef OPSMITH_AOT_HOST_H_
#define OPSMITH_AOT_HOST_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace opsmith_aot {

// The type of an attribute, in the order of `AttrType`.
enum class Type : int { kBool, kInt, kFloat, kText, kInts, kFloats, kIntLists, kFloatLists };

// The value of an attribute, or the message of the error that there is none. Numbers are 64 bits wide.
struct Value {
  int64_t integer;
  double real;
  const void *items;   // of a text, which ends in a zero, a list, or all lists one after the other
  size_t count;        // of items
  const size_t *ends;  // one past the last item of each list of a list of lists
  size_t lists;        // of ends
  void *owner;         // of items and ends
};

// The attributes of an object. Rust holds them, longer than the object lives; any thread may read them.
class Attributes {
 public:
  bool Has(std::string_view name) const { return find_(context_, name.data(), name.size(), Type::kBool, nullptr); }
  // The value of an attribute; each throws a std::runtime_error if there is none of that name and type.
  bool Bool(std::string_view name) const;
  int64_t Int(std::string_view name) const;
  float Float(std::string_view name) const;
  std::vector<char> Text(std::string_view name) const;
  std::vector<int64_t> Ints(std::string_view name) const;
  std::vector<float> Floats(std::string_view name) const;
  std::vector<std::vector<int64_t>> IntLists(std::string_view name) const;
  std::vector<std::vector<float>> FloatLists(std::string_view name) const;

 private:
  class Found;

  // The attributes of Rust.
  const void *context_;
  // Writes the value of an attribute, or, and then returns false, the message. Without a value to write: whether
  // there is such an attribute of any type.
  bool (*find_)(const void *context, const char *name, size_t length, Type type, Value *value);
  // Frees the memory of a value.
  void (*release_)(void *owner);
};

// The host's side of an object that kernels see. It is the second base of each class below: the first is the class that
// kernels know, so that its address is that of the whole object.
class Object {
 public:
  virtual ~Object() = default;
  // The sizes in bytes of the workspaces that the kernel asked for.
  virtual const std::vector<size_t> &WorkSpaces() const = 0;
  // The object that the kernel left here. All that is known of it is that its destructor is virtual.
  virtual void *Data() const = 0;
  virtual void DestroyData() = 0;
};

// Memory for an object of any class below.
constexpr size_t kObjectSize = 12 * sizeof(void *);

// Make an object in memory of that size. The first two make an `AotExtra`, each with one layout of std::string. If the
// class is a guess, its functions look for arguments of an `AotExtraDualABI`, and call `ThrowMistaken` if they find some.
Object *MakeOld(void *memory, const Attributes &attributes, bool guess);
Object *MakeNew(void *memory, const Attributes &attributes, bool guess);
// Makes an `AotExtraDualABI` with the sizes of workspaces and the data of another object.
Object *MakeDual(void *memory, const Attributes &attributes, std::vector<size_t> workspaces, void *data);

// The deallocation function of each class above, which `delete` in a kernel ends in: the host made the object, in memory of
// its own, and destroys it without one. Makes another object there, so that uses that follow are no uses of freed memory,
// and notes the mistake.
void NoteDeleted(void *memory) noexcept;

// Leaves a function that a library takes for one of another class. This is noted for the thread, since kernels may catch
// the exception.
[[noreturn]] void ThrowMistaken();

}  // namespace opsmith_aot

#endif  // OPSMITH_AOT_HOST_H_
