"""The fortieth set: cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "linen_towers": program(
        "linen_programs", "towers", "the state (2.4, 2.0 and 1.0 million rows of 128 are 691 million, 16 layers of 1024 by 4096 134 million; 0.83 billion, 12 bytes): 9.3 GiB; gradients, dense, float32 3.1 GiB (as AdamW is not clipped, a table's may be used up before the next is made: 1.2 to 3.1 GiB); what two towers of 8 layers keep (4096 rows: hidden bfloat16 32 MiB, two or three, 1024 wide 8 MiB, three or four, 16 layers): 1.3 to 2 GiB, mostly gone before the tables' gradients; products of all with all (4096 by 4096 float32: 64 MiB, two) 0.13 GiB; 75 to 95 % of 15.75 GiB; without donation the state twice, 18.6 GiB, refused",
        {"nodonate": change("donation (undone)", [], donate=False),
         "half": change("batch", ["batch 0.5"], batch=2048)},
        topology="v5e:1x1", chips=1, batch=4096),
    "linen_mixer": program(
        "linen_programs", "mixer", "the state, whole (items 6 million rows of 128, kinds 0.5 million of 128: 832 million, 12 layers of 1024 by 4096 101 million; 0.93 billion, 8 bytes as Lion has one momentum): 7 GiB; gradients, all at once as they are clipped by their norm, float32 3.5 GiB (the items' 2.9 GiB perhaps twice while summed over devices: 0 to 2.9 GiB); what 12 layers keep, no checkpoints (128 histories of 64 of a device, 8192 places: bfloat16 16 MiB, six to eight with those turned and float32 in norms 32 MiB, none to two; channels' hidden 64 MiB, two or three; places' hidden 128 by 1024 by 256: 64 MiB, two or three): 0.35 to 0.5 GiB a layer: 4 to 6 GiB, gone before the items' gradients are whole; 70 to 100 % of 15.75 GiB; without donation the state twice, 14 GiB and the gradients 3.5 GiB, refused",
        {"nodonate": change("donation (undone)", [], donate=False),
         "zero": change("sharding (ZeRO)", ["shard opt_state 4"], zero=True),
         "remat": change("checkpoint", ["remat *"], remat=True)},
        topology="v5e:2x2", chips=4, batch=512),
    "torchax_muril": program(
        "torchax_programs", "muril", "logits of 197285 words (16 texts of 512, 8192 places, all: float32 6 GiB, one or two): 6 to 12 GiB; what 12 layers keep in float32, no checkpoints (of 768 24 MiB, ten to fourteen, heads of 64 padded to 128 48 MiB, three; the MLP's hidden of 3072: 96 MiB, two or three; scores and probabilities 16 by 12 by 512 by 512: 192 MiB, one or two): 0.7 to 1.1 GiB a layer: 8 to 13 GiB, none of the large ones of the loss's end at another time, as they wait; the state (238 million, 12 bytes): 2.7 GiB, gradients 0.9 GiB (the table's 0.56 GiB, of two ends, perhaps twice); 60 to 90 % of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=12, batch=32)},
        topology="v6e:1x1", chips=1, batch=16),
    "torchax_dinov2": program(
        "torchax_programs", "dinov2", "scores and probabilities of 12 layers in float32, no checkpoints (8 pictures of a device of 1370 places, 12 heads: 0.69 GiB, padded 1376 by 1408 0.71 GiB, one or two): 0.7 to 1.4 GiB a layer: 8.5 to 17 GiB; what else they keep (10960 places: of 768 32 MiB, ten to fourteen, heads of 64 padded to 128 64 MiB, three; the MLP's hidden of 3072: 128 MiB, two or three): 0.7 to 1 GiB a layer: 8 to 12 GiB; the state, whole (87 million, 12 bytes): 1 GiB, gradients 0.33 GiB; pictures 8 by 3 by 518 by 518 float32: 25 MiB, cut in patches a few times that; 60 to 95 % of 31 GiB was written, but a device of this topology is half a chip, of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=16)},
        topology="v4:2x2x1", chips=4, batch=32),
    "jax_flow": program(
        "jax_programs", "flow", "the replay memory (5.24 million places; of 384 sensors float32 7.5 GiB; 16 actions 0.31 GiB if laid out places last, else 2.5 GiB; rewards 20 MiB): 7.8 GiB; the environments' fields (8192 of 3 by 64 by 64 float32: 0.38 GiB, padded 64 to 128 0.75 GiB), while they run four to eight of their fields at once (0.25 GiB each, padded): 1 to 2.5 GiB; the learner's (32768 drawn, fixed: 384 sensors 48 MiB, two; of 1024 in bfloat16 64 MiB, six to twelve, two critics and their targets): 0.5 to 1.2 GiB, at another time than the environments; networks and their state little; 60 to 75 % of 15.75 GiB; without donation the memory twice, 15.6 GiB and the fields, refused",
        {"nodonate": change("donation (undone)", [], donate=False),
         "half": change("batch", ["batch 0.5"], games=4096),
         "bf16": change("dtype", ["dtype observations bf16"], kept="bfloat16")},
        topology="v5e:1x1", chips=1, games=8192),
    "eqx_alibi": program(
        "equinox_programs", "alibi", "(moved from v6e, where it took 13.2 GiB, as the compiler keeps less of the scores, to v5e) scores and probabilities of 12 layers in float32, no checkpoints (8 texts of 1024 of a device, 16 heads: 512 MiB, one or two): 0.5 to 1 GiB a layer: 6 to 12 GiB; what else they keep (8192 places: of 1024 32 MiB, eight to twelve, heads of 64 padded to 128 64 MiB, three; the MLP's hidden of 4096: 128 MiB, two or three): 0.6 to 0.9 GiB a layer: 7 to 11 GiB; logits of 50368 words (8192: float32 1.54 GiB, one or two): 1.5 to 3 GiB; the state, whole (203 million, 12 bytes): 2.3 GiB, gradients 0.76 GiB (the table's 0.2 GiB perhaps twice); the bias (16 by 1024 by 1024: 64 MiB) once; so 60 to 90 % of 31 GiB was written, and 75 to 95 % of 15.75 GiB is now",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16")},
        topology="v5e:2x2", chips=4, batch=32),
}
