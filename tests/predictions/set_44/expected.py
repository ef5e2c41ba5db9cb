"""The forty-fourth set: cause and changes written down before compiling."""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    "mt_gemma7b": program(
        "maxtext_programs", "train", "the state (8.54 billion, 12 bytes over 16): 6 GiB; what the scan over 28 layers saves by the policy save_dot_with_context_except_mlp (2 texts of 2048 of a device, 4096 tokens of 3072: inputs 24 MiB, out 24 MiB, queries, keys, values and context of 4096 32 MiB each): 176 MiB a layer: 4.8 GiB; logits of 256128 words (4096: bfloat16 1.95 GiB, float32 3.9 GiB, one or two): 4 to 8 GiB; the table gathered (787 million: bfloat16 1.5 GiB, float32 2.9 GiB) and its gradient before it is divided: 1.5 to 6 GiB; gradients in float32: 2 GiB; a layer's weights gathered (277 million: bfloat16 0.5 GiB, float32 gradients 1 GiB): 0.5 to 2 GiB; MLP values of one layer (4096 by 24576: 192 MiB, three to five): 0.6 to 0.9 GiB; 65 to 95 % of 31.25 GiB",
        {"full": change("checkpoint (policy)", ["remat scan"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "double": change("batch", ["batch 2"], per_device_batch_size=4)},
        compile_topology="v6e-16", model_name="gemma-7b", per_device_batch_size=2, max_target_length=2048, remat_policy="save_dot_with_context_except_mlp", attention="flash", scan_layers="true", **FAKE),
}
PROGRAMS |= {
    "linen_protein": program(
        "linen_programs", "protein", "what 12 layers keep, no checkpoints (16 proteins of 1024 of a device, 16384 places of 2560: bfloat16 80 MiB, eight to twelve, float32 in norms 160 MiB, none to two; heads of 64 padded to 128 160 MiB, three to five; the MLP's of 10240: 320 MiB, two or three; scores and probabilities 16 by 40 by 1024 by 1024: float32 2.5 GiB, bfloat16 1.25 GiB, one or two unless made anew): 3.1 to 6 GiB a layer: 37 to 72 GiB; the state (0.95 billion, 12 bytes over 8): 1.3 GiB, gradients 0.45 GiB; the layers' weights gathered (79 million a layer: 0.15 GiB bfloat16, 0.3 GiB float32; of all, if kept, 1.8 GiB): 0.3 to 1.8 GiB; logits of 33 words (16384, padded to 128: 8 MiB float32) little; 50 to 85 % of 94.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64)},
        topology="tpu7x:2x2x1", chips=8, batch=128),
    "tunix_lora": program(
        "tunix_programs", "lora", "what 12 layers keep, no checkpoints (4 texts of 1024 of a device, 4096 tokens of 2560: bfloat16 20 MiB whole or 10 MiB halved, eight to twelve, float32 in norms twice that, none to two; 16 of 32 heads: queries 16 MiB, turned and normed, three or four; the MLP's half of 9728: 38 MiB, three or four; scores and probabilities 4 by 16 by 1024 by 1024: float32 256 MiB, bfloat16 128 MiB, one or two): 0.5 to 0.9 GiB a layer: 6 to 10 GiB; logits (half of 151936 words, 4096: bfloat16 0.58 GiB, float32 1.16 GiB, two to four as the loss has the labels as whole rows): 2 to 4 GiB; the weights, frozen in bfloat16 (1.6 billion over 8): 0.4 GiB; gathered over fsdp (a layer's half 0.1 GiB, the table's 0.36 GiB): 0.4 to 1.5 GiB; LoRA's own and their state little; 60 to 100 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], batch=8)},
        topology="v5e:2x4", shape=(4, 2), batch=16),
    "torchax_smollm3": program(
        "torchax_programs", "smollm3", "what 16 layers keep, no checkpoints (2 texts of 1024 of a device, 2048 tokens of 2048: bfloat16 8 MiB, eight to twelve, float32 in norms 16 MiB, two to four; queries 8 MiB, keys and values repeated to 16 heads 8 MiB each, four to six; the MLP's of 11008: 43 MiB, three or four; scores and probabilities 2 by 16 by 1024 by 1024: bfloat16 64 MiB, float32 128 MiB, one or two unless made anew): 0.35 to 0.6 GiB a layer: 5.5 to 9.5 GiB; logits of 128256 words (2048: bfloat16 0.49 GiB, float32 0.98 GiB, two or three): 1.5 to 3 GiB; the state in bfloat16 (1.52 billion, 6 bytes over 8): 1.06 GiB, gradients 0.35 GiB; the table gathered and its gradient (263 million: 0.49 GiB each, one or two, float32 0.98 GiB): 0.5 to 2 GiB; the layers' weights gathered (78 million a layer: 0.15 GiB; of all, if kept for the backward pass, 2.3 GiB): 0.2 to 2.3 GiB; 65 to 105 % of 15.75 GiB",
        {"chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "remat": change("checkpoint", ["remat *"], remat=16),
         "half": change("batch", ["batch 0.5"], batch=8)},
        topology="v5e:2x4", chips=8, batch=16),
}
PROGRAMS |= {
    "jax_mmdit": program(
        "jax_programs", "mmdit", "the state, whole (582 million: weights, two moments and the average, 16 bytes): 8.7 GiB, gradients in float32 2.2 GiB; what 12 layers keep, no checkpoints (6 pictures of 1024 places and 128 words of a device, 6912 of 1152: bfloat16 15 MiB, twelve to sixteen, float32 in norms 30 MiB, none to two; heads of 64 padded to 128 30 MiB, four to six; the MLP's of 4608: 61 MiB, two or three; scores and probabilities 6 by 18 by 1152 by 1152: float32 547 MiB, bfloat16 273 MiB, one or two unless made anew): 0.7 to 1.4 GiB a layer: 8.5 to 17 GiB; weights in bfloat16, if kept for the backward pass: 0 to 1.1 GiB; latents (6 of 64 by 64 by 16: 1.5 MiB float32) little; 65 to 95 % of 31.25 GiB; without donation 8.7 GiB more",
        {"half": change("batch", ["batch 0.5"], batch=24),
         "nodonate": change("donation (undone)", [], donate=False),
         "zero": change("sharding (ZeRO)", ["shard opt_state 8"], zero=True)},
        topology="v6e:2x4", chips=8, batch=48),
    "jax_medusa": program(
        "jax_programs", "medusa", "the caches (16 layers, 64 of 512 sequences and 4 of 8 heads on a device, 4096 places of 128, bfloat16: 256 MiB for keys and as much for values): 8 GiB, once as they are donated and written in place; copies of one layer's keys or values in another order (256 MiB, none to four): 0 to 1 GiB; the weights (16 layers of 101 million, head, table and four of Medusa's, 2.05 billion in bfloat16 over 2): 1.9 GiB; scores of one layer (64 by 12 by 31 by 4096, padded to 32: float32 384 MiB, bfloat16 192 MiB, joined with the tree's own, two to four): 0.6 to 1.5 GiB; logits of 64000 words (64 by 31, a half: bfloat16 121 MiB, float32 242 MiB, one or two): 0.1 to 0.5 GiB; the tree's keys and values of all layers (64 by 4 by 31 by 128: 2 MiB each): 64 MiB; MLP little; 68 to 85 % of 15.75 GiB; without donation 8 GiB more, refused",
        {"nodonate": change("donation (undone)", [], donate=False),
         "half": change("batch", ["batch 0.5"], batch=256),
         "int8": change("dtype (cache)", ["dtype cache s8"], kept="int8")},
        topology="v5e:4x4", shape=(8, 2), batch=512),
    "hk_meshes": program(
        "haiku_programs", "meshes", "what 15 steps keep in float32, no checkpoints (8 meshes of 24576 edges of a device, 196608 of 128: 96 MiB; edges' latents, hidden after two rectifiers, before the norm, after it, gathered senders and receivers joined to 384 wide, 288 MiB, none or one: five to eight times 96 MiB; nodes, 32768 of 128: 16 MiB, five to eight): 0.55 to 0.95 GiB a step: 8 to 14 GiB; gradients of one step (96 to 288 MiB, three to five): 0.3 to 1.2 GiB; links of 7 and what is seen of 12 (3 MiB and 1.5 MiB, if padded to 128 96 and 16 MiB): 0.1 to 0.2 GiB; the state (2.4 million, 12 bytes) little; 55 to 100 % of 15.75 GiB",
        {"half": change("batch", ["batch 0.5"], batch=16),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "remat": change("checkpoint", ["remat *"], remat=True)},
        topology="v5e:2x2", chips=4, batch=32),
}
