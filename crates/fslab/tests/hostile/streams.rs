//! stdout and stderr of every command, with hostile text in everything that a command reads and
//! prints.

use std::{
    fs,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::{Command, Stdio},
};

use super::{TEXTS, all, commands};
use crate::{
    made,
    support::{Bench, Finished, finished},
};

/// Text as a TOML string.
fn toml(text: &str) -> String {
    let letter = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(letter).collect::<String>())
}

/// Runs a command, and checks both streams, regardless of the exit status.
#[track_caller]
fn harmless(what: &str, command: &mut Command) -> Finished {
    let output = finished(command.stdin(Stdio::null()).output().unwrap());
    // Removes the colors of fslab. Red is removed only before `error:`, because the hostile text
    // contains red, too.
    let plain = |text: &str| {
        let text = text.replace("\x1b[31merror:", "error:");
        ["0", "1", "4", "32", "33", "1;32", "1;33"]
            .iter()
            .fold(text, |text, code| text.replace(&format!("\x1b[{code}m"), ""))
    };
    for (stream, text) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let found = commands(&plain(text).replace('\t', " "));
        assert!(found.is_empty(), "{what}, {stream}: {}", found[0]);
    }
    assert!(matches!(output.status, Some(0..=6)), "{what}: {:?} {}", output.status, output.stderr);
    assert!(!output.stderr.contains("panicked"), "{what}: {}", output.stderr);
    output
}

/// Plans with the text in one place each.
fn plans(text: &str) -> Vec<String> {
    let text = toml(text);
    let axes = |filesystem: &str, workload: &str| {
        format!("[axes]\nfilesystem = [{filesystem}]\nworkload = [{workload}]\n")
    };
    let small = "{ suite = \"iozone\", file_size = \"1MiB\", tests = [\"write\"] }";
    let image = "[storage]\nimage_size = \"64MiB\"\n";
    let plain = axes("\"ext2\"", small);
    let level = |keys: &str| {
        let level = format!("{{ name = \"odd\", type = \"ext2\", {keys} }}");
        format!("{image}{}", axes(&level, small))
    };
    vec![
        format!("title = {text}\n{image}{plain}"),
        format!("profile = {text}\n{image}{plain}"),
        format!("{text} = 1\n{image}{plain}"),
        format!("{image}image_directory = {text}\n{plain}"),
        format!("{image}image_file = {text}\n{plain}"),
        format!("{image}external_directory = {text}\n{plain}"),
        format!("[storage]\ndevice = {text}\n{plain}"),
        format!("[storage]\ndevices = [{text}, \"/dev/null\"]\n{plain}"),
        format!("[storage]\ndirectory = {text}\n[axes]\nworkload = [{small}]\n"),
        format!("{image}{}", axes(&format!("{{ name = {text}, type = \"ext2\" }}"), small)),
        level(&format!("mkfs_options = [{text}]")),
        level(&format!("mount_options = {text}")),
        level(&format!("setup = [{{ run_unmounted = [\"true\", {text}, \"{{device}}\"] }}]")),
        level(&format!("layers = [{text}]")),
        format!("{image}{}", axes(&text, small)),
        format!("{image}{}", axes("\"ext2\"", &text)),
        format!("{image}{}", axes("\"ext2\"", &format!("{{ suite = {text} }}"))),
        format!("{image}{}", axes("\"ext2\"", &format!("{{ suite = \"iozone\", {text} = 1 }}"))),
        format!("{image}{}scheduler = [{text}]\n", plain),
        format!("{image}{}kernel = [{text}]\n", plain),
        format!(
            "{image}{}",
            axes("\"ext2\"", &format!("{{ suite = \"dbench\", loadfile = {text}, clients = 1 }}"))
        ),
        format!("{image}{plain}[scales.{text}]\nscale = {text}\n"),
    ]
}

