"""The seventeenth set: programs of real libraries and of JAX alone, with the cause and the changes that were written down before each was compiled."""

from recipe import change, program

PROGRAMS = {
    "mt_llama3_pipeline": program(
        "maxtext_programs", "train", "float32 logits of 128256 words with their gradient: the pipeline's axis divides neither the batch nor the words outside the stages, 8 sequences of 4096 a device (16 GiB an array), if it does not act as data parallelism there (4 GiB then); then the state (6 GiB) and what the iterations of the pipeline save (inputs of stages of 11 iterations by 4 repeats); fits",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=1, num_pipeline_microbatches=4),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "bf16": change("dtype (state)", ["dtype state bf16"], weight_dtype="bfloat16"),
         "nodonate": change("donation (undone)", [], donate=False)},
        compile_topology="v5p-32", model_name="llama3-8b", per_device_batch_size=2, max_target_length=4096, ici_pipeline_parallelism=4, ici_fsdp_parallelism=4, num_layers_per_pipeline_stage=2, num_pipeline_microbatches=8),
    "mt_deepseek3": program(
        "maxtext_programs", "train", "the state (671 billion weights, 12 bytes each over 512 devices: 15 GiB) and gradients (5 GiB); then rows of 16384 tokens through 8 of 256 experts of one layer, recomputed (16384 by 8 by 7168: 1.75 GiB an array), values that the scan over 58 layers saves (layers' inputs and queries and keys of MLA); nearly full or fits",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=2),
         "double": change("batch", ["batch 2"], per_device_batch_size=8),
         "both": change("checkpoint (policy) + batch", ["remat *", "batch 2"], remat_policy="full", per_device_batch_size=8)},
        compile_topology="v5p-1024", model_name="deepseek3-671b", per_device_batch_size=4, max_target_length=4096, ici_expert_parallelism=8, ici_fsdp_parallelism=-1, remat_policy="custom", decoder_layer_input="device", mla_q="device", mla_kv="device", allow_split_physical_axes="true"),
    "mt_llama4": program(
        "maxtext_programs", "train", "the state (108 billion weights, 12 bytes over 64 devices: 19 GiB) and gradients (6.3 GiB); float32 logits of 202048 words for 16384 tokens of a device with their gradient (12 GiB an array); then a cycle of four layers recomputed (16 experts); fits",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "double": change("batch", ["batch 2"], per_device_batch_size=4),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "both": change("chunked loss + batch", ["chunk logits 8", "batch 2"], num_vocab_tiling=8, per_device_batch_size=4)},
        compile_topology="v5p-128", model_name="llama4-17b-16e", per_device_batch_size=2, max_target_length=8192),
    "mt_qwen3_vl": program(
        "maxtext_programs", "train", "float32 logits of 151936 words for 8192 tokens of a device with their gradient (4.6 GiB an array); then values of the image tower, whose policy is `minimal` (24 layers, 2304 patches a picture, 4096 wide), and the state (2 billion weights, 12 bytes over 8: 3 GiB); fits or nearly full",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=2)},
        compile_topology="v6e-8", model_name="qwen3-vl-2b", per_device_batch_size=4, max_target_length=2048, use_multimodal="true", scan_layers="false"),
    "mt_qwen3_muon": program(
        "maxtext_programs", "train", "values that the scan over 40 layers saves by the policy `save_dot_except_mlp` (queries, keys, values, out_proj and the layer's input of 8192 tokens: 80 + 16 + 16 + 80 + 80 MiB a layer, 10.6 GiB); then float32 logits of 151936 words (4.6 GiB an array) and the state; Muon's orthogonal updates of whole stacks in float32 beside them; nearly full",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "bf16": change("dtype (state)", ["dtype state bf16"], weight_dtype="bfloat16"),
         "both": change("checkpoint (policy) + batch", ["remat *", "batch 2"], remat_policy="full", per_device_batch_size=4)},
        compile_topology="v6e-32", model_name="qwen3-14b", per_device_batch_size=2, max_target_length=4096, opt_type="muon", remat_policy="save_dot_except_mlp"),
}
PROGRAMS |= {
    "torchax_phi3": program(
        "torchax_programs", "phi3", "eager attention scores and probabilities of 8 layers (4 sequences, 32 heads, 2048 by 2048: 1 GiB bfloat16, 2 GiB float32, a layer); then MLP values (16384 wide, 256 MiB) and logits of 32064 words; nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=8),
         "first3": change("checkpoint part", ["remat layers[*] 3"], remat=3),
         "half": change("batch", ["batch 0.5"], batch=16),
         "nodonate": change("donation (undone)", [], donate=False),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=8, batch=64)},
        topology="v4:2x2x2", chips=8, batch=32, length=2048, depth=8),
    "kh_albert": program(
        "keras_programs", "albert", "float32 MLP values of 24 uses of one layer (8192 wide, 8192 tokens of a device: 256 MiB an array, before and after GELU) and attention scores and probabilities (16 heads, 512 by 512, 16 sequences: 256 MiB an array); the state is small; does not fit or nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=256)},
        topology="v6e:2x4", chips=8, batch=128, length=512),
    "tunix_gemma3": program(
        "tunix_programs", "sft", "logits of 262144 words (a quarter of them on a device) for 8192 tokens with their float32 log_softmax, one-hot targets and gradient (2 GiB a float32 array); then MLP values of 34 layers (10240 wide, a quarter) and attention scores (2 of 8 heads, 4 sequences, 2048 by 2048); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], batch=4),
         "donate": change("donation", ["donate model"], donate_model=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat="DECODER", batch=16)},
        kind="gemma3", config="gemma3_4b_it", topology="v6e:2x4", shape=(2, 4), batch=8, length=2048),
    "kh_vitdet": program(
        "keras_programs", "vitdet", "attention scores and probabilities of the 4 global layers (2 images, 12 heads, 4096 by 4096: 1.5 GiB a float32 array, with the relative positions added); then those of the windows and MLP values (3072 wide); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "first6": change("checkpoint part", ["remat windowed_transformer_encoder_* 6"], remat=6),
         "half": change("batch", ["batch 0.5"], batch=8),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16")},
        topology="v4:2x2x2", chips=8, batch=16, policy="float32"),
    "torchax_swin": program(
        "torchax_programs", "swin", "float32 values of the first stages' layers (64 images by 3136 places: MLP values 512 wide, 392 MiB an array; attention scores of windows, 49 by 49 padded to 56 by 128); then 18 layers of the third stage; nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "half": change("batch", ["batch 0.5"], batch=256),
         "bf16": change("dtype", ["dtype * bf16"], dtype="bfloat16")},
        topology="v6e:2x4", chips=8, batch=512),
}
PROGRAMS |= {
    "lru_scan": program(
        "jax_programs", "lru", "complex states of 12 layers and what each level of the associative scan keeps of them (8 sequences, 4096 places, 1024 states of 8 bytes: 256 MiB an array, states and their decays, about twice each over the levels); then the float32 logits of 32000 words (4 GiB an array); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "micro": change("micro-batches", ["micro 4"], micro=4),
         "both": change("checkpoint + chunk", ["remat *", "chunk logits 8"], remat=True, chunks=8)},
        topology="v6e:2x2", chips=4, batch=32, length=4096, depth=12, width=1024, states=1024, vocabulary=32000),
    "ring_attention": program(
        "jax_programs", "ring", "scores and their exponentials that the scans over 8 layers and over 4 turns of the ring save (2 sequences, 16 heads, 4096 by 4096: 2 GiB float32, 1 GiB bfloat16, a turn): about 100 GiB; then logits; does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=2),
         "short": change("dimension", ["dim 4096 2048"], length=8192),
         "both": change("checkpoint + chunk", ["remat *", "chunk logits 8"], remat=True, chunks=8)},
        topology="v5p:2x2x2", shape=(2, 4), batch=4, length=16384, depth=8, width=2048, heads=16, hidden=8192, vocabulary=50304),
    "brax_es": program(
        "mjx_programs", "es", "observations that the scan over 500 steps collects of 4096 humanoids a device (244 float32 numbers: 1.9 GiB), two or three times (reshaped, centred for the running statistics); then noise and perturbed policies of the whole population; fits",
        {"half": change("batch", ["batch 0.5"], population=4096),
         "short": change("dimension", ["dim 500 250"], steps=250),
         "double": change("batch", ["batch 2"], population=16384)},
        topology="v5e:2x2", chips=4, population=8192, steps=500, environment="humanoid"),
    "mjx_sysid": program(
        "mjx_programs", "sysid", "values of the physics that the scan over 128 steps saves for the gradient, float32, many small arrays of 2048 bodies a device, padded; nearly full or does not fit",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "half": change("batch", ["batch 0.5"], bodies=4096),
         "short": change("dimension", ["dim 128 64"], steps=64)},
        topology="v5e:2x2", chips=4, bodies=8192, steps=128),
}
PROGRAMS |= {
    "hk_byol": program(
        "haiku_programs", "byol", "float32 activations of the ResNet 101 under gradient for two views (64 images a device each, 56 by 56 by 256: 196 MiB an array in the first stage, batch normalisation and relu of 33 blocks); the target's are not kept; does not fit",
        {"half": change("batch", ["batch 0.5"], batch=256),
         "quarter": change("batch", ["batch 0.25"], batch=128),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x4", chips=8, batch=512),
    "eqx_fno": program(
        "equinox_programs", "fno", "float32 activations of 8 blocks (32 fields of 64 channels at 256 by 256: 512 MiB an array, three or four a block), spectra (complex, 64 by 256 by 129 padded) and the projection's 256 channels (2 GiB an array, before and after GELU); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=8),
         "first4": change("checkpoint part", ["remat blocks[*] 4"], remat=4),
         "half": change("batch", ["batch 0.5"], batch=64),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=8, batch=256)},
        topology="v6e:2x2", chips=4, batch=128, size=256, channels=3, width=64, modes=32, depth=8),
    "nnx_vit": program(
        "nnx_programs", "vit", "float32 attention scores, probabilities and dropout masks of 12 layers (64 images a device, 12 heads, 197 by 197 padded to 200 by 256: 150 MiB an array) and MLP values (3072 wide, 148 MiB each, before and after GELU and its dropout); fits, more than half full; then the state, whole (1.3 GiB)",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "first6": change("checkpoint part", ["remat encoder[*] 6"], remat=6),
         "half": change("batch", ["batch 0.5"], batch=256),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "fsdp": change("sharding", ["shard model 8", "shard opt_state 8"], fsdp=True)},
        topology="v5e:2x4", chips=8, batch=512, size=224, patch=16, width=768, hidden=3072, heads=12, depth=12),
    "linen_resnet": program(
        "linen_programs", "resnet", "float32 activations of 16 blocks (256 images a device; first stage 56 by 56 by 256: 784 MiB an array, by 64: 196 MiB, twice that padded): convolutions, normalisations, relu; does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=1024),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=4096)},
        topology="v3:2x2", chips=8, batch=2048, stages=(3, 4, 6, 3)),
}
PROGRAMS |= {
    "gemma_dpo": program(
        "gemma_programs", "dpo", "logits of 262144 words of the policy and of the anchor for 2048 tokens of a device, float32 with log_softmax and gradient (2 GiB an array, bfloat16 1 GiB); then attention scores of 26 layers (4 sequences, 4 heads, 512 by 512) and the state in bfloat16 (6 GiB); does not fit or nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], pairs=8),
         "fsdp": change("sharding", ["shard policy 8", "shard anchor 8", "shard opt_state 8"], shard=True),
         "both": change("checkpoint + batch", ["remat *", "batch 0.5"], remat=True, pairs=8)},
        topology="v5e:2x4", chips=8, pairs=16, length=512),
    "gemma3n_score": program(
        "gemma_programs", "score", "the weights, whole on every device (per-layer embeddings of 262144 words first, about 10 GiB in bfloat16); then float32 logits of 2048 tokens of a device (2 GiB, several); nearly full",
        {"half": change("batch", ["batch 0.5"], batch=16),
         "double": change("batch", ["batch 2"], batch=64),
         "short": change("dimension", ["dim 512 256"], length=256),
         "fsdp": change("sharding", ["shard params 8"], shard=True)},
        topology="v6e:2x4", chips=8, batch=32, length=512),
    "flash_dots": program(
        "scanned_decoder", "decoder", "what the scan over 24 layers saves by the policy `dots_with_no_batch_dims_saveable` (gate and up 13824 wide, queries, keys, values, outputs of 8192 tokens: 216 MiB twice and about 300 MiB a layer, 18 GiB); then the state, divided (9 GiB) and float32 logits of 100352 words (3 GiB an array); fits",
        {"full": change("checkpoint (policy)", ["remat *"], policy="nothing_saveable"),
         "micro": change("micro-batches", ["micro 2"], micro=2),
         "nodonate": change("donation (undone)", [], donate=False),
         "all": change("checkpoint + chunk + batch", ["remat *", "chunk logits 8", "batch 2"], policy="nothing_saveable", chunks=8, batch=64)},
        topology="v5p:2x2x4", chips=16, batch=32, length=4096, depth=24, width=5120, heads=40, kv=8, hidden=13824, vocabulary=100352, kernel="flash", policy="dots_with_no_batch_dims_saveable"),
}
