//! Classes of buffers, compared with what the programs are known to consist of.

use highwater::analysis::class::{Class, Reason};
use highwater::analysis::what_if::batch::DataArgument;
use highwater::analysis::{ProfileAnalysis, ProgramAnalysis, category};
use highwater::model::{BufferId, Category, MemorySpace, Profile, Program};
use highwater::open;
use highwater::source::Progress;

use crate::common::{self, Files};

fn open(path: &std::path::Path) -> (Profile, ProfileAnalysis) {
    let profile = open::open_path(path, &Progress::default()).expect("a sample");
    let analysis = ProfileAnalysis::new(&profile);
    (profile, analysis)
}

fn sample(name: &str) -> (Profile, ProfileAnalysis) {
    let path = common::sample_programs().into_iter().find(|path| path.to_string_lossy().contains(name));
    open(&path.expect("a sample of that name"))
}

/// Bytes of a program's arguments by class: one buffer for each allocation.
fn arguments(program: &Program, analysis: &ProgramAnalysis, class: Class) -> u64 {
    let classes = analysis.classes(program);
    program
        .allocations
        .iter()
        .filter(|allocation| allocation.is_parameter)
        .filter(|allocation| {
            program.assigned_to(allocation).first().is_some_and(|assigned| classes.of(assigned.buffer) == class)
        })
        .map(|allocation| allocation.size.0)
        .sum()
}

#[test]
fn classes_divide_what_the_compiler_calls_categories() {
    for path in common::sample_programs() {
        let (profile, analysis) = open(&path);
        for (program, own) in profile.programs.iter().zip(&analysis.programs) {
            let classes = own.classes(program);
            for row in 0..program.buffers.len() {
                let buffer = BufferId::from_index(row);
                let class = classes.of(buffer);
                let may_be = match category(program, buffer) {
                    Category::Output => class == Class::Output,
                    Category::Constant => class == Class::Constant,
                    Category::ThreadLocal => class == Class::ThreadLocal,
                    Category::Parameter => {
                        matches!(class, Class::Weight | Class::Optimizer | Class::Input | Class::Cache)
                    }
                    Category::Temporary => !matches!(class, Class::Output | Class::Constant | Class::ThreadLocal),
                };
                assert!(may_be, "{}: {} is {class:?}", path.display(), program.buffer_name(buffer));
            }
            for space in &own.spaces {
                let by_class = classes.sums(space.at_peak.rows.iter().copied());
                let sum: u64 = by_class.iter().map(|row| row.1.0).sum();
                assert_eq!(sum, space.at_peak.by_category.iter().map(|row| row.1.0).sum::<u64>(), "{}", path.display());
            }
        }
    }
}

/// Adam keeps two numbers for each weight, and a count (`tools/gen_tpu.py`: `opt_state = (m, v, count)`).
#[test]
fn adams_state_is_twice_the_weights() {
    let (profile, analysis) = sample("v5e_gpt_m_oom");
    let (program, own) = (&profile.programs[0], &analysis.programs[0]);
    let weights = arguments(program, own, Class::Weight);
    let state = arguments(program, own, Class::Optimizer);
    // The count takes one tile of 512 bytes.
    assert_eq!(state, 2 * weights + 512);
    // Tokens and targets: 32 x 1024 integers of 4 bytes each.
    assert_eq!(arguments(program, own, Class::Input), 2 * 32 * 1024 * 4);
}

