"""The thirty-fifth set: cause and changes written down before compiling."""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    "torchax_gemma2": program(
        "torchax_programs", "gemma2", "logits of 256000 words (2 sequences of 1024 of a device: bfloat16 1 GiB, before and after the soft cap, float32 2 GiB, two or three): 4 to 7 GiB; MLP values of 26 layers (2048 tokens by 9216: 36 MiB, three or four): 2.8 to 3.7 GiB; tokens of 2304 (9 MiB, float32 18 MiB in four norms a layer, a dozen): 3 to 4 GiB; scores and probabilities with the soft cap (2 by 8 heads by 1024 by 1024: bfloat16 32 MiB, float32 64 MiB, two or three): 1.7 to 4 GiB; the state (2.61 billion in bfloat16, 6 bytes over 8): 1.8 GiB, gradients 0.6 GiB; the embedding gathered (1.1 GiB) and its whole gradient (1.1 GiB): 1.1 to 2.2 GiB; weights gathered of several layers (78 million: 148 MiB a layer); 85 to 125 % of 16 GiB, less where the compiler recomputes",
        {"remat": change("checkpoint", ["remat *"], remat=26),
         "first13": change("checkpoint part", ["remat model.layers[*] 13"], remat=13),
         "half": change("batch", ["batch 0.5"], batch=8)},
        topology="v5e:2x4", chips=8, batch=16),
    "kh_gpt2": program(
        "keras_programs", "gpt2", "(resized from 8 sequences of a device, with which it took 6 GiB, as the scores of only a few layers stay) logits of 50257 words (16 sequences of 1024 of a device, 16384 tokens: bfloat16 1.53 GiB, float32 3.07 GiB, two or three): 5 to 8 GiB; MLP values (16384 tokens by 3072: 96 MiB, three or four of 12 layers): 3.4 to 4.5 GiB; tokens of 768 (24 MiB, a dozen, masks of dropout, heads of 64 padded to 128): 3 to 5 GiB; scores and probabilities (12 heads: bfloat16 384 MiB, float32 768 MiB, with dropout and its mask two to four, of one or two layers): 1 to 4 GiB; the state, whole (124 million, 12 bytes): 1.4 GiB, gradients 0.5 GiB; 60 to 110 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=32),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=12, batch=128)},
        topology="v5e:2x2", chips=4, batch=64),
    "eqx_longtext": program(
        "equinox_programs", "longtext", "scores of one layer, as its backward runs (1 text of 8192 of a device, 16 heads: float32 4 GiB, bfloat16 2 GiB, two or three): 6 to 12 GiB; float32 logits of 128256 words (8192 tokens: 3.9 GiB, bfloat16 1.96 GiB, two) at another time: 6 to 8 GiB; the state (1.25 billion, 12 bytes over 8): 1.75 GiB, gradients 0.6 GiB; head and embedding gathered (bfloat16 0.5 GiB each, float32 1 GiB) and their gradients: 1 to 2 GiB; inputs of 16 layers (8192 by 2048: 32 MiB): 0.5 GiB; MLP values (8192 by 5632: 88 MiB, four) of one layer; 65 to 110 % of 16 GiB",
        {"flash": change("blockwise attention", ["blockwise *"], blockwise=True),
         "both": change("blockwise attention + chunked loss", ["blockwise *", "chunk logits 8"], blockwise=True, chunks=8),
         "long": change("blockwise attention + dimension", ["blockwise *", "dim 8192 16384"], blockwise=True, length=16384)},
        topology="v5e:2x4", chips=8, batch=8),
    "tunix_gemma_sampler": program(
        "tunix_programs", "sampler", "the caches (34 layers, 48 sequences of 4096, 1 of 4 heads of 256 on a device, bfloat16: 96 MiB for keys and as much for values, sliding layers whole too): 6.4 GiB, and once more where the loop or its update is not in place or wants another layout; the weights (3.9 billion in bfloat16, the heads, MLP and embedding over 4): 1.8 GiB, up to 2.5 GiB with what stays whole; one layer's keys copied (96 MiB, two), scores (48 by 2 by 4096 float32: 1.5 MiB), logits of 65536 words (48: 12 MiB; gathered and sorted for top p 48 MiB, several) are small; 55 to 100 % of 16 GiB",
        {"nodonate": change("donation (undone)", [], donate=False),
         "half": change("batch", ["batch 0.5"], batch=24),
         "short": change("dimension", ["dim 4096 3072"], length=3072)},
        topology="v5e:2x2", chips=4, batch=48, length=4096),
    "mt_llama31": program(
        "maxtext_programs", "train", "the state (8.03 billion, 12 bytes over 8): 11.2 GiB, gradients in float32 3.7 GiB; logits of 128256 words (2 sequences of 4096 of a device: bfloat16 2 GiB, float32 3.9 GiB, one to three): 6 to 9 GiB; inputs of 32 layers that the scan saves by the policy full (8192 by 4096: 64 MiB): 2 GiB; embedding and head gathered (bfloat16 1 GiB each) and their whole gradients (1 to 2 GiB): 1 to 3 GiB; MLP values of one layer (8192 by 14336: 224 MiB, four): 0.9 GiB; a layer's weights gathered (218 million: bfloat16 416 MiB, one or two); 75 to 100 % of 31 GiB",
        {"mu": change("dtype", ["dtype mu bf16"], mu_dtype="bfloat16"),
         "chunk": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=1)},
        compile_topology="v6e-8", model_name="llama3.1-8b", per_device_batch_size=2, max_target_length=4096, remat_policy="full", attention="flash", scan_layers="true", **FAKE),
}
