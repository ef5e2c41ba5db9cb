//! `highwater run` with real programs: a Python that has jax, and libtpu for what is compiled for a TPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::asked_for_file;

/// Runs a Python script under `highwater run` in a folder that is removed afterwards; `(output, folder of the run)`.
fn run(folder: &Path, script: &str) -> (Output, PathBuf) {
    run_with("HIGHWATER_PYTHON", folder, script)
}

/// As [`run`], with the Python that a variable names.
fn run_with(python: &str, folder: &Path, script: &str) -> (Output, PathBuf) {
    let (file, out) = (folder.join("program.py"), folder.join("run"));
    fs::write(&file, script).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    for name in ["DISPLAY", "WAYLAND_DISPLAY", "XLA_FLAGS"] {
        command.env_remove(name);
    }
    command.env("PYTHONPATH", folder).arg("run").arg("--out").arg(&out).arg("--");
    command.arg(asked_for_file(python)).arg(&file);
    (command.output().expect("it runs"), out)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A program on the processor, with a `sitecustomize` of the user's own.
pub fn on_the_processor() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("sitecustomize.py"), "import builtins\nbuiltins.mine = 'loaded'\n").expect("written");
    let script = "import sys, jax, jax.numpy as jnp\n\
                  x = jnp.ones((512, 512))\n\
                  step = jax.jit(lambda x: jnp.tanh(x @ x))\n\
                  for i in range(3):\n    x = step(x)\n    print(f'\\rstep {i}', end='', file=sys.stderr)\n\
                  print(mine, 'sitecustomize' in sys.modules, any('.hook' in p for p in sys.path))\n\
                  sys.exit(3)\n";
    let (output, out) = run(folder.path(), script);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert_eq!(text(&output.stdout), "loaded True False\n");
    assert!(errors.contains("\rstep 0\rstep 1\rstep 2"), "{errors:?}");
    assert!(errors.contains("highwater: ") && errors.contains(" needs "), "{errors}");
    let left = names(&out);
    let is_program = |name: &String| name.ends_with("after_optimizations.hlo.pb");
    assert!(left.iter().any(is_program), "{left:?}");
    let others: Vec<&String> = left.iter().filter(|name| !is_program(name)).collect();
    assert!(matches!(&others[..], [name] if name.starts_with("device_memory-")), "{others:?}");
}

/// XLA's own example of a program that runs out of memory, compiled for a TPU v5e that need not be there.
pub fn out_of_memory_on_a_tpu() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "import jax\nfrom jax import random\nfrom jax.experimental import topologies\n\
                  chip = topologies.get_topology_desc(platform='tpu', topology_name='v5e:2x2').devices[0]\n\
                  there = jax.sharding.SingleDeviceSharding(chip)\n\
                  def f(key):\n    a = random.normal(key, (327680, 327680))\n    return a @ a\n\
                  key = jax.ShapeDtypeStruct((2,), 'uint32', sharding=there)\n\
                  jax.jit(f).lower(key).compile()\n";
    let (output, out) = run(folder.path(), script);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("RESOURCE_EXHAUSTED"), "{errors}");
    let line = format!("highwater: jit_f needs 400 of 15.75 GiB: does not fit; highwater {}\n", out.display());
    assert!(errors.contains(&line), "{errors}");
    assert!(errors.contains("Does not fit: "), "{errors}");
    let change = "highwater: One buffer takes 400 GiB, 25 times the available memory; shard it across more devices";
    assert!(errors.contains(change), "{errors}");
}

/// Two processes that compile modules of the same name.
pub fn two_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "import multiprocessing, sys\n\
                  def work(n):\n    import jax, jax.numpy as jnp\n    jax.jit(lambda x: x @ x)(jnp.ones((n, n)))\n\
                  if __name__ == '__main__':\n    context = multiprocessing.get_context('spawn')\n    \
                  both = [context.Process(target=work, args=(n,)) for n in (64, 128)]\n    \
                  [p.start() for p in both]; [p.join() for p in both]\n";
    let (output, out) = run(folder.path(), script);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let folders = names(&out).into_iter().filter(|name| name.starts_with("process-"));
    let with_programs = folders.filter(|name| !names(&out.join(name)).is_empty()).count();
    assert!(with_programs >= 2, "{:?}", names(&out));
}