/// Attention scores of eleven layers are kept for the backward pass; those of the same shape that are freed within
/// their layer are not activations.
#[test]
fn what_waits_for_the_backward_pass_is_an_activation() {
    let (profile, analysis) = sample("v5e_gpt_m_oom");
    let (program, own) = (&profile.programs[0], &analysis.programs[0]);
    let space = own.main_space().expect("HBM");
    let classes = own.classes(program);
    let scores = |buffer: &BufferId| {
        let shape = program.buffer_shape(*buffer).map(|(shape, node)| shape.short_text_of(node));
        shape.as_deref() == Some("f32[32,12,1024,1024]")
    };
    let at_peak: Vec<BufferId> = space.at_peak.buffers().filter(scores).collect();
    assert_eq!(at_peak.len(), 11);
    for buffer in at_peak {
        assert_eq!((classes.of(buffer), classes.reason(buffer)), (Class::Activation, Reason::KeptForBackward));
    }
    let early = space.buffers.iter().copied().filter(scores).filter(|b| {
        let live = own.live.as_ref().expect("a schedule");
        live.of(*b).is_some_and(|(_, end)| end < space.peak_point())
    });
    let early: Vec<BufferId> = early.collect();
    assert!(!early.is_empty());
    assert!(early.iter().all(|&b| classes.reason(b) == Reason::DroppedBefore), "{early:?}");
}

/// The gradient of the embedding table is gathered over all devices; its copy in another layout is a gradient, too.
#[test]
fn a_programs_table_and_its_gradient_are_told_apart() {
    let (profile, analysis) = sample("v6e_dlrm_repl_d3");
    let (program, own) = (&profile.programs[0], &analysis.programs[0]);
    let classes = own.classes(program);
    let named = |name: &str| {
        (0..program.buffers.len()).map(BufferId::from_index).find(|&b| program.buffer_name(b) == name).expect("it")
    };
    assert_eq!(classes.of(named("all-reduce.1")), Class::Gradient);
    // copy.3 is p['table'] in the layout required by the update.
    assert_eq!((classes.of(named("copy.3")), classes.reason(named("copy.3"))), (Class::Weight, Reason::CopyOfArgument));
    assert_eq!(classes.of(named("param.2")), Class::Input);
}

/// A decoder with a cache, and a scan whose kept arrays are initialised with zeros.
#[test]
fn other_programs_are_divided_as_they_are_made() {
    let files = Files::of_project();
    let at_peak = |name: &str, class: Class| {
        let (profile, analysis) = open(&files.case(name));
        let (program, own) = (&profile.programs[0], &analysis.programs[0]);
        let space = own.main_space().expect("HBM");
        let sums = own.classes(program).sums(space.at_peak.rows.iter().copied());
        sums.into_iter().find(|row| row.0 == class).map_or(0, |row| row.1.0)
    };
    // 12 layers, keys and values, bf16[128,4096,2,128] each; plus tokens and a position.
    let cache = 12 * 2 * 128 * 4096 * 2 * 128 * 2;
    assert_eq!(at_peak("v6e_decode_b128", Class::Cache), cache);
    assert!(at_peak("v6e_decode_b128", Class::Input) < 4096);
    // The stacked scores and probabilities of 24 scanned layers, f32 and bf16.
    let scores = 24 * 16 * 16 * 2048 * 2048;
    assert!(at_peak("v5e_gpt_scan_oom", Class::Activation) > scores * (4 + 2));
    assert_eq!(at_peak("v5e_gpt_scan_oom", Class::Gradient), 0);
}

/// What arguments are shows in what is done with them, whatever they are called.
#[test]
fn structure_tells_what_names_hide() {
    let files = Files::of_project();
    let of = |name: &str, class: Class| {
        let (profile, analysis) = open(&files.case(name));
        arguments(&profile.programs[0], &analysis.programs[0], class)
    };
    // `target` and `draft` are models; `tkv` and `dkv` keys and values: 32 layers with one head of 128 per device, 8
    // layers with one of 64.
    let cache = 2 * 96 * 4096 * 2 * (32 * 128 + 8 * 64);
    assert_eq!(of("v5e_speculate", Class::Cache), cache);
    assert_eq!(of("v5e_speculate", Class::Optimizer), 0);
    assert!(of("v5e_speculate", Class::Input) < 1 << 16);
    // `base` is a frozen model: 32 layers of seven matrices, two embeddings, in bf16, an eighth of each per device.
    let layer = 4 * 4096 * 4096 + 3 * 4096 * 11008;
    let base = 2 * (32 * layer + 2 * 128_256 * 4096) / 8;
    let adapters = 4 * 32 * 4 * 4096 * 16;
    let weights = of("v6e_lora", Class::Weight);
    assert!((base + adapters..base + adapters + (1 << 20)).contains(&weights), "{weights}");
    // A solver has no weights.
    assert_eq!((of("v4_wave", Class::Weight), of("v4_wave", Class::Optimizer)), (0, 0));
    // The field that is fitted is one, with its momentum.
    let field = 1024 * 8192 * 4;
    assert_eq!((of("v5e_inverse_oom", Class::Weight), of("v5e_inverse_oom", Class::Optimizer)), (field, field));
}

