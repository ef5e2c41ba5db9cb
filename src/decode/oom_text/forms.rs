//! Messages of one or a few sentences: the table of phrases names the kind, the words beside each size its role, and what
//! a kind has besides sizes (operations, shapes, processes) is read by its vendor's rules.

use std::ops::Range;

use super::found::Found;
use super::guard::{self, Evidence, Verdict};
use super::layers::Text;
use super::pattern::{count_value, patterns, size_value, text_value};
use super::roles::{Role, Told, told};
use super::size::Unit;
use super::statements::{self, Strength};
use super::triggers::{self, ANY_VENDOR, FORMS, Form, Need};
use crate::model::{FailureKind as Kind, FailureValue, PrintedSize, Speaker};

patterns! {
    CLASS = r"^[\w:.]*(?:Error|Exception|ERROR|EXCEPTION)(?:: |\()";
    WHO = r"(?i)\b(?:process(?:es)?|pid|job|container|task|worker|pod|scope|service|unit|replica|session|notebook|executor|node|program|application|app|instance|step|python\d?|h_vmem|MEMLIMIT)\b|/\S+\.(?:scope|slice)";
    GPU = r"\b(?:GPU|gpu|cuda:|CUDA:)\s?(\d+)\b|on device(?: ordinal)? (\d+)\b|\bCUDA(\d+) buffer|current device: (\d+)";
    NPU = r"\bNPU (\d+)\b";
    OP = r"\[Op:(\w+)\]|while running (\w+) node|requested by op (\w+)|current working operator name is (\w+)";
    NODE = r"Name:\s*\\?'([^'\\]+)";
    ARRAY = r"with shape ?[\[(]([^\])]*)[\])](?: and (?:data )?type (\w+))?";
    DRIVER_ERROR = r"\b((?:CUDA|CUDNN|CUBLAS|CUSOLVER|CUSPARSE|CUFFT|HIPBLAS|VK|UR_RESULT|PI|ZE_RESULT|CL|HSA_STATUS)_[A-Z_]*(?:MEMORY|ALLOC[A-Z_]*|RESOURCES|FAILURE)|(?:cuda|hip)Error\w+)\b";
    LIBRARY = r"(?i)\b(cublas|cudnn|cusolver|cusparse|cufft|hipblas|rocblas)";
    POOL = r"on (\w+) pool";
    ALLOCATOR = r"\b(\w+) cuMemAllocAsync";
    PROCESS = r"Process (\d+) has <T> memory in use";
    OWN = r"this process has <T> memory in use";
    KILLED = r"Killed process (\d+),? \(?([^)\n,]+?)\)?(?:,|\s|$)";
    /// The victim that was chosen; one of its threads' processes may be killed in its place.
    CHOSEN = r"Kill process (\d+),? \(?([^)\n,]+?)\)?(?:,|\s|$)";
    TASK = r"task=([^,\n]+),pid=(\d+)";
    /// earlyoom: `sending SIGTERM to process 12006 uid 1000 "python3": badness 209, VmRSS 2891 MiB`.
    SIGNALLED = r#"(?:to|[Kk]illing) process (\d+)(?: uid \d+)? "([^"\n]+)""#;
    /// kubelet: `victim process: python, pid: 1234`.
    VICTIM = r"victim process: ([^,\n]+), pid: (\d+)";
    /// systemd-oomd: `Killed /system.slice/run.scope due to`.
    UNIT = r"Killed (/\S+) due to|(\S+\.(?:scope|service|slice)): systemd-oomd killed";
    RSS = r"(?:anon-rss:|VmRSS:? )([\d,]+ ?[kM]i?B)";
    MANAGER = r"\b(PBS|LSF|Slurm|slurmstepd|condor\w*|cgroup memory limit|request_memory|h_vmem|Nomad|OOM Killed|[Rr]eplica workerpool|Container killed|using all available RAM|Your notebook)";
    TOTAL_VM = r"total-vm:([\d,]+kB)";
    SLURM_STEP = r"StepId=([\w.+]+)|[Ss]tep ([\w.]+)|[Jj]ob (\d+)";
    NEURON_SIZE = r"Failed to alloc(?:ate)? (?:DEVICE |HOST )?(?:memory: )?(\d+(?:\.\d+)?\s?(?:[KMG]i?B|bytes))";
    NEURON_BYTES = r"Failed to alloc(?:ate)? (?:(?:DEVICE|HOST) memory: (\d+)|(\d+) bytes)";
    NEURON_DEVICE = r"on (ND \d+(?::NC \d+)?)";
    NEURON_REPORT = r"alloc debug info to (\S+)";
    NEURON_TOTAL = r"\btotal: (\d+(?:\.\d+)?[KMG]i?B)";
    NCCL_GPU = r":\d+:\d+\s\[(\d+)\]";
    RAY_NODE = r"was running was <T> ?/ ?<T>";
    RAY_TASK = r"\bname=([\w.:<>-]+)";
    TOKENS = r"max seq len \((\d+)\)";
    TOKEN_LIMIT = r"stored in KV cache \((\d+)\)|estimated maximum model length is (\d+)";
    PLACEHOLDER = r"(?:^|[\s(;,])(?:[XYN]{1,3}(?:\.X+)?|<\w+>|\?+|\.\.\.|…|_+|\{\w*\}|%\w)\s?(?:[KMGT]i?B|[Bb]ytes)\b";
    IN_USE = r"\bInUse:\s+(\d+)\s";
    MAX_IN_USE = r"\bMaxInUse:\s+(\d+)\s";
    NEEDED_AVAILABLE = r"needed (\d+), available (\d+)";
    OPEN_RESERVED = r"(?:is|are) reserved[\w\s]*$";
    SLURM_LIMIT = r"memory limit \((\d+) > (\d+)\)";
    UTILIZATION = r"desired GPU memory utilization \((\d(?:\.\d+)?), <T>\)";
    HOST = r"system memory|too large for system|\bCPU buffer|buffer_type_cpu|ggml_aligned_malloc";
    KILLED_BY = r#"^OOMKilled(?:[ \t]*(?:$|\n|[,}\])\d(])|["'](?:\s*:\s*true|[^:=]|$)|\s*[:=]\s*true)"#;
    /// A row of a table of exit codes.
    EXIT_CODE = r"[{,]\s*\d+:\s*$";
    TORCH_GOES_ON = r"^(?:\w+ )?(?:backend )?out of memory(?:\s*[.(;]|$)|^Invalid|^Allocation on device|EL0004|current platform";
    /// The level of a log that is no error.
    WARNS = r"\bWARN(?:ING)?\b|(?:^|[\s:])W\d{4}\s|(?:^|[\s:\]])W\s";
    PHYSICAL = r"<T> of <T> physical memory used";
    ASCEND = r"Available \w+ size:(\d+) free size:(\d+)";
    CLOSING = r"(?i)\bautotun|_autotune|_tuner\.py|select_algorithm|best \w+ (?:convolution )?algorithm|conv_algorithm_picker|gemm_algorithm|algorithm picker";
}

