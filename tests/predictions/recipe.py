"""Compiles one program for a TPU that is not there, and keeps its dump with the true class of every argument.

A program is a function that returns `Program(step, args, classify, donate)`: a traceable step, its abstract
arguments with their shardings, and a rule from an argument's path to what it is. `compile_program` lowers it,
compiles it ahead of time, and stops as soon as XLA has written the buffer assignment: what follows does not
change memory. A program that does not fit is compiled to its end, which is the refusal.
"""

import dataclasses
import glob
import gzip
import json
import math
import os
import re
import shutil
import tempfile
import threading
import time
from typing import Any, Callable

OUT = os.environ.get("SET_OUT", "dumps")
WAIT = int(os.environ.get("SET_WAIT", "6"))


@dataclasses.dataclass
class Program:
    step: Callable
    args: tuple
    classify: Callable[[str], str]
    donate: tuple = ()
    out_shardings: Any = None


def prepare(name):
    """Sets what XLA reads once; called before jax is imported. Returns the folder XLA dumps to."""
    folder = tempfile.mkdtemp(prefix=f"set_{name}_")
    os.environ.update(
        ALLOW_MULTIPLE_LIBTPU_LOAD="1",
        TPU_SKIP_MDS_QUERY="1",
        TPU_ACCELERATOR_TYPE="v5litepod-4",
        TPU_WORKER_HOSTNAMES="localhost",
        JAX_PLATFORMS="cpu",
        KERAS_BACKEND="jax",
        TF_CPP_MIN_LOG_LEVEL="3",
        XLA_FLAGS=f"--xla_dump_to={folder} --xla_dump_hlo_as_proto --xla_dump_max_hlo_modules=400",
    )
    return folder


def mesh(topology, shape, names):
    """The first devices of a topology such as `v5e:2x2`, as a mesh."""
    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import Mesh

    devices = list(topologies.get_topology_desc(platform="tpu", topology_name=topology).devices)
    return Mesh(np.array(devices[: math.prod(shape)]).reshape(shape), names)


def placed(tree, sharding):
    """The tree, abstract, every leaf with `sharding(path, leaf)`, or with the one sharding given."""
    import jax

    choose = sharding if callable(sharding) else lambda path, leaf: sharding

    def one(path, leaf):
        where = choose(jax.tree_util.keystr(path), leaf)
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where)

    return jax.tree_util.tree_map_with_path(one, tree)


def largest_dimension(devices, axis, smallest=1 << 14):
    """FSDP: the largest dimension that divides, of leaves that are not tiny."""
    from jax.sharding import NamedSharding, PartitionSpec

    count = devices.shape[axis]

    def choose(path, leaf):
        fitting = [i for i, size in enumerate(leaf.shape) if size % count == 0]
        if not fitting or math.prod(leaf.shape) < smallest:
            return NamedSharding(devices, PartitionSpec())
        best = max(fitting, key=lambda i: leaf.shape[i])
        return NamedSharding(devices, PartitionSpec(*[axis if i == best else None for i in range(len(leaf.shape))]))

    return choose


def argument_rows(lowered, args, classify):
    """[number, path, class, bytes on a device, donated] of every argument that the program keeps."""
    import jax

    leaves = [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_flatten_with_path(args)[0]]
    donated = [getattr(x, "donated", None) for x in jax.tree.leaves(lowered.args_info)]
    kept = sorted(lowered._lowering.compile_args["kept_var_idx"])
    rows = []
    for number, index in enumerate(kept):
        path, leaf = leaves[index]
        shape = leaf.sharding.shard_shape(leaf.shape)
        rows.append([number, path, classify(path), math.prod(shape) * leaf.dtype.itemsize, donated[index]])
    return rows


def compile_program(name, folder, program):
    import jax

    out = f"{OUT}/{name}"
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    jitted = jax.jit(program.step, donate_argnums=program.donate, out_shardings=program.out_shardings)
    lowered = jitted.lower(*program.args)
    truth = {"name": name, "jax": jax.__version__, "args": argument_rows(lowered, program.args, program.classify)}
    started = time.time()
    lock = threading.Lock()

    def save():
        lock.acquire()  # never released: the process ends
        modules = [f for f in glob.glob(folder + "/*.after_optimizations.hlo.pb") if ".cl_" in f]
        if modules:
            largest = max(modules, key=os.path.getsize)
            stem = re.match(r"(.*?\.cl_\d+)\.", largest)[1]
            for path in glob.glob(glob.escape(stem) + "*"):
                if path.endswith((".after_optimizations.hlo.pb", "target_arguments.pb", "target_arguments.txt")):
                    with open(path, "rb") as source, gzip.open(f"{out}/{os.path.basename(path)}.gz", "wb", 6) as sink:
                        shutil.copyfileobj(source, sink)
        by_class = {}
        for row in truth["args"]:
            by_class[row[2]] = by_class.get(row[2], 0) + row[3]
        truth["seconds"] = round(time.time() - started)
        with open(f"{out}/truth.json", "w") as sink:
            json.dump(truth, sink, indent=0)
        gib = {kind: f"{size / 2**30:.2f}" for kind, size in by_class.items()}
        print(name, truth["result"], gib, f"{truth['seconds']} s", "no module" if not modules else "", flush=True)
        shutil.rmtree(folder, ignore_errors=True)

    def watch():
        while True:
            time.sleep(1)
            done = [f for f in glob.glob(folder + "/*after_buffer_assignment.hlo.pb") if ".cl_" in f]
            done += [f for f in glob.glob(folder + "/*.after_optimizations.hlo.pb") if ".cl_" in f]
            if done and time.time() - max(map(os.path.getmtime, done)) > WAIT:
                truth["result"] = "fits"
                save()
                os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    try:
        lowered.compile()
        truth["result"] = "fits"
    except Exception as error:  # the compiler's refusal is a result
        truth["result"] = "error"
        with open(f"{out}/error.txt", "w") as sink:
            sink.write(f"{type(error).__name__}: {error}\n")
    save()
    os._exit(0)


def change(kind, edits, **options):
    """A change: its kind, as `--edit` writes it, and the options that really make it."""
    return {"kind": kind, "edits": edits, "options": options}


def program(module, name, cause, changes, **options):
    """A program: where it is, the largest cause of its memory, from its source, and changes to it."""
    return {"module": module, "program": name, "cause": cause, "changes": changes, "options": options}
