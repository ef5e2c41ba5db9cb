"""Hugging Face transformers (PyTorch) through torchax: DINOv2 large, fine-tuned at 518 pixels; GPT-J 6B with LoRA written by hand; CLIP ViT-L/14 from scratch."""

import types

import jax
import optax
import torch_names  # noqa: F401
import torch
import torchax
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P
from torchax import interop

from pieces import shardings
from recipe import Program, largest_dimension, mesh, placed
from torchax_pieces import NAMES, build, checkpointed


def crossentropy(logits, y):
    return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))


def dinov2(topology, chips, batch, size=518, dtype="bfloat16", remat=0, donate=True, shard=False):
    """facebook/dinov2-large with a classification head."""
    config = transformers.Dinov2Config(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, image_size=size, patch_size=14, drop_path_rate=0.0,
        attn_implementation="eager", num_labels=1000)
    with torch.device("meta"):
        model = transformers.Dinov2ForImageClassification(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    x = jax.ShapeDtypeStruct((batch, 3, size, size), dtype, sharding=split)
    y = jax.ShapeDtypeStruct((batch,), "int32", sharding=split)
    blocks = lambda n: list(getattr(n.dinov2.encoder, "layer", None) or n.dinov2.encoder.layers)
    return build(model, dtype, blocks, lambda a: dict(pixel_values=a), crossentropy, devices, x, y, optax.adamw(2e-5), donate, shard, remat)


class Both(torch.nn.Module):
    """CLIP, whose image logits are what the loss takes."""

    def __init__(self, clip):
        super().__init__()
        self.clip = clip

    def forward(self, input_ids, pixel_values):
        out = self.clip(input_ids=input_ids, pixel_values=pixel_values)
        return types.SimpleNamespace(logits=out.logits_per_image)


def clip(topology, chips, batch, size=224, dtype="bfloat16", remat=0, donate=True, shard=False):
    """openai/clip-vit-large-patch14, contrastive over the batch of all devices."""
    config = transformers.CLIPConfig(
        text_config=dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, vocab_size=49408, max_position_embeddings=77, eos_token_id=2),
        vision_config=dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, image_size=size, patch_size=14),
        projection_dim=768)
    config._attn_implementation = "eager"
    with torch.device("meta"):
        net = transformers.CLIPModel._from_config(config, attn_implementation="eager").to(getattr(torch, dtype))
    model = Both(net)
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    x = {"input_ids": jax.ShapeDtypeStruct((batch, 77), "int32", sharding=split), "pixel_values": jax.ShapeDtypeStruct((batch, 3, size, size), dtype, sharding=split)}

    def contrast(logits, y):
        return 0.5 * (crossentropy(logits, y) + crossentropy(logits.t(), y))

    y = jax.ShapeDtypeStruct((batch,), "int32", sharding=split)
    blocks = lambda n: [*n.clip.vision_model.encoder.layers, *n.clip.text_model.encoder.layers]
    return build(model, dtype, blocks, lambda a: dict(a), contrast, devices, x, y, optax.adamw(5e-4, b2=0.98, weight_decay=0.2), donate, shard, remat)


class LoRA(torch.nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.lora_A = torch.nn.Parameter(torch.empty(rank, base.in_features, dtype=torch.float32, device="meta"))
        self.lora_B = torch.nn.Parameter(torch.empty(base.out_features, rank, dtype=torch.float32, device="meta"))
        self.scale = alpha / rank

    def forward(self, x):
        low = torch.nn.functional.linear(torch.nn.functional.linear(x, self.lora_A.to(x.dtype)), self.lora_B.to(x.dtype))
        return self.base(x) + self.scale * low


def gptj_lora(topology, chips, batch, length, rank=16, remat=0, shard=False, donate=True, dtype="bfloat16"):
    """EleutherAI/gpt-j-6b: LoRA of q_proj and v_proj, all else frozen, labels shifted in the step."""
    config = transformers.GPTJConfig(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.GPTJForCausalLM(config).to(getattr(torch, dtype))
        for block in model.transformer.h:
            for name in ("q_proj", "v_proj"):
                setattr(block.attn, name, LoRA(getattr(block.attn, name), rank, 32))
    for block in list(model.transformer.h)[:remat]:
        checkpointed(block)
    env = torchax.default_env()
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    abstract = lambda named: {n: jax.ShapeDtypeStruct(tuple(a.shape), NAMES[a.dtype]) for n, a in named}
    every = abstract(model.named_parameters())
    lora = placed({n: a for n, a in every.items() if "lora_" in n}, whole)
    frozen = {n: a for n, a in every.items() if "lora_" not in n}
    frozen = placed(frozen, largest_dimension(devices, "data", 1 << 16) if shard else whole)
    buffers = placed(abstract(model.named_buffers()), whole)
    transform = optax.adamw(2e-4)
    state = placed(jax.eval_shape(transform.init, lora), whole)

    def torch_loss(lora, frozen, buffers, input_ids):
        logits = torch.func.functional_call(model, {**lora, **frozen, **buffers}, args=(), kwargs=dict(input_ids=input_ids, use_cache=False)).logits
        return crossentropy(logits[:, :-1], input_ids[:, 1:])

    loss_fn = interop.jax_view(torch_loss)

    def finetune_step(lora, frozen, buffers, opt_state, input_ids):
        with env:
            loss, grads = jax.value_and_grad(loss_fn)(lora, frozen, buffers, input_ids)
        updates, opt_state = transform.update(grads, opt_state, lora)
        return optax.apply_updates(lora, updates), opt_state, loss

    ids = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "weight", "[3]": "opt"}.get(path[:3], "input")
    return Program(finetune_step, (lora, frozen, buffers, state, ids), classify, (0, 3) if donate else (), (shardings(lora), shardings(state), None))
