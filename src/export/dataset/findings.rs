//! Rows of the table of findings.

use super::chunk::word;
use super::origin::Origin;
use super::rows::Rows;
use crate::advisor;
use crate::analysis::ProfileAnalysis;
use crate::model::Profile;

pub(super) fn add(profile: &Profile, analysis: &ProfileAnalysis, origin: &Origin, rows: &mut Rows<'_>) {
    for finding in advisor::findings(profile, analysis) {
        let program = finding.program.and_then(|program| profile.programs.get(program));
        let key = origin.key(program);
        let [key, file, name] = origin.cells(&key, program);
        let space = program.map(|_| finding.color.name(profile.device.kind));
        let advice = finding.advice.join("\n");
        rows.push(&[
            key,
            file,
            name,
            space.as_ref().into(),
            finding.rule.into(),
            finding.severity.name().into(),
            word(&finding.title),
            word(&finding.why),
            word(&advice),
            finding.saves_bytes().map(|bytes| bytes.0).into(),
            finding.peak_after_bytes().map(|bytes| bytes.0).into(),
            finding.fits_after().into(),
            finding.changes_results.name().into(),
            finding.is_guess.into(),
            word(finding.reference),
        ]);
    }
}
