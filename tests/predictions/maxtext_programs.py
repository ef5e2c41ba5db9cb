"""MaxText's own train_compile, its compile caught; the repository's `src` is in `repos/maxtext`."""
import os, sys
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/repos/maxtext/src")
import jax
from recipe import Program


class Caught(Exception):
    pass


def train(donate=True, **options):
    """`options` are MaxText's own."""
    from maxtext.trainers.pre_train import train_compile as T
    got = {}

    def catch(func, args, kwargs, mesh, ins, outs, static, donated, config, rules):
        got.update(func=func, args=args, kwargs=kwargs, mesh=mesh, ins=ins, outs=outs, static=static, donated=donated, rules=rules, config=config)
        raise Caught()

    T.jit_and_compile = catch
    given = {"compile_topology_num_slices": 1, "enable_checkpointing": "false", "log_config": "false", **options}
    try:
        T.main(["train_compile", HERE + "/repos/maxtext/src/maxtext/configs/base.yml", *[f"{k}={v}" for k, v in given.items()]])
    except Caught:
        pass
    assert not got["kwargs"] and not got["static"], (got["kwargs"], got["static"])
    place = lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s)
    args = []
    for given, where in zip(got["args"], got["ins"]):
        args.append(jax.tree.map(lambda x: place(x, where), given) if isinstance(where, jax.sharding.Sharding) else jax.tree.map(place, given, where))
    context = jax.set_mesh(got["mesh"]); context.__enter__() if hasattr(context, "__enter__") else None
    got["mesh"].__enter__(); got["rules"].__enter__()

    def train_step(state, data):
        return got["func"](state, data)

    def classify(path):
        if path.startswith("[1]"):
            return "input"
        low = path.lower()
        return "opt" if "optimizer" in low or "opt_state" in low else "other" if "rng" in low else "weight"

    return Program(train_step, tuple(args), classify, got["donated"] if donate else (), got["outs"])
