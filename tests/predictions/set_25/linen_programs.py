"""Linen: the U-Net of Stable Diffusion 1.5, bfloat16, data parallel, with an average of its weights; the Transformer big of encoder and decoder for translation, layers in a Python loop."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, shardings
from recipe import Program, largest_dimension, mesh, placed


class ResBlock(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, t):
        conv = lambda k, name: nn.Conv(self.width, (k, k), dtype=HALF, name=name)
        h = conv(3, "conv1")(nn.silu(nn.GroupNorm(32, dtype=HALF, name="norm1")(x)))
        h = h + nn.Dense(self.width, dtype=HALF, name="time_emb_proj")(nn.silu(t))[:, None, None]
        h = conv(3, "conv2")(nn.silu(nn.GroupNorm(32, dtype=HALF, name="norm2")(h)))
        return h + (x if x.shape[-1] == self.width else conv(1, "conv_shortcut")(x))


class Attend(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x, context):
        width = x.shape[-1]
        cut = lambda a: a.reshape(*a.shape[:2], self.heads, -1)
        lin = lambda name: nn.Dense(width, use_bias=False, dtype=HALF, name=name)
        q, k, v = cut(lin("to_q")(x)), cut(lin("to_k")(context)), cut(lin("to_v")(context))
        return nn.Dense(width, dtype=HALF, name="to_out")(nn.dot_product_attention(q, k, v, dtype=HALF).reshape(x.shape))


class Spatial(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x, context):
        b, h, w, c = x.shape
        norm = lambda name: nn.LayerNorm(dtype=HALF, name=name)
        y = nn.Dense(c, dtype=HALF, name="proj_in")(nn.GroupNorm(32, dtype=HALF, name="norm")(x).reshape(b, h * w, c))
        z = norm("norm1")(y)
        y = y + Attend(self.heads, name="attn1")(z, z)
        y = y + Attend(self.heads, name="attn2")(norm("norm2")(y), context)
        up, gate = jnp.split(nn.Dense(8 * c, dtype=HALF, name="ff_in")(norm("norm3")(y)), 2, -1)
        y = y + nn.Dense(c, dtype=HALF, name="ff_out")(up * nn.gelu(gate))
        return x + nn.Dense(c, dtype=HALF, name="proj_out")(y).reshape(x.shape)


class UNet(nn.Module):
    remat: bool
    widths: tuple = (320, 640, 1280, 1280)
    heads: int = 8

    @nn.compact
    def __call__(self, x, t, context):
        wrap = nn.remat if self.remat else (lambda kind: kind)
        res, spatial = wrap(ResBlock), wrap(Spatial)
        freq = jnp.exp(-jnp.log(10000.0) * jnp.arange(160) / 160)
        t = t[:, None].astype(jnp.float32) * freq
        t = nn.Dense(1280, dtype=HALF)(nn.silu(nn.Dense(1280, dtype=HALF)(jnp.concatenate([jnp.cos(t), jnp.sin(t)], -1))))
        context, x = context.astype(HALF), nn.Conv(self.widths[0], (3, 3), dtype=HALF, name="conv_in")(x)
        skips = [x]
        for i, width in enumerate(self.widths):
            for j in range(2):
                x = res(width, name=f"down_{i}_resnets_{j}")(x, t)
                if i < 3:
                    x = spatial(self.heads, name=f"down_{i}_attentions_{j}")(x, context)
                skips.append(x)
            if i < 3:
                x = nn.Conv(width, (3, 3), (2, 2), dtype=HALF, name=f"down_{i}_downsample")(x)
                skips.append(x)
        x = res(1280, name="mid_resnets_0")(x, t)
        x = res(1280, name="mid_resnets_1")(spatial(self.heads, name="mid_attentions_0")(x, context), t)
        for i, width in reversed(list(enumerate(self.widths))):
            for j in range(3):
                x = res(width, name=f"up_{i}_resnets_{j}")(jnp.concatenate([x, skips.pop()], -1), t)
                if i < 3:
                    x = spatial(self.heads, name=f"up_{i}_attentions_{j}")(x, context)
            if i:
                x = jax.image.resize(x, (x.shape[0], 2 * x.shape[1], 2 * x.shape[2], x.shape[3]), "nearest")
                x = nn.Conv(width, (3, 3), dtype=HALF, name=f"up_{i}_upsample")(x)
        return nn.Conv(4, (3, 3), dtype=jnp.float32, name="conv_out")(nn.silu(nn.GroupNorm(32, name="norm_out")(x)))


def sd_unet(topology, chips, batch, size=64, remat=False, zero=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = UNet(remat)
    shapes = jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((1, size, size, 4)), jnp.zeros((1,), "int32"), jnp.zeros((1, 77, 768)))["params"]
    params = placed(shapes, whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-5, weight_decay=0.01))
    opt = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if zero else whole)

    def train_step(unet_params, opt_state, batch):
        def loss_fn(params):
            level = jnp.cos(batch["timesteps"] / 1000 * jnp.pi / 2)[:, None, None, None]
            noisy = level * batch["latents"] + jnp.sqrt(1 - level**2) * batch["noise"]
            return jnp.mean((net.apply({"params": params}, noisy, batch["timesteps"], batch["encoder_hidden_states"]) - batch["noise"]) ** 2)

        loss, grads = jax.value_and_grad(loss_fn)(unet_params)
        updates, opt_state = transform.update(grads, opt_state, unet_params)
        return optax.apply_updates(unet_params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"latents": S("float32", size, size, 4), "noise": S("float32", size, size, 4), "timesteps": S("int32"), "encoder_hidden_states": S("float32", 77, 768)}
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(train_step, (params, opt, data), classify, (0, 1) if donate else (), (shardings(params), shardings(opt), None))


class Encoder(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x, mask):
        norm = lambda: nn.LayerNorm(dtype=HALF)
        h = norm()(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=HALF, deterministic=True, name="self_attention")(h, h, mask=mask)
        return x + nn.Dense(x.shape[-1], dtype=HALF, name="wo")(nn.relu(nn.Dense(4 * x.shape[-1], dtype=HALF, name="wi")(norm()(x))))


class Decoder(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x, encoded, own, cross):
        norm = lambda: nn.LayerNorm(dtype=HALF)
        h = norm()(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=HALF, deterministic=True, name="self_attention")(h, h, mask=own)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=HALF, deterministic=True, name="cross_attention")(norm()(x), encoded, mask=cross)
        return x + nn.Dense(x.shape[-1], dtype=HALF, name="wo")(nn.relu(nn.Dense(4 * x.shape[-1], dtype=HALF, name="wi")(norm()(x))))


class Transformer(nn.Module):
    words: int
    width: int
    heads: int
    depth: int
    remat: int

    @nn.compact
    def __call__(self, source, target):
        embed = nn.Embed(self.words, self.width, dtype=HALF, name="shared_embedding")
        place = lambda a, name: embed(a) + self.param(name, nn.initializers.normal(0.02), (a.shape[1], self.width)).astype(HALF)
        x, y = place(source, "source_positions"), place(target, "target_positions")
        seen = nn.make_attention_mask(source > 0, source > 0, dtype=HALF)
        own = nn.combine_masks(nn.make_causal_mask(target, dtype=HALF), nn.make_attention_mask(target > 0, target > 0, dtype=HALF))
        cross = nn.make_attention_mask(target > 0, source > 0, dtype=HALF)
        for i in range(self.depth):
            x = (nn.remat(Encoder) if i < self.remat else Encoder)(self.heads, name=f"encoder_{i}")(x, seen)
        x = nn.LayerNorm(dtype=HALF, name="encoder_norm")(x)
        for i in range(self.depth):
            y = (nn.remat(Decoder) if i < self.remat else Decoder)(self.heads, name=f"decoder_{i}")(y, x, own, cross)
        return nn.LayerNorm(dtype=HALF, name="decoder_norm")(y), embed.embedding


def translate(topology, chips, batch, length=256, words=32768, width=1024, heads=16, depth=6, remat=0, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Transformer(words, width, heads, depth, remat)
    transform = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 2e-3, 1000, 100000), b2=0.98, weight_decay=0.01)

    def make(key):
        params = net.init(key, *[jnp.zeros((1, length), jnp.int32)] * 2)["params"]
        return train_state.TrainState.create(apply_fn=net.apply, params=params, tx=transform)

    state = placed(jax.eval_shape(make, jax.random.key(0)), whole)

    def train_step(state, batch):
        def loss_fn(params):
            x, table = state.apply_fn({"params": params}, batch["inputs"], jnp.pad(batch["targets"], ((0, 0), (1, 0)))[:, :-1])
            return entropy(x, table.T, batch["targets"], chunks)

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), loss

    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    classify = lambda path: "opt" if "opt_state" in path or path.endswith(".step") else "weight" if path.startswith("[0]") else "input"
    return Program(train_step, (state, {"inputs": S(), "targets": S()}), classify, (0,) if donate else (), (shardings(state), None))
