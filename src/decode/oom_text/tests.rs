//! Messages in all the wrappings of logs, cut anywhere, and texts that only look like one.

use proptest::prelude::*;

use super::*;
use crate::decode::Reporter;
use crate::model::{Bytes, MemorySpace};
use crate::source::Progress;

fn open(text: &[u8]) -> (Profile, Vec<String>) {
    let (progress, reporter) = (Progress::default(), Reporter::default());
    let input = Input::from_bytes("run.log", text.to_vec().into()).expect("not empty");
    let context = Context { progress: &progress, reporter: &reporter };
    let profile = OomTextDecoder.decode(&input, context).expect("a text");
    (profile, reporter.finish().iter().map(ToString::to_string).collect())
}

/// Reads bytes that may also be a damaged archive, which is refused.
fn open_anything(bytes: &[u8]) {
    let (progress, reporter) = (Progress::default(), Reporter::default());
    if let Ok(input) = Input::from_bytes("run.log", bytes.to_vec().into()) {
        let _ = OomTextDecoder.decode(&input, Context { progress: &progress, reporter: &reporter });
    }
}

fn failures(text: &str) -> Vec<Failure> {
    open(text.as_bytes()).0.failures
}

const LISTING: &str = "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 3.00G of 2.00G hbm. Exceeded hbm capacity by 1.00G.\n\nTotal hbm usage >= 3.50G:\n    reserved        512.00M \n    program          3.00G \n    arguments       unknown size \n\nOutput size 1.00G; shares 0B with arguments.\n\nProgram hbm requirement 3.00G:\n    global            64.0K\n    HLO temp          3.00G (50.0% utilization: Unpadded (1.50G) Padded (3.00G), 2.0% fragmentation (64.00M))\n\n  Largest program allocations in hbm:\n\n  1. Size: 2.00G\n     Operator: op_name=\"jit(f)/mul\" source_file=\"/w/a.py\" source_line=7\n     Shape: f32[4194304,2]{1,0:T(8,128)}\n     Unpadded size: 32.00M\n     Extra memory due to padding: 1.97G (64.0x expansion)\n     XLA label: fusion.7 = fusion(p), kind=kLoop\n     Allocation type: HLO temp\n     ==========================\n\n  2. Size: 64.0K\n     Shape: f32[128,128]{1,0:T(8,128)}\n     Unpadded size: 64.0K\n     XLA label: constant.1 = constant({...})\n     Allocation type: global\n     ==========================\n";

#[test]
fn a_listing_becomes_a_failure_and_a_program() {
    let (profile, _) = open(LISTING.as_bytes());
    let failure = &profile.failures[0];
    assert_eq!(failure.kind, FailureKind::TpuHbmListing);
    assert_eq!(failure.bytes("used"), Some(Bytes(3 << 30)));
    assert_eq!(failure.bytes("reserved"), Some(Bytes(512 << 20)));
    assert_eq!(failure.bytes("arguments"), None);
    assert_eq!(failure.error_code.as_deref(), Some("E1000"));
    assert!(!failure.truncated);
    let program = &profile.programs[0];
    assert!(program.is_listing);
    // The size that its shape has: 4194304 rows of 128 columns of 4 bytes.
    assert_eq!(program.buffers.size_of(crate::model::BufferId(0)), Bytes(2 << 30));
    assert_eq!(program.buffer_name(crate::model::BufferId(0)), "fusion.7");
    assert_eq!(program.allocations.iter().map(|a| a.size.0).sum::<u64>(), 3 << 30);
    assert_eq!(profile.device.capacity(MemorySpace::HBM).map(|c| c.bytes), Some(Bytes(2 << 30)));
}

#[test]
fn wrappings_change_nothing() {
    let plain = failures(LISTING);
    let fields = |failures: &[Failure]| {
        // The rank is what the prefix adds.
        let own: Vec<_> = failures[0].fields.iter().filter(|(key, _)| *key != "rank").collect();
        format!("{own:?} {:?}", failures[0].allocations)
    };
    let crlf = LISTING.replace('\n', "\r\n");
    #[expect(clippy::format_collect, reason = "short and clear in a test")]
    let (quoted, colored, ranked, odd): (String, String, String, String) = (
        LISTING.lines().map(|line| format!("> {line}\n")).collect(),
        LISTING.lines().map(|line| format!("\x1b[31m{line}\x1b[0m\n")).collect(),
        LISTING.lines().map(|line| format!("[rank3]: {line}\n")).collect(),
        LISTING.lines().enumerate().map(|(i, line)| format!("§{i:03}§ host/a {line}\n")).collect(),
    );
    let escaped = format!("{{\"message\": \"{}\"}}\n", LISTING.replace('"', "\\\"").replace('\n', "\\n"));
    for text in [quoted, crlf, colored, ranked.clone(), odd, escaped] {
        assert_eq!(fields(&failures(&text)), fields(&plain), "{text}");
    }
    assert_eq!(failures(&ranked)[0].process.as_deref(), Some("rank 3"));
    assert_eq!(failures(&ranked)[0].count("rank"), Some(3));
}

