//! Devices that must not be formatted, on the disks of a virtual machine.
//!
//! The machine has device mapper, md, LVM, and bcache, regardless of the host kernel. Its script
//! prepares the disks for a case and runs `fslab run` on the target. The host compares the contents
//! of all disks before and after.

use std::collections::BTreeSet;

use super::{
    Section, selected,
    vm::{self, Vm, Wanted},
};
use crate::support::{on_path, skipped};
use cases::{CASES, Case, Expected};

mod cases;

const SCRIPT: &str = include_str!("targets/run.sh");
/// Programs of the script and of fslab.
const PROGRAMS: [&str; 10] = [
    "mkfs.ext2",
    "e2fsck",
    "dumpe2fs",
    "tune2fs",
    "blockdev",
    "losetup",
    "dmsetup",
    "btrfs",
    "umount",
    "mount",
];
const MODULES: [&str; 2] = ["ext4", "loop"];
const IF_THERE: [&str; 20] = [
    "dm_mod",
    "dm_crypt",
    "dm_thin_pool",
    "dm_multipath",
    "dm_round_robin",
    "md_mod",
    "raid1",
    "btrfs",
    "bcache",
    "sd_mod",
    "sg",
    "scsi_debug",
    "algif_hash",
    "algif_skcipher",
    "xts",
    "cbc",
    "essiv",
    "configfs",
    "target_core_mod",
    "target_core_file",
];
const DISKS: [u64; 2] = [24 << 20; 2];
/// Exit statuses of rejections: 2 if the plan does not fit the device, 3 if the guard rejects the
/// device.
const REFUSED: [&str; 2] = ["2", "3"];

/// Outcome of a case.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    /// The kernel or a program of the machine could not prepare the disks.
    Unprepared(String),
    Failed(String),
}