/// The steps of a loop are called what they are, and the batch is the dimension that holds samples.
#[test]
fn loops_are_told_by_what_their_steps_are() {
    let files = Files::of_project();
    for (name, words, batch) in [
        ("v5e_inverse_oom", "saved by the scan for 256 steps", None),
        ("v6e_lora", "saved by the scan for 32 layers: the input of each layer", Some(4)),
        ("v6e_gpt_m_scan_fsdp", "saved by the scan for 24 layers: the input of each layer", Some(8)),
        ("v5e_prefill_oom", "collected by the loop over 16 layers", Some(8)),
        ("v5e_speculate", "collected by the loop over 32 layers", Some(96)),
    ] {
        let (profile, analysis) = open(&files.case(name));
        let (program, own) = (&profile.programs[0], &analysis.programs[0]);
        let labels = own.labels(program);
        let space = own.main_space().expect("HBM");
        let found = space.at_peak.buffers().any(|buffer| labels.op_name(program, buffer).starts_with(words));
        assert!(found, "{name}: nothing is {words}");
        let scene = analysis.scene(&profile, 0, MemorySpace::HBM).expect("HBM");
        assert_eq!(scene.memory_against(None).data.first().map(DataArgument::batch), batch, "{name}");
    }
}

/// What a loop passes from step to step, and starts as an empty array without a name, is named by what its steps make of it.
#[test]
fn what_a_loop_passes_on_has_a_name() {
    let files = Files::of_project();
    let (profile, analysis) = open(&files.case("v5e_prefill_oom"));
    let (program, own) = (&profile.programs[0], &analysis.programs[0]);
    let labels = own.labels(program);
    let space = own.main_space().expect("HBM");
    let carried = space.at_peak.buffers().find(|&buffer| program.buffer_name(buffer) == "wide.param.2{1}");
    let carried = carried.expect("the hidden states that layers hand on");
    assert_eq!(labels.op_name(program, carried), "made from down");
}

/// What loops keep is named by the weights of its own slice, by the argument that it is a copy of, or by what it is: of one
/// fusion that makes queries and keys, of a memory that is written row by row, of a cache's pages, of logits.
#[test]
fn what_loops_keep_is_named_by_what_it_is() {
    let files = Files::of_project();
    for (name, element, dimensions, expected) in [
        ("experts_scan_v6e", "bf16", "[48,2,4096,4,128]", "saved by the scan for 48 layers: self_attention/key_norm"),
        (
            "experts_scan_v6e",
            "bf16",
            "[48,2,4096,32,128]",
            "saved by the scan for 48 layers: self_attention/query_norm",
        ),
        ("experts_scan_v6e", "bf16", "[2,4096,151936]", "logits, made from logits_dense"),
        ("compressed_v5e", "bf16", "[4096,512,376]", "copy of replay['obs']"),
        ("decode_pages_v5e", "bf16", "[32,2,4096,32,128]", "copy of cache['v_pages']"),
    ] {
        let (profile, analysis) = open(&files.ending(&format!("pairs/{name}/before.hlo.pb")));
        let (program, own) = (&profile.programs[0], &analysis.programs[0]);
        let labels = own.labels(program);
        let is_meant = |buffer: &BufferId| {
            let shape = program.buffer_shape(*buffer).map(|(shape, node)| shape.short_text_of(node));
            shape.is_some_and(|shape| shape == format!("{element}{dimensions}"))
        };
        let all = || (0..program.buffers.len()).map(BufferId::from_index).filter(is_meant);
        let named = |buffer: BufferId| labels.op_name(program, buffer).starts_with(expected);
        assert!(all().any(named), "{name}: no {element}{dimensions} is {expected}");
    }
}

