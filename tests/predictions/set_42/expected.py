"""The forty-second set: cause and changes written down before compiling."""

from recipe import change, program

FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    "mt_qwen25_7b": program(
        "maxtext_programs", "train", "the state (7.62 billion, 12 bytes over 16): 5.7 GiB; gradients in float32 (1.9 GiB), summed over four micro-batches, so once more while one's are made: 1.9 to 3.8 GiB; logits of 152064 words (2 sequences of 1024 of a device and micro-batch, 2048 tokens: bfloat16 0.58 GiB, float32 1.16 GiB, one or two): 1.2 to 2.9 GiB; table and head gathered and their gradients (545 million each: bfloat16 1.02 GiB, float32 2.03 GiB): 1 to 4 GiB; a layer's weights gathered (233 million: bfloat16 0.43 GiB, one to two, float32 gradients 0.87 GiB): 0.4 to 1.5 GiB; what the scan over 28 layers saves by the policy save_qkv_proj (2048 tokens of 3584: inputs 14 MiB, queries 14 MiB, keys and values 2 MiB each): 32 MiB a layer: 0.9 GiB; MLP values of one layer (2048 by 18944: 74 MiB, three or four): 0.3 GiB; 75 to 110 % of 15.75 GiB",
        {"micro": change("micro-batches", ["micro 2"], gradient_accumulation_steps=8, per_device_batch_size=1),
         "full": change("checkpoint (policy)", ["remat scan"], remat_policy="full")},
        compile_topology="v5e-16", model_name="qwen2.5-7b", per_device_batch_size=2, max_target_length=1024, gradient_accumulation_steps=4, remat_policy="save_qkv_proj", attention="flash", scan_layers="true", **FAKE),
}
PROGRAMS |= {
    "nnx_answer": program(
        "nnx_programs", "answer", "the caches (12 layers, 192 of 384 sequences and 2 of 8 heads on a device, 3072 places of 128, bfloat16: 288 MiB for keys and as much for values): 6.75 GiB, once if the while_loop's are the arguments', twice if it keeps its own; copies of one layer's keys or values in another order (288 MiB, none to four): 0 to 1.2 GiB; the weights (12 layers of 47 million and a table of 134 million in bfloat16 over 4): 0.33 GiB; logits of 65536 words (192: a quarter 12 MiB float32, whole 48 MiB, with the random numbers of drawing three to five): 0.1 to 0.25 GiB; scores (192 by 2 by 2 by 3072: 9 MiB float32) little; 46 to 60 % of 15.75 GiB, or 90 to 100 % if twice; without donation twice, 14 to 15 GiB",
        {"nodonate": change("donation (undone)", [], donate=False),
         "half": change("batch", ["batch 0.5"], batch=192),
         "int8": change("dtype (cache)", ["dtype cache s8"], kept="int8")},
        topology="v5e:2x4", shape=(2, 4), batch=384),
    "linen_word": program(
        "linen_programs", "word", "the stacked cache (32 layers, 48 of 96 sequences and 8 of 32 heads on a device, 2048 places of 128, bfloat16: 192 MiB a layer for keys and as much for values): 12 GiB; as nn.scan takes it in slices and gives it back stacked anew, once more (12 GiB) unless the compiler writes it in place; the weights (6.9 billion in bfloat16 over 4): 3.2 GiB; one layer's keys and values before and after the new word (192 MiB, one to four): 0.2 to 0.8 GiB; weights of the scan in another order, perhaps; logits of 50304 words (48, a quarter) little; 50 to 55 % of 31.25 GiB in place, 85 to 92 % if twice; without donation the latter at least",
        {"nodonate": change("donation (undone)", [], donate=False),
         "half": change("batch", ["batch 0.5"], batch=48),
         "double": change("batch", ["batch 2"], batch=192)},
        topology="v6e:2x4", shape=(2, 4), batch=96),
    "jax_a2c_gray": program(
        "rl_programs", "a2c", "(resized from 24576 environments of a device, for which these sizes were written, and which were refused with 17 GiB, as a v4 device of this topology turned out to be a core with 15.25 GiB, to 16384 on all 8 cores: everything two thirds, 60 to 90 % of 15.25 GiB) while learning (32 moments of 24576 environments of a device, 786432 of 512 in float32: 1.5 GiB; actor and critic of two layers each, tanh's outcome kept: four; one to three for gradients and what is before tanh): 7.5 to 10.5 GiB; the fields (24576 of 128 by 128 float32: 1.5 GiB each, two, as arguments and results by donation): 3 GiB; what was seen (786432 of 256: 0.75 GiB, as it was rolled out, perhaps again in another order): 0.75 to 1.5 GiB; actions of 16 (48 MiB, padded to 128 384 MiB, one to three): 0.05 to 1.2 GiB; during the rollout, before the learning's values are there, the fields' neighbours and new ones (1.5 GiB, two to six): 3 to 9 GiB; weights and their state little; 40 to 55 % of 30.75 GiB; without donation 3 GiB more if the rollout's fields lie apart",
        {"half": change("batch", ["batch 0.5"], envs=65536),
         "bf16": change("dtype", ["compute bf16"], dtype="bfloat16"),
         "nodonate": change("donation (undone)", [], donate=False)},
        topology="v4:2x2x1", chips=8, envs=131072),
    "hk_speech": program(
        "haiku_programs", "speech", "(resized from 24 utterances of a device, for which these sizes were written and which took 6.6 GiB, as the compiler makes scores and norms anew, to 40) what 12 layers of the encoder keep in float32, no checkpoints (24 utterances of 512 places of a device, 12288 tokens of 512: 24 MiB, eight to twelve; heads of 64 padded to 128 48 MiB, three or four; the MLP's of 2048: 96 MiB, one or two; scores and probabilities 24 by 8 by 512 by 512: 192 MiB, one or two unless recomputed): 0.6 to 0.95 GiB a layer: 7 to 11.5 GiB; the decoder's 6 (3072 tokens: 6 MiB, twelve to sixteen, hidden 24 MiB, one or two; across 24 by 8 by 128 by 512: 48 MiB, one or two; keys and values of the 12288 places 24 MiB, padded 48 MiB, two; its own scores 12 MiB, two): 0.25 to 0.4 GiB a layer: 1.5 to 2.4 GiB; logits of 10240 words (3072: 120 MiB, labels smoothed as much, two to four): 0.25 to 0.5 GiB; convolutions (1024 places: 48 MiB, two to four): 0.1 to 0.2 GiB; the state (71 million, 12 bytes): 0.8 GiB, gradients 0.27 GiB; 60 to 95 % of 15.75 GiB",
        {"bf16": change("dtype", ["compute bf16"], compute="bfloat16"),
         "remat": change("checkpoint", ["remat *"], remat=True),
         "half": change("batch", ["batch 0.5"], batch=80)},
        topology="v5e:2x2", chips=4, batch=160),
    "torchax_phi4mini": program(
        "torchax_programs", "phi4mini", "what 10 layers keep, no checkpoints (2 texts of 1024 of a device, 2048 tokens of 3072: bfloat16 12 MiB, eight to twelve, float32 in norms 24 MiB, two to four; queries, keys, values together 20 MiB, turned and repeated to 24 heads 12 MiB each, three to five; the MLP's of 8192, gate and up together 64 MiB, silu and product 32 MiB each: one to two of each; scores and probabilities 2 by 24 by 1024 by 1024: bfloat16 96 MiB, float32 192 MiB, one or two unless recomputed): 0.4 to 0.8 GiB a layer: 4 to 8 GiB; logits of 200064 words (2048: bfloat16 0.76 GiB, float32 1.53 GiB, two or three): 3 to 4.6 GiB; the state in bfloat16 (1.62 billion, 6 bytes over 4): 2.3 GiB, gradients 0.75 GiB; the table gathered and its gradient (615 million: 1.15 GiB each, one or two): 1.2 to 3.4 GiB; the layers' weights gathered (a layer 101 million: 0.19 GiB; all, if kept for the backward pass, 1.9 GiB): 0.2 to 1.9 GiB; 75 to 110 % of 15.75 GiB",
        {"chunk": change("chunked loss", ["chunk logits 8"], chunks=8),
         "half": change("batch", ["batch 0.5"], batch=4),
         "remat": change("checkpoint", ["remat *"], remat=10)},
        topology="v5e:2x2", chips=4, batch=8),
}