/// Bytes before a phrase that can belong to its message.
const BEFORE: usize = 400;
/// The longest message.
const LONGEST: usize = 2600;
/// Bytes around a message that may tell of a crash.
const AROUND: usize = 1200;

/// Words of sentences that have rules of their own, which give every number its name: half of such a sentence gives none.
const RULED: [&str; 11] = [
    "memory space ",
    "the total memory required for",
    "Aborting compilation early",
    "Scoped allocation with size",
    "would exceed ",
    "allocatable offset",
    "TensorCore Hbm usage",
    "Attempting to reserve",
    "Could not allocate ",
    "on tile ",
    "ran out of memory trying to allocate",
];

/// What is believed of lines, by how they were put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Everything: they are as they were written, or wrapped between words.
    All,
    /// Messages with sizes: they were wrapped at a width.
    Sizes,
    /// Messages with the size that was asked for: nobody knows how they were wrapped.
    Requests,
}

/// Every message of the table in a text, beside those that were found already; only those with sizes where the
/// lines are not as they were written.
pub fn find(text: &Text, trust: Trust, found: &mut Vec<Found>) {
    let body = text.text.as_str();
    let claimed: Vec<Range<usize>> =
        found.iter().map(|one| line_start(body, one.start)..line_end(body, one.end)).collect();
    let hits = triggers::hits(body);
    let known = found.len();
    let mut i = 0;
    while i < hits.len() {
        let (start, end) = (line_start(body, hits[i].0), line_end(body, hits[i].0));
        let count = hits[i..].iter().take_while(|hit| hit.0 < end).count().max(1);
        let mut of_line: Vec<(usize, usize)> = hits[i..i + count].to_vec();
        i += count;
        // The most specific row first; a line may hold several messages only where it is a whole log.
        of_line.sort_unstable_by_key(|&(at, row)| (row, at));
        if claimed.iter().any(|range| of_line.iter().any(|hit| range.contains(&hit.0))) {
            continue;
        }
        let ahead = &hits[i..];
        let one = of_line.iter().find_map(|&(at, row)| {
            let strength = Strength::Clear;
            let one = message(text, &Hit { form: &FORMS[row], row: Some(row), at, line: start, ahead, strength })?;
            let is_sure = match trust {
                Trust::All => true,
                Trust::Sizes => FORMS[row].need == Need::Requested || has_size(&one),
                Trust::Requests => FORMS[row].need == Need::Requested,
            };
            is_sure.then_some(one)
        });
        found.extend(one);
    }
    let of_forms = found[known..].iter().map(|one| line_start(body, one.start)..one.end);
    let mut claimed: Vec<Range<usize>> = claimed.into_iter().chain(of_forms).collect();
    claimed.sort_unstable_by_key(|range| range.start);
    of_any_vendor(text, trust, &claimed, found);
}