#[test]
fn wrapped_sentences_are_read() {
    for text in [
        "Ran out of memory in\nmemory space vmem. Used 66.00M of 64.00M vmem. Exceeded vmem capacity by 2.00M\n",
        "> Ran out of memory in\n> memory space vmem. Used 66.00M\n> of 64.00M vmem. Exceeded vmem capacity by 2.00M\n",
        "q7 @@ Ran out of memory in\nq8 @@ memory space vmem. Used 66.00M of 64.00M vmem. Exceeded vmem capacity by 2.00M\n",
        "Ran out of memory in memory space vmem. Us\ned 66.00M of 64.00M vm\nem. Exceeded vmem capacity by 2.00M\n",
    ] {
        let found = failures(text);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(
            (found[0].kind, found[0].bytes("exceeded")),
            (FailureKind::TpuVmemOneline, Some(Bytes(2 << 20))),
            "{text}"
        );
    }
}

const CUDA: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 5.00 MiB is free. Of the allocated memory 1.50 GiB is allocated by PyTorch, and 6.00 MiB is reserved by PyTorch but unallocated.";

#[test]
fn a_terminal_may_wrap_between_words_or_within() {
    let keys = ["requested", "capacity", "free", "allocated", "unallocated"];
    let plain = failures(&format!("{CUDA}\n"));
    let mut between = String::new();
    let mut column = 0;
    for word in CUDA.split(' ') {
        if column + word.len() > 60 {
            between.push('\n');
            column = 0;
        } else if column > 0 {
            between.push(' ');
        }
        between.push_str(word);
        column += word.len() + 1;
    }
    let within = CUDA.as_bytes().chunks(80).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n");
    for text in [between, within] {
        let found = failures(&format!("{text}\nstep 3 loss 2.1\n"));
        assert_eq!(found.len(), 1, "{text}");
        for key in keys {
            assert_eq!(found[0].bytes(key), plain[0].bytes(key), "{key}: {text}");
        }
    }
}

#[test]
fn a_driver_repeats_what_a_framework_asked_for() {
    let found = failures(
        "ggml_vulkan: Device memory allocation of size 2214592512 failed.\nggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory\nalloc_tensor_range: failed to allocate Vulkan0 buffer of size 2214592512\n",
    );
    assert_eq!(found.iter().map(|f| f.kind).collect::<Vec<_>>(), [FailureKind::GgmlAlloc]);
    let shrinking = "2021-08-31 08:43:31.5: I tensorflow/stream_executor/cuda/cuda_driver.cc:789] failed to allocate 3.81G (4087755776 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n";
    assert!(failures(shrinking).iter().all(|failure| !failure.is_error));
    assert!(failures(&shrinking.replace(": I ", ": E ")).iter().all(|failure| failure.is_error));
}

#[test]
fn the_last_attempt_is_a_failure() {
    let skipped = "[E] [TRT] [virtualMemoryBuffer.cpp::resizePhysical::154] Error Code 2: OutOfMemory (Requested size was 11206656000 bytes.)\n[E] [TRT] Error Code: 9: Skipping tactic 0x0 due to exception\n";
    assert!(!failures(skipped)[0].is_error);
    let failed =
        format!("{skipped}[E] [TRT] Error Code 10: Internal Error (Could not find any implementation for node x.)\n");
    assert!(failures(&failed)[0].is_error);
}

#[test]
fn prose_about_the_error_is_none() {
    for text in [
        "If you see RESOURCE_EXHAUSTED: Out of memory, reduce the batch size.\n",
        "The message \"Ran out of memory in memory space hbm. Used X of Y hbm\" means that the program is too large.\n",
        "CUDA out of memory errors are common; see the documentation of PYTORCH_CUDA_ALLOC_CONF.\n",
        "step 100 memory 12.3GiB/15.7GiB\nStats:\nLimit: 3\n",
        "I have a 24 GB card and get CUDA out of memory with batch size 8; free memory is 3 GB before I start.\n",
        "| CUDA_ERROR_OUT_OF_MEMORY | The API call failed because it was unable to allocate enough memory |\n",
        "The kernel failed to allocate 512 MB when the limit was 1 GB, which was fixed in 5.4.\n",
        "* add a test that cannot allocate more than 1 GB\n",
        "RuntimeError: CUDA out of memory. Tried to allocate <size>\n",
        "<section id=\"impl-Error-for-AllocError\" class=\"impl\">Error for AllocError</section>\n",
        "368 static PREV_ALLOC_FAILURE: AtomicBool = AtomicBool::new(false);\n",
        "errorTab[8] = \"Insufficient memory available.\"\n",
        "Err(Error::JniCall(JniError::NoMemory)),\n",
        "super::SQLITE_NOMEM => \"A malloc() failed\",\n",
        "error that the tool cannot handle (e.g. internal error, out of memory, ...).\n",
        "except MemoryError:\n",
        "| ERROR_COMMITMENT_LIMIT | 1455 | The paging file is too small for this operation to complete. |\n",
        "NRT_RESOURCE  4  A resource allocation failure: out of device memory\n",
        "exitCodes: {137: OOMKilled, 125: OUT_OF_MEMORY}\n",
        "137. In Kubernetes this is the reason OOMKilled, which you get when the limit of the container is\n",
        "<p>See also <code>handle</code>: <q>memory allocation of 4 bytes failed</q> is printed.</p>\n",
    ] {
        let (profile, notes) = open(text.as_bytes());
        assert!(profile.failures.is_empty(), "{text}: {:?}", profile.failures);
        assert!(notes[0].starts_with("No out-of-memory message"), "{notes:?}");
    }
}

