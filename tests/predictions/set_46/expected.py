"""The forty-sixth set: cause and changes written down before compiling."""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    "mt_gemma3": program(
        "maxtext_programs", "train", "logits of 262144 words (2 texts of 2048 of a device, 4096 tokens: bfloat16 2 GiB, float32 4 GiB, one or two): 4 to 9 GiB; the table gathered (671 million: bfloat16 1.25 GiB, float32 2.5 GiB) and its gradient before it is divided (1.25 or 2.5 GiB): 2.5 to 5 GiB; what the scan over five blocks of six layers and the four left over save (x 2560, queries 2048, keys and values 1024 each: 13 KiB a token and layer, 53 MiB a layer): 1 to 1.8 GiB; one block of six made anew (the MLP's of 10240: 80 MiB, three or four a layer, others 20 MiB, eight): 2 to 3 GiB, and its weights gathered (94 million a layer: 0.18 GiB bfloat16): 0.4 to 1.1 GiB; the state (3.88 billion, 12 bytes over 64): 0.7 GiB, gradients 0.23 GiB; 65 to 115 % of 15.75 GiB",
        {"chunk": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "full": change("checkpoint", ["remat scan"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=1)},
        compile_topology="v5e-64", model_name="gemma3-4b", per_device_batch_size=2, max_target_length=2048, remat_policy="save_qkv_proj",
        attention="flash", scan_layers="true", **FAKE),
    "mt_qwen25": program(
        "maxtext_programs", "train", "logits of 151936 words (6 texts of 4096 of a device, 24576 tokens: bfloat16 7 GiB, float32 13.9 GiB, one, or one and a half, or two): 14 to 28 GiB; what 28 layers leave as they are made anew (24576 of 1536: bfloat16 72 MiB): 2 GiB; one layer made anew (the MLP's of 8960: 420 MiB, three or four; others 72 MiB, eight): 1.8 to 2.3 GiB, not at the same time as the logits; the state (1.54 billion, 12 bytes over 8): 2.15 GiB, gradients 0.7 GiB; the table gathered (233 million: bfloat16 0.43 GiB, float32 0.87 GiB) and its gradient: 0.9 to 1.8 GiB; 65 to 110 % of 31.25 GiB",
        {"chunk": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=3)},
        compile_topology="v6e-8", model_name="qwen2.5-1.5b", per_device_batch_size=6, max_target_length=4096, remat_policy="full",
        attention="flash", scan_layers="false", **FAKE),
    "gemma_lora": program(
        "gemma_programs", "lora", "what 34 layers keep, no checkpoints (2 texts of 1024 of a device, 2048 tokens: of 2560 bfloat16 10 MiB, eight to twelve, in norms float32 20 MiB, none to four; gate and up together 80 MiB, gelu's, product 40 MiB, one or two; queries of 2048 8 MiB, keys and values 4 MiB, six to eight; scores and probabilities 2 by 1024 by 8 by 1024: bfloat16 32 MiB, float32 64 MiB, one or two): 0.28 to 0.45 GiB a layer: 9.5 to 15 GiB; the weights, frozen, bfloat16, whole (3.88 billion): 7.2 GiB, adapters of rank 16 (33 million) 0.06 GiB, Adafactor's state little; logits of 262144 words (2048: bfloat16 1 GiB, float32 2 GiB, two or three of them): 3 to 5 GiB; 65 to 90 % of 31.25 GiB; without donation the weights once more, 7.2 GiB",
        {"chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "remat": change("checkpoint", ["remat *"], remat=True)},
        topology="v6e:2x2", chips=4, batch=8),
    "keras_deberta": program(
        "keras_programs", "deberta", "what 12 layers keep, no checkpoints (16 texts of 512 of a device, 8192 words; scores from words to places, places to words, their gathers, their sum and probabilities 16 by 12 by 512 by 512: bfloat16 96 MiB, float32 192 MiB, two to five, the dropout's mask 48 to 192 MiB): 0.35 to 0.8 GiB a layer; of 768 12 MiB, ten to fourteen, the MLP's of 3072 48 MiB, two or three, heads of 64 padded to 128 24 MiB, three or four: 0.3 to 0.4 GiB a layer; together 8 to 14 GiB; the gathers turned round (scatters of 16 by 12 by 512 by 512 with their indices, int32 192 MiB, four dimensions of them 0.75 GiB): 0.4 to 2 GiB; the state, whole (184 million, 12 bytes): 2.1 GiB, gradients 0.7 GiB; 70 to 115 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64),
         "fsdp": change("sharding (FSDP)", ["shard * 8"], shard=True)},
        topology="v4:2x2x1", chips=8, batch=128),
    "hk_resnet": program(
        "haiku_programs", "resnet", "what 33 bottleneck blocks keep in float32, no checkpoints (128 pictures of 224 by 224 of a device; what convolutions give, 16.2 million values a picture: 7.7 GiB for 128; after norm and rectifier as much again where it is not made anew): the first convolution (112 by 112 of 64: 0.38 GiB, one or two, channels padded to 128 twice), the first group's 3 blocks (56 by 56 of 64, 64, 256: 0.6 GiB each, twice the most) 1.8 to 3.6 GiB, the second's 4 (28 by 28 of 128, 128, 512: 0.3 GiB) 1.2 to 2.4 GiB, the third's 23 (14 by 14 of 256, 256, 1024: 0.14 GiB) 3.3 to 6.6 GiB, the fourth's 3 0.2 to 0.4 GiB: 7.5 to 14.5 GiB; gradients of one block 0.5 to 1.2 GiB; the state, whole (44.5 million, 8 bytes) 0.33 GiB, gradients 0.17 GiB; pictures 128 by 224 by 224 by 3 (74 MiB, or padded some GiB): 0.1 to 0.5 GiB; 55 to 105 % of 15.75 GiB",
        {"bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "half": change("batch", ["batch 0.5"], batch=256),
         "remat": change("checkpoint", ["remat *"], remat=True)},
        topology="v5e:2x2", chips=4, batch=512),
    "eqx_lru": program(
        "equinox_programs", "lru", "what 6 blocks keep, no checkpoints (12 pictures of a device of 16384 pixels, 196608 of 128: float32 96 MiB, complex 192 MiB): the scan in parallel over 16384 places (14 levels of halves going up and coming down, what its products keep: complex 192 MiB in all, two to four, joined states one or two): 0.6 to 1.1 GiB; inputs in complex 192 MiB, one; norm, gelu, gates of 256 (192 MiB, one or two), others 96 MiB, four to seven: 0.6 to 1 GiB; together 1.4 to 2.3 GiB a block: 8.5 to 14 GiB; the backward of one scan (complex 192 MiB, four to eight, one moment): 0.8 to 1.5 GiB; the state (0.8 million) little; pixels of one channel little, 96 MiB if padded to 128; 60 to 100 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=24),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=96)},
        topology="v5e:2x2", chips=4, batch=48),
    "brax_apg": program(
        "brax_programs", "apg", "what the unroll of 32 steps keeps for its gradient, stacked (each of 10 frames of the spring physics of 9 bodies: positions, turns, speeds, joints' and contacts' pieces, some two hundred arrays of 9 by 3 or so float32, 5000 to 6000 values, 20 to 24 KiB an environment and frame; padded as three are stored as four or eight, nine as sixteen: one to two times): 6.5 to 14 MiB an environment: 13 to 28 GiB of 2048; gradients of a frame or a step little; the environments themselves (first state kept beside, contacts: 2048 by some 2000 values, 16 MiB), the policy (27 to four of 32) and its state little; 45 to 95 % of 31.25 GiB",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "half": change("batch", ["batch 0.5"], envs=1024),
         "double": change("batch", ["batch 2"], envs=4096)},
        topology="v6e:1x1", chips=1, envs=2048),
    "torchax_t5": program(
        "torchax_programs", "t5", "what 12 layers of the encoder keep in float32, no checkpoints (32 texts of 1024 of a device, 32768 words; scores and probabilities 32 by 12 by 1024 by 1024: 1.5 GiB, one or two; of 768 96 MiB, eight to ten; heads of 64 padded to 128 192 MiB, three or four; the gated MLP's of 2048 256 MiB, four or five): 3.8 to 5.8 GiB a layer: 46 to 70 GiB; the decoder's 12 (8192 words: scores across 32 by 12 by 256 by 1024 384 MiB, own 96 MiB, one or two each; keys and values of the encoder's words 192 MiB each, two; of 768 24 MiB, twelve to sixteen; the MLP's 64 MiB, four or five): 1.4 to 2.1 GiB a layer: 17 to 25 GiB; logits of 32128 words (8192: 1 GiB, two or three): 2 to 3 GiB; the state, whole (248 million, 12 bytes): 2.8 GiB, gradients 0.9 GiB; the places' bias 12 by 1024 by 1024 48 MiB; 70 to 108 % of 94.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "half": change("batch", ["batch 0.5"], batch=128),
         "both": change("both", ["remat *", "batch 2"], remat=24, batch=512)},
        topology="tpu7x:2x2x1", chips=8, batch=256),
    "jax_paged": program(
        "serve_programs", "step", "pages of keys and values (24576 pages of 32 words, 4 of 16 heads' keys and values of 128 on a device, bfloat16: 0.75 GiB a layer, 32 layers): 24 GiB, once as they are donated and written in place; a copy of one layer's in another order or before it is written (0.75 GiB, none to two): 0 to 1.5 GiB; the weights in bfloat16 over 4 (8.03 billion): 3.75 GiB; words' values (2048 of 4096: 16 MiB, four to eight; the MLP's of 3584 14 MiB, three), logits of 256 (32064: float32 31 MiB) 0.2 GiB; page tables little; 88 to 95 % of 31.25 GiB; without donation 24 GiB more, refused",
        {"nodonate": change("donation (undone)", [], donate=False),
         "fp8": change("dtype (cache)", ["dtype cache f8e4m3fn"], kept="float8_e4m3fn"),
         "half": change("batch", ["batch 0.5"], pages=12288, sequences=128, words_at_once=1024)},
        topology="v6e:2x2", chips=4, pages=24576),
    "jax_gat": program(
        "graph_programs", "gat", "what is drawn along 2.5 million edges (3 heads of 250 float32: 7 GiB, 250 padded to 256 7.2 GiB, three heads stored as four 9.5 GiB): kept for the gradient of the shares in two layers: 14 to 19 GiB, in the last (3 of 40: 1.1 GiB, padded 4 GiB) 1.1 to 4 GiB; at the worst moment the product before it is summed, or its gradient drawn back and multiplied (7 to 9.5 GiB, one to three): 7 to 28 GiB; along edges of 3 scores (29 MiB, padded to 4 to 128: 38 MiB to 1.2 GiB, several a layer): 0.3 to 4 GiB; nodes' values (169343 of 750: 0.48 GiB, six to eight a layer): 3 to 4 GiB; the state (2.3 million) little; 80 to 170 % of 31.25 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "both": change("both", ["remat *", "compute bf16"], remat=True, compute="bfloat16")},
        topology="v6e:1x1", chips=1),
}

