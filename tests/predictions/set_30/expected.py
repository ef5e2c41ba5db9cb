"""The thirtieth set: cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "linen_nemotron": program(
        "linen_programs", "nemotron", "what the scan over 32 layers saves by names (2 sequences of 4096 of a device: 8192 tokens: up of 9216: 144 MiB, query and context of 3072: 48 MiB each, keys and values 16 MiB each, the input 48 MiB: 320 MiB a layer): 10 GiB; float32 logits of 128000 words (3.9 GiB an array, two): 8 GiB; scores of one layer (2 by 24 by 4096 by 4096: float32 3 GiB, bfloat16 1.5 GiB), when the layer's backward runs; the state (3.4 billion, 12 bytes over 16: 2.5 GiB), gradients (0.8 GiB), table or head gathered (bfloat16 750 MiB, float32 1.5 GiB); 70 to 95 % of 31 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], saved=()),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "short": change("dimension", ["dim 4096 2048"], length=2048),
         "all": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 2"], saved=(), chunks=8, batch=64)},
        topology="v6e:4x4", chips=16, batch=32),
    "nnx_experts": program(
        "nnx_programs", "experts", "attention scores and probabilities that nnx.scan saves of 12 layers (4 sequences of 2048 of a device, 16 heads: float32 1 GiB, bfloat16 512 MiB): 12 to 18 GiB; the experts' rows (4 for each of 8192 tokens: 32768 by 1536: 96 MiB an array, four; by 1024: 64 MiB, three): 7 GiB; tokens of 1024 (16 MiB, eight): 1.5 GiB; float32 logits of 50304 words (1.5 GiB, two); the state (2.0 billion, 12 bytes over 8: 2.8 GiB), gradients (0.9 GiB), a layer's experts gathered (bfloat16 290 MiB, float32 580 MiB); does not fit 31 GiB or over 85 %",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "all": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 2"], remat=True, chunks=8, batch=64)},
        topology="v6e:2x4", chips=8, batch=32),
    "eqx_llava": program(
        "equinox_programs", "llava", "attention scores and probabilities of the frozen language model that the scan saves of 22 layers, as gradients go through it (4 sequences of 1024 of a device, 16 heads: float32 256 MiB, bfloat16 128 MiB): 5.5 to 8.5 GiB; gate and up (4096 tokens by 11264: 88 MiB, 5632: 44 MiB, two): 3.8 GiB; tokens of 2048 (16 MiB, six): 2 GiB; the frozen weights, whole (1.26 billion and 0.3 billion in bfloat16: 3 GiB); logits and the projector are small; just does not fit 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=64),
         "fsdp": change("checkpoint + sharding (FSDP)", ["remat *", "shard llm 4"], remat=True, fsdp=True)},
        topology="v5e:2x2", chips=4, batch=16),
    "hk_rlhf": program(
        "haiku_programs", "rlhf", "attention scores and probabilities that the policy's layer stack saves of 24 layers (4 sequences of 1024 of a device, 20 heads: float32 320 MiB, bfloat16 160 MiB): 7.5 to 11 GiB; MLP values (4096 tokens by 5120: 40 MiB, three): 2.8 GiB; tokens of 1280 (10 MiB, ten): 2.4 GiB; the state, whole (536 million, 12 bytes: 6 GiB), the reference (1 GiB), gradients (2 GiB); float32 logits of 50304 words, of policy and reference (786 MiB an array, three or four): 3 GiB; 70 to 95 % of 32 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "double": change("batch", ["batch 2"], batch=32),
         "zero": change("checkpoint + sharding (ZeRO)", ["remat *", "shard opt_state 4"], remat=True, zero=True),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v4:2x2x1", chips=4, batch=16),
    "jax_paged": program(
        "jax_programs", "paged", "the pages (32 layers, 2 of 8 heads on a device, 6144 pages of 64, 128, int8: 96 MiB a layer, 3 GiB keys and 3 GiB values; their scales, 64 padded to 128 perhaps: 100 MiB each), and again where their update is not in place; the weights (8.0 billion in bfloat16 over 4: 3.8 GiB); one layer's keys and values gathered by table (64 slots of 5120, 2, 128: int8 80 MiB, bfloat16 160 MiB, both a few times): 0.5 to 1 GiB, scores (64 by 8 by 5120: 10 MiB); 70 to 90 % of 16 GiB",
        {"bf16": change("dtype (cache)", ["dtype cache bf16"], kept="bfloat16"),
         "pool": change("dimension", ["dim 6144 3072"], pages=3072),
         "slots": change("batch", ["batch 2"], slots=128),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x2", chips=4, slots=64),
    "jax_accum": program(
        "jax_programs", "accum", "what the scan over 32 layers saves by the policy dots_with_no_batch_dims_saveable, of one of two micro-batches (4 sequences of 4096 of a device: 16384 tokens: queries, keys, values, two outputs of 4096: 128 MiB each; gate and up of 11008: 344 MiB each; the input 128 MiB): 1.4 GiB a layer: 45 GiB; twice if both micro-batches are held together; scores of one layer (4 by 32 by 4096 by 4096: float32 8 GiB, bfloat16 4 GiB): 12 to 20 GiB; the weights (6.7 billion float32 over 8: 3.1 GiB), gradients twice (6 GiB); float32 logits (2 GiB, two); 70 to 95 % of 95 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], policy="nothing_saveable"),
         "micro": change("micro-batches", ["micro 2"], micro=4),
         "half": change("batch", ["batch 0.5"], batch=32)},
        topology="tpu7x:2x2x1", chips=8, batch=64),
    "linen_clap": program(
        "linen_programs", "clap", "scores and probabilities of the sounds' tower that the scan over 12 layers saves (512 sounds of a device, 256 patches, 12 heads: float32 1.5 GiB, bfloat16 768 MiB): 18 to 27 GiB; its MLP values (131072 tokens by 3072: 768 MiB, three): 27 GiB; its tokens of 768 (192 MiB, eight): 18 GiB; the captions' tower (32768 tokens of 512; 64 by 64 scores padded to 128; 2048: 128 MiB, three): 8 GiB; the logits (512 by 32768 of a device, float32: 64 MiB, twice) are small, the state too; 70 to 100 % of 95 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16384),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=131072)},
        topology="v5p:4x4x4", chips=64, batch=32768),
    "torchax_electra": program(
        "torchax_programs", "electra", "float32 scores and probabilities of 24 layers (8 sequences of 512 of a device, 16 heads: 128 MiB an array, one to three): 3 to 9 GiB; MLP values (4096 tokens by 4096: 64 MiB, three): 4.6 GiB; tokens of 1024 (16 MiB, ten): 3.8 GiB; the state, whole (335 million, 12 bytes: 3.7 GiB), gradients (1.2 GiB); does not fit 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "first12": change("checkpoint part", ["remat electra.encoder.layer[*] 12"], remat=12),
         "bf16": change("dtype", ["dtype * bf16"], dtype="bfloat16"),
         "half": change("batch", ["batch 0.5"], batch=32)},
        topology="v5e:2x4", chips=8, batch=64),
    "kh_videoprism": program(
        "keras_programs", "videoprism", "MLP values of 16 layers (4 videos of 16 frames of 256 patches of a device: 16384 tokens by 3072, float32: 192 MiB, three): 9 GiB; float32 scores, capped by a tanh, and probabilities of 12 layers of space (64 by 12 by 256 by 256: 192 MiB, two to four): 5 to 9 GiB, of 4 layers of time (1024 by 12 by 16 by 16, padded to 128: 96 MiB): 1.5 GiB; tokens of 768 (48 MiB, twelve): 9 GiB; the state (114 million, 12 bytes: 1.3 GiB) and the videos (60 MiB) are small; 75 to 100 % of 31 GiB",
        {"bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "remat": change("checkpoint", ["remat *"], remat=16),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=16, batch=64)},
        topology="v6e:2x2", chips=4, batch=16),
}
# Written while the bases of the nine above were compiled: before any report was read, and before these were compiled.
PROGRAMS |= {
    "tunix_dpo": program(
        "tunix_programs", "dpo", "attention scores and probabilities of 28 layers (4 sequences of 1024 of a group of 2 devices, 12 of 24 heads: float32 192 MiB, bfloat16 96 MiB, one to three): 5 to 13 GiB; tokens of 3072 (4096 of a device, whole on both: 24 MiB, ten): 6.5 GiB; MLP values (4096 by 8192/2: 32 MiB, four): 3.5 GiB; logits (4096 tokens or 2048 by 128256/2: bfloat16 250 to 500 MiB, float32 0.5 to 1 GiB, three): 3 GiB; the state (3.2 billion in bfloat16, 6 bytes over 8: 2.4 GiB), gradients (0.8 GiB); 60 to 95 % of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER"),
         "block": change("checkpoint (attention only)", ["remat layers/*/attn"], remat="BLOCK"),
         "double": change("batch", ["batch 2"], pairs=16),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat="DECODER", pairs=32)},
        topology="v6e:2x4", shape=(4, 2), pairs=8, prompt=512, response=512),
    "jax_context": program(
        "jax_programs", "context", "float32 logits of 32000 words (16384 tokens of a device: 2 GiB an array, two): 4 GiB; inputs of 32 recomputed layers (16384 by 4096: 128 MiB): 4 GiB; one layer's MLP values (16384 by 14336: 448 MiB, four): 1.8 GiB; its queries, keys, values (128, 32, 32 MiB; gathered keys and values 256 MiB each, and their gradients): 1.5 GiB; scores of a block of 2048 by 2048 (32 heads: float32 512 MiB, two); the state (7.2 billion, 12 bytes over 64: 1.3 GiB), gradients (0.4 GiB), a layer's weights gathered (bfloat16 416 MiB, float32 gradient 830 MiB); 70 to 100 % of 16 GiB",
        {"short": change("dimension", ["dim 131072 65536"], length=65536),
         "double": change("batch", ["batch 2"], batch=16),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:8x8", shape=(8, 8), batch=8),
    "linen_segment": program(
        "linen_programs", "segment", "scores and probabilities that the scan over 24 layers saves (4 pictures of a device, 1024 patches, 16 heads: float32 256 MiB, bfloat16 128 MiB): 6 to 9 GiB; MLP values (4096 tokens by 4096: 32 MiB, three): 2.3 GiB; tokens of 1024 (8 MiB, eight): 1.5 GiB; float32 logits of every pixel (4 by 512 by 512 by 150, padded to 256: 1 GiB an array, two or three): 2 to 3 GiB; the state, whole (306 million, 12 bytes: 3.4 GiB), gradients (1.1 GiB); does not fit 16 GiB or just",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8),
         "large": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=32),
         "classes": change("dimension", ["dim 150 128"], kinds=128)},
        topology="v5e:2x2", chips=4, batch=16),
}
