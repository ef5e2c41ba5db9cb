"""Equinox: the BERT of its examples (docs/examples/bert), fine-tuned as a classifier."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step
from recipe import Program, mesh, placed


class EmbedderBlock(eqx.Module):
    token_embedder: eqx.nn.Embedding
    segment_embedder: eqx.nn.Embedding
    position_embedder: eqx.nn.Embedding
    layernorm: eqx.nn.LayerNorm
    dropout: eqx.nn.Dropout

    def __init__(self, vocabulary, length, width, rate, key):
        a, b, c = jax.random.split(key, 3)
        self.token_embedder = eqx.nn.Embedding(vocabulary, width, key=a)
        self.segment_embedder, self.position_embedder = eqx.nn.Embedding(2, width, key=b), eqx.nn.Embedding(length, width, key=c)
        self.layernorm, self.dropout = eqx.nn.LayerNorm(width), eqx.nn.Dropout(rate)

    def __call__(self, tokens, places, segments, key):
        x = jax.vmap(self.token_embedder)(tokens) + jax.vmap(self.segment_embedder)(segments) + jax.vmap(self.position_embedder)(places)
        return self.dropout(jax.vmap(self.layernorm)(x), key=key)


class FeedForwardBlock(eqx.Module):
    mlp: eqx.nn.Linear
    output: eqx.nn.Linear
    layernorm: eqx.nn.LayerNorm
    dropout: eqx.nn.Dropout

    def __init__(self, width, hidden, rate, key):
        a, b = jax.random.split(key)
        self.mlp, self.output = eqx.nn.Linear(width, hidden, key=a), eqx.nn.Linear(hidden, width, key=b)
        self.layernorm, self.dropout = eqx.nn.LayerNorm(width), eqx.nn.Dropout(rate)

    def __call__(self, x, key):
        y = self.dropout(self.output(jax.nn.gelu(self.mlp(x))), key=key)
        return self.layernorm(y + x)


class AttentionBlock(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    layernorm: eqx.nn.LayerNorm
    dropout: eqx.nn.Dropout

    def __init__(self, width, heads, rate, attention_rate, key):
        self.attention = eqx.nn.MultiheadAttention(
            heads, width, use_query_bias=True, use_key_bias=True, use_value_bias=True, use_output_bias=True,
            dropout_p=attention_rate, key=key)
        self.layernorm, self.dropout = eqx.nn.LayerNorm(width), eqx.nn.Dropout(rate)

    def __call__(self, x, mask, key):
        a, b = jax.random.split(key)
        y = self.attention(x, x, x, mask=mask[None] * jnp.ones((x.shape[0], 1), bool), key=a)
        return jax.vmap(self.layernorm)(self.dropout(y, key=b) + x)


class TransformerLayer(eqx.Module):
    attention_block: AttentionBlock
    ff_block: FeedForwardBlock

    def __init__(self, width, hidden, heads, rate, attention_rate, key):
        a, b = jax.random.split(key)
        self.attention_block = AttentionBlock(width, heads, rate, attention_rate, a)
        self.ff_block = FeedForwardBlock(width, hidden, rate, b)

    def __call__(self, x, mask, key):
        a, b = jax.random.split(key)
        x = self.attention_block(x, mask, key=a)
        return jax.vmap(self.ff_block)(x, jax.random.split(b, x.shape[0]))


class Bert(eqx.Module):
    embedder_block: EmbedderBlock
    layers: list
    pooler: eqx.nn.Linear
    classifier_head: eqx.nn.Linear
    dropout: eqx.nn.Dropout

    def __init__(self, vocabulary, length, width, hidden, depth, heads, key):
        a, b, c, *keys = jax.random.split(key, 3 + depth)
        self.embedder_block = EmbedderBlock(vocabulary, length, width, 0.1, a)
        self.layers = [TransformerLayer(width, hidden, heads, 0.1, 0.1, k) for k in keys]
        self.pooler, self.classifier_head = eqx.nn.Linear(width, width, key=b), eqx.nn.Linear(width, 2, key=c)
        self.dropout = eqx.nn.Dropout(0.1)

    def __call__(self, tokens, key, remat):
        a, b, *keys = jax.random.split(key, 2 + len(self.layers))
        x = self.embedder_block(tokens, jnp.arange(tokens.shape[0]), jnp.zeros_like(tokens), a)
        mask = tokens != 0
        for i, (layer, k) in enumerate(zip(self.layers, keys)):
            x = (eqx.filter_checkpoint(layer) if i < remat else layer)(x, mask, key=k)
        return self.classifier_head(self.dropout(jnp.tanh(self.pooler(x[0])), key=b))


def bert(topology, chips, batch, length, remat=0, half=False, donate=True):
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    net = eqx.filter_eval_shape(Bert, 30522, length, 768, 3072, 12, 12, jax.random.key(0))
    arrays, static = eqx.partition(net, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    transform = optax.adam(1e-5)

    def loss_fn(params, tokens, labels, key):
        if half:
            params = jax.tree.map(lambda a: a.astype(jnp.bfloat16), params)
        model = eqx.combine(params, static)
        logits = jax.vmap(lambda t, k: model(t, k, remat))(tokens, jax.random.split(key, tokens.shape[0]))
        return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels).mean()

    def make_step(model, opt_state, tokens, labels, key):
        loss, grads = jax.value_and_grad(loss_fn)(model, tokens, labels, key)
        updates, opt_state = transform.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    key = jax.eval_shape(lambda: jax.random.key(0))
    args = (placed(arrays, whole), placed(jax.eval_shape(transform.init, arrays), whole),
            jax.ShapeDtypeStruct((batch, length), "int32", sharding=split), jax.ShapeDtypeStruct((batch,), "int32", sharding=split),
            jax.ShapeDtypeStruct((), key.dtype, sharding=whole))
    return Program(make_step, args, kind_of_step, (0, 1) if donate else ())
