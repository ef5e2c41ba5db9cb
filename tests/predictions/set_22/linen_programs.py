"""Flax Linen: nnU-Net, three-dimensional segmentation with deep supervision, a running average of its weights."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, shardings
from recipe import Program, mesh, placed


class ConvUnit(nn.Module):
    features: int
    strides: int = 1
    dtype: type = jnp.float32

    @nn.compact
    def __call__(self, x):
        for i in range(2):
            s = (self.strides,) * 3 if i == 0 else (1, 1, 1)
            x = nn.Conv(self.features, (3, 3, 3), s, dtype=self.dtype, name=f"conv{i}")(x)
            x = nn.InstanceNorm(dtype=self.dtype, name=f"norm{i}")(x)
            x = nn.leaky_relu(x, 0.01)
        return x


class NNUNet(nn.Module):
    widths: tuple
    classes: int
    dtype: type
    remat: bool

    @nn.compact
    def __call__(self, x):
        unit = nn.remat(ConvUnit) if self.remat else ConvUnit
        skips, outs = [], []
        for i, w in enumerate(self.widths):
            x = unit(w, 1 if i == 0 else 2, self.dtype, name=f"down{i}")(x)
            skips.append(x)
        for i in reversed(range(len(self.widths) - 1)):
            x = nn.ConvTranspose(self.widths[i], (2, 2, 2), (2, 2, 2), dtype=self.dtype, name=f"up{i}")(x)
            x = jnp.concatenate([x, skips[i]], -1)
            x = unit(self.widths[i], 1, self.dtype, name=f"merge{i}")(x)
            if i < 3:
                outs.append(nn.Conv(self.classes, (1, 1, 1), dtype=jnp.float32, name=f"seg{i}")(x))
        return outs[::-1]


class State(train_state.TrainState):
    ema: dict


def unet3d(topology, chips, batch, patch=128, widths=(32, 64, 128, 256, 320, 320), classes=14, half=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = NNUNet(widths, classes, HALF if half else jnp.float32, remat)

    def create():
        params = net.init(jax.random.key(0), jnp.zeros((1, patch, patch, patch, 1)))["params"]
        tx = optax.chain(optax.add_decayed_weights(3e-5), optax.sgd(optax.polynomial_schedule(0.01, 0.0, 0.9, 250000), momentum=0.99, nesterov=True))
        return State.create(apply_fn=net.apply, params=params, tx=tx, ema=params)

    state = placed(jax.eval_shape(create), whole)

    def dice_and_entropy(logits, labels):
        onehot = jax.nn.one_hot(labels, classes)
        probs = jax.nn.softmax(logits)
        axes = (1, 2, 3)
        dice = (2 * (probs * onehot).sum(axes) + 1e-5) / (probs.sum(axes) + onehot.sum(axes) + 1e-5)
        return 1 - dice[:, 1:].mean() - (onehot * jax.nn.log_softmax(logits)).sum(-1).mean()

    def train_step(state, batch):
        def loss_fn(params):
            outs = state.apply_fn({"params": params}, batch["image"])
            total = 0.0
            for i, logits in enumerate(outs):
                f = 2**i
                total += dice_and_entropy(logits, batch["label"][:, ::f, ::f, ::f]) / f
            return total

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        state = state.apply_gradients(grads=grads)
        return state.replace(ema=optax.incremental_update(state.params, state.ema, 0.01)), {"loss": loss}

    data = {"image": jax.ShapeDtypeStruct((batch, patch, patch, patch, 1), "float32", sharding=split), "label": jax.ShapeDtypeStruct((batch, patch, patch, patch), "int32", sharding=split)}
    classify = lambda path: "input" if path.startswith("[1]") else "opt" if "opt_state" in path or "step" in path else "weight"
    return Program(train_step, (state, data), classify, (0,) if donate else ())
