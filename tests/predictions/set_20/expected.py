"""The twentieth set: outside programs; cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "mt_qwen3_14b": program(
        "maxtext_programs", "train", "float32 logits of 151936 words for 8192 tokens of a device with their gradient (4.6 GiB an array, two or three); then the state (14.8 billion weights, 12 bytes over 16 devices: 10.3 GiB), gradients (3.4 GiB) and what the scan over 40 layers saves: inputs and attention outputs by the policy save_out_proj (80 MiB a layer each: 6.3 GiB); nearly full or does not fit",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=2),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "both": change("chunked loss + batch", ["chunk logits 8", "batch 2"], num_vocab_tiling=8, per_device_batch_size=8)},
        compile_topology="v6e-16", model_name="qwen3-14b", per_device_batch_size=4, max_target_length=2048, remat_policy="save_out_proj"),
    "mt_llama31_405b": program(
        "maxtext_programs", "train", "inputs of 126 layers saved by the scan (4 sequences of 8192 by 16384/4 bfloat16: 256 MiB a layer, 31.5 GiB), the state (405 billion weights, 12 bytes over 256 devices: 17.7 GiB) and gradients (5.9 GiB); logits of 128256 words divided by 4 (32768 tokens by 32064: 3.9 GiB float32); fits, more than half full",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=0.5),
         "double": change("batch", ["batch 2"], per_device_batch_size=2),
         "short": change("dimension", ["dim 8192 4096"], max_target_length=4096),
         "nodonate": change("donation (undone)", [], donate=False)},
        compile_topology="v5p-512", model_name="llama3.1-405b", per_device_batch_size=1, max_target_length=8192, ici_tensor_parallelism=4, ici_fsdp_parallelism=-1),
    "mt_olmo3_32b": program(
        "maxtext_programs", "train", "the state (32 billion weights, 12 bytes over 16 devices: 22.5 GiB), gradients (7.5 GiB); float32 logits of 100278 words for 16384 tokens of a device with their gradient (6.1 GiB an array); inputs of 64 layers saved by the scan (160 MiB a layer: 10 GiB); fits, more than half full",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=0.5),
         "double": change("batch", ["batch 2"], per_device_batch_size=2),
         "short": change("dimension", ["dim 16384 8192"], max_target_length=8192),
         "bf16": change("dtype (state)", ["dtype state bf16"], weight_dtype="bfloat16")},
        compile_topology="v5p-32", model_name="olmo3-32b", per_device_batch_size=1, max_target_length=16384, ici_context_parallelism=4, ici_fsdp_parallelism=-1),
}
PROGRAMS |= {
    "torchax_pythia": program(
        "torchax_programs", "pythia", "attention scores and probabilities of 24 layers (4 sequences, 16 heads, 2048 by 2048: float32 1 GiB, bfloat16 512 MiB an array): 12 to 36 GiB; then MLP values (8192 tokens by 8192: 128 MiB, before and after GELU) and float32 logits of 50304 words (1.5 GiB an array); the state is small (1.4 billion weights, 6 bytes over 8 devices: 1 GiB); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "first12": change("checkpoint part", ["remat gpt_neox.layers[*] 12"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=24, batch=64)},
        topology="v6e:2x4", chips=8, batch=32, length=2048),
    "torchax_videomae": program(
        "torchax_programs", "videomae", "float32 attention scores and probabilities of 24 layers (2 clips, 16 heads, 1568 by 1568: 320 MiB an array padded: 15 GiB for two a layer), MLP values (3136 tokens by 4096: 49 MiB, before and after GELU); then the state, whole (305 million weights, 12 bytes: 3.4 GiB) and gradients (1.1 GiB); fits, nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "double": change("batch", ["batch 2"], batch=32),
         "bf16": change("dtype", ["dtype * bf16"], dtype="bfloat16"),
         "fsdp": change("sharding", ["shard weights 8", "shard opt_state 8"], shard=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=24, batch=32)},
        topology="v4:2x2x2", chips=8, batch=16),
    "kh_llama3": program(
        "keras_programs", "llama3", "logits of 128256 words for 8192 tokens of a device (float32 3.9 GiB an array with log-softmax and gradient); attention scores and probabilities of 16 layers (4 sequences, 32 heads, 2048 by 2048: float32 2 GiB, bfloat16 1 GiB): 16 to 48 GiB; the state divided by 8 (1.24 billion weights, 12 bytes: 1.7 GiB); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=16),
         "half": change("batch", ["batch 0.5"], batch=16),
         "quarter": change("batch", ["batch 0.25"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 0.5"], remat=16, batch=16)},
        topology="v6e:2x4", chips=8, batch=32, length=2048),
    "kh_vgg": program(
        "keras_programs", "vgg", "float32 activations of the first convolutions (64 images a device: 224 by 224 by 64: 784 MiB an array or twice that by padding to 128 channels, then 112 by 112 by 128: 392 MiB), their relu and gradients; the state, whole (15 to 138 million weights, 8 bytes) is small; fits, more than a third full",
        {"half": change("batch", ["batch 0.5"], batch=256),
         "double": change("batch", ["batch 2"], batch=1024),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "quad": change("batch", ["batch 4"], batch=2048)},
        topology="v5e:2x4", chips=8, batch=512),
}
PROGRAMS |= {
    "jax_kernels": program(
        "jax_programs", "kernels", "values that 28 layers save for the gradient (16384 tokens of a device, bfloat16: inputs, norms 32 MiB, queries and attention's output 64 MiB, keys and values 32 MiB, MLP values of 3072: 96 MiB each, gate, up, silu, product; splash's logsumexp): about 0.6 GiB a layer, 16 GiB; no logits (fused loss), the table gathered in float32 (594 MiB) and its gradient; the state is 0.9 GiB; fits, more than half full",
        {"remat": change("checkpoint", ["remat layer_*"], remat=28),
         "first14": change("checkpoint part", ["remat layer_* 14"], remat=14),
         "double": change("batch", ["batch 2"], batch=16),
         "both": change("checkpoint + batch", ["remat layer_*", "batch 4"], remat=28, batch=32)},
        topology="v6e:2x4", chips=8, batch=8, length=16384),
    "jax_hyena": program(
        "jax_programs", "hyena", "float32 values of 18 layers (2 sequences of 8192 by 864: 56 MiB, padded to 896; projections of 2592, three shifted products: 162 MiB each; spectra of 8193 complex numbers of 864 channels: 112 MiB; MLP 3456 wide: 216 MiB before and after GELU): about 1 GiB a layer, 18 GiB; float32 logits of 50304 words (3.1 GiB an array); does not fit",
        {"remat": change("checkpoint", ["remat layer_*"], remat=18),
         "first9": change("checkpoint part", ["remat layer_* 9"], remat=9),
         "half": change("batch", ["batch 0.5"], batch=8),
         "short": change("dimension", ["dim 8192 4096"], length=4096),
         "both": change("checkpoint + batch", ["remat layer_*", "batch 0.5"], remat=18, batch=8)},
        topology="v5e:2x4", chips=8, batch=16, length=8192),
    "jax_lattice": program(
        "jax_programs", "lattice", "what the scan over 100 steps saves (populations of 19 by 32 by 64 by 128 float32: 19 MiB, velocities, cu, equilibrium and the collided: three to six arrays of 19 MiB a step): 6 to 12 GiB; everything else is small; fits, nearly full",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "fewer": change("dimension", ["dim 100 50"], steps=50),
         "thin": change("dimension", ["dim 64 32"], ny=32),
         "more": change("dimension", ["dim 100 200"], steps=200)},
        topology="v5e:2x4", chips=8, steps=100),
}
PROGRAMS |= {
    "linen_dqn": program(
        "linen_programs", "dqn", "the replay memory of a chip: 500000 frames of 84 by 84 bytes (3.3 GiB, or 5.7 GiB if the tiles pad 84 by 84 to 96 by 128), once as it is donated and the scan updates it in place, twice if it is copied; activations of 512 samples (20 by 20 by 32 padded to 128 floats: 100 MiB) are small; fits",
        {"nodonate": change("donation (undone)", [], donate=False),
         "less": change("dimension", ["dim 500000 250000"], capacity=250000),
         "more": change("dimension", ["dim 500000 1000000"], capacity=1000000)},
        topology="v5e:2x2", chips=4, capacity=500000),
    "linen_vae_decode": program(
        "linen_programs", "vae_decode", "float32 activations of the last two stages (2 images of 1024 by 1024: 256 channels 2 GiB an array after up-sampling, 128 channels 1 GiB; two or three of them alive in convolution, normalisation and swish); the middle attention's scores (2 of 16384 by 16384 float32: 2 GiB an array, with the softmax twice) perhaps as much; weights are small; fits, about half full",
        {"half": change("batch", ["batch 0.5"], batch=8),
         "double": change("batch", ["batch 2"], batch=32),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "blocks": change("blockwise attention", ["blockwise *"], blocks=16),
         "small": change("dimension", ["dim 128 64"], side=64)},
        topology="v5e:2x4", chips=8, batch=16),
    "linen_serve": program(
        "linen_programs", "serve", "the cache of 48 layers: keys and values of 16 sequences of 2048 by 25 heads of 64, bfloat16 (100 MiB an array without padding: 9.4 GiB; heads or sizes padded to tiles: up to twice or more), updated in place; bfloat16 weights, whole (2.9 GiB); nearly full or does not fit",
        {"half": change("batch", ["batch 0.5"], batch=64),
         "double": change("batch", ["batch 2"], batch=256),
         "short": change("dimension", ["dim 2048 1024"], length=1024),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x4", chips=8, batch=128, length=2048),
    "linen_vit_sam": program(
        "linen_programs", "vit_sam", "values of 24 layers for one of the two gradients (32 images a device, 196 places: attention scores and probabilities 32 by 16 by 196 by 196 padded: 50 to 100 MiB bfloat16 each; MLP values 4096 wide: 50 MiB before and after GELU; queries, keys, values and norms 12 MiB each): about 0.3 GiB a layer, 7 GiB; then the state, whole (304 million weights, 12 bytes: 3.4 GiB), perturbed weights and gradients (1.1 GiB each); nearly full",
        {"remat": change("checkpoint", ["remat block_*"], remat=24),
         "first12": change("checkpoint part", ["remat block_* 12"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=128),
         "zero": change("sharding", ["shard opt_state 8"], zero=True),
         "both": change("checkpoint + batch", ["remat block_*", "batch 2"], remat=24, batch=512)},
        topology="v5e:2x4", chips=8, batch=256),
}
PROGRAMS |= {
    "hk_evoformer": program(
        "haiku_programs", "evoformer", "what the scan over blocks saves without recomputing (one protein of a device, float32): attention scores and probabilities of rows (128 by 8 by 256 by 256: 256 MiB an array), of columns (256 by 8 by 128 by 128: 128 MiB), of triangles (2 times 256 by 4 by 256 by 256: 256 MiB an array), the outer product (256 by 256 by 1024: 256 MiB), values of transitions (128 by 256 by 1024: 128 MiB): about 2.5 GiB a block, 120 GiB; does not fit",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "both": change("checkpoint + dtype", ["remat scan", "compute bf16"], remat=True, half=True),
         "rows": change("dimension", ["dim 124 64"], rows=64)},
        topology="v5p:2x2x1", chips=4, batch=4, rows=124, blocks=48),
}
PROGRAMS |= {
    "eqx_llama": program(
        "equinox_programs", "llama", "what the scan over 16 layers saves without recomputing (2 sequences of 2048 of a device: attention scores or probabilities 2 by 32 by 2048 by 2048, bfloat16 512 MiB or float32 1 GiB; MLP values of 8192: 64 MiB each, four of them): 12 to 28 GiB; then float32 logits of 128256 words (2 GiB an array, with the gradient two or three); the state is 1.7 GiB; nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "half": change("batch", ["batch 0.5"], batch=8),
         "bf16": change("dtype (state)", ["dtype model bf16", "dtype opt_state bf16"], state="bfloat16"),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=32)},
        topology="v6e:2x4", chips=8, batch=16, length=2048),
    "nnx_simclr": program(
        "nnx_programs", "simclr", "float32 activations of the first stages of the ResNet (64 images of a device: 112 by 112 by 64 padded to 128: 392 MiB; 56 by 56 by 256: 196 MiB an array, convolution, normalisation and relu of 16 blocks): 8 to 12 GiB; the state is small (28 million weights, 8 bytes); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=16),
         "half": change("batch", ["batch 0.5"], batch=128),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=16, batch=512)},
        topology="v5e:2x4", chips=8, batch=256),
}
PROGRAMS |= {
    "tunix_lora": program(
        "tunix_programs", "lora", "logits of 151936 words (a half of them on a device) for 4 sequences of 1024: one-hot labels and log-softmax in float32 (1.16 GiB an array, three or four) and bfloat16 logits; attention scores and probabilities of 36 layers (4 by 16 of 32 heads by 1024 by 1024: float32 256 MiB, bfloat16 128 MiB: 4.5 to 13 GiB), MLP values (6144 wide: 48 MiB an array); the frozen weights in bfloat16 (8.2 billion over 8 devices: 1.9 GiB), adapters and their moments are small; fits, more than half full",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], batch=8),
         "double": change("batch", ["batch 2"], batch=32),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat="DECODER", batch=32)},
        topology="v6e:2x4", shape=(4, 2), batch=16, length=1024),
    "gemma_reward": program(
        "gemma_programs", "reward", "values of 26 layers without recomputing: attention scores and probabilities (8 sequences, 4 heads, 1024 by 1024: float32 128 MiB, bfloat16 64 MiB an array), MLP values (8192 tokens by 6912: 108 MiB each, gate, activation, product), norms in float32 (8192 by 1152: 36 MiB): about 0.7 GiB a layer, 18 GiB; the state is small (1 billion weights, divided by 8); no logits; does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], pairs=16),
         "micro": change("micro-batches", ["micro 4"], micro=4),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, pairs=64)},
        topology="v5e:2x4", chips=8, pairs=32, length=1024),
}