/// TensorFlow: a function that XLA compiles for the processor.
pub fn tensorflow() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "import tensorflow as tf\n\
                  @tf.function(jit_compile=True)\n\
                  def step(x):\n    return tf.reduce_sum(tf.tanh(x @ x))\n\
                  print(float(step(tf.zeros((512, 512)))))\n";
    let (output, out) = run_with("HIGHWATER_TENSORFLOW", folder.path(), script);
    let errors = text(&output.stderr);
    assert!(output.status.success() && text(&output.stdout) == "0.0\n", "{errors}");
    let line = errors.lines().find(|line| line.starts_with("highwater: ")).unwrap_or_default();
    assert!(line.contains("a_inference_step") && line.contains(" needs 2.00 MiB"), "{errors}");
    assert!(names(&out).iter().any(|name| name.ends_with("after_optimizations.hlo.pb")), "{:?}", names(&out));
}

/// A stand-in for torch, which has CUDA only if the script says so.
const TORCH: &[(&str, &str)] = &[
    ("torch/__init__.py", "from . import _C, cuda\n"),
    (
        "torch/_C.py",
        "observers = []\ndef _cuda_attach_out_of_memory_observer(observer):\n    observers.append(observer)\n",
    ),
    (
        "torch/cuda/__init__.py",
        "from . import memory\nqueued = []\ndef _lazy_call(call):\n    queued.append(call)\n\
         def init():\n    [call() for call in queued]\n",
    ),
    (
        "torch/cuda/memory.py",
        "import pickle\nrecording = None\nevents = []\n\
         def _record_memory_history(enabled='all', context='all', stacks='all', max_entries=1):\n    \
             global recording\n    recording = (enabled, stacks, max_entries)\n\
         def _dump_snapshot(path):\n    \
             block = dict(size=2 << 20, requested_size=2 << 20, address=1 << 30, state='active_allocated', frames=[])\n    \
             segment = dict(device=0, address=1 << 30, total_size=2 << 20, stream=0, segment_type='large', blocks=[block])\n    \
             with open(path, 'wb') as file:\n        \
                 pickle.dump(dict(segments=[segment], device_traces=[events]), file)\n",
    ),
];

/// PyTorch is recorded from its first use of a GPU, without being changed; a snapshot is there at the end, or of the
/// failure.
pub fn torch_stand_in() {
    let begin = "import sys, torch\nprint(torch.__spec__.name, len(torch.cuda.queued), 'recording', torch.cuda.memory.recording)\n";
    let fails = "torch.cuda.init()\nprint(torch.cuda.memory.recording[1])\n\
                 torch.cuda.memory.events.append(dict(action='oom', device_free=1 << 20, size=256 << 20, stream=0))\n\
                 [observe(0, 1, 2, 3) for observe in torch._C.observers * 9]\nraise MemoryError('CUDA out of memory')\n";
    for (script, stdout, left, said) in [
        ("print('no GPU')\n", "no GPU\n", None, "no memory picture"),
        ("torch.cuda.init()\n", "", Some(""), "PyTorch allocated at most 2.00 MiB of 2.00 MiB reserved"),
        (fails, "python\n", Some("-oom"), "Out of memory: 256 MiB requested"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, source) in TORCH {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, source).expect("written");
        }
        let (output, out) = run(folder.path(), &format!("{begin}{script}"));
        let errors = text(&output.stderr);
        assert_eq!(text(&output.stdout), format!("torch 1 recording None\n{stdout}"), "{errors}");
        assert_eq!(output.status.success(), left != Some("-oom"), "{errors}");
        assert!(errors.contains(said), "{said}: {errors}");
        let found = if out.is_dir() { names(&out) } else { Vec::new() };
        let snapshots: Vec<&String> = found.iter().filter(|name| name.ends_with(".pickle")).collect();
        match left {
            None => assert!(snapshots.is_empty(), "{found:?}"),
            Some(end) => {
                let [name] = snapshots[..] else { panic!("{found:?}") };
                assert_eq!(name.contains("-oom"), end == "-oom", "{name}");
            }
        }
    }
}
