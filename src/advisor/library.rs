//! The library that made a program, recognised by the paths of its sources and arguments, and its own terms for the
//! changes that the advisor suggests.

use std::collections::BTreeSet;

pub use super::libraries::Library;
use super::program_context::{ProgramContext, Total, listed};
use crate::analysis::flow::steps::Steps;
use crate::analysis::once::once;
use crate::analysis::what_if::{Memory, ScanSegments};
use crate::model::InstructionId;

/// What of Keras makes attention scores, and can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KerasAttention {
    /// A layer: `MultiHeadAttention`, or the cached one of KerasHub.
    Layer,
    /// `keras.ops.dot_product_attention`, called by a layer of the model's own.
    Operation,
}

/// Most patterns of layers that are listed.
const MOST_PATTERNS: usize = 4;

/// How Haliax recomputes the layers of a stack.
const HALIAX_STACKED: &str =
    "Haliax: `Stacked.init(Layers, Block, gradient_checkpointing=True)`, with your own axis and block";

/// What `eqx.filter_jit` calls the arrays of the arguments that it does not donate.
const KEPT_BY_EQUINOX: &str = "dynamic_nodonate";

/// Most operations whose source files are checked.
const MOST_LOOKED_AT: usize = 400;

impl Library {
    /// The library that made a program, recognised once.
    #[must_use]
    pub fn of(case: &ProgramContext<'_>) -> Self {
        *once(&case.library, || Self::recognised(case))
    }

    /// Recognises the library by the source files of some operations and the paths of the arguments.
    fn recognised(case: &ProgramContext<'_>) -> Self {
        let program = case.program;
        let entry = program.entry_computation();
        let rows = entry.map_or(0..0, |entry| entry.start..entry.end);
        let step = (rows.len() / MOST_LOOKED_AT).max(1);
        let mut packages = BTreeSet::new();
        for row in rows.step_by(step) {
            let metadata = program.text.metadata(InstructionId(row));
            for line in metadata.source.iter().chain(&metadata.stack) {
                packages.extend(package_of(&line.file));
            }
        }
        Self::of_packages(&packages)
    }

    fn of_packages(packages: &BTreeSet<String>) -> Self {
        let has = |name: &str| packages.contains(name);
        // A library built on another comes first.
        [
            (Self::MaxText, has("maxtext") || has("MaxText")),
            (Self::Tunix, has("tunix")),
            (Self::Torchax, has("torchax")),
            (Self::Keras, has("keras") || has("keras_hub")),
            // Without its scans, nothing of a program is its own.
            (Self::Haliax, has("haliax/scan")),
            (Self::Equinox, has("equinox")),
            (Self::Haiku, has("haiku")),
            (Self::Nnx, has("flax/nnx") && !has("flax/linen")),
            // Its train state is what is left of a module whose own files are in no frame.
            (Self::Linen, has("flax/linen") || has("flax/training") || has("gemma")),
        ]
        .into_iter()
        .find(|row| row.1)
        .map_or(Self::Jax, |row| row.0)
    }

