"""The eleventh set: programs with the cause and the changes that were written down before any was compiled."""

from recipe import change, program

PROGRAMS = {
    "linen_unet": program(
        "linen_programs", "unet", "activations of the residual blocks at full resolution (down_0, up_0 and the skips that are concatenated)",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64)},
        topology="v6e:2x2", chips=4, batch=128, size=256, base=64),
    "linen_clip": program(
        "linen_programs", "clip", "attention scores of the image tower (256 tokens, 12 heads, 8 layers), then its MLP; nearly full",
        {"remat": change("checkpoint", ["remat *"], remat="all"),
         "visual": change("checkpoint part", ["remat visual_*"], remat="visual"),
         "half": change("batch", ["batch 0.5"], batch=1024)},
        topology="v6e:2x4", chips=8, batch=2048, size=256, depth=8),
    "linen_masked": program(
        "linen_programs", "masked", "attention scores of the five layers that are not checkpointed, then their MLP; does not fit",
        {"remat": change("checkpoint (half already)", ["remat *"], remat=10),
         "half": change("batch", ["batch 0.5"], batch=48),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x2", batch=96, length=512, depth=10, width=1024, remat=5),
    "linen_detect": program(
        "linen_programs", "detect", "activations: feature maps of the first stage and the heads on the 128x128 level, float32 class logits of all anchors; does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "quarter": change("batch", ["batch 0.25"], batch=16)},
        topology="v5e:2x2", chips=4, batch=64, size=1024),
    "nnx_perceiver": program(
        "nnx_programs", "perceiver", "attention scores of the three cross attentions (512 latents by 16384 inputs)",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "flash": change("blockwise", ["blockwise *"], kernel=True),
         "double": change("batch", ["batch 2"], batch=64)},
        topology="v4:2x2x2", chips=8, batch=32, length=16384, latents=512, width=1024, channels=512),
    "nnx_ppo": program(
        "nnx_programs", "ppo", "values that the scan over 64 steps saves of the convolutions, float32 (the frames as float32 among them)",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "half": change("batch", ["batch 0.5"], envs=512),
         "micro": change("micro-batches", ["micro 4"], micro=4)},
        topology="v5e:2x2", chips=4, envs=1024, steps=64, width=512),
    "nnx_dit": program(
        "nnx_programs", "dit", "values saved by the scan: attention scores of 10 layers (1024 tokens), then the MLP's",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=96),
         "zero": change("sharding", ["shard opt_state 16"], sharded=True)},
        topology="v6e:4x4", chips=16, batch=192, size=64, depth=10, width=1152, heads=16),
    "hk_transformer": program(
        "haiku_programs", "transformer", "attention scores of 8 layers, then float32 logits of the vocabulary; nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=8),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "both": change("checkpoint + chunk", ["remat *", "chunk logits 8"], remat=8, chunks=8)},
        topology="v4:2x2x2", chips=8, batch=64, length=1024, depth=8, width=1024, heads=16, vocabulary=50304),
    "eqx_vaegan": program(
        "equinox_programs", "vaegan", "activations (float32) of encoder, decoder and critic at the largest resolution",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=1024),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5p:2x2x1", chips=4, batch=2048, size=128, base=128),
    "haliax_decoder": program(
        "equinox_programs", "decoder", "values saved by the scan over layers, float32: attention scores, then MLP; does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "quarter": change("batch", ["batch 0.25"], batch=32)},
        topology="v6e:2x4", chips=8, batch=128, length=1024, depth=10, width=1024, heads=16, vocabulary=32128),
    "kh_resnet": program(
        "keras_programs", "resnet", "activations of the residual stages in float32, the first stage first",
        {"bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "half": change("batch", ["batch 0.5"], batch=256)},
        topology="v5e:2x2", chips=4, batch=512, size=224),
    "plain_experts": program(
        "plain_programs", "experts", "values saved by the scan: attention scores first, then what goes to and through the experts; nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=48),
         "both": change("checkpoint + chunk", ["remat *", "chunk logits 8"], remat=True, chunks=8)},
        topology="v6e:2x4", chips=8, batch=96, length=1024, depth=8, width=1024, heads=16, count=16, hidden=4096, vocabulary=32000),
    "plain_nested": program(
        "plain_programs", "nested", "values saved by the inner scan over layers for one part of the batch: attention scores; nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64),
         "micro": change("micro-batches", ["micro 2"], micro=8)},
        topology="v5e:4x4", chips=16, batch=128, length=2048, depth=8, width=2048, heads=16, vocabulary=32000, micro=4),
    "plain_tensor": program(
        "plain_programs", "tensor", "values saved by the scan: attention scores of all layers; does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "flash": change("blockwise", ["blockwise *"], kernel=True),
         "both": change("checkpoint + chunk", ["remat *", "chunk logits 8"], remat=True, chunks=8),
         "micro": change("micro-batches", ["micro 8"], micro=8)},
        topology="v5p:2x2x4", shape=(4, 4), batch=64, length=4096, depth=8, width=4096, heads=32, kv=8, inner=14336, vocabulary=128256),
    "plain_prefill": program(
        "plain_programs", "prefill", "attention scores of one layer in float32, then the cache twice (not donated)",
        {"flash": change("blockwise", ["blockwise *"], kernel=True),
         "donate": change("donation", ["donate cache"], donate=True),
         "half": change("batch", ["batch 0.5"], batch=8)},
        topology="v6e:2x2", chips=4, batch=16, length=4096, room=8192, depth=12, width=4096, heads=32, kv=8, inner=14336, vocabulary=128256),
    "plain_verify": program(
        "plain_programs", "verify", "the cache, twice, because it is not donated; does not fit",
        {"donate": change("donation", ["donate kv_cache"], donate=True),
         "f8": change("dtype", ["dtype kv_cache f8e4m3fn"], cache="float8_e4m3fn"),
         "short": change("dimension", ["dim 4096 2048"], length=2048)},
        topology="v5e:2x4", chips=8, batch=192, length=4096, drafted=8, depth=10, width=2048, heads=16, vocabulary=32000),
    "jraph_net": program(
        "plain_programs", "graphs", "activations of the edges (concatenated inputs and hidden values, float32) of all steps",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "edges": change("dimension", ["dim 819200 409600"], edges=409600)},
        topology="v6e:2x2", nodes=102400, edges=819200, width=128, depth=8),
    "plain_pipeline": program(
        "plain_programs", "pipeline", "values saved by the scan over ticks: attention scores of 3 layers for 11 ticks; does not fit or nearly",
        {"remat": change("checkpoint", ["remat *"], remat="layers"),
         "tick": change("checkpoint", ["remat scan"], remat="tick"),
         "half": change("batch", ["batch 0.5"], batch=16)},
        topology="v4:2x2x1", stages=4, batch=32, length=1024, per_stage=3, width=1024, heads=16, vocabulary=32000, micro=8),
    # Written after the first score of those above was seen, which had no v7x and no more than 16 chips.
    "tensor_v7x": program("plain_programs", "tensor", "values saved by the scan: attention scores of all layers; nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True), "half": change("batch", ["batch 0.5"], batch=8),
         "micro": change("micro-batches", ["micro 4"], micro=4), "chunk": change("chunked loss", ["chunk logits 8"], chunks=8)},
        topology="tpu7x:2x2x1", shape=(2, 4), batch=16, length=4096, depth=8, width=4096, heads=32, kv=8, inner=14336, vocabulary=128256),
    "clip_32": program("linen_programs", "clip", "attention scores of the image tower, then its MLP",
        {"remat": change("checkpoint", ["remat *"], remat="all"), "double": change("batch", ["batch 2"], batch=8192),
         "visual": change("checkpoint part", ["remat visual_*"], remat="visual")},
        topology="v5e:4x8", chips=32, batch=4096, size=256, depth=8),
}
