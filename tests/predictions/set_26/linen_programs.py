"""Linen: an encoder-decoder translator that serves, its layers' own and crossed keys and values kept; a GPT-J of parallel blocks, nn.scan of nn.remat with a policy, by Lion, fully sharded."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, shardings
from recipe import Program, largest_dimension, mesh, placed


class Decoder(nn.Module):
    heads: int
    size: int
    hidden: int
    slots: int
    source: int
    target: int
    kept: str

    @nn.compact
    def __call__(self, x, positions, lengths):
        norm = lambda name: nn.LayerNorm(dtype=HALF, param_dtype=HALF, name=name)
        lin = lambda name: nn.DenseGeneral((self.heads, self.size), dtype=HALF, param_dtype=HALF, name=name)
        out = lambda name: nn.DenseGeneral(x.shape[-1], axis=(-2, -1), dtype=HALF, param_dtype=HALF, name=name)
        make = lambda kind, name, length: self.variable(kind, name, lambda: jnp.zeros((self.slots, self.heads, length, self.size), self.kept))

        def attend(q, k, v, seen):
            s = jnp.einsum("bhd,bhtd->bht", q, k.astype(HALF)).astype(jnp.float32) * self.size**-0.5
            return jnp.einsum("bht,bhtd->bhd", jax.nn.softmax(jnp.where(seen[:, None], s, -1e30)).astype(HALF), v.astype(HALF))

        h = norm("self_norm")(x)
        k, v, rows = make("cache", "key", self.target), make("cache", "value", self.target), jnp.arange(self.slots)
        k.value = k.value.at[rows, :, positions].set(lin("self_k")(h).astype(self.kept))
        v.value = v.value.at[rows, :, positions].set(lin("self_v")(h).astype(self.kept))
        x = x + out("self_o")(attend(lin("self_q")(h), k.value, v.value, jnp.arange(self.target) <= positions[:, None]))
        k, v = make("cross", "key", self.source), make("cross", "value", self.source)
        x = x + out("cross_o")(attend(lin("cross_q")(norm("cross_norm")(x)), k.value, v.value, jnp.arange(self.source) < lengths[:, None]))
        dense = lambda n, name: nn.Dense(n, dtype=HALF, param_dtype=HALF, name=name)
        return x + dense(x.shape[-1], "fc2")(nn.relu(dense(self.hidden, "fc1")(norm("mlp_norm")(x))))


class Translator(nn.Module):
    depth: int
    words: int
    width: int
    layer: dict

    @nn.compact
    def __call__(self, tokens, positions, lengths):
        embed = nn.Embed(self.words, self.width, dtype=HALF, param_dtype=HALF, name="embed")
        x = embed(tokens)
        for i in range(self.depth):
            x = Decoder(**self.layer, name=f"decoder_{i}")(x, positions, lengths)
        return jnp.argmax(embed.attend(nn.LayerNorm(dtype=HALF, param_dtype=HALF, name="norm")(x)), -1).astype("int32")


def serve(topology, chips, slots, source=1536, target=768, depth=24, width=2048, heads=16, hidden=8192, words=256206, kept="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("model",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    net = Translator(depth, words, width, dict(heads=heads, size=width // heads, hidden=hidden, slots=slots, source=source, target=target, kept=kept))
    shapes = jax.eval_shape(net.init, jax.random.key(0), *[jax.ShapeDtypeStruct((slots,), "int32")] * 3)

    def where(path, leaf):
        if "_o" in path or "fc2" in path:
            return on("model") if leaf.ndim > 1 else on()
        if "_q" in path or "_k" in path or "_v" in path:
            return on(None, "model") if leaf.ndim == 3 else on("model")
        return on(None, "model") if "fc1" in path and leaf.ndim == 2 else on("model") if "fc1" in path else on(None, "model") if "embed" in path else on()

    params = placed(shapes["params"], where)
    cache, cross = (placed(shapes[n], on(None, "model")) for n in ("cache", "cross"))

    def decode_step(params, cache, cross, tokens, positions, lengths):
        out, new = net.apply({"params": params, "cache": cache, "cross": cross}, tokens, positions, lengths, mutable=["cache"])
        return out, new["cache"]

    S = jax.ShapeDtypeStruct((slots,), "int32", sharding=on())
    classify = lambda path: {"[0]": "weight", "[1]": "cache", "[2]": "cache"}.get(path[:3], "input")
    return Program(decode_step, (params, cache, cross, S, S, S), classify, (1,) if donate else (), (None, shardings(cache)))


class Block(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x, _):
        width = x.shape[-1]
        h = nn.LayerNorm(dtype=HALF, name="ln_1")(x)
        lin = lambda n, name: nn.Dense(n, use_bias=False, dtype=HALF, name=name)
        q, k, v = (lin(width, n)(h).reshape(*h.shape[:2], self.heads, -1) for n in ("q_proj", "k_proj", "v_proj"))
        a = lin(width, "out_proj")(jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape))
        return x + a + lin(width, "fc_out")(nn.gelu(lin(4 * width, "fc_in")(h))), None


class GPTJ(nn.Module):
    words: int
    width: int
    depth: int
    heads: int
    policy: str

    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(self.words, self.width, dtype=HALF, name="wte")(tokens)
        block = nn.remat(Block, prevent_cse=False, policy=getattr(jax.checkpoint_policies, self.policy))
        x, _ = nn.scan(block, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth)(self.heads, name="h")(x, None)
        return nn.LayerNorm(dtype=HALF, name="ln_f")(x), self.param("lm_head", nn.initializers.normal(0.02), (self.width, self.words))


def lion(topology, chips, batch, length=2048, words=50400, width=5120, depth=40, heads=40, policy="dots_with_no_batch_dims_saveable", chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    net = GPTJ(words, width, depth, heads, policy)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.lion(1e-4, mu_dtype="bfloat16", weight_decay=0.1))
    make = lambda key: train_state.TrainState.create(apply_fn=net.apply, params=net.init(key, jnp.zeros((1, length), "int32"))["params"], tx=transform)
    fits = largest_dimension(devices, "fsdp")

    def where(path, leaf):  # not the layers' dimension
        if leaf.ndim == 3:
            return NamedSharding(devices, P(None, "fsdp"))
        return fits(path, leaf)

    state = placed(jax.eval_shape(make, jax.random.key(0)), where)

    def train_step(state, batch):
        def loss_fn(params):
            x, head = state.apply_fn({"params": params}, batch["tokens"])
            return entropy(jax.lax.with_sharding_constraint(x, split), head, jnp.roll(batch["tokens"], -1, 1), chunks)

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), {"loss": loss}

    data = {"tokens": jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)}
    classify = lambda path: "opt" if "opt_state" in path or path.endswith(".step") else "weight" if path.startswith("[0]") else "input"
    return Program(train_step, (state, data), classify, (0,) if donate else (), (shardings(state), None))