    /// How to recompute each step of a scan in the backward pass, or `segments` of a scan where a step passes on as much as
    /// is saved of it; the scan that saves most has so many steps of a kind.
    #[must_use]
    pub fn remat_scan(self, (loops, steps): (i64, Steps), segments: Option<ScanSegments>) -> String {
        if let Some(ScanSegments::OfOuterScan { steps, inner }) = segments {
            return format!(
                "`jax.checkpoint` on the body of the outer scan, whose {steps} steps have a scan over {inner} each: only the input of each of the {steps} is kept, and what one of them saves is computed again"
            );
        }
        if let Some(ScanSegments::OfScan { count, length, steps: of_loop }) = segments {
            // Another loop may be divided than the one that saves most.
            let is_main = loops.unsigned_abs() == of_loop;
            let steps = if is_main { steps } else { Steps::Other };
            let which = if is_main { String::new() } else { format!("for the loop of {of_loop} steps, ") };
            return format!(
                "{which}a scan in a scan: `jax.checkpoint` around an inner `jax.lax.scan` over {length} {many}, and an outer one over {count} such segments; around each {one} alone it saves nothing, as that passes on as much as is saved of it",
                many = steps.many(),
                one = steps.one()
            );
        }
        let rest = format!("only the input of each {} is kept", steps.one());
        let general = format!("`jax.checkpoint` on the scan's body (`jax.lax.scan(jax.checkpoint(body), …)`): {rest}");
        // What libraries offer is for layers.
        let own = match self {
            Self::Haiku if !steps.are_layers() => {
                "Haiku: `hk.remat` on the core that `hk.dynamic_unroll` or `hk.scan` runs"
            }
            _ if !steps.are_layers() => "",
            Self::Haliax => HALIAX_STACKED,
            Self::Equinox => "Equinox: `eqx.filter_checkpoint` on the scan's body",
            Self::Haiku => "Haiku: `hk.remat` on the function that `hk.scan` or `hk.layer_stack` runs",
            Self::Linen => "Flax: `nn.remat_scan`, or `nn.remat` on the module inside `nn.scan`",
            _ => self.own_remat(),
        };
        self.in_own_words(own, (&general, &rest))
    }

    /// How to do what `general` says, by what the library offers: its switch, with the `rest` that says what comes of it, or
    /// its function beside that of JAX.
    fn in_own_words(self, own: &str, (general, rest): (&str, &str)) -> String {
        match self {
            _ if own.is_empty() => general.to_owned(),
            Self::MaxText | Self::Tunix => format!("{own}: {rest}"),
            _ => format!("{general} ({own})"),
        }
    }

    /// How to recompute layers in the backward pass; `layers` is their name pattern.
    #[must_use]
    pub fn remat(self, layers: &str) -> String {
        self.remat_each(&[layers.to_owned()])
    }

    /// As [`Self::remat`], for layers of several kinds.
    #[must_use]
    pub fn remat_each(self, layers: &[String]) -> String {
        let of_each = match layers {
            [all] if all == "*" => "block".to_owned(),
            _ => listed(layers, MOST_PATTERNS),
        };
        let rest = "only the inputs of each are kept, the rest is recomputed in the backward pass";
        let general = format!("`jax.checkpoint` around each {of_each}: {rest}");
        self.in_own_words(self.own_remat(), (&general, rest))
    }

    /// As [`Self::remat`], for as many of the layers as are enough, the first ones.
    #[must_use]
    pub fn remat_first(self, count: u32, layers: &str) -> String {
        let (first, its) = match (count, layers) {
            (1, "*") => ("the first block".to_owned(), "its"),
            (1, _) => (format!("the first of `{layers}`"), "its"),
            (_, "*") => (format!("the first {count} blocks"), "their"),
            _ => (format!("the first {count} of `{layers}`"), "their"),
        };
        let rest = format!("only {its} inputs are kept, the rest is recomputed in the backward pass");
        let general = format!("`jax.checkpoint` around {first}: {rest}");
        self.in_own_words(self.own_remat(), (&general, &format!("for {first} alone; {rest}")))
    }

