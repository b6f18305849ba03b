// Lines of elements in chunks of 16 bytes, for kernels that read a line more than once.
//
// In: a line, and the team that has it (team.cuh). Out: chunks, which registers hold from the first reading on if the line is
// short enough. Chunk k of a thread begins at element (k * lanes + lane) * kChunk, so that the elements of a thread, and the order of
// its sums, depend on the line's length alone; where a line lies decides the width of the accesses.

namespace opsmith {

// Chunks of a thread that registers hold.
enum : int { kHeldChunks = 4 };

template <class T>
inline constexpr int kChunk = sizeof(T) >= 16 ? 1 : 16 / static_cast<int>(sizeof(T));

template <class T>
using Chunk = Compute<T>[kChunk<T>];

// Whether registers hold a line of so many elements.
template <class T>
DEVICE bool is_held(const Team &team, u64 size) {
  return size <= static_cast<u64>(kHeldChunks * kChunk<T>) * team.lanes;
}

// Calls `body(first, k)` for each chunk of the thread: its first element, and its place in registers, which is 0 if they hold none.
template <class T, bool held, class Body>
DEVICE void each_chunk(const Team &team, u64 size, const Body &body) {
  const u64 first = static_cast<u64>(team.lane) * kChunk<T>, step = static_cast<u64>(team.lanes) * kChunk<T>;
  if constexpr (held) {
    UNROLL
    for (int k = 0; k < kHeldChunks; ++k) {
      const u64 place = first + static_cast<u64>(k) * step;
      if (place < size) body(place, k);
    }
  } else {
    ROLLED
    for (u64 place = first; place < size; place += step) body(place, 0);
  }
}

// A line whose elements are `step` apart.
template <class T>
struct Line {
  T *start;
  i64 step;
  bool wide;
};

template <class T>
DEVICE Line<T> line_of(T *start, i64 step) {
  return {start, step, step == 1 && is_aligned<T>(start, kChunk<T>)};
}

// The chunk from `first` on, with `beyond` past the end.
template <class T>
DEVICE void load_chunk(const Line<const T> &line, u64 first, u64 size, Compute<T> beyond, Chunk<T> &chunk) {
  if (line.wide && first + kChunk<T> <= size) {
    const auto pack = *reinterpret_cast<const Pack<T, kChunk<T>> *>(line.start + first);
    UNROLL
    for (int i = 0; i < kChunk<T>; ++i) chunk[i] = to_compute(pack.elements[i]);
    return;
  }
  UNROLL
  for (int i = 0; i < kChunk<T>; ++i) {
    const u64 place = first + static_cast<u64>(i);
    chunk[i] = place < size ? to_compute(line.start[static_cast<i64>(place) * line.step]) : beyond;
  }
}

template <class T>
DEVICE void store_chunk(const Line<T> &line, u64 first, u64 size, const Chunk<T> &chunk) {
  if (line.wide && first + kChunk<T> <= size) {
    Pack<T, kChunk<T>> pack;
    UNROLL
    for (int i = 0; i < kChunk<T>; ++i) pack.elements[i] = from_compute<T>(chunk[i]);
    *reinterpret_cast<Pack<T, kChunk<T>> *>(line.start + first) = pack;
    return;
  }
  UNROLL
  for (int i = 0; i < kChunk<T>; ++i) {
    const u64 place = first + static_cast<u64>(i);
    if (place < size) line.start[static_cast<i64>(place) * line.step] = from_compute<T>(chunk[i]);
  }
}

}  // namespace opsmith
