//! Manual pages, completions, and properties of build and machine as JSON.

use std::{fs, process::Command};

use crate::support::{Bench, finished, on_path};

/// Completions that `fslab complete` prints for the last word.
fn candidates(bench: &Bench, words: &[&str]) -> Vec<String> {
    let printed = bench.ends(0, &[&["complete", "--", "fslab"], words].concat()).stdout;
    let value = |line: &str| line.split_once('\t').expect("value, tab, description").0.to_owned();
    printed.lines().map(value).collect()
}

#[test]
fn every_command_and_file_format_has_a_manual_page() {
    let bench = Bench::new();
    let manual = bench.path("man");
    bench.ends(0, &["docs", "--man", manual.to_str().unwrap()]);
    let help = bench.ends(0, &["--help"]).stdout;
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = commands.lines().filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with(' ')).filter_map(|it| it.split(' ').next());
    let pages = names.filter(|name| *name != "help").map(|name| format!("man1/fslab-{name}.1"));
    let pages: Vec<_> = pages.collect();
    assert!(pages.len() > 15, "{pages:?}");
    let others = ["man1/fslab.1", "man1/fslab-guest-kernel-build.1", "man5/fslab-plan.5"];
    let others = others.iter().chain(&["man5/fslab-run-file.5", "man7/fslab-metrics.7"]);
    for page in pages.iter().map(String::as_str).chain(others.copied()) {
        let text = fs::read_to_string(manual.join(page)).expect(page);
        let name = page.split('/').nth(1).unwrap().split('.').next().unwrap();
        let title = format!(".TH {} ", name.to_uppercase().replace('-', "\\-"));
        assert!(text.lines().any(|line| line.replace('-', "\\-").starts_with(&title)), "{text}");
        let about = format!("{name} - ").replace('-', "\\-");
        assert!(text.contains(&about), "the line for apropos(1) is missing in\n{text}");
        if on_path("groff") {
            let mut groff = Command::new("groff");
            groff.args(["-man", "-Kutf8", "-Tutf8", "-wmac"]).arg(manual.join(page));
            let shown = groff.output().unwrap();
            assert_eq!(String::from_utf8_lossy(&shown.stderr), "", "{page}");
        }
    }
    let text = |page: &str| fs::read_to_string(manual.join(page)).unwrap();
    assert!(text("man5/fslab-plan.5").contains("fill_percent"));
    assert!(text("man7/fslab-metrics.7").contains("durable_throughput"));
    assert!(text("man5/fslab-run-file.5").contains("CREATE TABLE sample"));
    assert!(text("man1/fslab.1").contains("130"), "exit statuses");
}

#[test]
fn names_are_completed_where_they_are_accepted() {
    let bench = Bench::new();
    fs::write(bench.path("mine.toml"), "").unwrap();
    fs::write(bench.path("old.fslab"), "").unwrap();
    fs::write(bench.path("notes.txt"), "").unwrap();
    for (words, some) in [
        (&["run", "demo-"][..], &["demo-directory", "demo-guest"][..]),
        (&["show", "m"], &["metadata-scaling", "mine.toml"]),
        (&["bench", "oltp"], &["oltp-8k"]),
        (&["run", "oltp"], &["oltp-8k"]),
        (&["run", "oltp-8k", "--filesystem", "x"], &["xfs"]),
        (&["run", "oltp-8k", "--filesystem", "ext4,bt"], &["ext4,btrfs"]),
        (&["report", ""], &["old.fslab", "tasks-2006@published"]),
        (&["compare", "a", "--metric", "durable_t"], &["durable_throughput"]),
        (&["compare", "a", "--allow-differences", "kernel,st"], &["kernel,storage"]),
        (&["run", "demo", "--guest=u"], &["--guest=uml"]),
        (&["run", "demo", "--set", "filesystem=ext4,b"], &["filesystem=ext4,btrfs"]),
        (&["run", "demo", "--set", "repet"], &["repetitions="]),
        (&["run", "demo", "--set", "cache=c"], &["cache=cold"]),
        (&["list", "met"], &["metrics"]),
        (&["guest", "kernel", "b"], &["build"]),
        (&["completions", ""], &["bash", "zsh", "fish"]),
    ] {
        let found = candidates(&bench, words);
        for value in some {
            assert!(found.iter().any(|it| it == value), "{words:?}: {value} in {found:?}");
        }
        assert!(!found.iter().any(|it| it == "notes.txt"), "{words:?}: {found:?}");
    }
    let chosen = candidates(&bench, &["run", "demo", "--set", "filesystem=ext4,ex"]);
    assert!(!chosen.contains(&"filesystem=ext4,ext4".to_owned()), "a level twice: {chosen:?}");
    assert!(!candidates(&bench, &["run", ""]).contains(&"--quiet".to_owned()));
    assert!(candidates(&bench, &["run", "--q"]).contains(&"--quiet".to_owned()));
    assert!(!candidates(&bench, &[""]).contains(&"worker".to_owned()), "hidden commands");
}

/// bash splits words at `=`, so only the part after it is inserted.
#[test]
fn bash_inserts_the_part_after_the_equals_sign() {
    if !on_path("bash") {
        return;
    }
    let bench = Bench::new();
    let script = bench.path("fslab.bash");
    fs::write(&script, bench.ends(0, &["completions", "bash"]).stdout).unwrap();
    let ask = |words: &str, current: &str| {
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_fslab")).parent().unwrap();
        let text = format!(
            "PATH={}:$PATH; source {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - \
             1)); _fslab fslab '{current}' x 2>/dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            program.display(),
            script.display()
        );
        let output = Command::new("bash").args(["--norc", "-c", &text]).output().unwrap();
        finished(output).stdout
    };
    assert_eq!(ask("fslab run demo --set filesystem = ext4,xf", "ext4,xf"), "ext4,xfs\n");
    assert_eq!(ask("fslab run --guest = ''", ""), "auto\nkvm\nicount\numl\ntcg\n");
    assert_eq!(ask("fslab run demo-d", "demo-d"), "demo-directory\n");
}

#[test]
fn the_build_and_the_machine_are_available_as_json() {
    let bench = Bench::new();
    let output = bench.ends(0, &["doctor", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&output.stdout).expect(&output.stdout);
    let named = |list: &str, name: &str| {
        let list = object[list].as_array().unwrap().clone();
        list.into_iter().find(|it| it["name"] == name).expect(name)
    };
    for (list, name) in [
        ("filesystems", "ext4"),
        ("layers", "md raid0"),
        ("settings", "scheduler"),
        ("guests", "uml"),
    ] {
        let entry = named(list, name);
        assert!(entry["available"].is_boolean(), "{entry}");
        assert!(entry["available"] == true || entry["reason"].is_string(), "{entry}");
    }
    assert!(object["generator_time_per_operation"].as_f64().is_some_and(|time| time > 0.0));
    assert!(object["facts"]["kernel.release"].is_string());
    let build = &object["program"];
    let verbose = bench.ends(0, &["version", "-v"]).stdout;
    for key in ["target", "profile", "features", "compiler"] {
        let value = build[key].as_str().unwrap();
        assert!(!value.is_empty() && verbose.contains(value), "{key} {value} in\n{verbose}");
    }
    assert!(verbose.contains("commit "), "{verbose}");
}
