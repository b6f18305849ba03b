// Numbers gathered by place: a list for each place, whose order does not depend on that of threads.
//
// In: `heads`, a number for each place, and `next`, one for each number. Out: lists of the numbers that were put at a place, in
// ascending order once sorted. Numbers are -1 at the end of a list.

namespace opsmith {

struct Lists {
  i64 *heads, *next;
};

// Puts a number, which no other thread puts, in front of a list.
DEVICE void put(const Lists &lists, u64 place, i64 number) {
  const u64 before = atomicExch(reinterpret_cast<u64 *>(lists.heads + place), static_cast<u64>(number));
  lists.next[number] = static_cast<i64>(before);
}

// Sorts the list of a place by merging runs of 1, 2, 4 … numbers; no other thread uses it meanwhile.
DEVICE void sort(const Lists &lists, u64 place) {
  i64 head = lists.heads[place];
  for (u64 run = 1;; run *= 2) {
    i64 rest = head, tail = -1;
    u64 merges = 0;
    head = -1;
    while (rest >= 0) {
      ++merges;
      i64 left = rest, right = rest;
      u64 lefts = 0, rights = run;
      while (lefts < run && right >= 0) {
        right = lists.next[right];
        ++lefts;
      }
      while (lefts > 0 || (rights > 0 && right >= 0)) {
        const bool from_left = lefts > 0 && (rights == 0 || right < 0 || left < right);
        const i64 number = from_left ? left : right;
        if (from_left) {
          left = lists.next[left];
          --lefts;
        } else {
          right = lists.next[right];
          --rights;
        }
        if (tail < 0) {
          head = number;
        } else {
          lists.next[tail] = number;
        }
        tail = number;
      }
      rest = right;
    }
    if (tail >= 0) lists.next[tail] = -1;
    if (merges <= 1) break;
  }
  lists.heads[place] = head;
}

}  // namespace opsmith
