// Kernels that were written for `AotExtraDualABI`. Some leave its name in the library's symbols, others, when
// they are optimised, leave nothing that tells them from kernels for `AotExtra`.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "custom_aot_extra_dual_abi.h"

namespace {

using Extra = AotExtraDualABI;

template <typename T>
std::string Join(const std::vector<T> &list) {
  std::string text = "[";
  for (const T &item : list) text += (text.size() > 1 ? " " : "") + std::to_string(item);
  return text + "]";
}

template <typename T>
std::string JoinLists(const std::vector<std::vector<T>> &lists) {
  std::string text = "[";
  for (const auto &list : lists) text += Join(list);
  return text + "]";
}

void Write(const std::string &text, void *out) {
  std::memset(out, 0, 256);
  std::memcpy(out, text.data(), text.size());
}

Extra *Of(void *extra) { return static_cast<Extra *>(extra); }

}  // namespace

#define KERNEL(name) \
  extern "C" int name([[maybe_unused]] int n, void **params, int *, int64_t **, const char **, void *, void *extra)

#ifdef WITH_DATA
// Every type of attribute, kept in an object of its own.
struct Text : AotKernelDataDualABI {
  std::string text;
};
extern "C" int EchoInit(int *, int64_t **, const char **, Extra *extra) {
  auto *data = new Text;
  std::string &text = data->text;
  text += extra->Attr<bool>("flag") ? "true" : "false";
  text += " " + std::to_string(extra->Attr<int64_t>("a_number_with_a_name_that_is_rather_long"));
  text += " " + std::to_string(extra->Attr<float>("real")) + " ";
  text += extra->Attr<std::string>("short") + "|" + extra->Attr<std::string>("long") + "|" +
          extra->Attr<std::string>("empty");
  text += " " + Join(extra->Attr<std::vector<int64_t>>("ints")) + Join(extra->Attr<std::vector<float>>("floats"));
  text += " " + JoinLists(extra->Attr<std::vector<std::vector<int64_t>>>("int_lists"));
  text += " " + JoinLists(extra->Attr<std::vector<std::vector<float>>>("float_lists"));
  text += extra->HasAttr("flag") && !extra->HasAttr("flags") ? " yes" : " no";
  extra->SetKernelData(data);
  extra->SetWorkSpace({16});
  return 0;
}
KERNEL(Echo) {
  Write(static_cast<Text *>(Of(extra)->KernelData())->text + " " + std::to_string(n), params[1]);
  return 0;
}
#endif

// Each type of attribute as the first that is asked for.
KERNEL(Flag) { return Write(Of(extra)->Attr<bool>("flag") ? "true" : "false", params[1]), 0; }
KERNEL(Number) {
  return Write(std::to_string(Of(extra)->Attr<int64_t>("a_number_with_a_name_that_is_rather_long")), params[1]), 0;
}
KERNEL(Real) { return Write(std::to_string(Of(extra)->Attr<float>("real")), params[1]), 0; }
KERNEL(Words) { return Write(Of(extra)->Attr<std::string>("long"), params[1]), 0; }
KERNEL(Ints) { return Write(Join(Of(extra)->Attr<std::vector<int64_t>>("ints")), params[1]), 0; }
KERNEL(Floats) { return Write(Join(Of(extra)->Attr<std::vector<float>>("floats")), params[1]), 0; }
KERNEL(IntLists) {
  return Write(JoinLists(Of(extra)->Attr<std::vector<std::vector<int64_t>>>("int_lists")), params[1]), 0;
}
KERNEL(FloatLists) {
  return Write(JoinLists(Of(extra)->Attr<std::vector<std::vector<float>>>("float_lists")), params[1]), 0;
}
KERNEL(Has) { return Write(Of(extra)->HasAttr("flag") && !Of(extra)->HasAttr("no") ? "yes" : "no", params[1]), 0; }
KERNEL(Nope) { return Write(std::to_string(Of(extra)->Attr<int64_t>("nope")), params[1]), 0; }
KERNEL(Wrong) { return Write(std::to_string(Of(extra)->Attr<int64_t>("short")), params[1]), 0; }
KERNEL(Deletes) { return delete Of(extra), 0; }
// Whatever is thrown, it goes on.
KERNEL(Stubborn) {
  try {
    Write(std::to_string(Of(extra)->Attr<float>("real")), params[1]);
  } catch (...) {
    Write("caught", params[1]);
  }
  return 0;
}

// The functions beside a kernel ask, too.
extern "C" std::vector<int64_t> BesideInferShape(int *, int64_t **, Extra *extra) {
  return {extra->Attr<int64_t>("size")};
}
extern "C" int BesideInferType(std::vector<int>, Extra *extra) { return extra->Attr<bool>("flag") ? 37 : 0; }
extern "C" int BesideInit(int *, int64_t **, const char **, Extra *extra) {
  extra->SetWorkSpace({static_cast<size_t>(extra->Attr<int64_t>("size"))});
  return 0;
}
extern "C" int Beside(int n, void **params, int *, int64_t **shapes, const char **, void *, void *) {
  const std::string text = "beside " + std::to_string(n);
  std::memset(params[1], 0, static_cast<size_t>(shapes[1][0]));
  std::memcpy(params[1], text.data(), text.size());
  return 0;
}
