"""Loaded at start by every Python inside `highwater run`, in front of the user's own `sitecustomize`.

It changes nothing that the program computes. It gives each process a dump folder of its own, because XLA names its files
by numbers that begin anew in each, and at the end, or when an exception ends the program, it writes the memory profile of
JAX's device if JAX has been used: one call, some milliseconds.

If the program imports torch and uses a GPU, PyTorch records its allocations with their Python stacks: some microseconds
for each, and memory for the last EVENTS of them. A snapshot is written when memory runs out, and at the end. What the
program records itself takes precedence.
"""

import os
import sys


def _own_dump_folder(run):
    """Points XLA to a subfolder, unless this is the first Python of the run."""
    flags = os.environ.get("XLA_FLAGS", "")
    if run not in flags:
        return
    try:
        os.close(os.open(os.path.join(run, ".hook", "first"), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        return
    except OSError:
        pass
    words = []
    for word in flags.split(" "):
        if word.startswith("--xla_dump_to="):
            quote = word[-1] if word[-1] in "'\"" else ""
            folder = word[len("--xla_dump_to="):].strip("'\"")
            if folder == run or os.path.dirname(folder) == run:
                word = "--xla_dump_to=%s%s%s" % (quote, os.path.join(run, "process-%d" % os.getpid()), quote)
        words.append(word)
    os.environ["XLA_FLAGS"] = " ".join(words)


def _save_jax_profile(run, done=[]):
    """Writes what is live on the device, once, if a backend of JAX is in use."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    if done or not getattr(bridge, "_backends", None) or _save_jax_profile.process != os.getpid():
        return
    done.append(True)
    try:
        import jax.profiler

        if not jax.live_arrays():
            return
        jax.profiler.save_device_memory_profile(os.path.join(run, "device_memory-%d.prof" % os.getpid()))
    except BaseException:
        pass


# Events that PyTorch keeps.
EVENTS = 200_000

# Snapshots of failures: a program that goes on after each must not spend its time on them.
FAILURES = 3


def _record_torch(torch, run):
    """Lets PyTorch record from when the program first uses a GPU."""
    process = os.getpid()
    written = []

    def dump(name):
        path = os.path.join(run, name)
        # A reader never sees half of it.
        torch.cuda.memory._dump_snapshot(path + ".part")
        os.replace(path + ".part", path)

    def on_failure(device, wanted, total, free):
        try:
            if len(written) < FAILURES and os.getpid() == process:
                written.append(True)
                dump("torch_memory-%d-oom.pickle" % process)
        except BaseException:
            pass

    def start():
        try:
            try:
                torch.cuda.memory._record_memory_history("all", stacks="python", max_entries=EVENTS)
            except TypeError:
                # PyTorch 2.0.
                torch.cuda.memory._record_memory_history(
                    True, trace_alloc_max_entries=EVENTS, trace_alloc_record_context=True
                )
            _save_torch_snapshot.dumps.append((process, written, dump))
            torch._C._cuda_attach_out_of_memory_observer(on_failure)
        except BaseException:
            pass

    # Never initialises anything: it runs when the program does, and on a machine without a GPU never.
    torch.cuda._lazy_call(start)


def _save_torch_snapshot():
    """Writes what PyTorch has recorded, once, unless a failure has been written."""
    while _save_torch_snapshot.dumps:
        process, written, dump = _save_torch_snapshot.dumps.pop()
        try:
            if not written and process == os.getpid():
                dump("torch_memory-%d.pickle" % process)
        except BaseException:
            pass


_save_torch_snapshot.dumps = []


class _TorchFinder:
    """Waits for the import of torch, and lets its own loader do it."""

    def __init__(self, run):
        self.run = run

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        try:
            import importlib.util

            sys.meta_path.remove(self)
            spec = importlib.util.find_spec("torch")
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                try:
                    _record_torch(module, self.run)
                except BaseException:
                    pass

            spec.loader.exec_module = exec_module
            return spec
        except Exception:
            # Whoever comes next finds it, or says that there is none.
            return None


def _install(run):
    _own_dump_folder(run)
    if os.environ.get("HIGHWATER_TORCH") != "never":
        sys.meta_path.insert(0, _TorchFinder(run))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _own_dump_folder(run))
    _save_jax_profile.process = os.getpid()
    before = sys.excepthook

    def excepthook(kind, value, trace):
        # The frames that failed, and what they hold, are still there.
        _save_jax_profile(run)
        _save_torch_snapshot()
        (before if before is not excepthook else sys.__excepthook__)(kind, value, trace)

    sys.excepthook = excepthook
    import atexit

    atexit.register(_save_torch_snapshot)
    try:
        # Before JAX lets go of its devices, which it does at exit.
        from threading import _register_atexit

        _register_atexit(_save_jax_profile, run)
    except (ImportError, RuntimeError):
        pass


def _next_sitecustomize(own):
    """Loads the `sitecustomize` that would have been loaded without this one."""
    import importlib.machinery
    import importlib.util

    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get("HIGHWATER_RUN"):
    try:
        _install(os.environ["HIGHWATER_RUN"])
    except Exception:
        pass
_next_sitecustomize(os.path.dirname(os.path.abspath(__file__)))
