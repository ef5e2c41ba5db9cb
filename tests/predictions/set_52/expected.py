"""The fifty-second set: cause and changes written down before compiling."""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    # This one needs a Python with MaxText.
    "mt_gemma3": program(
        "maxtext_programs", "train", "what the scan over 8 blocks of 6 layers saves by the policy minimal (1 text of 8192 of a device, 8192 words: out and the MLP's out of 3840 bfloat16 60 MiB each, queries of 4096 64 MiB, keys and values of 2048 32 MiB each, gate and up of 15360 240 MiB each): 0.7 to 0.8 GiB a layer: 34 to 39 GiB; logits of 262144 words (8192: bfloat16 4 GiB, float32 8 GiB, one of each or two of float32): 12 to 16 GiB; the state (11.8 billion, 12 bytes over 16): 8.2 GiB, gradients 2.7 GiB; the table gathered and its gradient (1.01 billion: bfloat16 1.9 GiB, float32 3.75 GiB): 2 to 7.5 GiB; one block in its backward pass (gathered weights of 6 layers bfloat16 2.5 GiB, what is made anew 1 to 3 GiB), not at the same time as the logits; 60 to 80 % of 95 GiB",
        {"full": change("checkpoint", ["remat scan"], remat_policy="full"),
         "chunk": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "offload": change("offload (optimizer)", ["offload opt_state"], optimizer_memory_host_offload="true")},
        compile_topology="v5p-32", model_name="gemma3-12b", per_device_batch_size=1, max_target_length=8192, remat_policy="minimal", attention="flash",
        scan_layers="true", **FAKE),
    "keras_deberta": program(
        "keras_programs", "deberta", "what 12 layers keep in float32, no checkpoints (16 texts of 512 of a device, 8192 words; scores of words, of places both ways gathered, and of all three, probabilities, after dropout, its mask, gather's indices 16 by 12 by 512 by 512: 192 MiB each, two to six: 0.4 to 1.15 GiB; of 768 24 MiB, ten to fourteen, with dropouts' masks; heads of 64 padded to 128 48 MiB, three to five; the MLP's of 3072 96 MiB, two or three): 1.1 to 1.9 GiB a layer: 13 to 23 GiB; the state, whole (184 million, 12 bytes): 2.1 GiB, gradients 0.7 GiB; embedded pieces 24 MiB, three or four, little; one layer's gradients of scores 0.4 to 1 GiB; 50 to 85 % of 31.25 GiB",
        {"bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "fsdp": change("sharding (FSDP)", ["shard * 8"], shard=True),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=256)},
        topology="v6e:2x4", chips=8, batch=128),
    "linen_clip": program(
        "linen_programs", "clip", "what the scan over 12 layers of pictures keeps, no checkpoints (48 pictures of a device, 197 places each, 9456 of 768: bfloat16 14 MiB, ten to fourteen, in norms float32 28 MiB, none to four; heads of 64 padded to 128 28 MiB, three to five; the MLP's of 3072 56 MiB, two to four; scores and probabilities 48 by 12 by 197 by 197, padded to 200 by 256: bfloat16 56 MiB, float32 112 MiB, one or two): 0.5 to 0.85 GiB a layer: 6 to 10 GiB; the texts' 12 (48 by 77, 3696 of 512: 3.6 MiB, ten to fourteen; heads 7.2 MiB, three to five; of 2048 14 MiB, two to four; scores 48 by 8 by 77 by 77, padded to 80 by 128: 7.5 to 15 MiB, one or two): 0.1 to 0.2 GiB a layer: 1.2 to 2.2 GiB; the state, whole (150 million, 12 bytes): 1.7 GiB, gradients 0.55 GiB; pictures (48 by 224 by 224 by 3: 28 MiB, or padded more) 0.03 to 0.5 GiB; logits of 48 against 3072 little; 60 to 95 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "opt": change("dtype (optimizer)", ["dtype optimizer bf16"], moments="bfloat16"),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v4:4x4x2", chips=64, batch=3072),
    "nnx_dit": program(
        "nnx_programs", "dit", "what 28 layers keep, no checkpoints (4 pictures of a device, 1024 patches each, 4096 of 1152: bfloat16 9 MiB, ten to sixteen, in norms float32 18 MiB, none to four; queries, keys and values together 27 MiB, heads of 72 padded to 128 16 MiB, three to five; the MLP's of 4608 36 MiB, two to four; scores and probabilities 4 by 16 by 1024 by 1024: bfloat16 128 MiB, float32 256 MiB, one to three): 0.4 to 0.85 GiB a layer: 11 to 24 GiB; the state, whole (675 million, 12 bytes): 7.5 GiB, gradients 2.5 GiB; weights in bfloat16, if kept: 0 to 1.3 GiB; 68 to 110 % of 31.25 GiB",
        {"blocks": change("blockwise", ["blockwise *"], blocks=True),
         "zero": change("sharding (ZeRO)", ["shard opt_state 8"], zero=True),
         "both": change("both", ["blockwise *", "batch 2"], blocks=True, batch=64)},
        topology="v6e:2x4", chips=8, batch=32),
    "eqx_mamba": program(
        "equinox_programs", "mamba", "what the scan over 24 layers keeps, no checkpoints (4 texts of 2048 of a device, 8192 words by 16 states by 1536 channels: float32 768 MiB: what is kept, what is added, their products in the levels of the associative scan, states: five to nine): 3.75 to 6.75 GiB a layer: 90 to 162 GiB; of 1536 (bfloat16 24 MiB, six to eight, float32 48 MiB, three or four), of 3072 48 MiB, of 768 12 MiB, two or three: 0.35 to 0.5 GiB a layer: 8 to 12 GiB; logits of 50280 words (8192: bfloat16 0.77 GiB, float32 1.5 GiB, two or three): 2.3 to 4 GiB, not at the same time as a layer's gradients (768 MiB, three to six): 2.3 to 4.6 GiB; the state, whole (129 million, 12 bytes): 1.45 GiB, gradients 0.5 GiB; 107 to 190 % of 95 GiB, does not fit",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "micro": change("accumulation", ["micro 4"], micro=4),
         "both": change("both", ["remat scan", "batch 2"], remat=True, batch=32)},
        topology="v5p:2x2x1", chips=4, batch=16),
    "hk_enformer": program(
        "haiku_programs", "enformer", "what stem and stages keep in float32, no checkpoints (4 pieces of 196608 bases of a device: 196608 of 768 each: 2.25 GiB for all four: convolved, normed, rectified, convolved, pooling's logits and shares: five to seven: 11 to 16 GiB; the first stage, 98304 of 768 1.13 GiB, seven to nine: 8 to 10 GiB; the others half and less of it each, with more channels: 0.66, 0.38, 0.21, 0.12, 0.07 GiB, seven to nine: 10 to 13 GiB): 29 to 39 GiB; 11 layers (6144 places of 1536 36 MiB, ten to fourteen, dropouts' masks among them; the MLP's of 3072 72 MiB, three or four; scores, their sum, probabilities, masks, after dropout 4 by 8 by 1536 by 1536 288 MiB, two to five, and by 3071 places 576 MiB, none or one): 1.2 to 2.7 GiB a layer: 13 to 29 GiB; 5313 tracks of 896 places (73 MiB, four to six): 0.3 to 0.4 GiB; the state, whole (250 million, 12 bytes): 2.8 GiB, gradients 0.9 GiB; gradients at the worst moment 2.25 to 6.75 GiB; 50 to 80 % of 94.75 GiB",
        {"bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "micro": change("accumulation", ["micro 4"], micro=4),
         "half": change("batch", ["batch 0.5"], batch=16)},
        topology="tpu7x:2x2x1", chips=8, batch=32),
    "torchax_qwen": program(
        "torchax_programs", "qwen", "what 24 layers keep, no checkpoints (4 texts of 1024 of a device, 4096 words of 896: bfloat16 7 MiB, ten to fourteen, in norms float32 14 MiB, two to four; heads of 64 padded to 128 14 MiB, four to seven, keys and values repeated for 14 heads among them; the MLP's of 4864 38 MiB, three or four; scores and probabilities 4 by 14 by 1024 by 1024: bfloat16 112 MiB, float32 224 MiB, one to three): 0.4 to 0.9 GiB a layer: 10 to 22 GiB; the state, whole (494 million, 12 bytes): 5.5 GiB, gradients 1.8 GiB; logits of 151936 words (4096: bfloat16 1.16 GiB, float32 2.3 GiB, one of each or one and two): 3.5 to 5.8 GiB; weights in bfloat16, if kept: 0 to 0.9 GiB; 65 to 110 % of 31.25 GiB",
        {"chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "fsdp": change("sharding (FSDP)", ["shard * 8"], shard=True),
         "both": change("both", ["remat *", "chunk logits 8"], remat=True, chunks=8)},
        topology="v6e:2x4", chips=8, batch=32),
    "tunix_grpo": program(
        "tunix_programs", "grpo", "what 28 layers keep in bfloat16, no checkpoints (1 prompt and answer of 2048 of a device, 2048 words of 2048: 8 MiB, eight to twelve, in norms float32 16 MiB, none to four; turned queries in float32 16 MiB; the MLP's of 6144 24 MiB, three or four; scores and probabilities 16 by 2048 by 2048: bfloat16 128 MiB, float32 256 MiB, one to three): 0.35 to 0.95 GiB a layer: 10 to 26 GiB; logits of 151936 words (2048, of the answer 1536: bfloat16 0.44 to 0.58 GiB, float32 0.9 to 1.16 GiB, two or three): 1.5 to 3 GiB; the state in bfloat16 (1.72 billion, 6 bytes over 8): 1.2 GiB, new weights beside the old, which are not donated, 0.4 GiB, gradients 0.4 GiB; the table gathered and its gradient (311 million: bfloat16 0.58 GiB, two to four): 1.2 to 2.3 GiB; layers' weights gathered (50 million: 0.1 GiB; of all, if kept, 2.6 GiB): 0.1 to 2.6 GiB; 50 to 105 % of 31.25 GiB",
        {"donate": change("donation", ["donate *"], donate=True),
         "offload": change("offload (optimizer)", ["offload opt_state"], offload=True),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=16)},
        topology="v6e:2x4", shape=(8, 1), batch=8),
    "serve_llama70b": program(
        "serve_programs", "llama", "caches of keys and values (80 layers, 64 texts, one of 8 heads of 128 on a device, 4096 places, bfloat16: 64 MiB each): 10 GiB, twice as they are not donated: 20 GiB; the weights in bfloat16 (70.6 billion over 8): 16.4 GiB; a layer's caches taken out and written, weights taken out (64 MiB each, two to four; 0.2 GiB): 0.1 to 0.5 GiB; scores 64 by 8 by 4096 (float32 8 MiB), logits 64 by 128256 over 8 little; 115 to 120 % of 31.25 GiB, does not fit",
        {"int8": change("dtype (cache)", ["dtype cache s8"], kept="int8"),
         "donate": change("donation", ["donate *"], donate=True),
         "half": change("batch", ["batch 0.5"], batch=32)},
        topology="v6e:2x4", chips=8, batch=64),
    "jraph_graphcast": program(
        "jraph_programs", "graphcast", "what 16 layers of the processor keep in float32, no checkpoints (2 states of the weather of a device; 81900 edges of 512: 320 MiB for both: sender, receiver and edge joined of 1536 960 MiB, none or one; hidden, before and after silu, out, normed, new edges: four to six): 1.25 to 2.8 GiB a layer, with the points' (10242 of 512 40 MiB, five to seven) 0.2 to 0.3 GiB: 23 to 50 GiB; the decoder's edges (195480 of 512 764 MiB, joined of 1536 2.2 GiB, embedded three or four, sent three to five): 4.5 to 9 GiB; the encoder's (104260 of 512 407 MiB, joined 1.2 GiB, embedded three or four, sent three to five): 2.5 to 4.8 GiB; the grid's (65160 of 512 255 MiB, ten to sixteen; joined of 1024 509 MiB, of 189 127 MiB): 3 to 5 GiB; gradients of the decoder's edges at the worst moment 1.5 to 4.5 GiB; the state, whole (37 million, 12 bytes): 0.4 GiB; 37 to 75 % of 95 GiB, more where two states are padded to eight",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "double": change("batch", ["batch 2"], batch=32)},
        topology="v5p:2x2x2", chips=8, batch=16),
}

# Written after the score. The decoding step with its caches carried through the loop: `serve_programs.llama(…, carried=True)`.
PROGRAMS |= {
    "keras_deberta_small": program(
        "keras_programs", "deberta", "attention scores, and what six layers keep in float32",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=256),
         "both": change("both", ["remat *", "batch 0.5"], remat=True, batch=256)},
        topology="v5p:2x2x1", chips=4, batch=512, depth=6, length=256),
}
