"""The twenty-second set: outside programs; cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "mt_qwen3_32b": program(
        "maxtext_programs", "train", "what the scan over 64 layers saves by the policy save_qkv_proj (8192 tokens of a device: queries of 8192: 128 MiB, keys and values 32 MiB, the layer's input of 5120: 80 MiB): 15 GiB; then the state (32.8 billion weights, 12 bytes over 64 devices: 5.7 GiB), gradients (1.9 GiB), float32 logits of 151936 words with their gradient (4.6 GiB an array); nearly full or does not fit",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "short": change("dimension", ["dim 4096 2048"], max_target_length=2048)},
        compile_topology="v6e-64", model_name="qwen3-32b", per_device_batch_size=2, max_target_length=4096, remat_policy="save_qkv_proj"),
    "mt_gpt3_22b": program(
        "maxtext_programs", "train", "what the scan over 48 layers saves by the policy save_dot_except_mlp (8192 tokens of a device by 6144: queries, keys, values, output, input 96 MiB each): 23 GiB; then the state (22 billion weights, 12 bytes over 32 devices: 7.7 GiB) and gradients (2.6 GiB); logits of 32768 words 1 GiB an array; nearly full or does not fit",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=2),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat_policy="full", per_device_batch_size=8)},
        compile_topology="v4-64", model_name="gpt3-22b", override_model_config="true", per_device_batch_size=4, max_target_length=2048, remat_policy="save_dot_except_mlp"),
    "mt_kimi_k2": program(
        "maxtext_programs", "train", "the state (1.03 trillion weights, 12 bytes over 512 devices: 22.5 GiB) and gradients (7.5 GiB); then inputs of 61 layers (16384 tokens of a device by 7168 bfloat16: 224 MiB each: 13.3 GiB), float32 logits of 163840 words with their gradient (10 GiB an array), one layer's experts' weights gathered (48 experts: 4 GiB) and its tokens for 8 experts (1.75 GiB an array); nearly full or does not fit",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=2),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8)},
        compile_topology="v5p-1024", model_name="kimi-k2-1t", per_device_batch_size=4, max_target_length=4096, ici_expert_parallelism=8, ici_fsdp_parallelism=-1),
}
PROGRAMS |= {
    "torchax_dinov2": program(
        "torchax_programs", "dinov2", "attention scores and probabilities of 24 layers (8 images of a device, 16 heads, 1370 by 1370, padded: float32 950 MiB, bfloat16 480 MiB an array): 12 to 34 GiB, what the compiler does not compute again to fit 15.75 GiB; MLP values (10960 tokens by 4096: 86 MiB before and after GELU) and tokens (22 MiB an array) 6 GiB; the state, whole (304 million weights, 6 bytes: 1.7 GiB); fits, more than half full",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "half": change("batch", ["batch 0.5"], batch=32),
         "double": change("batch", ["batch 2"], batch=128),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=24, batch=256)},
        topology="v4:2x2x2", chips=8, batch=64),
    "torchax_gptj_lora": program(
        "torchax_programs", "gptj_lora", "float32 attention scores and probabilities of 28 layers (2 sequences of a device, 16 heads, 2048 by 2048: 512 MiB an array; the frozen weights before the first LoRA are not needed by gradients, but scores are): 14 to 28 GiB; then the frozen weights, whole (6.05 billion, 2 bytes: 11.3 GiB); MLP values (4096 tokens by 16384: 128 MiB an array, of gelu_new several): 4 to 14 GiB; float32 logits of 50400 words (788 MiB an array); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=28),
         "first14": change("checkpoint part", ["remat transformer.h[*] 14"], remat=14),
         "half": change("batch", ["batch 0.5"], batch=8),
         "fsdp": change("checkpoint + sharding", ["remat *", "shard frozen 8"], remat=28, shard=True)},
        topology="v6e:2x4", chips=8, batch=16, length=2048),
    "torchax_clip": program(
        "torchax_programs", "clip", "attention scores and probabilities of the image tower's 24 layers (80 images of a device, 16 heads, 257 by 257, padded: float32 500 MiB, bfloat16 250 MiB an array): 6 to 18 GiB; MLP values (20560 tokens by 4096: 160 MiB an array, three of quick_gelu): 8 to 11 GiB; the state, whole (428 million weights, 6 bytes: 2.4 GiB); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=36),
         "half": change("batch", ["batch 0.5"], batch=320),
         "vision12": change("checkpoint part", ["remat clip.vision_model.encoder.layers[*] 12"], remat=12),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=36, batch=1280)},
        topology="v6e:2x4", chips=8, batch=640),
}
PROGRAMS |= {
    "kh_roformer": program(
        "keras_programs", "roformer", "attention scores and probabilities of 24 layers (40 sequences of a device, 16 heads, 512 by 512: float32 640 MiB or bfloat16 320 MiB an array): 8 to 23 GiB; MLP values (20480 tokens by 4096 bfloat16: 160 MiB, relu), tokens, dropouts and norms (40 MiB bfloat16, 80 float32 an array, ten or more a layer): 16 GiB; the state (314 million weights in float32, Adafactor's is small: 1.2 GiB) and gradients (1.2 GiB); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "half": change("batch", ["batch 0.5"], batch=160),
         "double": change("batch", ["batch 2"], batch=640),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=24, batch=640)},
        topology="v6e:2x4", chips=8, batch=320),
    "kh_csp": program(
        "keras_programs", "csp", "float32 activations of the first convolutions (96 images of a device, 256 by 256 by 32, padded to 128 channels: 3 GiB an array; convolution, normalisation, activation: three or more), of the first stage (128 by 128 by 64, padded: 768 MiB an array, ten or more); later stages a few GiB; the state is small (27 million weights); fits, more than half full, or does not fit",
        {"half": change("batch", ["batch 0.5"], batch=384),
         "double": change("batch", ["batch 2"], batch=1536),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16")},
        topology="v5e:2x4", chips=8, batch=768),
    "hk_perceiver": program(
        "haiku_programs", "perceiver", "float32 attention scores and probabilities of 48 self-attentions (20 images of a device, 8 heads, 512 by 512: 160 MiB an array, one or two) with tokens of 1024 (40 MiB an array, about ten a layer): 20 to 30 GiB; then the cross-attention (512 by 50176 scores: 1.9 GiB an array, two or three) and the pixels' features (50176 by 261, padded to 384: 1.4 GiB an array; input, normalised, keys, values: 5.7 GiB); the state is small (six layers shared, 40 million weights); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=80),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=320)},
        topology="v6e:2x4", chips=8, batch=160),
    "jraph_gat": program(
        "haiku_programs", "gat", "float32 features of senders and receivers by edge (4 million edges, 4 heads of 32: 2 GiB an array if it is packed, 8 GiB padded by (4, 32) tiles; sent, received, concatenated, messages): several of 2 to 8 GiB at once; nodes are small (0.3 GiB an array); does not fit or nearly full",
        {"half": change("dimension", ["dim 4000000 2000000"], edges=2000000),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "remat": change("checkpoint", ["remat *"], remat=True)},
        topology="v4:2x2x1", chips=1, nodes=600000, edges=4000000),
}
PROGRAMS |= {
    "jax_maml": program(
        "jax_programs", "maml", "float32 values of the first convolution's layer at five inner steps (4 tasks of a device, 25 images of 84 by 84 by 64, padded to 128 if tasks do not merge with channels: 160 to 345 MiB an array; forward, normalisation and their derivatives, about eight a step): 6 to 13 GiB, and at the query (75 images: 0.5 to 1 GiB an array); the second layer a quarter of that; the state is small; nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], tasks=16),
         "double": change("batch", ["batch 2"], tasks=64),
         "bf16": change("dtype", ["compute bf16"], half=True)},
        topology="v5e:2x4", chips=8, tasks=32),
    "jax_serve_int8": program(
        "jax_programs", "serve_int8", "the weights (70 billion in int8, embeddings in bfloat16, over 8 devices: 8.5 GiB); then the int8 cache (80 layers, 64 sequences, 1 head of a device, 4096 by 128: 2.5 GiB each for keys and values) with its float32 scales (80 MiB each, if 64 by 4096 are not padded); copies of it if the loops do not update it in place; fits, nearly full",
        {"half": change("batch", ["batch 0.5"], batch=32),
         "double": change("batch", ["batch 2"], batch=128),
         "short": change("dimension", ["dim 4096 2048"], context=2048),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x4", chips=8, batch=64, context=4096),
    "jax_dlrm": program(
        "jax_programs", "dlrm", "the table (60 million rows of 128 float32 over 8 devices: 3.6 GiB), Adagrad's sum of it (3.6 GiB), its dense gradient (3.6 GiB, twice where the loop adds to it): 11 to 14 GiB; rows looked up for one feature (16384 by 20 by 128: 160 MiB); the dense layers are small; nearly full",
        {"half": change("batch", ["batch 0.5"], batch=8192),
         "rows": change("dimension", ["dim 60000000 30000000"], rows=30_000_000),
         "bf16": change("dtype", ["dtype * bf16"], dtype="bfloat16"),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x4", chips=8, batch=16384),
    "jax_pairs": program(
        "jax_programs", "pairs", "attention scores and probabilities that the scan over 12 pairs saves (2 sequences of a device, 16 heads, 2048 by 2048: float32 512 MiB, bfloat16 256 MiB an array; two layers a pair): 6 to 18 GiB; then the state (4.6 billion weights in float32, their average, first moment bfloat16, second float32: 14 bytes over 8: 7.5 GiB), gradients (2.1 GiB) and bfloat16 weights (1.1 GiB); values of the MLP and the experts (4096 tokens by 16384: 128 MiB); float32 logits of 65536 words (1 GiB an array); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=32),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v6e:2x4", chips=8, batch=16),
}
PROGRAMS |= {
    "gemma_vision": program(
        "gemma_programs", "vision", "float32 logits of 262144 words (4 sequences of 512 of a device: 2 GiB an array, with soft-cap, tanh, softmax and gradients four or more), then attention and MLP values of 34 layers (4 sequences of 512 words and 260 of the image: 3072 tokens by 10240: 60 MiB an array, three; scores 8 heads, 768 by 768: 72 MiB float32): 10 to 14 GiB; the state (4.3 billion weights in float32, moments 2 and 4 bytes: 10 bytes over 8: 5 GiB), gradients (2 GiB), bfloat16 weights (1 GiB); the vision encoder saves nothing, its scores (4 images, 16 heads, 4096 by 4096: 4 GiB float32) exist in passing; nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=34),
         "first17": change("checkpoint part", ["remat layer_* 17"], remat=17),
         "half": change("batch", ["batch 0.5"], batch=16),
         "short": change("dimension", ["dim 512 256", "dim 771 515"], length=256)},
        topology="v6e:2x4", chips=8, batch=32, length=512),
    "linen_unet3d": program(
        "linen_programs", "unet3d", "float32 values at the full size (2 volumes of a device, 128 cubed by 32 channels: 512 MiB an array if packed, 2 GiB padded to 128 channels; four convolutions, normalisations, activations and the concatenated 64 channels: about ten): 6 to 20 GiB; then logits, softmax and one-hot of 14 classes (224 MiB an array packed, 2 GiB padded), five or six; the second level a quarter; the state is small (30 million weights, 12 bytes: 0.35 GiB); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "double": change("batch", ["batch 2"], batch=32)},
        topology="v6e:2x4", chips=8, batch=16),
    "nnx_encodec": program(
        "nnx_programs", "encodec", "float32 values at the full rate (32 waves of a device, 24000 by 32 channels: 94 MiB an array packed, 375 MiB padded to 128; elu before and after: six in the encoder, six in the decoder), then the discriminators' maps (5 resolutions of 2 sets of waves: 32 by 44 to 750 frames by 1025 to 65 bins by 32: 180 MiB an array packed, 720 padded; first layers whole, later ones halves): about 4 to 12 GiB; frames of the spectra; the state is small; fits, more than half full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=128),
         "double": change("batch", ["batch 2"], batch=512),
         "bf16": change("dtype", ["compute bf16"], half=True)},
        topology="v5e:2x4", chips=8, batch=256),
    "eqx_graphormer": program(
        "equinox_programs", "graphormer", "float32 attention scores and probabilities that the scans over 4 times 12 layers save (16 molecules of a device, 48 heads, 128 by 128: 48 MiB an array, one or two): 2.3 to 7 GiB; then tokens (2048 by 768 float32: 6 MiB an array, about twelve a layer): 3.4 GiB; Gaussians by pairs (16 by 128 by 128 by 128: 128 MiB an array, five); the state, with an average (56 million weights, 16 bytes): 0.9 GiB; if the batch as last axis becomes the lanes of 128 with 16, up to eight times as much; fits, more than half full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64),
         "double": change("batch", ["batch 2"], batch=256),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=256)},
        topology="v5e:2x4", chips=8, batch=128),
}
PROGRAMS |= {
    "jax_assimilate": program(
        "jax2_programs", "assimilate", "what the scan over 240 steps saves for the gradient (fields 256 by 512 by 8 members of a device: if the members were lanes of 128, padded 16 times; packed 4 MiB a field and step; u, v, h at the step and at the half step, vorticities: 6 to 10 arrays a step): 6 to 10 GiB; observed heights (120 MiB); fits, more than half full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], members=32),
         "double": change("batch", ["batch 2"], members=128),
         "fewer": change("dimension", ["dim 240 120"], steps=120)},
        topology="v5e:2x4", chips=8, members=64),
    "jax_reversible": program(
        "jax2_programs", "reversible", "the state, whole on every device (1.48 billion weights in float32, 12 bytes: 16.5 GiB) and gradients (5.5 GiB); then float32 logits of 128000 words (2 sequences of 2048 of a device: 2 GiB an array, two or three); layers save nothing; does not fit or nearly full",
        {"zero": change("sharding", ["shard opt_state 8"], zero=True),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("chunked loss + batch", ["chunk logits 8", "batch 2"], chunks=8, batch=32),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v6e:2x4", chips=8, batch=16),
    "torchax_prefill": program(
        "torchax2_programs", "prefill", "the weights, whole (8.2 billion in bfloat16: 15.3 GiB); then attention scores of one layer (3 sequences of a device, 32 heads, 5120 by 5120: float32 9.4 GiB, bfloat16 4.7 GiB), one or two at once; the cache that comes out (36 layers, 3 by 8 heads, 5120 by 128, keys and values: 2.1 GiB); nearly full",
        {"double": change("batch", ["batch 2"], batch=48),
         "short": change("batch + dimension", ["batch 2", "dim 5120 2560"], batch=48, length=2560),
         "fsdp": change("sharding", ["shard weights 8"], shard=True)},
        topology="v6e:2x4", chips=8, batch=24, length=5120),
}
PROGRAMS |= {
    "linen_palm": program(
        "linen2_programs", "palm", "attention scores and probabilities that the scan over 16 layers saves (4 sequences of a device, 4 of 16 heads, 2048 by 2048: float32 256 MiB, bfloat16 128 MiB an array): 6 to 10 GiB; MLP values (8192 tokens by 8192: 128 MiB an array, gate, up and product) 4 to 6 GiB, tokens whole on the model's devices (64 MiB an array) 3 GiB; then float32 logits of 64000 words of a device with their gradient and one-hot (2 GiB an array); the state (4.8 billion weights, weight and momentum: 8 bytes over 8: 4.5 GiB), gradients (2.2 GiB); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "micro": change("micro-batches", ["micro 4"], micro=4),
         "blocks": change("blockwise attention", ["blockwise *"], blocks=8),
         "half": change("batch", ["batch 0.5"], batch=4),
         "both": change("checkpoint + blockwise + batch", ["remat *", "blockwise *", "batch 2"], remat=True, blocks=8, batch=16)},
        topology="v6e:2x4", shape=(2, 4), batch=8),
}
PROGRAMS |= {
    "jax_speculate": program(
        "jax3_programs", "speculate", "the caches (48 sequences; the big model: 32 layers, 7168 by 48 by 1 head of a device by 128, keys and values: 84 MiB each: 5.2 GiB; the small one: 16 layers of 64, padded to 128: 2.6 GiB instead of 1.3), written in the loop without copies if it goes well; then the weights (8.0 billion and 1.5 billion in bfloat16 over 8 devices: 2.2 GiB); logits are small; fits, more than half full",
        {"half": change("batch", ["batch 0.5"], batch=24),
         "double": change("batch", ["batch 2"], batch=96),
         "short": change("dimension", ["dim 7168 3584"], context=3584),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x4", chips=8, batch=48, context=7168),
}
