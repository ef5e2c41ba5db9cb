"""The forty-ninth set: cause and changes written down before compiling."""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    # Needs a Python with MaxText.
    "mt_llama31": program(
        "maxtext_programs", "train", "what the scan over 32 layers saves by the policy minimal, that is all products (8 texts of 4096 of a row of two chips, 32768 words, of which a chip holds half of every product's columns: inputs, queries, out of 4096 128 MiB each; keys and values of 8 heads of 128 32 MiB each; context 128 MiB; gate and up of 14336 448 MiB each; the MLP's out 128 to 256 MiB): 1.3 to 1.8 GiB a layer: 42 to 58 GiB; logits of 128256 words (32768 by 64128: bfloat16 3.9 GiB, float32 7.8 GiB, one or two): 8 to 16 GiB; the state (8.03 billion, 12 bytes over 8): 11.2 GiB, gradients 3.7 GiB; a layer made anew 1 to 2 GiB; 65 to 95 % of 95 GiB",
        {"full": change("checkpoint", ["remat scan"], remat_policy="full"),
         "micro": change("gradient accumulation", ["micro 4"], per_device_batch_size=1, gradient_accumulation_steps=4),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=2)},
        compile_topology="v5p-16", model_name="llama3.1-8b", per_device_batch_size=4, max_target_length=4096, remat_policy="minimal",
        ici_tensor_parallelism=2, ici_fsdp_parallelism=4, attention="flash", scan_layers="true", **FAKE),
    "torchax_bloom": program(
        "torchax_programs", "bloom", "the state, whole (559 million, 12 bytes): 6.25 GiB, gradients 2.1 GiB; what 24 layers keep, no checkpoints (2 texts of 1024 of a device, 2048 words; scores and probabilities 2 by 16 by 1024 by 1024: bfloat16 64 MiB, float32 128 MiB, one to three; of 1024 bfloat16 4 MiB, ten to fourteen; queries, keys, values together 12 MiB, heads of 64 padded to 128 8 MiB, three; the MLP's of 4096 16 MiB, three or four): 0.17 to 0.45 GiB a layer: 4 to 11 GiB; logits of 250880 words (2048: bfloat16 0.98 GiB, float32 1.96 GiB, two or three): 3 to 6 GiB; the table in bfloat16 0.5 GiB, all weights if kept 0.5 to 1 GiB; 98 to 165 % of 15.75 GiB, refused",
        {"fsdp": change("sharding (FSDP)", ["shard * 8"], shard=True),
         "remat": change("checkpoint", ["remat *"], remat=24),
         "half": change("batch", ["batch 0.5"], batch=8)},
        topology="v5e:2x4", chips=8, batch=16),
    "keras_llama_lora": program(
        "keras_programs", "llama_lora", "what 16 layers keep, no checkpoints, all in bfloat16 (4 texts of 1024 of a device, 4096 words; scores and probabilities 4 by 32 by 1024 by 1024: bfloat16 256 MiB, float32 512 MiB, one or two: 0.25 to 1 GiB; of 2048 16 MiB, eight to twelve, in norms float32 32 MiB, none to two; heads of 64 padded to 128 32 MiB, three to five, keys and values repeated; gate, up, their activation and product of 8192 64 MiB, three or four, as nothing of weights is learnt here but their inputs' gradients want gate and up): 0.6 to 1.5 GiB a layer: 10 to 24 GiB; logits of 128256 words (4096: bfloat16 0.98 GiB, float32 1.96 GiB, two or three): 3 to 6 GiB; frozen weights, whole, in bfloat16 (1.24 billion): 2.3 GiB; adapters (21 million as Keras makes them for every head, 2048 by 32 by 16) and their optimizer's state 0.12 GiB; 50 to 105 % of 31.25 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "fsdp": change("sharding (FSDP)", ["shard * 8"], shard=True)},
        topology="v6e:2x4", chips=8, batch=32),
    "linen_perceiver": program(
        "linen_programs", "perceiver", "what the scan over 24 layers of latents keeps, no checkpoints (2 texts of a device, 2048 latents of 1024: bfloat16 4 MiB, eight to twelve; heads of 64 padded to 128 8 MiB, three or four; the MLP's of 4096 16 MiB, two or three; scores and probabilities 2 by 16 by 1024 by 1024: bfloat16 64 MiB, float32 128 MiB, one or two): 0.2 to 0.4 GiB a layer: 4.8 to 9.6 GiB; the cross-attention over 8192 places (scores 2 by 16 by 1024 by 8192: bfloat16 0.5 GiB, float32 1 GiB, one to three): 1 to 2.5 GiB, its keys and values (16384 places, 32 to 64 MiB each) and norms 0.2 to 0.4 GiB; the state, whole (382 million, 12 bytes): 4.3 GiB, gradients 1.4 GiB; logits of 32768 words (2048: float32 256 MiB, two or three) 0.5 to 0.75 GiB; 75 to 118 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "blocks": change("blockwise", ["blockwise *"], rows=128),
         "micro": change("gradient accumulation", ["micro 2"], micro=2)},
        topology="v4:2x2x2", chips=16, batch=32),
    "nnx_mamba2": program(
        "nnx_programs", "mamba2", "what the scan over 48 layers keeps, no checkpoints (4 texts of 2048 of a device, 8192 words; how much a place sees of another within chunks of 256, 4 by 48 by 8 by 256 by 256: float32 384 MiB, bfloat16 192 MiB, one to three, and times scores bfloat16 192 MiB, none or one: 0.4 to 0.9 GiB; the projection in of 6448 101 MiB, one or two; the convolution's of 3328 52 MiB, two to four; of 3072 48 MiB, six to ten; states of chunks 4 by 8 by 48 by 64 by 128 float32 48 MiB, two to four; of 1536 24 MiB, three or four): 1.1 to 2 GiB a layer: 53 to 96 GiB; the state, whole (779 million, 12 bytes): 8.7 GiB, and once more as nothing is donated: 8.7 GiB; gradients 2.9 GiB; logits of 50288 words (8192: float32 1.5 GiB, two or three): 3 to 4 GiB; 80 to 125 % of 94.75 GiB",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "donate": change("donation", ["donate *"], donate=True),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8)},
        topology="tpu7x:2x2x1", chips=8, batch=32),
    "eqx_turbulence": program(
        "equinox_programs", "turbulence", "what the network keeps at each of 32 steps of the scan, float32, no checkpoints (2 flows of 256 by 256, 64 channels: 32 MiB, six layers; before they are rectified or after, and with their edges wrapped round, 258 by 258, 33 to 50 MiB): 0.2 to 0.5 GiB a step: 6.4 to 16 GiB; fields and spectra (2 by 256 by 256: 0.5 MiB, fifteen to thirty) 10 to 15 MiB a step: 0.3 to 0.5 GiB; stacked in of 3 channels little, or padded; wanted flows 16 MiB; the gradients of one layer 0.1 GiB; weights (0.19 million) little; 43 to 108 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "both": change("both", ["remat scan", "batch 2"], remat=True, batch=4)},
        topology="v5e:2x2", chips=1, batch=2),
    "hk_graphcast": program(
        "haiku_programs", "graphcast", "what 16 rounds of messages keep in float32, no checkpoints (one state of the weather of a device; 81900 edges of 512: 160 MiB; edges and the nodes at both ends, joined, 1536 wide 480 MiB, ends gathered none or two; hidden before and after swish one or two; before the norm, after it, with the residue two or three): 0.95 to 1.6 GiB, of 10242 nodes 20 MiB, six to eight: 1.1 to 1.7 GiB a round: 17 to 28 GiB; to the mesh (104256 edges: 204 MiB, embedded two to four, joined 0.6 GiB, three to five) 1.6 to 2.4 GiB; to the grid (195480 edges: 382 MiB, likewise) 3 to 4.6 GiB; the grid's (65160 of 512: 127 MiB, twelve to eighteen) 1.5 to 2.3 GiB; the weather in of 474 118 MiB, twice, and wanted of 227 57 MiB, two or three: 0.4 GiB; gradients at the worst moment 1 to 3 GiB; the state (36 million, 12 bytes) 0.4 GiB; 75 to 125 % of 31.25 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=32)},
        topology="v6e:4x4", chips=16, batch=16),
    "tunix_distil": program(
        "tunix_programs", "distil", "what 16 layers keep, no checkpoints, in bfloat16 (6 texts of 1024 of a row of two chips, 6144 words, heads and columns halved; scores and probabilities 6 by 16 by 1024 by 1024: bfloat16 192 MiB, float32 384 MiB, one or two: 0.2 to 0.75 GiB; of 2048 12 MiB halved or 24 MiB, ten to fourteen; heads of 64 padded to 128 24 MiB, two to four; the MLP's of 4096 48 MiB, three or four): 0.6 to 1.4 GiB a layer: 9 to 22 GiB; logits of 128256 words (6144 by 64128: bfloat16 0.73 GiB, float32 1.47 GiB; the teacher's, an argument, 0.73 GiB, the student's, softmaxes of both, the labels as float32 of one and zeros): 3.5 to 7 GiB; the state in bfloat16 (1.236 billion, 6 bytes over 8) 0.86 GiB, the model once more as its trainer does not donate it 0.29 GiB, gradients 0.29 GiB; weights gathered (58 MiB a layer, the table's half 0.25 GiB, once or twice) 0.3 to 1.4 GiB; 48 to 105 % of 31.25 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "double": change("batch", ["batch 2"], batch=48),
         "donate": change("donation", ["donate *"], donate=True)},
        topology="v6e:2x4", shape=(4, 2), batch=24),
    "jax_verify": program(
        "serve_programs", "verify", "caches in pages (32 layers, one head of 128 of keys and of values on a chip, 8192 pages of 64 places, that is 64 sequences of 8192, bfloat16: 128 MiB each): 8 GiB, once as they are donated and written in place; what is gathered by the tables of pages, one layer's keys and values (128 MiB each, two to four): 0.25 to 0.5 GiB; the weights in bfloat16 (8.03 billion over 8): 1.87 GiB; scores 64 by 4 by 8 by 8192 (float32 64 MiB, bfloat16 32 MiB, two or three) 0.1 to 0.2 GiB; logits 512 by 16032 little; 65 to 72 % of 15.75 GiB; without donation 8 GiB more, refused",
        {"nodonate": change("donation (undone)", [], donate=False),
         "int8": change("dtype (cache)", ["dtype cache s8"], kept="int8"),
         "half": change("batch", ["batch 0.5"], batch=32)},
        topology="v5e:2x4", chips=8, batch=64),
    "jax_dlrm": program(
        "jax_programs", "dlrm", "26 tables (1.33 billion rows of 128 float32 over 64 chips: 20.8 million rows of a chip): 9.9 GiB, once as they are donated and their asked rows written in place; squares of rows 83 MB; what all 65536 examples asked of a table (32 MiB; found here, before it is summed over the chips: of two to 26 tables at once; slopes gathered, squared, scaled 32 MiB, two to five, of one to 26 tables): 0.2 to 2.5 GiB; towers and 1024 examples little (27 by 128, products 27 by 27); 63 to 80 % of 15.75 GiB; without donation 9.9 GiB more, refused",
        {"nodonate": change("donation (undone)", [], donate=False),
         "bf16": change("dtype (weights)", ["dtype weight bf16"], kept="bfloat16"),
         "double": change("batch", ["batch 2"], batch=131072)},
        topology="v5e:8x8", chips=64, batch=65536),
}

