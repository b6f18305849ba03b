#!/usr/bin/env python3
"""Joins lines of `opsmith-bench` with those of programs for other libraries.

    compare.py ours.jsonl theirs.jsonl ...

Prints, for each case and number of threads that both timed, the two medians and their ratio (above 1: ours is
faster), and the geometric mean of each group and of all. Times of different machines or days do not compare: run the
programs in one sitting. A case that others disturbed (more than 15 % of a processor) is marked with `!`.
With `--markdown`, the same as tables of a document.
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


def rows_of(ours, theirs):
    """For each case that both timed: its name, its threads, both medians, their ratio, whether others disturbed it."""
    for key in ours:
        if key in theirs:
            mine, other = ours[key], theirs[key]
            disturbed = max(mine.get("other") or 0, other.get("other") or 0) > DISTURBED
            times = mine["median_ns"], other["median_ns"]
            yield *key, *times, times[1] / times[0], disturbed


def means(rows):
    """For each group and number of threads, then for all groups: number of cases, geometric mean, least ratio."""
    ratios = {}
    for case, threads, _, _, ratio, _ in rows:
        for group in (case.split(".")[0], "all"):
            ratios.setdefault((group, threads), []).append(ratio)
    for (group, threads), values in sorted(ratios.items(), key=lambda item: (item[0][0] == "all", item[0])):
        mean = math.exp(sum(map(math.log, values)) / len(values))
        yield group, threads, len(values), mean, min(values)


def print_text(names, rows):
    print(f"{'case':34} {'threads':>7} {names[0]:>12} {names[1]:>12} {'ratio':>8}")
    for case, threads, mine, other, ratio, disturbed in rows:
        times = f"{duration(mine):>12} {duration(other):>12}"
        print(f"{case:34} {threads:7} {times} {ratio:8.2f}{' !' if disturbed else ''}")
    print("\ngeometric means, and the least ratio")
    for group, threads, count, mean, least in means(rows):
        print(f"{group:34} {threads:7} {'':12} {f'{count} cases':>12} {mean:8.2f} {least:8.2f}")


def print_markdown(names, rows):
    print(f"\n### Groups, {names[0]} and {names[1]}\n")
    print("| group | threads | cases | geometric mean | least |\n|---|---:|---:|---:|---:|")
    for group, threads, count, mean, least in means(rows):
        print(f"| {group} | {threads} | {count} | {mean:.2f} | {least:.2f} |")
    print(f"\n### Cases, {names[0]} and {names[1]}\n")
    print(f"| case | threads | {names[0]} | {names[1]} | ratio |\n|---|---:|---:|---:|---:|")
    for case, threads, mine, other, ratio, disturbed in rows:
        mark = " !" if disturbed else ""
        print(f"| `{case}` | {threads} | {duration(mine)} | {duration(other)} | {ratio:.2f}{mark} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", help="lines of opsmith-bench")
    parser.add_argument("theirs", nargs="+", help="lines of other programs")
    parser.add_argument("--markdown", action="store_true", help="print tables of a document")
    arguments = parser.parse_args()
    ours = read(arguments.ours)
    for path in arguments.theirs:
        theirs = read(path)
        rows = list(rows_of(ours, theirs))
        if not rows:
            sys.exit(f"{path} has no case in common with {arguments.ours}")
        names = [cases[rows[0][:2]]["lib"] for cases in (ours, theirs)]
        (print_markdown if arguments.markdown else print_text)(names, rows)


if __name__ == "__main__":
    main()
