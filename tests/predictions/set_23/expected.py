"""The twenty-third set: outside programs; cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "mt_qwen25_14b": program(
        "maxtext_programs", "train", "what the scan over 48 layers saves by the policy minimal_with_context (4096 tokens of a device by 13824: 108 MiB for each of two MLP values, queries, outputs and input of 5120: 40 MiB an array, keys and values 8 MiB): 14 to 18 GiB; then float32 logits of 152064 words with their gradient (2.3 GiB an array, two), the state (14.8 billion weights, 12 bytes over 64 devices: 2.6 GiB), gradients (0.9 GiB); nearly full",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=0.5),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat_policy="full", per_device_batch_size=4)},
        compile_topology="v6e-64", model_name="qwen2.5-14b", per_device_batch_size=1, max_target_length=4096, remat_policy="minimal_with_context"),
    "mt_gemma3_27b": program(
        "maxtext_programs", "train", "the state (27.4 billion weights in float32, first moment bfloat16: 10 bytes over 32 devices: 8 GiB), gradients (3.2 GiB; accumulated in the loop: twice); float32 logits of 262144/4 words (2 sequences of 4096 for 4 devices: 8192 tokens by 65536: 2 GiB an array, two or three); inputs of 62 layers saved by the scan (8192 tokens by 5376, a quarter or whole: 84 MiB: 5.2 GiB, scan over groups of six saves one of six); fits, more than half full",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=0.5),
         "double": change("batch", ["batch 2"], per_device_batch_size=2),
         "short": change("dimension", ["dim 4096 2048"], max_target_length=2048),
         "nodonate": change("donation (undone)", [], donate=False)},
        compile_topology="v6e-32", model_name="gemma3-27b", per_device_batch_size=1, max_target_length=4096, ici_tensor_parallelism=4, ici_fsdp_parallelism=-1, mu_dtype="bfloat16", gradient_accumulation_steps=2),
    "mt_deepseek2_236b": program(
        "maxtext_programs", "train", "the state (236 billion weights, 12 bytes over 64 devices: 41 GiB) and gradients (13.7 GiB); then inputs of 60 layers (16384 tokens of a device by 5120 bfloat16: 160 MiB: 9.4 GiB), values of one layer's attention (128 heads of 192: 768 MiB an array) and experts (6 times 16384 tokens by 5120: 960 MiB an array), float32 logits of 102400 words with their gradient (6.3 GiB an array); nearly full or does not fit",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=2),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "short": change("dimension", ["dim 4096 2048"], max_target_length=2048)},
        compile_topology="v5p-128", model_name="deepseek2-236b", per_device_batch_size=4, max_target_length=4096, ici_expert_parallelism=4, ici_fsdp_parallelism=-1),
}
PROGRAMS |= {
    "jax_experts": program(
        "jax_programs", "experts", "attention scores and probabilities that the scan over 16 layers saves (4 sequences of a device, 16 heads, 2048 by 2048: float32 1 GiB, bfloat16 512 MiB an array): 8 to 24 GiB; then the state (everything but experts whole: 0.37 billion weights, experts one of eight: 0.37 billion; 12 bytes: 8.3 GiB), gradients (2.8 GiB), the experts' values (20480 slots by 5632: 220 MiB before and after gelu; by 2048: 80 MiB, four): 10 GiB; float32 logits of 50304 words (1.5 GiB an array); does not fit",
        {"full": change("checkpoint", ["remat *"], policy="full"),
         "half": change("batch", ["batch 0.5"], batch=16),
         "both": change("checkpoint + chunked loss", ["remat *", "chunk logits 8"], policy="full", chunks=8),
         "quarter": change("checkpoint + batch", ["remat *", "batch 0.25"], policy="full", batch=8)},
        topology="v6e:2x4", chips=8, batch=32),
    "jax_fused": program(
        "jax_programs", "fused", "attention scores and probabilities of 28 layers (1 sequence of a device, 24 heads, 4096 by 4096: float32 1.5 GiB, bfloat16 768 MiB an array): 21 to 60 GiB; then the state (3.2 billion weights, four copies in float32: 16 bytes over 8: 6.4 GiB; gradients 1.6 GiB), MLP values (64 MiB an array), the table gathered (750 MiB) and its gradient whole in float32 (1.5 GiB, if the loop keeps it whole); no whole logits; does not fit",
        {"remat": change("checkpoint", ["remat layer_*"], remat=28),
         "first14": change("checkpoint part", ["remat layer_* 14"], remat=14),
         "blocks": change("blockwise attention", ["blockwise *"], blocks=8),
         "both": change("checkpoint + batch", ["remat layer_*", "batch 2"], remat=28, batch=16)},
        topology="v6e:2x4", chips=8, batch=8),
    "jax_generate13": program(
        "jax_programs", "generate", "the cache (40 layers, 48 sequences, 1 of 8 heads, 4096 by 128 bfloat16: keys and values 1.9 GiB each: 3.75 GiB), once or twice, as the inner scan takes it as xs and gives it as ys: a second copy (3.75 GiB), perhaps a third by the outer loop; then the weights (12.7 billion over 8 devices: 3 GiB); fits, more than half full",
        {"half": change("batch", ["batch 0.5"], batch=24),
         "double": change("batch", ["batch 2"], batch=96),
         "short": change("dimension", ["dim 4096 2048"], context=2048),
         "f8": change("dtype", ["dtype cache f8e4m3fn"], kept="float8_e4m3fn"),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x4", chips=8, batch=48, context=4096),
}
PROGRAMS |= {
    "torchax_cohere": program(
        "torchax_programs", "cohere", "attention scores and probabilities of 32 layers (1 sequence of a device, 32 heads, 2048 by 2048: float32 512 MiB, bfloat16 256 MiB an array): 8 to 24 GiB; then logits of 256000 words (2048 tokens: bfloat16 1 GiB, float32 2 GiB an array, three), MLP values (2048 by 14336: 56 MiB an array, three or four: 6 GiB); the state (8.0 billion in bfloat16, weight and momentum: 4 bytes over 8: 3.75 GiB), gradients (1.9 GiB), the table gathered (2 GiB) and its gradient (2 GiB); does not fit or nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=32),
         "first16": change("checkpoint part", ["remat model.layers[*] 16"], remat=16),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=32, batch=16)},
        topology="v6e:2x4", chips=8, batch=8),
    "torchax_xlmr": program(
        "torchax_programs", "xlmr", "float32 attention scores and probabilities of 24 layers (8 sequences of a device, 16 heads, 512 by 512: 128 MiB an array, one or two: 3 to 6 GiB), MLP values (4096 tokens by 4096 float32: 64 MiB before and after GELU: 3 GiB), tokens (16 MiB an array, eight: 3 GiB); float32 logits of 250002 words (3.8 GiB an array, with log-softmax and gradient two or three); the state, whole (560 million weights, 12 bytes: 6.3 GiB) and gradients (2.1 GiB); does not fit or nearly full on 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "half": change("batch", ["batch 0.5"], batch=32),
         "bf16": change("dtype", ["dtype * bf16"], dtype="bfloat16"),
         "fsdp": change("sharding", ["shard weights 8", "shard opt_state 8"], shard=True)},
        topology="v6e:2x4", chips=8, batch=64),
    "linen_rnnt": program(
        "linen_programs", "rnnt", "float32 logits of the joint (32 utterances of a device, 400 frames by 81 words by 1024: 4 GiB an array; logits or log-softmax, their gradient) and its tanh (640 wide: 2.5 GiB): 8 to 12 GiB; LSTMs of 800 and 400 steps (gates 4 by 1024 by 32: 0.5 MiB a step; some 1 to 2 GiB); the state is small (60 million weights); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat joint"], remat=True),
         "double": change("batch", ["batch 2"], batch=64 * 8),
         "half": change("batch", ["batch 0.5"], batch=16 * 8),
         "bf16": change("dtype", ["compute bf16"], half=True)},
        topology="v5e:2x4", chips=8, batch=32 * 8),
    "kh_gpt2": program(
        "keras_programs", "gpt2", "attention scores and probabilities of 36 layers (8 sequences of a device, 20 heads, 1024 by 1024: float32 640 MiB, bfloat16 320 MiB an array; with dropout masks): 12 to 45 GiB; then MLP values (8192 tokens by 5120 bfloat16: 80 MiB before and after GELU: 6 GiB), logits of 50257 words (bfloat16 785 MiB, float32 1.5 GiB an array, three); the state, whole (774 million weights, 12 bytes: 8.7 GiB), gradients (2.9 GiB); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=36),
         "half": change("batch", ["batch 0.5"], batch=32),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=36, batch=128)},
        topology="v6e:2x4", chips=8, batch=64),
    "kh_mit": program(
        "keras_programs", "mit", "float32 values of the first stage (16 images of a device, 128 by 128 by 64 channels, padded to 128: 128 MiB an array; its MLP of 256: 256 MiB, convolved and activated, three or four; scores of 16384 by 256: 256 MiB; three layers: 4 GiB), of the second (64 by 64 by 128: 32 MiB; four layers), of the third (32 by 32 by 320, 18 layers: MLP of 1280: 80 MiB, three; scores 5 heads by 1024 by 256: 80 MiB, two: 9 GiB); the state is small (45 million weights); fits, nearly full, or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=28),
         "half": change("batch", ["batch 0.5"], batch=64),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "double": change("batch", ["batch 2"], batch=256)},
        topology="v5e:2x4", chips=8, batch=128),
}
PROGRAMS |= {
    "nnx_sit": program(
        "nnx_programs", "sit", "what the scan over 28 blocks saves by the policy dots_saveable (16 images of a device, 256 places, 1152 wide: 9 MiB an array; the products: queries, keys, values 27 MiB, scores 16 by 16 by 256 by 256 bfloat16: 32 MiB, attention and outputs 9 MiB each, MLP 36 MiB and 9 MiB, modulation small, the input 9 MiB): 130 MiB a block, 3.7 GiB; then weights and their average, whole (675 million in float32: 2.5 GiB each), gradients (2.5 GiB), moments (5 GiB); does not fit or nearly full on 16 GiB",
        {"plain": change("checkpoint", ["remat *"], policy="nothing"),
         "double": change("batch", ["batch 2"], batch=256),
         "half": change("batch", ["batch 0.5"], batch=64),
         "zero": change("sharding", ["shard opt_state 8"], zero=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], policy="nothing", batch=256)},
        topology="v5e:2x4", chips=8, batch=128, zero=False),
    "eqx_s5": program(
        "equinox_programs", "s5", "complex states of 8 layers (8 sequences of a device, 4096 by 256 complex64, as two float32 planes: 32 MiB each, 64 MiB an array; drive, states, and levels of the associative scan with their products: two to six of that each layer), real values (4096 by 512 by 8: 64 MiB an array; norm, y, gelu, gate of 1024: 128 MiB, six): 0.6 to 0.9 GiB a layer: 5 to 7 GiB; logits small; the state is tiny; fits, about half full",
        {"remat": change("checkpoint", ["remat layers[*]"], remat=8),
         "first4": change("checkpoint part", ["remat layers[*] 4"], remat=4),
         "double": change("batch", ["batch 2"], batch=128),
         "short": change("dimension", ["dim 4096 2048"], length=2048)},
        topology="v5e:2x4", chips=8, batch=64),
    "hk_wgan": program(
        "haiku_programs", "wgan", "float32 values of the critic at full size (32 images of a device, 128 by 128 by 64 to 128 channels: 64 channels 128 MiB, padded to 128: 256 MiB an array; forward on true, on false, on mixed, and derivatives of the derivative, about six arrays each: 4 to 6 GiB), second level half of that; the generator's last stage (128 by 128 by 64: 256 MiB, six); the state is small (40 million weights); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=256),
         "double": change("batch", ["batch 2"], batch=1024),
         "bf16": change("dtype", ["compute bf16"], half=True)},
        topology="v5e:2x4", chips=8, batch=512),
    "jraph_molecules": program(
        "haiku_programs", "molecules", "float32 values of 12 layers by edge (400000 edges by 256: 390 MiB an array; concatenated 768 wide: 1.1 GiB; two silu before and after, normed, sum: about six of 390 MiB: 2.5 to 4 GiB a layer), by node a fifth (80000 by 256: 78 MiB): 35 to 50 GiB; the state is small; does not fit on 32 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("dimension", ["dim 400000 200000", "dim 80000 40000"], nodes=40000, edges=200000, graphs=2000),
         "bf16": change("dtype", ["compute bf16"], half=True)},
        topology="v4:2x2x1", nodes=80000, edges=400000, graphs=4000),
}
PROGRAMS |= {
    "linen_named": program(
        "linen2_programs", "named", "what the scan over 32 layers saves by name (2 sequences of a device: 8192 tokens; the MLP's product of 11008/4: 43 MiB, attention's output of 1024: 16 MiB, the input of 4096 whole: 64 MiB): 3.9 GiB; then the state (7 billion weights, float32, first moment bfloat16, second float32: 10 bytes over 16: 4.1 GiB), gradients (1.7 GiB); float32 logits of 64000/4 words (8192 tokens: 500 MiB an array); scores of one layer (2 by 8 by 4096 by 4096 float32: 1 GiB, three); fits, more than half full of 16 GiB",
        {"full": change("checkpoint (policy)", ["remat *"], save=False),
         "half": change("batch", ["batch 0.5"], batch=4),
         "double": change("batch", ["batch 2"], batch=16),
         "micro": change("micro-batches", ["micro 2"], micro=2),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], save=False, batch=16)},
        topology="v5e:4x4", shape=(4, 4), batch=8),
    "gemma_270m": program(
        "gemma_programs", "small", "logits of 262144 words (8 sequences of 512 of a device: bfloat16 2 GiB, float32 4 GiB an array; logits, their gradient, log-softmax): 6 to 12 GiB; then attention and MLP values of 18 layers (4096 tokens by 2048: 16 MiB, three; scores 8 by 4 by 512 by 512 float32: 32 MiB; tokens of 640): 2 to 3 GiB; the state (268 million weights, whole, float32, adafactor: 1 GiB), gradients (1 GiB), bfloat16 weights (0.5 GiB); nearly full or does not fit on 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=32),
         "double": change("batch", ["batch 2"], batch=128),
         "quarter": change("batch", ["batch 0.25"], batch=16)},
        topology="v5e:2x4", chips=8, batch=64, length=512),
    "tunix_qwen25_3b": program(
        "tunix_programs", "sft", "attention scores and probabilities of 36 layers (4 sequences of a device's group, 8 of 16 heads, 1024 by 1024: float32 128 MiB, bfloat16 64 MiB an array; more if heads are not divided): 5 to 9 GiB; then logits of 151936/2 words (4096 tokens: float32 1.2 GiB an array; one-hot and log-softmax, three or four), MLP values (4096 by 11008/2: 43 MiB an array, three: 4.6 GiB); the state (3.1 billion weights in bfloat16, with moments 6 bytes over 8: 2.3 GiB); fits, more than half full of 31 GiB",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], batch=8),
         "double": change("batch", ["batch 2"], batch=32),
         "nodonate": change("donation (undone)", [], donate_model=False)},
        topology="v6e:2x4", shape=(4, 2), batch=16, length=1024),
}
PROGRAMS |= {
    "jax_transport": program(
        "jax2_programs", "transport", "matrices of 4096 rows of a device by 16384 columns that the scan over 40 iterations saves for the gradient (float32 256 MiB an array; the exponentials of two logsumexp, one or two each): 20 to 40 GiB; the costs (256 MiB) and their gradient; the network is small; does not fit",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "half": change("batch", ["batch 0.5"], points=8192),
         "fewer": change("dimension", ["dim 40 20"], steps=20),
         "both": change("checkpoint + batch", ["remat scan", "batch 2"], remat=True, points=32768)},
        topology="v5e:2x2", chips=4, points=16384),
    "jax_sasrec": program(
        "jax2_programs", "sasrec", "float32 scores of all items (48 histories of 200 of a device: 9600 by a million: 36 GiB an array; scores, their gradient or softmax, two): 36 to 75 GiB; then the table, its moments and gradient (1 million by 256 float32: 0.95 GiB each, whole: 4 GiB); attention of 4 layers is small (48 by 4 by 200 by 200: 30 MiB); nearly full or does not fit",
        {"chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "half": change("batch", ["batch 0.5"], batch=24 * 8),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "rows": change("chunked loss + sharding", ["chunk logits 8", "shard items 8"], chunks=8, rows=True)},
        topology="tpu7x:2x2x1", chips=8, batch=48 * 8),
    "linen_r2d2": program(
        "jax2_programs", "r2d2", "float32 values of the first convolution (64 sequences of 120 frames of a device: 7680 by 20 by 20 by 32, padded to 128 channels if frames are not last: 375 MiB packed, 1.5 GiB padded; with and without relu), frames as float32 (7680 by 84 by 84 by 4: 830 MiB packed, several if padded), both networks; bytes of frames (207 MiB or padded much more); LSTM small (120 by 64 by 2048: 60 MiB an array); the state is tiny; fits",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "double": change("batch", ["batch 2"], batch=128 * 8),
         "quad": change("batch", ["batch 4"], batch=256 * 8),
         "bf16": change("dtype", ["compute bf16"], half=True)},
        topology="v5e:2x4", chips=8, batch=64 * 8),
}