#[test]
fn texts_of_a_plan_are_escaped_on_the_terminal() {
    let bench = Bench::new();
    let mut shown = 0;
    let all = all();
    for text in TEXTS.into_iter().chain([&*all]) {
        // Each text in four places, and all texts together in all places.
        let places = if text == all { usize::MAX } else { 4 };
        for (at, plan) in plans(text).iter().enumerate().take(places) {
            fs::write(bench.path("plan.toml"), plan).unwrap();
            let what = format!("place {at} of {text:?}");
            let output = harmless(&what, &mut bench.command(&["show", "plan.toml"]));
            // Only texts in the place of a key are rejected as unknown keys.
            let unknown = ["has no key", "has no parameter"];
            let unknown = unknown.iter().any(|message| output.stderr.contains(message));
            assert_eq!(unknown, matches!(at, 2 | 17), "{what}: {}", output.stderr);
            // Each argument, name, and path is shown on one line.
            if output.status == Some(0) {
                shown += 1;
                assert!(!output.stdout.contains("\nbreak"), "{what}: {}", output.stdout);
            }
        }
    }
    let title = format!("title = {}\n[axes]\nx = 1\n", toml(&all));
    fs::write(bench.path("plan.toml"), title).unwrap();
    for command in ["run", "show"] {
        harmless("color", bench.command(&[command, "plan.toml"]).env("CLICOLOR_FORCE", "1"));
    }
    assert!(shown > TEXTS.len(), "{shown} plans were shown");
    // The text of a plan is printed unchanged, with CRLF line ends.
    let text = format!("# {}\r\n[storage]\r\n", "\u{9b}31m \u{202e}");
    let plan = format!(
        "{text}image_size = \"64MiB\"\r\n[axes]\r\nfilesystem = [\"ext2\"]\r\nworkload = [\"oltp-8k\"]\r\n"
    );
    fs::write(bench.path("plan.toml"), plan.replace("oltp-8k", "small-file-calls")).unwrap();
    let output = harmless("--text", &mut bench.command(&["show", "--text", "plan.toml"]));
    assert!(!output.stdout.contains("\\u{d}"), "{}", output.stdout);
}

#[test]
fn arguments_and_variables_are_escaped_on_the_terminal() {
    let bench = Bench::new();
    let texts = TEXTS.map(|text| text.replace('\0', ""));
    let all = texts.join(" ");
    for text in texts.iter().chain([&all]) {
        harmless(text, &mut bench.command(&["list", text]));
        harmless(text, bench.command(&[text]).env("CLICOLOR_FORCE", "1"));
    }
    let text = &*all;
    for arguments in [
        &[text][..],
        &["list", "plans", text],
        &["show", text],
        &["show", "demo", "--set", text],
        &["show", "demo", "--set", &format!("{text}=1")],
        &["show", "demo", "--set", &format!("image_directory={text}")],
        &["show", "demo", "--scale", text],
        &["show", "demo", "--guest", text],
        &["show", "demo", "--kernel", text],
        &["show", "demo", "--catalog", text],
        &["run", "demo-directory", "--resume", text],
        &["bench", text],
        &["bench", "iozone", text],
        &["loadfile", text],
        &["verify", text],
        &["explain", text, text],
        &["compare", text, text],
        &["audit", "bonnie-2012@published", "--statements", text],
        &["report", &format!("{text}@published")],
        &["guest", "kernel", "build", "--source", text],
    ] {
        harmless(&format!("{arguments:?}"), &mut bench.command(arguments));
    }
    let odd = bench.path("\x1b[2J\u{202e}\u{9b}31m");
    fs::create_dir(&odd).unwrap();
    fs::create_dir_all(odd.join("journal")).unwrap();
    fs::write(odd.join("journal").join("\x1b]0;x\x07.jsonl"), &all).unwrap();
    for variable in ["FSLAB_STATE", "XDG_CACHE_HOME", "TMPDIR", "HOME", "PATH", "LC_ALL", "COLUMNS"]
    {
        for arguments in [&["clean"][..], &["guest", "kernel", "list"], &["version"]] {
            let what = format!("{variable} {arguments:?}");
            harmless(&what, bench.command(arguments).env(variable, &odd));
        }
    }
    harmless("doctor", bench.command(&["doctor"]).env("XDG_CACHE_HOME", &odd).env("PATH", &odd));
    harmless("state", bench.command(&["clean", "--state-directory"]).arg(&odd));
}

