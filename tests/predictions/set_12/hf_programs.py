"""Hugging Face transformers 4.48 (Flax), on jax 0.6.2 and libtpu 0.0.17: T5 training, one decoding step of Llama."""
import jax, jax.numpy as jnp, optax
from flax.training.common_utils import onehot
from flax.training.train_state import TrainState
from jax.sharding import NamedSharding, PartitionSpec as P
from recipe import Program, mesh, placed


def t5(topology, chips, batch, length, target, remat=False, donate=True):
    from transformers import FlaxT5ForConditionalGeneration, T5Config
    m = mesh(topology, (chips,), ("batch",))
    R, B = NamedSharding(m, P()), NamedSharding(m, P("batch"))
    config = T5Config(d_model=768, d_ff=3072, num_layers=12, num_heads=12, d_kv=64, vocab_size=32128, decoder_start_token_id=0)
    model = FlaxT5ForConditionalGeneration(config, dtype=jnp.bfloat16, gradient_checkpointing=remat, _do_init=False)
    tx = optax.adamw(1e-4, weight_decay=0.01)
    params = jax.eval_shape(lambda: model.init_weights(jax.random.PRNGKey(0), (1, 8)))
    state = placed(jax.eval_shape(lambda p: TrainState.create(apply_fn=model.__call__, params=p, tx=tx), params), R)
    S = lambda *s: jax.ShapeDtypeStruct(s, "int32", sharding=B)
    data = {"input_ids": S(batch, length), "attention_mask": S(batch, length), "decoder_input_ids": S(batch, target), "labels": S(batch, target)}

    def train_step(state, batch, dropout_rng):
        labels = batch.pop("labels")
        def loss_fn(params):
            logits = state.apply_fn(**batch, params=params, dropout_rng=dropout_rng, train=True)[0]
            return optax.softmax_cross_entropy(logits, onehot(labels, logits.shape[-1])).mean()
        loss, grad = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grad), {"loss": loss}

    def classify(path):
        return "weight" if ".params" in path else "opt" if "opt_state" in path else "input" if path.startswith("[1]") else "other"

    rng = jax.ShapeDtypeStruct((2,), "uint32", sharding=R)
    return Program(train_step, (state, data, rng), classify, (0,) if donate else ())


def llama_decode(topology, chips, batch, length, depth, donate=False):
    from transformers import FlaxLlamaForCausalLM, LlamaConfig
    m = mesh(topology, (chips,), ("model",))
    N = lambda *p: NamedSharding(m, P(*p))
    config = LlamaConfig(hidden_size=4096, intermediate_size=11008, num_hidden_layers=depth, num_attention_heads=32, num_key_value_heads=32, vocab_size=32000, max_position_embeddings=length)
    model = FlaxLlamaForCausalLM(config, dtype=jnp.bfloat16, _do_init=False)
    params = jax.eval_shape(lambda: model.init_weights(jax.random.PRNGKey(0), (1, 1)))
    params = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, jnp.bfloat16), params)
    cache = jax.eval_shape(lambda: model.init_cache(batch, length))

    def place(path, leaf):
        if leaf.ndim != 2:
            return N()
        return N("model", None) if "o_proj" in path or "down_proj" in path else N(None, "model")

    params = placed(params, place)
    cache = placed(cache, lambda path, leaf: N(None, None, "model", None) if leaf.ndim == 4 else N())
    S = lambda *s: jax.ShapeDtypeStruct(s, "int32", sharding=N())

    def decode_step(params, input_ids, past_key_values, attention_mask, position_ids):
        out = model(input_ids, attention_mask=attention_mask, position_ids=position_ids, params=params, past_key_values=past_key_values)
        return jnp.argmax(out.logits[:, -1], -1), out.past_key_values

    classify = lambda path: {"[0]": "weight", "[2]": "cache"}.get(path[:3], "input")
    return Program(decode_step, (params, S(batch, 1), cache, S(batch, length), S(batch, 1)), classify, (2,) if donate else ())
