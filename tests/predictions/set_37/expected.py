"""The thirty-seventh set: cause and changes written down before compiling."""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    "mt_gemma2": program(
        "maxtext_programs", "train", "what the scan over 13 pairs of layers saves by the policy minimal_with_context (4 sequences of 2048 of a device, 8192 tokens: queries 2048, keys and values 1024 each, context 2048, out 2304, two of 9216 and the MLP's out of 2304: 29184 bfloat16, 456 MiB a layer, 26): 10 to 12 GiB; logits of 256128 words (bfloat16 3.9 GiB, float32 7.8 GiB with the soft cap, one or two, at another time than most of what layers save, though those wait): 8 to 16 GiB; the state (2.61 billion, 12 bytes over 8): 3.7 GiB, gradients in float32 1.2 GiB; the embedding gathered (bfloat16 1.1 GiB) and its whole gradient (1.1 to 2.2 GiB): 2 to 3 GiB; inputs of pairs (8192 by 2304: 36 MiB, 13): 0.5 GiB; 85 to 110 % of 31 GiB",
        {"full": change("checkpoint (policy)", ["remat scan"], remat_policy="full"),
         "double": change("batch", ["batch 2"], per_device_batch_size=8),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=2)},
        compile_topology="v6e-8", model_name="gemma2-2b", per_device_batch_size=4, max_target_length=2048, remat_policy="minimal_with_context", attention="flash", scan_layers="true", **FAKE),
    "mt_mistral": program(
        "maxtext_programs", "train", "the state (7.24 billion, 12 bytes over 16): 5.1 GiB, gradients in float32 1.7 GiB, summed over two micro-batches, so one more of them while a micro-batch's are made: 1.7 to 3.4 GiB; inputs of 32 layers (4 sequences of 2048 of a device and micro-batch, 8192 tokens by 4096: 64 MiB): 2 GiB; MLP values of one layer as its backward runs (8192 by 14336: 224 MiB, four): 0.9 GiB; logits of 32000 words (bfloat16 0.5 GiB, float32 1 GiB, two): 1.5 to 2 GiB at another time; a layer's weights gathered (218 million: bfloat16 416 MiB, one or two, perhaps all 13.5 GiB bfloat16 gathered before the loop of micro-batches, which MaxText has as an option): 0.4 to 0.8 GiB; 70 to 95 % of 16 GiB",
        {"micro": change("micro-batches", ["micro 2"], gradient_accumulation_steps=4, per_device_batch_size=2),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=2),
         "mu": change("dtype", ["dtype mu bf16"], mu_dtype="bfloat16")},
        compile_topology="v5e-16", model_name="mistral-7b", per_device_batch_size=4, max_target_length=2048, gradient_accumulation_steps=2, remat_policy="full", attention="flash", scan_layers="true", **FAKE),
}
PROGRAMS |= {
    "torchax_m2m100": program(
        "torchax_programs", "m2m100", "what 24 layers keep in float32, no checkpoints (48 pairs of 128 and 128 words, 6144 tokens a side: 24 MiB by 1024, eight to fourteen a layer, twice the attention in the decoder; the MLP's hidden of 4096: 96 MiB, one or two): 0.4 to 0.6 GiB a layer: 10 to 14 GiB; scores and probabilities (48 by 16 heads by 128 by 128: 48 MiB, two a layer, 36 of them): 1.7 to 3.4 GiB; logits of 128112 words (6144: 2.9 GiB float32, two or three at a time, while the layers' values wait): 6 to 9 GiB; the state (484 million, 12 bytes): 5.4 GiB, gradients 1.8 GiB; 80 to 105 % of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=24),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16")},
        topology="v6e:1x1", chips=1, batch=48),
    "torchax_convnext": program(
        "torchax_programs", "convnext", "values of 36 blocks in float32, no checkpoints (8 pictures of a device; third stage 24 by 24 by 768: 13.5 MiB, by 3072: 54 MiB; two or three of the wide, four or five of the narrow, 27 blocks): 150 to 230 MiB a block: 4 to 6 GiB; first stage (96 by 96 by 192: 54 MiB, by 768: 216 MiB, with padding of 192 to 256 more; 3 blocks of 0.7 to 0.9 GiB): 2 to 3 GiB; second (half of it): 1 to 1.5 GiB; fourth little; the state, whole (198 million, 12 bytes): 2.2 GiB, gradients 0.74 GiB; copies between channels first and last (54 MiB, several); 65 to 95 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "zero": change("sharding (ZeRO)", ["shard opt_state 4"], zero=True)},
        topology="v5e:2x2", chips=4, batch=32),
}
PROGRAMS |= {
    "kh_densenet": program(
        "keras_programs", "densenet", "(resized from 128 pictures of a device, with which it took 8.1 GiB, as the compiler keeps fewer of the concatenations; here 384, so three times these sizes, which were written for 128) values of 58 dense layers in float32: each reads all that came before, concatenated: a copy of the concatenation and its normalised, clipped form (first block, 56 by 56: 64 to 224 channels: 98 to 343 MiB each, 6 layers; second, 28 by 28 by 128 to 480: 49 to 184 MiB, 12; third, 14 by 14 by 256 to 992: 25 to 95 MiB, 24; fourth 7 by 7 by 512 to 992: 12 to 24 MiB, 16): 4.2 GiB for one of each, two or three kept: 8 to 13 GiB; the bottleneck of 128 (196, 49, 12, 3 MiB, two each): 4.5 GiB; the stem (112 by 112 by 64: 392 MiB, two or three): 0.8 to 1.2 GiB; pictures (73 MiB, padded more); the state (8 million) little; of 384 pictures 65 to 90 % of 31 GiB",
        {"half": change("batch", ["batch 0.5"], batch=768),
         "double": change("batch", ["batch 2"], batch=3072),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16")},
        topology="v6e:2x2", chips=4, batch=1536),
    "hk_impala": program(
        "haiku_programs", "impala", "(resized from 64 trajectories of a device, refused with 20.7 GiB of 15.25, as these devices of a v4 have; here 40, five eighths of these sizes, which were written for 64) the first section in float32 (64 trajectories of 80 of a device, 5120 pictures of 84 by 84 by 16: 2.15 GiB before the pooling, perhaps again its gradient; after it, 42 by 42 by 16: 0.54 GiB, six to eight): 7 to 9 GiB; the second (42 by 42 by 32: 1.08 GiB before the pooling, 21 by 21 by 32: 0.27 GiB, six to eight): 2.7 to 4 GiB; the third (0.27 GiB, 0.075 GiB, six to eight): 0.8 GiB; pictures (5120 by 84 by 84 by 4, bytes: 138 MiB; in float32 551 MiB): 0.7 GiB; the LSTM's sequence (5120 by 1024: 20 MiB, five) and weights are little; of 40 trajectories 75 to 100 % of 15.25 GiB, more where 16 or 32 channels are padded",
        {"half": change("batch", ["batch 0.5"], batch=80),
         "double": change("batch", ["batch 2"], batch=320),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16")},
        topology="v4:2x2x1", chips=4, batch=160),
}
PROGRAMS |= {
    "eqx_mamba2": program(
        "equinox_programs", "mamba2", "what the scan over 48 blocks keeps, no checkpoints (1 sequence of 2048 of a device; decays within chunks of 256 (32 heads by 8 chunks by 256 by 256: bfloat16 32 MiB, float32 64 MiB; the decays, their product with the scores, perhaps the float32 exponential: 64 to 160 MiB a block); tokens by 4384 of the first matrix (17 MiB), by 2304 of the convolution (9 MiB, four shifted, padded, before and after the silu: up to seven), by 2048 (8 MiB, six to eight; float32 in the norm 16 MiB), states (8 chunks by 32 by 64 by 128 float32: 8 MiB, padded 64 to 128 16 MiB, three), of 1024 (4 MiB, three)): 0.2 to 0.35 GiB a block: 9 to 16 GiB; logits of 50288 words (2048: float32 0.38 GiB, bfloat16 0.19 GiB, two): 0.8 GiB; the state (368 million, 12 bytes over 8): 0.5 GiB, gradients 0.17 GiB; the table gathered and its gradient: 0.2 to 0.4 GiB; 65 to 110 % of 16 GiB",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "both": change("checkpoint + batch", ["remat scan", "batch 4"], remat=True, batch=32),
         "full": change("checkpoint + chunked loss + batch", ["remat scan", "chunk logits 8", "batch 8"], remat=True, chunks=8, batch=64),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x4", chips=8, batch=8),
}
PROGRAMS |= {
    "jax_shampoo": program(
        "jax_programs", "shampoo", "Shampoo's statistics and roots (24 layers of 48 blocks of 1024 by 1024, left and right, float32: 9 GiB each): 18 GiB; the roots once more where the conditional that makes them anew does not write in place: 9 GiB, its Newton iterations over one layer at a time (64 MiB, several) little; momentum and grafting (1.31 billion float32: 4.9 GiB each): 9.8 GiB; weights 4.9 GiB, gradients 4.9 GiB, cut into blocks once more 4.5 GiB, the preconditioned step and products between (4.5 GiB, one to three): 10 to 20 GiB; at another time logits of 50304 words (8 sequences of 2048 of a device: float32 3.1 GiB, bfloat16 1.5 GiB, two): 6 GiB; inputs of 24 layers (64 MiB): 1.5 GiB, MLP values of one layer (256 MiB, three); 55 to 80 % of 95 GiB",
        {"roots": change("dtype", ["dtype roots bf16"], kept="bfloat16"),
         "mu": change("dtype", ["dtype mu bf16"], momentum="bfloat16"),
         "half": change("batch", ["batch 0.5"], batch=16),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5p:2x2x1", chips=4, batch=32),
    "jax_beam": program(
        "jax_programs", "beam", "the cache (32 layers, 8 texts of 4 beams, 1024 places, 8 of 32 heads of 128 on a device, bfloat16: 64 MiB for keys and as much for values): 4 GiB; once more, as it is put in the parents' order at the end, which cannot be done in place: 4 GiB, for keys and values one after another 2 GiB more than the first; the weights (6.74 billion in bfloat16 over 4): 3.1 GiB; one layer's keys copied (64 MiB, two or three); log probabilities of 32 by 32000 (float32 4 MiB, sorted for the top a few more), scores (32 by 8 by 1024: 1 MiB) are little; 65 to 85 % of 16 GiB",
        {"int8": change("dtype (cache)", ["dtype cache s8"], kept="int8"),
         "nodonate": change("donation (undone)", [], donate=False),
         "double": change("batch", ["batch 2"], texts=16),
         "short": change("dimension", ["dim 1024 512"], context=512)},
        topology="v5e:2x2", chips=4, texts=8),
}
PROGRAMS |= {
    "nnx_video": program(
        "nnx_programs", "video", "(resized from 2 videos of a device, with which it took 5.5 GiB, as the compiler keeps fewer of the wide values; here 6, so three times these sizes, which were written for 2, but the state) what 12 blocks keep in float32, no checkpoints (2 videos of 16 pictures of 256 places of a device, 8192 tokens: 24 MiB by 768; the norms, modulated, queries, keys and values, out, gated: ten to fourteen; the MLP's hidden of 3072: 96 MiB, two or three): 0.45 to 0.6 GiB a block: 5.5 to 7.5 GiB; scores and probabilities within a picture (2 by 16 by 12 by 256 by 256: 96 MiB, one or two of 6 blocks): 0.6 to 1.2 GiB; across time (2 by 256 by 12 by 16 by 16, padded 16 to 128: 6 MiB as such, 48 MiB padded, two of 6 blocks), heads of 64 padded to 128 (48 MiB, three, 12 blocks): 1 to 2.5 GiB; the state, whole (131 million, 12 bytes): 1.5 GiB, gradients 0.5 GiB; of 6 videos 70 to 95 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=12),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=96)},
        topology="v5e:2x2", chips=4, batch=24),
}
