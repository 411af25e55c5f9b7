//! Examples in guides that no other test executes.

use std::fs;

use crate::support::{Bench, root};

/// Code blocks of a guide in one language.
fn blocks(guide: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/guides").join(guide)).unwrap();
    let start = format!("```{language}\n");
    let blocks = text.split(&start).skip(1).filter_map(|rest| rest.split_once("\n```"));
    blocks.map(|(block, _)| block.to_owned()).collect()
}

#[test]
fn plans_in_the_guide_for_users_of_other_benchmarks_are_valid() {
    let bench = Bench::new();
    let plans = blocks("other-benchmarks.md", "toml");
    assert!(!plans.is_empty());
    for plan in plans {
        let shown = bench.ends(0, &["show", &bench.plan(&plan)]).stdout;
        assert!(shown.contains("io_engine=io_uring"), "{shown}");
    }
}

#[test]
fn parameters_in_the_guide_for_users_of_other_benchmarks_exist() {
    let suites = Bench::new().ends(0, &["list", "suites"]).stdout;
    let presets = Bench::new().ends(0, &["list", "workloads"]).stdout;
    let known: Vec<&str> = suites.lines().chain(presets.lines()).collect();
    let known = |name: &str| known.iter().any(|line| line.split_whitespace().next() == Some(name));
    let text = fs::read_to_string(root().join("docs/guides/other-benchmarks.md")).unwrap();
    // Names in the last column of the tables on fio and Phoronix.
    let rows =
        text.lines().skip_while(|line| *line != "## fio").filter(|line| line.starts_with("| `"));
    let cells: Vec<&str> =
        rows.filter_map(|row| row.trim_end_matches(" |").rsplit(" | ").next()).collect();
    let code = cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let names: Vec<&str> = code.filter_map(|code| code.split(' ').next()).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| !name.starts_with('"')).collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        assert!(known(name) || suites.contains(&format!("{name}: ")), "{name}");
    }
}

#[test]
fn plans_in_the_guide_for_users_of_mdtest_are_valid() {
    let bench = Bench::new();
    let plans = blocks("mdtest.md", "toml");
    assert_eq!(plans.len(), 1);
    let shown = bench.ends(0, &["show", &bench.plan(&plans[0])]).stdout;
    assert!(shown.contains("worker_shift=1 workers=4"), "{shown}");
}

