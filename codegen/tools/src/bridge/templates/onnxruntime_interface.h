// {{ generated }}
//
// The part of ONNX Runtime's C interface that custom operators use, of version 17 (ONNX Runtime 1.17). Later versions add functions at the
// end of the table alone, so that each has these at the same places. ONNX Runtime's packages for Python have no header.
#ifndef ONNXRUNTIME_INTERFACE_H
#define ONNXRUNTIME_INTERFACE_H

#include <cstddef>
#include <cstdint>

constexpr uint32_t ORT_VERSION = 17;

// Codes of errors.
enum { ORT_FAILED = 1, ORT_INVALID = 2, ORT_NOT_THERE = 9 };

// Kinds of attributes.
enum { ORT_INT = 1, ORT_INTS = 2, ORT_FLOAT = 3, ORT_FLOATS = 4, ORT_STRING = 5 };

// Inputs and outputs: of a number that is fixed, that may be one less, or of any number.
enum { ORT_REQUIRED = 0, ORT_OPTIONAL = 1, ORT_VARIADIC = 2 };

struct OrtStatus;
struct OrtValue;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtSessionOptions;
struct OrtCustomOpDomain;
struct OrtKernelInfo;
struct OrtKernelContext;
struct OrtShapeInferContext;
struct OrtOpAttr;
struct OrtApi;

struct OrtCustomOp {
  uint32_t version;
  void *(*CreateKernel)(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *node);
  const char *(*GetName)(const OrtCustomOp *op);
  const char *(*GetExecutionProviderType)(const OrtCustomOp *op);
  int (*GetInputType)(const OrtCustomOp *op, size_t index);
  size_t (*GetInputTypeCount)(const OrtCustomOp *op);
  int (*GetOutputType)(const OrtCustomOp *op, size_t index);
  size_t (*GetOutputTypeCount)(const OrtCustomOp *op);
  void (*KernelCompute)(void *kernel, OrtKernelContext *call);
  void (*KernelDestroy)(void *kernel);
  int (*GetInputCharacteristic)(const OrtCustomOp *op, size_t index);
  int (*GetOutputCharacteristic)(const OrtCustomOp *op, size_t index);
  int (*GetInputMemoryType)(const OrtCustomOp *op, size_t index);
  int (*GetVariadicInputMinArity)(const OrtCustomOp *op);
  int (*GetVariadicInputHomogeneity)(const OrtCustomOp *op);
  int (*GetVariadicOutputMinArity)(const OrtCustomOp *op);
  int (*GetVariadicOutputHomogeneity)(const OrtCustomOp *op);
  OrtStatus *(*CreateKernelV2)(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *node, void **kernel);
  OrtStatus *(*KernelComputeV2)(void *kernel, OrtKernelContext *call);
  OrtStatus *(*InferOutputShapeFn)(const OrtCustomOp *op, OrtShapeInferContext *node);
  int (*GetStartVersion)(const OrtCustomOp *op);
  int (*GetEndVersion)(const OrtCustomOp *op);
};

