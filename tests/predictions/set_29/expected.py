"""The twenty-ninth set: cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "jax_server": program(
        "jax_programs", "server", "the cache (32 layers, 2 of 8 heads on a device, 128, 64 slots, 8192 positions, bfloat16: 8 GiB keys and 8 GiB values), and again where its update is not in place or the layout is changed; the weights (8.0 billion in bfloat16 over 4: 3.8 GiB); one layer's slices copied (256 MiB, two); 70 to 90 % of 31 GiB",
        {"half": change("batch", ["batch 0.5"], slots=32),
         "short": change("dimension", ["dim 8192 4096"], context=4096),
         "f8": change("dtype", ["dtype cache f8e4m3fn"], kept="float8_e4m3fn"),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v6e:2x2", chips=4, slots=64),
    "jax_llama": program(
        "jax_programs", "llama", "what the scan over 22 layers saves by names (4 sequences of 2048 of a device and micro-batch: 8192 tokens: gate and up of 5632: 88 MiB each, query and context 32 MiB each, keys and values 4 MiB each, the input 32 MiB: 280 MiB a layer): 6 GiB; scores of one layer (4 by 32 by 2048 by 2048: float32 2 GiB, bfloat16 1 GiB): 4 to 6 GiB; the state (1.1 billion, 12 bytes over 16: 0.8 GiB), gradients twice over 16 (0.5 GiB); float32 logits of 32000 words (1 GiB, two); just fits or not 16 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], saved=()),
         "micro": change("micro-batches", ["micro 2"], micro=4),
         "half": change("batch", ["batch 0.5"], batch=64),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], saved=(), batch=256)},
        topology="v5e:4x4", chips=16, batch=128),
    "hk_gpt": program(
        "haiku_programs", "gpt", "attention scores and probabilities that the layer stack saves of 16 layers, of one micro-batch (8 sequences of 1024 of a device, 16 heads: float32 512 MiB, bfloat16 256 MiB): 12 to 20 GiB; MLP values (8192 tokens by 4096: 64 MiB, three): 3 GiB; tokens of 1024 (16 MiB, ten): 2.5 GiB; the state, whole (236 million, 12 bytes: 2.6 GiB), gradients, twice: 1.8 GiB; logits of 32128 words (1 GiB, two); 80 to 100 % of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "micro": change("micro-batches", ["micro 2"], micro=8),
         "double": change("batch", ["batch 2"], batch=256),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=256)},
        topology="v4:2x2x1", chips=4, batch=128),
    "linen_longformer": program(
        "linen_programs", "longformer", "scores and probabilities of blocks by three blocks that the scan over 12 layers saves (8 sequences, 32 blocks, 12 heads, 256 by 768: float32 2.25 GiB, bfloat16 1.1 GiB an array): 40 to 60 GiB; MLP values (65536 tokens by 3072: 384 MiB, three): 14 GiB; keys and values three times (288 MiB each): 7 GiB; tokens of 768 (96 MiB, ten): 11 GiB; float32 logits of 50304 words (12.3 GiB, one or two); the state is small; does not fit 95 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "short": change("dimension", ["dim 8192 4096"], length=4096),
         "half": change("batch", ["batch 0.5"], batch=16),
         "all": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 2"], remat=True, chunks=8, batch=64)},
        topology="v5p:2x2x1", chips=4, batch=32),
    "kh_distilbert": program(
        "keras_programs", "distilbert", "float32 scores, probabilities and dropped-out ones of 6 layers (64 sequences of a device, 12 heads, 512 by 512: 768 MiB an array, two or three; bits of dropout): 9 to 15 GiB; MLP values (32768 tokens by 3072: 384 MiB, three): 7 GiB; tokens of 768 (96 MiB, ten): 5 GiB; the state (66 million, 12 bytes: 0.8 GiB); logits of 30522 words for 80 places (600 MiB, two); does not fit 16 GiB",
        {"bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "remat": change("checkpoint", ["remat *"], remat=6),
         "first3": change("checkpoint part", ["remat transformer_layer_* 3"], remat=3),
         "half": change("batch", ["batch 0.5"], batch=128)},
        topology="v5e:2x2", chips=4, batch=256),
    "torchax_gptneo": program(
        "torchax_programs", "gptneo", "float32 scores and probabilities of 12 layers, local ones too as whole matrices (12 sequences of a device, 12 heads, 1024 by 1024: float32 576 MiB, bfloat16 288 MiB): 10 to 15 GiB; MLP values (12288 tokens by 3072: 72 MiB, three to five): 3 to 4 GiB; tokens of 768 (18 MiB, ten): 2 GiB; logits of 50257 words (bfloat16 1.2 GiB, float32 2.3 GiB, three): 6 GiB; the state (125 million in bfloat16, 6 bytes: 0.7 GiB); just does not fit 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=12),
         "first6": change("checkpoint part", ["remat transformer.h[*] 6"], remat=6),
         "half": change("batch", ["batch 0.5"], batch=48),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=12, batch=192)},
        topology="v5e:2x4", chips=8, batch=96),
    "eqx_events": program(
        "equinox_programs", "events", "the checkpoints do nothing as the compiler may merge what is recomputed (prevent_cse=False): scores and probabilities of 10 blocks (32 sequences of a device, 16 heads, 1024 by 1024: float32 2 GiB, bfloat16 1 GiB): 20 to 33 GiB; MLP values (32768 tokens by 3072: 192 MiB, three): 6 GiB; tokens of 1024 (64 MiB, eight): 5 GiB; the state (160 million, 12 bytes: 1.8 GiB); if they work: 6 to 10 GiB; does not fit 31 GiB or nearly full",
        {"full": change("checkpoint (policy)", ["remat *"], policy=None, prevent=True),
         "half": change("batch", ["batch 0.5"], batch=128),
         "zero": change("sharding (ZeRO)", ["shard opt_state 8"], zero=True)},
        topology="v6e:2x4", chips=8, batch=256),
    "nnx_neox": program(
        "nnx_programs", "neox", "scores and probabilities of 8 layers of one of two micro-batches (8 sequences of 2048 of a device, 16 heads: float32 2 GiB, bfloat16 1 GiB): 24 to 40 GiB, twice if both micro-batches are held together; MLP values (16384 tokens by 8192: 256 MiB, three): 6 GiB; tokens of 2048 (64 MiB, ten): 5 GiB; float32 logits of 50432 words (3.1 GiB, two or three); the state, whole (610 million, 12 bytes: 6.8 GiB), gradients twice: 4.5 GiB; 50 to 80 % of 95 GiB",
        {"micro": change("micro-batches", ["micro 2"], micro=4),
         "remat": change("checkpoint", ["remat *"], remat=8),
         "double": change("batch", ["batch 2"], batch=256)},
        topology="tpu7x:2x2x1", chips=8, batch=128),
}
