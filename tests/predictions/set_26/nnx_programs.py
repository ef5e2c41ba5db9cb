"""NNX: LoRA (nnx.LoRA) of a Llama 3.2 3B whose frozen weights are bfloat16 and divided; layers in a Python loop."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, flash, shardings
from recipe import Program, largest_dimension, mesh, placed


class Layer(nnx.Module):
    def __init__(self, width, hidden, heads, kv, size, rank, rngs):
        def lin(a, b):
            made = nnx.LoRALinear(a, b, lora_rank=rank, lora_param_dtype=jnp.float32, use_bias=False, dtype=HALF, param_dtype=HALF, rngs=rngs)
            made.lora.dtype = HALF
            return made

        self.q_proj, self.k_proj, self.v_proj, self.o_proj = lin(width, heads * size), lin(width, kv * size), lin(width, kv * size), lin(heads * size, width)
        self.gate_proj, self.up_proj, self.down_proj = lin(width, hidden), lin(width, hidden), lin(hidden, width)
        norm = lambda: nnx.RMSNorm(width, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.input_norm, self.post_norm, self.size, self.group = norm(), norm(), size, heads // kv

    def __call__(self, x, devices, kernel):
        h = self.input_norm(x)
        q, k, v = (f(h).reshape(*h.shape[:2], -1, self.size) for f in (self.q_proj, self.k_proj, self.v_proj))
        if kernel:
            k, v = (jnp.repeat(a, self.group, 2) for a in (k, v))
            a = jax.shard_map(flash, mesh=devices, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"), check_vma=False)(q, k, v)
        else:
            a = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o_proj(a.reshape(*h.shape[:2], -1))
        h = self.post_norm(x)
        return x + self.down_proj(jax.nn.silu(self.gate_proj(h)) * self.up_proj(h))


class Llama(nnx.Module):
    def __init__(self, words, width, hidden, depth, heads, kv, size, rank, rngs):
        self.embed = nnx.Embed(words, width, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.layers = nnx.List([Layer(width, hidden, heads, kv, size, rank, rngs) for _ in range(depth)])
        self.norm = nnx.RMSNorm(width, dtype=HALF, param_dtype=HALF, rngs=rngs)

    def __call__(self, tokens, devices, kernel, remat):
        x = self.embed(tokens)
        for i, layer in enumerate(self.layers):
            call = lambda layer, x: layer(x, devices, kernel)
            x = nnx.remat(call)(layer, x) if i < remat else call(layer, x)
        return self.embed.attend(self.norm(x))


def lora(topology, chips, batch, length=2048, words=128256, width=3072, hidden=8192, depth=28, heads=24, kv=8, size=128, rank=16, kernel=False, remat=0, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    transform = optax.adamw(1e-4)

    def build():
        net = Llama(words, width, hidden, depth, heads, kv, size, rank, nnx.Rngs(0))
        return net, nnx.Optimizer(net, transform, wrt=nnx.LoRAParam)

    graph, state = nnx.split(nnx.eval_shape(build))
    state = placed(state, largest_dimension(devices, "fsdp", 1 << 20))

    def finetune_step(state, tokens):
        net, optimizer = nnx.merge(graph, state)

        def loss_fn(net):
            logits = net(tokens, devices, kernel, remat).astype(jnp.float32)
            return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.roll(tokens, -1, 1)).mean()

        loss, grads = nnx.value_and_grad(loss_fn, argnums=nnx.DiffState(0, nnx.LoRAParam))(net)
        optimizer.update(net, grads)
        return nnx.state((net, optimizer)), loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    classify = lambda path: "input" if not path.startswith("[0]") else "opt" if path.startswith("[0][1]") else "weight"
    return Program(finetune_step, (state, tokens), classify, (0,) if donate else (), (shardings(state), None))
