// The library of kernels, which lies beside the library that is built from the source that includes this.

#pragma once

#include <dlfcn.h>

#include <string>

#include "opsmith_abi.h"

namespace opsmith_kernels {

// The table of the library of this file name; null with the reason in `failure`.
static inline const opsmith_api *open(const char *name, std::string &failure) {
  Dl_info own{};
  std::string path;
  if (dladdr(reinterpret_cast<const void *>(&open), &own) != 0) {
    path = own.dli_fname;
  }
  auto slash = path.rfind('/');
  path = (slash == std::string::npos ? std::string() : path.substr(0, slash + 1)) + name;
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    failure = std::string("the library of kernels cannot be loaded: ") + dlerror();
    return nullptr;
  }
  auto table = reinterpret_cast<opsmith_abi_function>(dlsym(library, "opsmith_abi"));
  const opsmith_api *found = table == nullptr ? nullptr : table(OPSMITH_ABI_VERSION);
  // A table is longer if the library is newer, and lacks functions if it is older.
  if (found == nullptr || found->size < sizeof(opsmith_api)) {
    failure = path + " does not have version " + std::to_string(OPSMITH_ABI_VERSION) + " of the C interface as of this header; build it again";
    return nullptr;
  }
  return found;
}

}  // namespace opsmith_kernels