/// What other lines say, whoever wrote them.
fn of_any_vendor(text: &Text, trust: Trust, claimed: &[Range<usize>], found: &mut Vec<Found>) {
    let body = text.text.as_str();
    let (mut start, mut next) = (0, 0);
    while start < body.len() {
        let end = line_end(body, start);
        while next < claimed.len() && claimed[next].end <= start {
            next += 1;
        }
        let is_claimed = claimed[next..].iter().take_while(|range| range.start < end).any(|range| range.end > start);
        if !is_claimed && let Some(said) = statements::of_line(&body[start..end]) {
            let at = start + said.range.start;
            let hit = Hit { form: &ANY_VENDOR, row: None, at, line: start, ahead: &[], strength: said.strength };
            let one = message(text, &hit);
            let is_sure = |one: &Found| trust == Trust::All || one.failure.get("requested").is_some();
            if let Some(one) = one.filter(is_sure) {
                start = one.end.max(end) + 1;
                found.push(one);
                continue;
            }
        }
        start = end + 1;
    }
}

/// Whether a message gives any size: lines put together by chance have none beside the right words.
fn has_size(found: &Found) -> bool {
    found.failure.fields.iter().any(|(_, value)| matches!(value, FailureValue::Size(_)))
}

fn line_start(body: &str, at: usize) -> usize {
    memchr::memrchr(b'\n', &body.as_bytes()[..at]).map_or(0, |i| i + 1)
}

fn line_end(body: &str, at: usize) -> usize {
    memchr::memchr(b'\n', &body.as_bytes()[at..]).map_or(body.len(), |i| at + i)
}

/// A phrase, or a statement of any vendor, in a text.
struct Hit<'t> {
    form: &'static Form,
    /// Row of the form; none of a statement.
    row: Option<usize>,
    /// Where it begins, and its line.
    at: usize,
    line: usize,
    /// Phrases in the lines behind.
    ahead: &'t [(usize, usize)],
    strength: Strength,
}

