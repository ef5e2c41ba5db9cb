//! HTML reports in a browser that reaches no network: nothing is fetched, the pictures are there, tables are sorted by a
//! click.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common;

/// Runs after the page's own script: clicks every title of a table twice, and says what it found in place of the page.
const SCRIPT: &str = r#"<script>
const told = { wrong: [], tables: 0, clicks: 0 };
for (const table of document.querySelectorAll("table")) {
  const buttons = [...table.querySelectorAll("th button")];
  if (buttons.length && table.tBodies[0].rows.length > 1) told.tables += 1;
  for (const button of buttons) {
    const head = button.parentElement, column = head.cellIndex;
    const before = [...table.tBodies[0].rows].map((row) => row.textContent).sort().join("|");
    for (let press = 0; press < 2; press += 1) {
      button.click();
      told.clicks += 1;
      const sign = head.getAttribute("aria-sort") === "descending" ? -1 : 1;
      const rows = [...table.tBodies[0].rows];
      const keys = rows.map((row) => row.cells[column].dataset.key);
      for (let i = 1; i < rows.length; i += 1) {
        if (keys[i] === undefined || keys[i - 1] === undefined) continue;
        if (sign * (Number(keys[i]) - Number(keys[i - 1])) < 0) told.wrong.push(head.textContent + " " + keys.join());
      }
    }
    const after = [...table.tBodies[0].rows].map((row) => row.textContent).sort().join("|");
    if (before !== after) told.wrong.push("rows of " + head.textContent + " are lost");
    if (!head.hasAttribute("aria-sort")) told.wrong.push(head.textContent + " does not say its order");
  }
}
const pictures = [...document.querySelectorAll("figure svg")].map((svg) => svg.getBoundingClientRect());
told.pictures = pictures.filter((rect) => rect.width > 200 && rect.height > 30).length;
told.empty = pictures.length - told.pictures;
told.fetched = performance.getEntriesByType("resource").length;
told.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
told.colour = getComputedStyle(document.querySelector("figure svg [class^=f]") ?? document.body).fill;
document.body.textContent = "TOLD" + JSON.stringify(told) + "END";
</script>"#;

/// Runs the browser on a page, without its profile or network.
fn browse(browser: &Path, folder: &Path, page: &Path, asks: &str) -> String {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1000,800", "--virtual-time-budget=4000"])
        .args(["--proxy-server=127.0.0.1:9", "--host-resolver-rules=MAP * ~NOTFOUND"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(asks)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

pub fn reports_open_without_network() {
    let browser = common::asked_for_file("HIGHWATER_BROWSER");
    let folder = tempfile::tempdir().expect("a folder");
    let samples = common::samples();
    let pair = samples.join("pairs/donate_mlp_v4");
    let reports = [
        ("report", vec!["report".into(), samples.join("v5e_gpt_m_oom")], 3),
        ("tiles", vec!["report".into(), samples.join("ipu_over.cbor")], 0),
        ("diff", vec!["diff".into(), pair.join("before.hlo.pb.gz"), pair.join("after.hlo.pb.gz")], 0),
    ];
    for (name, arguments, pictures) in reports {
        let output = Command::new(env!("CARGO_BIN_EXE_highwater"))
            .args(&arguments)
            .args(["--format", "html"])
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let html = String::from_utf8(output.stdout).expect("UTF-8");
        let page = folder.path().join(format!("{name}.html"));
        fs::write(&page, &html).expect("written");
        let picture = folder.path().join(format!("{name}.png"));
        browse(&browser, folder.path(), &page, &format!("--screenshot={}", picture.display()));
        let image = image::open(&picture).expect("a picture").into_rgb8();
        let colors: std::collections::HashSet<_> = image.pixels().map(|pixel| pixel.0).collect();
        assert!(colors.len() > 20, "{name}: {} colours", colors.len());

        fs::write(&page, html.replace("</body>", &format!("{SCRIPT}</body>"))).expect("written");
        let shown = browse(&browser, folder.path(), &page, "--dump-dom");
        let (_, told) = shown.split_once("TOLD").unwrap_or_else(|| panic!("{name}: the script did not end"));
        let (told, _) = told.split_once("END").expect("all of it");
        let told: Value = serde_json::from_str(&told.replace("&quot;", "\"")).expect("JSON");
        assert_eq!(told["wrong"], serde_json::json!([]), "{name}");
        assert_eq!((&told["fetched"], &told["empty"]), (&0.into(), &0.into()), "{name}: {told}");
        assert!(told["tables"].as_u64() > Some(0) && told["clicks"].as_u64() > Some(3), "{name}: {told}");
        assert!(told["pictures"].as_u64() >= Some(pictures), "{name}: {told}");
        assert!(told["overflow"].as_i64() <= Some(0), "{name} is wider than the window: {told}");
    }
}
