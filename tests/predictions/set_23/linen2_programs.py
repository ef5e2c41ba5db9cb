"""Linen: a decoder of 7 billion weights, scanned (nn.scan), checkpointed but for two named values, FSDP and tensor parallel by logical axes."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, shardings
from recipe import Program, mesh

RULES = (("batch", "data"), ("embed", "data"), ("heads", "model"), ("mlp", "model"), ("vocab", "model"), ("layers", None))


class Layer(nn.Module):
    width: int
    heads: int
    hidden: int

    @nn.compact
    def __call__(self, x, _):
        part = lambda f, *names: nn.with_logical_partitioning(f, names)
        init = nn.initializers.lecun_normal()
        dense = functools.partial(nn.DenseGeneral, use_bias=False, dtype=HALF)
        norm = functools.partial(nn.RMSNorm, dtype=HALF)
        x = nn.with_logical_constraint(x, ("batch", None, None))
        h = norm(name="norm1")(x)
        size = self.width // self.heads
        q, k, v = [dense((self.heads, size), kernel_init=part(init, "embed", "heads", None), name=n)(h) for n in "qkv"]
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * size**-0.5
        s = nn.with_logical_constraint(s, ("batch", "heads", None, None))
        t = x.shape[1]
        s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e30)
        o = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(HALF), v)
        o = checkpoint_name(o, "attn_out")
        x = x + dense(self.width, axis=(-2, -1), kernel_init=part(init, "heads", None, "embed"), name="o")(o)
        h = norm(name="norm2")(x)
        g = dense(self.hidden, kernel_init=part(init, "embed", "mlp"), name="gate")(h)
        u = dense(self.hidden, kernel_init=part(init, "embed", "mlp"), name="up")(h)
        m = checkpoint_name(nn.silu(g) * u, "mlp_mid")
        return x + dense(self.width, kernel_init=part(init, "mlp", "embed"), name="down")(m), None


class Decoder(nn.Module):
    words: int
    width: int
    heads: int
    hidden: int
    depth: int
    save: bool

    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(self.words, self.width, dtype=HALF, embedding_init=nn.with_logical_partitioning(nn.initializers.normal(), ("vocab", "embed")), name="embed")(tokens)
        policy = jax.checkpoint_policies.save_only_these_names("attn_out", "mlp_mid") if self.save else None
        layer = nn.remat(Layer, prevent_cse=False, policy=policy)
        stack = nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth, metadata_params={nn.PARTITION_NAME: "layers"})
        x, _ = stack(self.width, self.heads, self.hidden, name="layers")(x, None)
        x = nn.RMSNorm(dtype=HALF, name="norm")(x)
        logits = nn.DenseGeneral(self.words, use_bias=False, dtype=HALF, kernel_init=nn.with_logical_partitioning(nn.initializers.lecun_normal(), ("embed", "vocab")), name="head")(x)
        return nn.with_logical_constraint(logits, ("batch", None, "vocab"))


def named(topology, shape, batch, length=4096, words=64000, width=4096, heads=32, hidden=11008, depth=32, save=True, micro=1, donate=True):
    devices = mesh(topology, shape, ("data", "model"))
    net = Decoder(words, width, heads, hidden, depth, save)
    devices.__enter__()
    rules = nn.logical_axis_rules(RULES)
    rules.__enter__()
    boxed = jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((1, length), jnp.int32))["params"]
    specs = nn.logical_to_mesh_sharding(nn.get_partition_spec(boxed), devices, RULES)
    params = jax.tree.map(lambda a, s: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=s), nn.meta.unbox(boxed), specs)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(3e-4, 10000), b2=0.95, mu_dtype=HALF))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))

    def loss_fn(params, tokens):
        logits = net.apply({"params": params}, tokens[:, :-1]).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    def train_step(params, opt_state, tokens):
        if micro == 1:
            loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        else:
            parts = jax.lax.with_sharding_constraint(tokens.reshape(batch // micro, micro, -1).swapaxes(0, 1), NamedSharding(devices, P(None, "data")))

            def one(total, part):
                loss, grads = jax.value_and_grad(loss_fn)(params, part)
                return jax.tree.map(jnp.add, total, grads), loss

            grads, losses = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), parts)
            loss = losses.mean()
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length + 1), "int32", sharding=NamedSharding(devices, P("data")))
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