/// The message of a form at a place, where it is one.
fn message(text: &Text, of: &Hit) -> Option<Found> {
    let Hit { form, at: hit, line, .. } = *of;
    let body = text.text.as_str();
    let from = floor(body, hit.saturating_sub(BEFORE)).max(line);
    let mut to = hit;
    for n in 0..form.lines {
        to = line_end(body, (to + usize::from(n > 0)).min(body.len()));
        // The next message of the same form is another one.
        let next = of.ahead.iter().take_while(|next| next.0 < to).find(|next| Some(next.1) == of.row);
        if let Some(next) = next {
            to = line_start(body, next.0).saturating_sub(1).max(line_end(body, hit));
            break;
        }
    }
    let to = floor(body, to.min(hit + LONGEST));
    let window = &body[from..to];
    if !window.contains(form.with) || (form.kind == Kind::Unknown && RULED.iter().any(|words| window.contains(words))) {
        return None;
    }
    let mut sizes = told(window);
    // A number at the very end of a cut text may have lost its end.
    if text.is_cut && to == body.len() {
        let whole = window.trim_end_matches(|c: char| c.is_alphanumeric() || c == '.').len();
        let window = window[..whole].trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ' '));
        sizes = told(window);
        // `is reserved` may go on with `by PyTorch but unallocated`, which is another number.
        let is_open = OPEN_RESERVED.find(window).is_some_and(|open| !open.as_str().contains("unallocated"));
        if is_open && sizes.last().is_some_and(|last| last.role == Role::Reserved) {
            sizes.pop();
        }
    }
    // A bare number before the phrase counts only where none behind it has its role.
    let roles_behind: Vec<Role> = sizes.iter().filter(|told| told.at >= hit - from).map(|told| told.role).collect();
    sizes.retain(|told| told.unit != Unit::Bare || told.at >= hit - from || !roles_behind.contains(&told.role));
    let has_request = sizes.iter().any(|told| told.role == Role::Requested);
    let fits = match form.need {
        Need::Requested => has_request,
        Need::Size => !sizes.is_empty(),
        Need::Words | Need::Report => true,
    };
    // A sentence that should give the request and does not has a placeholder in its place.
    let is_placeholder =
        PLACEHOLDER.is_match(window) || (!has_request && !text.is_cut && window.contains("ried to allocate"));
    if !fits || is_placeholder {
        return None;
    }
    let prefix = text.place(from).map_or("", |place| place.prefix.as_str());
    let spot = Spot {
        line: &body[line..line_end(body, hit)],
        at: hit - line,
        rest: &body[hit..to],
        prefix,
        around: (&body[floor(body, line.saturating_sub(AROUND))..line], &body[to..ceil(body, to + AROUND)]),
        strength: of.strength,
    };
    let evidence = match () {
        () if !sizes.is_empty() => Evidence::Numbers,
        () if matches!(form.kind, Kind::Unknown | Kind::JobMemoryKill) => Evidence::Words,
        () if form.kind.speaker() == Speaker::Host && guard::is_logged(prefix) => Evidence::Words,
        () if form.kind == Kind::KubernetesOomKill && !window.contains("OOMKilled") => Evidence::Words,
        () => Evidence::Phrase,
    };
    let verdict = guard::verdict(body, line, hit, to, evidence);
    // Of no known kind and no failure either: nothing to say.
    let is_idle = verdict == Verdict::Warning && form.kind == Kind::Unknown;
    let is_told_elsewhere = guard::is_text_about_messages(body, line, hit, has_request);
    if verdict == Verdict::Nothing || is_told_elsewhere || is_idle || !is_said(form, &spot, &sizes) {
        return None;
    }
    let first_line_end = line_end(body, hit).min(to).max(hit);
    let mut found = Found::at(form.kind, &body[from..first_line_end], from, to);
    // A kernel that was only tried, to see which is the fastest.
    let is_tried = form.kind.speaker() == Speaker::Kernel && is_autotuning(prefix);
    found.failure.is_error = verdict == Verdict::Failure && !is_tried;
    refine(&mut found, window, prefix, &sizes);
    Some(found)
}