/// Keras passes its state as lists: an argument is named by the layer that reads it, however it is fetched, and the
/// optimizer's by the weight whose update they serve.
#[test]
fn arguments_that_have_only_numbers_are_named_by_their_use() {
    let (profile, analysis) = open(&Files::of_project().case("v5e_keras_lists"));
    let (program, own) = (&profile.programs[0], &analysis.programs[0]);
    let labels = own.labels(program);
    let rows = (0..program.buffers.len()).map(BufferId::from_index);
    let names: Vec<String> = rows.map(|buffer| labels.op_name(program, buffer)).collect();
    for expected in [
        "state[0][0] (table)",
        "state[0][1] (up)",
        "state[0][3] (down)",
        "state[0][5] (head)",
        "state[2][2] (adam_w for table)",
        "state[2][9] (adam_w for down)",
        "state[2][12] (adam_w for head)",
    ] {
        assert!(names.iter().any(|name| name == expected), "no {expected}");
    }
}

#[test]
fn what_quantised_weights_are_unpacked_into_are_weights() {
    let (profile, analysis) = open(&Files::of_project().case("v5e_quantised"));
    let (program, own) = (&profile.programs[0], &analysis.programs[0]);
    let classes = own.classes(program);
    let of = |wanted: &str| {
        let rows = (0..program.buffers.len()).map(BufferId::from_index);
        let mut found = rows.filter(|&buffer| own.labels(program).op_name(program, buffer).contains(wanted));
        found.next().map(|buffer| (classes.of(buffer), classes.reason(buffer)))
    };
    assert_eq!(of("model['layers'][0]['up']['qvalue']"), Some((Class::Weight, Reason::WeightName)));
    let unpacked = (0..program.buffers.len())
        .map(BufferId::from_index)
        .filter(|&buffer| classes.reason(buffer) == Reason::Unpacked);
    let shapes: Vec<Vec<i64>> =
        unpacked.filter_map(|buffer| Some(program.buffer_node(buffer)?.dimensions.clone())).collect();
    assert!(shapes.len() >= 6, "{shapes:?}");
    let is_whole = |dimensions: &Vec<i64>| dimensions.iter().product::<i64>() == 4096 * 1024;
    assert!(shapes.iter().all(is_whole), "not activations of as many numbers: {shapes:?}");
}

#[test]
fn arrays_that_fusions_carry_for_a_collective_have_its_name() {
    let (profile, analysis) = open(&Files::of_project().case("v5e_gathered"));
    let (program, own) = (&profile.programs[0], &analysis.programs[0]);
    let (labels, classes) = (own.labels(program), own.classes(program));
    let name = |wanted: &str| {
        let rows = (0..program.buffers.len()).map(BufferId::from_index);
        let mut found = rows.filter(|&buffer| program.buffer_name(buffer) == wanted);
        found.next().map(|buffer| (labels.op_name(program, buffer), classes.of(buffer)))
    };
    let gathered = |path: &str| Some((format!("gathered from other devices: {path}"), Class::Weight));
    assert_eq!(name("copy-start.25{0}"), gathered("model['layers'][3]['up']"), "a copy of what is gathered");
    let carried = (0..program.buffers.len())
        .map(BufferId::from_index)
        .filter(|&buffer| program.buffer_name(buffer).starts_with("fusion."))
        .filter(|&buffer| labels.op_name(program, buffer).starts_with("gathered from other devices: model"));
    assert!(carried.count() > 0, "what a fusion of a product carries on");
}

