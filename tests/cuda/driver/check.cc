// Accesses of kernels that were compiled with checks (STANDIN_CHECK): each must lie in a block of the device, pinned memory,
// a variable of the module, the block's shared memory or the thread's stack.

#include <dlfcn.h>
#include <link.h>

#include <cstdio>

#include "block.h"
#include "state.h"

namespace driver {

static bool lies_in(const char *address, size_t size, const char *start, size_t bytes) {
  return address >= start && size <= bytes && static_cast<size_t>(address - start) <= bytes - size;
}

// The variable with this address in it or in its zone.
static const standin::Variable *variable_of(const standin::Module &module, const char *address) {
  for (unsigned long i = 0; i < module.variable_count; ++i) {
    const standin::Variable &variable = module.variables[i];
    if (lies_in(address, 1, variable.address, variable.size_with_zone)) return &variable;
  }
  return nullptr;
}

static bool in_module(const standin::Module &module, const char *address) {
  Dl_info own, other;
  return dladdr(reinterpret_cast<const void *>(module.services), &own) != 0 && dladdr(address, &other) != 0 &&
         own.dli_fbase == other.dli_fbase;
}

void check_access(const void *at, unsigned long size, bool write) {
  const auto *address = static_cast<const char *>(at);
  const auto number = reinterpret_cast<uint64_t>(at);
  if (on_stack(address) || is_service(at) || inside(number, size)) return;
  const standin::Module &module = *running_launch().module;
  size_t bytes;
  const char *shared = dynamic_shared(&bytes);
  if (lies_in(address, size, shared, bytes) || is_pinned(number, size)) return;
  const standin::Variable *variable = variable_of(module, address);
  if (variable != nullptr && lies_in(address, size, variable->address, variable->size)) return;
  if (variable == nullptr && in_module(module, address)) return;
  char text[256];
  const std::string near = variable != nullptr ? std::string(", past the variable `") + variable->name + "` of " +
                                                     std::to_string(variable->size) + " bytes"
                                               : "";
  snprintf(text, sizeof text, "accessed %lu bytes at %p to %s%s", size, at, write ? "write" : "read", near.c_str());
  fail_here(text);
}

}  // namespace driver
