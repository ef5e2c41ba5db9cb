"""The thirty-second set: cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "eqx_craftax": program(
        "eqx_programs", "craftax", "what 2048 environments see in 64 steps (131072 by 8268 float32, of padded 8320: 4.06 GiB), stored by the scan, and its shuffled copy of each epoch, in 8 parts (4.06 GiB), perhaps a third for another layout; one part (16384 by 8268: 0.5 GiB) where it is copied out, its activations (16384 by 512: 32 MiB, eight); the environments' state is small (maps of 48 by 48: 48 padded to 128: 48 MiB, what was last seen: 65 MiB), the network too (9.6 million, 12 bytes); 55 to 85 % of 16 GiB",
        {"half": change("batch", ["batch 0.5"], envs=1024),
         "double": change("batch", ["batch 2"], envs=4096),
         "short": change("dimension", ["dim 64 32"], steps=32)},
        topology="v5e:1x1", chips=1, envs=2048),
    "eqx_qlora": program(
        "eqx_programs", "qlora", "what the scan over 28 layers saves (6 sequences of 512; resized from 4 of 1024, which was refused with 42.7 GiB): scores and probabilities (24 heads: float32 144 MiB, bfloat16 72 MiB, two or three): 6 to 10 GiB; dequantised matrices (100 million a layer, bfloat16 192 MiB), as gradients go through them, where they are saved rather than computed again: 5.3 GiB, twice with the scaled codes: 10 GiB; MLP values (3072 tokens by 8192: 48 MiB, three or four): 4 to 5 GiB; tokens of 3072 (18 MiB, eight): 4 GiB; float32 logits of 128256 words (1.5 GiB, two); the codes (2.8 billion of 4 bits: 1.3 GiB), the embedding 0.73 GiB; LoRA and its state 0.3 GiB; 70 to 105 % of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=3),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=24)},
        topology="v6e:1x1", chips=1, batch=6, length=512),
    "jax_serve8": program(
        "jax_programs", "serve", "the cache (64 layers, 32 sequences, 8192, 1 of 8 heads on a device, 128, bfloat16: 4 GiB for keys and as much for values): 8 GiB if one head is not padded, twice where the scatter of a word is not in place or where the loop wants another layout; the weights in int8 (31 billion over 8): 3.7 GiB, the embedding in bfloat16 0.18 GiB; one layer's keys or values where they are copied out: 64 MiB; scores (32 by 5 by 8192: 5 MiB, padded 8) are small; 75 to 90 % of 16 GiB",
        {"half": change("batch", ["batch 0.5"], batch=16),
         "int8": change("dtype", ["dtype cache s8"], cache_type="int8"),
         "short": change("dimension", ["dim 8192 4096"], length=4096),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x4", chips=8, batch=32),
    "linen_prefill": program(
        "linen_programs", "prefill", "scores of one layer of the scan (8 prompts of 4096, 10 of 40 heads on a device: float32 5 GiB, bfloat16 2.5 GiB; scores and probabilities, two or three arrays): 7.5 to 15 GiB; the weights (14.8 billion in bfloat16 over 4): 6.9 GiB; caches that are returned (48 layers, 8 by 4096, 2 heads of 128, bfloat16: 0.75 GiB for keys and as much for values): 1.5 GiB, padded where 2 heads are; tokens of 5120 on every device (320 MiB, several, float32 640 MiB), MLP values (32768 by 3456: 216 MiB, three); 55 to 80 % of 31 GiB",
        {"flash": change("blockwise attention", ["blockwise *"], blockwise=True),
         "half": change("batch", ["batch 0.5"], batch=4),
         "double": change("batch", ["batch 2"], batch=16),
         "both": change("blockwise attention + batch", ["blockwise *", "batch 4"], blockwise=True, batch=32)},
        topology="v6e:2x2", chips=4, batch=8),
    "nnx_llama": program(
        "nnx_programs", "llama", "scores and probabilities of 16 layers of one of four micro-batches (2 sequences of 1024 of a device, 32 heads: bfloat16 128 MiB, float32 256 MiB, one or two): 4 to 8 GiB; MLP values (2048 tokens by 8192: 32 MiB, three or four): 2 GiB; the state (1.24 billion, 12 bytes over 8: 1.7 GiB), summed gradients in float32 (0.58 GiB, twice); tokens of 2048 (8 MiB, ten; heads of 64 padded to 128): 1.5 to 2.5 GiB; logits of 128256 words (2048 tokens: float32 1 GiB, bfloat16 0.5 GiB): 1.5 to 2.5 GiB; the embedding gathered (bfloat16 0.5 GiB) and its whole gradient (float32 1 GiB); weights gathered of several layers (bfloat16 116 MiB a layer), perhaps before the loop: 1.9 GiB; 75 to 115 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=16),
         "micro": change("micro-batches", ["micro 2"], micro=8),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=16, batch=256),
         "chunk": change("checkpoint + chunked loss", ["remat *", "chunk logits 8"], remat=16, chunks=8)},
        topology="v5e:2x4", chips=8, batch=64, micro=4),
    "torchax_olmo": program(
        "torchax_programs", "olmo", "scores and probabilities of 16 layers (4 sequences of 1024 of a device, 16 heads: bfloat16 128 MiB, float32 256 MiB, one to three): 4 to 8 GiB; MLP values (4096 tokens by 8192: 64 MiB, three or four): 3 to 4 GiB; tokens of 2048 (16 MiB, ten to twelve, two in float32): 3 GiB; logits of 50304 words (bfloat16 393 MiB, float32 786 MiB, two or three): 2 GiB; the state (1.18 billion in bfloat16, 6 bytes over 8: 0.8 GiB), weights gathered of several layers (128 MiB a layer) and their gradients; 75 to 110 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=16),
         "first8": change("checkpoint part", ["remat model.layers[*] 8"], remat=8),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=16, batch=128)},
        topology="v5e:2x4", chips=8, batch=32),
    "hk_lit": program(
        "haiku_programs", "lit", "MLP values of the 12 layers of the text tower, as they run one after another (384 texts of 64 of a device: 24576 tokens by 3072: 144 MiB, three or four): 5 to 7 GiB; its tokens of 768 (36 MiB, ten; heads of 64 padded to 128): 4 to 5 GiB; its scores (384 by 12 by 64 by 64, padded to 128: float32 144 MiB, bfloat16 72 MiB, two): 2.5 GiB; the locked tower keeps one layer (384 pictures, 196 patches: MLP 75264 by 4096: 588 MiB, two; scores 16 heads by 196 by 256: float32 1.2 GiB, bfloat16 0.6 GiB; tokens 147 MiB), before the text tower runs: up to 3 GiB; its weights in bfloat16 0.56 GiB; the trained state (111 million, 12 bytes): 1.25 GiB and gradients 0.4 GiB; pictures of bytes (384 by 224 by 224 by 3, padded: 55 MiB to 2.3 GiB); 75 to 110 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=768),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=3072)},
        topology="v5e:2x2", chips=4, batch=1536),
    "hk_sac": program(
        "haiku_programs", "sac", "the replay memory (4096 places of 512 environments: what is seen and what is seen next, 376 float32, padded to 384: 3 GiB each): 6 GiB, and twice more where the gather wants another layout or an insertion is not in place (resized from 1024 environments on v6e): 12 GiB; actions of 17, padded to 128: 1 GiB, or 0.13 GiB where another dimension is last; a batch (32768 by 256 float32: 32 MiB, a dozen): 0.4 GiB; the rest is small; 60 % of 16 GiB where one of them is copied at a time",
        {"double": change("batch", ["batch 2"], envs=1024),
         "bf16": change("dtype", ["dtype replay bf16"], memory="bfloat16"),
         "nodonate": change("donation (undone)", [], donate=False),
         "short": change("dimension", ["dim 4096 2048"], room=2048)},
        topology="v5e:1x1", chips=1, envs=512, room=4096, width=256),
    "kh_qwen3": program(
        "keras_programs", "qwen", "scores and probabilities of 28 layers (2 sequences of 1024 of a device, 16 heads: bfloat16 64 MiB, float32 128 MiB, one to three): 3.5 to 7 GiB where the compiler does not compute them again; float32 logits of 151936 words (2048 tokens: 1.16 GiB, bfloat16 0.58 GiB, two to four): 3 to 4.5 GiB; MLP values (2048 tokens by 3072: 12 MiB, four), queries of 2048 (8 MiB, four), tokens of 1024 (4 MiB, a dozen, float32 in the norms): 3.5 GiB; the state (0.6 billion, 12 bytes over 8: 0.84 GiB), the embedding gathered (float32 0.58 GiB, bfloat16 0.29 GiB) and its whole gradient, 0.6 to 1.2 GiB; weights gathered of several layers (60 MiB float32 each) and gradients; 65 to 100 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=28),
         "double": change("batch", ["batch 2"], batch=32),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=28, batch=32)},
        topology="v5e:2x4", chips=8, batch=16),
    "linen_lora8": program(
        "linen_lora_programs", "mistral", "dequantised matrices of 32 layers, as gradients go through them and the scan saves them rather than computes them again, gathered or not (218 million a layer: bfloat16 416 MiB whole): 13 GiB whole, 3.3 GiB divided; scores and probabilities (2 sequences of 512 of a device, 32 heads: float32 64 MiB, bfloat16 32 MiB, two or three): 3 to 4 GiB; MLP values (1024 tokens by 14336: 28 MiB, three or four): 3 to 3.5 GiB; tokens of 4096 (8 MiB, eight to ten): 2 to 2.5 GiB; the codes (7 billion bytes over 4: 1.6 GiB, gathered before the scan 6.5 GiB), embedding and head 0.5 GiB over 4; LoRA and its state, whole (42 million, 12 bytes): 0.47 GiB; 70 to 105 % of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=4),
         "both": change("checkpoint + batch", ["remat *", "batch 8"], remat=True, batch=64),
         "double": change("batch", ["batch 2"], batch=16)},
        topology="v6e:2x2", chips=4, batch=8),
    "nnx_segment": program(
        "nnx_segment_programs", "segment", "float32 logits of 150 kinds at the picture's size (32 pictures of a device, resized from 8, with which the program took 3.4 GiB; 518 by 518 by 150: 4.8 GiB, padded where 150 is last to 256: 8.2 GiB, otherwise 5 GiB), one or two of logits, exponentials and gradient: 5 to 10 GiB, less where they are fused; half-way resized (32 by 518 by 74 by 150 float32: 0.7 GiB, padded); the four layers' values resized (32 by 74 by 74 by 4096, bfloat16 1.34 GiB; float32 2.7 GiB, one or two); the frozen backbone one layer at a time (32 by 1369, padded to 1408: scores 16 heads float32 3.9 GiB, bfloat16 1.9 GiB; MLP 342 MiB); its weights in bfloat16 0.57 GiB; the head (21 million, 12 bytes: 0.25 GiB); 55 to 85 % of 16 GiB",
        {"half": change("batch", ["batch 0.5"], batch=64),
         "double": change("batch", ["batch 2"], batch=256),
         "kinds": change("dimension", ["dim 150 19"], kinds=19)},
        topology="v5e:2x2", chips=4, batch=128),
    "eqx_serve8": program(
        "eqx_serve_programs", "serve", "the caches (32 layers, 48 sequences of 8192, resized from 80 once v4 was seen to offer 15.25 GiB; 2 of 8 heads on a device, 128, bfloat16: 192 MiB for keys and as much for values): 12 GiB if two heads are not padded, and a layer's or more again where an update is not in place or the dots want another layout; the weights in int8 (7.5 billion over 4): 1.75 GiB, the embedding 0.24 GiB; scores (48 by 2 by 4 by 8192 float32: 12 MiB, padded 24, a few), dequantised matrices where they are materialised (14 to 28 MiB) are small; 90 to 105 % of 15.25 GiB",
        {"half": change("batch", ["batch 0.5"], batch=24),
         "int8": change("dtype + batch", ["dtype caches s8", "batch 2"], cache_type="int8", batch=96),
         "short": change("dimension", ["dim 8192 4096"], length=4096),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v4:2x2x1", chips=4, batch=48),
}