// `others_N` are the functions from place N on that no operator needs.
struct OrtApi {
OrtStatus *(*CreateStatus)(int code, const char *text);
  void *others_1[1];
  const char *(*GetErrorMessage)(const OrtStatus *status);
  void *others_3[23];
  OrtStatus *(*CreateCustomOpDomain)(const char *name, OrtCustomOpDomain **domain);
  OrtStatus *(*CustomOpDomain_Add)(OrtCustomOpDomain *domain, const OrtCustomOp *op);
  OrtStatus *(*AddCustomOpDomain)(OrtSessionOptions *options, OrtCustomOpDomain *domain);
  void *others_29[22];
  OrtStatus *(*GetTensorMutableData)(OrtValue *value, void **data);
  void *others_52[3];
  OrtStatus *(*CastTypeInfoToTensorInfo)(const OrtTypeInfo *type, const OrtTensorTypeAndShapeInfo **info);
  void *others_56[1];
  OrtStatus *(*CreateTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo **info);
  OrtStatus *(*SetTensorElementType)(OrtTensorTypeAndShapeInfo *info, int type);
  OrtStatus *(*SetDimensions)(OrtTensorTypeAndShapeInfo *info, const int64_t *sizes, size_t count);
  OrtStatus *(*GetTensorElementType)(const OrtTensorTypeAndShapeInfo *info, int *type);
  OrtStatus *(*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo *info, size_t *count);
  OrtStatus *(*GetDimensions)(const OrtTensorTypeAndShapeInfo *info, int64_t *sizes, size_t count);
  OrtStatus *(*GetSymbolicDimensions)(const OrtTensorTypeAndShapeInfo *info, const char **names, size_t count);
  void *others_64[1];
  OrtStatus *(*GetTensorTypeAndShape)(const OrtValue *value, OrtTensorTypeAndShapeInfo **info);
  void *others_66[19];
  OrtStatus *(*KernelInfoGetAttribute_float)(const OrtKernelInfo *node, const char *name, float *value);
  OrtStatus *(*KernelInfoGetAttribute_int64)(const OrtKernelInfo *node, const char *name, int64_t *value);
  OrtStatus *(*KernelInfoGetAttribute_string)(const OrtKernelInfo *node, const char *name, char *value, size_t *size);
  OrtStatus *(*KernelContext_GetInputCount)(const OrtKernelContext *call, size_t *count);
  OrtStatus *(*KernelContext_GetOutputCount)(const OrtKernelContext *call, size_t *count);
  OrtStatus *(*KernelContext_GetInput)(const OrtKernelContext *call, size_t index, const OrtValue **value);
  OrtStatus *(*KernelContext_GetOutput)(OrtKernelContext *call, size_t index, const int64_t *sizes, size_t count, OrtValue **value);
  void *others_92[1];
  void (*ReleaseStatus)(OrtStatus *status);
  void *others_94[4];
  void (*ReleaseTypeInfo)(OrtTypeInfo *type);
  void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo *info);
  void *others_100[62];
  OrtStatus *(*KernelInfoGetAttributeArray_float)(const OrtKernelInfo *node, const char *name, float *values, size_t *count);
  OrtStatus *(*KernelInfoGetAttributeArray_int64)(const OrtKernelInfo *node, const char *name, int64_t *values, size_t *count);
  void *others_164[66];
  OrtStatus *(*KernelInfo_GetInputCount)(const OrtKernelInfo *node, size_t *count);
  OrtStatus *(*KernelInfo_GetOutputCount)(const OrtKernelInfo *node, size_t *count);
  void *others_232[2];
  OrtStatus *(*KernelInfo_GetInputTypeInfo)(const OrtKernelInfo *node, size_t index, OrtTypeInfo **type);
  OrtStatus *(*KernelInfo_GetOutputTypeInfo)(const OrtKernelInfo *node, size_t index, OrtTypeInfo **type);
  void *others_236[31];
  OrtStatus *(*ShapeInferContext_GetInputCount)(const OrtShapeInferContext *node, size_t *count);
  OrtStatus *(*ShapeInferContext_GetInputTypeShape)(const OrtShapeInferContext *node, size_t index, OrtTensorTypeAndShapeInfo **info);
  OrtStatus *(*ShapeInferContext_GetAttribute)(const OrtShapeInferContext *node, const char *name, const OrtOpAttr **attribute);
  OrtStatus *(*ShapeInferContext_SetOutputTypeShape)(const OrtShapeInferContext *node, size_t index, const OrtTensorTypeAndShapeInfo *info);
  OrtStatus *(*SetSymbolicDimensions)(OrtTensorTypeAndShapeInfo *info, const char **names, size_t count);
  OrtStatus *(*ReadOpAttr)(const OrtOpAttr *attribute, int type, void *data, size_t bytes, size_t *needed);
};

static_assert(offsetof(OrtApi, ReleaseTensorTypeAndShapeInfo) == 99 * sizeof(void *), "a place of version 1");
static_assert(offsetof(OrtApi, KernelInfo_GetOutputTypeInfo) == 235 * sizeof(void *), "a place of version 14");
static_assert(offsetof(OrtApi, ReadOpAttr) == 272 * sizeof(void *), "a place of version 17");

struct OrtApiBase {
  const OrtApi *(*GetApi)(uint32_t version);
  const char *(*GetVersionString)();
};

#endif