# Written after the score: checkpoints around the steps of outer loops, and of layers that are no scan.
PROGRAMS |= {
    "brax_hopper": program(
        "brax_programs", "hopper", "what the unroll keeps for its gradient",
        {"remat": change("checkpoint", ["remat scan"], remat=True)},
        topology="v6e:1x1", chips=1, envs=2048),
    "brax_cheetah": program(
        "brax_programs", "cheetah", "what the unroll keeps for its gradient",
        {"remat": change("checkpoint", ["remat scan"], remat=True)},
        topology="v5e:1x1", chips=1, envs=1024),
    "jax_chunked": program(
        "after_programs", "chunked", "what the recurrence over 64 chunks of 32 steps keeps",
        {"remat": change("checkpoint", ["remat scan"], remat=True)},
        topology="v5e:2x2", chips=4, batch=256),
    "jax_lru": program(
        "after_programs", "deep", "what 8 blocks of associative scans keep, no checkpoints",
        {"remat": change("checkpoint", ["remat *"], remat=True)},
        topology="v5e:2x2", chips=4, batch=32),
    "jax_gated": program(
        "after_programs", "gated", "what 10 gated blocks keep, no checkpoints",
        {"remat": change("checkpoint", ["remat *"], remat=True)},
        topology="v6e:2x2", chips=4, batch=64),
}
