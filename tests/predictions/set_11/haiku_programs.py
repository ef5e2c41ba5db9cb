"""dm-haiku: a causal language model with dropout."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import entropy
from recipe import Program, mesh, placed


class Layer(hk.Module):
    def __init__(self, heads, width, drop, name):
        super().__init__(name)
        self.heads, self.width, self.drop = heads, width, drop

    def __call__(self, x):
        init = hk.initializers.VarianceScaling(0.1)
        norm = lambda a, name: hk.LayerNorm(-1, True, True, name=name)(a)
        drop = lambda a: hk.dropout(hk.next_rng_key(), self.drop, a)
        mask = jnp.tril(jnp.ones((1, 1, x.shape[1], x.shape[1])))
        attention = hk.MultiHeadAttention(self.heads, self.width // self.heads, model_size=self.width, w_init=init, name="attention")
        y = norm(x, "norm_1")
        x = x + drop(attention(y, y, y, mask=mask))
        y = jax.nn.gelu(hk.Linear(4 * self.width, w_init=init, name="widen")(norm(x, "norm_2")))
        return x + drop(hk.Linear(self.width, w_init=init, name="narrow")(y))


def transformer(topology, chips, batch, length, depth, width, heads, vocabulary, remat=0, chunks=1):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    policy = __import__("jmp").get_policy("p=f32,c=bf16,o=bf16")
    hk.mixed_precision.set_policy(Layer, policy)

    def network(tokens, labels):
        x = hk.Embed(vocabulary, width, name="tokens")(tokens).astype(jnp.bfloat16)
        for number in range(depth):
            layer = Layer(heads, width, 0.1, name=f"layer_{number}")
            x = (hk.remat(layer) if number < remat else layer)(x)
        x = hk.LayerNorm(-1, True, True, name="last")(x)
        w = hk.get_parameter("unembed", (width, vocabulary), init=hk.initializers.RandomNormal(0.02)).astype(jnp.bfloat16)
        return entropy(x, w, labels, chunks)

    net = hk.transform(network)
    few = jnp.zeros((1, length), jnp.int32)
    params = jax.eval_shape(lambda: net.init(jax.random.PRNGKey(0), few, few))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adafactor(1e-3))
    state = jax.eval_shape(transform.init, params)

    def update(params, opt_state, rng, tokens, labels):
        value, gradients = jax.value_and_grad(net.apply)(params, rng, tokens, labels)
        updates, opt_state = transform.update(gradients, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    data = jax.ShapeDtypeStruct((batch, length), jnp.int32)
    args = (placed(params, whole), placed(state, whole), placed(jax.ShapeDtypeStruct((2,), jnp.uint32), whole), placed(data, split), placed(data, split))
    rule = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "other"}.get(path[:3], "input")
    return Program(update, args, rule, (0, 1))
