// Modules: shared objects of the stand-in for NVRTC, loaded as the driver loads cubins.

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "../image.h"
#include "modules.h"

namespace driver {

static std::map<LoadedModule *, std::unique_ptr<LoadedModule>> modules;

static std::set<void *> functions;

Function *find_function(void *handle) {
  return functions.count(handle) == 1 ? static_cast<Function *>(handle) : nullptr;
}

// The number after a word of PTX, as 10 × major + minor for a version; 0 if the word is missing.
static int ptx_number(const char *text, const char *word) {
  const char *found = strstr(text, word);
  if (found == nullptr) return 0;
  const char *digits = found + strlen(word);
  const int whole = atoi(digits);
  const char *point = strchr(digits, '.'), *end = strchr(digits, '\n');
  return point != nullptr && end != nullptr && point < end ? whole * 10 + atoi(point + 1) : whole;
}

// The object in PTX of the stand-in for NVRTC, whose digits stand in a comment, as the driver's own compiler would make it.
static int compile_ptx(const char *text, std::string &image) {
  const char *newest = getenv("STANDIN_PTX_VERSION");
  if (ptx_number(text, ".version ") > (newest != nullptr ? atoi(newest) : 90)) return kUnsupportedPtxVersion;
  const int architecture = ptx_number(text, ".target sm_");
  if (architecture == 0) return kInvalidPtx;
  if (architecture > 90) return kNoBinaryForGpu;
  const char *digits = strstr(text, standin::kDigits);
  if (digits == nullptr) return kInvalidPtx;
  auto value = [](char digit) { return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1; };
  for (digits += strlen(standin::kDigits); value(digits[0]) >= 0 && value(digits[1]) >= 0; digits += 2) {
    image.push_back(static_cast<char>(value(digits[0]) * 16 + value(digits[1])));
  }
  standin::Trailer trailer;
  if (image.size() < sizeof(Elf64_Ehdr) + sizeof trailer) return kInvalidPtx;
  memcpy(&trailer, image.data() + image.size() - sizeof trailer, sizeof trailer);
  const size_t size = image.size() - sizeof trailer;
  return trailer.is_valid() && trailer.hash == standin::hash(image.data(), size) ? kSuccess : kInvalidPtx;
}

// The image in a file of its own, checked; its size is not known, so it is read by the system, which stops at the end of
// memory.
static int copy_image(const void *image, int file, bool is_ptx) {
  Elf64_Ehdr header;
  if (pwrite(file, image, sizeof header, 0) != sizeof header) return kInvalidImage;
  if (pread(file, &header, sizeof header, 0) != sizeof header) return kInvalidImage;
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return kInvalidImage;
  // The number of NVIDIA's devices among machines.
  if (header.e_machine == 190) return kNoBinaryForGpu;
  const size_t size = header.e_shoff + static_cast<size_t>(header.e_shnum) * header.e_shentsize;
  if (size > (size_t{1} << 32)) return kInvalidImage;
  const size_t whole = size + sizeof(standin::Trailer);
  if (pwrite(file, image, whole, 0) != static_cast<ssize_t>(whole)) return kInvalidImage;
  void *mapped = mmap(nullptr, whole, PROT_READ, MAP_PRIVATE, file, 0);
  if (mapped == MAP_FAILED) return kOperatingSystem;
  standin::Trailer trailer;
  memcpy(&trailer, static_cast<const char *>(mapped) + size, sizeof trailer);
  const bool intact = trailer.is_valid() && trailer.hash == standin::hash(mapped, size);
  munmap(mapped, whole);
  if (!intact) return kInvalidImage;
  const bool fits = is_ptx || (trailer.architecture >= 90 && trailer.architecture < 100);
  return fits ? kSuccess : kNoBinaryForGpu;
}

// Machine code, or text, which ends with a zero.
static int read_image(const void *image, int file) {
  const char *text = static_cast<const char *>(image);
  if (text[0] != '/' && text[0] != '.') return copy_image(image, file, false);
  std::string compiled;
  const int code = compile_ptx(text, compiled);
  return code ? code : copy_image(compiled.data(), file, true);
}

static int load(LoadedModule **made, const void *image) {
  // The loader takes a name that it has seen for the library that it has, even where that one's file is gone, and names of
  // `mkstemp` repeat: they are made of the clock's nanoseconds.
  static unsigned long number = 0;
  const char *folder = getenv("TMPDIR");
  std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/standin-" + std::to_string(getpid()) + "-" +
                     std::to_string(number++) + "-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return kOperatingSystem;
  int code = read_image(image, file);
  void *library = code ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  close(file);
  unlink(path.c_str());
  if (code) return code;
  if (library == nullptr) {
    fprintf(stderr, "STANDIN a module cannot be loaded: %s\n", dlerror());
    return kInvalidImage;
  }
  auto table = reinterpret_cast<void (*)(standin::Module *)>(dlsym(library, "standin_module"));
  if (table == nullptr) {
    dlclose(library);
    return kInvalidImage;
  }
  auto module = std::make_unique<LoadedModule>();
  module->device = current_ordinal();
  module->library = library;
  table(&module->module);
  *made = module.get();
  modules[module.get()] = std::move(module);
  return kSuccess;
}

size_t static_shared(const Function &function) {
  const standin::Module &module = function.module->module;
  return static_cast<size_t>(module.shared_end - module.shared_begin);
}

}  // namespace driver

