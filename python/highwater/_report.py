"""The report on a dump as a Python object."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from dataclasses import dataclass
from typing import Any

from ._program import program, run


@dataclass(frozen=True)
class Finding:
    """One cause of memory use, and what to do about it. Sizes are bytes."""

    rule: str
    severity: str
    title: str
    why: str
    advice: tuple[str, ...]
    saves_bytes: int | None
    fits_after: bool | None


@dataclass(frozen=True)
class Plan:
    """The smallest set of changes that makes a program fit. Sizes are bytes."""

    summary: str
    edits: tuple[str, ...]
    steps: tuple[str, ...]
    allocated_bytes: int
    fits: bool | None


class Report:
    """What a dump says about one program's memory, in the device's main memory space.

    The files that it was read from lie in :attr:`folder`. A folder made by :func:`highwater.profile` is removed with the
    report, unless :meth:`save` has copied it.
    """

    def __init__(self, folder: str, *, capacity: str | int | None = None, is_private: bool = False) -> None:
        """Reads a folder (or a file). ``capacity`` overrides what the device has: ``"15.75GiB"`` or bytes."""
        self.folder = folder
        self._capacity = None if capacity is None else str(capacity)
        if is_private:
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._data: dict[str, Any] = json.loads(run(*self._arguments("json"), "--tree", "scope", "--depth", "1"))
        profiles = [one for one in self._data["profiles"] if any(p["spaces"] for p in one["programs"])]
        # The worst program comes first. Without any, there may be a message.
        self._profile: dict[str, Any] = (profiles or self._data["profiles"] or [{}])[0]

    def _arguments(self, form: str) -> list[str]:
        options = [] if self._capacity is None else ["--capacity", self._capacity]
        return ["report", self.folder, "--format", form, *options]

    def _space(self) -> dict[str, Any]:
        for one in self._profile.get("programs", []):
            for space in one["spaces"]:
                if space["colour"] == 0:
                    found: dict[str, Any] = space
                    return found
        return {}

    @property
    def name(self) -> str:
        """Name of the program."""
        programs = self._profile.get("programs", [])
        return str(programs[0]["name"] if programs else self._profile.get("name", ""))

    @property
    def device(self) -> str | None:
        """Name of the device, such as ``"TPU v5e"``; ``None`` if no file says."""
        found: str | None = self._profile.get("device", {}).get("name")
        return found

    @property
    def fits(self) -> bool | None:
        """Whether the program fits its device; ``None`` if no capacity is known."""
        return {"fits": True, "over": False}.get(self._space().get("verdict", ""))

    @property
    def peak_bytes(self) -> int | None:
        """Most bytes that are reserved at one time."""
        space = self._space()
        found: int | None = space.get("reserved_peak_bytes") or space.get("peak_bytes")
        return found

    @property
    def allocated_bytes(self) -> int | None:
        """Bytes that the compiler allocates, which is what must fit."""
        found: int | None = self._space().get("allocated_bytes")
        return found

    @property
    def capacity_bytes(self) -> int | None:
        """Bytes that a program may use on this device."""
        found: int | None = self._space().get("capacity_bytes")
        return found

    @property
    def findings(self) -> list[Finding]:
        """Causes, the one that saves most first."""
        return [
            Finding(
                rule=one["rule"],
                severity=one["severity"],
                title=one["title"],
                why=one["why"],
                advice=tuple(one["advice"]),
                saves_bytes=one["saves_bytes"],
                fits_after=one["fits_after"],
            )
            for one in self._profile.get("findings", [])
        ]

    @property
    def plan(self) -> Plan | None:
        """What would make the program fit; ``None`` if it fits, or nothing is known that would."""
        for one in self._profile.get("plans", []):
            return Plan(
                summary=one["summary"],
                edits=tuple(one["edits"]),
                steps=tuple(step["words"] for step in one["steps"]),
                allocated_bytes=one["allocated_bytes"],
                fits=one["fits"],
            )
        return None

    @property
    def largest_scopes(self) -> list[tuple[str, int]]:
        """Name scopes and their bytes at the peak, the largest first."""
        trees = self._space().get("trees", [])
        children = trees[0]["root"]["children"] if trees else []
        return sorted(((one["name"], one["bytes"]) for one in children), key=lambda scope: -scope[1])

    @property
    def verdict(self) -> str:
        """The answer in a line: ``jit_step needs 25.9 GiB of 15.8 GiB: does not fit``."""
        allocated, capacity = self.allocated_bytes, self.capacity_bytes
        if allocated is None:
            return f"{self.name}: no memory assignment was found"
        of = "" if capacity is None else f" of {_size(capacity)}"
        words = {True: ": fits", False: ": does not fit", None: "; the capacity is unknown"}[self.fits]
        return f"{self.name} needs {_size(allocated)}{of}{words}"

    def explain(self, scopes: int = 3) -> str:
        """The verdict, the largest scopes and the plan, as text."""
        lines = [self.verdict]
        lines += [f"  {name}: {_size(size)} at the peak" for name, size in self.largest_scopes[:scopes]]
        plan = self.plan
        if plan is not None:
            lines.append(f"plan: {plan.summary}")
            lines += [f"  {step}" for step in plan.steps]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The whole report, schema ``highwater.report/1``."""
        return self._data

    def to_markdown(self) -> str:
        """The whole report as Markdown."""
        return run(*self._arguments("markdown"))

    def open(self) -> None:
        """Opens the window on it, in a process of its own."""
        options = [] if self._capacity is None else ["--capacity", self._capacity]
        command = [program(), self.folder, *options]
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def save(self, folder: str | os.PathLike[str]) -> str:
        """Copies the files to a folder, which must not exist; returns its path."""
        return os.fspath(shutil.copytree(self.folder, folder))

    def screenshot(self, theme: str = "light", *, view: str = "overview", size: str = "1200x750") -> bytes:
        """A view as a PNG file. ``theme`` is ``"light"`` or ``"dark"``."""
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "view.png")
            options = [] if self._capacity is None else ["--capacity", self._capacity]
            run("screenshot", self.folder, "--view", view, "--theme", theme, "--size", size, "--out", out, *options)
            with open(out, "rb") as file:
                return file.read()

    def __repr__(self) -> str:
        return f"<highwater.Report: {self.verdict}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """For notebooks: the overview in the notebook's theme, the findings below."""
        text = self.explain()
        bundle = {"text/plain": text, "text/markdown": _markdown(self)}
        try:
            bundle["text/html"] = _html(self)
        except RuntimeError as error:
            # A program without pictures, or a dump without a program.
            print(f"highwater: no picture: {error}", file=sys.stderr)
        return bundle


