"""Compiles with JAX and reads what the compiler leaves, without environment variables and without running anything."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._report import Report

# Words of errors that say that memory was too small: the dump was written before.
_OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "Ran out of memory", "out of memory", "OOM")


def profile(
    step: Any,
    *args: Any,
    capacity: str | int | None = None,
    compiler_options: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Report:
    """Compiles a function and reports what it needs. It is not run.

    Args:
        step: a function, a function of ``jax.jit``, or what ``lower`` of one returned (then without further arguments).
        args: its arguments; ``jax.ShapeDtypeStruct`` will do in place of arrays.
        capacity: what a program may use if not what the device has: ``"15.75GiB"`` or bytes.
        compiler_options: options for the compiler besides those that write the dump.
        kwargs: its keyword arguments.

    Returns:
        The report, also if the compiler ran out of memory.

    Raises:
        Exception: what the compiler raises for any other reason.
    """
    return _compile(_lower(step, args, kwargs), capacity, compiler_options)


def fits_on(
    step: Any, *args: Any, topologies: Sequence[str], capacity: str | int | None = None, **kwargs: Any
) -> dict[str, Report]:
    """Compiles for TPUs that need not be there, and reports what each would need.

    Needs jax and libtpu (``pip install "jax[tpu]"``), on any Linux machine. Arguments are placed on the TPU as they are
    here: those with a `NamedSharding` on a mesh of the same shape, all others on every device of it, or on one device.

    Args:
        step: a function, or one of ``jax.jit`` that names no devices.
        topologies: such as ``"v5e:2x2"``, ``"v6e:1x1"``, ``"v5p:2x2x1"``.

    Returns:
        The reports by topology, in the order given.
    """
    _without_metadata_server()
    from jax.experimental import topologies as described

    reports = {}
    for name in topologies:
        devices = described.get_topology_desc(platform="tpu", topology_name=name).devices
        placed, placed_by_name = _place(args, kwargs, devices)
        reports[name] = _compile(_lower(step, placed, placed_by_name), capacity, None)
    return reports


def assert_fits(
    step: Any,
    *args: Any,
    headroom: float = 0.05,
    topology: str | None = None,
    capacity: str | int | None = None,
    **kwargs: Any,
) -> Report:
    """Fails unless a function fits its device with some room to spare.

    Args:
        headroom: share of the capacity that must stay free.
        topology: a TPU to compile for, as in :func:`fits_on`; by default the devices of this machine.
        capacity: what a program may use if not what the device has: ``"15.75GiB"`` or bytes.

    Raises:
        AssertionError: with the verdict, the three largest scopes and the plan.
        ValueError: if no capacity is known.
    """
    __tracebackhide__ = True
    if topology is None:
        report = profile(step, *args, capacity=capacity, **kwargs)
    else:
        report = fits_on(step, *args, topologies=[topology], capacity=capacity, **kwargs)[topology]
    allocated, limit = report.allocated_bytes, report.capacity_bytes
    if allocated is None or limit is None:
        raise ValueError(f"{report.verdict}: pass capacity or topology")
    if allocated > limit * (1 - headroom):
        wanted = f" (wanted: {headroom:.0%} to spare)" if report.fits else ""
        raise AssertionError(report.explain().replace("\n", wanted + "\n", 1) if wanted else report.explain())
    return report


def _lower(step: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    if hasattr(step, "compile") and not hasattr(step, "lower"):
        if args or kwargs:
            raise TypeError("what is lowered already takes no arguments")
        return step
    if not hasattr(step, "lower"):
        import jax

        step = jax.jit(step)
    return step.lower(*args, **kwargs)


def _compile(lowered: Any, capacity: str | int | None, options: Mapping[str, Any] | None) -> Report:
    folder = tempfile.mkdtemp(prefix="highwater-")
    dump = {"xla_dump_to": folder, "xla_dump_hlo_as_proto": True}
    try:
        with _no_cache():
            try:
                lowered.compile(compiler_options={**(options or {}), **dump})
            except Exception as error:
                if not any(words in str(error) for words in _OUT_OF_MEMORY):
                    raise
                with open(os.path.join(folder, "compile.err.txt"), "w", encoding="utf-8") as file:
                    file.write(f"{type(error).__module__}.{type(error).__qualname__}: {error}\n")
        return Report(folder, capacity=capacity, is_private=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@contextlib.contextmanager
def _no_cache() -> Iterator[None]:
    """A program from the compilation cache is not compiled, and leaves no dump."""
    jax = sys.modules.get("jax")
    if jax is None:
        yield
        return
    from jax.experimental.compilation_cache import compilation_cache

    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    # JAX asks once whether there is a cache, and remembers.
    compilation_cache.reset_cache()
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()


def _without_metadata_server() -> None:
    """Keeps libtpu from waiting for the server that tells a TPU host about itself, on a machine that is none."""
    if not any(name.startswith("accel") for name in os.listdir("/dev")) and not os.path.isdir("/dev/vfio"):
        os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
        os.environ.setdefault("TPU_WORKER_HOSTNAMES", "localhost")


def _place(args: tuple[Any, ...], kwargs: Mapping[str, Any], devices: Sequence[Any]) -> tuple[Any, Any]:
    """The arguments as shapes on other devices."""
    import jax

    # Not everything in them has types.
    parts: Any = jax.sharding
    shape_of: Any = jax.ShapeDtypeStruct

    def sharding(leaf: Any) -> Any:
        found = getattr(leaf, "sharding", None)
        return found if isinstance(found, parts.NamedSharding) else None

    leaves, tree = jax.tree.flatten((args, dict(kwargs)))
    named = [found for found in map(sharding, leaves) if found is not None]
    other: Any = parts.SingleDeviceSharding(devices[0])
    mesh = None
    if named:
        sizes = dict(named[0].mesh.shape)
        shape, count = tuple(sizes.values()), 1
        for size in shape:
            count *= size
        if count > len(devices):
            raise ValueError(f"a mesh of {count} devices does not fit the {len(devices)} of the topology")
        import numpy

        mesh = parts.Mesh(numpy.array(devices[:count]).reshape(shape), tuple(sizes))
        other = parts.NamedSharding(mesh, parts.PartitionSpec())

    def placed(leaf: Any) -> Any:
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            leaf = jax.numpy.asarray(leaf)
        own = sharding(leaf)
        where = parts.NamedSharding(mesh, own.spec) if own is not None and mesh is not None else other
        return shape_of(leaf.shape, leaf.dtype, sharding=where)

    moved, moved_by_name = jax.tree.unflatten(tree, [placed(leaf) for leaf in leaves])
    return moved, moved_by_name
