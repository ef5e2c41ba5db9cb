"""The forty-eighth set: cause and changes written down before compiling."""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    # These two need a Python with MaxText.
    "mt_gptoss": program(
        "maxtext_programs", "train", "logits of 201088 words (8 texts of 4096 of a device, 32768 words: bfloat16 12.3 GiB, float32 24.5 GiB; one of each or two of float32, their gradient): 25 to 50 GiB; one pair of layers made anew in its backward pass, full checkpoints (4 of 32 experts: 131072 rows of 2880 bfloat16 720 MiB: sorted words, gate, up, its product, out, gradients of these: six to ten a layer, the experts divided over 4 groups of devices whose rows come together, buffers of ragged exchanges one to four times that): 5 to 18 GiB; what the scan over 24 layers saves (32768 of 2880: bfloat16 180 MiB a layer, or one of each pair): 2.1 to 4.2 GiB; the state (20.9 billion, 12 bytes over 64): 3.65 GiB, gradients 1.2 GiB; experts' weights of a layer gathered (796 million over 4: bfloat16 0.37 GiB, float32 0.74 GiB, two or three): 0.7 to 2.2 GiB; table and head (579 million each: bfloat16 1.1 GiB, float32 gradient 2.2 GiB): 1 to 4 GiB; 40 to 80 % of 95 GiB",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=4),
         "double": change("batch", ["batch 2"], per_device_batch_size=16),
         "bf16": change("dtype (weights, optimizer)", ["dtype weight bf16", "dtype opt bf16"], weight_dtype="bfloat16")},
        compile_topology="v5p-128", model_name="gpt-oss-20b", per_device_batch_size=8, max_target_length=4096, remat_policy="full", attention="flash",
        scan_layers="true", ici_fsdp_parallelism=16, ici_expert_parallelism=4, **FAKE),
    "mt_mistral_long": program(
        "maxtext_programs", "train", "what the scan over 32 layers saves by the policy minimal (a quarter of one text of 32768 of a device, 8192 words: inputs, queries, out, the MLP's out of 4096 bfloat16 64 MiB each; keys and values of 8 by 128 16 MiB each, if saved after they are gathered 64 MiB each; gate and up of 14336 224 MiB each): 0.7 to 0.85 GiB a layer: 22 to 27 GiB; the state (7.24 billion, 12 bytes over 32): 2.5 GiB, gradients 0.85 GiB; one layer in its backward pass (gate, up, product and gradients 224 MiB each, two to four; 64 MiB each, six to ten): 1 to 1.6 GiB; its weights gathered (218 million: bfloat16 0.41 GiB, gradients before they are divided 0.4 to 0.8 GiB): 0.6 to 1.5 GiB; logits of 32000 words (8192: float32 1 GiB, bfloat16 0.5 GiB, one to three, not at the same time as a layer's): 1 to 2.5 GiB; 85 to 115 % of 31.25 GiB",
        {"full": change("checkpoint", ["remat scan"], remat_policy="full"),
         "double": change("batch", ["batch 2"], per_device_batch_size=0.5),
         "both": change("both", ["remat scan", "batch 2"], remat_policy="full", per_device_batch_size=0.5)},
        compile_topology="v6e-32", model_name="mistral-7b", per_device_batch_size=0.25, max_target_length=32768, remat_policy="minimal", attention="flash",
        scan_layers="true", ici_fsdp_parallelism=8, ici_context_parallelism=4, **FAKE),
    "torchax_esm2": program(
        "torchax_programs", "esm2", "what 16 layers keep, no checkpoints (12 proteins of 1024 of a device, 12288 of 1280: bfloat16 30 MiB, eight to twelve, in norms float32 60 MiB, none to two; scores and probabilities 12 by 20 by 1024 by 1024: bfloat16 480 MiB, float32 960 MiB, one or two: 0.5 to 1.9 GiB; heads of 64 padded to 128 60 MiB, four to eight: 0.25 to 0.5 GiB; the MLP's of 5120 120 MiB, two to four: 0.25 to 0.5 GiB): 1.3 to 3.2 GiB a layer: 21 to 51 GiB; the state, whole (317 million, 12 bytes): 3.5 GiB, gradients 1.2 GiB; weights in bfloat16, if kept: 0 to 0.6 GiB; logits of 33 words little; 27 to 60 % of 94.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=16),
         "half": change("batch", ["batch 0.5"], batch=48),
         "fsdp": change("sharding (FSDP)", ["shard * 8"], shard=True)},
        topology="tpu7x:2x2x1", chips=8, batch=96, depth=16),
    "keras_sam": program(
        "keras_programs", "sam", "what the 4 layers of the picture encoder keep that look at all places (8 pictures of a device, 64 by 64 places; scores, with the places' bias added, and probabilities 8 by 12 by 4096 by 4096: bfloat16 3 GiB, float32 6 GiB, one or two kept): 3 to 12 GiB a layer: 12 to 48 GiB; at the worst moment the gradients of one of these (3 or 6 GiB, one to three): 3 to 18 GiB; the 8 in windows of 14 (64 padded to 70: 25 windows of 196 a picture; scores 200 by 12 by 196 by 196, padded to 256: bfloat16 176 to 240 MiB, one to three); every layer's of 768 (32768: 48 MiB, eight to twelve, heads of 64 padded to 128 96 MiB, three or four), the MLP's of 3072 192 MiB, two or three: 1 to 1.8 GiB a layer: 12 to 22 GiB; pictures 8 by 1024 by 1024 by 3 (float32 96 MiB, bfloat16 48 MiB; padded more): 0.1 to 1.5 GiB; the state, whole (90 million, 12 bytes) 1 GiB, gradients 0.34 GiB; what the large model said (64 by 64 by 256: 32 MiB) little; 35 to 85 % of 95 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=64)},
        topology="v5:2x2x1", chips=4, batch=32),
    "nnx_dit": program(
        "nnx_programs", "dit", "the state, whole: weights and their average in float32, two moments (675 million, 16 bytes): 10 GiB, gradients 2.5 GiB; one layer made anew in its backward pass (32 pictures of a device, 1024 places of 1152, 32768: bfloat16 72 MiB, eight to twelve, in norms float32 144 MiB; the MLP's of 4608 288 MiB, two to four; heads of 72 padded to 128 128 MiB, three to six; scores, probabilities and gradients 32 by 16 by 1024 by 1024: bfloat16 1 GiB, float32 2 GiB, two or three): 4 to 8 GiB; inputs of 28 layers that the scan saves (72 MiB each): 2 GiB; layers' weights in bfloat16, if cast before the scan: 0 to 1.25 GiB; latents of 64 by 64 by 4 (2 MiB, padded more) little; 58 to 80 % of 31.25 GiB",
        {"fsdp": change("sharding (FSDP)", ["shard * 8"], fsdp=True),
         "double": change("batch", ["batch 2"], batch=512),
         "blocks": change("blockwise", ["blockwise *"], rows=128)},
        topology="v6e:2x4", chips=8, batch=256),
    "linen_videomae": program(
        "linen_programs", "videomae", "what the decoder's 12 layers keep, no checkpoints (4 films of a device, 1568 places each, 6272 of 512: bfloat16 6 MiB, eight to twelve; of 2048 24 MiB, two or three; heads of 64 padded to 128 12 MiB, three or four; scores and probabilities 4 by 8 by 1568 by 1568: bfloat16 150 to 160 MiB, float32 twice that, one to three): 0.3 to 0.8 GiB a layer: 4 to 9.5 GiB; at the worst moment a layer's gradients 0.3 to 0.9 GiB; the encoder's 24 (160 places each, 640 of 1024: 1.25 MiB, ten to fourteen; of 4096 5 MiB, two or three; scores 4 by 16 by 160 by 160, padded to 256, 3 to 5 MiB, one to three): 35 to 50 MiB a layer: 0.8 to 1.2 GiB; the state, whole (342 million, 12 bytes) 3.8 GiB, gradients 1.3 GiB; weights in bfloat16, if kept: 0 to 0.65 GiB; films of 16 pictures of 224 (float32 37 MiB, in patches and normed one to four, padded more): 0.1 to 0.6 GiB; 60 to 110 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=32),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=128)},
        topology="v5e:4x4", chips=16, batch=64),
    "eqx_rwkv": program(
        "equinox_programs", "rwkv", "logits of 50277 words (16 texts of 1024 of a device, 16384 words: bfloat16 1.5 GiB, float32 3.1 GiB; one of each or two): 3 to 6 GiB; one layer made anew in its backward pass (what the scan over 1024 words saves in float32, 16 by 2048 a step: 128 MiB each, eight to twelve; of 2048 bfloat16 64 MiB, ten to sixteen; of 8192 256 MiB, two or three; not at the same time as the logits): 2 to 3.2 GiB; inputs of 24 layers that the scan saves (64 MiB each): 1.5 GiB; the state (1.51 billion, 12 bytes over 16): 1.05 GiB, gradients 0.35 GiB; table and head gathered and their gradients (103 million each: bfloat16 0.2 GiB, float32 0.38 GiB, two to four): 0.5 to 1.5 GiB; a layer's weights gathered (54 million: 0.1 to 0.2 GiB, one or two) 0.1 to 0.4 GiB; 42 to 72 % of 15.75 GiB",
        {"chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "half": change("batch", ["batch 0.5"], batch=128),
         "both": change("both", ["chunk logits 8", "batch 2"], chunks=8, batch=512)},
        topology="v4:2x2x2", chips=16, batch=256),
    "hk_graphcast": program(
        "haiku_programs", "graphcast", "what 16 steps of messages on the mesh keep in float32, no checkpoints (2 states of the weather of a device; 81600 edges of 512: 319 MiB for both; an edge joined with both its ends, 1536: 956 MiB; its hidden before and after swish, out, normed, its residue: five to eight of 319 MiB): 2.4 to 3.5 GiB a step, its nodes (10242: 40 MiB, eight to twelve) 0.3 to 0.5 GiB: 43 to 64 GiB; from the mesh to the grid (195480 edges of 512: 764 MiB, six to nine; joined 2.2 GiB): 5 to 9 GiB; from the grid to the mesh (101640 edges: 397 MiB, six to nine; joined 1.2 GiB): 3 to 4.8 GiB; the grid's nodes (65160: 255 MiB, eighteen to twenty six, of the three networks at them): 4.5 to 6.6 GiB; the gradients of the widest moment 1 to 4 GiB; the state (36 million, 12 bytes) 0.4 GiB; fields in and out (186 and 83, padded to 256 and 128; 65160 by 2) 0.2 GiB; 58 to 92 % of 95 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "half": change("batch", ["batch 0.5"], batch=8)},
        topology="v5p:2x2x2", chips=8, batch=16),
    "tunix_grpo": program(
        "tunix_programs", "grpo", "what 28 layers keep, only their attention checkpointed (4 sequences of 1024 of a device, 4096 of 2048: bfloat16 16 MiB, four to six; the MLP's of 6144 48 MiB, three or four: gate, up, its silu, product): 0.2 to 0.29 GiB a layer: 5.7 to 8 GiB; logits of 151936 words (4096: bfloat16 1.16 GiB, float32 2.3 GiB; of the answers' 768 each 0.87 or 1.7 GiB; two or three at once): 2 to 5 GiB; table and head gathered and their gradients (311 million each: bfloat16 0.58 GiB, two to four): 1.1 to 2.4 GiB; the state in bfloat16 (2.03 billion, 6 bytes over 8): 1.4 GiB, the new weights beside the old, which are not donated, 0.47 GiB, gradients 0.47 GiB; attention of one layer made anew (scores 4 by 16 by 1024 by 1024: bfloat16 128 MiB, float32 256 MiB, two or three): 0.3 to 0.7 GiB; layers' weights gathered (50 million: 96 MiB; of all, if kept, 2.6 GiB): 0.1 to 2.6 GiB; 70 to 125 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=64)},
        topology="v5e:2x4", shape=(8, 1), batch=32),
    "serve_lora": program(
        "serve_programs", "lora", "caches of keys and values (32 layers, 64 sequences, one of 8 heads of 128 on a device, 8192 places, bfloat16: 128 MiB each): 8 GiB, once as they are donated and written in place; a copy of one layer's (128 MiB, none to four) 0 to 0.5 GiB; 64 users' adapters of rank 16 (what is before the reduced dimension whole, what is after divided: 18 million a user on a device): 2.15 GiB; the weights in bfloat16 (8.03 billion over 8): 1.87 GiB; adapters taken for each of 64 sequences (16 by 4096: 8 MiB, up to six of a layer) 0.02 to 0.1 GiB; scores 64 by 4 by 8192 (float32 8 MiB, two to four), logits 64 by 128256 over 8 little; 75 to 84 % of 15.75 GiB; without donation 8 GiB more, refused",
        {"nodonate": change("donation (undone)", [], donate=False),
         "int8": change("dtype (cache)", ["dtype cache s8"], kept="int8"),
         "half": change("batch", ["batch 0.5"], batch=32)},
        topology="v5e:2x4", chips=8, batch=64),
}

# Written after the score: states of one graph behind its nodes, modules that keep one value each, texts that are left out.
PROGRAMS |= {
    "linen_mesh": program(
        "after_programs", "linen_mesh", "what 8 steps of messages keep along the edges (122880 of 256, 2 states of a device: 240 MiB each, five to seven a step)",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], states=4)},
        topology="v6e:2x2", chips=4, states=8),
    "hk_mesh": program(
        "after_programs", "haiku_mesh", "what 6 steps of messages keep along the edges (65536 of 384, 4 states of a device: 384 MiB each, four to six a step)",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], states=8)},
        topology="v4:2x2x1", chips=4, states=16),
    "jax_cut": program(
        "after_programs", "cut", "what the scan over 16 layers saves (2 texts of 2048 of a device: of 8192 64 MiB, four or five a layer), not of 4 texts",
        {"full": change("checkpoint", ["remat scan"], remat=True),
         "double": change("batch", ["batch 2"], given=8, used=4)},
        topology="v6e:2x2", chips=4),
}
