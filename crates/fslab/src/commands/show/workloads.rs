//! Workloads of a plan: parameters, phases, and programs.

use std::collections::BTreeSet;

use model::{
    Value, WorkloadParameters,
    phase::{Role, Work},
    plan::together::{MEMBERS, ONLY, SUITE},
    record::CellRecord,
};
use suites::together::Member;

use crate::output;

/// Parameters of each workload that differ from the defaults, and the phases of one trial.
pub(super) fn workloads(cells: &[CellRecord], lines: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for record in cells {
        let point = &record.cell.workload;
        let defaults = suites::find(&point.suite).map(|suite| suite.spec.defaults());
        let own = point.parameters.iter().filter(|(name, value)| {
            defaults.as_ref().is_none_or(|point| point.parameters.get(*name) != Some(value))
        });
        // Programs are listed below.
        let programs = programs(point);
        let long = |value: &Value| {
            let Value::Text(text) = value else { return false };
            text.contains(char::is_whitespace)
        };
        let own = own.filter(|(_, value)| programs.is_empty() || !long(value));
        let members_only = |name: &str| name != MEMBERS && name != ONLY;
        let own = own.filter(|(name, _)| point.suite != SUITE || members_only(name));
        let own: Vec<_> = own.map(|(name, value)| format!("{name}={value}")).collect();
        let phases: Vec<_> = record.phases.iter().map(|phase| phase.name.as_str()).collect();
        let suite = match point.suite == SUITE {
            true => format!("{}: {}", record.label, point.suite),
            false => point.suite.clone(),
        };
        let mut entry = wrapped(&format!("{suite} {}", own.join(" ")), 0);
        entry.extend(wrapped(&phases.join(", "), 2));
        entry.extend(members(point));
        entry.extend(programs);
        // A workload is listed once for all filesystems, schedulers, and settings.
        if seen.insert(entry.clone()) {
            lines.extend(entry);
        }
    }
    lines.push(String::new());
}

/// Members of workloads that run together: role, suite, and parameters that differ from the
/// defaults of the suite.
fn members(point: &WorkloadParameters) -> Vec<String> {
    let only = suites::together::only(point);
    let line = |member: &Member| {
        let runs = only.is_none_or(|only| only == member.name);
        let role = if runs { member.part.name() } else { "prepared only" };
        let defaults = suites::find(&member.workload.suite).map(|suite| suite.spec.defaults());
        let differs = |(name, value): &(&String, &Value)| {
            defaults.as_ref().and_then(|it| it.parameters.get(*name)) != Some(value)
        };
        let own = member.workload.parameters.iter().filter(differs);
        let own = own.map(|(name, value)| format!(" {name}={value}"));
        let delay = match member.start_delay.0 {
            0 => String::new(),
            _ => format!(" start_delay={}", member.start_delay),
        };
        let own: String = std::iter::once(delay).chain(own).collect();
        wrapped(&format!("{} ({role}): {}{own}", member.name, member.workload.suite), 2)
    };
    suites::together::members(point).iter().flat_map(line).collect()
}

/// Programs of a workload as they will be run, with their user and their limits.
fn programs(point: &WorkloadParameters) -> Vec<String> {
    let phases = suites::find(&point.suite).map(|suite| (suite.phases)(point, 0));
    let mut lines = Vec::new();
    for phase in phases.unwrap_or_default() {
        let Work::Command(command) = &phase.work else { continue };
        lines.extend(command.programs().map(|it| format!("  $ {}", model::words::join(it))));
        if phase.role == Role::Measure {
            let user = match rig::programs::user(&command.user) {
                Ok(Some(user)) => format!("user {}", user.user),
                Ok(None) => "this user".into(),
                Err(why) => format!("an unknown user: {why}"),
            };
            let network = if command.network { "with" } else { "without" };
            lines.push(format!(
                "  The programs run as {user}, {network} the network. They can change all files \
                 of their user."
            ));
            if command.calls {
                lines.push(
                    "  The first repetition is followed by another one under the recorder, which \
                     counts file calls."
                        .to_owned(),
                );
            }
        }
    }
    lines
}

/// Text wrapped to the width of the terminal, at most 98 columns. Continuation lines are indented
/// by two more columns.
fn wrapped(text: &str, indent: usize) -> Vec<String> {
    let indents = [indent, indent + 2].map(|columns| " ".repeat(columns));
    report::wrap(text, output::width().min(98), &indents[0], &indents[1])
}
