//! Runs whose plan varies options of mkfs and mount.

use model::{Value, record::Outcome};

use crate::support::{Bench, needs_root};

fn plan(bench: &Bench, top: &str, axes: &str) -> String {
    bench.plan(&format!(
        "{top}\nrepetitions = 3\naa_control = \"none\"\nseed = 1\n[storage]\nimage_size = \
         \"64MiB\"\nimage_directory = \"{}\"\n[axes]\nfilesystem = [\"ext4\"]\n{axes}\nworkload = \
         [{{ suite = \"iozone\", file_size = \"1MiB\", tests = [\"write\"] }}]\n",
        bench.path(".").display()
    ))
}

const TWO: &str = "mount.sync = [false, true]\nmkfs.-I = [256, 512]";

#[test]
fn options_reach_mkfs_and_mount() {
    if !needs_root("options_reach_mkfs_and_mount") {
        return;
    }
    let bench = Bench::new();
    let plan = plan(&bench, "", TWO);
    let shown = bench.ends(0, &["show", &plan]).stdout;
    for line in ["mount.sync: false, true", "mkfs.-I: 256, 512", "4 of 4 combinations"] {
        assert!(shown.contains(line), "{line} in\n{shown}");
    }
    bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    assert_eq!((record.cells.len(), record.trials.len()), (4, 12));
    for trial in &record.trials {
        assert_eq!(trial.outcome, Outcome::Measured);
        let options = &record.cells[trial.cell].cell.options;
        let mkfs = trial.actions.iter().find(|it| it.description.starts_with("mkfs.")).unwrap();
        let size = options["mkfs.-I"].to_string();
        assert!(mkfs.description.contains(&format!("-I {size}")), "{}", mkfs.description);
        let fact =
            trial.environment.get("mount.options").or(record.environment.get("mount.options"));
        let sync = fact.unwrap_or_default().split(',').any(|option| option == "sync");
        assert_eq!(Value::Flag(sync), options["mount.sync"], "{fact:?}");
    }
    let text = bench.ends(0, &["report", "run.fslab", "--detail"]).stdout;
    assert!(text.contains("mount.sync: false to true"), "{text}");
    let csv = bench.ends(0, &["report", "run.fslab", "--format", "csv"]).stdout;
    assert!(csv.contains("mount.sync=true"), "{csv}");
    bench.has_nothing_to_undo();
}

#[test]
fn aliases_of_a_screening_design_are_shown() {
    let bench = Bench::new();
    let six: String = ["a", "b", "c", "d", "e", "f"]
        .map(|name| format!("mount.{name} = [false, true]\n"))
        .concat();
    let plan = plan(&bench, "design = \"screen\"", &six);
    let shown = bench.ends(0, &["show", &plan]).stdout;
    assert!(shown.contains("design      16 of 64 combinations of options"), "{shown}");
    assert!(shown.contains("aliased     mount.a × mount.b = "), "{shown}");
}

#[test]
fn a_rejected_option_fails_its_cells_only() {
    if !needs_root("a_rejected_option_fails_its_cells_only") {
        return;
    }
    let bench = Bench::new();
    let plan = plan(&bench, "", "mount.absent_option = [false, true]");
    bench.run(&["run", &plan, "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let measured = |cell: usize| {
        let own = record.trials.iter().filter(|trial| trial.cell == cell);
        own.filter(|trial| trial.outcome == Outcome::Measured).count()
    };
    assert_eq!([measured(0), measured(1)], [3, 0]);
    bench.has_nothing_to_undo();
}
