// A kernel in C++ of the type that the generated header declares.

#include <opsmith/kernel.h>

extern "C" int golden_foreign(OpsmithContext*, const OpsmithTensor*, const OpsmithTensor*, OpsmithTensors,
                              bool, const int64_t*, double, OpsmithScalar, OpsmithString, OpsmithInts,
                              const int32_t*, const OpsmithDevice*, const OpsmithGenerator*,
                              OpsmithTensor*, OpsmithTensor*) {
    return 0;
}
