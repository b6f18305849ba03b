// Elements at places that are data.

namespace opsmith {

// The offset of an index that leads nowhere.
inline constexpr i64 kNowhere = static_cast<i64>(0x8000000000000000ull);

// How indices lead to elements: `step` apart along a dimension of `size` elements. Of a size below 0, indices are offsets.
struct Along {
  i64 size, step;

  DEVICE i64 operator()(i64 index) const {
    if (size < 0) return index;
    if (index >= 0 && index < size) return index * step;
    report(kIndexOutOfRange);
    return kNowhere;
  }
};

// Elements of operand 1 at the indices, operand 2, as operand 0; zero where there is none.
template <class T>
struct Gather {
  Strided<3, u64> places;
  Along along;

  DEVICE void operator()(const i64 (&offsets)[3], const u64 (&)[8]) const {
    const i64 offset = along(static_cast<const i64 *>(places.pointers[2])[offsets[2]]);
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0]] =
        offset == kNowhere ? T{} : static_cast<const T *>(places.pointers[1])[offsets[1] + offset];
  }
};

// Adds to offsets, operand 0, those that indices lead to, operand 1; the first writes them. Negative indices count from the
// end.
template <class T>
struct Lead {
  Strided<2, u64> places;
  Along along;
  u64 first;

  DEVICE void operator()(const i64 (&offsets)[2], const u64 (&)[8]) const {
    i64 *const offset = static_cast<i64 *>(const_cast<void *>(places.pointers[0])) + offsets[0];
    const T index = static_cast<const T *>(places.pointers[1])[offsets[1]];
    const i64 next = along(index < 0 ? index + along.size : index);
    const i64 before = first != 0 ? 0 : *offset;
    *offset = before == kNowhere || next == kNowhere ? kNowhere : before + next;
  }
};

// The entry of each index, and the offset of its source: operands are the entries, the indices, the target, and the source.
template <class T>
struct Targets {
  Strided<4, u64> places;
  i64 *sources;
  Along along;
  // An index whose elements go nowhere.
  i64 skipped;

  DEVICE void operator()(const i64 (&offsets)[4], const u64 (&)[8]) const {
    const i64 index = static_cast<const T *>(places.pointers[1])[offsets[1]], offset = along(index);
    const i64 target = offset == kNowhere || index == skipped ? kNowhere : offset + offsets[2];
    static_cast<Entry *>(const_cast<void *>(places.pointers[0]))[offsets[0]] =
        Entry{static_cast<u64>(target), static_cast<u64>(offsets[0])};
    sources[offsets[0]] = offsets[3];
  }
};

// The first of the entries with one target, and one after the last; none if this is not the first.
struct Group {
  u64 start, end;
};
DEVICE Group group_of(const Entry *entries, u64 at, u64 count) {
  const u64 key = entries[at].key;
  if (key == static_cast<u64>(kNowhere) || (at > 0 && entries[at - 1].key == key)) return {at, at};
  u64 end = at + 1;
  while (end < count && entries[end].key == key) ++end;
  return {at, end};
}

// Puts the last element that leads to a target there. Operands are the target, the source, and the entries in order, which
// the first dimension counts.
template <class T>
struct Put {
  Strided<3, u64> places;
  const i64 *sources;

  DEVICE void operator()(const i64 (&offsets)[3], const u64 (&index)[8]) const {
    const Entry *const entries = static_cast<const Entry *>(places.pointers[2]);
    const u64 key = entries[index[0]].key;
    const bool last = index[0] + 1 == places.sizes[0] || entries[index[0] + 1].key != key;
    if (!last || key == static_cast<u64>(kNowhere)) return;
    static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0] + static_cast<i64>(key)] =
        static_cast<const T *>(places.pointers[1])[offsets[1] + sources[entries[index[0]].place]];
  }
};

// Puts one number at the indices: operands are the target and the indices.
template <class T>
struct PutNumber {
  Strided<2, u64> places;
  Along along;
  T number;

  DEVICE void operator()(const i64 (&offsets)[2], const u64 (&)[8]) const {
    const i64 offset = along(static_cast<const i64 *>(places.pointers[1])[offsets[1]]);
    if (offset != kNowhere) static_cast<T *>(const_cast<void *>(places.pointers[0]))[offsets[0] + offset] = number;
  }
};

enum : u32 { kSum, kProduct, kMean, kMaximum, kMinimum };

template <class C>
DEVICE C joined(u32 kind, C a, C b) {
  if constexpr (!kIsComplex<C>) {
    if (kind == kMaximum) return math::maximum(a, b);
    if (kind == kMinimum) return math::minimum(a, b);
  }
  return kind == kProduct ? mul(a, b) : add(a, b);
}

template <class C>
DEVICE C neutral(u32 kind) {
  if constexpr (!kIsComplex<C>) {
    if (kind == kMaximum) return lowest<C>();
    if (kind == kMinimum) return highest<C>();
  }
  return kind == kProduct ? one<C>() : zero<C>();
}

// The quotient; of integers, rounded toward minus infinity.
template <class C>
DEVICE C divided_down(C value, i64 count) {
  const C divisor = from_scalar<C>(count), quotient = div(value, divisor);
  if constexpr (kIsSigned<C>) {
    if (rem(value, divisor) < 0) return sub(quotient, one<C>());
  }
  return quotient;
}

// Joins the elements that lead to a target, in their order, with the target's own. Operands as those of `Put`.
template <class T>
struct Join {
  Strided<3, u64> places;
  const i64 *sources;
  u32 kind, with_own;
  // Whether each element counts for its share of all that lead to the target.
  u32 by_uses, scaled;
  Compute<T> factor;

  DEVICE void operator()(const i64 (&offsets)[3], const u64 (&index)[8]) const {
    using C = Compute<T>;
    const Entry *const entries = static_cast<const Entry *>(places.pointers[2]);
    const Group group = group_of(entries, index[0], places.sizes[0]);
    if (group.start == group.end) return;
    T *const target =
        static_cast<T *>(const_cast<void *>(places.pointers[0])) + offsets[0] + static_cast<i64>(entries[group.start].key);
    const T *const source = static_cast<const T *>(places.pointers[1]) + offsets[1];
    const C uses = from_scalar<C>(static_cast<i64>(group.end - group.start));
    C value = with_own != 0 ? to_compute(*target) : neutral<C>(kind);
    for (u64 at = group.start; at < group.end; ++at) {
      C next = to_compute(source[sources[entries[at].place]]);
      if (scaled != 0) next = mul(factor, next);
      if (by_uses != 0) next = div(next, uses);
      value = joined(kind, value, next);
    }
    if constexpr (!kIsComplex<T>) {
      if (kind == kMean) value = divided_down(value, static_cast<i64>(group.end - group.start + with_own));
    }
    *target = from_compute<T>(value);
  }
};

}  // namespace opsmith