using namespace driver;

extern "C" {

int cuModuleLoadData(void **module, const void *image) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  if (const int code = allowed_in_capture()) return code;
  if (image == nullptr) return refuse(kInvalidValue);
  LoadedModule *made = nullptr;
  const int code = load(&made, image);
  *module = made;
  return code;
}
int cuModuleLoadDataEx(void **module, const void *image, unsigned, const int *, void **) {
  return cuModuleLoadData(module, image);
}

int cuModuleUnload(void *handle) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  if (const int code = allowed_in_capture()) return code;
  auto known = modules.find(static_cast<LoadedModule *>(handle));
  if (known == modules.end()) return refuse(kInvalidHandle);
  work_off_all(known->second->device, false);
  for (uint64_t global : known->second->globals) state.globals.erase(global);
  for (auto &[_, function] : known->second->functions) functions.erase(function.get());
  dlclose(known->second->library);
  modules.erase(known);
  return kSuccess;
}

int cuModuleGetFunction(void **found, void *handle, const char *name) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  auto known = modules.find(static_cast<LoadedModule *>(handle));
  if (known == modules.end()) return refuse(kInvalidHandle);
  LoadedModule *module = known->second.get();
  for (int i = 0; i < module->module.count; ++i) {
    const standin::Kernel &kernel = module->module.kernels[i];
    if (strcmp(kernel.name, name) != 0) continue;
    auto &function = module->functions[name];
    if (function == nullptr) function = std::make_unique<Function>(Function{module, &kernel, 49152});
    functions.insert(function.get());
    *found = function.get();
    return kSuccess;
  }
  return kNotFound;
}

// The size of a global is that in the object's table of symbols.
int cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, void *handle, const char *name) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  auto known = modules.find(static_cast<LoadedModule *>(handle));
  if (known == modules.end()) return refuse(kInvalidHandle);
  void *symbol = dlsym(known->second->library, name);
  Dl_info info;
  const Elf64_Sym *entry = nullptr;
  void *extra = nullptr;
  if (symbol == nullptr || dladdr1(symbol, &info, &extra, RTLD_DL_SYMENT) == 0) return kNotFound;
  entry = static_cast<const Elf64_Sym *>(extra);
  if (entry == nullptr || ELF64_ST_TYPE(entry->st_info) != STT_OBJECT) return kNotFound;
  const auto start = reinterpret_cast<uint64_t>(symbol);
  state.globals[start] = entry->st_size;
  known->second->globals.push_back(start);
  if (address != nullptr) *address = start;
  if (bytes != nullptr) *bytes = entry->st_size;
  return kSuccess;
}

int cuFuncGetAttribute(int *value, int attribute, void *handle) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  const Function *function = find_function(handle);
  if (function == nullptr) return refuse(kInvalidHandle);
  switch (attribute) {
    case 0: *value = function->kernel->most_threads; break;
    case 1: *value = static_cast<int>(static_shared(*function)); break;
    case 2: case 3: *value = 0; break;
    case 4: *value = 32; break;
    case 5: case 6: *value = 90; break;
    case 8: *value = function->dynamic_shared_limit; break;
    default: return refuse(kInvalidValue);
  }
  return kSuccess;
}

int cuFuncSetAttribute(void *handle, int attribute, int value) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  Function *function = find_function(handle);
  if (function == nullptr) return refuse(kInvalidHandle);
  if (attribute == 9) return kSuccess;
  if (attribute != 8 || value < 0 || value + static_shared(*function) > 232448) return refuse(kInvalidValue);
  function->dynamic_shared_limit = value;
  return kSuccess;
}

int cuFuncGetParamInfo(void *handle, size_t index, size_t *offset, size_t *bytes) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  const Function *function = find_function(handle);
  if (function == nullptr) return refuse(kInvalidHandle);
  if (index >= static_cast<size_t>(function->kernel->count)) return kInvalidValue;
  size_t end = 0;
  for (size_t i = 0; i <= index; ++i) {
    const standin::Parameter &parameter = function->kernel->parameters[i];
    *offset = (end + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
    end = *offset + parameter.size;
    if (bytes != nullptr) *bytes = parameter.size;
  }
  return kSuccess;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *handle, int threads, size_t dynamic_shared) {
  Guard guard(state.lock);
  if (const int code = ready()) return code;
  const Function *function = find_function(handle);
  if (function == nullptr) return refuse(kInvalidHandle);
  if (threads <= 0 || threads > function->kernel->most_threads) return refuse(kInvalidValue);
  // Blocks that fit by threads, registers (32 a thread), shared memory, and 32 in any case.
  const int warps = (threads + 31) / 32;
  const size_t shared = static_shared(*function) + dynamic_shared + 1024;
  const int by_shared = static_cast<int>(233472 / shared);
  *blocks = std::min({64 / warps, by_shared, 32});
  return kSuccess;
}
}
