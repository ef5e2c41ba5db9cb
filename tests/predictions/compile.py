"""compile.py SET [NAME [VARIANT]]: compiles the programs of a set, or one of them, as it is or with one change made."""

import importlib
import os
import subprocess
import sys

folder = os.path.abspath(sys.argv[1])
sys.path.insert(0, folder)
os.environ.setdefault("SET_OUT", f"{folder}/dumps")

import recipe  # noqa: E402  (the folder comes first)
from expected import PROGRAMS  # noqa: E402


def one(name, variant):
    entry = PROGRAMS[name]
    options = dict(entry["options"])
    if variant:
        options.update(entry["changes"][variant]["options"])
    full = f"{name}_{variant}" if variant else name
    dumps = recipe.prepare(full)
    module = importlib.import_module(entry["module"])
    recipe.compile_program(full, dumps, getattr(module, entry["program"])(**options))


if len(sys.argv) > 2:
    one(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
else:
    # Each in a process of its own: XLA reads its flags once.
    for name, entry in PROGRAMS.items():
        for variant in (None, *entry["changes"]):
            full = f"{name}_{variant}" if variant else name
            if not os.path.exists(f"{os.environ['SET_OUT']}/{full}/truth.json"):
                subprocess.run([sys.executable, __file__, folder, name, *([variant] if variant else [])], check=False)