/// A phrase where it stands.
struct Spot<'t> {
    /// Its line.
    line: &'t str,
    /// Where it begins in the line.
    at: usize,
    /// From the phrase to the end of the message.
    rest: &'t str,
    /// What a logger put before the line.
    prefix: &'t str,
    /// What stands before its line and behind its message.
    around: (&'t str, &'t str),
    strength: Strength,
}

/// Whether a phrase stands as its form has it.
fn is_said(form: &Form, spot: &Spot, sizes: &[Told]) -> bool {
    let is_report = guard::is_report(&spot.line[..spot.at], spot.prefix);
    match form.kind {
        _ if form.need == Need::Report && !is_report => false,
        Kind::Unknown | Kind::CudaErrorOom | Kind::HipErrorOom | Kind::KubernetesOomKill
            if guard::is_subject(spot.rest) =>
        {
            false
        }
        Kind::Unknown | Kind::HostBadAlloc | Kind::WindowsCommit if guard::is_code_line(spot.line) => false,
        // Python says no more than the name of the class.
        Kind::HostBadAlloc if spot.rest.starts_with("MemoryError") => {
            spot.line.trim_start().starts_with("MemoryError")
                && (spot.rest.starts_with("MemoryError: ") || guard::is_crash(spot.around.0, spot.around.1))
        }
        Kind::KubernetesOomKill => {
            !spot.rest.starts_with("OOMK")
                || KILLED_BY.is_match(spot.rest) && !EXIT_CODE.is_match(&spot.line[..spot.at])
        }
        Kind::TritonSharedMemory => {
            !spot.rest.contains("resource: threads") && !spot.rest.contains("resource: registers")
        }
        // The sentence goes on with its numbers.
        Kind::TorchMps | Kind::TorchNpu | Kind::TorchXpu | Kind::TorchHip | Kind::TorchCuda => {
            TORCH_GOES_ON.is_match(spot.rest)
        }
        Kind::Unknown => is_failure_of_any_vendor(spot, sizes, is_report),
        Kind::CudaErrorOom
        | Kind::HipErrorOom
        | Kind::VulkanAlloc
        | Kind::SyclAlloc
        | Kind::CudaLibraryAlloc
        | Kind::HostBadAlloc => is_report || guard::stands_alone(spot.line, spot.at),
        _ => true,
    }
}

/// Whether a statement of nobody known is the report of a failure: by its sizes, by how its line begins, or because the
/// program ends there.
fn is_failure_of_any_vendor(spot: &Spot, sizes: &[Told], is_report: bool) -> bool {
    let is_measured = sizes.iter().any(|told| {
        let is_of_request = spot.strength != Strength::Measured || matches!(told.role, Role::Requested | Role::InUse);
        let is_large = told.unit != Unit::Bare || told.printed.bytes.0 >= 4096;
        !matches!(told.role, Role::Limit | Role::Free) && is_large && is_of_request
    });
    if is_measured {
        return is_report || guard::stands_alone(spot.line, spot.at);
    }
    let head = format!("{}{}", spot.prefix, &spot.line[..spot.at]);
    // A warning without a size may be cut off before it says that the program goes on.
    if spot.strength == Strength::Clear && WARNS.is_match(&head) {
        return false;
    }
    // The class of an error, and what it says.
    if spot.strength == Strength::Clear && CLASS.is_match(spot.rest) && guard::stands_alone(spot.line, spot.at) {
        return true;
    }
    let is_logged = guard::is_logged(&head);
    match spot.strength {
        Strength::Measured => false,
        _ if is_report => true,
        // Caches are emptied and tables dropped for want of memory too.
        Strength::Ended if !WHO.is_match(spot.line) => false,
        Strength::Ended => is_logged || guard::stands_alone(spot.line, spot.at),
        Strength::Clear => {
            guard::stands_alone(spot.line, spot.at)
                && (guard::is_logged_as_trouble(&head) || guard::is_crash(spot.around.0, spot.around.1))
        }
    }
}

