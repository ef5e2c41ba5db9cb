"""The twenty-fifth set: outside programs; cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "mt_gemma_2b": program(
        "maxtext_programs", "train", "float32 logits of 256128 words (2 sequences of 2048 of a device: 4096 tokens: 3.9 GiB an array; logits and their gradient, two, perhaps a bfloat16 one of 2 GiB): 8 to 10 GiB; then the table gathered and its gradient (256128 by 2048: bfloat16 1 GiB, float32 2 GiB), inputs of 18 layers (16 MiB each), the state (2.5 billion weights, 12 bytes over 64: 0.5 GiB); more than half full or nearly full of 16 GiB",
        {"tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "both": change("chunked loss + batch", ["chunk logits 8", "batch 4"], num_vocab_tiling=8, per_device_batch_size=8),
         "micro": change("micro-batches", ["micro 2"], per_device_batch_size=1, gradient_accumulation_steps=2)},
        compile_topology="v5e-64", model_name="gemma-2b", per_device_batch_size=2, max_target_length=2048, remat_policy="full"),
    "mt_qwen3_06b": program(
        "maxtext_programs", "train", "float32 logits of 151936 words (6 sequences of 2048 of a device: 12288 tokens: 7 GiB an array; logits and their gradient): 14 GiB; about the same: what the scan over 28 layers saves by the policy minimal (queries 48 MiB, keys and values 24 MiB each, gate and up of 3072: 72 MiB each, two outputs 24 MiB each, the input 24 MiB): 312 MiB a layer, 8.6 GiB; then the state (0.6 billion weights, 12 bytes over 4: 1.7 GiB), gradients (0.55 GiB); nearly full of 32 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=3),
         "both": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 4"], remat_policy="full", num_vocab_tiling=8, per_device_batch_size=24)},
        compile_topology="v4-8", model_name="qwen3-0.6b", per_device_batch_size=6, max_target_length=2048, remat_policy="minimal"),
    "mt_qwen3_480b": program(
        "maxtext_programs", "train", "the state (480 billion weights, 12 bytes over 256: 21 GiB), gradients (7 GiB): 28 GiB; then one layer's experts and tokens recomputed (4096 tokens for 8 experts by 6144: 384 MiB an array, by 2560: 160 MiB; weights of 160 experts gathered over fsdp: 160 by 6144 by 2560 by 2 bytes over 8 of expert parallelism: 600 MiB an array, three), float32 logits of 151936 words (4096 tokens: 2.3 GiB an array, two), inputs of 62 layers (48 MiB: 2.9 GiB); fits, about half full of 95 GiB",
        {"double": change("batch", ["batch 2"], per_device_batch_size=2),
         "four": change("batch", ["batch 4"], per_device_batch_size=4),
         "tile": change("chunked loss + batch", ["chunk logits 8", "batch 4"], num_vocab_tiling=8, per_device_batch_size=4)},
        compile_topology="v5p-512", model_name="qwen3-480b-a35b", per_device_batch_size=1, max_target_length=4096, ici_expert_parallelism=8, ici_fsdp_parallelism=-1, remat_policy="full", sparse_matmul="true", megablox="true"),
}
PROGRAMS |= {
    "jax_2d": program(
        "jax_programs", "two_axes", "values that the scan over 32 layers saves by the policy dots_with_no_batch_dims_saveable (2 sequences of 4096 of a group of 4 devices: 8192 tokens: queries of 4096/4: 16 MiB, keys and values of 1024/4: 4 MiB each, gate and up of 14336/4: 56 MiB each, two outputs of 4096: 64 MiB each, the input 64 MiB): 328 MiB a layer, 10 GiB; then the state (8 billion weights, 12 bytes over 16: 6 GiB), gradients (2 GiB), float32 logits of 128256/4 words (1 GiB an array, two); does not fit 16 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], policy="nothing_saveable"),
         "half": change("batch", ["batch 0.5"], batch=4),
         "both": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 2"], policy="nothing_saveable", chunks=8, batch=16),
         "micro": change("micro-batches", ["micro 2"], micro=2)},
        topology="v5e:4x4", shape=(4, 4), batch=8),
    "jax_lora": program(
        "jax_programs", "lora", "attention scores and probabilities that the scan over 32 layers saves (1 sequence of a device, 32 heads, 2048 by 2048: float32 512 MiB, bfloat16 256 MiB an array): 8 to 24 GiB; then values of the MLP (2048 tokens by 14336: 56 MiB an array, four to six), queries, norms (16 MiB an array, float32 32): 10 GiB; the frozen weights (8 billion in bfloat16 over 8: 1.9 GiB), float32 logits of 128256 words (1 GiB an array, two), adapters and their state (42 million: 0.5 GiB); does not fit 31 GiB or nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "flash": change("blockwise attention", ["blockwise *"], kernel=True),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=32),
         "chunk": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 8"], remat=True, chunks=8, batch=64)},
        topology="v6e:2x4", chips=8, batch=8),
    "jax_serve": program(
        "jax_programs", "serve", "the cache (40 layers, 48 slots, 2 of 8 heads, 8192 places, 128, bfloat16: 7.5 GiB each for keys and for values: 15 GiB), carried by the scan in place if it goes well; then the weights (12.2 billion in bfloat16 over 4: 5.7 GiB); fits, two thirds full of 31 GiB; does not fit if the cache is copied",
        {"half": change("batch", ["batch 0.5"], slots=24),
         "long": change("dimension", ["dim 8192 12288"], length=12288),
         "f8": change("dtype", ["dtype cache f8e4m3fn"], kept="float8_e4m3fn"),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v6e:2x2", chips=4, slots=48, length=8192),
    "torchax_roberta": program(
        "torchax_programs", "roberta", "float32 attention scores and probabilities of 24 layers (8 sequences of a device, 16 heads, 512 by 512: 128 MiB an array, one to three): 3 to 9 GiB; about the same: MLP values (4096 tokens by 4096: 64 MiB before and after gelu and its derivative), tokens (16 MiB an array, eight): 8 GiB; the state, whole (355 million weights, 12 bytes: 4 GiB), gradients (1.3 GiB); no logits; does not fit or nearly full of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "first12": change("checkpoint part", ["remat roberta.encoder.layer[*] 12"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=32),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=24, batch=256)},
        topology="v5e:2x4", chips=8, batch=64),
    "torchax_qwen3": program(
        "torchax_programs", "qwen3", "attention scores and probabilities of 28 layers (2 sequences of a device, 16 heads, 2048 by 2048: float32 512 MiB, bfloat16 256 MiB an array): 7 to 21 GiB; logits of 151936 words (4096 tokens: bfloat16 1.2 GiB, float32 2.3 GiB an array, two or three): 5 to 7 GiB; MLP values (4096 by 6144: 48 MiB an array, four): 5 GiB; the state (1.7 billion in bfloat16, 6 bytes over 8: 1.2 GiB), gradients (0.4 GiB), table gathered and its gradient (0.6 GiB each); does not fit or nearly full of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=28),
         "first14": change("checkpoint part", ["remat model.layers[*] 14"], remat=14),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=28, batch=32)},
        topology="v4:2x2x2", chips=8, batch=16),
}
PROGRAMS |= {
    "eqx_gpt": program(
        "equinox_programs", "gpt", "attention scores and probabilities that the scan over 36 layers saves (2 sequences of a device, 20 heads, 1024 by 1024: bfloat16 80 MiB, float32 160 MiB an array): 6 to 17 GiB; the state, whole (774 million weights, 12 bytes: 8.7 GiB), gradients (2.9 GiB); MLP values (2048 tokens by 5120: 20 MiB, three), tokens (5 MiB an array, ten): 4 GiB; logits of 50304 words (float32 393 MiB an array, two); nearly full of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "zero": change("sharding (ZeRO)", ["shard opt_state 4"], zero=True),
         "half": change("batch", ["batch 0.5"], batch=4),
         "both": change("checkpoint + sharding + batch", ["remat *", "shard opt_state 4", "batch 4"], remat=True, zero=True, batch=32)},
        topology="v6e:2x2", chips=4, batch=8),
    "tunix_gemma3_lora": program(
        "tunix_programs", "lora", "values of 34 layers' MLP (8 sequences of 1024 of a group of 2 devices: 8192 tokens by 10240/2: 80 MiB an array, gate, up, product, gelu: four): 11 GiB; about the same: attention scores and probabilities (8 sequences, 4 heads, 1024 by 1024: float32 128 MiB, bfloat16 64 MiB): 6 to 9 GiB; logits of 262144/2 words (8192 tokens: bfloat16 2 GiB, float32 4 GiB an array; log-softmax, gradient: two or three): 6 to 10 GiB; tokens (8192 by 2560: 40 MiB, ten a layer): 10 GiB; the weights (3.9 billion in bfloat16 over 8: 1 GiB); does not fit or nearly full of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat="DECODER", batch=64)},
        topology="v6e:2x4", shape=(4, 2), batch=32, length=1024),
    "kh_opt": program(
        "keras_programs", "opt", "attention scores and probabilities of 24 layers (8 sequences of a device, 32 heads, 1024 by 1024: float32 1 GiB, bfloat16 512 MiB an array, dropout): 12 to 48 GiB; then MLP values (8192 tokens by 8192: 128 MiB, before and after relu), tokens (32 MiB an array, eight): 12 GiB; logits of 50272 words (bfloat16 0.8 GiB, float32 1.5 GiB an array, three); the state (1.3 billion weights, 12 bytes over 4: 3.7 GiB), gradients (1.2 GiB); more than half full of 95 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "first12": change("checkpoint part", ["remat transformer_layer_* 12"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=24, batch=64)},
        topology="v5p:2x2x1", chips=4, batch=32),
    "brax_cheetah": program(
        "brax_programs", "ppo", "the observations of a batch of unrolled steps (32 times 8192 sequences of 20 steps of 18 float32 numbers of a device: 360 MiB packed, up to 2.5 GiB where 18 is padded to 128; the next observations too; raw actions of 6, values), several times: as they are collected, shuffled and cut into minibatches: 2 to 10 GiB; fits, half full of 16 GiB",
        {"half": change("batch", ["batch 0.5"], envs=4096, batch=4096),
         "double": change("batch", ["batch 2"], envs=16384, batch=16384),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x2", chips=4, envs=8192, batch=8192, minibatches=32, unroll=20),
}
PROGRAMS |= {
    "hk_vit": program(
        "haiku_programs", "vit", "float32 MLP values of 12 layers (128 images of a device, 197 places padded to 200: 25216 tokens by 3072: 296 MiB before and after gelu and its derivative, two to four): 7 to 14 GiB; about the same: attention scores and probabilities (128 images, 12 heads, 197 by 197 padded to 200 by 256: 300 MiB an array, one to three): 3.5 to 10 GiB; tokens (75 MiB an array, eight): 7 GiB; the state, whole, is small (86 million weights, 12 bytes: 1 GiB); nearly full of 32 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "first6": change("checkpoint part", ["remat block_* 6"], remat=6),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "half": change("batch", ["batch 0.5"], batch=256),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=12, batch=1024)},
        topology="v4:2x2x1", chips=4, batch=512),
    "nnx_mixtral": program(
        "nnx_programs", "mixtral", "attention scores and probabilities of 16 layers (2 sequences of a device, 16 heads, 2048 by 2048: float32 512 MiB, bfloat16 256 MiB an array): 4 to 12 GiB; then the experts' values (2 sequences, 8 experts, 640 rows: 10240 rows by 4096: 80 MiB before, gate and product: three; rows 40 MiB, twice; dispatch and combine of 4096 by 8 by 640: 40 MiB each): 6 GiB; the state (3.5 billion weights, 12 bytes over 8: 4.9 GiB), gradients (1.6 GiB); logits of 32000 words (float32 500 MiB, two); nearly full of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=16),
         "first8": change("checkpoint part", ["remat layers[*] 8"], remat=8),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=16, batch=64)},
        topology="v6e:2x4", chips=8, batch=16),
}
PROGRAMS |= {
    "linen_translate": program(
        "linen_programs", "translate", "attention scores and probabilities of 6 encoder and 12 decoder attentions (64 sequences of a device, 16 heads, 256 by 256: bfloat16 128 MiB, float32 256 MiB an array): 4.5 to 9 GiB; MLP values of 12 layers (16384 tokens by 4096: 128 MiB before and after relu): 3 GiB, tokens (32 MiB an array, 8 to 12 a layer): 4 GiB; float32 logits of 32768 words (2 GiB an array, two): 4 GiB; the state, whole (210 million weights, 12 bytes: 2.4 GiB), gradients (0.8 GiB); nearly full or does not fit 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=6),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "half": change("batch", ["batch 0.5"], batch=128),
         "both": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 2"], remat=6, chunks=8, batch=512)},
        topology="v5e:2x2", chips=4, batch=256),
    "linen_sd": program(
        "linen_programs", "sd_unet", "attention scores and probabilities of the first resolution (4 images of a device, 8 heads, 4096 by 4096: bfloat16 1 GiB, float32 2 GiB an array), two layers on the way down and three up: 5 to 20 GiB; then the state, whole (860 million weights, 12 bytes: 9.6 GiB), gradients (3.2 GiB); feed-forward values (16384 tokens by 2560: 80 MiB, four) and convolutions' (10 MiB bfloat16, float32 in norms): 4 GiB; does not fit or nearly full of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=64),
         "zero": change("sharding (ZeRO)", ["shard opt_state 8"], zero=True)},
        topology="v6e:2x4", chips=8, batch=32),
}
