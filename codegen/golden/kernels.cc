// A kernel in C++ of the type that the generated header declares.

#include <opsmith/kernel.hpp>

extern "C" int golden_foreign(OpsmithContext*, const OpsmithTensor*, const OpsmithTensor*, OpsmithTensors,
                              bool, const int64_t*, double, OpsmithScalar, OpsmithString, OpsmithInts,
                              const int32_t*, const OpsmithDevice*, const OpsmithGenerator*,
                              OpsmithTensor*, OpsmithTensor*) {
    return 0;
}

namespace {

double weight(double value) { return value; }
double weight(const OpsmithString& text) { return double(text.length); }
double weight(const OpsmithScalar& scalar) { return scalar.real; }

template <class List>
double sum(const List& list) {
    double total = 0;
    for (const auto& value : list) total += weight(value);
    return total;
}

// Items of a row count as often as the row's number.
template <class Lists>
double weighed(const Lists& lists) {
    double total = 0;
    for (std::size_t i = 0; i < lists.length; ++i) total += double(i + 1) * sum(opsmith::row(lists, i));
    return total;
}

}  // namespace

// `digest` of `lists.rs`.
extern "C" int golden_digest(OpsmithContext* context, const OpsmithTensor*, OpsmithStrings words,
                             OpsmithDTypes dtypes, OpsmithIntLists pairs, OpsmithFloatLists weights,
                             OpsmithBoolLists flags, OpsmithStringLists names, OpsmithScalarLists numbers,
                             OpsmithDTypeLists kinds, const OpsmithStrings* words_q,
                             const OpsmithScalars* scalars_q, const OpsmithIntLists* pairs_q,
                             const OpsmithStringLists* names_q, const OpsmithScalarLists* numbers_q,
                             OpsmithTensor* out) {
    return opsmith::run(context, [&] {
        const double values[] = {
            double(words.length),
            sum(opsmith::range(words)),
            sum(opsmith::range(dtypes)),
            double(pairs.length),
            weighed(pairs),
            weighed(weights),
            weighed(flags),
            weighed(names),
            weighed(numbers),
            weighed(kinds),
            words_q ? double(words_q->length) : -1,
            scalars_q ? sum(opsmith::range(*scalars_q)) : -1,
            pairs_q ? weighed(*pairs_q) : -1,
            names_q ? weighed(*names_q) : -1,
            numbers_q ? weighed(*numbers_q) : -1,
        };
        auto* to = static_cast<double*>(out->data);
        for (double value : values) *to++ = value;
    });
}

// Leaves so many elements of both results out.
extern "C" int golden_forgetful(OpsmithContext*, const OpsmithTensor* self, int64_t left, int64_t flag,
                                OpsmithTensor* copy, OpsmithTensor* flags) {
    int64_t count = 1;
    for (int dim = 0; dim < self->ndim; ++dim) count *= self->sizes[dim];
    for (int64_t i = 0; i < count - left; ++i) {
        static_cast<float*>(copy->data)[i] = static_cast<const float*>(self->data)[i];
        static_cast<unsigned char*>(flags->data)[i] = static_cast<unsigned char>(flag);
    }
    return 0;
}
