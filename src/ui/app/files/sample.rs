//! The sample that comes with the program: a genuine dump of a training step that does not fit, to look at before one
//! has a file of one's own.

use crate::model::{Bytes, Capacity, MemorySpace};
use crate::open::Target;
use crate::ui::app::App;
use crate::ui::app::files::FileEntry;

/// Display name.
const NAME: &str = "sample: a training step.hlo.pb.gz";

/// `sample_profiles/README.md` says where it is from.
const BYTES: &[u8] = include_bytes!(concat!(
    "../../../../sample_profiles/v5e_gpt_m_oom/",
    "module_0000.jit_train_step.cl_1003875606.after_optimizations.hlo.pb.gz"
));

/// The capacity in the compiler's message, which is beside the dump in `sample_profiles`.
const CAPACITY: Bytes = Bytes(16_911_433_728);

impl App {
    /// Opens the sample.
    pub(in crate::ui::app) fn open_sample(&mut self) {
        if let Some(there) = self.files.entries.iter().position(is_sample) {
            self.files.current = Some(there);
            return;
        }
        self.open(Target::Bytes(NAME.to_owned(), BYTES.into()));
    }
}

/// Whether an entry is the sample.
pub(in crate::ui::app) fn is_sample(entry: &FileEntry) -> bool {
    matches!(&entry.target, Target::Bytes(name, _) if name == NAME)
}

/// The capacity of the device, which the dump does not contain.
pub(in crate::ui::app) fn capacity() -> Capacity {
    let evidence = "15.75G, from the compiler's out-of-memory message about this program".to_owned();
    Capacity { color: MemorySpace::HBM, bytes: CAPACITY, evidence }
}