/// What a kind says besides sizes, and which of its sizes have other names.
fn refine(found: &mut Found, window: &str, prefix: &str, sizes: &[Told]) {
    let kind = found.failure.kind;
    let group = |pattern: &regex::Regex| {
        let captures = pattern.captures(window)?;
        captures.iter().skip(1).flatten().next().map(|m| m.as_str().to_owned())
    };
    match kind {
        Kind::NeuronAlloc => return neuron(found, window),
        Kind::LinuxOomKill => return linux(found, window),
        Kind::VllmStartup => {
            if let Some(captures) = UTILIZATION.captures(window) {
                found.size("requested", &captures, 2);
            }
        }
        Kind::GgmlAlloc => {
            if let Some(captures) = NEEDED_AVAILABLE.captures(window) {
                found.bytes("requested", &captures, 1).bytes("free", &captures, 2);
            }
        }
        Kind::RayOomKill => {
            if let Some(captures) = RAY_NODE.captures(window) {
                found.size("used", &captures, 1).size("capacity", &captures, 2);
            }
        }
        Kind::YarnMemoryKill => {
            if let Some(captures) = PHYSICAL.captures(window) {
                found.size("used", &captures, 1).size("limit", &captures, 2);
            }
            return;
        }
        Kind::MindsporeAlloc => {
            if let Some(captures) = ASCEND.captures(window) {
                found.bytes("capacity", &captures, 1).bytes("free", &captures, 2);
            }
        }
        Kind::JobMemoryKill => job(found, window),
        Kind::SlurmOomKill => {
            found.put("step", group(&SLURM_STEP).map(FailureValue::Text));
            if let Some(captures) = SLURM_LIMIT.captures(window) {
                for (key, at) in [("used", 1), ("limit", 2)] {
                    found.put(key, captures.get(at).and_then(|m| size_value(&format!("{}KB", m.as_str()))));
                }
            }
        }
        _ => {}
    }
    for told in sizes {
        let Some(key) = key(kind, told.role) else { continue };
        found.put(key, Some(FailureValue::Size(printed(kind, told))));
    }
    if kind.speaker() == Speaker::Kernel {
        // What a kernel uses is what it asks for.
        found.put("requested", found.failure.get("used").cloned());
    }
    if kind.speaker() == Speaker::Torch {
        processes(found, window);
        if found.failure.get("limit").is_some() && kind == Kind::TorchCuda {
            found.failure.kind = Kind::TorchCudaLimit;
        }
    }
    if kind == Kind::TorchNpu {
        found.put("npu", group(&NPU).and_then(|n| count_value(&n)));
    } else {
        found.put("gpu", group(&GPU).and_then(|n| count_value(&n)));
    }
    found.put("op", group(&OP).map(FailureValue::Text));
    if matches!(kind.speaker(), Speaker::Cuda | Speaker::Rocm | Speaker::Xla | Speaker::Graphics) {
        found.put("driver_error", group(&DRIVER_ERROR).map(FailureValue::Text));
    }
    match kind {
        Kind::TorchMps => {
            found.put("pool", group(&POOL).map(FailureValue::Text));
        }
        Kind::CudaAsyncAlloc => {
            found.put("allocator", group(&ALLOCATOR).map(FailureValue::Text));
            found.put("in_use", group(&IN_USE).and_then(|n| super::pattern::bytes_value(&n)));
            found.put("max_in_use", group(&MAX_IN_USE).and_then(|n| super::pattern::bytes_value(&n)));
        }
        Kind::OrtArena => {
            found.put("node", group(&NODE).map(FailureValue::Text));
        }
        Kind::CudaLibraryAlloc => {
            let names = [
                ("cublas", "cuBLAS"),
                ("cudnn", "cuDNN"),
                ("cusolver", "cuSOLVER"),
                ("cusparse", "cuSPARSE"),
                ("cufft", "cuFFT"),
                ("hipblas", "hipBLAS"),
                ("rocblas", "rocBLAS"),
            ];
            let lower = group(&LIBRARY).map(|name| name.to_ascii_lowercase());
            let name = lower.and_then(|lower| names.iter().find(|name| name.0 == lower));
            found.put("library", name.map(|name| text_value(name.1)));
        }
        Kind::NcclAlloc => {
            let gpu = NCCL_GPU.captures(prefix).or_else(|| NCCL_GPU.captures(window));
            found.put("gpu", gpu.and_then(|captures| count_value(&captures[1])));
        }
        Kind::NumpyAlloc | Kind::TfOom => {
            if let Some(captures) = ARRAY.captures(window) {
                found.text("shape", &captures, 1).text("type", &captures, 2);
            }
        }
        Kind::TritonSharedMemory => {
            let space = if window.contains("tensor memory") { "tensor memory" } else { "shared memory" };
            found.put("space", Some(text_value(space)));
        }
        Kind::CudaSharedMemory => {
            found.put("space", Some(text_value("shared memory")));
        }
        Kind::VllmKvCache => {
            found.put("max_seq_len", group(&TOKENS).and_then(|n| count_value(&n)));
            found.put("max_tokens", group(&TOKEN_LIMIT).and_then(|n| count_value(&n)));
        }
        Kind::GgmlAlloc => {
            found.put("space", HOST.is_match(window).then(|| text_value("host")));
        }
        Kind::RayOomKill => {
            found.put("program", group(&RAY_TASK).map(FailureValue::Text));
        }
        Kind::XlaRuntimeAlloc | Kind::BfcOom if CLOSING.is_match(window) => {
            found.failure.kind = Kind::XlaAutotuneWarning;
            found.failure.is_error = false;
        }
        _ => {}
    }
}

