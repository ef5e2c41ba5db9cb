"""Linen: a decoder like Llama 3.2 3B, its layers in nn.scan of nn.remat that keeps by names only what attention gives; fully sharded, flash attention, AdamW."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, flash, following, gradients, kind_of_step, shardings, training_step, turned
from recipe import Program, largest_dimension, mesh, placed


class Layer(nn.Module):
    heads: int
    kv: int
    hidden: int
    attend: object
    keep: object

    @nn.compact
    def __call__(self, x, _):
        width, size = x.shape[-1], x.shape[-1] // self.heads
        lin = lambda n, name: nn.Dense(n, use_bias=False, dtype=HALF, name=name)
        h = nn.RMSNorm(dtype=HALF, name="input_norm")(x)
        q, k, v = (lin(n * size, name)(h).reshape(*h.shape[:2], n, size) for n, name in ((self.heads, "q_proj"), (self.kv, "k_proj"), (self.kv, "v_proj")))
        q, k = turned(q, 5e5), turned(k, 5e5)
        repeat = lambda a: jnp.repeat(a, self.heads // self.kv, 2)
        seen = checkpoint_name(self.attend(q, repeat(k), repeat(v)).reshape(x.shape), "attention")
        x = self.keep(x + lin(width, "o_proj")(seen))
        h = nn.RMSNorm(dtype=HALF, name="post_norm")(x)
        return self.keep(x + lin(width, "down_proj")(nn.silu(lin(self.hidden, "gate_proj")(h)) * lin(self.hidden, "up_proj")(h))), None


class Decoder(nn.Module):
    words: int
    width: int
    heads: int
    kv: int
    hidden: int
    depth: int
    attend: object
    keep: object

    @nn.compact
    def __call__(self, tokens):
        x = self.keep(nn.Embed(self.words, self.width, dtype=HALF, name="embed")(tokens))
        saved = nn.remat(Layer, prevent_cse=False, policy=jax.checkpoint_policies.save_only_these_names("attention"))
        stack = nn.scan(saved, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth)
        x, _ = stack(self.heads, self.kv, self.hidden, self.attend, self.keep, name="layers")(x, None)
        return nn.RMSNorm(dtype=HALF, name="norm")(x)


def llama(topology, chips, batch, length=2048, words=128256, width=3072, heads=24, kv=8, hidden=8192, depth=28, micro=1, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    keep = lambda a: jax.lax.with_sharding_constraint(a, split)
    attend = jax.shard_map(flash, mesh=devices, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"), check_vma=False)
    net = Decoder(words, width, heads, kv, hidden, depth, attend, keep)
    small = Decoder(words, width, heads, kv, hidden, depth, causal, lambda a: a)
    params = jax.eval_shape(small.init, jax.random.PRNGKey(0), jax.ShapeDtypeStruct((1, 128), "int32"))
    params = placed(params, largest_dimension(devices, "fsdp"))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, b2=0.95, weight_decay=0.1))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))

    def loss_fn(params, tokens):
        return entropy(net.apply(params, tokens), params["params"]["embed"]["embedding"].T, jnp.roll(tokens, -1, 1), chunks)

    step = training_step(gradients(loss_fn, devices, micro), transform)
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
