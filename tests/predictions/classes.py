"""classes.py SET [--binary PATH]: the first finding of every program, and the share of argument bytes whose class is right."""

import argparse
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(sys.argv[1]).absolute()
sys.path.insert(0, str(HERE))

from expected import PROGRAMS  # noqa: E402  (the set's own)

NAMES = {"Weight": "weight", "Optimizer state": "opt", "Input": "input", "Cache": "cache"}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("set")
    options.add_argument("--binary", default="highwater")
    options = options.parse_args()
    for name, entry in PROGRAMS.items():
        folder = HERE / "dumps" / name
        if not (folder / "truth.json").exists():
            continue
        truth = json.loads((folder / "truth.json").read_text())
        run = subprocess.run([options.binary, "report", str(folder), "--format", "json", "--top", "0", "--buffers"], capture_output=True, text=True)
        profile = json.loads(run.stdout)["profiles"][0]
        space = max((s for p in profile["programs"] for s in p["spaces"] if s["colour"] == 0), key=lambda s: s["allocated_bytes"])
        found = {}
        for row in space["buffers"]:
            if row["category"] == "Parameter":
                found.setdefault(row["op_name"], row.get("class"))
        # The paths in the file begin with the argument's name where ours have its number.
        by_tail = {}
        for path, kind in found.items():
            if path:
                by_tail.setdefault(path[len(re.match(r"[^\[.]*", path)[0]):], []).append(kind)
        right = known = missing = 0
        wrong = {}
        order = {}
        for _, path, kind, size, _ in truth["args"]:
            tail = re.match(r"\[\d+\](.*)", path)[1]
            places = by_tail.get(tail, []) if tail else []  # a whole argument: batch[0] or tokens
            index = order.get(tail, 0)
            order[tail] = index + 1
            if len(places) <= index:
                missing += size
                continue
            guess = NAMES.get(places[index], "other")
            known += size
            if guess == kind or (kind == "other" and guess in ("opt", "weight")):
                right += size
            else:
                wrong[f"{kind} taken for {guess}"] = wrong.get(f"{kind} taken for {guess}", 0) + size
        whole = [(p, k) for p, k in found.items() if p and (re.fullmatch(r"\w+(\[\d+\])?", p))]
        print(f"## {name}: {100 * right / max(known, 1):.1f} % of {known / 2**20:.0f} MiB; not matched {missing / 2**20:.1f} MiB {wrong or ''}; inputs {whole[:8]}")
        print("   expected:", entry["cause"])
        for finding in profile["findings"][:3]:
            print(f"   {finding['rule']}: {finding['title']} (saves {(finding['saves_bytes'] or 0) / 2**30:.2f} GiB)")


if __name__ == "__main__":
    main()
