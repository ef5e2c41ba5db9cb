"""score.py SET [--binary PATH] [--only NAME] [--out FILE]: holds Highwater's reports against what was really compiled.

A pair is right if the really allocated bytes are within 10 % of the predicted ones, or inside the stated range and that
range spans at most a factor of 1.6. A false "fits" is the verdict `fits` for a program that the compiler refused.
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(sys.argv[1]).absolute()
sys.path.insert(0, str(HERE))

from expected import PROGRAMS  # noqa: E402  (the set's own)

GIB = 2**30


def report(binary, folder, *extra):
    run = subprocess.run([binary, "report", str(folder), "--format", "json", *extra], capture_output=True, text=True)
    try:
        profile = json.loads(run.stdout)["profiles"][0]
    except (json.JSONDecodeError, IndexError):
        raise SystemExit(f"{folder}: {run.stderr[:300]}")
    programs = [(p, s) for p in profile["programs"] for s in p["spaces"] if s["colour"] == 0]
    program, space = max(programs, key=lambda x: x[1]["allocated_bytes"])
    return profile, space


def allocated(space):
    return space["allocated_bytes"]


def judge(what, real):
    """right, wrong; predicted, low, high."""
    predicted = what["allocated_online_bytes"] if what["packer"] == "online" else what["allocated_bytes"]
    low, high = what["allocated_range_bytes"]
    close = abs(predicted - real) <= 0.1 * real
    inside = low <= real <= high and high <= 1.6 * low
    return close or inside, predicted, low, high


def pairs_of_set():
    for name, entry in PROGRAMS.items():
        for variant, change in entry["changes"].items():
            before, after, edits = HERE / "dumps" / name, HERE / "dumps" / f"{name}_{variant}", change["edits"]
            if variant == "nodonate":
                before, after, edits = after, before, ["donate *"]
            if (before / "truth.json").exists() and (after / "truth.json").exists():
                yield f"{name}: {variant}", change["kind"], before, after, edits


def main():
    options = argparse.ArgumentParser()
    options.add_argument("set")
    options.add_argument("--binary", default="highwater")
    options.add_argument("--only", default="")
    options.add_argument("--out")
    options = options.parse_args()
    jobs = [p for p in pairs_of_set() if options.only in p[0]]

    def one(job):
        title, kind, before, after, edits = job
        try:
            _, old = report(options.binary, before, *[x for e in edits for x in ("--edit", e)])
        except SystemExit as error:  # the edit is refused with an error: as good as declined
            _, old = report(options.binary, before)
            old["what_if"], old["what_if_undecided"] = None, str(error).split("error: ")[-1][:150]
        _, new = report(options.binary, after)
        return title, kind, edits, old, new

    rows, totals, false_fits = [], collections.defaultdict(list), []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for title, kind, edits, old, new in pool.map(one, jobs):
            real = allocated(new)
            what = old.get("what_if")
            if what is None:
                totals[kind].append("declined")
                rows.append((title, kind, edits, old, real, None, f"declined: {old.get('what_if_undecided')}"))
                continue
            right, predicted, low, high = judge(what, real)
            verdict = what["verdict"]
            if verdict == "fits" and new["verdict"] == "over":
                false_fits.append(title)
                verdict += " FALSE"
            totals[kind].append("right" if right else "wrong")
            rows.append((title, kind, edits, old, real, (predicted, low, high, right), f"{verdict} (really {new['verdict']})"))
    lines = ["| pair | edit | before | predicted | range | real | error | | verdict |", "|---|---|---:|---:|---:|---:|---:|---|---|"]
    for title, kind, edits, old, real, guess, verdict in rows:
        start = f"| {title} | `{'; '.join(edits)}` | {allocated(old) / GIB:.2f} "
        if guess is None:
            lines.append(f"{start}| – | – | {real / GIB:.2f} | | declined | {verdict} |")
            continue
        predicted, low, high, right = guess
        lines.append(f"{start}| {predicted / GIB:.2f} | {low / GIB:.2f} to {high / GIB:.2f} | {real / GIB:.2f} "
                     f"| {100 * (predicted / real - 1):+.0f} % | {'right' if right else '**wrong**'} | {verdict} |")
    lines += ["", "| kind | right | wrong | declined |", "|---|---:|---:|---:|"]
    for kind, results in totals.items():
        lines.append(f"| {kind} | {results.count('right')} | {results.count('wrong')} | {results.count('declined')} |")
    every = [x for results in totals.values() for x in results]
    lines.append(f"| all | {every.count('right')} of {len(every)} | {every.count('wrong')} | {every.count('declined')} |")
    lines.append(f"\nFalse fits: {', '.join(false_fits) or 'none'}")
    text = "\n".join(lines)
    print(text)
    if options.out:
        pathlib.Path(options.out).write_text(text + "\n")


if __name__ == "__main__":
    main()
