"""The twenty-eighth set: outside programs; cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "jax_multisteps": program(
        "jax_programs", "multisteps", "attention scores and probabilities that the scan over 24 layers saves (8 sequences of 1024 of a device, 16 heads: bfloat16 256 MiB, float32 512 MiB an array): 6 to 18 GiB; MLP values (8192 tokens by 4096: 64 MiB an array, three): 4.5 GiB; tokens of 1024 (16 MiB an array, eight): 3 GiB; the state, whole (355 million weights, 16 bytes with MultiSteps' mean: 5.3 GiB), gradients (1.3 GiB); float32 logits of 50304 words (1.5 GiB an array, two); does not fit 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=32),
         "zero": change("checkpoint + sharding (ZeRO)", ["remat *", "shard opt_state 8"], remat=True, zero=True),
         "both": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 4"], remat=True, chunks=8, batch=256)},
        topology="v5e:2x4", chips=8, batch=64),
    "jax_ring": program(
        "jax_programs", "ring", "keys and values: of 8 layers all 16384 positions (64 slots, 4 of 8 heads... 2 of 8 on a device, 256, bfloat16: 1 GiB a layer and array: 16 GiB), of 40 layers a ring of 1024 (64 MiB a layer and array: 5 GiB), written in place; then weights (11.8 billion in bfloat16 over 4: 5.5 GiB); one layer's slices copied (1 GiB, two); nearly full of 31 GiB",
        {"half": change("batch", ["batch 0.5"], slots=32),
         "short": change("dimension", ["dim 16384 8192"], context=8192),
         "f8": change("dtype", ["dtype cache f8e4m3fn"], kept="float8_e4m3fn"),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v6e:2x2", chips=4, slots=64),
    "jax_megatron": program(
        "jax_programs", "megatron", "what the scan over 48 layers saves by the policy dots_with_no_batch_dims_saveable (2 sequences of 4096 of a group of 8 devices: 8192 tokens: queries 8192/8: 16 MiB, keys and values 2 MiB each, gate and up of 22016/8: 43 MiB each, two outputs of 8192, divided by sequence or not: 16 or 128 MiB each, the input 16 MiB): 150 to 400 MiB a layer, 7 to 18 GiB; then the state (34 billion weights, 12 bytes over 64: 6 GiB), gradients twice (2 GiB each): 4 GiB; scores of one layer (2 by 8 by 4096 by 4096: float32 1 GiB); less than half of 95 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], remat="nothing_saveable"),
         "double": change("batch", ["batch 2"], batch=128),
         "micro": change("micro-batches", ["micro 2"], parts=8),
         "short": change("dimension", ["dim 4096 2048"], length=2048)},
        topology="v5p:4x4x4", shape=(8, 8), batch=64),
}
PROGRAMS |= {
    "mt_gptoss_20b": program(
        "maxtext_programs", "train", "the state (20.9 billion weights, 12 bytes over 32: 7.3 GiB), gradients (2.4 GiB); float32 logits of 201088 words (2 sequences of 4096 of a device: 8192 tokens: 6.1 GiB an array; with the gradient two): 12 GiB; one layer's experts recomputed (4 times 8192 rows by 2880: 180 MiB an array, six), a layer's experts gathered (32 by 2880 by 2880 by 3 in bfloat16: 1.5 GiB, and their gradient); inputs of 24 layers (45 MiB: 1 GiB); scores of one layer by flash attention small; nearly full or does not fit 31 GiB",
        {"tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "nodonate": change("donation (undone)", [], donate=False),
         "both": change("chunked loss + batch", ["chunk logits 8", "batch 2"], num_vocab_tiling=8, per_device_batch_size=4)},
        compile_topology="v6e-32", model_name="gpt-oss-20b", per_device_batch_size=2, max_target_length=4096, remat_policy="full", sparse_matmul="true", megablox="true"),
    "torchax_modernbert": program(
        "torchax_programs", "modernbert", "attention scores and probabilities of 28 layers, local ones too as whole matrices (4 sequences of a device, 16 heads, 1024 by 1024: bfloat16 128 MiB, float32 256 MiB an array, two or three): 10 to 14 GiB; MLP values (4096 tokens by 5248: 41 MiB, and 2624 by two: 20 MiB each): 2.3 GiB; tokens of 1024 (8 MiB an array, eight): 2 GiB; logits of 50368 words (bfloat16 393 MiB, float32 786 MiB, three): 2 GiB; the state (395 million in bfloat16, 6 bytes over 8: 0.3 GiB); does not fit 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=28),
         "first14": change("checkpoint part", ["remat model.layers[*] 14"], remat=14),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=28, batch=128)},
        topology="v5e:2x4", chips=8, batch=32),
    "tunix_grpo": program(
        "tunix_programs", "grpo", "attention scores and probabilities of 28 layers (2 sequences of 512 + 1024 of a device's group... 16 sequences over 4 fsdp: 4 of a group of 2 devices, 8 of 16 heads: 4 by 8 by 1536 by 1536: float32 288 MiB, bfloat16 144 MiB an array, two or three): 12 to 20 GiB; logits of 151936 words (4 by 1536 tokens, over 2: bfloat16 890 MiB, float32 1.7 GiB, four; returned whole too): 5 to 7 GiB; MLP values (6144 tokens by 6144/2: 36 MiB an array, four): 4 GiB; the state (1.7 billion in bfloat16, 6 bytes over 8: 1.3 GiB); does not fit or nearly full of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat="DECODER", batch=32),
         "f32": change("dtype (weights and state)", ["dtype model,optimizer f32"], dtype="float32")},
        topology="v6e:2x4", shape=(4, 2), batch=16, prompt=512, answer=1024),
}
PROGRAMS |= {
    "kh_phi3_lora": program(
        "keras_programs", "phi3", "attention scores and probabilities of 32 layers (2 sequences, 32 heads, 1024 by 1024: bfloat16 128 MiB an array, two or three; float32 256 MiB): 8 to 16 GiB; the frozen weights (3.8 billion in bfloat16: 7.1 GiB); MLP values (2048 tokens by 8192: 32 MiB, four): 4 GiB; tokens of 3072 (12 MiB, eight): 3 GiB; logits of 32064 words (125 and 250 MiB); the adapters are small; nearly full or does not fit 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=32),
         "first16": change("checkpoint part", ["remat transformer_layer_* 16"], remat=16),
         "double": change("batch", ["batch 2"], batch=4),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=32, batch=8)},
        topology="v6e:2x2", chips=1, batch=2),
    "nnx_mmdit": program(
        "nnx_programs", "mmdit", "attention scores and probabilities of 24 blocks (8 pictures of a device, 24 heads, 1280 by 1280: float32 1.2 GiB, bfloat16 600 MiB an array, one to three): 30 to 60 GiB; MLP values (10240 tokens by 6144: 120 MiB, three) and tokens of 1536 (30 MiB, twelve): 17 GiB; the weights and their EMA, float32 (2.0 billion: 8 bytes over 4: 4 GiB), gradients (2 GiB), Adafactor's state small; does not fit 32 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "flash": change("blockwise attention", ["blockwise *"], kernel=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=24, batch=64)},
        topology="v4:2x2x1", chips=4, batch=32),
    "eqx_xlstm": program(
        "equinox_programs", "xlstm", "the quadratic form's matrices of 12 blocks (16 sequences, 4 heads, 1024 by 1024: float32 256 MiB an array: decays, their exponential, scores, normalized ones, bfloat16 128 MiB: four to six): 12 to 18 GiB; values of 1536 or 3072 (16384 tokens: 48 MiB an array, eight): 5 GiB; float32 logits of 50304 words (3.1 GiB an array, two or three): 6 to 9 GiB; the state (250 million weights, 8 to 12 bytes: 2.5 GiB); does not fit 31 GiB... just over or 90 % full",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 4"], remat=12, chunks=8, batch=64)},
        topology="v6e:2x2", chips=1, batch=16),
}
PROGRAMS |= {
    "linen_gan": program(
        "linen_programs", "gan", "float32 feature maps at 256 by 256 and 128 by 128 (4 pictures of a device; 96 channels, padded to 128: 128 MiB an array at 256 by 256; 192 channels, padded to 256: 64 MiB at 128 by 128; generator: five or six at 256, discriminator on real and false: six each): 3 to 5 GiB while the generator is trained through both; the state (two nets of about 100 million, three of 4 bytes each... and EMA: 2 to 3 GiB); about half of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "bf16": change("dtype", ["compute bf16"], dtype="bfloat16"),
         "double": change("batch", ["batch 2"], batch=64),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x4", chips=8, batch=32),
    "linen_mtp": program(
        "linen_programs", "mtp", "float32 logits of 128256 words (2 sequences of 4096 of a device: 8192 tokens: 3.9 GiB an array), three heads' of them: 12 GiB if the three are held together, with a gradient 16 GiB or more; then the head and the table gathered (bfloat16 500 MiB, float32 gradient 1 GiB), the state (1.7 billion weights, 8 bytes over 8: 1.6 GiB), gradients (0.8 GiB); scores of one layer (2 by 32 by 4096 by 4096: float32 4 GiB, bfloat16 2 GiB); inputs of 18 layers (32 MiB: 0.6 GiB); 50 to 80 % of 31 GiB",
        {"chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "double": change("batch", ["batch 2"], batch=32),
         "short": change("dimension", ["dim 4096 2048"], length=2048),
         "both": change("chunked loss + batch", ["chunk logits 8", "batch 2"], chunks=8, batch=32)},
        topology="v6e:2x4", chips=8, batch=16),
    "hk_conformer": program(
        "haiku_programs", "conformer", "first convolutions (32 sounds of a device, 800 by 40 by 256: bfloat16 500 MiB an array, two or three): 1 to 1.5 GiB; scores and probabilities that the layer stack saves of 17 layers (32 by 8 by 400 by 400: float32 156 MiB, bfloat16 78 MiB, padded to 512; two or three): 5 to 8 GiB; feed-forward values (12800 tokens by 2048: 50 MiB, three of two): 5 GiB; tokens of 512 (12.5 MiB, twenty; norms in float32): 5 to 8 GiB; the state is small (118 million... 1.4 GiB); does not fit or nearly full of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=128),
         "short": change("dimension", ["dim 1600 800"], frames=800),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=512)},
        topology="v5e:2x4", chips=8, batch=256),
}
