// Kernels that write their arguments as text, to see that they arrive.

#include <cstdio>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "custom_aot_extra.h"

#ifndef OPSMITH_CUSTOM_AOT_EXTRA_H_
// Another header of the interface (AOT_HEADER says where), which leaves these to others.
enum TypeId : int { kTypeUnknown = 0, kNumberTypeUInt8 = 37, kNumberTypeFloat32 = 43 };
#endif

namespace {

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

// Every type of attribute, some of them longer than strings keep inside.
std::string Tell(AotExtra *extra) {
  std::string text;
  text += extra->Attr<bool>("flag") ? "true" : "false";
  text += " " + std::to_string(extra->Attr<int64_t>("a_number_with_a_name_that_is_rather_long"));
  text += " " + std::to_string(extra->Attr<float>("real"));
  text += " " + extra->Attr<std::string>("short") + "|" + extra->Attr<std::string>("long") + "|" +
          extra->Attr<std::string>("empty");
  text += " " + Join(extra->Attr<std::vector<int64_t>>("ints")) + Join(extra->Attr<std::vector<float>>("floats"));
  text += " " + JoinLists(extra->Attr<std::vector<std::vector<int64_t>>>("int_lists"));
  text += " " + JoinLists(extra->Attr<std::vector<std::vector<float>>>("float_lists"));
  text += extra->HasAttr("flag") && !extra->HasAttr("flags") ? " yes" : " no";
  return text;
}

struct Text : AotKernelData {
  std::string text;
};

void Write(const std::string &text, void *out) { std::memcpy(out, text.data(), text.size()); }

}  // namespace

// Out: the attributes, as bytes.
extern "C" int EchoInit(int *, int64_t **, const char **, AotExtra *extra) {
  auto *data = new Text;
  data->text = Tell(extra);
  extra->SetKernelData(data);
  return 0;
}
extern "C" std::vector<int64_t> EchoInferShape(int *, int64_t **, AotExtra *extra) {
  return {static_cast<int64_t>(Tell(extra).size())};
}
extern "C" TypeId EchoInferType(std::vector<TypeId> types, AotExtra *) {
  return types.size() == 1 && types[0] == kNumberTypeFloat32 ? kNumberTypeUInt8 : kTypeUnknown;
}
extern "C" int Echo(int, void **params, int *, int64_t **, const char **, void *, void *extra) {
  Write(static_cast<Text *>(static_cast<AotExtra *>(extra)->KernelData())->text, params[1]);
  return 0;
}

// Out: the contents of the arrays, as bytes with zeros behind them.
extern "C" int Describe(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream,
                        void *) {
  std::string text = std::to_string(nparam) + (stream ? " stream" : "");
  for (int i = 0; i < nparam; ++i) {
    text += std::string("; ") + dtypes[i] + (params[i] ? " (" : " null (");
    if (ndims[i] == 0 && shapes[i] != nullptr) text += "not null";
    for (int d = 0; d < ndims[i]; ++d) text += (d ? "," : "") + std::to_string(shapes[i][d]);
    text += ")";
  }
  std::memset(params[nparam - 1], 0, 256);
  Write(text, params[nparam - 1]);
  return 0;
}

// Outputs of several shapes and types: as many as the attribute says, of 1, 2, … elements.
extern "C" std::vector<std::vector<int64_t>> PartsInferShape(int *, int64_t **, AotExtra *extra) {
  std::vector<std::vector<int64_t>> shapes;
  for (int64_t i = 1; i <= extra->Attr<int64_t>("count"); ++i) shapes.push_back({i});
  return shapes;
}
extern "C" std::vector<TypeId> PartsInferType(std::vector<TypeId> types, AotExtra *extra) {
  return std::vector<TypeId>(static_cast<size_t>(extra->Attr<int64_t>("count")), types.at(0));
}
extern "C" int Parts(int nparam, void **params, int *, int64_t **shapes, const char **, void *, void *) {
  for (int i = 1; i < nparam; ++i) {
    for (int64_t j = 0; j < shapes[i][0]; ++j) {
      static_cast<double *>(params[i])[j] = static_cast<const double *>(params[0])[0] * i;
    }
  }
  return 0;
}

// Writes into the file that the attribute names when it is made ready and when it is destroyed.
namespace {
struct Diary : AotKernelData {
  std::string path;
  void Note(char letter) {
    if (std::FILE *file = std::fopen(path.c_str(), "a")) {
      std::fputc(letter, file);
      std::fclose(file);
    }
  }
  ~Diary() override { Note('d'); }
};
}  // namespace
extern "C" int LivesInit(int *, int64_t **shapes, const char **, AotExtra *extra) {
  auto *diary = new Diary;
  diary->path = extra->Attr<std::string>("diary");
  diary->Note(static_cast<char>('0' + shapes[0][0]));
  extra->SetKernelData(diary);
  return 0;
}
extern "C" int Lives(int, void **params, int *, int64_t **shapes, const char **, void *, void *) {
  std::memcpy(params[1], params[0], shapes[0][0] * sizeof(float));
  return 0;
}