# Written after the score: pages before all else with one to spare, sums of micro-batches, the likely words of a teacher.
PROGRAMS |= {
    "jax_pages": program(
        "after_programs", "pages", "pools of pages of keys and values (24 layers, 96 users of 128 pages and one more, 32 words, 2 of 8 heads of 256 on a chip, bfloat16: 384 MiB each): 9 GiB, once as they are donated; a copy of one as it is read (384 MiB, one or two)",
        {"half": change("batch", ["batch 0.5"], users=48),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v6e:2x2", chips=4, users=96),
    "eqx_sums": program(
        "after_programs", "encoder", "what 8 blocks keep of one of 4 parts of the batch (8 texts of 512 of a device in float32: 16 MiB of 1024; the MLP's 64 MiB, three or four; scores 8 by 8 by 512 by 512: 64 MiB, two or three): 0.45 to 0.6 GiB a block; the state, sums and all: 1.5 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64)},
        topology="v5e:2x2", chips=4, batch=128, parts=4),
    "nnx_teacher": program(
        "after_programs", "distil", "logits of 50304 words (16 texts of 512 of a device: float32 1.54 GiB), the teacher's (bfloat16 0.77 GiB) and their gradient",
        {"half": change("batch", ["batch 0.5"], batch=32),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x2", chips=4, batch=64),
}