    /// How to say along which axis of the mesh activations are divided.
    #[must_use]
    pub const fn constrain(self) -> &'static str {
        match self {
            Self::Keras => {
                "`keras.distribution.distribute_tensor` on what each layer returns, or an entry for its path with `/output` behind it in the `LayoutMap`"
            }
            _ => "`jax.lax.with_sharding_constraint(x, P(\"axis\"))`",
        }
    }

    const fn own_remat(self) -> &'static str {
        match self {
            Self::MaxText => "MaxText: `remat_policy=full`",
            Self::Tunix => {
                "Tunix: `nnx.remat` around the call of each layer in the model's `__call__` (its `remat_config=RematConfig.BLOCK` is for attention alone)"
            }
            Self::Keras => {
                "Keras: in place of the `call` of each layer of the built model (`layer.call = wrapped`) a function that runs it in `jax.checkpoint` on its arrays, masks among them, and hands `training` on as it is; if the layer has dropout, pass the values of its weights and the states of its seed generators in and return the new states (in a `keras.StatelessScope` with all of them as `state_mapping`), as assigning them inside leaks a tracer; `keras.RematScope` and `keras.remat` of Keras 3 also trace the argument `training`, which makes models with a Dropout layer fail, even one of rate 0"
            }
            Self::Haliax => HALIAX_STACKED,
            Self::Equinox => "Equinox: `eqx.filter_checkpoint` around each block",
            Self::Haiku => {
                "Haiku: `hk.remat` around each block, not around the whole network; for a network of `hk.nets`, in a copy of its module"
            }
            Self::Torchax => {
                "torchax: each layer through `torchax.interop.torch_view(jax.checkpoint(torchax.interop.jax_view(layer.forward)))` in place of its `forward`; the `remat_policy` of `torchax.train.make_train_step` is not used in torchax 0.0.13"
            }
            Self::Linen => {
                "Flax: `nn.remat` around each layer's module where it is made; for a model that a library ships, in a subclass"
            }
            Self::Nnx => "Flax: `nnx.remat` around each layer's call",
            Self::Jax => "",
        }
    }

    /// Some arguments in words, by names that a user knows, the first `most` of them.
    #[must_use]
    pub fn called(self, names: &[String], most: usize) -> String {
        let is_kept = |name: &String| name.starts_with(KEPT_BY_EQUINOX);
        match self {
            Self::Equinox | Self::Haliax if names.iter().all(is_kept) => {
                format!("the arguments that are not donated yet (Equinox calls them {})", listed(names, most))
            }
            _ => listed(names, most),
        }
    }

    /// How to do without the indices of an argmax over all words.
    #[must_use]
    pub fn without_argmax(self) -> String {
        let own = match self {
            Self::Keras => " (KerasHub's `CausalLM` adds it by itself: `compile(…, weighted_metrics=[])`)",
            _ => "",
        };
        format!(
            "an accuracy takes the argmax of all logits, with the number of each word beside it: leave it out of the training step{own}, or compute it on parts of the tokens"
        )
    }

    /// How to donate arguments: those of the step's own that are meant as a whole by name, else by position. `said` are their
    /// names in words, `numbers` their positions where these are told.
    #[must_use]
    pub fn donate(self, names: &[String], said: &str, numbers: &str) -> String {
        let is_name = |name: &String| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let are_named = !names.is_empty() && names.iter().all(is_name);
        // What Tunix donates itself stays donated.
        let own = (self == Self::Tunix && names.iter().all(|name| name != "optimizer")).then_some("optimizer");
        let (by, where_from) = if are_named {
            let all = names.iter().map(String::as_str).chain(own);
            let quoted: Vec<String> = all.map(|name| format!("\"{name}\"")).collect();
            let end = if quoted.len() == 1 { "," } else { "" };
            (format!("donate_argnames=({}{end})", quoted.join(", ")), String::new())
        } else {
            ("donate_argnums=…".to_owned(), format!(" with the positions of {said} in the call{numbers}"))
        };
        match self {
            Self::Equinox | Self::Haliax => {
                "Equinox: `eqx.filter_jit(donate=\"all\")` on the step; with `donate=\"all-except-first\"` nothing of the first argument is donated, such as the model where that is passed first".to_owned()
            }
            Self::Tunix => format!(
                "`{by}` of `nnx.jit`{where_from}, in a trainer derived from Tunix' `PeftTrainer`, which compiles its step with the optimizer donated alone; not where rollouts use the same weights"
            ),
            // `nnx.jit` takes the same.
            Self::Nnx => {
                format!(
                    "`{by}` of `jax.jit` or `nnx.jit`, whichever compiles the step{where_from}"
                )
            }
            _ => format!("`jax.jit(step, {by})`{where_from}"),
        }
    }

    /// How to run a step on parts of a batch, one after the other; `None` if it is not known how many.
    #[must_use]
    pub fn micro_batches(self, parts: Option<u32>) -> String {
        let steps = parts.map_or_else(String::new, |parts| format!("={parts}"));
        match self {
            Self::MaxText => {
                format!("MaxText: `gradient_accumulation_steps{steps}`, with `per_device_batch_size` divided by it")
            }
            Self::Keras => {
                format!(
                    "Keras: `gradient_accumulation_steps{steps}` of the optimizer, which keeps a sum for each weight, with the batch divided by it"
                )
            }
            Self::Tunix => {
                format!(
                    "Tunix: `gradient_accumulation_steps{steps}` of the `TrainingConfig`, with the batch divided by it; for reinforcement learning `train_micro_batch_size` of the `RLTrainingConfig` instead"
                )
            }
            _ => "`jax.lax.scan` over the parts, or `optax.MultiSteps`".to_owned(),
        }
    }

    /// How to keep the optimizer's first moment in bfloat16; `None` where the library has no option for it, or where it is
    /// no 32-bit float.
    #[must_use]
    pub fn narrow_moments(self, case: &ProgramContext<'_>) -> Option<&'static str> {
        let is_nameless = || case.program.are_arguments_in_tuple;
        if !is_nameless() && !first_moments(case).any(|moment| moment.1) {
            return None;
        }
        match self {
            Self::Keras => None,
            Self::MaxText => Some("`mu_dtype=bfloat16`"),
            _ => Some("`mu_dtype=jnp.bfloat16`"),
        }
    }

    /// The option that makes weights and second moments narrow, in brackets; empty where the library leaves it to the
    /// model.
    #[must_use]
    pub const fn narrow_weights(self) -> &'static str {
        match self {
            Self::MaxText => " (`weight_dtype=bfloat16`, for both: the second moment has the type of the weights)",
            _ => "",
        }
    }

    /// How to have gradients in bfloat16 where the weights are 32-bit floats.
    #[must_use]
    pub const fn narrow_gradients(self) -> &'static str {
        match self {
            Self::MaxText => {
                "MaxText: `weight_dtype=bfloat16` makes the gradients bfloat16 too, with weights that lose small updates; `grad_dtype` casts them only once all are there"
            }
            _ => {
                "cast the weights to bfloat16 outside the differentiated function, so that their gradients are bfloat16 as well"
            }
        }
    }

    /// How to compute in bfloat16 with parameters that keep their type.
    #[must_use]
    pub const fn compute_in_bfloat16(self) -> &'static str {
        match self {
            Self::Keras => {
                "Keras: the policy `mixed_bfloat16` (`keras.config.set_dtype_policy(\"mixed_bfloat16\")` before the model is built, or `dtype=\"mixed_bfloat16\"` given to its backbone)"
            }
            Self::MaxText => "MaxText: `dtype=bfloat16`, with `weight_dtype=float32`",
            // Its layers' `dtype` is that of their weights.
            Self::Equinox | Self::Haliax => {
                "cast the model's arrays, and inputs that are floats, inside the loss (`jax.tree.map` with `x.astype(jnp.bfloat16)` over the arrays of floats), and differentiate with respect to those that are not cast"
            }
            Self::Haiku => {
                "Haiku: `hk.mixed_precision.set_policy` with a policy of `jmp` for the modules (`params=float32,compute=bfloat16,output=bfloat16`)"
            }
            Self::Torchax => {
                "cast weights and inputs inside the step, where they are used (`.to(torch.bfloat16)`), and keep those that the optimizer updates"
            }
            Self::Linen | Self::Nnx | Self::Tunix => {
                "`dtype=jnp.bfloat16` of the layers, which cast weights and inputs where they use them"
            }
            Self::Jax => "cast weights and inputs where they are used (`x.astype(jnp.bfloat16)`)",
        }
    }

    /// How to have parameters, optimizer state and computation in bfloat16.
    #[must_use]
    pub const fn all_in_bfloat16(self) -> &'static str {
        match self {
            Self::Keras => {
                "parameters, optimizer state and computation in bfloat16 (Keras: the policy `bfloat16`, `dtype=\"bfloat16\"` of the model, which makes the weights bfloat16 too)"
            }
            Self::MaxText => {
                "parameters, optimizer state and computation in bfloat16 (MaxText: `weight_dtype=bfloat16`, `mu_dtype=bfloat16`, `dtype=bfloat16`)"
            }
            Self::Equinox | Self::Haliax => {
                "parameters, optimizer state and computation in bfloat16 (`dtype=jnp.bfloat16` of Equinox's layers, or the model's arrays cast once, before the optimizer's state is made for them)"
            }
            Self::Torchax => {
                "parameters, optimizer state and computation in bfloat16 (`model.to(torch.bfloat16)` before the optimizer's state is made)"
            }
            Self::Linen | Self::Nnx | Self::Tunix => {
                "parameters, optimizer state and computation in bfloat16 (`param_dtype=jnp.bfloat16` of the layers, `mu_dtype=jnp.bfloat16` of `optax.adamw`)"
            }
            Self::Haiku | Self::Jax => {
                "parameters, optimizer state and computation in bfloat16 (cast the parameters once, before the optimizer's state is made)"
            }
        }
    }

    /// How to keep optimizer state in the host's memory.
    #[must_use]
    pub const fn offload_state(self) -> &'static str {
        match self {
            Self::MaxText => "MaxText: `optimizer_memory_host_offload=True`",
            Self::Keras => {
                "Keras' `fit` has no switch for it: a step of your own (`stateless_apply`) can take it from the host's memory (`NamedSharding(mesh, spec, memory_kind=\"pinned_host\")`) and move it with `jax.device_put` around the update"
            }
            _ => {
                "place it with `NamedSharding(mesh, spec, memory_kind=\"pinned_host\")` and move it with `jax.device_put` around the update"
            }
        }
    }

    /// How to compute again one layer at a time.
    #[must_use]
    pub const fn scan_layers(self) -> &'static str {
        match self {
            Self::MaxText => {
                "put the layers in a scan, whose steps recompute one layer each (MaxText: `scan_layers=True`)"
            }
            Self::Linen => "put the layers in a scan, whose steps recompute one layer each (Flax: `nn.remat_scan`)",
            _ => {
                "put the layers in a scan (`jax.lax.scan` over stacked weights, `jax.checkpoint` on its body), whose steps recompute one layer each"
            }
        }
    }

    /// How to keep activations in the host's memory from the forward to the backward pass.
    #[must_use]
    pub const fn offload_activations(self) -> &'static str {
        match self {
            Self::MaxText => {
                "MaxText: `remat_policy=minimal_offloaded` (`qkv_proj_offloaded` for queries, keys and values alone), or `remat_policy=custom` with `offload` for the tensors to move (such as `decoder_layer_input=offload`)"
            }
            _ => "`jax.checkpoint` with the policy `jax.checkpoint_policies.save_and_offload_only_these_names`",
        }
    }

    /// How to keep the inputs of checkpointed layers in the host's memory.
    #[must_use]
    pub const fn offload_inputs(self) -> &'static str {
        match self {
            Self::MaxText => "MaxText: `remat_policy=custom` with `decoder_layer_input=offload`",
            _ => "`jax.checkpoint_policies.save_and_offload_only_these_names`",
        }
    }

    /// How to divide weights and what belongs to them over the devices.
    #[must_use]
    pub const fn shard_weights(self) -> &'static str {
        match self {
            Self::Keras => "shard them over the mesh: `keras.distribution.ModelParallel` with a `LayoutMap`",
            // `eqx.filter_jit` takes no shardings.
            Self::Equinox | Self::Haliax => {
                "shard them over the mesh: `eqx.filter_shard` with a `NamedSharding` when they are made, and on the step's results"
            }
            _ => {
                "shard them over the mesh: `NamedSharding(mesh, P(\"axis\"))` in `in_shardings` and for the initial value"
            }
        }
    }

    /// Keys of another generator than JAX's default one; `None` for Keras, whose seeds are two numbers, as those of the
    /// default one alone are.
    #[must_use]
    pub const fn other_generator(self) -> Option<&'static str> {
        match self {
            Self::Keras => None,
            _ => Some(
                "keys of another generator (`jax.config.update('jax_default_prng_impl', 'rbg')`), which draw other numbers",
            ),
        }
    }

    /// How to give the optimizer state a sharding of its own.
    #[must_use]
    pub const fn shard_state(self) -> &'static str {
        match self {
            Self::Equinox | Self::Haliax => {
                "give the optimizer state its own sharding: `eqx.filter_shard` with a `NamedSharding` over the mesh axis of the batch, when it is made and on the step's result; constrain the gradients to it before the update"
            }
            Self::MaxText => "MaxText: `shard_optimizer_over_data=True`",
            Self::Keras => {
                "`keras.distribution.ModelParallel` with a `LayoutMap` divides weights and optimizer state together, and the weights are gathered in each step; Keras has no switch for the state alone"
            }
            _ => {
                "give the optimizer state its own sharding (a `NamedSharding` over the mesh axis of the batch, for the largest dimension that it divides) in `in_shardings` and `out_shardings`, and constrain the gradients to it before the update"
            }
        }
    }

    /// How to compute the loss of a large vocabulary in parts of what is divided, or each part in as many more.
    #[must_use]
    pub fn chunked_loss(self, parts: u32, memory: &Memory, divided: &str) -> String {
        let has_backward = memory.has_backward();
        match self {
            Self::MaxText if memory.kept.are_in_parts => {
                format!("MaxText: `num_vocab_tiling` {parts} times what it is now")
            }
            Self::MaxText => format!("MaxText: `num_vocab_tiling={parts}`"),
            _ if memory.kept.are_in_parts => {
                format!("let the loop over parts of the loss take {parts} times as many, shorter ones")
            }
            _ if has_backward => {
                let how = match self {
                    Self::Torchax => {
                        "call the model without its head, let `torchax.interop.jax_view` make a JAX function of head and loss, and run that with `jax.checkpoint` in `jax.lax.map` over the parts, through `torchax.interop.call_jax`"
                    }
                    Self::Keras => {
                        "let the model return hidden states and its `compute_loss` make both from them, with `jax.lax.map` over the parts and `jax.checkpoint` on the function that it runs; metrics of `compile` would take the hidden states for logits then, so none of them (`weighted_metrics=[]`, as KerasHub's default is an accuracy)"
                    }
                    _ => {
                        "`jax.lax.map` (or `scan`) over the parts with `jax.checkpoint` on the function that goes from hidden states to the loss"
                    }
                };
                format!("compute logits and loss for {parts} parts of {divided} one after the other: {how}")
            }
            _ => format!(
                "compute logits, and what is made of them, for {parts} parts of {divided} one after the other: `jax.lax.map` (or `scan`) over the parts"
            ),
        }
    }

    /// As [`Self::blockwise_attention`], on a GPU.
    #[must_use]
    pub fn blockwise_attention_on_gpu(self, keras: Option<KerasAttention>) -> &'static str {
        match self {
            Self::MaxText => "MaxText: `attention=cudnn_flash_te`",
            Self::Keras if keras == Some(KerasAttention::Layer) => {
                "Keras takes cuDNN's flash attention by itself where the GPU can, in float16 or bfloat16, and the layer has no dropout on its scores and returns none of them; its `flash_attention=True` says what is in the way"
            }
            _ => {
                "`jax.nn.dot_product_attention` with `implementation=\"cudnn\"`: queries, keys and values in float16 or bfloat16, on NVIDIA GPUs from Ampere on"
            }
        }
    }

    /// How to compute attention block by block; `keras` is what of Keras makes the scores.
    #[must_use]
    pub fn blockwise_attention(self, keras: Option<KerasAttention>) -> &'static str {
        match (self, keras) {
            (Self::MaxText, _) => "MaxText: `attention=flash`",
            (Self::Keras, Some(KerasAttention::Operation)) => {
                "`keras.ops.dot_product_attention`, which this model calls, takes flash attention by itself on a TPU only where it is given no mask that the step computes, as masks for padding and causal masks are: call splash attention of `jax.experimental.pallas.ops.tpu` (`splash_attention`) in its place, with segment ids for padding"
            }
            (Self::Keras, Some(KerasAttention::Layer)) => {
                "call splash attention of `jax.experimental.pallas.ops.tpu` (`splash_attention`, with a `FullMask` where nothing is masked) in the layer's place: Keras itself takes that kernel only where there is no dropout on the scores, no bias and no mask that the step computes (as masks for padding and causal masks are), with as many keys as queries, and without any mask Keras 3.15 makes it causal, which changes results"
            }
            (Self::Torchax, _) => {
                "splash or flash attention of `jax.experimental.pallas.ops.tpu` (`splash_attention`, `flash_attention`), called through `torchax.interop.call_jax`; `torch.nn.functional.scaled_dot_product_attention` computes all scores in torchax 0.0.13"
            }
            (Self::Tunix, _) => {
                "splash attention of `jax.experimental.pallas.ops.tpu` (`splash_attention`) in the model's attention; Tunix' `remat_config=RematConfig.BLOCK` computes the attention of each layer again instead"
            }
            _ => {
                "splash or flash attention of `jax.experimental.pallas.ops.tpu` (`splash_attention`, `flash_attention`)"
            }
        }
    }
}