#[test]
fn names_in_files_are_escaped_on_the_terminal() {
    let bench = Bench::new();
    let all = all();
    for text in TEXTS.into_iter().chain([&*all]) {
        let name = toml(text);
        for (name, title, tool, package) in [
            (&*name, "\"t\"", "\"mkfs.nofs\"", "\"p\""),
            ("\"nofs\"", &*name, "\"mkfs.ext2\"", "\"p\""),
            ("\"nofs\"", "\"t\"", &*name, "\"p\""),
            ("\"nofs\"", "\"t\"", "\"mkfs.nofs\"", &*name),
        ] {
            let entry = format!(
                "[[filesystem]]\nname = {name}\ntitle = {title}\nfstype = \"ext2\"\n\
                 magic = 0xef53\nmin = \"1MiB\"\nmkfs = [{tool}, \"{{device}}\"]\n\
                 kernel = {{ since = \"1.0\" }}\nsource = \"nowhere\"\n\
                 [filesystem.package]\ndebian = {package}\n"
            );
            fs::write(bench.path("more.toml"), entry).unwrap();
            let list = ["list", "filesystems", "--catalog", "more.toml"];
            harmless(text, &mut bench.command(&list));
        }
        let load = format!("NTCreateX \"\\{text}\" 0x40 2 1 SUCCESS\nClose 1 SUCCESS\n");
        fs::write(bench.path("load.txt"), load).unwrap();
        harmless(text, &mut bench.command(&["loadfile", "load.txt"]));
        fs::write(bench.path("statements.toml"), format!("title = {name}\n")).unwrap();
        fs::write(bench.path("table.csv"), "filesystem,value\nb,1.5\n").unwrap();
        for format in ["json", "md"] {
            let audit =
                ["audit", "table.csv", "--statements", "statements.toml", "--format", format];
            let output = harmless(text, &mut bench.command(&audit));
            let json: Result<serde_json::Value, _> = serde_json::from_str(&output.stdout);
            assert!(
                format == "md" || output.status == Some(2) || json.is_ok(),
                "{}",
                output.stdout
            );
        }
    }
}

/// Hostile names of a directory, a run file, and files, in the messages of a run.
#[test]
fn paths_of_runs_are_escaped_on_the_terminal() {
    let bench = Bench::new();
    let name = "\x1b[31m\u{9b}2J\r\n\u{202e}d \u{200b}";
    let directory = bench.path(name);
    fs::create_dir(&directory).unwrap();
    let plan = format!(
        "title = {}\nrepetitions = 1\naa_control = \"none\"\n[storage]\ndirectory = {}\n[axes]\n\
         workload = [{{ suite = \"iozone\", file_size = \"1MiB\", tests = [\"write\"] }}]\n",
        toml(&all()),
        toml(&directory.display().to_string())
    );
    fs::write(directory.join("plan.toml"), plan).unwrap();
    let inside = |name: &str| directory.join(name).display().to_string();
    let (plan, run) = (inside("plan.toml"), inside("run.fslab"));
    for arguments in [
        &["run", &plan, "-o", &run][..],
        &["run", &plan, "-o", &run],
        &["run", "--resume", &run],
        &["run", &plan, "--json", "-vv", "-o", &inside("json.fslab")],
        &["report", &run],
        &["report", &run, "--format", "md"],
        &["report", &run, "--charts", &inside("charts")],
        &["report", &run, "-o", &inside("report.json")],
        &["bench", "iozone", &inside("."), "--set", "file_size=1MiB", "--set", "tests=write"],
        &[
            "bench",
            "iozone",
            &inside("."),
            "--set",
            "file_size=1MiB",
            "--set",
            "tests=write",
            "--json",
        ],
        &["verify", &run],
        &["import", &run],
        &["clean"],
    ] {
        let output = harmless(&format!("{arguments:?}"), &mut bench.command(arguments));
        let json = arguments.contains(&"--json");
        let is_json = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
        if json && arguments[0] == "run" {
            let events: Vec<&str> =
                output.stderr.lines().filter(|line| line.starts_with('{')).collect();
            assert!(events.len() > 2 && events.iter().all(|line| is_json(line)), "{events:?}");
        }
        assert!(!json || arguments[0] == "run" || is_json(&output.stdout), "{}", output.stderr);
    }
    // File name that is not UTF-8.
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"\xff\x1b[2J\xc2\x9b.fslab"));
    fs::write(bench.path(".").join(odd), "no run").unwrap();
    harmless("bytes", bench.command(&["report"]).arg(odd));
    // The measured directory also contains a hostile name.
    fs::write(directory.join("\x1b[2J"), "x").unwrap();
    made::measured(&bench);
    harmless("other", &mut bench.command(&["show", &plan]));
}
