//! Rule `arguments`: arguments and results that alone leave no room.

use super::case::{Case, Total};
use super::finding::{ChangesResults, Finding};
use crate::model::Bytes;

/// Name of the rule.
pub const NAME: &str = "arguments";

/// Share of the available memory above which arguments leave no room.
const SHARE: f64 = 0.90;

/// Looks at the arguments as a whole.
pub fn run(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let Some(capacity) = case.memory.capacity else { return };
    let mut rows: Vec<(u64, usize)> = case.arguments().map(|a| (case.memory.base[a.0].size, a.0)).collect();
    let bytes: u64 = rows.iter().map(|row| row.0).total();
    if !case.is_share_of_capacity(bytes, SHARE) {
        return;
    }
    rows.sort_unstable_by(|a, b| b.cmp(a));
    let mut finding = case.finding(NAME);
    finding.at_stake_bytes = Some(Bytes(bytes));
    finding.title = format!("Arguments alone take {}", case.of_capacity(bytes));
    finding.why = format!(
        "{} of arguments leave {} for results and temporaries; no change to the computation can help. The largest is {}.",
        Bytes(bytes).short(),
        Bytes(capacity.saturating_sub(bytes)).short(),
        rows.first().map(|row| case.describe(case.memory.base[row.1].buffer)).unwrap_or_default()
    );
    finding.advice.push("divide them over more devices, or keep them in fewer bits".to_owned());
    finding.advice.push("keep on the host what is used once in a step (`memory_kind=\"pinned_host\"`)".to_owned());
    finding.changes_results = ChangesResults::Maybe;
    finding.buffers = rows.iter().map(|row| case.memory.base[row.1].buffer).collect();
    findings.push(finding);
}
