// Numbers in order, each with the place that it came from.
//
// In: lines of entries, all of one length. Out: the entries of each line in ascending order of their keys, equal keys in the
// order of their places: no two entries of a line are equal, so one result is possible, whatever the threads do.
//
// Tiles of kTile entries are sorted in shared memory; then runs are merged in pairs, an entry's place being its own in its run
// and the number of smaller ones in the other. A choice of the smallest keeps that many of each tile.

namespace opsmith {

struct Entry {
  u64 key, place;
};

enum : int { kTile = 1024, kOrderThreads = 256 };

DEVICE bool before(const Entry &a, const Entry &b) { return a.key < b.key || (a.key == b.key && a.place < b.place); }

// Tiles of lines: `width` entries of a power of two, kTile at most, are a tile, and each line has `tiles` of them. The first
// `kept` entries of each are written, one tile after the other.
struct Tiles {
  const Entry *from;
  Entry *to;
  u64 lines, size, tiles, kept;
  u32 width, padding;
};

DEVICE void sort_tiles(const Tiles &tiles) {
  __shared__ Entry entries[kTile];
  const u64 first = static_cast<u64>(blockIdx.x) * kTile;
  for (u32 i = threadIdx.x; i < kTile; i += kOrderThreads) {
    const u64 tile = (first + i) / tiles.width, line = tile / tiles.tiles;
    const u64 at = tile % tiles.tiles * tiles.width + i % tiles.width;
    entries[i] = line < tiles.lines && at < tiles.size ? tiles.from[line * tiles.size + at] : Entry{~0ull, ~0ull};
  }
  __syncthreads();
  // Bitonic: sorted pieces of `piece / 2` entries, every other one descending, become pieces of `piece`.
  for (u32 piece = 2; piece <= tiles.width; piece *= 2) {
    for (u32 step = piece / 2; step > 0; step /= 2) {
      for (u32 pair = threadIdx.x; pair < kTile / 2; pair += kOrderThreads) {
        const u32 low = pair / step * step * 2 + pair % step, high = low + step;
        const bool ascending = (low % tiles.width & piece) == 0;
        if (before(entries[high], entries[low]) == ascending) {
          const Entry entry = entries[low];
          entries[low] = entries[high];
          entries[high] = entry;
        }
      }
      __syncthreads();
    }
  }
  for (u32 i = threadIdx.x; i < kTile; i += kOrderThreads) {
    const u64 tile = (first + i) / tiles.width, line = tile / tiles.tiles, number = tile % tiles.tiles;
    const u64 within = i % tiles.width, rest = tiles.size - number * tiles.width;
    if (line >= tiles.lines || within >= rest || within >= tiles.kept) continue;
    // Every tile but the last has `kept` entries or more.
    const u64 last = tiles.size - (tiles.tiles - 1) * tiles.width;
    const u64 of_line = (tiles.tiles - 1) * tiles.kept + (last < tiles.kept ? last : tiles.kept);
    tiles.to[line * of_line + number * tiles.kept + within] = entries[i];
  }
}

// Runs of `run` sorted entries in each line, the last of them shorter, merged in pairs.
struct Merge {
  const Entry *from;
  Entry *to;
  u64 count, size, run;
};

DEVICE void merge_runs(const Merge &merge) {
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < merge.count; i += step) {
    const u64 start = i / merge.size * merge.size, at = i - start, own = at / merge.run;
    const u64 other = (own ^ 1) * merge.run, pair = own / 2 * 2 * merge.run;
    const u64 end = other + merge.run < merge.size ? other + merge.run : merge.size;
    const Entry entry = merge.from[i];
    u64 low = other < merge.size ? other : end, high = end;
    while (low < high) {
      const u64 middle = low + (high - low) / 2;
      if (before(merge.from[start + middle], entry)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const u64 smaller = other < merge.size ? low - other : 0;
    merge.to[start + pair + (at - own * merge.run) + smaller] = entry;
  }
}

}  // namespace opsmith

#define OPSMITH_SORT_TILES(NAME)                                                                          \
  extern "C" __global__ void __launch_bounds__(opsmith::kOrderThreads) NAME(opsmith::Tiles tiles) {       \
    opsmith::sort_tiles(tiles);                                                                           \
  }
#define OPSMITH_MERGE_RUNS(NAME)                                                                          \
  extern "C" __global__ void __launch_bounds__(opsmith::kOrderThreads) NAME(opsmith::Merge merge) {       \
    opsmith::merge_runs(merge);                                                                           \
  }
