"""The forty-fifth set: cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "keras_whisper": program(
        "keras_programs", "whisper", "what 8 layers of the encoder keep, no checkpoints (4 recordings of 1500 places of a device, 6000 of 1024: bfloat16 11.7 MiB, eight to twelve; the MLP's of 4096 47 MiB, two or three; scores and probabilities 4 by 16 by 1500 by 1500: bfloat16 275 MiB, float32 549 MiB, one or two): 0.5 to 1.1 GiB a layer: 4 to 9 GiB; the decoder's 8 (1792 words: 3.5 MiB, twelve to eighteen; scores across 4 by 16 by 448 by 1500: bfloat16 82 MiB, float32 164 MiB, own 24 to 49 MiB, one or two each): 0.2 to 0.45 GiB a layer: 1.6 to 3.6 GiB; the state, whole (289 million, 12 bytes): 3.2 GiB, gradients 1.1 GiB; logits of 51865 words (1792: bfloat16 177 MiB, float32 355 MiB, two or three): 0.4 to 0.9 GiB; weights in bfloat16, if kept: 0 to 0.5 GiB; 65 to 110 % of 15.75 GiB",
        {"half": change("batch", ["batch 0.5"], batch=16),
         "remat": change("checkpoint", ["remat *"], remat=True),
         "fsdp": change("sharding (FSDP)", ["shard * 8"], shard=True)},
        topology="v5e:2x4", chips=8, batch=32),
    "torchax_segformer": program(
        "torchax_programs", "segformer", "what is kept of 8 pictures of 768 by 768 of a device in float32, no checkpoints: the first stage's 3 layers (36864 places of 64 a picture: 9 MiB, padded to 128 18 MiB, six to eight; the mixed MLP's of 256 36 MiB, three or four; scores and probabilities 36864 by 576: 81 MiB, one to three): 0.24 to 0.52 GiB a layer and picture: 5.8 to 12.4 GiB; the second's 4 (9216 of 128: 4.5 MiB; of 512 18 MiB, three or four; scores of 2 heads 40 MiB, one to three): 0.12 to 0.22 GiB: 3.8 to 7 GiB; the third's 6 (2304 of 320: 2.8 MiB; of 1280 11 MiB; scores of 5 heads 25 MiB, one to three): 0.08 to 0.14 GiB: 3.8 to 6.8 GiB; the fourth's 3 0.8 to 1.6 GiB; the head (four of 36864 by 768, 108 MiB each, joined 432 MiB; fused, normed, rectified 108 MiB, two or three): 0.6 to 1.2 GiB a picture: 4.8 to 9.5 GiB; logits of 19 classes at full size (43 MiB a picture, padded to 128 288 MiB, two or three): 0.7 to 6.8 GiB; the state (27 million, 16 bytes) 0.4 GiB; 65 to 140 % of 31.25 GiB",
        {"half": change("batch", ["batch 0.5"], batch=16),
         "remat": change("checkpoint", ["remat *"], remat=16)},
        topology="v6e:2x2", chips=4, batch=32),
    "nnx_vqgan": program(
        "nnx_programs", "vqgan", "what the encoder's and the decoder's blocks keep in float32, no checkpoints (4 pictures of 256 by 256 of a device): at 256 by 256 of 128 (128 MiB) 5 residual blocks, each of two norms, two swishes, two convolutions: five to seven: 0.6 to 0.9 GiB a block: 3.1 to 4.4 GiB, and up- and downsampling 0.25 to 0.4 GiB; at 128 by 128 of 128 (32 MiB), 5 blocks: 0.16 to 0.22 GiB: 0.8 to 1.1 GiB, the upsampled one before 256 places 128 MiB; at 64 by 64 of 256 (16 MiB) 5: 0.4 to 0.6 GiB; at 32 by 32 of 256 (4 MiB) 5: 0.1 GiB; at 16 by 16 of 512, 9 with attention: 0.1 GiB; the gradients of a block (128 MiB, three to five): 0.4 to 0.6 GiB; pictures of 3 channels (3 MiB, padded to 128 128 MiB, one to four): 0 to 0.5 GiB; the state (73 million, 12 bytes): 0.8 GiB, gradients 0.27 GiB; distances to 16384 codes (1024 by 16384: 64 MiB, one to three): 0.1 to 0.2 GiB; 45 to 75 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=64)},
        topology="v4:2x2x1", chips=8, batch=32),
    "eqx_pairformer": program(
        "equinox_programs", "pairformer", "what 8 blocks keep, no checkpoints (one protein of 512 of a device, pairs 512 by 512 of 128: bfloat16 64 MiB, float32 in norms 128 MiB): two multiplications over triangles (norm, two projections, their gates, product, its norm, out and its gate: nine to twelve of 64 MiB): 1.1 to 1.6 GiB; two attentions over triangles (scores and probabilities 512 by 4 by 512 by 512: bfloat16 1 GiB, float32 2 GiB, one or two; queries, keys, values, gate 64 MiB each, heads of 32 padded to 128 256 MiB): 2.5 to 7.5 GiB; the pairs' transition (512 wide: 256 MiB, three or four): 0.75 to 1 GiB; 4.5 to 10 GiB a block: 35 to 80 GiB; gradients of one attention 2 to 6 GiB; the state (24.8 million, 12 bytes) 0.28 GiB; distances of 64 bins (512 by 512 by 64: float32 64 MiB, padded 128 MiB, two or three): 0.1 to 0.4 GiB; 40 to 90 % of 94.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "blocks": change("blockwise", ["blockwise *"], rows=32),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=16)},
        topology="tpu7x:2x2x1", chips=8, batch=8),
    "jax_latent": program(
        "jax_programs", "latent_decode", "the latent caches (16 layers, 64 of 1024 sequences on a device, 8192 places, bfloat16: 512 wide 512 MiB, the turned keys' 64 64 MiB, or 128 MiB padded): 9 to 10 GiB, once as they are donated and written in place in the loop; a copy of one layer's in another order (512 MiB, none to two): 0 to 1 GiB; the weights in bfloat16: experts of 15 layers (4 of 64 on a device, of 1408: 66 MiB a layer): 1 GiB, the rest of the layers whole (attention 13.6 million, shared experts 17.3 million: 59 MiB a layer; the first's dense MLP 67 million: 0.13 GiB): 1 GiB, table and head of 102400 words (0.39 GiB each): 0.8 GiB; scores of one layer (64 by 16 by 8192: float32 32 MiB, two or three) 0.1 GiB; experts' values of all 1024 (4 by 1024 by 1408: 11 MiB) little; logits (64 by 102400 float32: 25 MiB) little; 75 to 95 % of 15.75 GiB; without donation 9 GiB more, refused",
        {"nodonate": change("donation (undone)", [], donate=False),
         "int8": change("dtype (cache)", ["dtype cache s8"], kept="int8"),
         "half": change("batch", ["batch 0.5"], batch=512)},
        topology="v5e:4x4", chips=16, batch=1024),
    "linen_siglip": program(
        "linen_programs", "siglip", "what the picture tower's scan over 27 layers keeps, no checkpoints (96 pictures of 256 patches of a device, 24576 of 1152: bfloat16 54 MiB, eight to twelve, float32 in norms 108 MiB, none to two; heads of 72 padded to 128 96 MiB, three or four; the MLP's of 4304 202 MiB, two or three; scores and probabilities 96 by 16 by 256 by 256: bfloat16 192 MiB, float32 384 MiB, one or two): 1.3 to 2.3 GiB a layer: 35 to 62 GiB; the text tower's 27 (64 words: a quarter, scores a sixteenth): 0.28 to 0.45 GiB a layer: 7.5 to 12 GiB; the state, whole (0.88 billion: weights and average in float32 6.6 GiB, Adafactor's momentum in bfloat16 1.6 GiB, attention's squares, heads of 72 being too narrow to factor, 1.1 GiB): 9.3 GiB, gradients 3.3 GiB; the updates and weights in bfloat16: 1.6 to 5 GiB; the loss over the whole batch (96 by 768) little; 60 to 95 % of 95 GiB",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=384),
         "fsdp": change("sharding (FSDP)", ["shard * 8"], fsdp=True)},
        topology="v5p:2x2x2", chips=8, batch=768),
    "hk_impala": program(
        "haiku_programs", "impala", "what the deep network keeps in float32, no checkpoints (24 unrolls of 101 frames of a device, 2424 frames): the first section's convolution (84 by 84 of 16: 441 KiB a frame, 1.02 GiB, one or two), what its pool gives (42 by 42 of 16: 110 KiB, 0.26 GiB) and its two residual blocks' (five to eight of 0.26 GiB); the second's convolution (42 by 42 of 32: 0.51 GiB, one or two) and blocks (21 by 21 of 32: 0.13 GiB, six to nine); the third's (21 by 21 of 32: 0.13 GiB, one or two; 11 by 11: 36 MiB, six to nine): together 4.1 to 6.8 GiB; channels padded to 128 nowhere if frames are the lanes; gradients of the first section (1.02 GiB, one or two): 1 to 2 GiB; the frames (84 by 84 by 4 bytes: 65 MiB; in float32 0.26 GiB): 0.1 to 0.4 GiB; the recurrent core (2424 by 1024, 9.5 MiB, several) 0.1 GiB; the state little; 38 to 64 % of 15.75 GiB",
        {"half": change("batch", ["batch 0.5"], batch=48),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "remat": change("checkpoint", ["remat *"], remat=True)},
        topology="v5e:2x2", chips=4, batch=96),
    "tunix_dpo": program(
        "tunix_programs", "dpo", "logits of 262144 words (2 pairs, 4 sequences of 1024 of a device: bfloat16 2 GiB, float32 4 GiB; of the answers' half 1 or 2 GiB, two or three): 3 to 7 GiB; what 12 layers keep, no checkpoints (4096 of 1152: bfloat16 9 MiB, ten to fourteen; queries of 4 heads of 256 8 MiB, three or four; the MLP's of 6912 54 MiB, three or four; scores and probabilities 4 by 4 by 1024 by 1024: bfloat16 32 MiB, float32 64 MiB, one or two): 0.35 to 0.55 GiB a layer: 4.2 to 6.6 GiB; the table gathered and its gradient (302 million: bfloat16 0.56 GiB, float32 1.1 GiB, two or three): 1.1 to 2.2 GiB; the state in bfloat16 (624 million, 6 bytes over 8): 0.44 GiB; the layers' weights gathered (27 million a layer: 51 MiB; of all, if kept, 0.6 GiB): 0.1 to 0.6 GiB; 55 to 105 % of 15.75 GiB",
        {"half": change("batch", ["batch 0.5"], batch=8),
         "remat": change("checkpoint", ["remat *"], remat=True),
         "double": change("batch", ["batch 2"], batch=32)},
        topology="v5e:2x4", shape=(8, 1), batch=16),
}

# Written after the score: a policy of MaxText that keeps what attention makes, on five of its models.
FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)


def except_mlp(topology, model, batch):
    return program(
        "maxtext_programs", "train", "what the scan saves of the MLP, most of it",
        {"except_mlp": change("checkpoint (policy)", ["remat scan/*mlp*"], remat_policy="save_dot_except_mlp")},
        compile_topology=topology, model_name=model, per_device_batch_size=batch, max_target_length=4096, remat_policy="minimal",
        attention="flash", scan_layers="true", **FAKE)


PROGRAMS |= {
    "mt_llama31_part": except_mlp("v5e-16", "llama3.1-8b", 1),
    "mt_llama2_part": except_mlp("v6e-16", "llama2-7b", 2),
    "mt_qwen3_part": except_mlp("v5p-16", "qwen3-8b", 4),
    "mt_gemma2_part": except_mlp("v6e-16", "gemma2-9b", 1),
    "mt_mistral_part": except_mlp("v5e-16", "mistral-7b", 1),
}
