"""The fifty-first set: cause and changes written down before compiling."""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    # Needs a Python with MaxText.
    "mt_llama31": program(
        "maxtext_programs", "train", "what the scan over 32 layers saves by save_dot_except_mlp (8 texts of 4096 of a device, 32768 words: inputs, queries, attention's out of 4096 bfloat16 256 MiB each, keys and values of 8 by 128 64 MiB each): 0.9 GiB a layer: 26 to 30 GiB; logits of 128256 words (32768: bfloat16 7.8 GiB, float32 15.7 GiB; one of each, or two of float32), at the same time as what is saved: 16 to 32 GiB; the state (8.03 billion, 12 bytes over 8): 11.2 GiB, gradients 3.7 GiB; head gathered (525 million: bfloat16 1 GiB, its gradient before it is divided float32 2 GiB): 1 to 3 GiB; one layer made anew (of 14336 0.9 GiB, three to five; 256 MiB, six to ten), not at the same time as the logits: 4 to 7 GiB; 58 to 85 % of 95.7 GiB",
        {"full": change("checkpoint", ["remat scan"], remat_policy="full"),
         "micro": change("micro-batches", ["micro 4"], per_device_batch_size=2, gradient_accumulation_steps=4),
         "chunk": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8)},
        compile_topology="v5p-16", model_name="llama3.1-8b", per_device_batch_size=8, max_target_length=4096, remat_policy="save_dot_except_mlp",
        attention="flash", scan_layers="true", **FAKE),
    "keras_whisper": program(
        "keras_programs", "whisper", "what the encoder's 12 layers keep, no checkpoints (8 pieces of speech of a device, 1500 places each, 12000 of 768: bfloat16 18 MiB, in norms float32 35 MiB, ten to fourteen; the MLP's of 3072 70 MiB, two to four; heads of 64 padded to 128 35 MiB, three to five; scores and probabilities 8 by 12 by 1500 by 1500: bfloat16 412 to 432 MiB, float32 twice that, one to three): 0.8 to 2 GiB a layer: 10 to 24 GiB; the decoder's 12 (3584 words; scores across 8 by 12 by 448 by 1500: bfloat16 123 MiB, float32 246 MiB, one to three, its own 37 to 74 MiB; keys and values of the encoder's places 18 to 35 MiB, two to four; of 768 5 MiB): 0.3 to 0.7 GiB a layer: 4 to 8 GiB; the state, whole (242 million, 12 bytes): 2.7 GiB, gradients 0.9 GiB; logits of 51865 words (3584: float32 0.69 GiB, bfloat16 0.35 GiB, two or three): 1 to 2 GiB; 60 to 115 % of 31.25 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "fsdp": change("sharding (FSDP)", ["shard * 4"], shard=True)},
        topology="v6e:2x2", chips=4, batch=32),
    "linen_pythia": program(
        "linen_programs", "pythia", "what the scan over 24 layers keeps, no checkpoints (4 texts of 1024 of a device, 4096 words; of 2048 bfloat16 16 MiB, eight to twelve; the MLP's of 8192 64 MiB, two to three; scores and probabilities 4 by 16 by 1024 by 1024: bfloat16 128 MiB, float32 256 MiB, one or one of each): 0.38 to 0.75 GiB a layer: 9 to 18 GiB; logits of 50304 words (4096: bfloat16 0.38 GiB, float32 0.77 GiB, one of each or two): 1.1 to 1.9 GiB; the state (1.41 billion, 12 bytes over 16): 1.05 GiB, gradients 0.35 GiB; weights of a layer, the table or the head gathered (0.1 to 0.4 GiB, one to three): 0.3 to 0.9 GiB; 38 to 70 % of 31.25 GiB (written as 75 to 130 % of 15.75 GiB of a v5e, which refused it with 22.4 GiB of temporaries: moved to a v6e, nothing else changed)",
        {"blocks": change("blockwise", ["blockwise *"], kernel=True),
         "micro": change("micro-batches", ["micro 4"], micro=4),
         "remat": change("checkpoint", ["remat scan"], remat=True)},
        topology="v6e:4x4", chips=16, batch=64),
    "nnx_convnext": program(
        "nnx_programs", "convnext", "what 36 blocks keep in float32, no checkpoints (32 pictures of a device; first stage 56 by 56 of 192: 73 MiB, 98 MiB padded to 256 channels; a block keeps its input, what the depthwise convolution gives, its norm, four wide before and after gelu, its out: 11 to 14 of these): 0.8 to 1.2 GiB a block of the first stage: 2.4 to 3.6 GiB for 3; the second's 3 (28 by 28 of 384: 37 MiB) 1.2 to 1.6 GiB; the third's 27 (14 by 14 of 768: 18 MiB, places padded more) 5.3 to 7.5 GiB; the fourth's 3 (7 by 7 of 1536) 0.3 to 0.5 GiB: 9.5 to 13 GiB; gradients of one block of the first stage 0.3 to 0.9 GiB; the state, whole (198 million, 12 bytes): 2.2 GiB, gradients 0.74 GiB; pictures little; 75 to 108 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=512)},
        topology="v4:2x2x1", chips=8, batch=256),
    "eqx_pairformer": program(
        "equinox_programs", "pairformer", "what the scan over 12 blocks keeps in float32, no checkpoints (1 example of a device; pairs 384 by 384 of 128: 72 MiB; two multiplications of triangles keep ten to twelve each, two attentions six to eight (heads of 32 padded to 128: each of queries, keys, values, out four times that), the transition's of 512 four to six wide ones of 288 MiB: 48 to 80 of 72 MiB: 3.4 to 5.6 GiB; scores and probabilities of two attentions 384 by 4 by 384 by 384: 864 MiB, one or two each: 1.7 to 3.4 GiB): 5 to 9 GiB a block: 61 to 108 GiB; gradients of one block 2 to 4 GiB; the state (7 million) little; 65 to 115 % of 95.7 GiB",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "both": change("both", ["remat scan", "batch 2"], remat=True, batch=8)},
        topology="v5p:2x2x1", chips=4, batch=4),
    "hk_lstm": program(
        "haiku_programs", "lstm", "logits of 50257 words in float32 (64 texts of 256 of a device, 16384 words: 3.07 GiB; two or three of them: themselves, exponents or their gradient): 6.1 to 9.2 GiB; the state, whole (307 million, 12 bytes): 3.4 GiB, gradients 1.15 GiB; what the scan over 256 words saves for three LSTMs (64 by 8192 gates 2 MiB a word, one to two; cells, hidden, their tanh 0.5 MiB each, three to five): 3.5 to 6.5 MiB a word and layer: 2.6 to 4.9 GiB, at the same time as the logits; words' values (16384 of 2048: 128 MiB, two to four) 0.25 to 0.5 GiB; 80 to 120 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "zero": change("sharding (ZeRO 1)", ["shard opt_state 8"], shard=True)},
        topology="v5e:2x4", chips=8, batch=512),
    "torchax_clip": program(
        "torchax_programs", "clip", "what the 24 layers of the pictures' side keep, no checkpoints (128 pictures of a device, 257 places each, 32896 of 1024: bfloat16 64 MiB, in norms float32 128 MiB, ten to fourteen; the MLP's of 4096 257 MiB, two to four; heads of 64 padded to 128 128 MiB, three to five; scores and probabilities 128 by 16 by 257 by 257: bfloat16 258 MiB, padded to 264 by 384 396 MiB, float32 twice that, one to three): 2.2 to 4 GiB a layer: 53 to 96 GiB; the 12 of the words' side (9856 of 768: 14 MiB; 3072: 58 MiB; scores 128 by 12 by 77 by 77 17 to 30 MiB): 0.4 to 0.7 GiB a layer: 5 to 8 GiB; the state, whole (428 million, 8 bytes: one moment): 3.2 GiB, gradients 1.6 GiB; weights in bfloat16, if kept: 0 to 0.8 GiB; similarities of 1024 little; 66 to 115 % of 94.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=512),
         "bf16": change("dtype (optimizer)", ["dtype optimizer bf16"], moments="bfloat16")},
        topology="tpu7x:2x2x1", chips=8, batch=1024),
    "tunix_dpo": program(
        "tunix_programs", "dpo", "what 28 layers keep, no checkpoints (1 pair of 1024 of a device, 2048 words: of 3072 bfloat16 12 MiB, in norms and turning float32 24 MiB, eight to twelve; the MLP's of 8192 32 MiB, three or four; scores and probabilities 2 by 24 by 1024 by 1024: bfloat16 96 MiB, float32 192 MiB, one or one of each): 0.33 to 0.6 GiB a layer: 9 to 17 GiB; logits of 128256 words (2048: bfloat16 0.49 GiB, float32 0.98 GiB; of answers' 768 each three quarters, two or three): 1 to 2.5 GiB; the state in bfloat16 (3.21 billion, 6 bytes over 4): 4.5 GiB, gradients 1.5 GiB; the new weights beside the old, not donated: 1.5 GiB; the table gathered (394 million: 0.73 GiB) and its gradient: 0.7 to 1.5 GiB; 60 to 90 % of 31.25 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "donate": change("donation", ["donate *"], donate=True),
         "double": change("batch", ["batch 2"], pairs=8)},
        topology="v6e:2x2", shape=(4, 1), pairs=4),
    "serve_prefill": program(
        "serve_programs", "prefill", "caches of keys and values (48 layers, 32 slots of 8192 places, one of 8 heads of 128 on a device, bfloat16: 64 MiB each of keys and values): 6 GiB, and as much again for the new ones, as they are not donated: 12 GiB; scores of one layer (4 prompts of 8192, 5 heads: 4 by 5 by 8192 by 8192 bfloat16 2.5 GiB, float32 5 GiB; one to two): 5 to 10 GiB; the weights in bfloat16 over 8 (14.8 billion): 3.4 GiB; words' values (32768 of 5120, whole on each: bfloat16 320 MiB, float32 640 MiB, three to six): 1 to 2.5 GiB; the MLP's of 1728 108 MiB, two or three; 70 to 95 % of 31.25 GiB",
        {"blocks": change("blockwise", ["blockwise *"], kernel=True),
         "donate": change("donation", ["donate *"], donate=True),
         "int8": change("dtype (cache)", ["dtype cache s8"], kept="int8")},
        topology="v6e:2x4", chips=8, slots=32, prompts=4, length=8192),
    "jax_flow": program(
        "flow_programs", "corrected", "what the scan over 32 steps of the simulator keeps of the network that corrects them (2 flows of 256 by 256: 64 channels float32 32 MiB, 64 MiB padded to 128; six layers, each before and after gelu, and padded by a ring (258 by 258: 33 MiB), two or three): 12 to 18 of 32 MiB, once or twice: 0.4 to 1 GiB a step: 12 to 32 GiB; velocities and their derivatives (2 by 256 by 256: 0.5 MiB each, complex 0.5 MiB, fifteen to thirty; two channels last padded to 128: 64 MiB, none to three): 0.01 to 0.2 GiB a step: 0.3 to 6 GiB; one step in its backward pass 0.2 to 0.6 GiB; the state (0.15 million) and the reference (32 steps: 32 MiB, or padded) little; 40 to 95 % of 31.25 GiB (written as 80 to 180 % of 15.75 GiB of a v5e, which refused it with 35.5 GiB: moved to a v6e, nothing else changed)",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=1),
         "both": change("both", ["remat scan", "batch 2"], remat=True, batch=4)},
        topology="v6e:1x1", chips=1, batch=2),
}

# Written after the score: caches with places for more sequences than are read at once, and a vocabulary that devices divide.
PROGRAMS |= {
    "serve_slots": program(
        "serve_programs", "prefill", "caches of keys and values, and as much again for the new ones; scores of one layer",
        {"half": change("batch", ["batch 0.5"], prompts=3),
         "both": change("both", ["batch 0.5", "donate *"], prompts=3, donate=True)},
        topology="v5e:2x2", chips=4, slots=24, prompts=6, length=4096, vocabulary=65024, width=4096, heads=32, hidden=11264, depth=24),
    "hk_lstm_even": program(
        "haiku_programs", "lstm", "logits of 50304 words and their gradient, what the scan over 256 steps keeps, the state",
        {"zero": change("sharding (ZeRO 1)", ["shard opt_state 8"], shard=True)},
        topology="v5e:2x4", chips=8, batch=512, words=50304),
}
