"""The forty-seventh set: cause and changes written down before compiling."""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    # Needs a Python with MaxText.
    "mt_deepseek2": program(
        "maxtext_programs", "train", "what the scan over 26 layers of experts (and one without) saves by the policy save_dot_with_context_except_mlp (3 texts of 4096 of a device, 12288 tokens of 2048: inputs, out 48 MiB each, queries and keys of 16 by 192 72 MiB, values and context of 16 by 128 48 MiB): 0.24 to 0.33 GiB a layer: 6.4 to 9 GiB; logits of 102400 words (12288: bfloat16 2.3 GiB, float32 4.7 GiB, one or two, not at the same time as a layer's): 4.7 to 9.4 GiB; the state (15.7 billion, 12 bytes over 64): 2.75 GiB, gradients 0.9 GiB; one layer of experts made anew (6 of 64: 73728 rows of 2048 bfloat16 288 MiB, four to six; of 1408 198 MiB, four to six): 2 to 3 GiB; its weights gathered (554 million: bfloat16 1 GiB) and their gradient before it is divided (1 or 2 GiB): 1 to 3 GiB; 55 to 90 % of 31.25 GiB",
        {"full": change("checkpoint", ["remat scan"], remat_policy="full"),
         "chunk": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "double": change("batch", ["batch 2"], per_device_batch_size=6)},
        compile_topology="v6e-64", model_name="deepseek2-16b", per_device_batch_size=3, max_target_length=4096, remat_policy="save_dot_with_context_except_mlp",
        attention="flash", scan_layers="true", **FAKE),
    "keras_bart": program(
        "keras_programs", "bart", "what 12 layers of the encoder keep, no checkpoints (40 texts of 1024 of a device, 40960 words; scores, probabilities and after dropout 40 by 16 by 1024 by 1024: bfloat16 1.25 GiB, float32 2.5 GiB, one to three, the dropout's mask 0.6 to 1.25 GiB: 2 to 5 GiB; of 1024 80 MiB, eight to twelve, heads of 64 padded to 128 160 MiB, three or four, the MLP's of 4096 320 MiB, two or three: 1.7 to 2.5 GiB): 3.7 to 7.5 GiB a layer: 44 to 90 GiB; the decoder's 12 (5120 words: across 40 by 16 by 128 by 1024 160 MiB, one to four; keys and values of the encoder's words 80 to 160 MiB, two; of 1024 10 MiB, twelve; the MLP's 40 MiB, two or three): 0.6 to 1.2 GiB a layer: 7 to 14 GiB; logits of 50265 words (5120: float32 0.96 GiB, bfloat16 0.48 GiB, two or three): 1 to 2.5 GiB; the state, whole (406 million, 12 bytes): 4.5 GiB, gradients 1.5 GiB; 62 to 115 % of 95 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=80),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=320)},
        topology="v5:2x2x1", chips=4, batch=160),
    "torchax_modernbert": program(
        "torchax_programs", "modernbert", "what 28 layers keep, no checkpoints (6 texts of 1024 of a device, 6144 words; scores and probabilities 6 by 16 by 1024 by 1024, of the layers that look near too, as the mask alone hides what is far: bfloat16 192 MiB, float32 384 MiB, one or two: 0.2 to 0.75 GiB; of 1024 bfloat16 12 MiB, eight to twelve, in norms float32 24 MiB, none to two; heads of 64 padded to 128 24 MiB, three to six; gate and up together of 5248 62 MiB, gelu's and product of 2624 31 MiB, one or two: 0.3 to 0.5 GiB): 0.5 to 1.2 GiB a layer: 14 to 34 GiB; the state, whole (395 million, 12 bytes): 4.4 GiB, gradients 1.5 GiB; logits of 50368 words (6144: float32 1.15 GiB, two or three): 2.3 to 3.5 GiB; weights in bfloat16, if kept: 0 to 0.65 GiB; 70 to 135 % of 31.25 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=28),
         "half": change("batch", ["batch 0.5"], batch=12),
         "fsdp": change("sharding (FSDP)", ["shard * 4"], shard=True)},
        topology="v6e:2x2", chips=4, batch=24),
    "eqx_fourcast": program(
        "equinox_programs", "fourcastnet", "what 12 blocks keep in float32, no checkpoints (2 states of the weather of a device, 90 by 180 places of 768: 95 MiB for both; the MLP's of 3072 380 MiB, two or three; of 768 95 MiB, norms, residues, what comes of the Fourier transform and goes in, six to ten; real and imaginary parts of 90 by 91 modes in 8 blocks of 96, padded to 128 128 MiB for both: before and after two layers, six to ten of 48 to 64 MiB): 1.7 to 2.8 GiB a block: 20 to 33 GiB; the state, whole (79 million, 12 bytes) 0.9 GiB, gradients 0.3 GiB; the weather, 20 fields of 720 by 1440 (79 MiB a state, twice: in and wanted, cut into patches): 0.3 to 0.7 GiB; 70 to 115 % of 31.25 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=32)},
        topology="v6e:2x4", chips=8, batch=16),
    "hk_muzero": program(
        "haiku_programs", "muzero", "what the network of what is seen keeps in float32, no checkpoints (256 positions of a device: 32 pictures and actions as 128 planes of 96 by 96, 1.1 GiB, an argument; 48 by 48 of 128: 288 MiB, two blocks and the first convolution, four to six each: 2.5 to 3.7 GiB; 24 by 24 of 256: 144 MiB, three blocks: 1.8 to 2.7 GiB; 12 by 12 of 256: 36 MiB, three blocks 0.4 to 0.6 GiB); five steps of the dynamics, 16 blocks of 6 by 6 of 256 (9 MiB, four to six each, 36 places padded little or by 8 / 6): 2.8 to 5.6 GiB; together 8 to 13 GiB; gradients of one block 0.3 to 0.9 GiB; the state (22 million, 12 bytes) 0.25 GiB; values and rewards of 601 little; 60 to 100 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=512),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16")},
        topology="v5e:2x2", chips=4, batch=1024),
    "nnx_swin": program(
        "nnx_programs", "swin", "what 24 blocks keep, no checkpoints (32 pictures of 384 of a device, windows of 144 places; first stage's 2, 9216 places of 128 a picture: bfloat16 72 MiB for 32, ten to fourteen; of 512 288 MiB, two or three; heads of 32 padded to 128 288 MiB, three or four; scores and probabilities 2048 windows by 4 by 144 by 144, padded to 256: bfloat16 324 to 576 MiB, float32 twice that, one or two): 2.5 to 5 GiB each; the second's 2 half of it, 1.2 to 2.5 GiB each; the third's 18 (576 places of 512) a quarter, 0.6 to 1.2 GiB each: 11 to 22 GiB; the fourth's 2 0.3 to 0.6 GiB each; together 19 to 38 GiB; the state, whole (88 million, 12 bytes) 1 GiB, gradients 0.33 GiB; pictures 32 by 384 by 384 by 3 (54 MiB, or padded more) 0.1 to 1 GiB; 65 to 130 % of 31.25 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=256),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=1024)},
        topology="v6e:4x4", chips=16, batch=512),
    "linen_conformer": program(
        "linen_programs", "conformer", "what 17 layers keep in float32, no checkpoints (64 voices of 20 s of a device, 512 places each, 32768 of 512: 64 MiB; two half-step MLPs of 2048: 256 MiB, two or three each: 1 to 1.5 GiB; scores, places' scores before and after they are shifted, and probabilities 64 by 8 by 512 by 512: 512 MiB, one or two, and its dropout's mask: 0.5 to 1.1 GiB; heads of 64 padded to 128 128 MiB, three to five: 0.4 to 0.6 GiB; the convolution's of 1024 128 MiB, one, of 512 three to six; norms, dropouts, residues of 512 eight to twelve): 3 to 4.4 GiB a layer: 50 to 75 GiB; the first two convolutions (64 by 1024 by 40 of 512: 5 GiB, one or two; 64 by 512 by 20 of 512: 1.25 GiB, one or two): 6 to 12 GiB; the state (118 million, 12 bytes) 1.3 GiB, gradients 0.44 GiB; logits of 1024 pieces (128 MiB, three or four) and CTC's sums over 512 places 0.3 to 0.6 GiB; 62 to 95 % of 94.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=256),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=1024)},
        topology="tpu7x:2x2x1", chips=8, batch=512),
    "jraph_schnet": program(
        "jraph_programs", "schnet", "what 5 interactions keep along 131072 edges of a device (32 catalysts of 4096 edges; of 256 filters float32: 128 MiB; forwards: before and after the rectifier, the filter, with its cutoff, gathered neighbours, messages: four to six; backwards for the forces about as many again, kept for the gradient of the forces: four to ten): 1 to 2 GiB an interaction: 5 to 10 GiB; 200 gaussians of the distances (padded to 256: 128 MiB) and their gradients one to four: 0.1 to 0.5 GiB; at the worst moment gradients of one interaction (128 MiB, three to eight): 0.4 to 1 GiB; atoms' values (2560 of 1024: 10 MiB, of 256 2.5 MiB, some ten each, twice) 0.5 to 1 GiB; edges' places, directions of 3 (1.5 MiB, padded to 128 64 MiB) three to eight 0.1 to 0.5 GiB; the state (9 million, 12 bytes) 0.1 GiB; 40 to 85 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "double": change("batch", ["batch 2"], systems=64),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16")},
        topology="v5e:2x4", chips=8, systems=32),
    "jax_nerf": program(
        "jax_programs", "mipnerf360", "what the MLPs keep in float32 (6144 rays of a device; the last, 8 layers of 1024 at 32 places of a ray, 196608: 768 MiB each, 6 GiB, its skip's joined input of 1528 1.1 GiB none or one; two proposals, 4 layers of 256 at 64 places, 393216: 384 MiB each, 3 GiB, with the skip none or one of 760 1.1 GiB each): 9 to 12 GiB; encodings of 504 (393216: 768 MiB, twice; 196608: 384 MiB): 1.9 GiB, sines' arguments and their damping none or as much again: 1.9 to 4 GiB; the gradients of one layer 0.75 to 1.5 GiB; bottleneck of 256 and the view's 128 0.3 GiB; means and covariances of 3 and 3 by 3, lengths, weights 0.1 to 0.5 GiB; the state (8.9 million, 12 bytes) 0.1 GiB; 75 to 115 % of 15.75 GiB",
        {"half": change("batch", ["batch 0.5"], rays=24576),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v4:2x2x1", chips=8, rays=49152),
    "jax_mla": program(
        "serve_programs", "mla", "caches of what keys and values are made of (27 layers, 32 of 512 sequences on a device, 8192 places of 512 latents bfloat16: 256 MiB a layer: 6.75 GiB; turned keys of 64: 32 MiB, or padded to 128 64 MiB: 0.85 to 1.7 GiB), once as they are donated and written in place; a copy of one layer's (256 MiB, none to three) 0 to 0.75 GiB; the weights in bfloat16: experts (26 layers of 64 of 8.65 million over 16) 1.68 GiB, attention whole (371 million) 0.69 GiB, shared experts, first MLP (517 million over 16) 0.06 GiB, table and head (210 million each, over 16) 0.05 GiB; scores 32 by 16 by 8192 (float32 16 MiB, two to four), all 512 words at 4 experts of 1408 little; 62 to 80 % of 15.75 GiB; without donation 7.6 to 8.5 GiB more, refused",
        {"nodonate": change("donation (undone)", [], donate=False),
         "fp8": change("dtype (cache)", ["dtype cache f8e4m3fn"], kept="float8_e4m3fn"),
         "half": change("batch", ["batch 0.5"], batch=256)},
        topology="v5e:4x4", chips=16, batch=512),
}
