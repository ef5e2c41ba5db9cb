"""Finds and runs the program that comes with this module."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig


class ProgramNotFound(FileNotFoundError):
    """The `highwater` program is not where the package puts it, nor on the path."""


def program() -> str:
    """Path of the `highwater` program: the one installed with this module, else the first on the path.

    The environment variable ``HIGHWATER`` names another one.

    Raises:
        ProgramNotFound: if there is none.
    """
    named = os.environ.get("HIGHWATER")
    if named:
        return named
    name = "highwater" + (sysconfig.get_config_var("EXE") or "")
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    user_scheme = sysconfig.get_preferred_scheme("user")
    folders.append(sysconfig.get_path("scripts", scheme=user_scheme))
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    found = shutil.which(name)
    if found:
        return found
    raise ProgramNotFound(f"no program {name} in {', '.join(folders)} or on the path")


def run(*arguments: str) -> str:
    """Runs the program and returns what it prints.

    Raises:
        RuntimeError: with its own words, if it fails.
    """
    command = [program(), *arguments]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        raise RuntimeError(words or f"highwater {arguments[0]} ended with {done.returncode}")
    return done.stdout.decode()
