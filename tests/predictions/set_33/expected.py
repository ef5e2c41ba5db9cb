"""The thirty-third set: cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "jax_modernbert": program(
        "pallas_train_programs", "modernbert", "MLP values that the scan saves of 28 layers (2 packed rows of 4096 of a device: 8192 tokens by 2624, bfloat16 41 MiB, padded 2688: four, and 5248 together): 5 to 7 GiB; queries, keys, values and what was seen (16 heads of 64, padded to 128 where heads come before the time: 32 MiB each, otherwise 16 MiB, four to six) : 3 to 6 GiB; tokens of 1024 (16 MiB, six, float32 32 MiB in the norms): 3 to 4 GiB; logits of 50368 words (8192 tokens, float32: 1.54 GiB, bfloat16 0.77 GiB, two): 2.5 to 4 GiB; the state, whole (395 million, 12 bytes): 4.4 GiB, gradients 1.5 GiB; 75 to 105 % of 31 GiB (moved from v5e, which refused it with 28 GiB)",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=4),
         "both": change("checkpoint + chunked loss", ["remat *", "chunk logits 8"], remat=True, chunks=8),
         "zero": change("checkpoint + sharding (ZeRO)", ["remat *", "shard opt_state 4"], remat=True, zero=True)},
        topology="v6e:2x2", chips=4, batch=8),
    "jax_ragged": program(
        "pallas_serve_programs", "ragged", "the pages (40 layers of 10240 pages of 32, 2 times 2 of 16 heads of 128 on a device, bfloat16: 320 MiB a layer): 12.5 GiB, and a layer or all again where the scatter is not in place or the kernel wants another layout of 4 heads; the weights (23.6 billion in bfloat16 over 4): 11 GiB; MLP values (2048 tokens by 8192: 32 MiB, three), tokens of 5120 (20 MiB, several), logits (256 by 32768: 16 to 32 MiB) are small; 75 to 85 % of 31 GiB",
        {"nodonate": change("donation (undone)", [], donate=False),
         "pages": change("dimension", ["dim 10240 5120"], pages=5120),
         "int8": change("dtype", ["dtype kv_caches s8"], kept="int8"),
         "tokens": change("dimension", ["dim 2048 8192"], tokens=8192)},
        topology="v6e:2x2", chips=4),
    "jax_muon": program(
        "muon_programs", "gpt", "scores and probabilities of 16 layers (4 sequences of 1024 of a device, 16 heads: float32 256 MiB, bfloat16 128 MiB, one to three): 4 to 8 GiB; the state, whole (1.01 billion: weights 3.8 GiB, Muon's momentum of 805 million 3 GiB, Adam's two of 206 million 1.5 GiB): 8.3 GiB; gradients 3.8 GiB and the updates of Muon (3 GiB) where not all are freed: 4 to 7 GiB; MLP values (4096 tokens by 8192: 64 MiB, two or three): 2 to 3 GiB; tokens of 2048 (16 MiB, ten): 2.5 GiB; float32 logits (786 MiB, bfloat16 393 MiB): 1.5 to 2.5 GiB; weights in bfloat16 up to 1.9 GiB; 75 to 100 % of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=16),
         "zero": change("sharding (ZeRO)", ["shard opt_state 8"], zero=True),
         "mu": change("dtype", ["dtype mu bf16"], momentum="bfloat16"),
         "flash": change("blockwise attention", ["blockwise *"], blockwise=True)},
        topology="v6e:2x4", chips=8, batch=32),
    "kh_bart": program(
        "keras_programs", "bart", "scores and probabilities of 12 encoder layers (4 articles of 1024 of a device, 16 heads: bfloat16 128 MiB, float32 256 MiB, with dropout and its mask two to four): 4.5 to 9 GiB; the state, whole (406 million, 12 bytes): 4.5 GiB, gradients 1.5 GiB, in bfloat16 0.75 GiB; MLP values of the encoder (4096 tokens by 4096: 32 MiB, three or four): 1.2 to 1.5 GiB; tokens of 1024 (8 MiB, twelve, float32 and masks in the norms): 1.5 GiB; crossing scores of the decoder (4 by 16 by 256 by 1024: 32 MiB bfloat16, two to four): 1 GiB; logits of 50265 words (1024 tokens: 98 to 196 MiB, three): 0.5 GiB; 85 to 115 % of 16 GiB, less where the compiler recomputes",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "half": change("batch", ["batch 0.5"], batch=8),
         "double": change("batch", ["batch 2"], batch=32)},
        topology="v5e:2x2", chips=4, batch=16),
    "kh_swin": program(
        "keras_programs", "swin", "values of the 18 blocks of the third stage (64 pictures of a device, 196 places of 512: bfloat16 12 MiB, of 2048: 48 MiB; scores of 256 windows by 16 heads, 49 by 49 padded to 56 or 64 by 128: 64 MiB bfloat16, 128 MiB float32, two to four): 300 to 600 MiB a block: 6 to 10 GiB; of the first stage (3136 places of 128: 49 MiB, of 512: 196 MiB; scores of 4096 windows by 4 heads: 256 to 512 MiB, two to four): 1 to 2.5 GiB a block, two: 2 to 5 GiB; of the second, half of it: 1 to 2.5 GiB; windows cut out, shifted and put together again (49 places padded to 56, 32 channels of a head to 128): up to as much again; the state, whole (88 million, 12 bytes): 1 GiB; does not fit 16 GiB unless the compiler recomputes",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "half": change("batch", ["batch 0.5"], batch=128),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=24, batch=512)},
        topology="v5e:2x2", chips=4, batch=256),
    "torchax_videomae": program(
        "torchax_programs", "videomae", "float32 scores and probabilities of 12 layers (4 films of a device, 12 heads, 1568 by 1568, padded to 1664: 470 to 500 MiB, one to three): 5.6 to 17 GiB; MLP values (6272 tokens by 3072: 74 MiB, three): 2.6 GiB; tokens of 768 (18 MiB, ten to twelve; heads of 64 padded to 128): 2.5 GiB; the state, whole (86 million, 12 bytes): 1 GiB, gradients 0.3 GiB; films (4 by 16 by 3 by 224 by 224 float32: 37 MiB, patches of them as much, padded); 75 to 130 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "first6": change("checkpoint part", ["remat videomae.encoder.layer[*] 6"], remat=6),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=12, batch=64)},
        topology="v5e:2x2", chips=4, batch=16),
    "torchax_starcoder": program(
        "torchax_programs", "starcoder", "scores and probabilities of 30 layers (2 sequences of 1024 of a device, 24 heads: bfloat16 96 MiB, float32 192 MiB, one or two): 3 to 8 GiB; MLP values (2048 tokens by 12288: 48 MiB, two or three): 3 to 4.5 GiB; tokens of 3072 (12 MiB, ten; keys and values repeated for 24 heads): 3.5 to 4.5 GiB; the state (3.03 billion in bfloat16, 6 bytes over 8): 2.1 GiB, gradients 0.7 GiB; weights gathered of several layers (96 million: 183 MiB a layer); logits of 49152 words (bfloat16 192 MiB, float32 384 MiB): 0.8 GiB; 80 to 125 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=30),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=30, batch=64)},
        topology="v5e:2x4", chips=8, batch=16),
    "hk_evoformer": program(
        "haiku_programs", "evoformer", "scores of one block, as its backward runs, float32: triangle attention (384 rows, 4 heads, 384 by 384: 864 MiB, two to four): 1.7 to 3.5 GiB, row attention (128 by 8 by 384 by 384: 576 MiB, two to four), twice 2 kinds where several stay: 4 to 8 GiB in all; what the scan keeps of 48 blocks (pairs 384 by 384 by 128: 72 MiB, alignment 128 by 384 by 256: 48 MiB): 5.6 GiB, once more where it is copied; the outer product (384 by 384 by 1024: 576 MiB, two or three): 1 to 1.7 GiB; pairs of 512 in the transition (288 MiB, three): 0.9 GiB; pairs of 128 (72 MiB, twenty; heads of 32 padded to 128: 288 MiB): 2 to 4 GiB; the state is small (88 million, 12 bytes: 1 GiB); 75 to 110 % of 16 GiB",
        {"bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "double": change("batch", ["batch 2"], batch=8),
         "crop": change("dimension", ["dim 384 256"], crop=256)},
        topology="v5e:2x2", chips=4, batch=4),
    "eqx_unet3d": program(
        "equinox_programs", "unet3d", "float32 values at full size (2 patches of a device, 32 channels, 128 by 128 by 128: 512 MiB; where 32 channels are last, padded to 128: 2 GiB): two residual blocks with two convolutions, norms, relu and skip each, the joined 64 channels: ten to fourteen of 512 MiB: 5 to 8 GiB, up to four times that where padded; a quarter of it at half size (64 channels: 128 MiB): 1.5 to 2 GiB; less below; logits of 4 (64 MiB, padded up to 2 GiB), scans of 4 (64 MiB, padded); the state is small (21 million, 8 bytes); 60 to 200 % of 16 GiB, which v5e refused with 37 GiB: with 4 patches of a device instead of 2, twice of all that: 60 to 90 % of 95 GiB",
        {"bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "half": change("batch", ["batch 0.5"], batch=8),
         "remat": change("checkpoint", ["remat *"], remat=True),
         "double": change("batch", ["batch 2"], batch=32)},
        topology="v5p:2x2x1", chips=4, batch=16),
    "linen_ulysses": program(
        "linen_programs", "ulysses", "scores of one layer, as its backward runs (2 texts of 8192 of a device, 4 of 16 heads: float32 2 GiB, bfloat16 1 GiB, two or three): 4 to 8 GiB; float32 logits of 128256 words (4096 tokens: 1.96 GiB, bfloat16 0.98 GiB, two): 3 to 5 GiB; the state (1.76 billion, 12 bytes over 16): 1.3 GiB, gradients 0.4 GiB; the embedding and head gathered (bfloat16 0.49 GiB, float32 0.98 GiB) and their whole gradients: 1 to 3 GiB; inputs of 24 layers (4096 by 2048: 16 MiB): 0.4 GiB; weights of one layer gathered (102 MiB, float32 204 MiB); 65 to 105 % of 16 GiB",
        {"flash": change("blockwise attention", ["blockwise *"], blockwise=True),
         "half": change("batch", ["batch 0.5"], batch=4),
         "double": change("batch", ["batch 2"], batch=16),
         "both": change("blockwise attention + batch", ["blockwise *", "batch 2"], blockwise=True, batch=16)},
        topology="v5e:4x4", shape=(4, 4), batch=8),
    "nnx_command": program(
        "nnx_programs", "command", "the state (3.18 billion, 12 bytes over 4): 8.9 GiB, gradients 3 GiB; float32 logits of 64000 of 256000 words (6 sequences of 1024 of a device: 1.46 GiB, bfloat16 0.73 GiB, two or three): 3 to 5 GiB; scores and probabilities of 24 layers (6 by 5 of 20 heads by 1024 by 1024: float32 120 MiB, bfloat16 60 MiB, one to three): 3 to 6 GiB; MLP values (6144 tokens by 2560: 30 MiB, three or four): 2 to 3 GiB; tokens of 2560, whole on each (30 MiB, three to five, float32 60 MiB in the norms): 2 to 4 GiB; 75 to 100 % of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "zero": change("sharding (ZeRO)", ["shard opt_state 4"], zero=True),
         "chunk": change("checkpoint + chunked loss", ["remat *", "chunk logits 8"], remat=24, chunks=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=24, batch=48)},
        topology="v6e:4x4", shape=(4, 4), batch=24),
}
