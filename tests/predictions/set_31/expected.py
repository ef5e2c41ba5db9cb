"""The thirty-first set: cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "kh_gemma_lora": program(
        "keras_programs", "gemma_lora", "MLP values that 26 layers keep though they are frozen, as gradients go through them (8192 tokens by 9216: bfloat16 144 MiB, three or four): 11 to 15 GiB, tokens of 2304 (36 MiB bfloat16, 72 MiB float32 in the norms, eight): 8 to 12 GiB, scores of soft cap and softmax (16 by 8 by 512 by 512: 64 MiB bfloat16, 128 MiB float32, two to four): 5 to 10 GiB, where the compiler does not compute them again by itself; the frozen weights (2.6 billion in bfloat16): 4.9 GiB; logits of 256000 words (8192 tokens: bfloat16 3.9 GiB, float32 7.8 GiB, one to three); LoRA and its state are small; does not fit 16 GiB unless the compiler recomputes",
        {"remat": change("checkpoint", ["remat *"], remat=26),
         "half": change("batch", ["batch 0.5"], batch=8),
         "short": change("dimension", ["dim 512 256"], length=256),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=26, batch=32)},
        topology="v5e:1x1", chips=1, batch=16),
    "torchax_decode": program(
        "torchax_programs", "decode", "the static cache (32 layers, 32 sequences, 2 of 8 heads on a device, 8192, 128, bfloat16: 128 MiB a layer for keys and as much for values): 8 GiB, and again where an update is not in place; the weights (8.0 billion in bfloat16 over 4): 3.75 GiB; one layer's keys and values repeated for 4 times as many heads (512 MiB each) where they are materialised: 1 GiB or more; scores (32 by 8 by 8192, float32: 8 MiB) are small; 75 to 90 % of 16 GiB",
        {"half": change("batch", ["batch 0.5"], batch=16),
         "short": change("dimension", ["dim 8192 4096"], length=4096),
         "double": change("batch", ["batch 2"], batch=64),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x2", chips=4, batch=32),
    "eqx_dit": program(
        "equinox_programs", "dit", "scores and probabilities that the scan over 28 blocks saves (3 pictures of a device, 1024 places, 16 heads: float32 192 MiB, bfloat16 96 MiB, two or three): 8 to 13 GiB; MLP values (3072 tokens by 4608: 27 MiB, three): 2.3 GiB; tokens of 1152 (7 MiB, twelve; 16 heads of 72, padded to 128): 3 GiB; the state, whole (675 million, 12 bytes, and the average, 4): 10 GiB, gradients 2.5 GiB, weights in bfloat16 1.25 GiB; does not fit 31 GiB or just",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=48),
         "average": change("dtype", ["dtype ema bf16"], average="bfloat16"),
         "zero": change("checkpoint + sharding (ZeRO)", ["remat *", "shard opt_state 4", "shard ema 4"], remat=True, zero=True)},
        topology="v6e:2x2", chips=4, batch=12),
    "tunix_qlora": program(
        "tunix_programs", "qlora", "what 26 layers keep (16384 tokens, on every device, 1/4 of the features: gate, its gelu, up, their product of 9216/4: 72 MiB each; scores, capped, and probabilities 32 by 512 by 2 by 512: 32 to 64 MiB, two or three; tokens of 2304, partly whole: 18 to 72 MiB, a few): 300 to 600 MiB a layer: 8 to 15 GiB, less where the compiler recomputes; logits of 256128/4 words (bfloat16 2 GiB; log_softmax in float32: 4 GiB): 3 to 6 GiB; the weights are small (nf4: 0.25 GiB, the embedding 0.3 GiB, dequantised layers), LoRA too; 80 to 105 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat="DECODER", batch=64),
         "short": change("dimension", ["dim 512 256"], length=256)},
        topology="v5e:2x2", shape=(1, 4), batch=32),
    "jax_mixtral": program(
        "jax_programs", "mixtral", "scores of one layer, as its backward runs (8 sequences of 4096 of a device, 32 heads: float32 16 GiB, bfloat16 8 GiB, two to four): 24 to 40 GiB; the state (46.7 billion, 12 bytes over 32): 16.3 GiB, gradients 5.4 GiB; float32 logits of 32000 words (32768 tokens: 3.9 GiB, two): 8 GiB; rows of experts (2 experts of 32 times 1280: by 14336: 2.3 GiB, four; by 4096: 640 MiB, three): 10 GiB; inputs of layers are on the host; dispatch (8 by 4096 by 8 by 1280: bfloat16 640 MiB, a few); 65 to 95 % of 95 GiB",
        {"flash": change("blockwise attention", ["blockwise *"], blockwise=True),
         "host": change("offload", ["offload opt_state"], host=True),
         "half": change("batch", ["batch 0.5"], batch=128),
         "both": change("blockwise attention + chunked loss", ["blockwise *", "chunk logits 8"], blockwise=True, chunks=8)},
        topology="v5p:4x4x2", shape=(8, 4), batch=256),
    "linen_ppo": program(
        "linen_programs", "ppo", "the rollout's pictures (128 steps of 1280 environments of a device, 84 by 84 by 4, uint8: 4.3 GiB) and their shuffled copy (4.3 GiB), padded where 4 channels or 84 are not last-but-one to the tiles' liking; one minibatch of 40960 pictures, in float32: 4.3 GiB; the first convolution (20 by 20 by 32: 2 GiB, padded to 128 channels up to 8 GiB) before and after relu, and its gradient; the second (9 by 9 by 64: 0.8 GiB) and third (0.5 GiB); the state is small; does not fit 16 GiB",
        {"half": change("batch", ["batch 0.5"], envs=2560),
         "short": change("dimension", ["dim 128 64"], steps=64),
         "bf16": change("dtype", ["compute bf16"], dtype="bfloat16")},
        topology="v5e:2x2", chips=4, envs=5120),
}
# Written while the bases of the six above were compiled.
PROGRAMS |= {
    "kh_retinanet": program(
        "keras_programs", "retinanet", "float32 activations of ResNet 50 at 800 by 800 (24 pictures of a device: 0.5 to 1 GiB a picture where convolution, normalised and relu are kept, less where the compiler recomputes): 12 GiB or more; the two heads' convolutions (five levels, 13343 places of 256, 4 layers, twice, with relu: 110 to 220 MiB a picture): 2.6 to 5 GiB; the pyramid: 1.6 GiB; logits of 80 kinds at 120087 anchors (37 MiB, padded to 128: 59 MiB a picture, one to eight arrays of the focal loss): 2 to 8 GiB; the label encoder's overlaps (120087 by 100: 46 to 59 MiB a picture, a few): 2 to 4 GiB; the state is small (38 million, 8 bytes); over 90 % of 16 GiB, the compiler recomputing much",
        {"bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "half": change("batch", ["batch 0.5"], batch=48),
         "double": change("batch", ["batch 2"], batch=192)},
        topology="v5e:2x2", chips=4, batch=96),
    "torchax_depth": program(
        "torchax_programs", "depth", "float32 scores and probabilities of 24 layers of DINOv2 (8 pictures of a device, 16 heads, 1370 by 1370, padded to 1408: 0.94 GiB an array, one to three): 23 GiB or more where they are all kept; MLP values (10960 tokens by 4096: 171 MiB, three): 12 GiB; tokens of 1024 (43 MiB, twelve): 12 GiB; the neck and head of DPT (8 by 256 at 296 by 296: 684 MiB; at 518 by 518: 32 to 130 channels; a dozen): 6 to 10 GiB; the state, whole (335 million, 12 bytes: 3.75 GiB), gradients 1.25 GiB; does not fit 31 GiB unless the compiler recomputes scores by itself",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "first12": change("checkpoint part", ["remat backbone.encoder.layer[*] 12"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=32),
         "fsdp": change("checkpoint + sharding (FSDP)", ["remat *", "shard weights 8", "shard opt_state 8"], remat=24, shard=True)},
        topology="v6e:2x4", chips=8, batch=64),
    "nnx_whisper": program(
        "nnx_programs", "whisper", "what the scans save by the policy dots_with_no_batch_dims_saveable (18 sounds of a device): encoder, 32 layers of 27000 tokens: q, k, v, out, down of 1280 (66 MiB each), up of 5120 (264 MiB), the input: 660 MiB where all are kept: 14 to 21 GiB; decoder, 32 layers of 8064 tokens, keys and values of what was heard again in each (66 MiB each): 330 MiB or more: 8 to 10 GiB; one layer's scores as its backward runs (18 by 20 by 1500 by 1500: float32 3 GiB, bfloat16 1.5 GiB, one to three): 3 to 7 GiB; float32 logits of 51866 words (8064 tokens: 1.6 GiB, two); the state (1.5 billion, 12 bytes over 16: 1.1 GiB); does not fit 31 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], policy="nothing_saveable"),
         "half": change("batch", ["batch 0.5"], batch=144),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], policy="nothing_saveable", batch=576),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8)},
        topology="v6e:4x4", chips=16, batch=288),
    "hax_gpt2": program(
        "haliax_programs", "gpt2", "float32 scores and probabilities that hnn.Stacked saves of 36 layers, without checkpoints (2 sequences of 1024 of a device, 20 heads: float32 160 MiB, bfloat16 80 MiB, two or three): 8 to 15 GiB; MLP values (2048 tokens by 5120: 20 MiB, three or four): 2.5 GiB; tokens of 1280 (5 MiB, ten; heads of 64 padded to 128): 2 to 3 GiB; float32 logits of 50257 words (393 MiB, with the one-hot labels three or four): 1.5 GiB; the state (774 million, 12 bytes over 32: 0.3 GiB), weights in bfloat16 whole, where they are gathered before the scan: up to 1.4 GiB; does not fit 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=32),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=128)},
        topology="v5e:4x8", chips=32, batch=64, width=1280, heads=20, depth=36),
    "hk_flamingo": program(
        "haiku_programs", "flamingo", "scores and probabilities of the frozen language model that the layer stack saves of 16 layers, as gradients go through it (2 sequences of 1024 of a device, 16 heads: float32 128 MiB, bfloat16 64 MiB, two or three): 4 to 6 GiB; MLP values (2048 tokens by 8192: 32 MiB, three or four, of 20 layers): 2.5 GiB; tokens of 2048 (8 MiB, ten to fifteen, of 20 layers): 2 to 3 GiB; the state of what is trained, whole (0.28 billion, 12 bytes): 3.1 GiB, gradients 1 GiB, in bfloat16 0.5 GiB; the frozen weights (0.9 billion in bfloat16): 1.7 GiB; float32 logits (393 MiB, two); does not fit 16 GiB or just",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=32),
         "zero": change("sharding (ZeRO)", ["shard opt_state 8"], zero=True)},
        topology="v3:2x2", chips=8, batch=16, groups=4),
    "torchax_phi": program(
        "torchax_programs", "phi", "scores and probabilities of 24 layers of one of four micro-batches (4 sequences of 1024 of a device, 32 heads: bfloat16 256 MiB, float32 512 MiB, one or two): 6 to 18 GiB; MLP values (4096 tokens by 8192: 64 MiB, three): 4.6 GiB; tokens of 2048 (16 MiB, ten): 4 GiB; logits of 51200 words (bfloat16 400 MiB, float32 800 MiB, three): 2 GiB; the state (1.4 billion in bfloat16, 6 bytes over 8: 1 GiB), summed gradients in float32 (0.66 GiB, twice); weights gathered of several layers; 85 to 120 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "micro": change("micro-batches", ["micro 2"], micro=8),
         "double": change("batch", ["batch 2"], batch=256),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=24, batch=512)},
        topology="v5e:2x4", chips=8, batch=128),
}
