"""The twenty-seventh set: outside programs; cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "mt_qwen3_8b": program(
        "maxtext_programs", "train", "float32 logits of 151936 words (2 sequences of 4096 of a device: 8192 tokens: 4.6 GiB an array; logits and their gradient, perhaps a bfloat16 one of 2.3 GiB): 9 to 11 GiB; about the same: what the scan over 36 layers saves by the policy save_dot_except_mlp (queries 64 MiB, keys and values of 1024: 16 MiB each, the output of attention 64 MiB, the input 64 MiB): 224 MiB a layer, 7.9 GiB; then the state (8.2 billion weights, 12 bytes over 16: 5.7 GiB), gradients (1.9 GiB); nearly full of 32 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "double": change("batch", ["batch 2"], per_device_batch_size=4),
         "both": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 2"], remat_policy="full", num_vocab_tiling=8, per_device_batch_size=4)},
        compile_topology="v6e-16", model_name="qwen3-8b", per_device_batch_size=2, max_target_length=4096, remat_policy="save_dot_except_mlp"),
    "mt_deepseek2_16b": program(
        "maxtext_programs", "train", "float32 logits of 102400 words (2 sequences of 4096 of a device: 8192 tokens: 3.1 GiB an array; logits and their gradient, perhaps a bfloat16 one of 1.6 GiB): 6 to 8 GiB; then the state (15.7 billion weights, 12 bytes over 64: 2.8 GiB), gradients (0.9 GiB), one layer's experts and their weights gathered (64 by 2048 by 1408 by 2 bytes: 352 MiB an array, three, and their gradients; rows 8192 by 6 by 2048: 192 MiB, by 1408: 132 MiB), inputs of 27 layers (32 MiB each: 0.9 GiB); nearly full of 16 GiB",
        {"tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "both": change("chunked loss + batch", ["chunk logits 8", "batch 2"], num_vocab_tiling=8, per_device_batch_size=4),
         "micro": change("micro-batches", ["micro 2"], per_device_batch_size=1, gradient_accumulation_steps=2)},
        compile_topology="v5e-64", model_name="deepseek2-16b", per_device_batch_size=2, max_target_length=4096, remat_policy="full", sparse_matmul="true", megablox="true"),
}
PROGRAMS |= {
    "jax_retnet": program(
        "jax_programs", "retnet", "values that the scan over 24 layers saves for one of 4 micro-batches (2 sequences of 4096 of a device: 8192 tokens: float32 retention output of 4096 numbers 128 MiB, bfloat16 64 MiB, values and gate 64 MiB each and its silu, queries and keys 32 MiB each, float32 norms 64 MiB, MLP of 4096 before and after gelu 64 MiB each, scores in chunks 2 by 8 by 256 by 4096: float32 64 MiB, bfloat16 32 MiB, the kept matrices 16 chunks by 2 by 8 by 256 by 512: float32 128 MiB): 0.7 to 1 GiB a layer, 17 to 24 GiB; then the state (1.4 billion weights, 12 bytes over 8: 2.1 GiB), accumulated gradients (0.7 GiB), float32 logits of 50304 words (1.5 GiB an array, two); nearly full of 31 GiB or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=32),
         "micro": change("micro-batches", ["micro 2"], micro=8),
         "both": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 4"], remat=True, chunks=8, batch=256)},
        topology="v4:2x2x2", chips=8, batch=64),
    "jax_serve_steps": program(
        "jax_programs", "serve_steps", "the cache (48 layers, 64 slots, 4096 places, 1 of 8 heads, 128, bfloat16: 3 GiB each for keys and for values: 6 GiB), twice if the scan that reads and writes it makes a second one: 12 GiB; then the weights (14.8 billion in bfloat16 over 8: 3.4 GiB); does not fit 16 GiB or nearly full if the cache is there twice; 60 % if not",
        {"half": change("batch", ["batch 0.5"], slots=32),
         "double": change("batch", ["batch 2"], slots=128),
         "long": change("dimension", ["dim 4096 6144"], length=6144),
         "f8": change("dtype", ["dtype kv_cache f8e4m3fn"], kept="float8_e4m3fn"),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x4", chips=8, slots=64, length=4096),
    "jax_long64": program(
        "jax_programs", "long64", "what the scan over 28 layers saves by its policy (1 sequence of 65536 words of a device: queries of 2048: 256 MiB, keys and values of 512: 64 MiB each, the output of attention 256 MiB, gate and up of 8192: 1 GiB each, the input 256 MiB): 2.9 GiB a layer, 81 GiB; then the state (1.9 billion weights, 12 bytes over 4: 5.4 GiB), gradients (1.8 GiB); does not fit 95 GiB or nearly full",
        {"attention": change("checkpoint (policy)", ["remat *"], saved=()),
         "shorter": change("dimension", ["dim 65536 32768"], length=32768),
         "bf16": change("dtype (first moments)", ["dtype opt_state[0].mu bf16"], bits="bfloat16"),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], saved=(), batch=8)},
        topology="v5p:2x2x1", chips=4, batch=4),
}
PROGRAMS |= {
    "kh_densenet": program(
        "keras_programs", "densenet", "the concatenated maps and their normalised ones, float32, of 98 dense layers (128 images of a device; 56 by 56 by 64 to 256 channels: 98 to 390 MiB an array; 28 by 28 by 128 to 512: 49 to 196 MiB; 14 by 14 by 256 to 1792: 24 to 170 MiB; 7 by 7), saved twice or thrice for each layer (before and after the norm, relu): 10 to 25 GiB; the state is small (20 million weights: 0.2 GiB); does not fit 16 GiB or nearly full",
        {"half": change("batch", ["batch 0.5"], batch=256),
         "double": change("batch", ["batch 2"], batch=1024),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16")},
        topology="v5e:2x2", chips=4, batch=512),
    "hk_dino": program(
        "haiku_programs", "dino", "attention scores and probabilities of the student's 12 layers for two large crops (16 images of a device: 32 crops, 6 heads, 785 by 785 padded to 896: bfloat16 225 to 260 MiB an array, float32 450 to 520): 6 to 12 GiB; then MLP values (32 times 785 tokens by 1536: 74 MiB, four, and 8 small crops of 145: 128 times 145 by 1536: 54 MiB, four): 5 GiB; tokens (18 MiB an array, ten): 3 GiB; nearly full or does not fit 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "first6": change("checkpoint part", ["remat block_* 6"], remat=6),
         "half": change("batch", ["batch 0.5"], batch=64),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=12, batch=256)},
        topology="v5e:2x4", chips=8, batch=128),
    "nnx_vit_lora": program(
        "nnx_programs", "vit_lora", "MLP values of 40 layers (32 images of a device, 256 places: 8192 tokens by 6144: 96 MiB before and after gelu and its derivative, two or three): 8 to 12 GiB; then tokens (8192 by 1408: 22 MiB an array, eight: norms, queries, keys, values, outputs): 7 GiB; attention scores and probabilities (32 images, 16 heads, 256 by 256: bfloat16 64 MiB, float32 128 MiB): 2.5 to 5 GiB; the frozen weights, whole (1 billion in bfloat16: 1.9 GiB), adapters and their state (16 million: 0.2 GiB); does not fit or nearly full of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=40),
         "first20": change("checkpoint part", ["remat layers[*] 20"], remat=20),
         "half": change("batch", ["batch 0.5"], batch=64),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=40, batch=512)},
        topology="v5e:2x2", chips=4, batch=128),
    "linen_beit": program(
        "linen_programs", "beit", "values that the scan over 24 layers saves by the policy dots_saveable (128 images of a device, 196 places: 25088 tokens: scores of 16 heads, 196 by 196 padded to 256: bfloat16 200 MiB or float32 400 MiB, MLP of 4096: 196 MiB, queries, keys and values, outputs 49 MiB each, seven, the input 49 MiB): 0.8 to 1 GiB a layer, 20 to 24 GiB; then the state, whole (310 million weights, 12 bytes: 3.5 GiB), gradients (1.2 GiB), float32 logits of 8192 words (784 MiB an array, two); nearly full or does not fit 31 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], policy="nothing"),
         "half": change("batch", ["batch 0.5"], batch=256),
         "zero": change("sharding (ZeRO)", ["shard state.opt_state 4"], zero=True),
         "both": change("checkpoint + sharding + batch", ["remat *", "shard state.opt_state 4", "batch 2"], policy="nothing", zero=True, batch=1024)},
        topology="v6e:2x2", chips=4, batch=512),
    "torchax_granite": program(
        "torchax_programs", "granite", "attention scores and probabilities of 40 layers (1 sequence of a device, 32 heads, 2048 by 2048: float32 512 MiB, bfloat16 256 MiB an array): 10 to 30 GiB; then MLP values (2048 tokens by 8192: 32 MiB an array, four): 5 GiB; tokens (8 MiB an array, ten): 3 GiB; logits of 49152 words (2048 tokens: float32 384 MiB an array, three); the state (2.5 billion in bfloat16, 6 bytes over 8: 1.8 GiB), gradients (0.6 GiB); does not fit or nearly full of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=40),
         "first20": change("checkpoint part", ["remat model.layers[*] 20"], remat=20),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=40, batch=32)},
        topology="v6e:2x4", chips=8, batch=8),
    "tunix_qwen3": program(
        "tunix_programs", "sft", "logits of 151936/2 words (4 sequences of 2048 of a group of 2 devices: 8192 tokens: bfloat16 1.2 GiB, float32 2.3 GiB an array; log-softmax, gradient: three to four): 6 to 9 GiB; about the same: attention scores and probabilities of 28 layers (4 sequences, 8 heads, 2048 by 2048: float32 512 MiB, bfloat16 256 MiB): 7 to 21 GiB; MLP values (8192 by 6144/2: 48 MiB an array, four): 5 GiB, tokens (32 MiB, eight): 7 GiB; the state is 1.7 billion in bfloat16, 6 bytes over 8: 1.2 GiB; does not fit or nearly full of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat="DECODER", batch=32)},
        topology="v4:2x2x2", shape=(4, 2), batch=16, length=2048),
    "brax_humanoid": program(
        "brax_programs", "ppo", "the observations of a batch of unrolled steps (16 times 2048 sequences of 10 steps of 244 float32 numbers of a device, padded to 256: 320 MiB; the next observations too), several times: as they are collected, shuffled and cut into minibatches: 1.5 to 4 GiB; the state of environments is small (4096 of them); fits, under half full of 16 GiB",
        {"half": change("batch", ["batch 0.5"], envs=2048, batch=1024),
         "double": change("batch", ["batch 2"], envs=8192, batch=4096),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x2", chips=4, envs=4096, batch=2048, minibatches=16, unroll=10),
}
