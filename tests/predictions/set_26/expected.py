"""The twenty-sixth set: outside programs; cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "mt_qwen3_30b": program(
        "maxtext_programs", "train", "float32 logits of 151936 words (8 sequences of 4096 of a device: 32768 tokens: 18.5 GiB an array; logits and their gradient, two, perhaps a bfloat16 one of 9.3 GiB): 37 to 46 GiB; then the state (30.5 billion weights, 12 bytes over 16: 21 GiB), gradients (7 GiB); inputs of 48 layers (128 MiB: 6 GiB); one layer's experts recomputed (262144 rows by 2048: 1 GiB an array, by 768: 384 MiB; two to four each): 4 to 6 GiB; nearly full of 95 GiB",
        {"tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=4),
         "both": change("chunked loss + batch", ["chunk logits 8", "batch 2"], num_vocab_tiling=8, per_device_batch_size=16),
         "micro": change("micro-batches", ["micro 2"], per_device_batch_size=4, gradient_accumulation_steps=2)},
        compile_topology="tpu7x-16", model_name="qwen3-30b-a3b", per_device_batch_size=8, max_target_length=4096, remat_policy="full", sparse_matmul="true", megablox="true"),
    "mt_gemma2_9b": program(
        "maxtext_programs", "train", "what the scan over 21 pairs of layers saves by the policy minimal (2 sequences of 2048 of a device: 4096 tokens; of a layer: queries of 4096: 32 MiB, keys and values of 2048: 16 MiB each, gate and up of 14336: 112 MiB each, two outputs of 3584: 28 MiB each, the input 28 MiB a pair): 345 MiB a layer, 14 GiB; then float32 logits of 256128 words (4096 tokens: 3.9 GiB an array; with the soft-cap's tanh and the gradient two or three): 8 to 12 GiB; the state (9.2 billion weights, 12 bytes over 32: 3.2 GiB), gradients (1.1 GiB), the table gathered (1.7 GiB); nearly full or does not fit 31 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "both": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 4"], remat_policy="full", num_vocab_tiling=8, per_device_batch_size=8)},
        compile_topology="v6e-32", model_name="gemma2-9b", per_device_batch_size=2, max_target_length=2048, remat_policy="minimal"),
    "mt_mistral_7b": program(
        "maxtext_programs", "train", "what the scan over 32 layers saves by the policy save_qkv_proj (4 sequences of 4096 of a device at a time: 16384 tokens: queries 128 MiB, keys and values of 1024: 32 MiB each, the input 128 MiB): 320 MiB a layer, 10 GiB; then the state (7.2 billion weights, 12 bytes over 16: 5.1 GiB), gradients, twice, as they are summed over 4 parts (1.7 GiB each): 3.4 GiB; float32 logits of 32000 words (2 GiB an array, two); MLP values of one layer (16384 by 14336: 448 MiB, three); about three quarters full of 32 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=2),
         "double": change("batch", ["batch 2"], per_device_batch_size=8),
         "micro": change("micro-batches", ["micro 2"], per_device_batch_size=2, gradient_accumulation_steps=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat_policy="full", per_device_batch_size=8)},
        compile_topology="v4-32", model_name="mistral-7b", per_device_batch_size=4, max_target_length=4096, remat_policy="save_qkv_proj", gradient_accumulation_steps=4),
}
PROGRAMS |= {
    "jax_gla": program(
        "jax_programs", "gla", "values that the scan over 12 layers saves (2 sequences of 16384 of a device: 32768 tokens; MLP of 2816: 176 MiB an array, gate, up, silu, product: three or four; tokens of 1024: 64 MiB an array, norms (float32 128), values, gate, read-outs: eight; queries and keys 32 MiB, padded 64; inside scores of 64 blocks (2 by 8 by 256 by 256 float32: 4 MiB each: 256 MiB, two or three)): 1.5 to 2 GiB a layer, 18 to 24 GiB; then float32 logits of 32000 words (3.9 GiB an array, two); the state is small (12 bytes by 200 million: 2.2 GiB); does not fit 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8),
         "short": change("dimension", ["dim 16384 8192"], length=8192),
         "chunk": change("checkpoint + chunked loss", ["remat *", "chunk logits 8"], remat=True, chunks=8),
         "both": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 2"], remat=True, chunks=8, batch=32)},
        topology="v5e:2x4", chips=8, batch=16),
    "jax_accum": program(
        "jax_programs", "accum", "the state, whole on every device (2.65 billion weights, 12 bytes: 30 GiB), gradients, twice, as they are summed over 8 parts (10 GiB each): 20 GiB: 50 GiB; then what the scan over 32 layers saves by the policy dots_with_no_batch_dims_saveable (8 sequences of 2048 of a part: 16384 tokens: 7680: 240 MiB, up 320 MiB, two outputs and the input 80 MiB each): 800 MiB a layer, 25 GiB; float32 logits of 50304 words (3 GiB an array, two), scores of one layer (8 by 20 by 2048 by 2048: float32 2.5 GiB, bfloat16 1.25 GiB); nearly full of 95 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], policy="nothing_saveable"),
         "zero": change("sharding (ZeRO)", ["shard opt_state 4"], zero=True),
         "half": change("batch", ["batch 0.5"], batch=128),
         "micro": change("micro-batches", ["micro 2"], parts=16),
         "both": change("checkpoint + sharding + batch", ["remat *", "shard opt_state 4", "batch 2"], policy="nothing_saveable", zero=True, batch=512)},
        topology="v5p:2x2x1", chips=4, batch=256),
    "jax_shampoo": program(
        "jax_programs", "shampoo", "Shampoo's statistics and roots, whole on every device (12 layers, six matrices; sides of 1536: 9 MiB, of 6144: 144 MiB, ten and two of a layer, twice: 468 MiB... 8 GiB with all); then weights, momentum and diagonal (0.39 billion weights: 12 bytes: 4.3 GiB), gradients and the update (1.3 GiB each); float32 logits of 32000 words (4096 tokens: 500 MiB, two) before; nearly full or does not fit 16 GiB",
        {"zero": change("sharding (ZeRO)", ["shard opt_state 8"], zero=True),
         "bf16": change("dtype (state)", ["dtype opt_state bf16"], kept="bfloat16"),
         "double": change("batch", ["batch 2"], batch=64),
         "quad": change("sharding (ZeRO) + batch", ["shard opt_state 8", "batch 4"], zero=True, batch=128),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x4", chips=8, batch=32),
    "jax_long": program(
        "jax_programs", "long", "values that the scan over 32 layers saves by the policy dots_with_no_batch_dims_saveable (2 sequences of 32768 of a group of 8 devices: 8192 tokens of a device: queries 64 MiB, keys and values 16 MiB each, gate and up of 14336: 224 MiB each, two outputs of 4096 and the input 64 MiB each): 740 MiB a layer, 23 GiB; then float32 logits of 128256 words (3.9 GiB an array, two); weights and momentum (8 billion, 8 bytes over 64: 1 GiB), gradients 0.5 GiB; does not fit 31 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], policy="nothing_saveable"),
         "half": change("batch", ["batch 0.5"], batch=8),
         "short": change("dimension", ["dim 32768 16384"], length=16384),
         "both": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 4"], policy="nothing_saveable", chunks=8, batch=64)},
        topology="v6e:8x8", shape=(8, 8), batch=16),
}
PROGRAMS |= {
    "linen_serve_seq": program(
        "linen_programs", "serve", "crossed keys and values of 24 layers (192 slots, 4 of 16 heads on a device, 1536 places, 128, bfloat16: 288 MiB an array, two: 13.5 GiB), read only; then the layers' own (768 places: 144 MiB an array: 6.8 GiB), written in place; weights (1.6 billion and a table of 0.5 billion, bfloat16 over 4: 1 GiB); fits, about two thirds full of 32 GiB",
        {"half": change("batch", ["batch 0.5"], slots=96),
         "double": change("batch", ["batch 2"], slots=384),
         "short": change("dimension", ["dim 1536 1024"], source=1024),
         "f8": change("dtype", ["dtype cache,cross f8e4m3fn"], kept="float8_e4m3fn"),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v4:2x2x1", chips=4, slots=192),
    "linen_lion": program(
        "linen_programs", "lion", "what the scan over 40 layers saves by the policy dots_with_no_batch_dims_saveable (8 sequences of 2048 of a device: 16384 tokens: queries, keys, values of 5120: 160 MiB each, up 640 MiB, two outputs and the input 160 MiB each, perhaps summed): 1.4 to 1.6 GiB a layer, 58 GiB; then the state (13 billion weights, float32 and a bfloat16 moment: 6 bytes over 8: 9 GiB), gradients (6 GiB); float32 logits of 50400 words (3 GiB an array, two); scores of one layer (8 by 40 by 2048 by 2048: float32 5 GiB, bfloat16 2.5 GiB); nearly full or does not fit 95 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], policy="nothing_saveable"),
         "half": change("batch", ["batch 0.5"], batch=32),
         "chunk": change("checkpoint + chunked loss", ["remat *", "chunk logits 8"], policy="nothing_saveable", chunks=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], policy="nothing_saveable", batch=128)},
        topology="tpu7x:2x2x1", chips=8, batch=64),
    "nnx_lora": program(
        "nnx_programs", "lora", "attention scores and probabilities of 28 layers (1 sequence of a device, 24 heads, 2048 by 2048: float32 384 MiB, bfloat16 192 MiB an array): 5 to 16 GiB; then MLP values (2048 tokens by 8192: 32 MiB an array, four or five): 4 GiB; tokens of 3072 (12 MiB an array, eight): 2.7 GiB; logits of 128256 words (bfloat16 500 MiB, float32 1 GiB an array, three); the frozen weights (3.2 billion in bfloat16 over 8: 0.75 GiB), gathered one by one; adapters are small; does not fit or nearly full of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=28),
         "first14": change("checkpoint part", ["remat layers[*] 14"], remat=14),
         "flash": change("blockwise attention", ["blockwise *"], kernel=True),
         "short": change("dimension", ["dim 2048 1024"], length=1024),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=28, batch=16)},
        topology="v5e:2x4", chips=8, batch=8),
    "hk_convnext": program(
        "haiku_programs", "convnext", "float32 MLP values of the first stage (128 images of a device, 56 by 56 by 384: 588 MiB an array, before and after gelu, its derivative: two or three; tokens of 96 padded to 128: 196 MiB an array, four; 3 blocks): 5 to 8 GiB, of the second (28 by 28 by 768: 294 MiB, 3 blocks): 2.5 to 4 GiB, of the third (14 by 14 by 1536: 147 MiB, 9 blocks): 4 to 5 GiB; the state is small (28 million weights); nearly full or does not fit 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=512),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=2048)},
        topology="v5e:2x4", chips=8, batch=1024),
    "eqx_siglip": program(
        "equinox_programs", "siglip", "attention scores and probabilities that the scan over the image tower's 24 layers saves (64 images of a device, 16 heads, 256 by 256: bfloat16 128 MiB, float32 256 MiB an array): 6 to 9 GiB; about the same: MLP values (16384 tokens by 4096: 128 MiB before and after gelu, two or three): 6 to 9 GiB, tokens (32 MiB an array, eight, norms in float32): 7 GiB; the text tower a quarter of that: 5 GiB; the state, whole (640 million weights, 12 bytes: 7.2 GiB), gradients (2.4 GiB); does not fit 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=256),
         "zero": change("checkpoint + sharding", ["remat *", "shard opt_state 8"], remat=True, zero=True),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=2048)},
        topology="v6e:2x4", chips=8, batch=512),
    "kh_deberta": program(
        "keras_programs", "deberta", "disentangled attention's scores of 12 layers (16 sequences, 12 heads, 512 by 512: bfloat16 96 MiB, float32 192 MiB an array; content to content, content to position and position to content before and after they are gathered, softmax, dropout: six to nine): 8 to 14 GiB; then MLP values (8192 tokens by 3072: 48 MiB, two or three) and tokens (12 MiB an array, ten): 3 GiB; the state (184 million weights, 12 bytes: 2.1 GiB), gradients; nearly full or does not fit 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "first6": change("checkpoint part", ["remat disentangled_attention_encoder_layer_* 6"], remat=6),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=12, batch=32)},
        topology="v5e:2x2", chips=1, batch=16),
    "tunix_llama32": program(
        "tunix_programs", "sft", "attention scores and probabilities of 16 layers (4 sequences of a group of 2 devices, 16 of 32 heads, 2048 by 2048: float32 1 GiB, bfloat16 512 MiB an array): 8 to 24 GiB; then logits of 128256/2 words (8192 tokens: bfloat16 1 GiB, float32 2 GiB an array, three or four): 6 GiB; MLP values (8192 tokens by 8192/2: 64 MiB an array, four): 4 GiB; the state (1.2 billion weights in bfloat16, 6 bytes over 8: 0.9 GiB); does not fit or nearly full of 32 GiB",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat="DECODER", batch=32),
         "nodonate": change("donation (undone)", [], donate_model=False)},
        topology="v4:2x2x2", shape=(4, 2), batch=16, length=2048),
    "torchax_stablelm": program(
        "torchax_programs", "stablelm", "attention scores and probabilities of 24 layers (2 sequences of a device, 32 heads, 2048 by 2048: float32 1 GiB, bfloat16 512 MiB an array): 12 to 36 GiB; then logits of 100352 words (4096 tokens: bfloat16 0.8 GiB, float32 1.5 GiB an array, three): 4 GiB, MLP values (4096 by 5632: 44 MiB an array, four): 4 GiB; the state (1.6 billion in bfloat16, 4 bytes over 4: 1.6 GiB), gradients (0.8 GiB); does not fit or nearly full of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "first12": change("checkpoint part", ["remat model.layers[*] 12"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=4),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=24, batch=16)},
        topology="v6e:2x2", chips=4, batch=8),
}
PROGRAMS |= {
    "jax_pipe": program(
        "jax2_programs", "pipe", "the layers' inputs that the scan over 39 turns saves, 5 layers each (2 sequences of 4096 of a device: 8192 tokens by 5120 bfloat16: 80 MiB; 195 of them): 15 GiB, and the turns' own 3 GiB; then all 32 parts' words and outputs (2.5 GiB each, with their gradients four, more if the scan saves what it carries): 10 GiB; the state (13 billion weights, 12 bytes over 16: 9 GiB), gradients (3 GiB, twice), a stage's weights gathered (3 GiB); scores of one layer (2 by 40 by 4096 by 4096: float32 5 GiB, bfloat16 2.5 GiB); about half full of 95 GiB, unless the outputs are kept at each turn (39 times 2.5 GiB: 98 GiB)",
        {"half": change("batch", ["batch 0.5"], batch=2),
         "double": change("batch", ["batch 2"], batch=8),
         "short": change("dimension", ["dim 4096 2048"], length=2048),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="tpu7x:2x2x2", shape=(8, 2), micro=32, batch=4),
    "jax_distil": program(
        "jax2_programs", "distil", "float32 logits of 128256 words (4 sequences of 2048 of a device: 8192 tokens: 3.9 GiB an array; the student's and the teacher's, their exponentials, the gradient: three to five): 12 to 20 GiB; then the table gathered (bfloat16 1 GiB of the teacher, 0.5 GiB of the student), its gradient (1 GiB), the state (1.5 billion, 12 bytes over 16: 1.1 GiB), the teacher (8 billion in bfloat16 over 16: 0.95 GiB), inputs of 16 layers (32 MiB: 0.5 GiB), scores of one layer (4 by 32 by 2048 by 2048: float32 2 GiB, bfloat16 1 GiB); two thirds full of 31 GiB",
        {"chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "half": change("batch", ["batch 0.5"], batch=32),
         "double": change("batch", ["batch 2"], batch=128),
         "both": change("chunked loss + batch", ["chunk logits 8", "batch 4"], chunks=8, batch=256)},
        topology="v6e:4x4", chips=16, batch=64),
}
