"""The thirty-ninth set: cause and changes written down before compiling."""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    "mt_qwen25": program(
        "maxtext_programs", "train", "logits of 151936 words (4 sequences of 2048 of a device and micro-batch, 8192 tokens: bfloat16 2.3 GiB, float32 4.6 GiB, one or two): 5 to 10 GiB; the state (1.54 billion, 12 bytes over 8): 2.3 GiB, gradients in float32 0.75 GiB, summed over two micro-batches, so once more while one's are made: 0.75 to 1.5 GiB; what the scan over 28 layers saves by the policy save_dot_except_mlp (8192 tokens: inputs of 1536 and out 1536: 24 MiB each, queries 24 MiB, keys and values 4 MiB each; perhaps the context): 80 to 105 MiB a layer: 2.2 to 2.9 GiB, at another time than most of the logits, though it waits; MLP values of one layer as its backward runs (8192 by 8960: 140 MiB, three or four): 0.5 GiB; the table gathered and its gradient (233 million: bfloat16 0.45 GiB, float32 0.9 GiB): 0.9 to 1.4 GiB; 75 to 115 % of 16 GiB",
        {"full": change("checkpoint (policy)", ["remat scan"], remat_policy="full"),
         "chunk": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "micro": change("micro-batches", ["micro 2"], gradient_accumulation_steps=4, per_device_batch_size=2),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=2)},
        compile_topology="v5e-8", model_name="qwen2.5-1.5b", per_device_batch_size=4, max_target_length=2048, gradient_accumulation_steps=2, remat_policy="save_dot_except_mlp", attention="flash", scan_layers="true", **FAKE),
}
PROGRAMS |= {
    "torchax_qwen2": program(
        "torchax_programs", "qwen2", "logits of 151936 words (2 texts of 1024 of a device, 2048 tokens: bfloat16 0.58 GiB, float32 1.16 GiB, two or three): 2.3 to 3.5 GiB; what 28 layers keep, no checkpoints (of 1536 in bfloat16 6 MiB, ten to fourteen, float32 in the norms 12 MiB, two to four; the MLP's of 8960: 35 MiB, three or four; scores and probabilities 2 by 12 by 1024 by 1024: bfloat16 48 MiB, float32 96 MiB, one or two unless recomputed; keys and values repeated from 2 to 12 heads 6 MiB each): 0.25 to 0.45 GiB a layer: 7 to 12 GiB; the state in bfloat16 (1.54 billion, 6 bytes over 4): 2.2 GiB, gradients 0.72 GiB; weights gathered (a layer 47 million: 89 MiB; all, if kept for the backward pass, 2.4 GiB; the table 0.43 GiB, twice with its gradient): 0.9 to 3 GiB; 80 to 120 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=28),
         "half": change("batch", ["batch 0.5"], batch=4),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=28, batch=32)},
        topology="v5e:2x2", chips=4, batch=8),
    "torchax_timesformer": program(
        "torchax_programs", "timesformer", "what 12 layers keep in float32, no checkpoints (8 films of 16 pictures of 196 places, 25088 tokens: 73.5 MiB by 768; two attentions with their norms, queries, keys, values (by 2304 at once: 220 MiB), out, proj, copies between orders of time and place: eighteen to twenty-five narrow ones; the MLP's hidden of 3072: 294 MiB, two or three): 2 to 2.8 GiB a layer: 24 to 33 GiB, a third of which the compiler may make anew: 16 to 33 GiB; scores and probabilities within a picture (128 by 12 by 197 by 197, padded 200 by 256: 300 MiB, one or two): 0.3 to 0.6 GiB a layer: 3.5 to 7 GiB; across time (1568 by 12 by 16 by 16: 18 MiB, padded to 128 147 MiB, one or two): 0.2 to 3.5 GiB; heads of 64 padded to 128 (147 MiB, three, twice); the state (122 million, 12 bytes): 1.4 GiB, gradients 0.45 GiB; 70 to 130 % of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=4),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "first6": change("checkpoint part", ["remat timesformer.encoder.layer[*] 6"], remat=6)},
        topology="v6e:1x1", chips=1, batch=8),
    "kh_bloom": program(
        "keras_programs", "bloom", "(moved from v6e, where it took 11.5 GiB, as the compiler keeps less of the logits and scores, to v5e) logits of 250880 words (6 texts of 512 of a device, 3072 tokens: bfloat16 1.44 GiB, float32 2.9 GiB; Keras casts them, log-softmax and its gradient: two to three in float32): 6 to 10 GiB; the state, whole (559 million, 12 bytes): 6.25 GiB, gradients 2.1 GiB (of them the table's 0.96 GiB, made of two ends: perhaps twice); what 24 layers keep, no checkpoints (3072 tokens of 1024: bfloat16 6 MiB, eight to twelve, float32 in norms 12 MiB, two to four, heads of 64 padded to 128 12 MiB, three; the MLP's hidden of 4096: 24 MiB, two to four; scores and probabilities 6 by 16 by 512 by 512: bfloat16 48 MiB, float32 96 MiB, one or two): 0.25 to 0.4 GiB a layer: 6 to 10 GiB; weights in bfloat16 (0.5 to 1 GiB); so 65 to 95 % of 31 GiB was written, and 65 to 85 % of 16 GiB is now",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "half": change("batch", ["batch 0.5"], batch=12),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=24, batch=48),
         "first12": change("checkpoint part", ["remat transformer_layer_* 12"], remat=12)},
        topology="v5e:2x2", chips=4, batch=24),
    "linen_t5": program(
        "linen_programs", "t5", "what 12 layers of the encoder keep, no checkpoints (32 texts of 512 of a device, 16384 tokens: bfloat16 24 MiB by 768, eight to ten, float32 in norms 48 MiB, none to two; heads of 64 padded to 128 48 MiB, three; the gated MLP's of 2048: 64 MiB, three or four; scores and probabilities 32 by 12 by 512 by 512: bfloat16 192 MiB, float32 384 MiB, one or two unless recomputed): 0.6 to 1.1 GiB a layer: 7.5 to 13 GiB; the decoder's (32 targets of 128, 4096 tokens, a quarter of the narrow and wide ones; its own scores 12 MiB, across 128 by 512: 48 MiB bfloat16, 96 MiB float32; keys and values of the encoder's 16384 places: 24 MiB, padded 48 MiB, two): 0.25 to 0.45 GiB a layer: 3 to 5.5 GiB; logits of 32128 words (4096: 0.5 GiB float32, one or two): 0.5 to 1 GiB; weights (248 million: 0.92 GiB), gradients 0.92 GiB, Adafactor's state little; 80 to 130 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=256)},
        topology="v5e:2x2", chips=4, batch=128),
}
PROGRAMS |= {
    "nnx_granite": program(
        "nnx_programs", "granite", "(moved from v5e, where it was refused with 19.7 GiB, to v6e) what the scan over 32 layers saves, no checkpoints (4 texts of 512 of a device, 2048 tokens of 2048: bfloat16 8 MiB, eight to twelve; heads of 64 padded to 128 16 MiB, one or two; gate, its silu, up, their product of 8192: 32 MiB each, three or four; scores and probabilities 4 by 32 by 512 by 512: bfloat16 64 MiB, float32 128 MiB, one or two): 0.25 to 0.45 GiB a layer: 8 to 14 GiB; the state (2.05 billion, 8 bytes over 8, as Lion has one momentum): 1.9 GiB, gradients in float32 0.95 GiB, perhaps updates as much; the table gathered and its gradient (101 million: bfloat16 0.19 GiB, float32 0.38 GiB): 0.4 to 0.8 GiB; a layer's weights gathered (61 million: bfloat16 116 MiB, float32 232 MiB, one to three); logits of 49152 words (2048: float32 0.38 GiB, bfloat16 0.19 GiB, one to three): 0.4 to 0.8 GiB; so 75 to 115 % of 16 GiB was written, and 55 to 75 % of 31 GiB is now",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "micro": change("micro-batches", ["micro 4"], micro=4),
         "mu": change("dtype", ["dtype mu bf16"], kept="bfloat16"),
         "both": change("checkpoint + batch", ["remat scan", "batch 4"], remat=True, batch=128)},
        topology="v6e:2x4", chips=8, batch=32),
    "hk_fno3d": program(
        "haiku_programs", "fno3d", "(6 samples of a device, 64 by 64 by 64 places, 1.57 million) what lies with the projection's 128 channels in float32 (768 MiB, before the gelu, after it and its gradient: two or three): 1.5 to 2.3 GiB; what 4 layers keep in float32 (32 channels: 192 MiB; input, sum before the gelu, perhaps parts of gelu's derivative: two or three a layer): 1.5 to 2.3 GiB; while one layer runs, its spectra (33 of 64 of the last dimension, complex: 198 MiB, padded 33 to 128 768 MiB; before, after, zeros, between the dimensions' transforms, real and imaginary parts apart: four to eight): 1.5 to 5 GiB; pictures of 50 and 53 channels (300 MiB, padded to 64 or 128 384 to 768 MiB, one to three): 0.6 to 2 GiB; the state, whole (57 million as 4 layers of 4 corners of 2 by 32 by 32 by 12 by 12 by 12: 54 MiB each, padded 12 by 12 to 16 by 128 up to 768 MiB: as arguments 0.65 GiB for weights and two moments if laid out without padding), gradients 0.2 GiB; 45 to 85 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=12),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=48),
         "double": change("batch", ["batch 2"], batch=48)},
        topology="v5e:2x2", chips=4, batch=24),
}
PROGRAMS |= {
    "jax_selfplay": program(
        "jax_programs", "selfplay", "the search's trees (4096 games, 257 nodes padded 264, 225 moves padded 256: 1.03 GiB in float32; priors, visits, totals, children): 4.1 GiB, boards as bytes 0.26 GiB, perhaps again one or two while the loops within copy them (1 to 4 GiB); the replay memory (4.19 million places: policies of 225 padded 256 float32 4 GiB, boards as bytes 1 GiB, values 16 MiB): 5 GiB; the network's values (4096 boards of 225 places of 128: bfloat16 225 MiB, padded 15 to 16 240 MiB; two or three while searching, about twenty while learning): 0.5 to 4.7 GiB, the latter when the trees are gone; weights and their state (6 million) little; 60 to 95 % of 16 GiB",
        {"half": change("batch", ["batch 0.5"], games=2048),
         "bf16": change("dtype", ["dtype policies bf16"], policies="bfloat16"),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:1x1", chips=1, games=4096),
    "jax_adapters": program(
        "jax_programs", "adapters", "the cache (32 layers, 64 slots, 2 of 8 heads on a device, a ring of 4096 places, 128, bfloat16: 128 MiB a layer for keys and as much for values): 8 GiB; the weights (7.24 billion in bfloat16 over 4): 3.4 GiB; forty adapters of rank 16 (down from 4096 for queries, keys and values and up for out whole, 160 MiB each, the others divided: 10 to 40 MiB): 0.73 GiB; one layer's keys or values copied (128 MiB, none to three): 0 to 0.4 GiB; adapters taken for each slot (64 by 16 by 4096: 8 MiB, a few), scores (64 by 8 by 4096: 8 MiB float32) little; 75 to 85 % of 16 GiB",
        {"int8": change("dtype (cache)", ["dtype cache s8"], kept="int8"),
         "nodonate": change("donation (undone)", [], donate=False),
         "double": change("batch", ["batch 2"], slots=128),
         "half": change("batch", ["batch 0.5"], slots=32)},
        topology="v5e:2x2", chips=4, slots=64),
    "jax_dlrm": program(
        "jax_programs", "dlrm", "tables, whole (16.1 million rows of 128 float32): 7.7 GiB; Adagrad's sums, whole: 7.7 GiB; gradients, dense: 7.7 GiB, perhaps once more for those that are summed over devices at once or for updates (0 to 4 GiB); rows of a batch (65536 over 8: 8192 by 27 by 128 float32: 108 MiB, two to four, 27 padded to 32), their products (8192 by 27 by 27, padded 32 by 128 128 MiB, two): 0.4 to 0.8 GiB; 75 to 90 % of 31 GiB",
        {"half": change("batch", ["batch 0.5"], batch=32768),
         "zero": change("sharding (ZeRO)", ["shard opt_state 8"], zero=True),
         "fsdp": change("sharding (FSDP)", ["shard params 8", "shard opt_state 8"], fsdp=True),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v6e:2x4", chips=8, batch=65536),
}
