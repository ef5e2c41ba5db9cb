"""The eighteenth set: programs of real libraries and of JAX alone, with the cause and the changes that were written down before each was compiled."""

from recipe import change, program

PROGRAMS = {
    "mt_qwen25_accum": program(
        "maxtext_programs", "train", "float32 logits of 152064 words for 16384 tokens of a device with their gradient (9.3 GiB an array); then what the scan over 28 layers saves by the policy `save_qkv_proj` (queries, keys, values and the layer's input: 256 MiB a layer, 7 GiB); then the state (2.7 GiB) and gradients (0.9); nearly full or does not fit",
        {"micro": change("micro-batches", ["micro 4"], per_device_batch_size=1, gradient_accumulation_steps=4),
         "full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "short": change("dimension", ["dim 4096 2048"], max_target_length=2048),
         "both": change("chunked loss + batch", ["chunk logits 8", "batch 2"], num_vocab_tiling=8, per_device_batch_size=8)},
        compile_topology="v6e-32", model_name="qwen2.5-7b", per_device_batch_size=4, max_target_length=4096, remat_policy="save_qkv_proj"),
    "mt_llama2_13b_sp": program(
        "maxtext_programs", "train", "what the scan over 40 layers saves by the policy `minimal` (all matrix products of 16384 tokens, a quarter of each on a device by tensor_sequence 4: q, k, v, out 5120 wide, gate and up 13824: about 450 MiB a layer, 18 GiB); then the state (13 billion weights, 12 bytes over 16: 9.1 GiB) and gradients (3 GiB); does not fit",
        {"offload": change("checkpoint (policy)", ["remat *"], remat_policy="qkv_proj_offloaded"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=0.5),
         "bf16": change("dtype (state)", ["dtype state bf16"], weight_dtype="bfloat16"),
         "both": change("checkpoint (policy) + batch", ["remat *", "batch 2"], remat_policy="full", per_device_batch_size=2)},
        compile_topology="v6e-16", model_name="llama2-13b", per_device_batch_size=1, max_target_length=4096, ici_tensor_sequence_parallelism=4, ici_fsdp_parallelism=4, remat_policy="minimal"),
    "mt_gemma4_31b": program(
        "maxtext_programs", "train", "what the scan over 60 layers (ten cycles of six) saves by the policy `minimal` (gate and up 21504 wide of 8192 tokens: 336 MiB each, queries, keys, values, out, down: about 1.1 GiB a layer, 65 GiB); then float32 logits of 262144 words (8 GiB an array) and the state (31 billion weights, 12 bytes over 64: 5.4 GiB); nearly full or does not fit",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "both": change("checkpoint (policy) + batch", ["remat *", "batch 2"], remat_policy="full", per_device_batch_size=4)},
        compile_topology="v5p-128", model_name="gemma4-31b", per_device_batch_size=2, max_target_length=4096, remat_policy="minimal"),
    "mt_qwen3_8b_zero": program(
        "maxtext_programs", "train", "the state, divided by tensor parallelism (2) only and the same on the 4 groups of data parallelism: weights 15 GiB, Adam's moments 30.5 GiB, gradients 15 GiB; then float32 logits of 151936 words for 8192 tokens, half of the words a device (2.3 GiB an array); fits, more than 70 % full",
        {"zero": change("sharding", ["shard state['optimizer'] 4"], shard_optimizer_over_data="true"),
         "fsdp": change("sharding", ["shard state 4"], ici_data_parallelism=1, ici_fsdp_parallelism=4),
         "nodonate": change("donation (undone)", [], donate=False),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=0.5)},
        compile_topology="v5p-16", model_name="qwen3-8b", per_device_batch_size=1, max_target_length=4096, ici_data_parallelism=4, ici_tensor_parallelism=2, ici_fsdp_parallelism=1),
}
PROGRAMS |= {
    "jax_ulysses": program(
        "jax_programs", "ulysses", "attention scores and probabilities that the scan over 12 layers saves (2 sequences, 4 of 16 heads, 8192 by 8192: 2 GiB float32, 1 GiB bfloat16, a layer): 24 to 40 GiB; everything else is small; does not fit",
        {"flash": change("flash attention", ["blockwise *"], kernel="flash"),
         "remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=2),
         "short": change("dimension", ["dim 8192 4096"], length=4096),
         "both": change("flash attention + batch", ["blockwise *", "batch 2"], kernel="flash", batch=8)},
        topology="v6e:2x4", shape=(2, 4), batch=4, length=8192, depth=12, width=2048, heads=16, hidden=5632, vocabulary=50304),
    "jax_mla_decode": program(
        "jax_programs", "mla_decode", "the latent cache twice, given and made anew by the scan over 27 layers because it is not donated (24 sequences of 8192 places, 576 values padded to 640: 6.3 GiB each); then the weights, whole (4.8 GiB in bfloat16); does not fit",
        {"donate": change("donation", ["donate cache"], donate=True),
         "half": change("batch", ["batch 0.5"], batch=48),
         "short": change("dimension", ["dim 8192 4096"], length=4096),
         "f8": change("dtype (cache)", ["dtype cache f8e4m3fn"], cache_type="float8_e4m3fn"),
         "both": change("donation + batch", ["donate cache", "batch 2"], donate=True, batch=192)},
        topology="v5e:2x2", chips=4, batch=96, length=8192),
    "jax_zero3": program(
        "jax_programs", "zero3", "weights that each layer gathers, which the scan over 24 layers saves for the backward pass in bfloat16 (202 million a layer: 386 MiB, 9 GiB); activations of 4096 tokens (gate, up and their product 11008 wide 86 MiB each, q, k, v, normalised values: about 500 MiB a layer, 12 GiB); then the state, divided (5.1 billion weights, 12 bytes over 8: 7.1 GiB); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8),
         "micro": change("micro-batches", ["micro 2"], micro=2),
         "nodonate": change("donation (undone)", [], donate=False),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=32)},
        topology="v4:2x2x2", chips=8, batch=16, length=2048, depth=24, width=4096, heads=32, hidden=11008, vocabulary=32000),
    "jax_two_tower": program(
        "jax_programs", "two_tower", "the tables, their Adagrad sums and dense gradients, whole on every device, 64 columns padded to 128 (user table 4 million rows: 1.9 GiB padded, item table 0.5): about 2.4 GiB three times; then logits of 8192 queries against 32768 items (1 GiB an array, three of them); fits, more than half full",
        {"half": change("batch", ["batch 0.5"], batch=16384),
         "double": change("batch", ["batch 2"], batch=65536),
         "tables": change("sharding", ["shard params['tables'] 4", "shard opt_state 4"], shard=True),
         "bf16": change("dtype (tables)", ["dtype params['tables'] bf16"], table_type="bfloat16"),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x2", chips=4, batch=32768),
}
PROGRAMS |= {
    "gqa_splash": program(
        "scanned_decoder", "decoder", "attention scores and probabilities of the scan over 16 layers (2 sequences, 24 heads, 4096 by 4096: 3 GiB float32, 1.5 GiB bfloat16, a layer): 48 GiB and more; then MLP values (8192 wide); does not fit",
        {"splash": change("splash attention", ["blockwise *"], kernel="splash"),
         "remat": change("checkpoint", ["remat *"], policy="nothing_saveable"),
         "half": change("batch", ["batch 0.5"], batch=4),
         "both": change("splash attention + chunk", ["blockwise *", "chunk logits 8"], kernel="splash", chunks=8),
         "all": change("splash attention + checkpoint + batch", ["blockwise *", "remat *", "batch 2"], kernel="splash", policy="nothing_saveable", batch=16)},
        topology="v5p:2x2x1", chips=4, batch=8, length=4096, depth=16, width=3072, heads=24, kv=8, hidden=8192, vocabulary=128256, kernel=None),
}
PROGRAMS |= {
    "hk_meshgraph": program(
        "haiku_programs", "meshgraph", "float32 values of the edges in 15 steps (196608 edges of a device, 128 wide: 96 MiB an array; the concatenation 384 wide 288 MiB, two hidden layers, normalisation: about 0.7 GiB a step) and of the nodes (32768: a sixth); about 12 GiB; nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "double": change("batch", ["batch 2"], batch=16),
         "half": change("batch", ["batch 0.5"], batch=4),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=32)},
        topology="v5e:2x2", chips=4, batch=8),
    "hk_dreamer": program(
        "haiku_programs", "dreamer", "float32 values of the decoder's and encoder's first and last convolutions (2048 frames a device; 31 by 31 by 48: 360 MiB, padded to 128 channels 960 MiB and more; the decoder's 30 by 30 by 48 the same), before and after elu; and frames of 64 by 64 by 3, padded; fits or nearly full",
        {"half": change("batch", ["batch 0.5"], batch=64),
         "double": change("batch", ["batch 2"], batch=256),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "short": change("dimension", ["dim 64 32"], length=32)},
        topology="v5e:2x2", chips=4, batch=128),
    "eqx_mamba2": program(
        "equinox_programs", "mamba2", "float32 decays between places of a chunk of 24 layers (4 sequences, 8 chunks of 256 by 256, 32 heads: 256 MiB an array, several kept a layer) and the float32 values of the inner width (2048: 64 MiB each, several); then float32 logits of 50304 words (1.6 GiB an array); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "first12": change("checkpoint part", ["remat layers[*] 12"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=16),
         "fsdp": change("sharding", ["shard model 8", "shard opt_state 8"], fsdp=True),
         "both": change("checkpoint + chunk", ["remat *", "chunk logits 8"], remat=24, chunks=8)},
        topology="v6e:2x4", chips=8, batch=32, length=2048, depth=24, width=1024, heads=32, states=128, chunk=256, vocabulary=50304),
    "eqx_ode": program(
        "equinox_programs", "ode", "float32 activations that the scan over 16 Runge-Kutta steps saves: four evaluations a step of a network with 4 hidden layers (8 fields of a device, 128 channels at 128 by 128: 64 MiB an array, three or four a layer): 16 x 4 x 12 arrays, 48 GiB; does not fit",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "quarter": change("batch", ["batch 0.25"], batch=8),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "both": change("checkpoint + batch", ["remat scan", "batch 2"], remat=True, batch=64)},
        topology="v4:2x2x1", chips=4, batch=32),
}
PROGRAMS |= {
    "nnx_mae": program(
        "nnx_programs", "mae", "float32 MLP values of the encoder's 24 layers (64 images, 49 places padded to 56, 4096 wide: 49 MiB an array, before and after GELU) and of the decoder's 8 (196 places, 2048 wide: 98 MiB each), attention scores and probabilities of the decoder (16 heads, 196 by 196 padded to 200 by 256: 200 MiB an array); about 8 GiB; then the state, whole (330 million weights, 12 bytes: 3.7 GiB, gradients 1.2); nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=256),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "zero": change("sharding", ["shard opt_state 8"], zero=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=1024)},
        topology="v5e:2x4", chips=8, batch=512),
    "nnx_unet": program(
        "nnx_programs", "unet", "float32 activations of the U-Net's blocks (16 latents a device; first level 64 by 64 by 256: 64 MiB an array, 512 where concatenated, seven or eight a block) and attention scores and probabilities of the middle level (8 heads, 1024 by 1024: 512 MiB an array, 5 blocks); then the state with its moving average, whole (about 256 million weights, 16 bytes: 3.8 GiB); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=32),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "zero": change("sharding", ["shard opt_state 4", "shard ema 4"], zero=True),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x2", chips=4, batch=64),
    "linen_pairs": program(
        "linen_programs", "pairs", "float32 attention scores and probabilities of the triangle attentions that the scan over 8 blocks saves (one protein, 256 rows, 4 heads, 256 by 256: 256 MiB an array, two or three kept, two attentions a block) and pair values (256 by 256 by 128: 32 MiB each, about 40 a block): 2.5 GiB a block, 20 GiB; does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "double": change("batch", ["batch 2"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=16)},
        topology="v5e:2x2", chips=4, batch=4),
    "linen_timesformer": program(
        "linen_programs", "video", "float32 attention scores and probabilities over time of 12 layers (2 videos, 196 places, 12 heads, 16 by 16 padded to 16 by 128: 37 MiB an array), over space (16 frames, 12 heads, 196 by 196 padded to 200 by 256: 75 MiB) and MLP values (6272 places, 3072 wide: 74 MiB, before and after GELU), about 12 arrays 768 wide (18 MiB): 600 MiB a layer, 7 GiB; fits",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "first6": change("checkpoint part", ["remat block_* 6"], remat=6),
         "double": change("batch", ["batch 2"], batch=32),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=12, batch=64)},
        topology="v5e:2x4", chips=8, batch=16),
}
PROGRAMS |= {
    "torchax_ast": program(
        "torchax_programs", "ast", "float32 attention scores and probabilities of 12 layers (16 sounds a device, 12 heads, 1214 by 1214 padded to 1216 by 1280: 1.1 GiB an array, one or two kept a layer): 13 to 27 GiB; then MLP values (3072 wide, 228 MiB, before and after GELU); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "first6": change("checkpoint part", ["remat layer* 6"], remat=6),
         "half": change("batch", ["batch 0.5"], batch=64),
         "bf16": change("dtype", ["dtype * bf16"], dtype="bfloat16"),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=12, batch=256)},
        topology="v4:2x2x2", chips=8, batch=128),
    "torchax_olmo2": program(
        "torchax_programs", "olmo2", "attention scores and probabilities of 16 layers (torch's scaled_dot_product_attention written out; 2 sequences, 16 heads, 4096 by 4096: 1 GiB bfloat16, 2 GiB float32, a layer); then logits of 100352 words (1.5 GiB bfloat16, 3 GiB float32) and MLP values (8192 wide, 128 MiB); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=16),
         "first8": change("checkpoint part", ["remat layers[*] 8"], remat=8),
         "half": change("batch", ["batch 0.5"], batch=8),
         "short": change("dimension", ["dim 4096 2048"], length=2048),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=16, batch=32)},
        topology="v6e:2x4", chips=8, batch=16, length=4096, depth=16),
    "gemma_distill": program(
        "gemma_programs", "distill", "logits of 262144 words of student and teacher for 2048 tokens of a device, float32 with log_softmax of both, the teacher's probabilities and the gradient (2 GiB an array, four or five at once); then the teacher, whole (1 billion weights in bfloat16: 1.9 GiB) and the student's state (270 million, 12 bytes: 3 GiB); nearly full",
        {"half": change("batch", ["batch 0.5"], batch=16),
         "short": change("dimension", ["dim 512 256"], length=256),
         "remat": change("checkpoint", ["remat *"], remat=True),
         "fsdp": change("sharding", ["shard student_params 8", "shard opt_state 8", "shard teacher_params 8"], shard=True),
         "double": change("batch", ["batch 2"], batch=64)},
        topology="v5e:2x4", chips=8, batch=32, length=512),
    "tunix_llama_multi": program(
        "tunix_programs", "sft", "logits of 128256 words for 4096 tokens of a device with their float32 log_softmax, one-hot targets and gradient (2 GiB a float32 array); then attention scores of 16 layers (2 sequences, 32 heads, 2048 by 2048: 1 GiB float32, 0.5 GiB bfloat16, a layer) in sum more: 16 GiB and up; the state, divided (1.2 billion weights, 16 bytes with the accumulated gradients, over 8); nearly full or does not fit",
        {"decoder": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], batch=8),
         "donate": change("donation", ["donate model"], donate_model=True),
         "short": change("dimension", ["dim 2048 1024"], length=1024),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat="DECODER", batch=32)},
        kind="llama3", config="llama3p2_1b", topology="v6e:2x4", shape=(8, 1), batch=16, length=2048, transform="multi"),
    "kh_neox": program(
        "keras_programs", "neox", "attention scores and probabilities of 16 layers (4 sequences, 8 heads, 2048 by 2048: 256 MiB bfloat16, 512 MiB float32 where the softmax keeps it) and MLP values (8192 wide, 128 MiB, before and after GELU); then float32 logits of 50304 words (1.5 GiB an array) and the state, whole (0.9 billion weights, 12 bytes: 10.2 GiB, gradients 3.4); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=16),
         "half": change("batch", ["batch 0.5"], batch=16),
         "fsdp": change("sharding", ["shard * 8"], shard=True),
         "nodonate": change("donation (undone)", [], donate=False),
         "f32": change("dtype", ["compute f32"], policy="float32")},
        topology="v6e:2x4", chips=8, batch=32, length=2048),
    "kh_moonshine": program(
        "keras_programs", "moonshine", "attention scores and probabilities of the encoder's 8 layers (32 sounds, 8 heads, 665 by 665 padded to 672 by 768: 252 MiB bfloat16, 504 MiB float32), the first convolution's values (3999 places, 416 wide) and the decoder's logits of 32768 words (192 places, 768 MiB float32, several); nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64),
         "double": change("batch", ["batch 2"], batch=256),
         "f32": change("dtype", ["compute f32"], policy="float32")},
        topology="v5e:2x2", chips=4, batch=128),
    "mjx_shac": program(
        "mjx_programs", "shac", "values of the physics that the scan over 32 steps saves for the gradient, float32, many small arrays of 4096 bodies a device, padded; nearly full or does not fit",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "half": change("batch", ["batch 0.5"], bodies=8192),
         "short": change("dimension", ["dim 32 16"], steps=16)},
        topology="v5e:2x2", chips=4, bodies=16384, steps=32),
}
PROGRAMS |= {
    "mt_qwen35_moe": program(
        "maxtext_programs", "train", "float32 logits of 248320 words for 8192 tokens of a device with their gradient (7.6 GiB an array); then the state (35 billion weights, 12 bytes over 64: 6.1 GiB) and gradients (2 GiB); one cycle of four layers recomputed (rows of 8 of 256 experts: 65536 by 2048, 256 MiB an array; the gated delta net's float32 chunks); fits",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "double": change("batch", ["batch 2"], per_device_batch_size=4),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "micro": change("micro-batches", ["micro 2"], per_device_batch_size=1, gradient_accumulation_steps=2)},
        compile_topology="v5p-128", model_name="qwen3.5-35b-a3b", per_device_batch_size=2, max_target_length=4096),
    "tunix_gemma4": program(
        "tunix_programs", "sft", "the state: 5 billion weights in float32 with Adam's moments (the per-layer embeddings of 262144 words by 8960 are 2.3 billion of them), 12 bytes over 8: 7.1 GiB, gradients 2.4, weights and their new values twice because the model is not donated (2.4); then logits of 262144 words, half of them a device, for 2048 tokens with float32 log_softmax, one-hot targets and gradient (1 GiB a float32 array); nearly full",
        {"decoder": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], batch=4),
         "double": change("batch", ["batch 2"], batch=16),
         "donate": change("donation", ["donate model"], donate_model=True)},
        kind="gemma4", config="gemma4_e2b", topology="v6e:2x4", shape=(4, 2), batch=8, length=1024),
    "torchax_convnext": program(
        "torchax_programs", "convnext", "float32 MLP values of the 36 blocks (32 images a device; first stage 56 by 56 by 512: 196 MiB an array, second 98 of 3 blocks, third 49 of 27 blocks, before and after GELU, and normalised values a quarter of them, some in other layouts): about 8 GiB; fits; then the state (1 GiB)",
        {"remat": change("checkpoint", ["remat *"], remat=36),
         "half": change("batch", ["batch 0.5"], batch=128),
         "double": change("batch", ["batch 2"], batch=512),
         "bf16": change("dtype", ["dtype * bf16"], dtype="bfloat16")},
        topology="v5e:2x4", chips=8, batch=256),
}
