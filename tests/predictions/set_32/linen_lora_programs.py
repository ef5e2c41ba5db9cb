"""Linen: Mistral 7B, frozen in int8 with a scale for each column, LoRA on all of its matrices, layers in nn.scan; fully sharded."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state
from jax.sharding import NamedSharding, PartitionSpec as P

from linen_programs import turn
from pieces import HALF, causal, entropy, shardings
from recipe import Program, largest_dimension, mesh, placed


class Lora(nn.Module):
    features: int
    rank: int = 16

    @nn.compact
    def __call__(self, x):
        rows = x.shape[-1]
        w = self.variable("frozen", "kernel", jnp.zeros, (rows, self.features), jnp.int8).value
        scale = self.variable("frozen", "scale", jnp.zeros, (self.features,), HALF).value
        a = self.param("lora_a", nn.initializers.lecun_normal(), (rows, self.rank))
        b = self.param("lora_b", nn.initializers.zeros, (self.rank, self.features))
        return x @ (w.astype(HALF) * scale) + (x @ a.astype(HALF)) @ b.astype(HALF)


class Norm(nn.Module):
    @nn.compact
    def __call__(self, x):
        scale = self.variable("frozen", "scale", jnp.zeros, (x.shape[-1],), HALF).value
        y = x.astype(jnp.float32)
        return (y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-5)).astype(HALF) * scale


class Layer(nn.Module):
    heads: int
    kv: int
    hidden: int
    keep: object

    @nn.compact
    def __call__(self, x, _):
        width, size = x.shape[-1], x.shape[-1] // self.heads
        h = Norm(name="input_layernorm")(x)
        q, k, v = (Lora(n * size, name=name)(h).reshape(*h.shape[:2], n, size) for n, name in ((self.heads, "q_proj"), (self.kv, "k_proj"), (self.kv, "v_proj")))
        group = self.heads // self.kv
        seen = causal(turn(q), jnp.repeat(turn(k), group, 2), jnp.repeat(v, group, 2))
        x = x + Lora(width, name="o_proj")(seen.reshape(x.shape))
        h = Norm(name="post_attention_layernorm")(x)
        return self.keep(x + Lora(width, name="down_proj")(nn.silu(Lora(self.hidden, name="gate_proj")(h)) * Lora(self.hidden, name="up_proj")(h))), None


class Mistral(nn.Module):
    words: int
    width: int
    heads: int
    kv: int
    hidden: int
    depth: int
    keep: object
    remat: bool

    @nn.compact
    def __call__(self, tokens):
        table = self.variable("frozen", "embed_tokens", jnp.zeros, (self.words, self.width), HALF).value
        head = self.variable("frozen", "lm_head", jnp.zeros, (self.width, self.words), HALF).value
        one = nn.remat(Layer, prevent_cse=False) if self.remat else Layer
        stack = nn.scan(one, variable_axes={"params": 0, "frozen": 0}, split_rngs={"params": True}, length=self.depth)
        x, _ = stack(self.heads, self.kv, self.hidden, self.keep, name="layers")(self.keep(table[tokens]), None)
        return Norm(name="norm")(x), head


def mistral(topology, chips, batch, length=512, words=32768, width=4096, heads=32, kv=8, hidden=14336, depth=32, remat=False, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    keep = lambda a: jax.lax.with_sharding_constraint(a, split)
    net = Mistral(words, width, heads, kv, hidden, depth, keep, remat)
    plain = Mistral(words, width, heads, kv, hidden, depth, lambda a: a, False)
    variables = jax.eval_shape(plain.init, jax.random.PRNGKey(0), jax.ShapeDtypeStruct((1, length), "int32"))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4))
    state = jax.eval_shape(lambda p: train_state.TrainState.create(apply_fn=None, params=p, tx=transform), variables["params"])
    where = largest_dimension(devices, "fsdp", 1 << 18)
    state, frozen = placed(state, NamedSharding(devices, P())), placed(variables["frozen"], where)

    def train_step(state, frozen, batch):
        def loss_fn(params):
            x, head = net.apply({"params": params, "frozen": frozen}, batch["input_ids"])
            return entropy(x, head, batch["labels"], chunks)

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), loss

    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    classify = lambda path: ("opt" if "opt_state" in path or path.endswith(".step") else "weight") if path[:3] == "[0]" else "weight" if path[:3] == "[1]" else "input"
    return Program(train_step, (state, frozen, {"input_ids": S(), "labels": S()}), classify, (0,) if donate else (), (shardings(state), None))