/// The name and class of a program's buffers whose instruction is called so.
fn named(folder: &str, accept: impl Fn(&str) -> bool) -> Vec<(String, Class, Reason)> {
    let (profile, analysis) = open(&Files::of_project().case(folder));
    let (program, own) = (&profile.programs[0], &analysis.programs[0]);
    let (labels, classes) = (own.labels(program), own.classes(program));
    let rows = (0..program.buffers.len()).map(BufferId::from_index);
    rows.filter(|&buffer| accept(&program.buffer_name(buffer)))
        .map(|buffer| (labels.op_name(program, buffer), classes.of(buffer), classes.reason(buffer)))
        .collect()
}

#[test]
fn state_that_no_gradient_reaches_is_no_weight() {
    let (profile, analysis) = open(&Files::of_project().case("v7x_simulation"));
    let (program, own) = (&profile.programs[0], &analysis.programs[0]);
    let classes = own.classes(program);
    // Fields of a simulation that the step moves on beside training: 8 of 64 on each device, 256 by 256, in f32, two of them.
    let fields = 2 * 8 * 256 * 256 * 4;
    let batch = 8 * 512 * 1024 * 4 + 8 * 512 * 8 * 4;
    let input = arguments(program, own, Class::Input);
    assert!(input >= fields + batch && input < fields + batch + (1 << 20), "{input}");
    let of_fields = program.allocations.iter().filter(|allocation| allocation.is_parameter).filter_map(|allocation| {
        let buffer = program.assigned_to(allocation).first()?.buffer;
        let path = program.text.op_name(program.buffers.instruction_of(buffer)?);
        path.starts_with("fields").then(|| classes.reason(buffer))
    });
    assert_eq!(of_fields.collect::<Vec<_>>(), [Reason::WithoutGradient; 2]);
}

#[test]
fn a_copy_has_the_class_of_what_it_is_a_copy_of() {
    // One fusion casts two of the adapters at once, outside of the loop that reads them.
    let casts = named("v6e_lora", |name| name.starts_with("fusion.338{"));
    let expected = |path: &str| (format!("copy of {path}, cast to bf16"), Class::Weight, Reason::CopyOfArgument);
    assert_eq!(casts, [expected("lora['v_a']"), expected("lora['q_a']")]);
}

#[test]
fn results_of_one_fusion_have_the_names_of_their_own_operations() {
    // Fusions that compute a layer and what follows it are named for one of their results.
    let label = |fusion: &str| named("v5e_keras_lists", |name| name == fusion).into_iter().next().map(|row| row.0);
    assert_eq!(label("fusion.33{0}").as_deref(), Some("up/erfc"));
    assert_eq!(label("fusion.33{1}").as_deref(), Some("up/add"));
    assert_eq!(label("fusion.156{1}").as_deref(), Some("up/add_any, backward pass"));
}

#[test]
fn the_backward_pass_is_named_by_what_it_makes_gradients_of() {
    let label = |folder: &str, buffer: &str| named(folder, |name| name == buffer).into_iter().next().map(|row| row.0);
    assert_eq!(
        label("v6e_dlrm_repl_d3", "fusion.6").as_deref(),
        Some("gradient of what is multiplied by p"),
        "a product with a weight, transposed"
    );
    let behind = label("v5e_gpt_s_nodonate", "copy-start.31{0}");
    assert_eq!(behind.as_deref(), Some("convert_element_type, gradient before embed"), "what is made of one");
    let again =
        named("v6e_gpt_m_scan_fsdp", |_| true).into_iter().filter(|row| row.0.ends_with(", recomputed")).count();
    assert!(again > 10, "{again} values say that they are computed again");
}

