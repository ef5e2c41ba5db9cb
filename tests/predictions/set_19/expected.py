"""The nineteenth set: outside programs; cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "mt_envy_switch": program(
        "maxtext_programs", "train", "state of 128 experts by 6 layers (22 billion weights, 12 bytes each over 64 devices: 3.8 GiB) and gradients; then float32 logits of 32768 words for 16384 tokens of a device with their gradient (2 GiB an array) and the experts' sorted rows, recomputed; fits",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=4),
         "double": change("batch", ["batch 2"], per_device_batch_size=16),
         "micro": change("micro-batches", ["micro 4"], per_device_batch_size=2, gradient_accumulation_steps=4),
         "bf16": change("dtype (state)", ["dtype state bf16"], weight_dtype="bfloat16")},
        compile_topology="v5e-64", model_name="envy-switch-base", per_device_batch_size=8, max_target_length=2048),
    "mt_gemma7b_sgd": program(
        "maxtext_programs", "train", "float32 logits of 256128 words for 8192 tokens of a device with their gradient (7.8 GiB an array); then the weights and gradients (34 GB over 8 devices: 4 GiB each, no moments: SGD) and what the scan over 28 layers saves by the policy save_qkv_proj (about 6.6 GiB); nearly full or does not fit",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "both": change("chunked loss + batch", ["chunk logits 8", "batch 2"], num_vocab_tiling=8, per_device_batch_size=4)},
        compile_topology="v4-16", model_name="gemma-7b", per_device_batch_size=2, max_target_length=4096, remat_policy="save_qkv_proj", opt_type="sgd"),
    "mt_qwen3_235b": program(
        "maxtext_programs", "train", "the state (235 billion weights, 12 bytes each over 128 devices: 20.5 GiB) and gradients (6.8 GiB); then float32 logits of 151936 words for 16384 tokens (9.3 GiB an array) and one layer's expert rows (16384 by 8 by 4096), inputs of 94 layers (12 GiB); fits",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=2),
         "double": change("batch", ["batch 2"], per_device_batch_size=8),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "nodonate": change("donation (undone)", [], donate=False)},
        compile_topology="v5p-256", model_name="qwen3-235b-a22b", per_device_batch_size=4, max_target_length=4096, ici_expert_parallelism=8, ici_fsdp_parallelism=-1),
    "mt_gemma4_e4b": program(
        "maxtext_programs", "train", "float32 logits of 262144 words for 8192 tokens of a device with their gradient (8 GiB an array); then the state (about 8 billion weights with the per-layer embeddings of 42 layers, 12 bytes over 16 devices: 6 GiB) and gradients; does not fit or nearly full",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=2),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "bf16": change("dtype (state)", ["dtype state bf16"], weight_dtype="bfloat16"),
         "both": change("chunked loss + batch", ["chunk logits 8", "batch 2"], num_vocab_tiling=8, per_device_batch_size=8)},
        compile_topology="v6e-16", model_name="gemma4-e4b", scan_layers="false", per_device_batch_size=4, max_target_length=2048),
}
PROGRAMS |= {
    "jax_nerf": program(
        "jax_programs", "nerf", "float32 activations of the fine MLP (4096 rays by 192 samples a device, 256 wide: 768 MiB an array, 8 layers before and after relu), then the coarse one (64 samples: 256 MiB an array); the state is tiny; nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], rays=8192),
         "double": change("batch", ["batch 2"], rays=32768),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, rays=32768)},
        topology="v5e:2x2", chips=4, rays=16384),
    "jax_pinn": program(
        "jax_programs", "pinn", "float32 activations and their first and second derivatives in both directions (65536 points of a device, 512 wide: 128 MiB an array; 7 of them for each of 8 layers, tanh and its derivatives kept for the gradient); L-BFGS' ten pairs of the small net are nothing; nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], points=131072),
         "thin": change("dimension", ["dim 512 256"], width=256),
         "double": change("batch", ["batch 2"], points=524288)},
        topology="v5e:2x2", chips=4, points=262144),
    "jax_generate": program(
        "jax_programs", "generate", "keys and values of 128 sequences of 2304 (4.5 GiB a device with the heads divided by 8, perhaps twice: read and written by the scan), the prompt's attention scores (128 by 4 heads by 2048 by 2048: 8 GiB float32, 4 GiB bfloat16), prompt activations (262144 by 14336/8); does not fit",
        {"half": change("batch", ["batch 0.5"], batch=64),
         "flash": change("flash attention", ["blockwise *"], attention="flash"),
         "bf16w": change("dtype (weights)", ["dtype params bf16"], weights="bfloat16"),
         "short": change("dimension", ["dim 2048 1024"], prompt=1024),
         "both": change("flash + batch", ["blockwise *", "batch 0.5"], attention="flash", batch=64)},
        topology="v5e:2x4", chips=8, batch=128, prompt=2048, new=256),
    "jax_hstu": program(
        "jax_programs", "hstu", "float32 pointwise attention scores of 8 layers (16 sequences, 8 heads, 1024 by 1024: 512 MiB an array, before and after silu, masked); then the items' table of 2 million rows with accumulator and gradient (0.5 GiB each, divided by 8); nearly full",
        {"remat": change("checkpoint", ["remat layer_*"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "micro": change("micro-batches", ["micro 4"], micro=4),
         "both": change("checkpoint + batch", ["remat layer_*", "batch 2"], remat=True, batch=256)},
        topology="v6e:2x4", chips=8, batch=128, length=1024, items=2097152),
}

PROGRAMS |= {
    "tunix_orpo": program(
        "tunix_programs", "orpo", "logits of 151936 words (a half of them on a device) for 8 sequences of 1024 of a device: float32 log_softmax and gradient (2.3 GiB a float32 array); then attention scores (8 sequences, 6 of 12 heads, 1024 by 1024: 192 MiB float32) and MLP values (8960 wide, a half: 70 MiB) of 28 layers; does not fit",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], pairs=8),
         "donate": change("donation", ["donate model"], donate_model=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat="DECODER", pairs=32)},
        topology="v5e:2x4", shape=(4, 2), pairs=16, prompt=512, response=512),
    "gemma_qat": program(
        "gemma_programs", "qat", "float32 logits of 262144 words for 4096 tokens of a device with their gradient (4 GiB an array); then values of 34 layers (attention scores 2 sequences, 8 heads, 2048 by 2048: 256 MiB float32; MLP 10240 wide: 80 MiB an array) without recomputing, and simulated int4 weights of all layers; nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8),
         "f32": change("dtype (state)", ["dtype params f32", "dtype opt_state f32"], dtype="float32"),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=32)},
        topology="v6e:2x4", chips=8, batch=16, length=2048),
    "kh_esm": program(
        "keras_programs", "esm", "float32 attention scores and probabilities of 33 layers (4 sequences, 20 heads, 1024 by 1024: 320 MiB an array) and MLP values (5120 wide, 80 MiB an array, before and after GELU); then the state, whole (652 million weights, 12 bytes: 7.3 GiB) and gradients; does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=33),
         "half": change("batch", ["batch 0.5"], batch=16),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "fsdp": change("sharding", ["shard * 8"], shard=True)},
        topology="v4:2x2x2", chips=8, batch=32, length=1024),
    "kh_deeplab": program(
        "keras_programs", "deeplab", "float32 activations of the first stages of the ResNet (16 images a device: 256 by 256 by 64 and 128 by 128 by 256: 256 MiB an array, conv, normalisation and relu of 16 blocks), then the decoder's 128 by 128 by 256 and up-sampled logits of 21 classes, padded to 128; does not fit or nearly full",
        {"half": change("batch", ["batch 0.5"], batch=64),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "double": change("batch", ["batch 2"], batch=256),
         "quarter": change("batch", ["batch 0.25"], batch=32)},
        topology="v5e:2x4", chips=8, batch=128),
    "torchax_wav2vec": program(
        "torchax_programs", "wav2vec", "float32 values of the convolutions on 8 sequences of 15 seconds a device (512 channels by 48000 places: 750 MiB an array, then halved: layer norm and GELU); then attention scores of 24 layers (8, 16 heads, 749 by 749) and the state (315 million weights, 12 bytes: 3.5 GiB); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "half": change("batch", ["batch 0.5"], batch=32),
         "bf16": change("dtype", ["dtype * bf16"], dtype="bfloat16"),
         "fsdp": change("sharding", ["shard weights 8", "shard opt_state 8"], shard=True)},
        topology="v6e:2x4", chips=8, batch=64, samples=240000),
    "torchax_bloom": program(
        "torchax_programs", "bloom", "logits of 250880 words for 8192 tokens of a device with float32 copies and gradient (7.7 GiB a float32 array); then attention scores and probabilities of 24 layers (4 sequences, 16 heads, 2048 by 2048: 512 MiB bfloat16); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "first12": change("checkpoint part", ["remat transformer.h[*] 12"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("checkpoint + batch", ["remat *", "batch 0.5"], remat=24, batch=16)},
        topology="v4:2x2x2", chips=8, batch=32, length=2048),
}

PROGRAMS |= {
    "eqx_forces": program(
        "equinox_programs", "forces", "float32 filters of pairs and their derivatives of first and second order (32 molecules of 64 atoms a device: 131072 pairs by 128: 64 MiB an array, basis of 50 padded to 128, about ten kept for each of 6 blocks); the state is tiny; fits",
        {"remat": change("checkpoint", ["remat *"], remat=6),
         "half": change("batch", ["batch 0.5"], molecules=512),
         "micro": change("micro-batches", ["micro 4"], micro=4),
         "double": change("batch", ["batch 2"], molecules=2048)},
        topology="v5e:2x4", chips=8, molecules=1024, atoms=64),
    "linen_t5x": program(
        "linen_programs", "t5x", "attention scores and probabilities of 24 encoder and twice 24 decoder attentions (16 sequences, 8 of 32 heads, 512 by 512: 128 MiB float32, 64 MiB bfloat16), MLP values (5120/4 wide, 20 MiB); weights divided by 4 (2.8 billion: 2.7 GiB) and gradients; Adafactor's second moments, whole on every device and not factored for attention kernels of three dimensions (4.5 GiB); does not fit or nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "fsdp": change("sharding", ["shard params 2"], fsdp=True),
         "zero": change("sharding", ["shard opt_state 4"], zero=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=64)},
        topology="v5e:2x4", shape=(2, 4), batch=32, inputs=512, targets=512),
    "linen_ppo": program(
        "linen_programs", "ppo_rnn", "observations that the scan over 64 steps collects (1024 environments a device by 8260 float32: 2 GiB), again shuffled and cut into minibatches (2 GiB each); the recurrent net's values (512 wide) are small; fits, more than half full",
        {"half": change("batch", ["batch 0.5"], envs=4096),
         "double": change("batch", ["batch 2"], envs=16384),
         "short": change("dimension", ["dim 64 32"], steps=32)},
        topology="v5e:2x4", chips=8, envs=8192),
    "hk_muzero": program(
        "haiku_programs", "muzero", "float32 activations of 6 towers of 16 blocks (64 positions a device, 19 by 19 by 256: 22.5 MiB an array, padded to 24: 28 MiB, about 6 a block: conv, norm, relu twice): 16 GiB; the state is small (40 million weights); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=256),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=1024)},
        topology="v5e:2x4", chips=8, batch=512),
    "nnx_videodit": program(
        "nnx_programs", "videodit", "attention scores and probabilities in space of 14 blocks (16 frames, 16 heads, 1024 by 1024: 1 GiB float32, 512 MiB bfloat16 a video; in time 1024 by 16 heads, 16 by 16 padded) for 4 videos of a device: about 84 GiB; then the state, whole (about 8 GiB with the moving average); does not fit or nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=14),
         "first7": change("checkpoint part", ["remat blocks[*] 7"], remat=7),
         "half": change("batch", ["batch 0.5"], batch=16),
         "fsdp": change("sharding", ["shard model 8", "shard opt_state 8", "shard average 8"], fsdp=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=14, batch=64)},
        topology="tpu7x:2x2x1", chips=8, batch=32),
}

PROGRAMS |= {
    "drjax_fedavg": program(
        "drjax_programs", "fedavg", "float32 logits of 32000 words of 8 clients of a device with their gradient (8 clients by 8 by 256 tokens: 16384: 2 GiB an array); then weights, momentum and gradients of 8 clients of a device (58 million weights: 220 MiB each, 1.7 GiB an array of all); activations of 8 layers are small; nearly full or fits",
        {"half": change("batch", ["batch 0.5"], batch=4),
         "fewer": change("dimension", ["dim 64 32"], clients=32),
         "remat": change("checkpoint", ["remat layer_*"], remat=True),
         "short": change("dimension", ["dim 256 128"], length=128)},
        topology="v5e:2x4", chips=8, clients=64),
}

_last = ("mt_gemma4_e4b", "linen_t5x")
for _name in ("drjax_fedavg", "hk_muzero", "nnx_videodit") + _last:
    PROGRAMS[_name] = PROGRAMS.pop(_name)
