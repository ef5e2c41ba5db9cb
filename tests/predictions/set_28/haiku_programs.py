"""Haiku: a Conformer for speech by CTC, its layers under hk.layer_stack, relative positions as a bias, half precision by casting; data parallel."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF
from recipe import Program, mesh, placed


class Conformer(hk.Module):
    def __init__(self, width, heads, span, name=None):
        super().__init__(name=name)
        self.width, self.heads, self.span = width, heads, span

    def __call__(self, x):
        norm = lambda name: hk.LayerNorm(-1, True, True, name=name)
        ff = lambda x, name: hk.Linear(self.width, name=name + "_out")(jax.nn.silu(hk.Linear(4 * self.width, name=name + "_in")(norm(name + "_norm")(x))))
        x = x + 0.5 * ff(x, "ff1")
        h = norm("attn_norm")(x)
        q, k, v = (hk.Linear(self.width, name=n)(h).reshape(*h.shape[:2], self.heads, -1) for n in ("query", "key", "value"))
        bias = hk.get_parameter("position_bias", [self.heads, 2 * self.span + 1], init=jnp.zeros)
        t = jnp.arange(x.shape[1])
        bias = bias[:, jnp.clip(t[:, None] - t, -self.span, self.span) + self.span]
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5 + bias.astype(jnp.float32)
        a = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(v.dtype), v).reshape(x.shape)
        x = x + hk.Linear(self.width, name="attn_out")(a)
        h = hk.Linear(2 * self.width, name="conv_in")(norm("conv_norm")(x))
        h = hk.DepthwiseConv1D(1, 31, name="conv_deep")(h[..., : self.width] * jax.nn.sigmoid(h[..., self.width :]))
        x = x + hk.Linear(self.width, name="conv_out")(jax.nn.silu(norm("conv_mid")(h)))
        return norm("out_norm")(x + 0.5 * ff(x, "ff2"))


def conformer(topology, chips, batch, frames=1600, width=512, heads=8, depth=17, words=1024, labels=200, span=64, remat=False, donate=True):
    """`frames` of 80 mel bins; a fourth of them reaches the layers."""
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def forward(mels):
        x = mels[..., None]
        for i in range(2):
            x = jax.nn.relu(hk.Conv2D(width // 2, 3, 2, name=f"subsample_{i}")(x))
        x = hk.Linear(width, name="enter")(x.reshape(*x.shape[:2], -1))
        layer = lambda x: Conformer(width, heads, span, name="conformer")(x)
        x = hk.layer_stack(depth)(hk.remat(layer) if remat else layer)(x)
        return hk.Linear(words, name="leave")(x)

    net = hk.without_apply_rng(hk.transform(forward))
    params = placed(jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((1, frames, 80), "float32")), whole)
    transform = optax.adamw(1e-3, b2=0.98, weight_decay=1e-3)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def update(params, opt_state, batch):
        def loss_fn(params):
            logits = net.apply(jax.tree.map(lambda a: a.astype(HALF), params), batch["mels"].astype(HALF)).astype(jnp.float32)
            t = jnp.arange(logits.shape[1])
            return optax.ctc_loss(logits, (t >= batch["frames"][:, None] // 4).astype(jnp.float32), batch["labels"], (batch["labels"] == 0).astype(jnp.float32)).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda dtype, *s: jax.ShapeDtypeStruct((batch, *s), dtype, sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(update, (params, opt, {"mels": S("float32", frames, 80), "frames": S("int32"), "labels": S("int32", labels)}), classify, (0, 1) if donate else ())
