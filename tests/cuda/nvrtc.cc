// A stand-in for NVRTC: the host's compiler makes a shared object of a text of kernels, whose bytes are the "cubin" that the
// stand-in for the driver loads (driver/modules.cc).
//
// The folder of this library has the headers that a text is compiled with (emulate.h). A text may include none, as with NVRTC.
// The compiler is that of CXX, or c++. The environment:
//   STANDIN_CHECK=1           code that has each access checked
//   STANDIN_NVRTC_VERSION=N   the version, as 13000 = 13.0
//   STANDIN_NVRTC_FAIL=CODE   compilations return the code

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "image.h"
#include "names.h"

extern char **environ;

namespace {

enum Result {
  kSuccess = 0,
  kInvalidInput = 3,
  kInvalidProgram = 4,
  kInvalidOption = 5,
  kCompilation = 6,
  kNameExpression = 10,
  kInternal = 11,
};

const char *const kNames[] = {
    "NVRTC_SUCCESS",
    "NVRTC_ERROR_OUT_OF_MEMORY",
    "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
    "NVRTC_ERROR_INVALID_INPUT",
    "NVRTC_ERROR_INVALID_PROGRAM",
    "NVRTC_ERROR_INVALID_OPTION",
    "NVRTC_ERROR_COMPILATION",
    "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
    "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
    "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
    "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
    "NVRTC_ERROR_INTERNAL_ERROR",
};

const int kArchitectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

// Beginnings of options that are accepted and change nothing here.
const char *const kIgnored[] = {
    "--std",           "-std",        "--fmad",         "-fmad",          "--ftz",       "-ftz",
    "--prec-div",      "-prec-div",   "--prec-sqrt",    "-prec-sqrt",     "--restrict",  "-restrict",
    "--generate-line", "-lineinfo",   "--device-as-",   "-default-devic", "--maxrreg",   "-maxrreg",
    "--disable-warn",  "-w",          "--relocatable",  "-rdc",           "--ptxas-opt", "-Xptxas",
    "--diag-",         "-diag-",      "--pch",          "-pch",           "--minimal",   "-minimal",
    "--no-source-inc", "-no-source",  "--device-debug", "-G",             "-dopt",       "--dopt",
    "--extra-device",  "-extra-devi", "--split-compil", "-split-compile", "--Werror",    "-Werror",
    "--use_fast_math", "-use_fast_m", "--device-int12", "-device-int128", "--include-p", "-I",
};

struct Program {
  std::string text, name;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string log, cubin, ptx;
};

std::mutex lock;
std::map<Program *, std::unique_ptr<Program>> programs;

// A folder that is removed with its files.
struct Folder {
  std::string path;
  std::vector<std::string> files;

  Folder() {
    const char *parent = getenv("TMPDIR");
    path = std::string(parent != nullptr ? parent : "/tmp") + "/standin-nvrtc-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) path.clear();
  }
  ~Folder() {
    for (const std::string &file : files) unlink(file.c_str());
    if (!path.empty()) rmdir(path.c_str());
  }
  std::string file(const std::string &name) {
    files.push_back(path + "/" + name);
    return files.back();
  }
};

// The folder of this library.
std::string own_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void *>(&own_folder), &info) == 0) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Options {
  int architecture = 75;
  bool real = false;
  std::vector<std::string> defines;
};

bool begins(const std::string &text, const char *with) { return text.compare(0, strlen(with), with) == 0; }

// Reads `sm_90` or `compute_90a`.
bool read_architecture(const std::string &text, Options &options) {
  options.real = begins(text, "sm_");
  if (!options.real && !begins(text, "compute_")) return false;
  options.architecture = atoi(text.c_str() + text.find('_') + 1);
  for (int known : kArchitectures) {
    if (known == options.architecture) return true;
  }
  return false;
}

bool read_options(int count, const char *const *given, Options &options, std::string &log) {
  for (int i = 0; i < count; ++i) {
    const std::string option = given[i];
    const size_t equals = option.find('=');
    const std::string key = option.substr(0, equals);
    bool good = false;
    if (key == "--gpu-architecture" || key == "-arch") {
      const bool separate = equals == std::string::npos && i + 1 < count;
      good = read_architecture(separate ? given[++i] : option.substr(equals + 1), options);
    } else if (begins(option, "-D") || begins(option, "--define-macro=")) {
      options.defines.push_back("-D" + option.substr(begins(option, "-D") ? 2 : equals + 1));
      good = true;
    } else {
      for (const char *ignored : kIgnored) good |= begins(option, ignored);
    }
    if (good) continue;
    log += "nvrtc: error: invalid option or value: " + option + "\n";
    return false;
  }
  return true;
}