/// The key of a role in a kind. A kernel's need is what it uses of what there is.
fn key(kind: Kind, role: Role) -> Option<&'static str> {
    Some(match (kind, role) {
        (Kind::TritonSharedMemory | Kind::CudaSharedMemory, Role::Requested | Role::InUse) => "used",
        (Kind::TritonSharedMemory | Kind::CudaSharedMemory, Role::Limit | Role::Free | Role::Capacity) => "capacity",
        (Kind::RayOomKill | Kind::JobMemoryKill, Role::InUse) => "used",
        (Kind::RayOomKill, Role::Requested) => return None,
        (_, role) => role.key(),
    })
}

/// A size as its kind gives it: PyTorch prints even bytes as a text of its own, others plain numbers.
fn printed(kind: Kind, told: &Told) -> PrintedSize {
    let is_text = told.unit == Unit::Scaled
        || (kind.speaker() == Speaker::Torch && !matches!(kind, Kind::TorchCpu | Kind::TorchHpu));
    PrintedSize { text: told.printed.text.clone().filter(|_| is_text), bytes: told.printed.bytes }
}

/// Who else holds memory of the device. In a container the program itself is one of the numbered processes.
fn processes(found: &mut Found, window: &str) {
    let own = OWN.captures(window).and_then(|c| c.get(1)).and_then(|m| super::pattern::size(m.as_str()));
    let mut others: Vec<(i64, PrintedSize)> = PROCESS
        .captures_iter(window)
        .filter_map(|c| Some((c.get(1)?.as_str().parse().ok()?, super::pattern::size(c.get(2)?.as_str())?)))
        .collect();
    found.failure.fields.retain(|(key, _)| *key != "in_use");
    if let Some(own) = own {
        found.put("in_use", Some(FailureValue::Size(own)));
    } else if let Some(allocated) = found.failure.bytes("allocated") {
        let reserved = allocated + found.failure.bytes("unallocated").unwrap_or_default();
        // The one that holds what PyTorch reserved, and the least beside it, is the program itself.
        let itself = (0..others.len()).filter(|&i| others[i].1.bytes >= reserved).min_by_key(|&i| others[i].1.bytes);
        if let Some(itself) = itself {
            let (process, size) = others.remove(itself);
            found.put("in_use", Some(FailureValue::Size(size)));
            found.put("own_process", Some(FailureValue::Count(process)));
        }
    }
    if let Some((process, size)) = others.first().cloned() {
        let sum = others.iter().map(|other| other.1.bytes).sum();
        let text = size.text.filter(|_| others.len() == 1);
        found.put("other_process", Some(FailureValue::Count(process)));
        found.put("other_in_use", Some(FailureValue::Size(PrintedSize { text, bytes: sum })));
        found.put("other_processes", Some(FailureValue::Count(others.len() as i64)));
    }
}

