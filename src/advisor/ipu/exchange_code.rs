//! `exchange_code`: code that moves data between tiles.

use super::evidence::{finding, severity, share, tiles};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::model::{Bytes, percent};

/// Applies the rule to a profile's tiles.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some((memory, tiles)) = tiles(subject) else { return };
    let code = tiles.category("internalExchangeCode");
    if share(code, tiles) < 0.12 {
        return;
    }
    let mut rows: Vec<_> = memory.exchanges.rows.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    let largest: Vec<String> =
        rows.iter().take(3).map(|row| format!("{} ({})", row.name, Bytes(row.bytes).short())).collect();
    let which = if largest.is_empty() { String::new() } else { format!("; the largest: {}", largest.join(", ")) };
    let mut finding = finding("exchange_code", severity(tiles));
    finding.title = format!("Exchange code takes {}", Bytes(code).short());
    let count = match memory.exchanges.rows.len() {
        0 => String::new(),
        1 => ", in 1 exchange".to_owned(),
        count => format!(", in {count} exchanges"),
    };
    finding.why = format!("That is {} of what the tiles hold{count}{which}", percent(code, tiles.bytes().unwrap_or(0)));
    finding.advice = vec![
        "Outline repeated layers (repeated functions, loops instead of unrolled code) so that exchanges are shared"
            .to_owned(),
        "Choose layouts on which neighbouring operations agree".to_owned(),
        "A very low `availableMemoryProportion` raises it".to_owned(),
    ];
    findings.push(finding);
}
