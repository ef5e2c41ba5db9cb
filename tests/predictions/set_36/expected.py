"""The thirty-sixth set: cause and changes written down before compiling."""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    "mt_qwen3_small": program(
        "maxtext_programs", "train", "dots that the scan over 28 layers saves by the policy minimal (2 sequences of 2048 of a device, 4096 tokens: queries 2048, keys and values 1024 each, out 2048, two of 6144 and the MLP's out of 2048: 20480 bfloat16, 160 MiB a layer): 4.4 GiB; logits of 151936 words (bfloat16 1.16 GiB, float32 2.3 GiB, one to three): 3.5 to 5.8 GiB; the state (1.72 billion, 12 bytes over 8): 2.4 GiB, gradients in float32 0.8 GiB; the embedding gathered (bfloat16 0.6 GiB) and its whole gradient (0.6 to 1.2 GiB): 1.2 to 1.8 GiB; MLP values of one layer in backward (48 MiB, four), layers' inputs (16 MiB, 28: 0.44 GiB), a layer's weights gathered (50 million, 96 MiB); 75 to 100 % of 16 GiB",
        {"full": change("checkpoint (policy)", ["remat scan"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "chunk": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8)},
        compile_topology="v5e-8", model_name="qwen3-1.7b", per_device_batch_size=2, max_target_length=2048, remat_policy="minimal", attention="flash", scan_layers="true", **FAKE),
    "mt_qwen3_moe": program(
        "maxtext_programs", "train", "the state (30.5 billion, 12 bytes over 8): 42.6 GiB, gradients in float32 14.2 GiB; logits of 151936 words (4 sequences of 4096 of a device, 16384 tokens: bfloat16 4.6 GiB, float32 9.3 GiB, one to three): 9 to 19 GiB; rows sorted by expert (16384 by 8: 131072 by 2048: bfloat16 512 MiB, four to eight as a layer's backward runs; by 768: 192 MiB, four): 3 to 5 GiB; inputs of 48 layers (16384 by 2048: 64 MiB): 3 GiB; a layer's experts gathered (604 million: bfloat16 1.13 GiB, two or three with the gradient, float32 2.25 GiB): 2 to 5 GiB; embedding and head gathered (bfloat16 0.6 GiB each) and their gradients: 1 to 3 GiB; 80 to 100 % of 95 GiB",
        {"mu": change("dtype", ["dtype mu bf16"], mu_dtype="bfloat16"),
         "double": change("batch", ["batch 2"], per_device_batch_size=8),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=2),
         "chunk": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8)},
        compile_topology="v5p-16", model_name="qwen3-30b-a3b", per_device_batch_size=4, max_target_length=4096, remat_policy="full", attention="flash", scan_layers="true", **FAKE),
}
PROGRAMS |= {
    "linen_llama": program(
        "linen_programs", "llama", "logits of 128256 words (4 sequences of 2048 of a device, 8192 tokens: bfloat16 1.96 GiB, float32 3.9 GiB, one to three): 6 to 8 GiB; inputs of 28 layers and what attention gives, saved by its name (8192 by 3072: 48 MiB each): 2.6 GiB; the state (3.2 billion, 12 bytes over 16): 2.25 GiB, gradients in float32 0.75 GiB; the table of words gathered (bfloat16 0.73 GiB) and its whole gradient (0.73 to 1.5 GiB): 1.5 to 2.2 GiB; MLP values of one layer (8192 by 8192: 128 MiB, three or four): 0.5 GiB; heads repeated, a layer's weights gathered (101 million: 192 MiB); 80 to 110 % of 16 GiB",
        {"micro": change("micro-batches", ["micro 4"], micro=4),
         "half": change("batch", ["batch 0.5"], batch=32),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8)},
        topology="v5e:4x4", chips=16, batch=64),
    "torchax_pegasus": program(
        "torchax_programs", "pegasus", "scores and probabilities of 16 layers of the encoder (4 texts of 1024 of a device, 16 heads, float32: 256 MiB, one or two kept, unless the compiler recomputes them): 4 to 8 GiB; values of the MLP (4096 tokens by 4096: 64 MiB, two of 16 layers): 1 to 2 GiB; tokens of 1024 (16 MiB, eight to twelve of 16 layers of the encoder): 2 to 3 GiB; scores of the cross-attention (4 by 16 by 128 by 1024: 32 MiB, two of 16): 0.5 to 1 GiB, its keys and values (16 MiB each): 0.5 GiB; the state (570 million, 12 bytes over 4): 1.6 GiB, gradients 0.5 GiB, weights gathered of several layers and the table of words (0.37 GiB) with its gradient (0.37 GiB); logits of 96103 words (512 tokens: 188 MiB, three): 0.6 GiB; 65 to 105 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=32)},
        topology="v5e:2x2", chips=4, batch=16),
    "torchax_olmo2": program(
        "torchax_programs", "olmo2", "(resized from 8 sequences of a device, whose 47 GiB were miscounted, with buffers inside fusions; it would have stayed) the state in bfloat16, whole (1.48 billion, 6 bytes): 8.3 GiB, gradients 2.8 GiB; scores and probabilities (4 sequences of 1024 of a device by 16 heads by 1024 by 1024: bfloat16 128 MiB, float32 256 MiB, one or two of 16 layers): 4 to 8 GiB; MLP values of 16 layers (4096 tokens by 8192: 64 MiB, three or four): 3 to 4 GiB; logits of 100352 words (bfloat16 0.77 GiB, float32 1.5 GiB, one to three): 2.3 to 3.9 GiB at another time than most gradients; tokens of 2048 (16 MiB, float32 32 MiB in the norms, a dozen of 16 layers): 3 to 4 GiB; 75 to 100 % of 31 GiB, less where the compiler recomputes",
        {"zero": change("sharding (ZeRO)", ["shard opt_state 4"], zero=True),
         "remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8)},
        topology="v6e:2x2", chips=4, batch=16),
}
PROGRAMS |= {
    "jax_speculate": program(
        "jax_programs", "speculate", "the large model's cache (32 layers, 48 sequences of 4096, 2 of 8 heads of 128 on a device, bfloat16: 96 MiB for keys and as much for values): 6 GiB, and the draft's (16 layers, heads of 64: 48 MiB, padded to 128: 96 MiB): 1.5 to 3 GiB; each once more where the loop's update is not in place or wants another layout; the large model's weights (8.0 billion in bfloat16 over 4): 3.74 GiB, the draft's (1.5 billion with a head of its own): 0.7 GiB; one layer's keys copied (96 MiB, one or two), scores (48 by 2 by 4 by 5 by 4096 float32: 30 MiB, the 5 padded to 8: 48 MiB, two or three), logits (48 by 5 by 32064: 15 MiB) are small; 75 to 110 % of 16 GiB",
        {"int8": change("dtype (cache)", ["dtype cache s8"], kept="int8"),
         "nodonate": change("donation (undone)", [], donate=False),
         "double": change("batch", ["batch 2"], slots=96),
         "both": change("dtype (cache) + batch", ["dtype cache s8", "batch 2"], kept="int8", slots=96)},
        topology="v5e:2x2", chips=4, slots=48),
    "eqx_graphcast": program(
        "equinox_programs", "graphcast", "what 16 layers of the processor keep (2 days of a device, 81900 edges of 512: bfloat16 160 MiB; the edge MLP's input of 1536: 480 MiB, hidden before and after, out, in float32 320 MiB in the norm; the nodes an eighth of that: 20 MiB each): 0.8 to 1.5 GiB a layer: 13 to 22 GiB, less where the compiler recomputes; encoder and decoder (103680 and 195480 edges: 200 and 380 MiB a tensor, with 1536 600 MiB and 1.1 GiB; 65160 points of the grid: 127 MiB a tensor, eight): 3 to 6 GiB; the weather (65160 by 178 and 83 float32: 130 and 64 MiB, padded 256 and 128: 0.25 GiB); the state (28 million, 12 bytes): 0.3 GiB; 60 to 95 % of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=64)},
        topology="v6e:2x4", chips=8, batch=16),
    "kh_vitdet": program(
        "keras_programs", "vitdet", "scores and probabilities of the 4 global layers (2 images of a device, 12 heads, 4096 by 4096, float32: 1.5 GiB each, two or three a layer with the relative positions, unless the compiler recomputes them): 6 to 15 GiB; values of the MLP (8192 tokens by 3072 float32: 96 MiB, two or three of 12 layers): 2.3 to 3.5 GiB; tokens of 768 (24 MiB, windows padded to 9800: 29 MiB, ten of 12 layers; heads of 64 padded to 128): 3 to 5 GiB; scores of the windows (50 by 12 by 196 by 196, padded 200 by 256: 117 MiB, two or three of 8 layers): 1.9 to 2.8 GiB; the state, whole (90 million, 12 bytes): 1 GiB, gradients 0.33 GiB; 55 to 90 % of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=4),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16")},
        topology="v6e:2x2", chips=4, batch=8),
    "tunix_distill": program(
        "tunix_programs", "distill", "float32 logits of 128256 words (4 texts of 1024 of a device, 4096 tokens: 1.96 GiB each: the student's, its log probabilities at temperature 2 and at 1, the teacher's probabilities, hard labels as whole rows, unless fused; two to four at once): 4 to 8 GiB; bfloat16 logits of student, their gradient (0.98 GiB each) and the teacher's, an input (0.98 GiB): 2 to 3 GiB; MLP values of 16 layers (4096 tokens by 8192: 64 MiB, three or four): 3 to 4 GiB; scores and probabilities (4 by 32 heads by 1024 by 1024: bfloat16 256 MiB, float32 512 MiB, of one or two layers or of all): 1 to 8 GiB; tokens of 2048 (16 MiB, a dozen): 2 to 3 GiB; the state in bfloat16 (1.24 billion, 6 bytes over 8): 0.9 GiB, gradients 0.3 GiB; 75 to 125 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], rows=16),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x4", shape=(8, 1), rows=32),
    "gm_lora4b": program(
        "gemma_programs", "lora", "logits of 262144 words (8 texts of 512 of a device: bfloat16 2 GiB, float32 4 GiB, two or three): 8 to 10 GiB; MLP values of 34 layers, no checkpoints (4096 tokens by 10240: 80 MiB, three or four): 8 to 11 GiB; the weights, whole (3.9 billion in bfloat16): 7.2 GiB; tokens of 2560 (20 MiB bfloat16, 40 MiB float32 in the norms, six to twelve of 34 layers): 4 to 8 GiB; scores (8 by 8 heads by 512 by 512: float32 64 MiB, one or two): 2 to 4 GiB; LoRA weights, their state and gradients (30 million, rank 16) 0.2 GiB, no gradients of the rest; 90 to 125 % of 31 GiB, less where the compiler recomputes",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=64)},
        topology="v6e:2x2", chips=4, batch=32, length=512),
}