fn neuron(found: &mut Found, window: &str) {
    let exact =
        NEURON_BYTES.captures(window).and_then(|c| c.get(1).or_else(|| c.get(2)).map(|m| m.as_str().to_owned()));
    let printed = NEURON_SIZE.captures(window).and_then(|c| c.get(1).map(|m| m.as_str().to_owned()));
    match printed.filter(|text| !text.ends_with("bytes")).and_then(|text| super::pattern::size(&text)) {
        Some(size) => found.put("requested", Some(FailureValue::Size(size))),
        None => found.put("requested", exact.and_then(|digits| super::pattern::bytes_value(&digits))),
    };
    if let Some(captures) = NEURON_DEVICE.captures(window) {
        found.text("device", &captures, 1);
    }
    found.size_in("in_use", &NEURON_TOTAL, window);
    if let Some(captures) = NEURON_REPORT.captures(window) {
        found.text("report", &captures, 1);
        found.failure.paths.push(captures[1].to_owned());
    }
}

/// What a job manager says of a job: who it is, what was used, what was allowed.
fn job(found: &mut Found, window: &str) {
    let manager = MANAGER.captures(window).map(|captures| match &captures[1] {
        "PBS" => "PBS",
        "LSF" => "LSF",
        "h_vmem" => "Grid Engine",
        "Nomad" | "OOM Killed" => "Nomad",
        "Container killed" => "ECS",
        "using all available RAM" => "Colab",
        "Your notebook" => "Kaggle",
        name if name.starts_with("condor") || name.contains("request_memory") || name.contains("cgroup") => "HTCondor",
        name if name.ends_with("workerpool") => "Vertex AI",
        _ => "Slurm",
    });
    found.put("manager", manager.map(text_value));
}

fn linux(found: &mut Found, window: &str) {
    if let Some(captures) = KILLED.captures(window).or_else(|| CHOSEN.captures(window)) {
        found.count("pid", &captures, 1).text("name", &captures, 2);
    } else if let Some(captures) = TASK.captures(window) {
        found.text("name", &captures, 1).count("pid", &captures, 2);
    } else if let Some(captures) = SIGNALLED.captures(window) {
        found.count("pid", &captures, 1).text("name", &captures, 2);
    } else if let Some(captures) = VICTIM.captures(window) {
        found.text("name", &captures, 1).count("pid", &captures, 2);
    } else if let Some(name) = UNIT.captures(window).and_then(|found| found.get(1).or_else(|| found.get(2))) {
        let unit = name.as_str().rsplit('/').next().unwrap_or_default();
        found.put("unit", Some(text_value(unit)));
    }
    found.size_in("used", &RSS, window);
    if let Some(captures) = TOTAL_VM.captures(window) {
        found.size("total_vm", &captures, 1);
    }
    let is_group = window.contains("Memory cgroup") || window.contains("CONSTRAINT_MEMCG");
    found.put("scope", is_group.then(|| text_value("cgroup")));
}

fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// Whether a line is about the choice of an algorithm, which goes on without the one that did not fit.
pub fn is_autotuning(line: &str) -> bool {
    CLOSING.is_match(line)
}