#[test]
fn commands_in_the_guide_for_users_of_mdtest_run() {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    let lines = blocks("mdtest.md", "sh").join("\n");
    let lines: Vec<&str> = lines.lines().filter(|line| line.starts_with("fslab ")).collect();
    assert_eq!(lines.len(), 4);
    for line in lines {
        let words = line.split('#').next().unwrap().split_whitespace().skip(1);
        let words: Vec<String> = words
            .map(|word| match word {
                "/srv" => bench.path("data").display().to_string(),
                "1000" => "50".to_owned(),
                "files.fslab" => bench.path("files.fslab").display().to_string(),
                word => word.to_owned(),
            })
            .collect();
        let output = bench.ends(0, &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(output.stdout.contains("File creation"), "{output:?}");
    }
    assert!(bench.path("files.fslab").exists());
}

#[test]
fn options_in_the_workflows_for_kernels_exist() {
    let bench = Bench::new();
    let workflows = blocks("regressions.md", "yaml");
    assert_eq!(workflows.len(), 2);
    let help = |command| bench.ends(0, &[command, "--help"]).stdout;
    let help = help("run") + &help("compare");
    for workflow in workflows {
        assert!(workflow.contains("fslab compare old.fslab new.fslab --gate 1%"), "{workflow}");
        let commands =
            workflow.split("fslab run ").skip(1).chain(workflow.split("fslab compare ").skip(1));
        for command in commands {
            // A command ends at the next step.
            let command = command.split("\n    - ").next().unwrap().split("done").next().unwrap();
            let command =
                command.split("- name").next().unwrap().split("\n      - ").next().unwrap();
            for option in command.split_whitespace().filter(|word| word.starts_with("--")) {
                assert!(help.contains(option), "{option}");
            }
        }
        for name in workflow.lines().filter_map(|line| line.split("fslab run ").nth(1)) {
            let plan = name.split(' ').next().unwrap();
            bench.ends(0, &["show", plan, "--text"]);
        }
    }
}

#[test]
fn plans_and_options_in_the_guide_to_hosts_exist() {
    let bench = Bench::new();
    let plans = blocks("hosts.md", "toml");
    assert_eq!(plans.len(), 3);
    for plan in plans {
        let shared = bench.path("").display().to_string();
        let plan = plan.replace("/mnt/scratch", &shared).replace("1GiB", "1MiB");
        let plan = plan.replace("64GiB", "64MiB");
        bench.ends(0, &["show", &bench.plan(&plan)]);
    }
    let help = |command: &[&str]| bench.ends(0, &[command, &["--help"]].concat()).stdout;
    let help = help(&["run"]) + &help(&["cluster", "check"]);
    for line in blocks("hosts.md", "sh").iter().flat_map(|block| block.lines()) {
        // Options within the command of a launcher are not those of fslab.
        let own = line.split('\'').next().unwrap().split('#').next().unwrap();
        for option in own.split_whitespace().filter(|word| word.starts_with("--")) {
            assert!(help.contains(option), "{option}");
        }
    }
}

#[test]
fn plans_in_the_guides_to_devices_and_axes_are_valid() {
    let bench = Bench::new();
    for (guide, number) in [("devices.md", 3), ("axes.md", 4)] {
        let plans = blocks(guide, "toml");
        assert_eq!(plans.len(), number);
        for plan in plans {
            bench.ends(0, &["show", &bench.plan(&plan)]);
        }
    }
}

#[test]
fn plans_in_the_guide_to_applications_are_valid() {
    let bench = Bench::new();
    let plans = blocks("applications.md", "toml");
    assert_eq!(plans.len(), 2);
    for plan in plans {
        let shown = bench.ends(0, &["show", &bench.plan(&plan)]).stdout;
        assert!(shown.contains("  $ "), "{shown}");
    }
}

#[test]
fn commands_in_the_guide_to_applications_run() {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    let lines = blocks("applications.md", "sh").join("\n");
    let lines: Vec<&str> = lines.lines().filter(|line| line.starts_with("fslab bench ")).collect();
    assert_eq!(lines.len(), 4);
    for line in lines {
        let words = model::words::split(line).unwrap().remove(0);
        // Fewer transactions, and a smaller directory than /usr/include.
        let words = words.iter().skip(1).map(|word| match word.as_str() {
            "/mnt/x" => "data".to_owned(),
            word => word.replace("/usr/include", "/etc/apt"),
        });
        let mut words: Vec<String> = words.collect();
        if words[1].starts_with("sqlite") {
            words.extend(["--set".to_owned(), "transactions=5".to_owned()]);
        }
        let output = bench.ends(0, &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(output.stdout.contains("CPU time") || output.stdout.contains("devices"));
    }
}

/// Commands of the guide, with documents of fio in which the rates vary.
#[test]
fn commands_in_the_guide_to_results_of_fio_run() {
    let bench = Bench::new();
    let seed = fs::read_to_string(root().join("fuzz/seeds/fio_json/2.1")).unwrap();
    let mut files = Vec::new();
    for (directory, faster) in [("old", 0), ("today", 500)] {
        fs::create_dir(bench.path(directory)).unwrap();
        for (name, rate) in [("ext4", 26_000), ("xfs", 25_000)] {
            for repetition in 1..=6 {
                let file = format!("{directory}/{name}-{repetition}.json");
                let rate = format!("\"iops\" : {}", rate + faster + repetition);
                fs::write(bench.path(&file), seed.replace("\"iops\" : 26214.40", &rate)).unwrap();
                files.push(file);
            }
        }
    }
    let seed = fs::read_to_string(root().join("fuzz/seeds/printed/sysbench-1.1")).unwrap();
    for (name, rate) in [("ext4", 2000), ("xfs", 1900)] {
        for repetition in 1..=6 {
            let file = format!("{name}-{repetition}.txt");
            let rate = format!("IOPS={}.00 8.00", rate + repetition);
            fs::write(bench.path(&file), seed.replace("IOPS=2048.00 8.00", &rate)).unwrap();
            files.push(file);
        }
    }
    let mut lines: Vec<String> =
        blocks("other-benchmarks.md", "sh").iter().flat_map(|block| lines(block)).collect();
    // Command lines of other programs have another test.
    lines.retain(|line| !line.starts_with("fslab iozone "));
    assert_eq!(lines.len(), 6, "{lines:?}");
    let mut outputs = Vec::new();
    for line in &lines {
        let words = model::words::split(line).unwrap().remove(0);
        let words = words.iter().skip(1).flat_map(|word| match word.split_once('*') {
            Some((start, end)) => {
                let is_own = |file: &&String| file.starts_with(start) && file.ends_with(end);
                files.iter().filter(is_own).cloned().collect()
            }
            None => vec![word.clone()],
        });
        let words: Vec<String> = words.collect();
        outputs.push(bench.ends(0, &words.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    assert!(outputs[0].stderr.contains("12 records of fio-2.1.11"), "{}", outputs[0].stderr);
    let report = &outputs[1].stdout;
    for text in ["not measured by fslab", "ext4", "xfs", "Trust: poor. Cause: imported"] {
        assert!(report.contains(text), "{text} is missing from\n{report}");
    }
    let of_sysbench = &outputs[5].stdout;
    for text in ["imported from sysbench 1.1.0", "ext4", "xfs", "read   MiB/s"] {
        assert!(of_sysbench.contains(text), "{text} is missing from\n{of_sysbench}");
    }
    let compared = &outputs[3].stdout;
    for text in ["B vs. A: conditions not recorded", "imported from fio-2.1.11", "stated.kernel"] {
        assert!(compared.contains(text), "{text} is missing from\n{compared}");
    }
    for text in ["improved", "regressed", "▲", "▼"] {
        assert!(!compared.contains(text), "{text} is in\n{compared}");
    }
}

/// Command lines of other programs, with small sizes and short times.
#[test]
fn command_lines_of_other_programs_in_guides_run() {
    let mut count = 0;
    for guide in ["bonnie.md", "file-server.md", "other-benchmarks.md"] {
        let bench = Bench::new();
        fs::create_dir(bench.path("data")).unwrap();
        let load = "Deltree \"/clients/client1\" 0x0\nMkdir \"/clients\" 0x0\n\
                    NTCreateX \"/clients/client1\" 0x1 2 1 0x0\nClose 1 0x0\n\
                    NTCreateX \"/clients/client1/a\" 0x0 2 2 0x0\n\
                    WriteX 2 0 4096 4096 0x0\nClose 2 0x0\n";
        fs::write(bench.path("client.txt"), load).unwrap();
        let all = blocks(guide, "sh").iter().flat_map(|block| lines(block)).collect::<Vec<_>>();
        for line in all {
            let line = line.split(['#', '>']).next().unwrap();
            let words: Vec<&str> = line.split_whitespace().skip(1).collect();
            if !["bonnie++", "dbench", "iozone"].contains(&words[0]) {
                continue;
            }
            count += 1;
            let small = |word: &&str| match *word {
                "64m" => "128k".to_owned(),
                "16g" | "256m" | "1g" => "2m".into(),
                "64" | "16" if words[0] == "bonnie++" => "1".into(),
                "60" => "1".into(),
                word => word.replace("/srv", "data"),
            };
            let mut words: Vec<String> = words.iter().map(small).collect();
            match words[0].as_str() {
                "bonnie++" => words.extend(["-r", "0", "-u", &user()].map(str::to_owned)),
                "dbench" if !words.iter().any(|word| word == "-c" || word == "--fslab-office") => {
                    words.push("--fslab-office".into());
                }
                _ => {}
            }
            let output = bench.ends(0, &words.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(output.stdout.contains("fslab"), "{line}");
        }
        assert_eq!(fs::read_dir(bench.path("data")).unwrap().count(), 0);
    }
    assert_eq!(count, 9);
}

/// Number of the own user.
fn user() -> String {
    rustix::process::geteuid().as_raw().to_string()
}

/// Lines of a block that call fslab.
fn lines(block: &str) -> Vec<String> {
    block.lines().filter(|line| line.starts_with("fslab ")).map(str::to_owned).collect()
}

#[test]
fn the_guide_to_recordings_is_valid() {
    let bench = Bench::new();
    for directory in ["data", "mail"] {
        fs::create_dir(bench.path(directory)).unwrap();
    }
    let script = blocks("record-and-replay.md", "text").remove(0);
    fs::write(bench.path("deliver.sh"), script).unwrap();
    let lines = blocks("record-and-replay.md", "sh").join("\n");
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    for line in lines.lines() {
        let words = model::words::split(line).unwrap().remove(0);
        let words = words.iter().skip(1).map(|word| match word.as_str() {
            "/mnt/x" => "data",
            "200" => "20",
            word => word,
        });
        let output = bench.ends(0, &words.collect::<Vec<_>>());
        if line.contains("bench") {
            assert!(output.stdout.contains("elapsed") && output.stdout.contains("rename"));
            assert!(!output.stdout.contains("unexpected-status"), "{}", output.stdout);
        }
    }
    let plan = blocks("record-and-replay.md", "toml").remove(0);
    bench.ends(0, &["show", &bench.plan(&plan)]);
}

#[test]
fn plans_in_the_guide_to_workloads_that_run_together_are_valid() {
    let bench = Bench::new();
    let plans = blocks("side-by-side.md", "toml");
    assert_eq!(plans.len(), 3);
    for plan in plans {
        let shown = bench.ends(0, &["show", &bench.plan(&plan)]).stdout;
        assert!(shown.contains(" (background): "), "{shown}");
        assert!(shown.contains(" alone"), "{shown}");
    }
}