#[test]
fn what_micro_batches_add_up_are_gradients() {
    let sums =
        named("v5e_sums", |name| name.starts_with("while") || name.contains("arg_tuple") || name.contains("param"));
    let sums: Vec<_> = sums.into_iter().filter(|row| row.0.starts_with("summed by the loop: gradient of ")).collect();
    assert!(sums.len() >= 4, "{sums:?}");
    assert!(sums.iter().all(|row| (row.1, row.2) == (Class::Gradient, Reason::SummedByLoop)), "{sums:?}");
}

/// Temporaries that are copies of arguments by their names, and of these the ones that are of another class than the argument.
fn copies(program: &Program, analysis: &ProgramAnalysis) -> (usize, Vec<String>) {
    let (labels, classes) = (analysis.labels(program), analysis.classes(program));
    let buffers = || (0..program.buffers.len()).map(BufferId::from_index);
    let of_category = |wanted: Category| buffers().filter(move |&buffer| category(program, buffer) == wanted);
    let path = |buffer: BufferId| program.buffers.instruction_of(buffer).map(|at| program.text.op_name(at));
    let arguments: std::collections::HashMap<String, Class> =
        of_category(Category::Parameter).filter_map(|buffer| Some((path(buffer)?, classes.of(buffer)))).collect();
    let (mut looked_at, mut wrong) = (0usize, Vec::new());
    for buffer in of_category(Category::Temporary) {
        let Some(label) = labels.of(program, buffer).filter(|label| !label.copy_of.is_empty()) else { continue };
        let Some(&class) = arguments.get(&label.copy_of) else { continue };
        looked_at += 1;
        // What a model casts its inputs to, and keeps for the backward pass, is an activation.
        let is_kept_cast = class == Class::Input
            && label.text.contains(", cast to ")
            && classes.reason(buffer) == Reason::KeptForBackward;
        if classes.of(buffer) != class && !is_kept_cast {
            wrong.push(format!("{} {}: {:?}", program.buffer_name(buffer), label.text, classes.of(buffer)));
        }
    }
    (looked_at, wrong)
}

#[test]
fn copies_have_the_class_of_the_argument_in_every_program() {
    let mut all = 0usize;
    for path in Files::of_project().programs() {
        let (profile, analysis) = open(&path);
        for (program, own) in profile.programs.iter().zip(&analysis.programs) {
            let (looked_at, wrong) = copies(program, own);
            assert!(wrong.is_empty(), "{}: {wrong:?}", path.display());
            all += looked_at;
        }
    }
    assert!(all > 50, "{all} copies were looked at");
}

#[test]
fn what_an_asynchronous_call_gathers_is_a_weight() {
    let gathered = named("v7x_simulation", |name| name.starts_with("custom-call."));
    let is_weight = |row: &&(String, Class, Reason)| {
        row.0.starts_with("gathered from other devices: params['layer_") && row.1 == Class::Weight
    };
    assert!(gathered.iter().filter(is_weight).count() >= 4, "{gathered:?}");
}

#[test]
fn results_with_memory_of_their_own_are_named_by_what_they_are_the_next_values_of() {
    let names: Vec<String> = named("v5e_channels", |name| name.starts_with("fusion.22{"))
        .into_iter()
        .map(|row| row.0)
        .filter(|name| name.ends_with(", next value"))
        .collect();
    // One fusion makes all three.
    assert_eq!(
        names,
        [
            "params['conv_2']['kernel'], next value",
            "opt_state[0].nu['conv_2']['kernel'], next value",
            "opt_state[0].mu['conv_2']['kernel'], next value",
        ]
    );
}

#[test]
fn what_is_scattered_for_the_backward_pass_is_a_gradient() {
    let scattered = named("v6e_torch_loss", |name| name == "reshape.150");
    let [(name, class, _)] = &scattered[..] else { panic!("{scattered:?}") };
    assert!(name.contains("nll_loss_forward"), "{name}");
    assert_eq!(*class, Class::Gradient);
}
