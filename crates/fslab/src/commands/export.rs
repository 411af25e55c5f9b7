//! `fslab export`: workloads as job files of fio.

use std::{collections::BTreeSet, fs};

use anyhow::Context;
use model::{WorkloadParameters, phase::Role};

use crate::{
    cli::Export,
    exit::{Exit, Failure},
    output,
    plans::{self, ResolvedPlan},
};

/// Job file of a workload.
struct JobFile {
    name: String,
    text: String,
}

pub(super) fn run(arguments: &Export) -> Result<Exit, Failure> {
    let mut changes = arguments.changes.clone();
    let axes = &mut changes.axes;
    if axes.image.is_none() && axes.device.is_empty() && plans::are_workloads(&arguments.plan) {
        // The jobs do not depend on the directory.
        axes.directory.get_or_insert_with(|| ".".into());
    }
    let catalog = super::catalog(changes.catalog.as_deref())?;
    let chosen = ResolvedPlan::new(&arguments.plan, &changes, &catalog)?;
    let (files, impossible) = job_files(&chosen);
    if files.is_empty() {
        return Err(Failure::usage(anyhow::anyhow!(
            "no workload of {} can be a fio job: {}",
            chosen.name,
            impossible.join("; ")
        )));
    }
    match &arguments.output {
        Some(directory) => {
            fs::create_dir_all(directory)
                .with_context(|| format!("creating {}", directory.display()))?;
            for file in &files {
                let path = directory.join(format!("{}.fio", file.name));
                if path.symlink_metadata().is_ok() {
                    let shown = path.display();
                    return Err(Failure::usage(anyhow::anyhow!(
                        "{shown} exists already; use another directory with -o"
                    )));
                }
                sys::whole::write(&path, file.text.as_bytes())
                    .with_context(|| format!("writing {}", path.display()))?;
                output::message(&path.display().to_string());
            }
        }
        None => {
            let texts: Vec<&str> = files.iter().map(|file| file.text.as_str()).collect();
            output::result(&texts.join("\n"))?;
        }
    }
    for reason in &impossible {
        output::message(&format!("not exported: {reason}"));
    }
    Ok(if impossible.is_empty() { Exit::Success } else { Exit::Incomplete })
}

/// Job files of the workloads, and the reasons why there is none for others.
fn job_files(chosen: &ResolvedPlan) -> (Vec<JobFile>, Vec<String>) {
    let (mut files, mut impossible) = (Vec::new(), Vec::new());
    let mut seen: Vec<&WorkloadParameters> = Vec::new();
    let mut names = BTreeSet::new();
    for planned in &chosen.cells {
        let (workload, label) = (&planned.cell.workload, &planned.label);
        if seen.contains(&workload) {
            continue;
        }
        seen.push(workload);
        match job_file(workload, label) {
            Ok(text) => {
                let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
                let base: String = label.chars().map(plain).collect();
                let numbered = (2..).map(|number| format!("{base}-{number}"));
                let name = std::iter::once(base.clone()).chain(numbered);
                let name = name.into_iter().find(|name| names.insert(name.clone()));
                files.push(JobFile { name: name.unwrap_or(base), text });
            }
            Err(reason) => impossible.push(format!("{label}: {reason}")),
        }
    }
    (files, impossible)
}

fn job_file(workload: &WorkloadParameters, label: &str) -> Result<String, String> {
    if workload.suite == "replay" {
        return Err("`fslab trace iolog` writes its recording as an iolog of fio".to_owned());
    }
    let suite = suites::find(&workload.suite).ok_or_else(|| "unknown suite".to_owned())?;
    let phases = (suite.phases)(workload, 1);
    let measured = phases.iter().filter(|phase| phase.role == Role::Measure).count();
    let program = format!("fslab {}", env!("CARGO_PKG_VERSION"));
    let head = format!(
        "; {label}, exported by {program}: {measured} measured {}\n; Run fio in the directory to \
         measure.\n",
        if measured == 1 { "phase" } else { "phases" }
    );
    Ok(head + &suites::fio_jobs(&phases)?)
}
