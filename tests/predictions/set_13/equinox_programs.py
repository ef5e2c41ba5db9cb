"""Equinox: the vision transformer of its own examples (docs/examples/vision_transformer), trained with filter_jit's partition done by hand."""
import equinox as eqx, jax, jax.numpy as jnp, optax
from jax.sharding import NamedSharding, PartitionSpec as P
from recipe import Program, mesh, placed


class PatchEmbedding(eqx.Module):
    linear: eqx.nn.Linear
    patch_size: int

    def __init__(self, channels, dim, patch_size, key):
        self.patch_size = patch_size
        self.linear = eqx.nn.Linear(patch_size ** 2 * channels, dim, key=key)

    def __call__(self, x):
        c, h, w = x.shape; p = self.patch_size
        x = x.reshape(c, h // p, p, w // p, p).transpose(1, 3, 0, 2, 4).reshape((h // p) * (w // p), c * p * p)
        return jax.vmap(self.linear)(x)


class AttentionBlock(eqx.Module):
    layer_norm1: eqx.nn.LayerNorm
    layer_norm2: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    linear1: eqx.nn.Linear
    linear2: eqx.nn.Linear
    dropout1: eqx.nn.Dropout
    dropout2: eqx.nn.Dropout

    def __init__(self, dim, hidden, heads, rate, key):
        a, b, c = jax.random.split(key, 3)
        self.layer_norm1, self.layer_norm2 = eqx.nn.LayerNorm(dim), eqx.nn.LayerNorm(dim)
        self.attention = eqx.nn.MultiheadAttention(heads, dim, key=a)
        self.linear1, self.linear2 = eqx.nn.Linear(dim, hidden, key=b), eqx.nn.Linear(hidden, dim, key=c)
        self.dropout1, self.dropout2 = eqx.nn.Dropout(rate), eqx.nn.Dropout(rate)

    def __call__(self, x, enable_dropout, key):
        y = jax.vmap(self.layer_norm1)(x)
        x = x + self.attention(y, y, y)
        y = jax.vmap(self.linear1)(jax.vmap(self.layer_norm2)(x))
        y = jax.nn.gelu(y)
        a, b = jax.random.split(key)
        y = self.dropout1(y, inference=not enable_dropout, key=a)
        return x + self.dropout2(jax.vmap(self.linear2)(y), inference=not enable_dropout, key=b)


class VisionTransformer(eqx.Module):
    patch_embedding: PatchEmbedding
    positional_embedding: jax.Array
    cls_token: jax.Array
    attention_blocks: list
    dropout: eqx.nn.Dropout
    mlp: eqx.nn.Sequential
    checkpointed: int

    def __init__(self, size, patch, dim, hidden, heads, layers, rate, classes, checkpointed, key):
        a, b, c, d, e = jax.random.split(key, 5)
        self.patch_embedding = PatchEmbedding(3, dim, patch, a)
        self.positional_embedding = jax.random.normal(b, ((size // patch) ** 2 + 1, dim)); self.cls_token = jax.random.normal(c, (1, dim))
        self.attention_blocks = [AttentionBlock(dim, hidden, heads, rate, k) for k in jax.random.split(d, layers)]
        self.dropout = eqx.nn.Dropout(rate)
        self.mlp = eqx.nn.Sequential([eqx.nn.LayerNorm(dim), eqx.nn.Linear(dim, classes, key=e)])
        self.checkpointed = checkpointed

    def __call__(self, x, enable_dropout, key):
        x = jnp.concatenate((self.cls_token, self.patch_embedding(x)), axis=0)
        x = x + self.positional_embedding
        first, *keys = jax.random.split(key, len(self.attention_blocks) + 1)
        x = self.dropout(x, inference=not enable_dropout, key=first)
        for i, (block, k) in enumerate(zip(self.attention_blocks, keys)):
            x = (eqx.filter_checkpoint(block) if i < self.checkpointed else block)(x, enable_dropout, key=k)
        return self.mlp(x[0])


def vit(topology, chips, batch, size, patch, dim, hidden, heads, layers, checkpointed=0, half=False, donate=False):
    m = mesh(topology, (chips,), ("batch",)); R, B = NamedSharding(m, P()), NamedSharding(m, P("batch"))
    whole = eqx.filter_eval_shape(VisionTransformer, size, patch, dim, hidden, heads, layers, 0.1, 1000, checkpointed, jax.random.key(0))
    arrays, static = eqx.partition(whole, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    tx = optax.adamw(1e-4)
    opt = jax.eval_shape(tx.init, arrays)

    def loss_fn(params, images, labels, key):
        if half:
            params = jax.tree.map(lambda a: a.astype(jnp.bfloat16), params); images = images.astype(jnp.bfloat16)
        model = eqx.combine(params, static)
        logits = jax.vmap(model, in_axes=(0, None, 0))(images, True, jax.random.split(key, images.shape[0]))
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels))

    def step_model(model, opt_state, images, labels, key):
        loss, grads = jax.value_and_grad(loss_fn)(model, images, labels, key)
        updates, opt_state = tx.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    key = jax.eval_shape(lambda: jax.random.key(0)); key = jax.ShapeDtypeStruct(key.shape, key.dtype, sharding=R)
    images, labels = jax.ShapeDtypeStruct((batch, 3, size, size), "float32", sharding=B), jax.ShapeDtypeStruct((batch,), "int32", sharding=B)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(step_model, (placed(arrays, R), placed(opt, R), images, labels, key), classify, (0, 1) if donate else ())
