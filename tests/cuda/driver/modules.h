// Modules and their functions.

#pragma once

#include "../module.h"
#include "state.h"

namespace driver {

struct LoadedModule;

struct Function {
  LoadedModule *module;
  const standin::Kernel *kernel;
  int dynamic_shared_limit;
};

struct LoadedModule {
  int device;
  void *library;
  standin::Module module;
  std::map<std::string, std::unique_ptr<Function>> functions;
  // Addresses of variables that were asked for.
  std::vector<uint64_t> globals;
};

// The function of a handle, or null.
Function *find_function(void *handle);
// Bytes of the shared variables of a function's module.
size_t static_shared(const Function &function);

}  // namespace driver
