"""The fifty-third set: cause and changes written down before compiling.

Two programs (mt_mixtral, hk_impala) filled only 44 % of their memory when first compiled (first_expected.txt): their batches were doubled, for
that reason alone, and what grows with the batch was doubled in their causes; of the dumps only the sizes of their allocations were read.
So that three do not fit, eqx_dlrm went from Adagrad (27.53 GiB) to Adam, and its cause was restated so.
"""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    # This one needs a Python with MaxText.
    "mt_mixtral": program(
        "maxtext_programs", "train", "what the scan over 32 layers saves by the policy minimal (8 texts of 2048 of a device, 16384 words, two experts each, 32768 rows: gate and up of 14336 bfloat16 896 MiB each, down's of 4096 256 MiB; input, out of 4096 128 MiB each, queries 128 MiB, keys and values of 1024 32 MiB each): 2 to 2.8 GiB a layer: 64 to 90 GiB; the state (46.7 billion, 12 bytes over 64): 8.2 GiB, gradients 2.7 GiB; one layer's experts gathered (1.41 billion: bfloat16 2.6 GiB, float32 5.25 GiB) and their gradient before it is divided: 5 to 13 GiB; logits of 32000 words (16384: bfloat16 1 GiB, float32 2 GiB, two or three): 2 to 5 GiB, not at the same time as a layer's gradients; 84 to 120 % of 95 GiB",
        {"full": change("checkpoint", ["remat scan"], remat_policy="full"),
         "micro": change("accumulation", ["micro 4"], per_device_batch_size=2, gradient_accumulation_steps=4),
         "both": change("both", ["remat scan", "batch 2"], remat_policy="full", per_device_batch_size=16)},
        compile_topology="v5p-128", model_name="mixtral-8x7b", per_device_batch_size=8, max_target_length=2048, remat_policy="minimal", attention="flash",
        scan_layers="true", **FAKE),
    "eqx_dlrm": program(
        "equinox_programs", "dlrm", "the tables (204 million rows of 128 over 8, float32): 12.2 GiB, Adam's two moments as much each: 24.5 GiB, their gradients, whole tables as well: 12.2 GiB, a table's at a time at best (2.4 GiB, one to five): 2.4 to 12.2 GiB; rows found (65536 of every table before they are divided, of 128 32 MiB, one or two of 11 tables, one to all at once): 0.1 to 1.2 GiB; 8192 of 3456 108 MiB, ten to fourteen: 1 to 1.5 GiB; the rest little; 128 to 165 % of 31.25 GiB, does not fit",
        {"params": change("dtype (parameters)", ["dtype params bf16"], stored="bfloat16"),
         "opt": change("dtype (optimizer)", ["dtype optimizer bf16"], moments="bfloat16"),
         "both": change("both", ["dtype params bf16", "dtype optimizer bf16"], stored="bfloat16", moments="bfloat16")},
        topology="v6e:2x4", chips=8, batch=65536),
    "jraph_deepergcn": program(
        "jraph_programs", "deepergcn", "what the scan over 28 layers keeps of the edges in float32, no checkpoints (1.2 million of 128: 586 MiB: sent before and after its rectifier, times heat, its exponents, sums gathered, shares, products: four to seven): 2.3 to 4 GiB a layer: 64 to 112 GiB; of the nodes (120000 of 128 59 MiB, four to seven; of 256 117 MiB, three to five): 0.6 to 1 GiB a layer: 16 to 28 GiB; gradients of edges at the worst moment 1.1 to 3 GiB; the state little; 85 to 150 % of 95 GiB, probably does not fit",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "both": change("both", ["remat scan", "compute bf16"], remat=True, compute="bfloat16")},
        topology="v5p:2x2x1", chips=4),
    "hk_impala": program(
        "haiku_programs", "impala", "what the convolutions keep in float32 (96 trajectories of a device, 21 pictures each, 2016; the first section: 84 by 84 of 64 3.4 GiB, one or two, none of it padded if the pictures lie along the lanes, twice as much if the channels do; pooled 42 by 42 0.85 GiB, eight to twelve; the second's 42 by 42 of 128 1.7 GiB, one or two; 21 by 21 0.42 GiB, eight to twelve; the third's 21 by 21 0.42 GiB, one or two, 11 by 11 0.12 GiB, eight to twelve): 17 to 28 GiB, where padded to 34 GiB; pictures 54 MiB of bytes (or padded), in float32 of 4 channels 0.22 GiB, padded more: 0.2 to 7 GiB; gradients at the worst moment 3.4 to 6.8 GiB; the state (5 million) little; 130 to 240 % of 15.75 GiB",
        {"bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "micro": change("accumulation", ["micro 4"], micro=4),
         "half": change("batch", ["batch 0.5"], batch=384)},
        topology="v4:2x2x1", chips=8, batch=768),
    "linen_whisper": program(
        "linen_programs", "whisper", "what the scan over 32 hearing layers keeps, no checkpoints (4 pieces of sound of a device, 1500 places each, 6000 of 1280: bfloat16 15 MiB, ten to fourteen, in norms float32 29 MiB, none to four; heads of 64 padded to 128 29 MiB, three to five; the MLP's of 5120 59 MiB, two to four; scores and probabilities 4 by 20 by 1500 by 1500, padded to 1536: bfloat16 352 MiB, float32 703 MiB, one or two): 0.7 to 1.9 GiB a layer: 23 to 60 GiB; the 32 writing ones' (1792 words of 1280 4.4 MiB, fourteen to eighteen; of 5120 18 MiB, two to four; scores on 448 words bfloat16 31 to 35 MiB, float32 70 MiB, on 1500 places bfloat16 105 MiB, float32 210 MiB, one or two of each; keys and values of what was heard 15 to 29 MiB each): 0.3 to 0.8 GiB a layer: 9 to 25 GiB; the state, whole (1.54 billion, 12 bytes): 17.3 GiB, gradients 5.8 GiB; weights in bfloat16, if kept: 0 to 2.9 GiB; logits of 51866 words (1792: float32 0.35 GiB) little; 58 to 115 % of 94.75 GiB",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "blocks": change("blockwise", ["blockwise *"], blocks=4),
         "both": change("both", ["remat scan", "batch 2"], remat=True, batch=64)},
        topology="tpu7x:2x2x1", chips=8, batch=32),
    "keras_convnext": program(
        "keras_programs", "convnext", "what 36 blocks keep in float32 (40 pictures of a device; in each block in, convolved, normed, out, scaled: four to six of its channels, and hidden, four times as many, before and after gelu, two or three; 56 by 56 of 128 61 MiB, hidden 245 MiB: 0.75 to 1.1 GiB, 3 blocks: 2.2 to 3.3 GiB; 28 by 28 of 256, half of it each: 1.1 to 1.7 GiB; 14 by 14 of 512, a quarter each, 27 blocks: 5 to 7.5 GiB; 7 by 7 of 1024, an eighth: 0.3 to 0.4 GiB): 8.6 to 13 GiB; the state, whole (89 million, 12 bytes): 1 GiB, gradients 0.33 GiB; pictures (23 MiB, or padded) 0.02 to 1 GiB; gradients at the worst moment 0.25 to 0.7 GiB; 64 to 100 % of 15.75 GiB",
        {"bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "fsdp": change("sharding (FSDP)", ["shard * 8"], shard=True),
         "both": change("both", ["compute bf16", "batch 2"], policy="mixed_bfloat16", batch=640)},
        topology="v5e:2x4", chips=8, batch=320),
    "nnx_unet": program(
        "nnx_programs", "unet", "scores and probabilities of the five finest transformers (4 pictures of a device, 8 heads, 4096 by 4096: bfloat16 1 GiB, float32 2 GiB, one of bfloat16 or one of each or two): 1 to 3 GiB each: 5 to 15 GiB, in the backward pass one or two float32 more: 2 to 4 GiB; on 77 words (padded to 128 32 to 64 MiB, one or two): 0.2 to 0.6 GiB; the next five's (1024 by 1024, a sixteenth): 0.3 to 0.9 GiB; what the five finest parts keep besides (16384 places of 320, padded to 384, 10 to 12 MiB; residual blocks ten to sixteen, one or two times as wide or in float32; transformers twenty to thirty, of 2560 80 MiB two or three, heads of 40 padded to 128 32 MiB, three to eight): 0.7 to 1.2 GiB a part: 3.5 to 6 GiB; all coarser ones: 3 to 5 GiB; the state, whole (860 million, 12 bytes): 9.6 GiB, gradients 3.2 GiB, weights in bfloat16 if kept 0 to 1.6 GiB; 85 to 130 % of 31.25 GiB",
        {"blocks": change("blockwise", ["blockwise *"], blocks=8),
         "zero": change("sharding (ZeRO)", ["shard opt_state 8"], zero=True),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=64)},
        topology="v6e:2x4", chips=8, batch=32),
    "torchax_vit": program(
        "torchax_programs", "vit", "what 24 layers keep in float32, no checkpoints (8 pictures of a device, 577 places each, 4616 of 1024: 18 MiB, ten to fourteen; heads of 64 padded to 128 36 MiB, three to five; the MLP's of 4096 72 MiB, two to four; scores and probabilities 8 by 16 by 577 by 577, padded to 640: 180 MiB, one to three): 0.65 to 1.25 GiB a layer: 15 to 30 GiB; the state, whole (304 million, 12 bytes): 3.4 GiB, gradients 1.1 GiB; pictures 14 MiB; gradients at the worst moment 0.2 to 0.5 GiB; 64 to 112 % of 31.25 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=128)},
        topology="v6e:2x4", chips=8, batch=64),
    "serve_speculative": program(
        "serve_programs", "speculative", "the large model's pages of keys and values (48 layers, 40 texts of 8192 places, one of 8 heads of 128 on a device, bfloat16: 80 MiB each): 7.5 GiB, once as they are donated; its weights in bfloat16 (14.8 billion over 8): 3.4 GiB; the small one's, whole (0.49 billion): 0.92 GiB, its caches (24 layers, 5 texts of 2 heads of 64, 8192 places: 10 MiB each, padded to 128 20 MiB): 0.5 to 0.95 GiB; a layer's pages in their order (80 MiB each, two to four; pages written beside the old, none to a few), scores 5 by 40 by 5 by 8192 (float32 31 to 50 MiB, two or three): 0.2 to 1 GiB; 79 to 90 % of 15.75 GiB",
        {"nodonate": change("donation (undone)", [], donate=False),
         "int8": change("dtype (cache)", ["dtype cache s8"], kept="int8"),
         "both": change("both", ["dtype cache s8", "batch 2"], kept="int8", batch=80)},
        topology="v5e:2x4", chips=8, batch=40),
    "tunix_lora": program(
        "tunix_programs", "lora", "what 28 layers keep in bfloat16, no checkpoints (2 texts of 2048 of a device, 4096 words of 3584: 28 MiB, ten to fourteen, in norms float32 56 MiB, none to four; turned in float32 56 MiB, none or one; the MLP's of 18944 148 MiB, three to six; scores and probabilities 2 by 28 by 2048 by 2048: bfloat16 448 MiB, float32 896 MiB, one to three): 1.2 to 3 GiB a layer: 33 to 84 GiB; logits of 152064 words (4096: bfloat16 1.16 GiB, float32 2.3 GiB, with what is right of each word two to four): 4.6 to 9.3 GiB; the weights in bfloat16 (7.6 billion over 8, but the queries' matrices, whose 28 heads 8 does not divide, whole): 2.4 GiB; gathered: a layer's (0.23 billion, 0.43 GiB, one to three), the head's 1 GiB, of all if kept 13 GiB: 1 to 14 GiB; adapters (40 million, whole, float32, 12 bytes and gradients, new beside the old): 0.5 to 0.9 GiB, their rank of 16 padded to 128 (4096 of 16, seven a layer, 1 MiB each) little; 43 to 105 % of 95 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "donate": change("donation", ["donate *"], donate=True),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=32)},
        topology="v5p:2x2x2", shape=(8, 1), batch=16),
    # NEXT
}
