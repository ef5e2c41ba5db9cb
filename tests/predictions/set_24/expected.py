"""The twenty-fourth set: outside programs; cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "mt_gpt3_175b": program(
        "maxtext_programs", "train", "what the scan over 96 layers saves by the policy minimal (16384 tokens of a group of 8 devices: fused queries, keys and values of 36864/8: 144 MiB, MLP of 49152/8: 192 MiB, two outputs of 12288/8: 48 MiB each, the input 48 MiB): 480 MiB a layer, 45 GiB; then the state (175 billion weights, 12 bytes over 128: 15.3 GiB), gradients (5.1 GiB); logits of 50304/8 words (16384 tokens float32: 400 MiB an array); fits, more than half full of 95 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=0.5),
         "double": change("batch", ["batch 2"], per_device_batch_size=2)},
        compile_topology="v5p-256", model_name="gpt3-175b", per_device_batch_size=1, max_target_length=2048, ici_tensor_parallelism=8, ici_fsdp_parallelism=-1, remat_policy="minimal"),
    "mt_qwen25_1b": program(
        "maxtext_programs", "train", "float32 logits of 151936 words (4 sequences of 2048 of a device: 8192 tokens: 4.6 GiB an array; logits and their gradient, two, perhaps a bfloat16 one of 2.3 GiB): 9 to 11 GiB; then the state (1.54 billion weights, 12 bytes over 16: 1.1 GiB), gradients (0.4 GiB), the table gathered and its gradient (0.45 to 0.9 GiB), inputs of 28 layers saved by the scan (8192 tokens by 1536: 24 MiB: 0.7 GiB); nearly full of 16 GiB",
        {"tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=2),
         "double": change("batch", ["batch 2"], per_device_batch_size=8),
         "both": change("chunked loss + batch", ["chunk logits 8", "batch 4"], num_vocab_tiling=8, per_device_batch_size=16)},
        compile_topology="v5e-16", model_name="qwen2.5-1.5b", per_device_batch_size=4, max_target_length=2048, remat_policy="full"),
    "mt_llama33_70b": program(
        "maxtext_programs", "train", "what the scan over 80 layers saves by the policy save_qkv_proj (8 sequences of 8192 of a group of 8 devices: 65536 tokens: queries of 8192/8: 128 MiB, keys and values of 1024/8: 16 MiB each, the input of 8192/8: 128 MiB): 288 MiB a layer, 22.5 GiB; then the state (70.6 billion weights, 12 bytes over 128: 6.2 GiB), gradients (2.1 GiB), logits of 128256/8 words (65536 tokens float32: 3.9 GiB an array, two), the MLP of one layer (28672/8: 448 MiB an array); does not fit on 31 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=0.5),
         "micro": change("micro-batches", ["micro 2"], per_device_batch_size=0.5, gradient_accumulation_steps=2),
         "both": change("checkpoint + chunked loss", ["remat *", "chunk logits 8"], remat_policy="full", num_vocab_tiling=8)},
        compile_topology="v6e-128", model_name="llama3.3-70b", per_device_batch_size=1, max_target_length=8192, ici_tensor_parallelism=8, ici_fsdp_parallelism=-1, remat_policy="save_qkv_proj"),
}
PROGRAMS |= {
    "nnx_serve": program(
        "nnx_programs", "serve", "the cache of 28 layers (64 sequences, 4096 places, 2 of 8 heads of 128 on a device, bfloat16: 128 MiB an array, keys and values: 7 GiB, more if 2 heads are padded to 8: 28 GiB), copied if the update is not in place; then the weights (3.2 billion in bfloat16 over 4: 1.5 GiB); logits small (64 by 32064); fits 16 GiB if it is not padded",
        {"half": change("batch", ["batch 0.5"], slots=32),
         "short": change("dimension", ["dim 4096 2048"], length=2048),
         "f8": change("dtype", ["dtype cache f8e4m3fn"], kept="float8_e4m3fn"),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x2", chips=4, slots=64, length=4096),
    "linen_vit384": program(
        "linen_programs", "vit384", "attention scores and probabilities that the scan over 24 layers saves (32 images of a device, 16 heads, 577 by 577 padded to 584 by 640: bfloat16 364 MiB, float32 729 MiB an array; one to three): 9 to 26 GiB; MLP values (18464 tokens by 4096: 144 MiB before and after gelu), tokens (36 MiB an array, eight): 14 GiB; then weights, their average (304 million float32, whole: 1.1 GiB each), moments (bfloat16 and float32: 1.7 GiB), gradients (1.1 GiB); does not fit or nearly full of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=128),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=512),
         "blockzero": change("checkpoint + sharding", ["remat *", "shard opt_state 8"], remat=True, zero=True)},
        topology="v6e:2x4", chips=8, batch=256),
    "hk_resnet50": program(
        "haiku_programs", "resnet50", "float32 activations of the first stages (128 images of a device: the first convolution 112 by 112 by 64, padded to 128: 784 MiB packed or 1.5 GiB padded, with its norm and relu; first group 56 by 56 by 256: 392 MiB an array, three blocks with norms: about nine to twelve; 64 channels 98 to 196 MiB, twelve): 8 to 10 GiB; second group half of it per array, four blocks: 4 GiB; the state is small (25 million weights, 8 bytes); nearly full or does not fit 16 GiB",
        {"bf16": change("dtype", ["compute bf16"], half=True),
         "half": change("batch", ["batch 0.5"], batch=64 * 8),
         "double": change("batch", ["batch 2"], batch=256 * 8)},
        topology="v5e:2x4", chips=8, batch=128 * 8),
    "jax_ragged": program(
        "jax_programs", "ragged", "the cache's pages of 32 layers (5000 pages of 32 by 4 of 16 heads (keys and values) of 128 on a device, bfloat16: 156 MiB a layer: 4.9 GiB); then the weights (8 billion in bfloat16 over 4 devices: 3.7 GiB); one step's values are small (2048 tokens by 4096: 16 MiB; MLP of 14336/4: 14 MiB); fits, more than half full of 16 GiB",
        {"pages": change("dimension", ["dim 5000 10000"], pages=10000),
         "tokens": change("dimension", ["dim 2048 8192"], tokens=8192),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x2", chips=4, tokens=2048, seqs=64, pages=5000),
    "jax_tinyllama": program(
        "jax_programs", "loop", "attention scores and probabilities of 22 layers (4 sequences of a device, 32 heads, 2048 by 2048: float32 2 GiB, bfloat16 1 GiB an array): 22 to 66 GiB; then MLP values (8192 tokens by 5632 bfloat16: 88 MiB, three), queries, outputs, tokens (32 MiB an array, eight): 11 GiB; float32 logits of 32000 words (1 GiB an array, two); the state (1.1 billion weights, 12 bytes over 8: 1.5 GiB); does not fit on 31 GiB",
        {"remat": change("checkpoint", ["remat layers_*"], remat=22),
         "first11": change("checkpoint part", ["remat layers_* 11"], remat=11),
         "flash": change("blockwise attention", ["blockwise *"], kernel=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=22, batch=64)},
        topology="v6e:2x4", chips=8, batch=32),
    "jax_splash": program(
        "jax_programs", "decoder", "values that the scan over 28 layers saves by the policy dots_with_no_batch_dims_saveable (2 sequences of 8192 of a device: 16384 tokens: queries 96 MiB, keys and values 64 MiB, outputs 96 MiB, gate and up of 8192: 256 MiB each, down 96 MiB, the input 96 MiB): 950 MiB a layer, 26 GiB; then float32 logits of 128256 words (7.8 GiB an array; logits and gradient, two): 16 GiB; the state (3.6 billion weights, 12 bytes over 8: 5 GiB), gradients (1.7 GiB); fits, more than half full of 94 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], policy="nothing_saveable"),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "half": change("batch", ["batch 0.5"], batch=8),
         "micro": change("micro-batches", ["micro 2"], micro=2),
         "both": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 4"], policy="nothing_saveable", chunks=8, batch=64)},
        topology="tpu7x:2x2x1", chips=8, batch=16, length=8192, depth=28, width=3072, heads=24, kv=8, hidden=8192, vocabulary=128256, kernel="splash", policy="dots_with_no_batch_dims_saveable"),
    "linen_gpt": program(
        "linen_programs", "gpt", "attention scores and probabilities of 24 layers (8 sequences of a device, 16 heads, 1024 by 1024: bfloat16 256 MiB, float32 512 MiB an array): 6 to 18 GiB; then MLP values (8192 tokens by 4096: 64 MiB before and after gelu), tokens (16 MiB an array, eight), dropout masks: 6 GiB; logits of 50304 words (bfloat16 785 MiB, float32 1.5 GiB an array, two or three); the state, whole (355 million weights, 12 bytes: 4 GiB), gradients (1.3 GiB); does not fit 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "first12": change("checkpoint part", ["remat h_* 12"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=32),
         "both": change("checkpoint + sharding", ["remat *", "shard opt_state 8"], remat=24, zero=True)},
        topology="v5e:2x4", chips=8, batch=64),
}
PROGRAMS |= {
    "eqx_bert": program(
        "equinox_programs", "bert", "float32 attention scores and probabilities of 12 layers (32 sequences of a device, 12 heads, 512 by 512: 384 MiB an array, one to three): 4.5 to 13 GiB; MLP values (16384 tokens by 3072: 192 MiB before and after gelu), tokens (48 MiB an array, eight): 9 GiB; float32 logits of 30522 words (1.9 GiB an array, two); the state (133 million weights, 12 bytes: 1.5 GiB); does not fit 16 GiB",
        {"remat": change("checkpoint", ["remat blocks[*]"], remat=12),
         "first6": change("checkpoint part", ["remat blocks[*] 6"], remat=6),
         "half": change("batch", ["batch 0.5"], batch=128),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "both": change("checkpoint + sharding", ["remat *", "shard model 8", "shard opt_state 8"], remat=12, shard=True)},
        topology="v5e:2x4", chips=8, batch=256),
    "torchax_distil": program(
        "torchax_programs", "distilbert", "float32 attention scores and probabilities of 6 layers (32 sequences of a device, 12 heads, 512 by 512: 384 MiB an array, one or two): 2.3 to 4.6 GiB; MLP values (16384 tokens by 3072: 192 MiB before and after gelu), tokens (48 MiB an array, eight): 4.6 GiB; float32 logits of 30522 words (1.9 GiB an array; log-softmax, gradient: two or three): 4 to 6 GiB; the state (67 million weights, 12 bytes: 0.75 GiB); nearly full or does not fit 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=6),
         "half": change("batch", ["batch 0.5"], batch=128),
         "double": change("batch", ["batch 2"], batch=512),
         "bf16": change("dtype", ["dtype * bf16"], dtype="bfloat16")},
        topology="v5e:2x4", chips=8, batch=256),
    "torchax_llama32": program(
        "torchax_programs", "llama", "attention scores and probabilities of 16 layers (2 sequences of a device, 32 heads, 2048 by 2048: float32 1 GiB, bfloat16 512 MiB an array; masked scores, softmax, cast): 8 to 24 GiB; logits of 128256 words (4096 tokens: bfloat16 1 GiB, float32 2 GiB an array, two or three): 4 to 6 GiB; MLP values (4096 by 8192: 64 MiB an array, three or four): 4 GiB; the state (1.24 billion in bfloat16, 6 bytes over 8: 0.9 GiB), gradients (0.3 GiB), the table gathered and its gradient (0.5 GiB each); does not fit or nearly full of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=16),
         "first8": change("checkpoint part", ["remat model.layers[*] 8"], remat=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=16, batch=32),
         "half": change("batch", ["batch 0.5"], batch=8)},
        topology="v6e:2x4", chips=8, batch=16),
    "gemma3_1b": program(
        "gemma_programs", "full", "logits of 262144 words (2 sequences of 2048 of a device: 4096 tokens: bfloat16 2 GiB, float32 4 GiB an array; logits, log-softmax or their gradient): 6 to 12 GiB; then attention scores and probabilities of 26 layers (2 sequences, 4 heads, 2048 by 2048: float32 128 MiB, bfloat16 64 MiB): 2 to 7 GiB; MLP values (4096 by 6912: 54 MiB an array, three): 4 GiB; the state (1 billion weights, 12 bytes over 8: 1.4 GiB), gradients (0.5 GiB), bfloat16 table gathered (0.6 GiB) and its gradient (1.1 GiB); nearly full of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 2"], remat=True, chunks=8, batch=32)},
        topology="v6e:2x4", chips=8, batch=16, length=2048),
    "tunix_lora_1b": program(
        "tunix_programs", "lora", "logits of 128256/2 words (8 sequences of 1024 of a group of 2 devices: 8192 tokens by 64128: bfloat16 1 GiB, float32 2 GiB an array; one-hot labels, log-softmax, gradient: three): 4 to 6 GiB; attention scores and probabilities of 16 layers (8 sequences, 16 heads, 1024 by 1024: float32 512 MiB, bfloat16 256 MiB an array; whole if kv heads are not divided): 4 to 12 GiB; MLP values (8192 by 8192/2: 64 MiB an array, four): 4 GiB; the weights (1.24 billion in bfloat16 over 8: 0.3 GiB), adapters small; does not fit or nearly full of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat="DECODER", batch=64)},
        topology="v5e:2x4", shape=(4, 2), batch=32, length=1024),
    "kh_qwen": program(
        "keras_programs", "qwen", "logits of 151936 words (4 sequences of 1024 of a device: 4096 tokens: bfloat16 1.2 GiB, float32 2.3 GiB an array; three or four): 5 to 9 GiB; attention scores and probabilities of 24 layers (4 sequences, 14 heads, 1024 by 1024: float32 224 MiB, bfloat16 112 MiB): 3 to 8 GiB; MLP values (4096 by 4864: 38 MiB an array, three or four): 3.5 GiB; the state, whole (494 million weights, 12 bytes: 5.5 GiB), gradients (1.8 GiB), bfloat16 table (0.25 GiB); does not fit or nearly full of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=24, batch=64)},
        topology="v6e:2x4", chips=8, batch=32),
    "kh_falcon": program(
        "keras_programs", "falcon", "attention scores and probabilities of 24 layers (4 sequences of a device, 32 heads, 1024 by 1024: float32 512 MiB, bfloat16 256 MiB an array, with alibi): 6 to 24 GiB; MLP values (4096 tokens by 8192: 64 MiB an array before and after gelu): 3 GiB; logits of 50304 words (bfloat16 400 MiB, float32 800 MiB an array, three); the state (1.3 billion weights float32, adafactor: 4 bytes over 8: 0.65 GiB), gradients (0.65 GiB); nearly full or does not fit of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "first12": change("checkpoint part", ["remat transformer_layer_* 12"], remat=12),
         "double": change("batch", ["batch 2"], batch=64)},
        topology="v4:2x2x2", chips=8, batch=32),
    "brax_ant": program(
        "brax_programs", "ppo", "the observations of a batch of unrolled steps (32 times 2048 sequences of 20 steps of 87 float32 numbers of a device: 435 MiB packed, 640 MiB padded to 128; the next observations too), several times: as they are collected, shuffled and cut into minibatches: 2 to 4 GiB; states of 2048 ants are small; fits, less than half full",
        {"half": change("batch", ["batch 0.5"], envs=1024, batch=1024),
         "double": change("batch", ["batch 2"], envs=4096, batch=4096),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v4:2x2x1", chips=4, envs=2048, batch=2048, minibatches=32, unroll=20),
}
