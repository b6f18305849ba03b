// Keys of elements, and elements in the order of their keys.

namespace opsmith {

// A number that is larger for a larger element; NaN has the largest, and -0 that of 0. The twin of the host's `sort_key`.
template <class T>
DEVICE u64 sort_key(T element) {
  if constexpr (kIsUnsigned<T> || kIsBool<T>) {
    return static_cast<u64>(element);
  } else if constexpr (kSame<T, i8>) {
    return static_cast<u8>(element) ^ 0x80u;
  } else if constexpr (kSame<T, i16>) {
    return static_cast<u16>(element) ^ 0x8000u;
  } else if constexpr (kSame<T, i32>) {
    return static_cast<u32>(element) ^ 0x80000000u;
  } else if constexpr (kSame<T, i64>) {
    return static_cast<u64>(element) ^ 0x8000000000000000ull;
  } else if constexpr (kSame<T, double>) {
    if (element != element) return ~0ull;
    const u64 bits = static_cast<u64>(__double_as_longlong(element + 0.0)), sign = 0x8000000000000000ull;
    return (bits & sign) == 0 ? bits | sign : ~bits;
  } else {
    const float number = to_compute(element);
    if (number != number) return 0xffffffffull;
    const u32 bits = __float_as_uint(number + 0.0f), sign = 0x80000000u;
    return (bits & sign) == 0 ? bits | sign : ~bits;
  }
}

// The entries of lines along the last dimension: operand 0 has them, operand 1 the elements.
template <class T>
struct Keys {
  Strided<2, u64> places;
  u64 descending;

  DEVICE void operator()(const i64 (&offsets)[2], const u64 (&index)[8]) const {
    const u64 key = sort_key(static_cast<const T *>(places.pointers[1])[offsets[1]]);
    const u64 place = places.dims == 0 ? 0 : index[places.dims - 1];
    static_cast<Entry *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = Entry{descending != 0 ? ~key : key, place};
  }
};

// Elements and places along the last dimension: operands are the values, the places, the entries, and the first element of
// each line, whose elements are `step` apart.
template <class T>
struct InOrder {
  Strided<4, u64> places;
  i64 step;

  DEVICE void operator()(const i64 (&offsets)[4], const u64 (&)[8]) const {
    const u64 place = static_cast<const Entry *>(places.pointers[2])[offsets[2]].place;
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] =
        static_cast<const T *>(places.pointers[3])[offsets[3] + static_cast<i64>(place) * step];
    static_cast<i64 *>(const_cast<void *>(places.pointers[1]))[offsets[1]] = static_cast<i64>(place);
  }
};

// Whether an entry, operand 1, is the first of its kind, as operand 0. NaN differs from itself.
template <class T>
struct Differs {
  Strided<2, u64> places;
  const T *elements;

  DEVICE void operator()(const i64 (&offsets)[2], const u64 (&index)[8]) const {
    const Entry *const entry = static_cast<const Entry *>(places.pointers[1]) + offsets[1];
    const auto element = to_compute(elements[entry->place]);
    const bool differs = index[0] == 0 || entry[-1].key != entry->key || element != element;
    static_cast<u64 *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = differs;
  }
};

// The values that differ: operands are the entries and, for each, the number of different ones up to it.
template <class T>
struct Different {
  Strided<2, u64> places;
  const T *elements;
  T *values;
  u64 *starts;
  i64 *inverse;
  u64 found;
  i64 step;

  DEVICE void operator()(const i64 (&offsets)[2], const u64 (&index)[8]) const {
    const Entry entry = static_cast<const Entry *>(places.pointers[0])[offsets[0]];
    const u64 *const number = static_cast<const u64 *>(places.pointers[1]) + offsets[1];
    if (inverse != nullptr) inverse[entry.place] = static_cast<i64>(*number) - 1;
    if (index[0] != 0 && number[-1] == *number) return;
    if (*number > found) return report(kIndexOutOfRange);
    values[static_cast<i64>(*number - 1) * step] = elements[entry.place];
    starts[*number - 1] = index[0];
  }
};

// How many entries each value has: operands are the counts and the first entry of each.
template <class T>
struct Often {
  Strided<2, u64> places;
  u64 entries;

  DEVICE void operator()(const i64 (&offsets)[2], const u64 (&index)[8]) const {
    const u64 *const start = static_cast<const u64 *>(places.pointers[1]) + offsets[1];
    const u64 end = index[0] + 1 == places.count ? entries : start[1];
    static_cast<i64 *>(const_cast<void *>(places.pointers[0]))[offsets[0]] = static_cast<i64>(end - *start);
  }
};

}  // namespace opsmith