/// Whether each array of Adam's first moment is a 32-bit float: Adafactor has none, momentum another option.
fn first_moments<'c>(case: &'c ProgramContext<'_>) -> impl Iterator<Item = (usize, bool)> + 'c {
    let is_moment = |path: &str| path.split(|c: char| !c.is_alphanumeric()).any(|word| word == "mu");
    let is_wide =
        |row: usize| case.node(case.memory.base[row].buffer).is_some_and(|node| node.element_type.is_wide_float());
    case.arguments()
        .filter(move |argument| is_moment(argument.1))
        .map(move |argument| (argument.0, is_wide(argument.0)))
}

/// Bytes that the optimizer's first moment takes as 32-bit floats.
pub fn wide_moments(case: &ProgramContext<'_>) -> u64 {
    first_moments(case).filter(|moment| moment.1).map(|(row, _)| case.memory.base[row].size).total()
}

/// Whether the optimizer's first moment takes 16 bits already.
pub fn has_narrow_moments(case: &ProgramContext<'_>) -> bool {
    let mut moments = first_moments(case).peekable();
    moments.peek().is_some() && moments.all(|moment| !moment.1)
}

/// The package of a source file: the folder below `site-packages`, and for Flax its subpackage.
fn package_of(file: &str) -> Vec<String> {
    let Some((_, inside)) = file.rsplit_once("site-packages/").or_else(|| file.rsplit_once("dist-packages/")) else {
        // A checkout: recognise it by the folder's name.
        return file
            .split('/')
            .filter(|part| matches!(*part, "maxtext" | "MaxText" | "tunix"))
            .map(str::to_owned)
            .collect();
    };
    let mut parts = inside.split('/');
    let Some(package) = parts.next() else { return Vec::new() };
    let mut found = vec![package.to_owned()];
    match package {
        "flax" => found.extend(parts.next().map(|part| format!("{package}/{part}"))),
        "haliax" if inside.ends_with("/scan.py") => found.push(format!("{package}/scan")),
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_told_by_its_sources() {
        let library = |files: &[&str]| Library::of_packages(&files.iter().flat_map(|file| package_of(file)).collect());
        let of = |file: &str| format!("/env/lib/python3.12/site-packages/{file}");
        assert_eq!(
            library(&[&of("maxtext/integration/tunix/adapter.py"), &of("flax/nnx/module.py")]),
            Library::MaxText
        );
        assert_eq!(library(&[&of("keras/src/layers/layer.py")]), Library::Keras);
        assert_eq!(library(&[&of("flax/linen/module.py"), &of("optax/base.py")]), Library::Linen);
        assert_eq!(library(&[&of("flax/training/train_state.py")]), Library::Linen);
        assert_eq!(library(&["/home/user/train.py"]), Library::Jax);
        assert_eq!(library(&[&of("haliax/nn/scan.py"), &of("equinox/_module.py")]), Library::Haliax);
        assert_eq!(library(&[&of("haliax/core.py"), &of("equinox/_module.py")]), Library::Equinox);
    }

    #[test]
    fn keras_has_a_policy_that_keeps_wide_weights_and_one_that_does_not() {
        assert!(Library::Keras.compute_in_bfloat16().contains("mixed_bfloat16"));
        let all = Library::Keras.all_in_bfloat16();
        assert!(all.contains("`bfloat16`") && !all.contains("mixed"), "{all}");
    }

    #[test]
    fn words_are_those_that_a_library_has() {
        assert!(Library::Keras.other_generator().is_none());
        assert!(Library::Keras.shard_weights().contains("LayoutMap"));
        assert!(Library::Tunix.blockwise_attention(None).contains("RematConfig.BLOCK"));
        let own = Library::Keras.blockwise_attention(Some(KerasAttention::Operation));
        assert!(own.contains("dot_product_attention"), "{own}");
        for library in [Library::Equinox, Library::Haiku, Library::Torchax, Library::Jax] {
            let all = format!("{} {}", library.compute_in_bfloat16(), library.all_in_bfloat16());
            assert!(!all.contains("param_dtype"), "{all}");
        }
    }

    #[test]
    fn layers_of_several_kinds_are_named() {
        let kinds = ["stage0_*".to_owned(), "stage1_*".to_owned()];
        let words = Library::Jax.remat_each(&kinds);
        assert!(words.starts_with("`jax.checkpoint` around each `stage0_*`, `stage1_*`: "), "{words}");
        assert!(Library::Jax.remat("*").starts_with("`jax.checkpoint` around each block: "));
    }

    #[test]
    fn of_the_first_layers_only_these_are_named() {
        let words = Library::Linen.remat_first(18, "layer_*");
        assert!(words.starts_with("`jax.checkpoint` around the first 18 of `layer_*`: only their inputs"), "{words}");
        assert!(
            words.ends_with(
                "around each layer's module where it is made; for a model that a library ships, in a subclass)"
            ),
            "{words}"
        );
        let words = Library::MaxText.remat_first(18, "layer_*");
        assert!(words.contains(": for the first 18 of `layer_*` alone; only their inputs"), "{words}");
        assert!(!words.contains("each `layer_*`"), "{words}");
        assert!(
            Library::Jax.remat_first(1, "*").starts_with("`jax.checkpoint` around the first block: only its inputs")
        );
    }

    #[test]
    fn what_equinox_does_not_donate_has_words_besides_its_inner_name() {
        let names = ["dynamic_nodonate".to_owned()];
        let words = Library::Equinox.called(&names, 4);
        assert_eq!(words, "the arguments that are not donated yet (Equinox calls them `dynamic_nodonate`)");
        assert_eq!(Library::Jax.called(&names, 4), "`dynamic_nodonate`");
        assert_eq!(Library::Equinox.called(&["model".to_owned()], 4), "`model`");
    }
}
