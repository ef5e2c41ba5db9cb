"""The forty-third set: cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "nnx_gemma3": program(
        "nnx_programs", "gemma", "logits of 262144 words (2 texts of 1024 of a device, 2048 tokens: bfloat16 1 GiB, float32 2 GiB, one or two of each): 3 to 6 GiB; the table gathered (671 million: bfloat16 1.25 GiB, float32 2.5 GiB) and its gradient before it is divided (two ends, 1.25 or 2.5 GiB each): 2.5 to 6 GiB; what 10 layers keep, no checkpoints (2048 tokens of 2560: 10 MiB, eight to twelve, float32 in six norms 20 MiB, none to six; the MLP's of 10240: 40 MiB, three or four; queries of 2048 8 MiB, four; scores and probabilities 2 by 8 by 1024 by 1024: float32 64 MiB, bfloat16 32 MiB, one or two): 0.3 to 0.5 GiB a layer: 3 to 5 GiB; the state (1.61 billion, 12 bytes over 8): 2.25 GiB, gradients 0.75 GiB; the layers' weights gathered (94 million a layer: 0.18 GiB bfloat16; of all, if kept, 1.8 GiB): 0.2 to 1.8 GiB; 75 to 110 % of 15.75 GiB",
        {"chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8)},
        topology="v5e:2x4", chips=8, batch=16),
    "nnx_grpo": program(
        "nnx_programs", "grpo", "what 12 layers of the policy keep, no checkpoints (8 answers of 1024 of a device, 8192 tokens of 2048: 32 MiB, eight to twelve, float32 in norms 64 MiB, none to two; the MLP's of 6144: 96 MiB, three or four; queries 32 MiB, keys and values 16 MiB, normed and turned, six; scores and probabilities 8 by 16 by 1024 by 1024: float32 512 MiB, bfloat16 256 MiB, one or two): 0.9 to 1.6 GiB a layer: 11 to 19 GiB; the policy's logits of 151936 words (8192: float32 4.6 GiB, bfloat16 2.3 GiB, one or two): 5 to 10 GiB; the reference's of the same size at another time, before the policy's values; the state (915 million, 12 bytes over 4): 2.6 GiB, the reference in bfloat16 0.43 GiB, gradients 0.85 GiB; the table gathered (311 million: bfloat16 0.58 GiB, float32 1.16 GiB) and its gradient: 1 to 2.5 GiB; 75 to 110 % of 31.25 GiB",
        {"chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16)},
        topology="v6e:2x2", chips=4, batch=32),
    "eqx_stacked": program(
        "equinox_programs", "stacked", "what the scan over 24 blocks saves, no checkpoints (4 texts of 1024, 4096 tokens of 1536: bfloat16 12 MiB, eight to twelve, float32 in norms 24 MiB, two to four; the MLP's of 4352: 34 MiB, three or four; keys and values repeated to 12 heads 12 MiB, four; scores and probabilities 4 by 12 by 1024 by 1024: float32 192 MiB, bfloat16 96 MiB, one or two, and the mask): 0.5 to 0.8 GiB a block, stacked: 12 to 19 GiB; the state (26.3 million a block and 2 by 50 million; 0.73 billion, 12 bytes): 8.2 GiB; gradients, stacked, float32 2.7 GiB; the weights in bfloat16, if cast before the scan (1.2 GiB): 0 to 1.2 GiB; logits of 32768 words (4096: float32 0.5 GiB, one or two): 0.5 to 1 GiB; 75 to 105 % of 31.25 GiB; without donation the state once more, 8.2 GiB, refused or nearly",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "nodonate": change("donation (undone)", [], donate=False),
         "half": change("batch", ["batch 0.5"], batch=2)},
        topology="v6e:1x1", chips=1, batch=4),
    "jax_retrieval": program(
        "jax_programs", "retrieval", "the state, whole (users 2.4 million and items 1.6 million rows of 128: 512 million, towers 6 million; 8 bytes as AdaGrad has one sum): 3.9 GiB, and as it is not donated once more as results: 7.7 GiB; the tables' gradients, dense, float32 1.9 GiB, perhaps twice while summed over devices: 1.9 to 3.8 GiB; histories drawn (4096 users of 50 items of 128 on a device: float32 100 MiB, and their gradient, one to three): 0.1 to 0.3 GiB; products of all with all of a device (4096 by 4096 float32: 64 MiB, two): 0.13 GiB; hidden of 2048 (32 MiB, three to six): 0.1 to 0.2 GiB; 60 to 80 % of 15.25 GiB",
        {"zero": change("sharding (ZeRO)", ["shard opt_state 16"], zero=True),
         "donate": change("donation", ["donate params", "donate opt_state"], donate=True),
         "double": change("batch", ["batch 2"], batch=131072)},
        topology="v4:2x2x2", chips=16, batch=65536),
    "torchax_ast": program(
        "torchax_programs", "ast", "scores and probabilities of 12 layers in float32, no checkpoints (32 sounds of a device of 1214 places, 12 heads: 2.1 GiB, padded to 1216 by 1280 2.2 GiB, one or two unless made anew): 2.2 to 4.4 GiB a layer: 26 to 53 GiB; what else they keep (38848 places: of 768 114 MiB, eight to twelve, heads of 64 padded to 128 228 MiB, three; the MLP's hidden of 3072: 455 MiB, two or three): 2.3 to 3.3 GiB a layer: 28 to 40 GiB; the state, whole (86 million, 12 bytes): 1 GiB, gradients 0.33 GiB; spectrograms 32 by 1024 by 128: 16 MiB; 60 to 100 % of 95 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=128)},
        topology="tpu7x:2x2x1", chips=8, batch=256),
    "keras_unet": program(
        "keras_programs", "unet", "what nine residual blocks keep in float32, no checkpoints (8 pictures of 512 by 512 of a device: of 48 channels 384 MiB, 1 GiB if channels are last and padded to 128; at each of four levels some sixteen such, before and after three normings and two rectifiers, going down and coming up, the skip joined to what comes up counting double, every level half of the one above): 16 times 0.375 GiB, twice over all levels: 9 to 12 GiB, less where what is after a norming is made anew (6 GiB), twice where channels are padded; logits of 19 classes (8 by 512 by 512: float32 152 MiB, 1 GiB if padded to 128, two to four): 0.3 to 4 GiB; the state (18 million, 12 bytes): 0.2 GiB; 60 to 110 % of 15.75 GiB",
        {"half": change("batch", ["batch 0.5"], batch=16),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "double": change("batch", ["batch 2"], batch=64)},
        topology="v5e:2x2", chips=4, batch=32),
    "brax_ppo": program(
        "brax_programs", "ppo", "what was seen (65536 environments, 32 steps of 244 float32, padded to 256: 2 GiB; before and after each step): 4 GiB, with the environments first instead of time, if copied, 4 GiB more; shuffled for an epoch, in eight parts, 4 GiB; actions, raw actions and logits (17, 17, 34 wide, 136, 136 and 272 MiB, or 1 GiB each if padded to 128): 0.5 to 3 GiB, and shuffled as much; a part's networks (262144 moments of 512, 256, 128 float32: 0.5, 0.25, 0.13 GiB, before and after swish, of policy and value): 1.8 to 3.5 GiB; the environments' own (65536 by 244 and 11 bodies of 13 or so, first state kept beside: 0.2 GiB, padded 1 to 2 GiB); networks' state little; 75 to 115 % of 15.75 GiB",
        {"half": change("batch", ["batch 0.5"], envs=32768),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:1x1", chips=1, envs=65536),
}
