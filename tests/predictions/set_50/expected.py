"""The fiftieth set: cause and changes written down before compiling.

Three programs (mt_qwen3, torchax_pythia, linen_rnnt) were written to not fit and did fit when first compiled (first_expected.txt): their
batches were doubled, for that reason alone, and what grows with the batch was doubled in their causes; no dump was read. Of these only
mt_qwen3 then did not fit. So that three do not fit, by arithmetic of what nothing can make anew: torchax_pythia went to v5e with 2 texts of
a device (state and gradients 15 GiB), serve_beam to 8192 places (caches 16 GiB), its change undonate * to batch 0.5.
"""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    # This one needs a Python with MaxText.
    "mt_qwen3": program(
        "maxtext_programs", "train", "what the scan over 36 layers saves by the policy minimal (8 texts of 8192 of a device, 65536 words: input, out and the MLP's out of 2560 bfloat16 320 MiB each; queries of 4096 512 MiB, keys and values of 1024 128 MiB each; gate and up of 9728 1.2 GiB each): 3.8 to 4.2 GiB a layer: 136 to 152 GiB; logits of 151936 words (65536: bfloat16 18.5 GiB, float32 37 GiB, one of each or two of float32): 37 to 74 GiB; the state (4.02 billion, 12 bytes over 8): 5.6 GiB, gradients 1.9 GiB; table gathered and its gradient (389 million: bfloat16 0.73 GiB, float32 1.45 GiB): 0.7 to 2.2 GiB; one layer in its backward pass 4 to 8 GiB, not at the same time as the logits; 185 to 250 % of 95 GiB, does not fit",
        {"full": change("checkpoint", ["remat scan"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=4),
         "both": change("both", ["remat scan", "chunk logits 8"], remat_policy="full", num_vocab_tiling=8)},
        compile_topology="v5p-16", model_name="qwen3-4b", per_device_batch_size=8, max_target_length=8192, remat_policy="minimal", attention="flash",
        scan_layers="true", **FAKE),
    "torchax_pythia": program(
        "torchax_programs", "pythia", "the state, whole (1.01 billion, 12 bytes): 11.3 GiB, gradients 3.8 GiB; what 16 layers keep, no checkpoints (2 texts of 2048 of a device, 4096 words of 2048: bfloat16 16 MiB, ten to fourteen, in norms float32 32 MiB, none to four; queries, keys and values together 48 MiB, turned 16 MiB each; the MLP's of 8192 64 MiB, two to four; scores and probabilities 2 by 8 by 2048 by 2048: bfloat16 128 MiB, float32 256 MiB, one to three): 0.55 to 1 GiB a layer: 9 to 16 GiB; weights in bfloat16, if kept: 0 to 1.9 GiB; logits of 50304 words (4096: bfloat16 0.4 GiB, float32 0.77 GiB, two or three): 1.2 to 2 GiB; 150 to 220 % of 15.75 GiB, does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=16),
         "zero": change("sharding (ZeRO)", ["shard opt_state 8"], zero=True),
         "both": change("both", ["remat *", "shard * 8"], remat=16, shard=True)},
        topology="v5e:2x4", chips=8, batch=16),
    "keras_segformer": program(
        "keras_programs", "segformer", "in float32, 16 pictures of 512 of a device; what the encoder's layers keep, no checkpoints: the first group's 3 (128 by 128 places of 64, padded to 128: 64 to 128 MiB, eight to twelve; the MLP's of 256 256 MiB, three or four; scores and probabilities on 256 places 256 MiB, one or two) 1.8 to 3 GiB a layer: 5.5 to 9 GiB; the second's 4 (4096 places of 128 32 MiB, the MLP's of 512 128 MiB, scores 2 by 4096 by 256 128 MiB) 0.8 to 1.2 GiB: 3.2 to 4.8 GiB; the third's 6 (1024 of 320 20 to 24 MiB, of 1280 80 MiB, scores 5 by 1024 by 256 80 MiB) 0.5 to 0.8 GiB: 3 to 4.8 GiB; the fourth's 3 0.2 to 0.3 GiB; the decoder's four maps of 128 by 128 of 768 (768 MiB each, joined 3 GiB, fused 768 MiB, normed, rectified): 4 to 8 GiB; what it says of every pixel (512 by 512 of 150, padded to 256: 2.4 to 4 GiB; its softmax and gradient, two or three): 5 to 12 GiB; the state, whole (27 million, 12 bytes) 0.3 GiB; 22 to 38 GiB, 140 to 240 % of 15.75 GiB, does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "both": change("both", ["compute bf16", "batch 0.5"], policy="mixed_bfloat16", batch=32)},
        topology="v5e:2x2", chips=4, batch=64),
    "nnx_vlm": program(
        "nnx_programs", "vlm", "scores and probabilities of one decoder layer (16 prompts, 7 of 28 heads on a device, 1024 words by 16384 places: bfloat16 3.5 GiB, float32 7 GiB; one of each, or two of float32): 7 to 14 GiB; the caches (28 layers, keys and values, 16 by 16384 of one head of 128, bfloat16 64 MiB each): 3.5 GiB, twice as they are not donated: 7 GiB; the weights in bfloat16, the decoder's over 4 (7.6 billion) 3.55 GiB, the picture encoder's whole (0.43 billion) 0.8 GiB; the MLP's of 18944 over 4 (16384 words: 148 MiB, two or three), words' values of 3584 112 MiB, three to five: 0.7 to 1.1 GiB; the picture encoder's scores (4 pictures of a device by 16 by 729 by 729: float32 130 to 150 MiB, two or three) little; logits of 16 words little; 60 to 85 % of 31.25 GiB",
        {"donate": change("donation", ["donate *"], donate=True),
         "blocks": change("blockwise", ["blockwise *"], rows=128),
         "both": change("both", ["blockwise *", "batch 2"], rows=128, batch=32)},
        topology="v6e:2x2", chips=4, batch=16),
    "linen_rnnt": program(
        "linen_programs", "rnnt", "what the joint says of every frame and word (32 utterances of a device, 500 frames by 81 places by 1024 words, 1.33 billion: bfloat16 2.5 GiB, float32 5 GiB; logits, their softmax or gradients, two or three at once): 7.5 to 15 GiB; its hidden of 640 (1.3 million by 640: bfloat16 1.54 GiB, tanh's in and out, its gradient, two or three): 3 to 4.8 GiB; what 17 layers of the encoder keep, no checkpoints (16000 frames of 512: bfloat16 16 MiB, twenty to thirty, in norms float32 32 MiB, none to five; two MLPs of 2048 62 MiB, two or three each; heads of 64 padded to 128 32 MiB, three or four; scores and probabilities 32 by 8 by 500 by 500, padded to 512: bfloat16 128 MiB, float32 250 MiB, one or two): 0.9 to 1.5 GiB a layer: 16 to 26 GiB; the first convolutions (32 by 1000 by 40 by 512: bfloat16 1.25 GiB, one to three; 32 by 500 by 20 by 512 320 MiB): 1.6 to 4 GiB; the state, whole (115 million, 12 bytes) 1.3 GiB, gradients 0.43 GiB; 185 to 320 % of 15.75 GiB, does not fit",
        {"chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "remat": change("checkpoint", ["remat *"], remat=True),
         "both": change("both", ["remat *", "chunk logits 8"], remat=True, chunks=8)},
        topology="v4:2x2x1", chips=8, batch=256),
    "eqx_nerf": program(
        "equinox_programs", "nerf", "what the fine network keeps in float32 (4096 rays of a device by 192 places, 786432 of 256: 768 MiB; eight layers, each out once or twice, before and after its rectifier; the fifth's joined input of 319, padded to 384, 1.1 GiB; features 768 MiB; of 128 384 MiB, two or three; places encoded, 63 and 27 padded to 128, 384 MiB each, one to three): 9 to 16 GiB; the coarse one's, a third of that (64 places): 3 to 5 GiB; gradients at the worst moment 0.8 to 2.3 GiB; places of three numbers padded (786432 by 3 to 128: 384 MiB, or 12 MiB): 0 to 1.5 GiB; the state (1.2 million) little; 85 to 150 % of 15.75 GiB",
        {"micro": change("accumulation", ["micro 4"], micro=4),
         "bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "half": change("batch", ["batch 0.5"], rays=8192)},
        topology="v5e:2x2", chips=4, rays=16384),
    "hk_evoformer": program(
        "haiku_programs", "evoformer", "one block made anew in its backward pass, float32, one protein of a device (128 sequences by 256 residues of 256 32 MiB; pairs 256 by 256 of 128 32 MiB; heads of 32 padded to 128: 128 MiB, three or four in each of four attentions; scores and probabilities: rows 128 by 8 by 256 by 256 256 MiB, columns 256 by 8 by 128 by 128 128 MiB, triangles 256 by 4 by 256 by 256 256 MiB twice, two or three of each; outer product 256 by 256 by 1024 256 MiB, one or two; MLPs of 1024 and 512 128 MiB each, two or three; triangles' products 32 MiB, twelve to sixteen): 3.5 to 7 GiB; what the scan over 48 blocks saves (64 MiB a block): 3 GiB; the state, whole (90 million, 12 bytes): 1 GiB, gradients 0.34 GiB; distances' logits (256 by 256 by 64, padded to 128: 32 MiB) little; 50 to 75 % of 15.75 GiB",
        {"bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "blocks": change("blockwise", ["blockwise *"], rows=32),
         "both": change("both", ["compute bf16", "batch 2"], compute="bfloat16", batch=16)},
        topology="v5e:2x4", chips=8, batch=8),
    "tunix_dpo": program(
        "tunix_programs", "dpo", "what 28 layers keep in bfloat16, no checkpoints (one pair of a device, 2 texts of 1024, 2048 of 3072: 12 MiB, eight to twelve, in norms float32 24 MiB, none to four; the MLP's of 8192 32 MiB, three or four; queries 12 MiB, turned in float32 24 MiB; scores and probabilities 2 by 24 by 1024 by 1024: bfloat16 96 MiB, float32 192 MiB, one to three): 0.35 to 0.75 GiB a layer: 10 to 20 GiB; the state in bfloat16 (3.21 billion, 6 bytes over 4): 4.5 GiB, new weights beside the old, which are not donated, 1.5 GiB, gradients 1.5 GiB; table gathered and its gradient (394 million: bfloat16 0.73 GiB, two to four): 1.5 to 3 GiB; logits of 128256 words (2048, of the answers 1024: bfloat16 0.5 GiB, float32 0.5 to 1 GiB, two or three): 1 to 2 GiB; layers' weights gathered (101 million: 0.19 GiB; of all, if kept, 5.3 GiB): 0.2 to 5.3 GiB; 65 to 115 % of 31.25 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "donate": change("donation", ["donate *"], donate=True),
         "both": change("both", ["remat *", "batch 2"], remat=True, batch=8)},
        topology="v6e:2x2", shape=(4, 1), batch=4),
    "jax_moe": program(
        "moe_programs", "moe", "what the scan over 16 layers keeps, no checkpoints (4 texts of 4096 of a device, 16384 words of 2048: bfloat16 64 MiB, eight to twelve; the kernel's sums 128 MiB, none to two; experts' rows, 8 of 64 experts a word with room for a quarter more, 163840 of 2048: bfloat16 640 MiB, sent, received, out, come back, two to four; gate, up and their product of 1024 320 MiB each, three or four; rows taken back for each word 131072 of 2048 512 MiB, one): 3.6 to 5 GiB a layer: 58 to 80 GiB; the state (experts' 6.44 billion over 8, the rest 0.47 billion whole, 12 bytes): 14.3 GiB, gradients 4.8 GiB; logits of 50304 words (16384: bfloat16 1.5 GiB, float32 3.1 GiB, one of each or two): 4.6 to 6.2 GiB; one layer's gradients 1.5 to 3 GiB; 85 to 112 % of 95 GiB",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "opt": change("dtype (optimizer)", ["dtype optimizer bf16"], moments="bfloat16"),
         "both": change("both", ["dtype params bf16", "micro 4"], stored="bfloat16", micro=4)},
        topology="v5p:2x2x2", chips=8, batch=32),
    "serve_beam": program(
        "serve_programs", "beam", "caches of keys and values (32 layers, 32 texts of 4 beams, one of 8 heads of 128 on a device, 8192 places, bfloat16: 256 MiB each): 16 GiB, once as they are donated, if the loop writes in place; taken anew for each word in the order of the beams (256 MiB each, a few, or all once more 16 GiB): 0.5 to 16 GiB; the weights in bfloat16 (8.03 billion over 8): 1.87 GiB; scores 128 by 4 by 8192 (float32 16 MiB, two to four), logits 128 by 128256 (float32 63 MiB whole, 8 MiB divided, sorted, one to four) 0.1 to 0.3 GiB; 117 to 217 % of 15.75 GiB, does not fit",
        {"int8": change("dtype (cache)", ["dtype cache s8"], kept="int8"),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("both", ["dtype cache s8", "batch 0.5"], kept="int8", batch=16)},
        topology="v5e:2x4", chips=8, batch=32, length=8192),
    # Written after the score, to try what it had led to.
    "moe_narrow": program(
        "moe_programs", "moe", "what the scan over 8 layers keeps, most of it of the experts' places (8 texts of 2048 of a device, 16384 words, four experts of 32 each, half more places: 98304 rows of 1024 192 MiB, of 2048 384 MiB)",
        {"half": change("batch", ["batch 0.5"], batch=16),
         "micro": change("gradient accumulation", ["micro 4"], micro=4)},
        topology="v6e:2x2", chips=4, batch=32, length=2048, vocabulary=32768, width=1024, depth=8, heads=8, experts=32, hidden=2048, chosen=4, room=1.5),
    "rnnt_small": program(
        "linen_programs", "rnnt", "what the joint says of every frame and word (24 utterances of a device, 250 frames by 41 words by 2048 pieces)",
        {"chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "both": change("both", ["remat *", "chunk logits 8"], remat=True, chunks=8)},
        topology="v5p:2x2x1", chips=4, batch=96, frames=1000, said=40, words=2048, depth=12),
}
