"""The twelfth set: programs of real libraries, with the cause and the changes that were written down before any was compiled."""

from recipe import change, program

PROGRAMS = {
    "bv_siglip": program(
        "bv_programs", "siglip", "float32 activations of the image tower's 12 blocks (MLP hidden values and attention scores of 256 tokens), the text tower's after them; nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=384),
         "zero": change("sharding", ["shard opt_state 16"], zero=True),
         "zeroc": change("sharding (after the score)", ["shard opt_state 16"], zero=True, gradients=True)},
        topology="v5e:4x4", chips=16, batch=768),
    "bv_so400m": program(
        "bv_programs", "so400m", "values that the scan over 27 layers saves by its policy: MLP hidden values, then queries, keys, values and outputs of the projections; nearly full",
        {"nothing": change("checkpoint (policy)", ["remat *"], policy="nothing_saveable"),
         "half": change("batch", ["batch 0.5"], batch=1024),
         "fsdp": change("sharding", ["shard params 16", "shard opt_state 16"], fsdp=True),
         # after the score
         "b160": change("edge (after the score)", ["batch 1.25"], batch=2560),
         "fsdprules": change("sharding (after the score)", ["shard params 16", "shard opt_state 16"], fsdp=True, rules=True)},
        topology="v6e:4x4", chips=16, batch=2048),
    "hf_t5": program(
        "hf_programs", "t5", "attention scores of the encoder's 12 layers (512 by 512, 12 heads), then MLP values and the decoder's scores",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=128),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v4:2x2x1", chips=4, batch=256, length=512, target=128),
    "hf_llama_decode": program(
        "hf_programs", "llama_decode", "the cache, twice, because it is not donated; does not fit",
        {"donate": change("donation", ["donate past_key_values"], donate=True),
         "half": change("batch", ["batch 0.5"], batch=24),
         "short": change("dimension", ["dim 4096 2048"], length=2048),
         # after the score
         "b60": change("edge (after the score)", ["batch 1.25"], batch=60)},
        topology="v5e:2x4", chips=8, batch=48, length=4095 + 1, depth=16),
    "bonsai_dinov3": program(
        "bonsai_programs", "dinov3", "float32 attention scores of 12 layers (789 tokens, 12 heads), then MLP values; does not fit",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=128),
         "quarter": change("batch", ["batch 0.25"], batch=64)},
        topology="v6e:2x4", chips=8, batch=256, size=448),
    "bonsai_mamba2": program(
        "bonsai_programs", "mamba2", "float32 decay matrices within chunks (256 by 256 of each head) and their products with C and B, of 8 layers",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         # after the score
         "first3": change("plan (after the score)", ["remat layers[*] 3"], remat=3),
         "b3": change("edge (after the score)", ["batch 0.75"], batch=24)},
        topology="v4:2x2x2", chips=8, batch=32, length=2048, depth=8, width=2048),
    "bonsai_qwen3_prefill": program(
        "bonsai_programs", "qwen3_prefill", "the cache twice, because it is not donated; then attention scores of one layer and the logits of all positions",
        {"donate": change("donation", ["donate cache"], donate=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "double": change("batch", ["batch 2"], batch=64)},
        topology="v6e:2x2", chips=4, batch=32, length=2048),
    "penzai_llama": program(
        "google_programs", "penzai_lm", "values saved by the layer stack's scan: float32 attention scores of 8 layers (16 heads, 1024 by 1024), then the MLP's; nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=16),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v5e:2x4", chips=8, batch=32, length=1024),
    "tunix_llama": program(
        "google_programs", "tunix_llama", "attention scores of 16 layers (2048 by 2048), then one-hot targets and logits of 128256 words; does not fit or nearly",
        {"decoder": change("checkpoint", ["remat *"], remat="DECODER"),
         "half": change("batch", ["batch 0.5"], batch=16),
         "donate": change("donation", ["donate model"], donate_model=True),
         # Written after the first score showed that tunix drops its own constraints when compiled on a CPU.
         "constr": change("sharding (after the score)", ["constrain 8"], constrain=True)},
        topology="v6e:4x4", shape=(8, 2), batch=32, length=2048),
    "gemma_muon": program(
        "google_programs", "gemma_muon", "logits of 262144 words and their gradient; does not fit",
        {"chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "half": change("batch", ["batch 0.5"], batch=128),
         "quarter": change("batch", ["batch 0.25"], batch=64)},
        topology="v5e:8x8", chips=64, batch=256, length=2048),
    "flax_lm1b": program(
        "google_programs", "lm1b", "float32 attention scores (and dropout masks) of 6 layers, then MLP values and logits; nearly full",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=48),
         "bf16": change("dtype", ["compute bf16"], half=True),
         "nodonate": change("donation (undone)", [], donate=False),
         # after the score
         "b72": change("edge (after the score)", ["batch 3"], batch=288)},
        topology="v5e:2x2", chips=4, batch=96, length=512),
    "flax_wmt_beam": program(
        "google_programs", "wmt_beam", "the decoder's cache of four beams in the loop, more than once because beams are gathered; float32",
        {"donate": change("donation", ["donate cache"], donate=True),
         "half": change("batch", ["batch 0.5"], batch=64),
         "bf16": change("dtype", ["compute bf16", "dtype cache bf16"], half=True)},
        topology="v6e:2x2", batch=128, length=256, decoded=256),
    "kh_deberta": program(
        "keras_programs", "deberta", "float32 attention scores of 8 layers: content-to-content, content-to-position and position-to-content",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64),
         "bf16": change("dtype", ["compute bf16"], policy="mixed_bfloat16")},
        topology="v6e:2x2", chips=4, batch=128, length=512),
    "kernel_experts": program(
        "kernel_programs", "experts", "values that the scan saves: rows of tokens going to, through and out of the experts; then logits of the vocabulary in float32",
        {"remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=64),
         "chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "micro": change("micro-batches", ["micro 4"], micro=4)},
        topology="tpu7x:2x2x1", chips=8, batch=128, length=4096, depth=8, width=2048, heads=16, count=8, hidden=4096, vocabulary=32000),
    "bv_paligemma": program(
        "bv_programs", "paligemma", "float32 logits of 257152 words for 128 tokens, with log_softmax, one-hot targets and gradient; then the values that both scans save",
        {"chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "half": change("batch", ["batch 0.5"], batch=384),
         "double": change("batch", ["batch 2"], batch=1536),
         # after the score: big_vision's trainer sets these rules, which this program left out
         "rules": change("sharding (after the score)", ["constrain 64"], rules=True),
         "b2": change("edge (after the score)", ["batch 0.1666667"], batch=128)},
        topology="v5e:8x8", chips=64, batch=768, size=448, text=128),
    "bv_paligemma_decode": program(
        "bv_programs", "paligemma_decode", "the cache, twice or more, because it is not donated; does not fit",
        {"donate": change("donation", ["donate cache"], donate=True),
         "half": change("batch", ["batch 0.5"], batch=512),
         "both": change("donation + batch", ["donate cache", "batch 0.5"], donate=True, batch=512),
         "b164": change("edge (after the score)", ["batch 0.640625"], batch=656)},
        topology="v6e:2x2", chips=4, batch=1024, length=4096),
    # Four programs made fuller than 83 %, written after the first score (of the others), before they were compiled.
    "so400m_full": program(
        "bv_programs", "so400m", "values that the scan over 27 layers saves by its policy; nearly full",
        {"nothing": change("checkpoint (policy), full", ["remat *"], policy="nothing_saveable"),
         "half": change("batch, full", ["batch 0.5"], batch=1280),
         "fsdp": change("sharding, full", ["shard params 16", "shard opt_state 16"], fsdp=True, rules=True)},
        topology="v6e:4x4", chips=16, batch=2560),
    "lm1b_full": program(
        "google_programs", "lm1b", "attention scores, then logits (30000 words) and MLP values; nearly full",
        {"remat": change("checkpoint, full", ["remat *"], remat=True),
         "half": change("batch, full", ["batch 0.5"], batch=144)},
        topology="v5e:2x2", chips=4, batch=288, length=512),
    "penzai_full": program(
        "google_programs", "penzai_lm", "attention scores of 8 layers; then MLP values and logits; nearly full",
        {"remat": change("checkpoint, full", ["remat *"], remat=True),
         "half": change("batch, full", ["batch 0.5"], batch=44)},
        topology="v5e:2x4", chips=8, batch=88, length=1024),
    "qwen3_full": program(
        "bonsai_programs", "qwen3_prefill", "the cache twice, because it is not donated; nearly full",
        {"donate": change("donation, full", ["donate cache"], donate=True)},
        topology="v6e:2x2", chips=4, batch=64, length=2048),
}
