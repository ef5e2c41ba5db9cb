"""The thirty-fourth set: cause and changes written down before compiling."""

from recipe import change, program

M = ("maxtext_programs", "train")
FAKE = dict(dataset_type="synthetic", run_name="x", base_output_directory="/tmp/x", enable_tensorboard="false", steps=1000)

PROGRAMS = {
    "mt_gemma3": program(
        *M, "the state (3.9 billion, 12 bytes over 8): 5.4 GiB, gradients in float32 1.8 GiB; dots that the scans save by the policy minimal (1 sequence of 2048 of a device, 34 layers: queries, keys, values, out, two of 10240 and the MLP's out: 59 KB a token, 116 MiB a layer): 3.9 GiB; logits of 262144 words (bfloat16 1 GiB, float32 2 GiB, two or three): 4 to 5 GiB; the embedding gathered (bfloat16 1.25 GiB) and its whole gradient (1.25 to 2.5 GiB); a layer's weights gathered (95 million, bfloat16 180 MiB, six layers a step of the scan); 90 to 115 % of 16 GiB",
        {"full": change("checkpoint (policy)", ["remat scan"], remat_policy="full"),
         "both": change("checkpoint (policy) + chunked loss", ["remat scan", "chunk logits 8"], remat_policy="full", num_vocab_tiling=8)},
        compile_topology="v5e-8", model_name="gemma3-4b", per_device_batch_size=1, max_target_length=2048, remat_policy="minimal", attention="flash", scan_layers="true", **FAKE),
    "mt_olmo3": program(
        *M, "the state (7.3 billion, 12 bytes over 8): 10.2 GiB, gradients in float32 3.4 GiB; what the scan over 8 times 4 layers saves by names (half a sequence of 8192 of a device: 4096 tokens: input, queries, keys, values, out of 4096: 160 MiB a layer): 5 GiB; logits of 100278 words (float32 1.5 GiB, bfloat16 0.75 GiB, two or three): 3.5 GiB; MLP values of four layers as a step's backward runs (4096 by 11008: 86 MiB, four): 0.4 to 1.4 GiB; four layers' weights gathered (202 million a layer: bfloat16 386 MiB): 0.4 to 1.5 GiB; embedding and head gathered (bfloat16 0.77 GiB each) and their gradients; 75 to 95 % of 31 GiB",
        {"full": change("checkpoint (policy)", ["remat scan"], remat_policy="full"),
         "double": change("batch", ["batch 2"], per_device_batch_size=1)},
        compile_topology="v6e-8", model_name="olmo3-7b", per_device_batch_size=0.5, max_target_length=8192, remat_policy="custom", query_proj="device", key_proj="device", value_proj="device", out_proj="device", attention="flash", scan_layers="true", ici_fsdp_parallelism=4, ici_context_parallelism=2, **FAKE),
    "mt_gptoss": program(
        *M, "the state (20.9 billion, 12 bytes over 16): 14.6 GiB, gradients in float32 4.9 GiB; logits of 201088 words (1 sequence of 4096 of a device: float32 3.1 GiB, bfloat16 1.5 GiB, two or three): 6 to 8 GiB; rows sorted by expert (4096 by 4, 4 devices' at worst: 65536 by 2880: bfloat16 360 MiB, padded 3072: 384 MiB, six to ten as a layer's backward runs): 2 to 4 GiB; a layer's experts gathered over fsdp (8 of 32 experts, 3 by 2880 by 2880: bfloat16 380 MiB, float32 760 MiB, two layers): 0.8 to 1.5 GiB; inputs of 12 steps of the scan: 0.3 GiB; head and embedding gathered (1.1 GiB each) and gradients; 90 to 115 % of 31 GiB",
        {"mu": change("dtype", ["dtype mu bf16"], mu_dtype="bfloat16"),
         "double": change("batch", ["batch 2"], per_device_batch_size=2)},
        compile_topology="v6e-16", model_name="gpt-oss-20b", per_device_batch_size=1, max_target_length=4096, remat_policy="full", attention="flash", scan_layers="true", ici_fsdp_parallelism=4, ici_expert_parallelism=4, **FAKE),
    "mt_deepseek2": program(
        *M, "the state (15.7 billion, 12 bytes over 4): 44 GiB, gradients in float32 14.6 GiB; dots of the experts that the scan over 26 layers saves by the policy minimal (4 sequences of 2048 of a device, 64 experts of 240 places: 61440 by 1408: 165 MiB, two; by 2048: 240 MiB, two): 0.6 to 0.8 GiB a layer: 15 to 20 GiB; dispatch and combination (4 by 2048 by 64 by 240, bfloat16 240 MiB, two or three, where saved 6 GiB each); dots of attention (16 heads of 192 and 256, 8192 tokens: about 160 MiB a layer): 4.4 GiB; float32 logits of 102400 words (3.1 GiB, two): 6 GiB; a layer's experts gathered (554 million, bfloat16 1.06 GiB, two or three): 2 to 3 GiB; 85 to 105 % of 95 GiB",
        {"full": change("checkpoint (policy)", ["remat scan"], remat_policy="full")},
        compile_topology="v5p-8", model_name="deepseek2-16b", per_device_batch_size=4, max_target_length=2048, remat_policy="minimal", attention="flash", scan_layers="true", megablox="false", sparse_matmul="false", capacity_factor=1.25, **FAKE),
    "mt_qwen3": program(
        *M, "(resized from 36 layers at 1024, which did not compile in 300 s; a student of 12 layers; and from 4 sequences of a pair of devices, with which it took 6.8 GiB, as the compiler recomputes the scores) MLP values of 12 layers, one after another, without checkpoints (16 sequences of 2048 of a pair of devices, 1/2 of the features: 32768 tokens by 4864: 304 MiB, two to four): 7 to 14 GiB; float32 logits of 75968 words (32768 tokens: 9.3 GiB, bfloat16 4.6 GiB, one or two): 5 to 14 GiB; scores and probabilities of one layer (16 of 32 heads on each: bfloat16 2 GiB, float32 4 GiB, one to three): 4 to 10 GiB; tokens of 2560 (160 MiB whole, 80 MiB halved, five; queries 128 MiB, three): 6 to 10 GiB; the state (1.6 billion, 12 bytes over 8): 2.2 GiB, gradients 0.75 GiB; weights gathered of several layers; 60 to 120 % of 31 GiB",
        {"flash": change("blockwise attention", ["blockwise *"], attention="flash")},
        compile_topology="v6e-8", model_name="qwen3-4b", override_model_config="true", base_num_decoder_layers=12, per_device_batch_size=8, max_target_length=2048, remat_policy="none", attention="dot_product", scan_layers="false", ici_fsdp_parallelism=4, ici_tensor_parallelism=2, **FAKE),
}
PROGRAMS |= {
    "tunix_grpo": program(
        "tunix_programs", "grpo", "MLP values of 28 layers, no checkpoints (4 answers of 1024 of a group of 2 devices, 1/2 of the features: 4096 tokens by 4480: bfloat16 35 MiB, three or four): 3 to 4 GiB; scores and probabilities (4 by 6 heads by 1024 by 1024: bfloat16 48 MiB, float32 96 MiB, one or two): 1.3 to 4 GiB; logits of 75968 words (3072 or 4096 tokens: bfloat16 0.45 to 0.6 GiB, float32 0.9 to 1.2 GiB, for log probabilities and the entropy three to five): 3 to 4.5 GiB; tokens of 1536 (half or whole: 6 to 12 MiB, a dozen, some float32): 2 to 4 GiB; the state in bfloat16 (1.54 billion, 6 bytes over 8): 1.1 GiB, gradients 0.4 GiB; 65 to 105 % of 16 GiB",
        {"remat": change("checkpoint", ["remat *"], remat="DECODER")},
        topology="v5e:2x4", shape=(4, 2), rows=16),
    "tunix_sampler": program(
        "tunix_programs", "sampler", "the caches (36 layers, 64 sequences of 3072, 2 of 8 heads on a device, 128, bfloat16: 96 MiB for keys and as much for values): 6.75 GiB, and once more where the loop or its update is not in place or wants another layout (2 heads padded); the weights (8.2 billion in bfloat16 over 4): 3.8 GiB; one layer's keys repeated or copied (96 to 384 MiB), scores (64 by 8 by 3072 float32: 6 MiB), logits of 37984 words (64: 10 MiB) are small; 70 to 110 % of 16 GiB",
        {"half": change("batch", ["batch 0.5"], batch=32)},
        topology="v5e:2x2", chips=4, batch=64, length=3072),
    "gm_finetune": program(
        "gemma_programs", "finetune", "(moved from v6e, where it took 12.9 GiB, to v5e) logits of 262144 words (8 sequences of 512 of a device: bfloat16 2 GiB, float32 4 GiB, two or three): 8 to 10 GiB; MLP values of 26 layers, no checkpoints (4096 tokens by 6912: 54 MiB, three or four, with both halves together 108 MiB): 4 to 6 GiB; tokens of 1152 (9 MiB bfloat16, 18 MiB float32 in the norms, a dozen): 3 to 5 GiB; the weights, whole (1.0 billion in bfloat16): 1.9 GiB, gradients 1.9 GiB, updates in float32 up to 3.7 GiB; scores (8 by 4 heads by 512 by 512: float32 32 MiB, two): 1.2 GiB; the optimizer's state is small; over 100 % of 16 GiB unless the compiler recomputes, as it did: 75 to 90 %",
        {"remat": change("checkpoint", ["remat *"], remat=True)},
        topology="v5e:2x2", chips=4, batch=32, length=512),
    "brax_apg": program(
        "brax_programs", "apg", "what the scan over 32 steps saves for gradients through the simulation (2048 environments of a device; 10 small steps each of 9 bodies, 13 contacts: some 2 to 4 thousand float32 a small step, of which 1024 environments are last: 80 to 160 KB a step): 5 to 10 GiB, padded where small dimensions are last to several times as much; states and observations small; the networks too; not sure: 50 to 200 % of 16 GiB",
        {"half": change("batch", ["batch 0.5"], envs=1024),
         "remat": change("checkpoint", ["remat scan"], remat=True)},
        topology="v5e:1x1", chips=1, envs=2048),
    "brax_sac": program(
        "brax_programs", "sac", "the replay memory (2 million places of 508 or so float32, padded to 512): 4 GiB, and a second and third where the roll before an insertion is not in place (its doubled array 8 GiB): 8 to 16 GiB; batches (8 of 1024 by 508 float32: 16 MiB) and networks small; the environments (256) small; 50 to 110 % of 16 GiB",
        {"double": change("batch", ["batch 2"], envs=512),
         "short": change("dimension", ["dim 2097152 1048576"], room=1 << 20)},
        topology="v5e:2x2", chips=4, room=1 << 21),
    "mjx_identify": program(
        "mjx_programs", "identify", "(resized from 1024 trajectories of a device, which took 3.15 GiB) what the scan over 64 steps saves for gradients through the simulation (4096 trajectories of a device; per step the data of the humanoid: 23 degrees of freedom, constraint Jacobians of 80 or so rows by 23, mass matrix, 14 bodies: some 10 to 20 thousand float32, where trajectories are last unpadded: 40 to 80 KB): 10 to 20 GiB, with what line search and factorisation save, less where the compiler recomputes; parameters and measurements (4096 by 64 by 41) small; 60 to 100 % of 16 GiB",
        {"remat": change("checkpoint", ["remat scan"], remat=True)},
        topology="v5e:2x2", chips=4, batch=16384, steps=64),
}
