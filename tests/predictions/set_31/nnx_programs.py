"""NNX: Whisper large v3, fine-tuned whole: encoder and decoder under nnx.scan, nnx.remat with a policy; fully sharded."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


class Attention(nnx.Module):
    def __init__(self, width, heads, rngs):
        lin = lambda bias: nnx.Linear(width, width, use_bias=bias, dtype=HALF, rngs=rngs)
        self.q, self.k, self.v, self.out, self.heads = lin(True), lin(False), lin(True), lin(True), heads

    def __call__(self, x, other, causal=False):
        q, k, v = (f(a).reshape(*a.shape[:2], self.heads, -1) for f, a in ((self.q, x), (self.k, other), (self.v, other)))
        return self.out(jax.nn.dot_product_attention(q, k, v, is_causal=causal).reshape(x.shape))


class Layer(nnx.Module):
    def __init__(self, width, heads, cross, rngs):
        norm = lambda: nnx.LayerNorm(width, dtype=HALF, rngs=rngs)
        self.attention, self.norm1, self.norm2 = Attention(width, heads, rngs), norm(), norm()
        if cross:
            self.cross, self.norm3 = Attention(width, heads, rngs), norm()
        self.up, self.down = nnx.Linear(width, 4 * width, dtype=HALF, rngs=rngs), nnx.Linear(4 * width, width, dtype=HALF, rngs=rngs)

    def __call__(self, x, heard=None):
        h = self.norm1(x)
        x = x + self.attention(h, h, causal=heard is not None)
        if heard is not None:
            x = x + self.cross(self.norm3(x), heard)
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class Whisper(nnx.Module):
    def __init__(self, words, width, heads, depth, frames, length, rngs):
        def stack(cross):
            @nnx.split_rngs(splits=depth)
            @nnx.vmap(in_axes=(0,), out_axes=0)
            def make(rngs):
                return Layer(width, heads, cross, rngs)

            return make(rngs)

        W = lambda *s: nnx.Param(jax.random.normal(rngs.params(), s) * 0.02)
        self.conv1, self.conv2 = nnx.Conv(128, width, (3,), dtype=HALF, rngs=rngs), nnx.Conv(width, width, (3,), strides=(2,), dtype=HALF, rngs=rngs)
        self.encoder, self.decoder = stack(False), stack(True)
        self.norm1, self.norm2 = nnx.LayerNorm(width, dtype=HALF, rngs=rngs), nnx.LayerNorm(width, dtype=HALF, rngs=rngs)
        self.place, self.word, self.spot = W(frames, width), W(words, width), W(length, width)

    def __call__(self, sounds, tokens, policy, split):
        keep = lambda a: jax.lax.with_sharding_constraint(a, split)
        rematted = lambda f: f if policy == "everything" else nnx.remat(f, prevent_cse=False, policy=getattr(jax.checkpoint_policies, policy))
        hear = nnx.scan(rematted(lambda layer, x: keep(layer(x))), in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
        x = nnx.gelu(self.conv2(nnx.gelu(self.conv1(sounds.astype(HALF)))))
        heard = self.norm1(hear(self.encoder, keep(x + self.place[...].astype(HALF))))
        say = nnx.scan(rematted(lambda layer, x, heard: keep(layer(x, heard))), in_axes=(0, nnx.Carry, None), out_axes=nnx.Carry)
        x = keep(self.word[...].astype(HALF)[tokens] + self.spot[...].astype(HALF))
        return self.norm2(say(self.decoder, x, heard))


def whisper(topology, chips, batch, frames=1500, length=448, words=51866, width=1280, heads=20, depth=32, policy="dots_with_no_batch_dims_saveable", chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    graph, params, rest = nnx.split(nnx.eval_shape(lambda: Whisper(words, width, heads, depth, frames, length, nnx.Rngs(0))), nnx.Param, ...)
    params = placed(params, largest_dimension(devices, "fsdp", 1 << 17))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-5, b2=0.98))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))

    def train_step(params, opt_state, batch):
        def loss_fn(params):
            net = nnx.merge(graph, params, jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), rest))
            x = net(batch["input_features"], batch["decoder_input_ids"], policy, split)
            return entropy(x, net.word[...].T, batch["labels"], chunks)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"input_features": S("float32", 2 * frames, 128), "decoder_input_ids": S("int32", length), "labels": S("int32", length)}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
