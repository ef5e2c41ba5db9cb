"""The thirty-eighth set: cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "jax_falcon3": program(
        "jax_programs", "falcon3", "what 22 layers keep, no checkpoints (4 sequences of 2048, 8192 tokens on every device; of 3072, whole: bfloat16 48 MiB, residuals, norms and what the reductions give: four to six; 3 of 12 heads of 256: 12 MiB, two, one of 4 keys and values 4 MiB; scores and probabilities 4 by 3 by 2048 by 2048: bfloat16 96 MiB, float32 192 MiB, one or two; a quarter of 9216: 36 MiB, three): 0.45 to 0.7 GiB a layer: 10 to 15 GiB; the state (3.2 billion, 12 bytes over 4): 9 GiB, gradients in float32 3 GiB; logits of 131072 words, a quarter (8192: float32 1 GiB, bfloat16 0.5 GiB, one to three): 2 to 2.5 GiB; 75 to 100 % of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=16),
         "all": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 4"], remat=True, chunks=8, batch=16)},
        topology="v6e:2x2", chips=4, batch=4),
    "jax_unimol": program(
        "jax_programs", "unimol", "pairs of 15 layers in float32, no checkpoints (64 molecules of a device, 64 heads, 128 by 128: 256 MiB; the scores that go on to the next layer and the probabilities, one or two a layer): 4 to 8 GiB; the MLP's hidden (8192 atoms by 2048: 64 MiB, two or three of 15 layers): 1.9 to 2.9 GiB; atoms of 512 (16 MiB, six to eight), heads of 8, which padded to 128 would be sixteen times that (256 MiB, none to three of 15 layers): 1.5 to 10 GiB; the pairs' kernels at both ends (64 by 128 by 128 by 128 float32: 512 MiB, two to four; pairs' heads last, 64 padded to 128: 512 MiB, four to six): 2 to 4 GiB; the state (48 million) 0.55 GiB; 60 to 110 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=128),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=512),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16")},
        topology="v5e:2x2", chips=4, batch=256),
}
PROGRAMS |= {
    "nnx_stablelm": program(
        "nnx_programs", "stablelm", "what 24 layers keep, no checkpoints (2 sequences of 1024 of a device and micro-batch, 2048 tokens: 8 MiB of 2048 in bfloat16, 16 MiB in float32; eight to twelve narrow ones, heads of 64 padded to 128 16 MiB, the MLP's of 5632: 22 MiB, three or four; scores and probabilities 2 by 32 by 1024 by 1024: bfloat16 128 MiB, float32 256 MiB, one or two unless recomputed): 0.3 to 0.55 GiB a layer: 7 to 13 GiB; the state (1.64 billion, 12 bytes over 8): 2.3 GiB, gradients in float32 0.76 GiB, once summed and once of a micro-batch: 0.8 to 1.5 GiB; logits of 100352 words (2048: float32 0.77 GiB, bfloat16 0.38 GiB, one to three): 0.8 to 1.9 GiB; weights gathered (a layer's 51 million: 98 MiB; the head and the table 0.38 GiB each; if all before the loop of micro-batches 3 GiB): 0.5 to 3 GiB; 75 to 110 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "micro": change("micro-batches", ["micro 2"], micro=4),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=128)},
        topology="v5e:2x4", chips=8, batch=32, micro=2),
    "linen_uvit": program(
        "linen_programs", "uvit", "what 21 blocks keep, no checkpoints (40 latents of a device, 258 places each, padded 264: 10320 tokens of 1024, bfloat16 20 MiB, float32 40 MiB in the norms; eight to ten narrow ones, concatenated with the skip twice as wide in 10 blocks; the MLP's 4096: 82 MiB, two or three; heads of 64 padded to 128: 41 MiB, three; scores and probabilities 40 by 16 by 258 by 258, padded 264 by 384: bfloat16 124 MiB, float32 248 MiB, one or two unless recomputed): 0.45 to 0.8 GiB a block: 9 to 15 GiB; the state, whole (287 million, 12 bytes): 3.2 GiB, gradients in float32 1.1 GiB, weights in bfloat16 0.5 GiB; 85 to 115 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=80),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=640)},
        topology="v5e:2x2", chips=4, batch=160),
    "nnx_smollm": program(
        "nnx_programs", "smollm", "what 24 layers keep, no checkpoints (2 texts of 1024 of a device, 2048 tokens: 8 MiB of 2048 in bfloat16; ten to fifteen narrow ones with the sums of base and LoRA, heads of 64 padded to 128 16 MiB; the MLP's of 8192: 32 MiB, three or four; scores and probabilities 2 by 32 by 1024 by 1024: bfloat16 128 MiB, float32 256 MiB, one or two unless recomputed): 0.35 to 0.6 GiB a layer: 8 to 14 GiB; the weights, frozen in bfloat16 and whole (1.71 billion): 3.2 GiB; logits of 49152 words (float32 0.38 GiB, bfloat16 0.19 GiB, one to three): 0.5 to 1 GiB; LoRA weights, their state and gradients (18 million float32, rank 16 padded to 128 lanes where it is the last dimension): 0.3 to 1 GiB; 75 to 115 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=4),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=32),
         "all": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 4"], remat=True, chunks=8, batch=32)},
        topology="v5e:2x2", chips=4, batch=8),
}
PROGRAMS |= {
    "eqx_mdlm": program(
        "equinox_programs", "mdlm", "what 24 blocks keep in float32, no checkpoints (4 texts of 1024 of a device, 4096 tokens: 16 MiB of 1024; the norms, modulated, queries, keys, values, turned, out, gated: ten to fourteen; the MLP's hidden of 4096: 64 MiB, two or three; scores and probabilities 4 by 16 by 1024 by 1024: 256 MiB, one or two unless recomputed; heads of 64 padded to 128: 32 MiB, three): 0.6 to 1 GiB a block: 13 to 22 GiB; the state, whole (425 million, 12 bytes): 4.75 GiB, gradients 1.6 GiB; logits of 50258 words (4096: 0.77 GiB, two or three): 1.5 to 2.3 GiB; 70 to 100 % of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=32)},
        topology="v6e:2x2", chips=4, batch=16),
    "hk_conformer": program(
        "haiku_programs", "conformer", "(resized from 12 recordings of a device, with which it took 6.6 GiB, as the compiler keeps fewer values; here 24, so twice these sizes, which were written for 12, but the state) what 17 layers keep in float32, no checkpoints (12 recordings of 16 seconds of a device, 400 places each, 4800 of 512: 9.4 MiB; two MLPs' hidden of 2048: 38 MiB, four or five; the convolution's 1024 and 512 (19 and 9.4 MiB, six narrow ones), fifteen more narrow ones, heads of 64 padded to 128 19 MiB, three; scores 12 by 8 by 400 by 400, padded 400 by 512: 75 MiB, one or two; those of places 400 by 799, padded 896: 131 MiB, only while made): 0.45 to 0.65 GiB a layer: 7.5 to 11 GiB; the pictures of sound after the first convolution (12 by 800 by 40 by 256: 375 MiB, one or two) and the second (94 MiB), its inputs with one channel padded to 128 or turned (12 by 1600 by 80: 6 MiB, 190 to 750 MiB padded): 0.6 to 1.5 GiB; the state, whole (115 million, 12 bytes): 1.3 GiB, gradients 0.43 GiB; CTC over 1025 pieces (4800: 20 MiB, a few) little; of 24 recordings 65 to 90 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=48),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=384)},
        topology="v5e:2x2", chips=4, batch=96),
}
PROGRAMS |= {
    "torchax_xlmr": program(
        "torchax_programs", "xlmr", "what 24 layers keep in float32, no checkpoints (6 texts of 512 of a device, 3072 tokens: 12 MiB of 1024, eight to twelve, heads of 64 padded to 128 24 MiB, two or three; the MLP's hidden of 4096: 48 MiB, two; scores and probabilities 6 by 16 by 512 by 512: 96 MiB, one or two unless recomputed): 0.3 to 0.45 GiB a layer: 7 to 11 GiB; the state, whole (560 million, 12 bytes): 6.3 GiB, gradients 2.1 GiB, of them the table's 0.95 GiB, made of two ends: twice; logits of 250002 words (3072: 2.9 GiB, one or two with their gradient): 2.9 to 6 GiB; 60 to 85 % of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "first12": change("checkpoint part", ["remat roberta.encoder.layer[*] 12"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=12),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=24, batch=48)},
        topology="v6e:2x2", chips=4, batch=24),
    "torchax_opt": program(
        "torchax_programs", "opt", "what 24 layers keep, no checkpoints (2 texts of 1024 of a device, 2048 tokens: 8 MiB of 2048 in bfloat16, eight to twelve, heads of 64 padded to 128 16 MiB, three; the MLP's of 8192: 32 MiB, one or two; scores and probabilities 2 by 32 by 1024 by 1024: bfloat16 128 MiB, float32 256 MiB, one or two unless recomputed): 0.3 to 0.6 GiB a layer: 7 to 13 GiB; the state in bfloat16 (1.32 billion, 6 bytes over 4): 1.8 GiB, gradients 0.6 GiB; the table gathered and its gradient (0.2 GiB each), a layer's weights gathered (50 million: 96 MiB, a few, more where kept till backward: 2.2 GiB): 0.6 to 2.6 GiB; logits of 50272 words (2048: float32 0.39 GiB, bfloat16 0.2 GiB, one to three): 0.6 to 1 GiB; 65 to 110 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "first12": change("checkpoint part", ["remat model.decoder.layers[*] 12"], remat=12),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=24, batch=32),
         "half": change("batch", ["batch 0.5"], batch=4)},
        topology="v5e:2x2", chips=4, batch=8),
    "kh_deberta": program(
        "keras_programs", "deberta", "(resized from 8 texts of a device, with which it took 5.4 GiB, as the compiler keeps fewer of the scores; here 24, so three times these sizes, which were written for 8, but the state) scores of 12 layers in float32, no checkpoints (8 texts of a device, 12 heads, 512 by 512: 96 MiB; words to words, words to places before and after they are taken, places to words before and after, their sum, probabilities, dropped, its mask: two to six a layer): 2.3 to 7 GiB; tokens (4096 of 768: 12 MiB, ten with dropouts' masks, heads of 64 padded to 128 24 MiB, three), the MLP's hidden of 3072 (48 MiB, two or three): 0.3 GiB a layer: 3 to 3.6 GiB; the state, whole (184 million, 12 bytes): 2.06 GiB, gradients 0.69 GiB; indices of places if repeated for every head (96 MiB, two): 0.2 GiB; of 24 texts 60 to 90 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "first6": change("checkpoint part", ["remat disentangled_attention_encoder_layer_* 6"], remat=6),
         "half": change("batch", ["batch 0.5"], batch=48),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=12, batch=192)},
        topology="v5e:2x2", chips=4, batch=96),
}
