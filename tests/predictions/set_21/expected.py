"""The twenty-first set: outside programs; cause and changes written down before compiling."""

from recipe import change, program

PROGRAMS = {
    "jax_nanogpt": program(
        "jax_programs", "nanogpt", "attention scores and probabilities of 24 layers (8 sequences, 16 heads, 1024 by 1024: float32 512 MiB, bfloat16 256 MiB an array): 12 to 18 GiB, then MLP values (64 MiB an array before and after GELU) and float32 logits of 50304 words (1.5 GiB an array); the state is 4 GiB (355 million weights, 12 bytes), gradients 1.3; nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "first12": change("checkpoint part", ["remat h_* 12"], remat=12),
         "flash": change("blockwise attention", ["blockwise *"], kernel=True),
         "micro": change("micro-batches", ["micro 4"], micro=4),
         "both": change("checkpoint + chunked loss + batch", ["remat *", "chunk logits 8", "batch 4"], remat=24, chunks=8, batch=32)},
        topology="v6e:2x2", batch=8),
    "jax_beam": program(
        "jax_programs", "beam", "the weights, bfloat16, whole on every device (3.3 billion: 6.2 GiB); then the keys and values of the source for all beams (24 layers, 64 rows of a device, 256 by 2048: 1.5 GiB each for keys and for values) and the decoder's caches (128 long: 768 MiB each for keys and for values, and again as the beams are reordered or the scan writes them); fits, nearly full or over",
        {"half": change("batch", ["batch 0.5"], batch=64),
         "double": change("batch", ["batch 2"], batch=256),
         "short": change("dimension", ["dim 256 128"], source=128),
         "fsdp": change("sharding", ["shard params 8"], shard=True)},
        topology="v5e:2x4", chips=8, batch=128),
    "jax_prefill": program(
        "jax_programs", "prefill", "the weights (70 billion in bfloat16 over 8 devices: 16.4 GiB), attention scores of one chunk against the whole context (8 heads, 2048 by 131072: 8 GiB float32, probabilities 4 GiB), the cache (80 layers, 1 head, 131072 by 128, keys and values: 5 GiB, donated); does not fit or nearly full",
        {"blocks": change("blockwise attention", ["blockwise *"], blocks=64),
         "short": change("dimension", ["dim 2048 512"], chunk=512),
         "context": change("dimension", ["dim 131072 65536"], context=65536),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v6e:2x4", chips=8),
    "jax_fwi": program(
        "jax_programs", "fwi", "what the scan over 1000 steps saves for the gradient (4 shots of a device by 384 by 1024 float32: 6 MiB a step and array; the Laplacian or the wave field, one or two arrays): 6 to 12 GiB; everything else is small; fits, nearly full",
        {"remat": change("checkpoint", ["remat scan"], remat=True),
         "half": change("batch", ["batch 0.5"], shots=16),
         "fewer": change("dimension", ["dim 1000 500"], steps=500),
         "thin": change("dimension", ["dim 384 192"], nz=192)},
        topology="v5e:2x4", chips=8, shots=32),
}
PROGRAMS |= {
    "linen_glow": program(
        "linen_programs", "glow", "float32 hidden values of the couplings (256 images of a device, 32 by 32 by 512: 512 MiB an array, two a step for 8 steps; a quarter of that in the second level, a sixteenth in the third): 10 GiB; the state is small; fits, nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=1024),
         "double": change("batch", ["batch 2"], batch=4096),
         "bf16": change("dtype", ["compute bf16"], half=True)},
        topology="v5e:2x4", chips=8, batch=2048),
    "linen_xl": program(
        "linen_programs", "xl", "attention scores and probabilities of 18 layers (32 sequences of a device, 16 heads, 512 by 1024: float32 1 GiB, bfloat16 512 MiB an array): 9 to 27 GiB; then MLP values (16384 tokens by 4096: 128 MiB), float32 logits of 32000 words (2 GiB an array) and the memories (18 of 32 MiB, in and out); the state is whole (290 million weights, 12 bytes: 3.2 GiB); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=18),
         "first9": change("checkpoint part", ["remat block_* 9"], remat=9),
         "half": change("batch", ["batch 0.5"], batch=128),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=18, batch=512)},
        topology="v4:2x2x2", chips=8, batch=256),
    "linen_vmoe": program(
        "linen_programs", "vmoe", "attention scores and probabilities of 12 layers (32 images of a device, 16 heads, 576 by 576: float32 648 MiB, bfloat16 324 MiB): 4 to 12 GiB; MLP values of 6 layers (144 MiB an array) and of the experts (as many times 2.1), dispatch and combine tensors of 16 experts (150 MiB an array float32, padded); the state: experts 800 million weights divided by 8, 100 million whole: 2.4 GiB; nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=128),
         "double": change("batch", ["batch 2"], batch=512),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=512)},
        topology="v5e:2x4", chips=8, batch=256),
    "nnx_maskgit": program(
        "nnx_programs", "maskgit", "attention scores and probabilities that the scan over 24 layers saves (16 sequences of a device, 12 heads, 1025 by 1025: float32 870 MiB padded, bfloat16 half): 10 to 30 GiB, MLP values (96 MiB an array, two or three a layer); the state is whole (172 million weights, 12 bytes: 2 GiB); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64),
         "fsdp": change("sharding", ["shard model 8", "shard opt_state 8"], fsdp=True),
         "both": change("checkpoint + batch", ["remat *", "batch 4"], remat=True, batch=512)},
        topology="v6e:2x4", chips=8, batch=128),
    "nnx_rwkv": program(
        "nnx_programs", "rwkv", "values of 24 layers (8192 tokens of a device: bfloat16 16 MiB, float32 32 MiB an array of 1024; the mixes, r, k, v, g, decays and their exponentials, norms; 56 MiB an array of the channel mix): about 600 MiB a layer, 14 GiB; float32 logits of 65536 words (2 GiB an array); the state is divided (430 million weights: 0.6 GiB); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "first12": change("checkpoint part", ["remat blocks[*] 12"], remat=12),
         "half": change("batch", ["batch 0.5"], batch=8),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "both": change("checkpoint + chunked loss", ["remat *", "chunk logits 8"], remat=24, chunks=8)},
        topology="v5e:2x4", chips=8, batch=16),
    "hk_enformer": program(
        "haiku_programs", "enformer", "float32 values of the convolutions' tower for 2 sequences of a device (196608 by 768: 1.1 GiB an array, convolution, normalisation, gelu, sum, pooling weights: about six; then 98304 by 768 twice, and so on, halved every stage): 17 GiB; attention scores of 11 layers (8 heads, 1536 by 1536: 144 MiB, relative ones 288 MiB): 8 GiB; the state, whole (250 million weights, 12 bytes: 2.8 GiB); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=8),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=32)},
        topology="v4:2x2x2", chips=8, batch=16),
    "eqx_pangu": program(
        "equinox_programs", "pangu", "float32 attention scores and probabilities in windows of 144 (4 layers of 518400 tokens by 6 heads by 144: 1.7 GiB, padded to 256: 3 GiB an array; 6 layers of half as much): 20 to 40 GiB; MLP values (518400 by 768 float32: 1.5 GiB before and after GELU, 4 layers, and 6 of half): 20 GiB; the state is small; fits, more than half full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "bf16": change("dtype", ["compute bf16"], dtype="bfloat16"),
         "double": change("batch", ["batch 2"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=True, batch=8)},
        topology="v5p:2x2x1", chips=4, batch=4),
}
PROGRAMS |= {
    "mt_gemma2_27b": program(
        "maxtext_programs", "train", "what the scan over 23 pairs of layers saves by the policy minimal (8192 tokens of a device: gate and up of 36864: 576 MiB each a layer, 46 layers: 52 GiB; queries, keys, values, inputs: 10 GiB); then float32 logits of 256128 words with their gradient (7.8 GiB an array) and the state (27 billion weights, 12 bytes over 32 devices: 9.5 GiB), gradients (3.2 GiB); nearly full or does not fit",
        {"full": change("checkpoint (policy)", ["remat *"], remat_policy="full"),
         "half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "both": change("checkpoint + chunked loss", ["remat *", "chunk logits 8"], remat_policy="full", num_vocab_tiling=8)},
        compile_topology="v5p-64", model_name="gemma2-27b", per_device_batch_size=2, max_target_length=4096, remat_policy="minimal"),
    "mt_llama2_70b": program(
        "maxtext_programs", "train", "the state (69 billion weights, 12 bytes over 64 devices: 12.9 GiB) and gradients (4.3 GiB); then inputs of 80 layers saved by the scan (4 sequences of 4096 by 8192 bfloat16: 256 MiB, or 64 MiB where divided by 4: 5 GiB) and values of one layer (16384 tokens by 28672/4: 224 MiB an array); fits, nearly full",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=0.5),
         "double": change("batch", ["batch 2"], per_device_batch_size=2),
         "bf16": change("dtype (state)", ["dtype state bf16"], weight_dtype="bfloat16"),
         "nodonate": change("donation (undone)", [], donate=False)},
        compile_topology="v6e-64", allow_split_physical_axes="true", model_name="llama2-70b", per_device_batch_size=1, max_target_length=4096, ici_tensor_parallelism=4, ici_fsdp_parallelism=-1),
    "mt_gptoss_120b": program(
        "maxtext_programs", "train", "the state (117 billion weights, 12 bytes over 64 devices: 20.4 GiB), gradients (6.8 GiB); then float32 logits of 201088 words for 8192 tokens of a device with their gradient (6.1 GiB an array) and one layer's experts (their weights gathered: 128 by 2880 by 5760 and 2880 by 2880 bfloat16, 6 GiB, or a fourth of it by expert parallelism); fits, more than half full",
        {"half": change("batch", ["batch 0.5"], per_device_batch_size=1),
         "double": change("batch", ["batch 2"], per_device_batch_size=4),
         "tile": change("chunked loss", ["chunk logits 8"], num_vocab_tiling=8),
         "micro": change("micro-batches", ["micro 2"], per_device_batch_size=1, gradient_accumulation_steps=2)},
        compile_topology="v5p-128", model_name="gpt-oss-120b", per_device_batch_size=2, max_target_length=4096, ici_expert_parallelism=4, ici_fsdp_parallelism=-1),
    "torchax_starcoder2": program(
        "torchax_programs", "starcoder2", "attention scores and probabilities of 30 layers (2 sequences of a device, 24 heads, 2048 by 2048: float32 768 MiB, bfloat16 384 MiB an array): 11 to 34 GiB; MLP values (4096 tokens by 12288: 96 MiB, before and after GELU); the state is divided (3 billion weights, 6 bytes over 8: 2.1 GiB); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=30),
         "first15": change("checkpoint part", ["remat model.layers[*] 15"], remat=15),
         "half": change("batch", ["batch 0.5"], batch=8),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=30, batch=32)},
        topology="v6e:2x4", chips=8, batch=16, length=2048),
    "torchax_bart": program(
        "torchax_programs", "bart", "float32 attention scores and probabilities of the encoder's 12 layers (4 sequences of a device, 16 heads, 1024 by 1024: 256 MiB an array: 3 to 6 GiB), the decoder's crossings (64 MiB an array); the state, whole (406 million weights, 12 bytes: 4.5 GiB) and gradients (1.5 GiB); MLP values (64 MiB an array, two a layer); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "half": change("batch", ["batch 0.5"], batch=16),
         "bf16": change("dtype", ["dtype * bf16"], dtype="bfloat16"),
         "fsdp": change("sharding", ["shard weights 8", "shard opt_state 8"], shard=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=24, batch=64)},
        topology="v5e:2x4", chips=8, batch=32),
    "kh_fnet": program(
        "keras_programs", "fnet", "float32 MLP values of 24 layers (64 sequences of 512 of a device by 4096: 512 MiB an array, before and after GELU): 24 GiB; inputs, Fourier transforms' sums, norms and dropout (128 MiB an array, four to six a layer): 15 GiB; the state, whole (240 million weights, 12 bytes: 2.7 GiB); does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=24),
         "half": change("batch", ["batch 0.5"], batch=256),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16"),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat=24, batch=1024)},
        topology="v4:2x2x2", chips=8, batch=512),
    "kh_xception": program(
        "keras_programs", "xception", "float32 activations of the first convolutions (64 images of a device, 147 by 147 by 64, padded to 128 channels: 675 MiB an array; 147 by 147 by 128: 675 MiB; several by normalisation and relu) and of the middle (19 by 19 by 728: 67 MiB, about nine a block of eight blocks); the state is small; fits, more than half full",
        {"half": change("batch", ["batch 0.5"], batch=256),
         "double": change("batch", ["batch 2"], batch=1024),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16")},
        topology="v5e:2x4", chips=8, batch=512),
    "mjx_ilqr": program(
        "mjx_programs", "ilqr", "tangents of the physics (a batch of bodies by steps by 15 directions: 1024 by 100 by 15 a device: 6 MiB for a number, contacts' Jacobians of some hundred numbers, padded): some GiB of temporaries of the Jacobians; the arguments are small; fits",
        {"half": change("batch", ["batch 0.5"], bodies=4096),
         "double": change("batch", ["batch 2"], bodies=16384),
         "fewer": change("dimension", ["dim 100 50"], steps=50)},
        topology="v5e:2x4", chips=8, bodies=8192, steps=100),
}
PROGRAMS |= {
    "tunix_ppo": program(
        "tunix_programs", "ppo", "logits of 128256 words (a half of them on a device) for 4 sequences of 1024 of a device, in float32 with the softmax of the entropy and gradients (1 GiB an array of half the words, 2 GiB whole; four or more); then attention scores and MLP values of 16 layers in float32 (4 sequences, 16 heads, 1024 by 1024: 256 MiB, 4096 tokens by 4096: 64 MiB, three an MLP): 8 to 12 GiB; the state (1.24 billion weights in float32, 12 bytes over 8: 1.9 GiB, the weights twice as the model is not donated); nearly full or does not fit",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], batch=8),
         "donate": change("donation", ["donate model"], donate_model=True),
         "both": change("checkpoint + batch", ["remat *", "batch 2"], remat="DECODER", batch=32)},
        topology="v5e:2x4", shape=(4, 2), batch=16, prompt=512, answer=512),
}
# Written after the report of eqx_pangu had been read: its options lacked dtype="float32", so its change bf16 changes nothing.
PROGRAMS |= {
    "eqx_pangu_f32": program(
        "equinox_programs", "pangu", "as eqx_pangu, in float32: attention scores and probabilities in windows of 144 (3 GiB padded an array, 4 layers; half as much in 6), MLP values (1.5 GiB before and after GELU): 40 GiB and more; fits, more than half full",
        {"bf16": change("dtype", ["compute bf16"], dtype="bfloat16"),
         "remat": change("checkpoint", ["remat *"], remat=True)},
        topology="v5p:2x2x1", chips=4, batch=4, dtype="float32"),
}