#[test]
fn a_summary_that_cuts_the_message_repeats_it() {
    let said = "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.95 GiB is free.";
    let text = format!(
        "E   torch.OutOfMemoryError: {said}\n\nFAILED test.py::a - torch.OutOfMemoryError: {}...\n",
        &said[..58]
    );
    let found = failures(&text);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn what_is_free_of_what_there_is_stands_in_one_parenthesis() {
    let text = "ValueError: Free memory on device cuda:1 (18.61/22.05 GiB) on startup is less than desired GPU memory utilization (0.88, 19.4 GiB).\n";
    let found = &failures(text)[0];
    let gib = |tenths: f64| Some(Bytes((tenths * (1u64 << 30) as f64).round() as u64));
    assert_eq!((found.bytes("free"), found.bytes("capacity")), (gib(18.61), gib(22.05)), "{found:?}");
}

#[test]
fn several_messages_are_kept_in_order_with_their_places() {
    let text = format!(
        "line one\n{LISTING}between\nCUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 4.00 GiB of which 1.00 GiB is free.\n"
    );
    let found = failures(&text);
    assert_eq!(found.iter().map(|f| f.kind).collect::<Vec<_>>(), [FailureKind::TpuHbmListing, FailureKind::TorchCuda]);
    assert_eq!((found[0].offset, found[0].line), (9, 2));
    assert_eq!(found[1].offset, text.find("CUDA").unwrap_or(0) as u64);
}

#[test]
fn a_cut_anywhere_gives_no_wrong_number() {
    let whole = failures(LISTING);
    for end in 1..LISTING.len() {
        for failure in failures(&LISTING[..end]) {
            for (key, value) in &failure.fields {
                assert_eq!(Some(value), whole[0].get(key), "cut at {end}: {key}");
            }
        }
    }
}

#[test]
fn an_allocator_and_the_error_after_it_are_one() {
    let text = "W bfc_allocator.cc:482] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.86GiB (rounded to 2000683264)requested by op \nE client.cc:1] RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2000683008 bytes.\nBufferAssignment OOM Debugging.\nPeak buffers:\n\tBuffer 1:\n\t\tSize: 1.00GiB\n\t\tEntry Parameter Subshape: f32[16384,16384]\n\t\t==========================\n";
    let found = failures(text);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, FailureKind::XlaGpuPeakBuffers);
    assert_eq!(found[0].text("allocator"), Some("GPU_0_bfc"));
    assert_eq!(found[0].bytes("requested"), Some(Bytes(2_000_683_008)));
    assert_eq!(found[0].bytes("rounded"), Some(Bytes(2_000_683_264)));
}

#[test]
fn texts_are_told_from_other_files() {
    assert!(is_text(b"a log\n"));
    assert!(is_text("\u{1b}[31mgrün\u{1b}[0m\n".as_bytes()));
    assert!(!is_text(b"\x0a\x05hello\x12\x00\x01"));
    assert!(!is_text(&[0xff; 100]));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 1..2000)) {
        open_anything(&bytes);
    }

    #[test]
    fn a_damaged_listing_is_read_without_panic(at in 0usize..1500, bytes in prop::collection::vec(any::<u8>(), 0..40), cut in 0usize..1700) {
        let mut text = LISTING.as_bytes().to_vec();
        let at = at.min(text.len());
        text.splice(at..(at + bytes.len()).min(LISTING.len()), bytes);
        text.truncate(cut.max(1));
        open_anything(&text);
    }

    #[test]
    fn words_of_messages_in_any_order_are_read_without_panic(words in prop::collection::vec(0usize..needles::NEEDLES.len() + 12, 1..60)) {
        const MORE: [&str; 12] = ["16.00G", "99999999999999999999999", "\n", "Size:", "Shape: (f32[1]{0:T(", "Operator: op_name=\"", "Bin (256):", "Chunk at 0x1", "GPU 0", "1. ", "\\n", "Used 1.0G of 2.0G hbm."];
        let text: Vec<&str> = words.iter().map(|&i| needles::NEEDLES.get(i).copied().unwrap_or_else(|| MORE[i - needles::NEEDLES.len()])).collect();
        let _ = open(text.join(" ").as_bytes());
    }
}
