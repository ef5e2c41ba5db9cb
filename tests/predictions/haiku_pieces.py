"""What programs of several sets in Haiku are made of."""

import haiku as hk
import jax

from pieces import causal


class Layer(hk.Module):
    def __init__(self, heads, name=None):
        super().__init__(name=name)
        self.heads = heads

    def __call__(self, x):
        width = x.shape[-1]
        norm = lambda name: hk.LayerNorm(-1, True, True, name=name)
        h = norm("ln_1")(x)
        q, k, v = (hk.Linear(width, name=n)(h).reshape(*h.shape[:2], self.heads, -1) for n in ("query", "key", "value"))
        x = x + hk.Linear(width, name="proj")(causal(q, k, v).reshape(x.shape))
        return x + hk.Linear(width, name="mlp_out")(jax.nn.gelu(hk.Linear(4 * width, name="mlp_in")(norm("ln_2")(x))))
