// Objects for kernels, and calls of kernels' functions, for `extra.rs`: Rust can neither take part in C++ classes nor catch
// exceptions. In: functions and their arguments. Out: their results, or the exception. Must not know their purpose.

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <memory>
#include <utility>

#include "host.h"

namespace opsmith_aot {
namespace {

thread_local bool mistaken = false;

// The end of a call; as in `extra.rs`.
enum Status : int {
  kReturned,
  kStandard,  // a std::exception, whose what() is the message
  kOther,     // another exception, whose type is the message
  kMistaken,  // the library takes the object for another one, which it is from now on: call again
  kDeleted,   // the library deleted the object
};

// Memory for the text of an exception.
struct Message {
  char *text;
  size_t capacity;

  void Write(const char *from) const {
    if (capacity == 0) return;
    std::strncpy(text, from, capacity - 1);
    text[capacity - 1] = 0;
  }
};

// The arrays of sizes and dtypes that functions of kernels take.
struct Arrays {
  int *ndims;
  int64_t **shapes;
  const char **dtypes;
};

// The types of the interface; their numbers are Rust's.
enum TypeId : int {};

using Main = int(int, void **, int *, int64_t **, const char **, void *, void *);
using Init = int(int *, int64_t **, const char **, void *);
using InferShape = std::vector<int64_t>(int *, int64_t **, void *);
using InferShapes = std::vector<std::vector<int64_t>>(int *, int64_t **, void *);
using InferType = TypeId(std::vector<TypeId>, void *);
using InferTypes = std::vector<TypeId>(std::vector<TypeId>, void *);

template <typename Body>
int Guarded(Message message, Body body) {
  try {
    body();
    return kReturned;
  } catch (const abi::__forced_unwind &) {
    // The thread is being ended, which cannot be stopped.
    throw;
  } catch (const std::exception &error) {
    message.Write(error.what());
    return kStandard;
  } catch (...) {
    const std::type_info *type = abi::__cxa_current_exception_type();
    int status = 0;
    char *name = type ? abi::__cxa_demangle(type->name(), nullptr, nullptr, &status) : nullptr;
    message.Write(name ? name : "an unknown type");
    std::free(name);
    return kOther;
  }
}

}  // namespace

void ThrowMistaken() {
  struct Mistaken {};
  mistaken = true;
  throw Mistaken();
}

// An object that kernels see, in memory in which another one can take its place.
struct Extra {
  alignas(std::max_align_t) unsigned char memory[kObjectSize];
  Object *object;
  Attributes attributes;
  bool new_strings;
  bool guess;
  bool dual = false;
  bool deleted = false;

  Extra(bool new_strings, bool guess, const Attributes &attributes)
      : attributes(attributes), new_strings(new_strings), guess(guess) {
    Make();
  }
  ~Extra() { object->~Object(); }

  void Make() {
    if (dual) {
      object = MakeDual(memory, attributes, {}, nullptr);
    } else {
      object = new_strings ? MakeNew(memory, attributes, guess) : MakeOld(memory, attributes, guess);
    }
  }

  void BecomeDual() {
    std::vector<size_t> workspaces = object->WorkSpaces();
    void *data = object->Data();
    object->~Object();
    object = MakeDual(memory, attributes, std::move(workspaces), data);
    dual = true;
    guess = false;
  }

  // Calls a function of a kernel with the address of the object.
  template <typename Body>
  int Call(Message message, Body body) {
    if (guess) mistaken = false;
    const int status = Guarded(message, [&] { body(static_cast<void *>(memory)); });
    if (deleted) return kDeleted;
    if (!guess || !mistaken) return status;
    // The exception may have been caught in the function, so that its result counts for nothing either.
    const int turned = Guarded(message, [&] { BecomeDual(); });
    return turned == kReturned ? kMistaken : turned;
  }
};

// Objects are recognised by their address, which is that of the structure around them.
static_assert(offsetof(Extra, memory) == 0);

void NoteDeleted(void *memory) noexcept {
  Extra *const extra = static_cast<Extra *>(memory);
  extra->deleted = true;
  extra->Make();
}

extern "C" {

Extra *opsmith_aot_extra_new(bool new_strings, bool guess, const Attributes *attributes) {
  return new Extra(new_strings, guess, *attributes);
}

void opsmith_aot_extra_become_dual(Extra *extra) { extra->BecomeDual(); }

void opsmith_aot_extra_delete(Extra *extra) { delete extra; }

void opsmith_aot_extra_destroy_data(Extra *extra) {
  // An exception of a destructor ends here.
  Guarded(Message{nullptr, 0}, [&] { extra->object->DestroyData(); });
}

const size_t *opsmith_aot_extra_workspaces(const Extra *extra, size_t *count) {
  const std::vector<size_t> &workspaces = extra->object->WorkSpaces();
  *count = workspaces.size();
  return workspaces.data();
}

int opsmith_aot_main(Extra *extra, Main *function, int count, void **params, const Arrays *arrays, void *stream, int *code,
                     Message message) {
  return extra->Call(message, [&](void *object) {
    *code = function(count, params, arrays->ndims, arrays->shapes, arrays->dtypes, stream, object);
  });
}

int opsmith_aot_init(Extra *extra, Init *function, const Arrays *arrays, int *code, Message message) {
  return extra->Call(message, [&](void *object) {
    *code = function(arrays->ndims, arrays->shapes, arrays->dtypes, object);
  });
}

// Gives each shape to `receive`: of one output or, if there are several, of all.
int opsmith_aot_infer_shape(Extra *extra, void *function, bool several, const Arrays *arrays, void *out,
                            void (*receive)(void *out, const int64_t *sizes, size_t count), Message message) {
  return extra->Call(message, [&](void *object) {
    if (several) {
      const auto shapes = reinterpret_cast<InferShapes *>(function)(arrays->ndims, arrays->shapes, object);
      for (const std::vector<int64_t> &shape : shapes) receive(out, shape.data(), shape.size());
    } else {
      const auto shape = reinterpret_cast<InferShape *>(function)(arrays->ndims, arrays->shapes, object);
      receive(out, shape.data(), shape.size());
    }
  });
}

// Gives the type of each output to `receive`.
int opsmith_aot_infer_type(Extra *extra, void *function, bool several, const int *types, size_t count, void *out,
                           void (*receive)(void *out, int type), Message message) {
  return extra->Call(message, [&](void *object) {
    std::vector<TypeId> given;
    given.reserve(count);
    for (size_t i = 0; i < count; ++i) given.push_back(static_cast<TypeId>(types[i]));
    if (several) {
      for (const TypeId type : reinterpret_cast<InferTypes *>(function)(given, object)) receive(out, type);
    } else {
      receive(out, reinterpret_cast<InferType *>(function)(given, object));
    }
  });
}

}  // extern "C"

}  // namespace opsmith_aot