def read(path: str | os.PathLike[str], *, capacity: str | int | None = None) -> Report:
    """The report on a dump that is there already: a folder, a file or an archive."""
    return Report(os.fspath(path), capacity=capacity)


def _size(count: int) -> str:
    number, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            break
        number /= 1024
    digits = 0 if unit == "B" or number >= 100 else 1 if number >= 10 else 2
    return f"{number:.{digits}f} {unit}"


def _markdown(report: Report) -> str:
    lines = [f"**{report.verdict}**", ""]
    lines += [f"* {finding.title}" for finding in report.findings]
    plan = report.plan
    if plan is not None:
        lines += ["", plan.summary]
    return "\n".join(lines)


# Notebooks say themselves whether they are dark: JupyterLab and VS Code in an attribute, others as the system does.
_STYLE = """
.highwater img { max-width: 100%; } .highwater .dark { display: none; }
@media (prefers-color-scheme: dark) {
  body:not([data-jp-theme-light]):not([data-vscode-theme-kind]) .highwater .dark { display: block; }
  body:not([data-jp-theme-light]):not([data-vscode-theme-kind]) .highwater .light { display: none; }
}
body[data-jp-theme-light="false"] .highwater .dark, body[data-vscode-theme-kind$="dark"] .highwater .dark,
body.vscode-dark .highwater .dark { display: block; }
body[data-jp-theme-light="false"] .highwater .light, body[data-vscode-theme-kind$="dark"] .highwater .light,
body.vscode-dark .highwater .light { display: none; }
"""


def _html(report: Report) -> str:
    from html import escape

    parts = [f"<style>{_STYLE}</style>", '<div class="highwater">']
    for theme in ("light", "dark"):
        picture = base64.b64encode(report.screenshot(theme)).decode()
        alt = escape(report.verdict, quote=True)
        parts.append(f'<img class="{theme}" alt="{alt}" src="data:image/png;base64,{picture}">')
    parts.append("<ul>")
    parts += [f"<li>{escape(finding.title)}</li>" for finding in report.findings]
    parts.append("</ul>")
    plan = report.plan
    if plan is not None:
        parts.append(f"<p>{escape(plan.summary)}</p>")
    parts.append("</div>")
    return "".join(parts)
