//! The HTML report: what the file may contain, and what a browser makes of it.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use foretell_report::report::{Event, ReadsFrom};
use foretell_report::{Report, html};

fn page(report: &Report) -> String {
    let mut page = Vec::new();
    html::render(&mut page, report).unwrap();
    String::from_utf8(page).unwrap()
}

/// A report in which everything that a program can name tries to become more than text.
fn hostile() -> Report {
    let long = "long".repeat(2_500);
    let names = [
        ("deposit", "<script>window.stolen=1</script>"),
        ("balance", "\"'`><img src=x onerror=window.stolen=2>"),
        ("bank.c", "</script><b>\u{202e}c.knab\u{2066}"),
        ("alice", long.as_str()),
    ];
    let mut text = serde_json::to_string(&common::tested(common::BANK)).unwrap();
    for (name, replacement) in names {
        let quoted = serde_json::to_string(replacement).unwrap();
        text = text.replace(name, quoted.trim_matches('"').trim_end_matches('\\'));
    }
    Report::from_json(&text).expect("it is still a report")
}

/// One timeline with as many events as a page must take.
fn large() -> Report {
    let mut report = common::tested(common::BANK);
    report.findings.truncate(1);
    let timeline = report.findings[0].timeline.as_mut().unwrap();
    let first = report.events.last().unwrap().id + 1;
    for id in first..first + 50_000 {
        report.events.push(Event {
            id,
            thread: id % 3,
            op: if id % 7 == 0 { "write" } else { "read" }.into(),
            object: Some(format!("v{}", id % 11)),
            value: Some(id.to_string()),
            ..Event::default()
        });
        timeline.recorded.push(id);
        let earlier = (id > first + 7).then(|| id - 7);
        timeline.reads_from.push(ReadsFrom { read: id, recorded: earlier, predicted: earlier });
    }
    let swapped = (first..first + 50_000)
        .map(|id| if (id - first).is_multiple_of(2) { id + 1 } else { id - 1 });
    timeline.predicted.extend(swapped);
    report
}

#[test]
fn the_page_is_whole_and_lets_nothing_out_or_in() {
    let page = page(&hostile());
    assert_eq!(page.matches("<script").count(), 2, "the data and our own script");
    assert_eq!(page.matches("</script").count(), 2);
    assert!(page.contains("default-src 'none'"));
    for outside in ["http://", "https://", "src=\"", "href=\"", "@import", "url("] {
        // The name of SVG, and the arrow head inside the page, are no addresses to load from.
        let found = page.replace("http://www.w3.org/2000/svg", "").replace("url(#head)", "");
        assert!(!found.contains(outside), "{outside}");
    }
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    assert!(!data.contains(['<', '>', '&', '\u{2028}']), "data cannot end its element");
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["report"], hostile().to_json(), "and says what the report says");
}

/// `scripts/browser.sh` installs what is missing before the tests run.
#[test]
fn a_browser_shows_both_orders_steps_through_them_and_runs_nothing_of_the_program() {
    let find = |names: &[&str]| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let all = names.iter().flat_map(|name| folders.iter().map(move |at| at.join(name)));
        all.into_iter().find(|path| path.is_file())
    };
    let browser = find(&["chromium", "chromium-browser", "google-chrome"]);
    let (Some(browser), Some(node)) = (browser, find(&["node", "nodejs"])) else {
        eprintln!("SKIPPED: the HTML report was not opened: no chromium or no node on the path");
        return;
    };
    let folder = std::env::temp_dir().join(format!("foretell-html-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, report: &Report| {
        let path = folder.join(name);
        std::fs::write(&path, page(report)).unwrap();
        path
    };
    let mut plain = common::tested(common::BANK);
    plain.unseen.push("libfoo.so is not instrumented".into());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/check.mjs");
    let mut command = Command::new("timeout");
    command.arg("900").arg(node).arg(script).arg(browser);
    command.arg(file("plain.html", &plain));
    command.arg(file("hostile.html", &hostile()));
    command.arg(file("large.html", &large()));
    // For whoever wants to look at the pages.
    if let Some(pictures) = std::env::var_os("FORETELL_SCREENSHOTS") {
        command.arg(pictures);
    }
    // A browser that ends or does not answer says nothing about the page: it gets three chances.
    const NO_BROWSER: Option<i32> = Some(3);
    let mut run = || command.output().expect("timeout is part of coreutils");
    let mut output = run();
    for _ in 1..3 {
        if output.status.code() != NO_BROWSER {
            break;
        }
        eprintln!("once more: {}", String::from_utf8_lossy(&output.stdout));
        output = run();
    }
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{told}");
    let _ = std::fs::remove_dir_all(&folder);
    if output.status.code() == NO_BROWSER && !told.contains("ok: ") {
        eprintln!(
            "SKIPPED: the HTML report was not opened: the browser does not work here: {told}"
        );
        return;
    }
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("ok: large: 50,000 events"), "every page was opened: {told}");
}
