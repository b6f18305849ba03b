#!/usr/bin/env python3
"""Joins lines of `opsmith-bench` with those of programs for other libraries.

    compare.py ours.jsonl theirs.jsonl ...

Prints, for each case and number of threads that both timed, the two medians and their ratio (above 1: ours is
faster), and the geometric mean of each group. Times of different machines or days do not compare: run the
programs in one sitting. A case that others disturbed (more than 15 % of a processor) is marked with `!`.
"""

import argparse
import json
import math
import sys

DISTURBED = 0.15


def read(path):
    """The last line of each case in a file, by case and threads."""
    cases = {}
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                sys.exit(f"{path}:{number}: not a JSON object: {error}")
            if "median_ns" in row:
                cases[row["case"], row["threads"]] = row
    return cases


def duration(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def compare(ours, theirs):
    """Prints one comparison; the number of cases both timed."""
    common = [key for key in ours if key in theirs]
    if not common:
        return 0
    names = ours[common[0]]["lib"], theirs[common[0]]["lib"]
    print(f"{'case':34} {'threads':>7} {names[0]:>12} {names[1]:>12} {'ratio':>8}")
    logarithms = {}
    for key in common:
        case, threads = key
        mine, other = ours[key], theirs[key]
        ratio = other["median_ns"] / mine["median_ns"]
        logarithms.setdefault((case.split(".")[0], threads), []).append(math.log(ratio))
        disturbed = max(mine.get("other") or 0, other.get("other") or 0) > DISTURBED
        times = f"{duration(mine['median_ns']):>12} {duration(other['median_ns']):>12}"
        print(f"{case:34} {threads:7} {times} {ratio:8.2f}{' !' if disturbed else ''}")
    print("\ngeometric means")
    for (group, threads), values in sorted(logarithms.items()):
        mean = math.exp(sum(values) / len(values))
        print(f"{group:34} {threads:7} {'':12} {f'{len(values)} cases':>12} {mean:8.2f}")
    return len(common)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", help="lines of opsmith-bench")
    parser.add_argument("theirs", nargs="+", help="lines of other programs")
    arguments = parser.parse_args()
    ours = read(arguments.ours)
    for path in arguments.theirs:
        if not compare(ours, read(path)):
            sys.exit(f"{path} has no case in common with {arguments.ours}")


if __name__ == "__main__":
    main()