#[test]
fn no_dangerous_target_is_written_to() {
    const NAME: &str = "campaign::targets::no_dangerous_target_is_written_to";
    if let Some(missing) = vm::missing() {
        return skipped(NAME, missing);
    }
    let whole = super::tries(0, 1) == 1;
    let cases: Vec<&Case> =
        CASES.iter().filter(|case| (case.short || whole) && selected(case.name)).collect();
    let lacks = |case: &Case| case.programs.iter().find(|program| !on_path(program)).copied();
    let mut section = section();
    let mut failed = Vec::new();
    let possible: Vec<_> = cases.iter().copied().filter(|case| lacks(case).is_none()).collect();
    let outcomes = run(&possible);
    for case in &cases {
        let outcome = possible.iter().position(|other| std::ptr::eq(*other, *case));
        match outcome.map(|place| &outcomes[place]) {
            None => section.skipped(case.name, lacks(case).unwrap()),
            Some(Outcome::Unprepared(why)) => {
                section.skipped(case.name, &format!("a feature of the virtual machine ({why})"));
            }
            Some(outcome) => {
                let (expected, text) = match (case.expected, outcome) {
                    (Expected::Refused(hint), _) => ("refused", format!("`{hint}`")),
                    (Expected::Measured, _) => ("measured", String::new()),
                };
                let passed = *outcome == Outcome::Passed;
                let destroy = if case.destroy.is_empty() { "" } else { "yes" };
                let result = if passed { "passed" } else { "FAILED" };
                section.row([case.name, destroy, expected, &text, result]);
                if let Outcome::Failed(why) = outcome {
                    failed.push(format!("{}: {why}", case.name));
                }
            }
        }
    }
    section.note(format!("{} cases, {} failures.", possible.len(), failed.len()));
    section.write();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

fn section() -> Section {
    Section::new(
        3,
        "targets",
        "Dangerous targets",
        "\
The disks of a virtual machine are prepared with the tools of the host. A target that is *refused*
passes if `fslab run` ends with exit status 2 or 3, its message contains the hint, and no byte of
any disk has changed. In rows with *yes*, `--overwrite-device` named the target by its serial
number, and fslab has to refuse the target nevertheless. The targets that have to be *measured*
verify that fslab does not refuse everything, and show what it does not detect.",
        &["target", "`--overwrite-device`", "expected", "hint", "result"],
    )
}

/// Runs the cases in one machine, and returns an outcome per case.
fn run(cases: &[&Case]) -> Vec<Outcome> {
    let programs: BTreeSet<&str> =
        cases.iter().flat_map(|case| case.programs).chain(&PROGRAMS).copied().collect();
    let mut programs: Vec<String> = programs.into_iter().map(str::to_owned).collect();
    programs.push(env!("CARGO_BIN_EXE_fslab").into());
    let mut script = SCRIPT.to_owned();
    for (number, Case { script: prepare, target, destroy, .. }) in cases.iter().enumerate() {
        script += &format!("prepare() {{\n:\n{prepare}\n}}\ntry {number} '{target}' '{destroy}'\n");
    }
    script += "echo @end\npoweroff -f\n";
    let mut machine = Vm::boot(&Wanted {
        programs: &programs,
        modules: &MODULES,
        if_there: &IF_THERE,
        disks: &DISKS,
        arguments: &[],
        script: &script,
    });
    assert_eq!(machine.missing, Vec::<String>::new());
    let mut outcomes = Vec::new();
    while outcomes.len() < cases.len() {
        let case = cases[outcomes.len()];
        outcomes.push(outcome(&mut machine, case));
    }
    machine.end();
    outcomes
}

/// Reads the output of the machine for one case.
fn outcome(machine: &mut Vm, case: &Case) -> Outcome {
    let (mut before, mut output) = (Vec::new(), String::new());
    loop {
        let Some(line) = machine.line() else {
            panic!("the machine ended at “{}”:\n{}", case.name, machine.log);
        };
        if let Some(text) = line.strip_prefix("| ") {
            output += text;
            output.push('\n');
            continue;
        }
        let mut words = line.splitn(3, ' ');
        match words.next() {
            Some("@unprepared") => {
                return Outcome::Unprepared(words.nth(1).unwrap_or_default().to_owned());
            }
            Some("@before") => {
                before = machine.hashes();
                machine.go_on();
            }
            Some("@after") => {
                let changed = machine.hashes() != before;
                machine.go_on();
                return judged(case, words.nth(1).unwrap_or_default(), changed, &output);
            }
            Some(_) | None => {}
        }
    }
}

fn judged(case: &Case, status: &str, changed: bool, output: &str) -> Outcome {
    let passed = match case.expected {
        Expected::Refused(hint) => {
            let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
            REFUSED.contains(&status) && !changed && output.contains(hint)
        }
        Expected::Measured => status == "0" && changed,
    };
    if passed {
        return Outcome::Passed;
    }
    let changed = if changed { "a disk has changed" } else { "no disk has changed" };
    Outcome::Failed(format!("exit status {status}, {changed}:\n{output}"))
}

#[test]
fn a_case_passes_if_it_is_rejected_with_a_hint_and_no_write() {
    let case = |expected| Case {
        name: "",
        short: true,
        programs: &[],
        script: "",
        target: "$a",
        destroy: "",
        expected,
    };
    let refused = case(Expected::Refused("unmount it"));
    assert_eq!(
        judged(&refused, "3", false, "fslab: vda is mounted;\n  unmount\nit"),
        Outcome::Passed
    );
    for (status, changed, output) in
        [("0", false, "unmount it"), ("3", true, "unmount it"), ("3", false, "no")]
    {
        assert!(matches!(judged(&refused, status, changed, output), Outcome::Failed(_)));
    }
    let measured = case(Expected::Measured);
    assert_eq!(judged(&measured, "0", true, ""), Outcome::Passed);
    assert!(matches!(judged(&measured, "0", false, ""), Outcome::Failed(_)));
}
