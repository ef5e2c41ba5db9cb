"""The forty-first set: cause and changes written down before compiling."""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    "mt_llama2": program(
        "maxtext_programs", "train", "the state (6.74 billion, 12 bytes over 16): 4.7 GiB, gradients in float32 1.57 GiB; what the scan over 32 layers saves by the policy save_qkv_proj (2 sequences of 2048 of a device, 4096 tokens of 4096: inputs 32 MiB, queries, keys and values 32 MiB each): 128 MiB a layer: 4 GiB; scores of one layer while its backward runs (dot_product: 2 by 32 by 2048 by 2048: float32 1 GiB, bfloat16 0.5 GiB; two to three): 1.5 to 3 GiB; MLP values of one layer (4096 by 11008: 86 MiB, three or four): 0.3 GiB; a layer's weights gathered (202 million, bfloat16 386 MiB, one to two, float32 gradients of a layer 0.75 GiB): 0.5 to 1.5 GiB; logits of 32000 words (4096: float32 0.49 GiB, two) at another time than the scores; 80 to 105 % of 15.75 GiB",
        {"full": change("checkpoint (policy)", ["remat scan"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "both": change("checkpoint (policy) + batch", ["remat scan", "batch 2"], remat_policy="full", per_device_batch_size=4)},
        compile_topology="v5e-16", model_name="llama2-7b", per_device_batch_size=2, max_target_length=2048, remat_policy="save_qkv_proj", attention="dot_product", scan_layers="true", **FAKE),
    "tunix_llama_sampler": program(
        "tunix_programs", "sampler", "(resized from 80 sequences, for which these sizes were written and which took 19 GiB, as the compiler keeps the cache about twice, to 64) the cache (28 layers, 80 sequences of 4096 places, 2 of 8 heads of 128 on a device, bfloat16: 160 MiB for keys and as much for values): 8.75 GiB; the weights in bfloat16 (3.2 billion over 4): 1.5 GiB; while a layer runs, a copy of its keys or values (160 MiB, or 480 to 960 MiB where repeated to 6 heads): 0.2 to 1 GiB; scores 80 by 6 by 4096 float32 7.5 MiB; logits of 128256 words (80, whole, sorted: 39 MiB float32, three to six) 0.1 to 0.25 GiB; 65 to 80 % of 15.75 GiB; without donation the cache twice, 17.5 GiB, refused",
        {"half": change("batch", ["batch 0.5"], batch=32),
         "short": change("dim", ["dim 4096 2048"], length=2048),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x2", chips=4, batch=64, length=4096),
    "kh_llama_lora": program(
        "keras_programs", "llama_lora", "what 16 layers keep, no checkpoints (6 texts of 512 of a device, 3072 tokens of 2048: bfloat16 12 MiB, eight to twelve, float32 in norms 24 MiB, none to two; heads of 64 padded to 128 24 MiB, three to five as keys and values are repeated; the MLP's of 8192: 48 MiB, three or four; scores and probabilities 6 by 32 by 512 by 512: bfloat16 96 MiB, float32 192 MiB, one or two unless recomputed): 0.4 to 0.75 GiB a layer: 6.5 to 12 GiB; logits of 128256 words (3072: bfloat16 0.73 GiB, float32 1.47 GiB; two to three): 2 to 4 GiB; the weights, frozen in bfloat16 and whole (1.24 billion): 2.3 GiB; LoRA's own and their state little, if rank 8 is not padded to 128; 70 to 105 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=16),
         "half": change("batch", ["batch 0.5"], batch=12),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=16, batch=48)},
        topology="v5e:2x2", chips=4, batch=24),
    "jax_splash": program(
        "pallas_programs", "falcon", "(written in the place of jax_splash_llama, below, when its refusal's 33.5 GiB had been misread as temporaries alone) what the scan over 18 layers saves, no checkpoints (2 sequences of 2048 of a device, 4096 tokens of 2048: bfloat16 16 MiB, inputs, norms, queries twice, out, residual: six to nine; float32 in norms 32 MiB, none to two; keys and values of 4 heads of 256 8 MiB, two or three; the MLP's of 8192: gate, its silu, up, their product 64 MiB each, three or four): 0.32 to 0.5 GiB a layer: 5.7 to 9 GiB; the state (1.67 billion, 12 bytes over 4): 4.7 GiB, gradients in float32 1.56 GiB; logits of 131072 words (4096: float32 2 GiB, bfloat16 1 GiB, one or two): 2 to 5 GiB; table and head gathered (268 million each: bfloat16 0.5 GiB, float32 gradients 1 GiB, one or two): 1 to 3 GiB; all layers' weights in bfloat16 if gathered before the scan 2.1 GiB; 50 to 75 % of 31.25 GiB; without donation the state twice: 4.7 GiB more",
        {"nodonate": change("donation (undone)", [], donate=False),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "half": change("batch", ["batch 0.5"], batch=4),
         "remat": change("checkpoint", ["remat scan"], remat=True)},
        topology="v6e:2x2", chips=4, batch=8, length=2048, depth=18, width=2048, heads=8, kv=4, hidden=8192, vocabulary=131072),
    "torchax_pythia": program(
        "torchax_programs", "pythia", "what 16 layers keep, no checkpoints (4 texts of 1024 of a device, 4096 tokens of 2048: bfloat16 16 MiB, ten to fourteen with the two norms, queries, keys, values together and turned, out; float32 in norms 32 MiB, none to two; the MLP's of 8192: 64 MiB, two or three with its gelu's; scores and probabilities 4 by 8 by 1024 by 1024: bfloat16 64 MiB, float32 128 MiB, one or two unless recomputed): 0.35 to 0.65 GiB a layer: 5.5 to 10 GiB; the state in bfloat16 (1.01 billion, 6 bytes over 4): 1.4 GiB, gradients 0.47 GiB; logits of 50304 words (4096: float32 0.77 GiB, bfloat16 0.38 GiB, one to three): 1.2 to 2 GiB; weights gathered (a layer 50 million: 96 MiB; all, if kept for the backward pass, 1.5 GiB; head 0.2 GiB): 0.5 to 2 GiB; 60 to 95 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=16),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=16, batch=32)},
        topology="v5e:2x2", chips=4, batch=16),
}
PROGRAMS |= {
    "linen_ppo_wide": program(
        "rl_programs", "ppo", "while a minibatch is learnt (131072 moments of 2048 in float32: 1 GiB; actor and critic with three layers each: before the norm, normed or elu's outcome, perhaps what the derivative needs, one to two a layer, and one or two for gradients): 7 to 14 GiB; what was seen (524288 moments of 384 sensors float32: 0.75 GiB, as it was rolled out, perhaps again in another order, and a minibatch's rows 0.19 GiB): 0.9 to 1.7 GiB; actions of 24 (48 MiB, padded to 128 256 MiB, one or two): 0.05 to 0.5 GiB; values, rewards little; the environments' states (8192 of 64 by 3: 6 MiB, padded to 128 256 MiB): little; weights and their state (18.5 million): 0.2 GiB; 60 to 100 % of 15.75 GiB",
        {"half": change("batch", ["batch 0.5"], envs=4096),
         "bf16": change("dtype", ["compute bf16"], dtype="bfloat16"),
         "both": change("dtype + batch", ["compute bf16", "batch 2"], dtype="bfloat16", envs=16384)},
        topology="v5e:1x1", chips=1, envs=8192),
    "eqx_moe": program(
        "equinox_programs", "moe", "what 12 blocks keep in float32, no checkpoints (4 texts of 1024 of a device, 4096 tokens: 12 MiB of 768, eight to twelve, queries, keys and values 36 MiB, heads of 64 padded to 128 24 MiB, three; scores and probabilities 4 by 12 by 1024 by 1024: 192 MiB, one or two unless recomputed): 0.35 to 0.6 GiB a block; in six dense ones the hidden of 3072: 48 MiB, two or three; in six of experts (8 by 320 places for each text, 10240 slots): hidden 120 MiB, two or three, dispatched and back 30 MiB each, dispatch and combine (4 by 1024 by 8 by 320: 40 MiB, padded 320 to 384 48 MiB, two to four), slots 4 by 1024 by 2 by 320 (2 padded to 8: 13 to 48 MiB): 0.45 to 0.7 GiB; in all 7 to 12 GiB; the state, whole (six times eight experts of 4.7 million, six dense of 4.7, attention 28, table 39 million: 322 million, 12 bytes): 3.6 GiB, gradients 1.2 GiB, some made while kept values go; logits of 50304 words (4096: 0.77 GiB, one to three): 0.8 to 2.3 GiB; 75 to 110 % of 15.75 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=32)},
        topology="v5e:2x2", chips=4, batch=16),
    "linen_qwen": program(
        "linen_programs", "qwen", "what the scan over 32 layers saves, no checkpoints (4 texts of 1024 of a group of two devices, 4096 tokens: of 2560, whole on both: bfloat16 20 MiB, four to seven; 10 of 20 heads of 128: 10 MiB, three to five; half of 8960: 35 MiB, three or four; scores and probabilities 4 by 10 by 1024 by 1024: bfloat16 80 MiB, float32 160 MiB, one or two): 0.35 to 0.6 GiB a layer: 11 to 19 GiB; the state (3.36 billion, 12 bytes over 16): 2.35 GiB, gradients in float32 0.8 GiB; logits, half of 152064 words (4096: float32 1.16 GiB, bfloat16 0.58 GiB, one to three): 1.2 to 2.9 GiB; half of table and head gathered with their gradients (195 million each: bfloat16 0.36 GiB, float32 0.73 GiB): 0.7 to 2 GiB; a layer's weights gathered (half of 83 million: 79 MiB) little; 55 to 85 % of 31.25 GiB",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "micro": change("micro-batches", ["micro 4"], micro=4),
         "both": change("checkpoint + chunked loss", ["remat scan", "chunk logits 8"], remat=True, chunks=8)},
        topology="v6e:4x4", shape=(8, 2), batch=32),
}
PROGRAMS |= {
    "jax_splash_llama": program(
        "pallas_programs", "llama", "(written before jax_splash; its base is refused at 33.5 GiB) what the scan over 28 layers saves, no checkpoints (2 sequences of 2048 of a device, 4096 tokens of 3072: bfloat16 24 MiB, inputs, norms, queries twice, out, residual: six to nine; keys and values of 8 heads 8 MiB, two or three; the MLP's of 8192: gate, its silu, up, their product 64 MiB each, three or four): 0.38 to 0.55 GiB a layer: 10.5 to 15 GiB; the state (3.6 billion, 12 bytes over 4): 10.1 GiB, gradients in float32 3.4 GiB; logits of 128256 words (4096: float32 1.96 GiB, bfloat16 0.98 GiB, one or two), at another time than most of the gradients: 2 to 4 GiB; table and head gathered (394 million: bfloat16 0.73 GiB, float32 1.47 GiB, one or two): 0.7 to 2.9 GiB; a layer's weights gathered (101 million: bfloat16 0.19 GiB); 85 to 110 % of 31.25 GiB; without donation the state twice, 20 GiB, refused",
        {"nodonate": change("donation (undone)", [], donate=False),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "half": change("batch", ["batch 0.5"], batch=4),
         "remat": change("checkpoint", ["remat scan"], remat=True)},
        topology="v6e:2x2", chips=4, batch=8, length=2048, depth=28, width=3072, heads=24, kv=8, hidden=8192, vocabulary=128256),
}
