"""keras-hub: DeBERTa v3's masked language model, trained by Keras' own train_step."""
import jax, keras, keras_hub
from jax.sharding import NamedSharding, PartitionSpec as P
from recipe import Program, mesh, placed


def deberta(topology, chips, batch, length, policy="float32", remat=False):
    keras.config.set_dtype_policy(policy)
    def build():
        backbone = keras_hub.models.DebertaV3Backbone(vocabulary_size=128100, num_layers=8, num_heads=12, hidden_dim=768, intermediate_dim=3072, max_sequence_length=length, dropout=0.0)
        return keras_hub.models.DebertaV3MaskedLM(backbone=backbone, preprocessor=None)
    model = build()
    if remat:  # keras.RematScope cannot trace this layer (its `training` becomes a tracer), so jax.checkpoint around each
        def wrap(layer):
            plain = layer.call
            def call(inputs, rel_embeddings, padding_mask=None, attention_mask=None):
                return jax.checkpoint(lambda x, r, m: plain(x, rel_embeddings=r, padding_mask=m))(inputs, rel_embeddings, padding_mask)
            layer.call = call
        for layer in model.backbone.transformer_layers:
            wrap(layer)
    model.compile(optimizer=keras.optimizers.AdamW(1e-4), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=[], jit_compile=True)
    m = mesh(topology, (chips,), ("batch",)); R, B = NamedSharding(m, P()), NamedSharding(m, P("batch"))
    model.optimizer.build(model.trainable_variables)
    shapes = lambda vs: [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in vs]
    state = placed((shapes(model.trainable_variables), shapes(model.non_trainable_variables), shapes(model.optimizer.variables), shapes(model.metrics_variables)), R)
    S = lambda *s: jax.ShapeDtypeStruct(s, "int32", sharding=B)
    data = ({"token_ids": S(batch, length), "padding_mask": S(batch, length), "mask_positions": S(batch, 96)}, S(batch, 96))

    def classify(path):
        return "input" if path.startswith("[1]") else {"[0][0]": "weight", "[0][2]": "opt"}.get(path[:6], "other")

    return Program(model.train_step, (state, data), classify, (0,))
