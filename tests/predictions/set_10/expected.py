"""The tenth set: programs with the cause and the changes that were written down before any was compiled."""

from recipe import change, program

PROGRAMS = {
    "nnx_mixer": program(
        "nnx_programs", "mixer", "activations of the mixer blocks (MLP hidden values)",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=512),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x2", chips=4, batch=1024, depth=8, width=768),
    "nnx_translate": program(
        "nnx_programs", "translator", "logits of the vocabulary in float32 and their gradient; then attention scores of 18 attentions",
        {"remat": change("checkpoint", ["remat *"], remat="all"),
         "decoder": change("checkpoint part", ["remat decoder[*]"], remat="decoder"),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8)},
        topology="v6e:2x2", chips=1, batch=48, length=512, depth=6, heads=8, width=512, vocabulary=32000),
    "nnx_decode": program(
        "nnx_programs", "decoding", "cache: float32, not donated, whole on each of the chips",
        {"donate": change("donation", ["donate past"], donate=True),
         "bf16": change("dtype", ["dtype past bf16"], cache="bfloat16"),
         "split": change("sharding", ["shard past 4"], split_cache=True)},
        topology="v6e:2x2", chips=4, batch=32, length=2048, depth=10, heads=16, kv_heads=8, size=128, width=2048, vocabulary=64000),
    "linen_scan": program(
        "linen_programs", "scanned", "values saved by the scan: attention scores of all layers, then gated MLP",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64)},
        topology="v5e:2x4", chips=8, batch=128, length=512, depth=10, heads=12, width=768, vocabulary=30522),
    "linen_conformer": program(
        "linen_programs", "conformer", "activations of the conformer blocks (attention scores among them); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "quarter": change("batch", ["batch 0.25"], batch=64)},
        topology="v5e:2x2", chips=4, batch=256, frames=2400, depth=8, heads=8, width=512),
    "linen_shared": program(
        "linen_programs", "shared", "attention scores of twelve passes through the one shared layer",
        {"remat": change("checkpoint", ["remat *"], remat=True)},
        topology="v4:2x2x1", chips=4, batch=64, length=512, depth=12, heads=16, width=1024, vocabulary=30000),
    "linen_inverted": program(
        "linen_programs", "inverted", "activations of the inverted bottlenecks, largest in the first stage",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "quarter": change("batch", ["batch 0.25"], batch=2048)},
        topology="v5e:4x8", chips=32, batch=8192, size=192),
    "eqx_recurrent": program(
        "equinox_programs", "recurrent", "activations: the float32 states and partial products of the associative scan",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "donate": change("donation", ["donate *"], donate=True)},
        topology="v6e:2x2", chips=4, batch=64, length=2048, depth=6, width=512, hidden=1024),
    "eqx_diffusion": program(
        "equinox_programs", "diffusion", "activations of the blocks: attention scores in float32; does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "part": change("checkpoint part", ["remat blocks[*] 6"], remat=6),
         "eighth": change("batch", ["batch 0.125"], batch=32)},
        topology="v6e:2x2", chips=4, batch=256, tokens=1024, depth=12, width=1024, heads=16),
    "hk_wavenet": program(
        "haiku_programs", "wavenet", "activations of the dilated blocks, float32, over all samples",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16)},
        topology="v5p:2x2x1", chips=4, batch=32, samples=16384, depth=12, width=128 * 2),
    "hk_lstm": program(
        "haiku_programs", "lstm", "logits of the vocabulary (float32) and the values that the time loops save",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64)},
        topology="v4:2x2x1", chips=4, batch=128, steps=512, depth=3, width=1024, vocabulary=10000),
    "kh_roberta": program(
        "keras_programs", "roberta", "activations, float32: attention scores of the layers",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16")},
        topology="v5e:2x2", chips=4, batch=64, length=512, depth=8, width=768, heads=12),
    "plain_scan": program(
        "plain_programs", "scanned", "values saved by the scan for all layers (attention scores in float32 first); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "both": change("checkpoint + chunk", ["remat *", "chunk logits 8"], remat=True, chunks=8),
         "eighth": change("batch", ["batch 0.125"], batch=32),
         "fsdp": change("sharding", ["shard params,opt_state 16"], sharded=True)},
        topology="v5p:2x2x4", chips=16, batch=256, length=1024, depth=12, width=2048, heads=16, vocabulary=50304),
    "plain_experts": program(
        "plain_programs", "experts", "activations: dispatch tensors, attention scores and the experts' hidden values",
        {"remat": change("checkpoint", ["remat *"], remat="all"),
         "half": change("batch", ["batch 0.5"], batch=64)},
        topology="tpu7x:2x2x1", chips=8, batch=128, length=1024, depth=6, width=1024, heads=16, count=16, vocabulary=32000),
    "plain_adapters": program(
        "plain_programs", "adapters", "activations of the frozen layers (attention scores first); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=10),
         "part": change("checkpoint part", ["remat layers[*] 5"], remat=5),
         "flash": change("blockwise", ["blockwise *"], kernel=True),
         "both": change("checkpoint + chunk", ["remat *", "chunk logits 8"], remat=10, chunks=8)},
        topology="v5e:2x2", batch=8, length=2048, depth=10, width=2048, heads=16, inner=5632, vocabulary=32000),
    "plain_volumes": program(
        "plain_programs", "volumes", "activations at full resolution, of the first block down and the last up; does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8)},
        topology="v6e:2x2", chips=4, batch=16, size=160, channels=32),
    # The same at sizes that do not fit, added before any of these was compiled.
    "linen_conformer_over": program(
        "linen_programs", "conformer", "activations of the conformer blocks (attention scores among them); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "quarter": change("batch", ["batch 0.25"], batch=128)},
        topology="v5e:2x2", chips=4, batch=512, frames=2400, depth=8, heads=8, width=512),
    "kh_roberta_over": program(
        "keras_programs", "roberta", "activations, float32: attention scores of the layers; does not fit",
        {"bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "quarter": change("batch", ["batch 0.25"], batch=80)},
        topology="v5e:2x2", chips=4, batch=320, length=512, depth=8, width=768, heads=12),
    "nnx_translate_over": program(
        "nnx_programs", "translator", "attention scores of 18 attentions, then logits; does not fit",
        {"remat": change("checkpoint", ["remat *"], remat="all"),
         "both": change("checkpoint + chunk", ["remat *", "chunk logits 8"], remat="all", chunks=8)},
        topology="v5e:2x2", chips=1, batch=64, length=512, depth=6, heads=8, width=512, vocabulary=32000),
    "eqx_recurrent_over": program(
        "equinox_programs", "recurrent", "activations: the float32 states and partial products of the associative scan; does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=288)},
        topology="v6e:2x2", chips=4, batch=576, length=2048, depth=6, width=512, hidden=1024),
    "nnx_mixer_over": program(
        "nnx_programs", "mixer", "activations of the mixer blocks (MLP hidden values); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=1536)},
        topology="v5e:2x2", chips=4, batch=3072, depth=8, width=768),
}
