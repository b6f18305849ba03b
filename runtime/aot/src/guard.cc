// Calls code that may throw, for guard.rs, and throws for it: Rust can do neither. In: a function and its
// data. Out: whether it threw, and what. Must not know what the function does.

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <stdexcept>

namespace {

void tell(const char *text, char *message, size_t capacity) {
  std::strncpy(message, text, capacity - 1);
  message[capacity - 1] = 0;
}

}  // namespace

// 0: it returned. 1: it threw a std::exception, whose what() is the message. 2: it threw something else,
// whose type is the message.
extern "C" int opsmith_aot_guard(void (*body)(void *), void *data, char *message, size_t capacity) {
  try {
    body(data);
    return 0;
  } catch (const abi::__forced_unwind &) {
    // The thread is being ended; no one may stop that.
    throw;
  } catch (const std::exception &error) {
    tell(error.what(), message, capacity);
    return 1;
  } catch (...) {
    const std::type_info *type = abi::__cxa_current_exception_type();
    int status = 0;
    char *name = type ? abi::__cxa_demangle(type->name(), nullptr, nullptr, &status) : nullptr;
    tell(name ? name : "an unknown type", message, capacity);
    std::free(name);
    return 2;
  }
}

extern "C" [[noreturn]] void opsmith_aot_throw(const char *message) { throw std::runtime_error(message); }