std::string whole_text(const Program &program) {
  std::string kernels;
  for (const auto &[name, bounds] : standin::kernels_of(program.text)) {
    const std::string last = name.substr(name.rfind(':') + 1);
    kernels += "STANDIN_KERNEL(" + name + ", \"" + last + "\", " + (bounds.empty() ? "1024" : bounds) + ") ";
  }
  // Names of the text are the module's own, so that shared variables of templates are.
  return "namespace {\n#line 1 \"" + program.name + "\"\n" + program.text +
         "\n}\n#line 1 \"table\"\nSTANDIN_TABLE(" + kernels + ")\n";
}

int spawn(const std::vector<std::string> &arguments, const std::string &log) {
  std::vector<char *> raw;
  for (const std::string &argument : arguments) raw.push_back(const_cast<char *>(argument.c_str()));
  raw.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int error = posix_spawnp(&child, raw[0], &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = -1;
  if (error != 0) return -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

int version_number() {
  const char *version = getenv("STANDIN_NVRTC_VERSION");
  return version != nullptr ? atoi(version) : 13000;
}

bool checked() {
  const char *check = getenv("STANDIN_CHECK");
  return check != nullptr && strcmp(check, "0") != 0;
}

const char *const kFlags[] = {
    "-x", "c++", "-std=c++17", "-O1", "-g0", "-w", "-shared", "-fPIC", "-pipe", "-nostdinc", "-nostdinc++", "-nostdlib",
    // No sum of a product is fused, and vectors of 16 bytes may overlay elements.
    "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti",
    "-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-fno-threadsafe-statics",
};

// Calls for each access and zones around variables, without the compiler's own library (driver/check.cc).
const char *const kCheckFlags[] = {
    "-DSTANDIN_CHECK", "-fsanitize=kernel-address", "-fsanitize-sections=standin_shared",
    "--param", "asan-instrumentation-with-call-threshold=0", "--param", "asan-globals=1", "--param", "asan-stack=0",
};

std::vector<std::string> command(const Options &options, const std::string &folder, const std::string &source,
                                 const std::string &output) {
  const char *compiler = getenv("CXX");
  std::vector<std::string> all = {compiler != nullptr ? compiler : "c++"};
  all.insert(all.end(), std::begin(kFlags), std::end(kFlags));
  if (checked()) all.insert(all.end(), std::begin(kCheckFlags), std::end(kCheckFlags));
  all.insert(all.end(), {"-include", own_folder() + "/emulate.h", "-I", folder});
  all.insert(all.end(), options.defines.begin(), options.defines.end());
  all.insert(all.end(), {source, "-o", output, "-lm"});
  return all;
}

// Text that the stand-in for the driver takes for PTX of this version's compiler: its entries, and the object as a comment.
std::string ptx_of(const Program &program, const Options &options, const std::string &object) {
  const int version = version_number();
  // That of CUDA 12 is 8.
  std::string text = "//\n// Made by the stand-in for NVRTC.\n.version " + std::to_string(version / 1000 - 4) + "." +
                     std::to_string(version % 1000 / 10) + "\n.target sm_" + std::to_string(options.architecture) + "\n";
  for (const auto &[name, _] : standin::kernels_of(program.text)) text += ".entry " + name + "\n";
  const char *const digits = "0123456789abcdef";
  text += standin::kDigits;
  for (unsigned char byte : object) text.append({digits[byte >> 4], digits[byte & 15]});
  return text + "\n";
}

int compile(Program &program, const Options &options) {
  Folder folder;
  if (folder.path.empty()) return kInternal;
  for (const auto &[name, text] : program.headers) std::ofstream(folder.file(name)) << text;
  const std::string source = folder.file("text.cc"), output = folder.file("text.so"), log = folder.file("log");
  std::ofstream(source) << whole_text(program);
  const int status = spawn(command(options, folder.path, source, output), log);
  program.log += read(log);
  if (status == -1) {
    program.log += "nvrtc: error: there is no C++ compiler\n";
    return kInternal;
  }
  if (status != 0) return kCompilation;
  const std::string object = read(output);
  standin::Trailer trailer = {};
  memcpy(trailer.mark, "STANDIN1", 8);
  trailer.hash = standin::hash(object.data(), object.size());
  trailer.architecture = options.architecture;
  trailer.checked = checked();
  const std::string whole = object + std::string(reinterpret_cast<const char *>(&trailer), sizeof trailer);
  program.ptx = ptx_of(program, options, whole);
  if (options.real) program.cubin = whole;
  return kSuccess;
}

Program *find(void *handle) {
  std::lock_guard<std::mutex> guard(lock);
  auto known = programs.find(static_cast<Program *>(handle));
  return known == programs.end() ? nullptr : known->second.get();
}

// Both functions of a result: its size, then its bytes. Texts end with a zero.
int size_of(void *handle, std::string Program::*result, bool text, size_t *size) {
  const Program *program = find(handle);
  if (program == nullptr) return kInvalidProgram;
  if (size == nullptr) return kInvalidInput;
  *size = (program->*result).size() + text;
  return kSuccess;
}

int bytes_of(void *handle, std::string Program::*result, bool text, char *to) {
  const Program *program = find(handle);
  if (program == nullptr) return kInvalidProgram;
  const std::string &bytes = program->*result;
  if (to == nullptr || (bytes.empty() && !text)) return kInvalidInput;
  memcpy(to, bytes.c_str(), bytes.size() + text);
  return kSuccess;
}

}  // namespace

extern "C" {

const char *nvrtcGetErrorString(int result) {
  return result >= 0 && result <= kInternal ? kNames[result] : "NVRTC_ERROR unknown";
}

int nvrtcVersion(int *major, int *minor) {
  const int number = version_number();
  *major = number / 1000;
  *minor = number % 1000 / 10;
  return kSuccess;
}

int nvrtcGetNumSupportedArchs(int *count) {
  *count = sizeof kArchitectures / sizeof kArchitectures[0];
  return kSuccess;
}

int nvrtcGetSupportedArchs(int *architectures) {
  memcpy(architectures, kArchitectures, sizeof kArchitectures);
  return kSuccess;
}

int nvrtcCreateProgram(void **handle, const char *text, const char *name, int count, const char *const *headers,
                       const char *const *names) {
  if (handle == nullptr || text == nullptr || count < 0) return kInvalidInput;
  auto made = std::make_unique<Program>();
  made->text = text;
  made->name = name != nullptr ? name : "default_program";
  for (int i = 0; i < count; ++i) made->headers.push_back({names[i], headers[i]});
  std::lock_guard<std::mutex> guard(lock);
  *handle = made.get();
  programs[made.get()] = std::move(made);
  return kSuccess;
}

int nvrtcDestroyProgram(void **handle) {
  if (handle == nullptr) return kInvalidInput;
  std::lock_guard<std::mutex> guard(lock);
  const bool known = programs.erase(static_cast<Program *>(*handle)) == 1;
  *handle = nullptr;
  return known ? kSuccess : kInvalidProgram;
}

int nvrtcCompileProgram(void *handle, int count, const char *const *given) {
  Program *program = find(handle);
  if (program == nullptr) return kInvalidProgram;
  if (const char *code = getenv("STANDIN_NVRTC_FAIL")) return atoi(code);
  program->log.clear();
  Options options;
  if (!read_options(count, given, options, program->log)) return kInvalidOption;
  return compile(*program, options);
}

int nvrtcGetCUBINSize(void *program, size_t *size) { return size_of(program, &Program::cubin, false, size); }
int nvrtcGetCUBIN(void *program, char *to) { return bytes_of(program, &Program::cubin, false, to); }
int nvrtcGetPTXSize(void *program, size_t *size) { return size_of(program, &Program::ptx, true, size); }
int nvrtcGetPTX(void *program, char *to) { return bytes_of(program, &Program::ptx, true, to); }
int nvrtcGetProgramLogSize(void *program, size_t *size) { return size_of(program, &Program::log, true, size); }
int nvrtcGetProgramLog(void *program, char *to) { return bytes_of(program, &Program::log, true, to); }

// Kernels have C names here.
int nvrtcAddNameExpression(void *program, const char *) {
  return find(program) != nullptr ? kNameExpression : kInvalidProgram;
}
int nvrtcGetLoweredName(void *program, const char *, const char **) {
  return find(program) != nullptr ? kNameExpression : kInvalidProgram;
}
}
