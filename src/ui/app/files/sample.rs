//! The bundled sample: a real dump of a training step that does not fit, to explore without a file of your own.

use crate::model::{Bytes, Capacity, MemorySpace};
use crate::open::Target;
use crate::ui::app::App;
use crate::ui::app::files::FileEntry;

/// Display name.
const NAME: &str = "sample: a training step.hlo.pb.gz";

/// See `sample_profiles/README.md` for its origin.
const BYTES: &[u8] = include_bytes!(concat!(
    "../../../../sample_profiles/v5e_gpt_m_oom/",
    "module_0000.jit_train_step.cl_1003875606.after_optimizations.hlo.pb.gz"
));

/// The capacity given in the compiler's message, which lies next to the dump in `sample_profiles`.
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

/// The device's capacity, which is not in the dump.
pub(in crate::ui::app) fn capacity() -> Capacity {
    let evidence = "15.75G, from the compiler's out-of-memory message about this program".to_owned();
    Capacity { color: MemorySpace::HBM, bytes: CAPACITY, evidence }
}
