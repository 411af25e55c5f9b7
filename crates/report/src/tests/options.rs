//! Reports of runs with varied options of mkfs and mount.

use crate::view::FindingKind;
use expect_test::expect;
use model::{Value, metric::Better, record::CellRecord};

use super::*;
use crate::{fixture, view::answer::Answer};

/// ext4 with four options of two values, of which `mount.sync` divides the speed of writes by
/// three, and no other has an effect. `fraction` keeps the half of a design of resolution IV.
fn record(repetitions: u32, fraction: bool) -> RunRecord {
    let names = ["mount.sync", "mount.noatime", "mount.barrier", "mkfs.-I"];
    let base = fixture::with_records(&[Bytes::mib(1)], "options");
    let mut record = RunRecord { cells: Vec::new(), trials: Vec::new(), ..base.clone() };
    let mut rng = fastrand::Rng::with_seed(7);
    for bits in 0_u32..16 {
        if fraction && bits.count_ones() % 2 == 1 {
            continue;
        }
        let mut cell: CellRecord = base.cells[0].clone();
        cell.phases.retain(|phase| ["write", "read"].contains(&phase.name.as_str()));
        for (at, name) in names.iter().enumerate() {
            let value = bits >> at & 1 == 1;
            cell.cell.options.insert((*name).to_owned(), Value::Flag(value));
            cell.label += &format!(" {name}={value}");
        }
        cell.id = cell.cell.id();
        let own = base.trials.iter().filter(|it| it.cell == 0 && it.repetition < repetitions);
        for mut trial in own.cloned() {
            trial.cell = record.cells.len();
            for sample in &mut trial.samples {
                let noise = 1.0 + 0.03 * (rng.f64() - 0.5);
                let sync = if bits & 1 == 1 && sample.phase == "write" { 3.0 } else { 1.0 };
                sample.value *= match sample.metric.spec().better {
                    Better::Higher => noise / sync,
                    Better::Lower => noise * sync,
                    Better::Neither => 1.0,
                };
            }
            record.trials.push(trial);
        }
        record.cells.push(cell);
    }
    record.trials.sort_by_key(|trial| (trial.repetition, trial.cell));
    record
}

fn findings(view: &View) -> String {
    let all = view.findings.by_point.iter().flat_map(|point| &point.findings);
    let texts: Vec<&str> =
        all.filter(|it| it.kind == FindingKind::C24).map(|it| it.text.as_str()).collect();
    texts.join("\n")
}

#[test]
fn the_first_page_begins_with_the_effect_of_an_option() {
    let answer = Answer::new(&View::new(&record(3, false)));
    expect!["mount.sync changed durable throughput on write, iozone block_size=1MiB: true -66.8 % [-66.9 to -66.6 %] relative to false"].assert_eq(&answer.headline);
    assert!(answer.findings[0].text.starts_with("mount.sync changed"), "{:?}", answer.findings);
}

#[test]
fn an_effect_is_found_and_no_other() {
    let view = View::new(&record(3, false));
    expect![[r#"
        mount.sync changed durable throughput on write, iozone block_size=1MiB: true -66.8 % [-66.9 to -66.6 %] relative to false (p < 0.001, Holm-adjusted over 10 terms; n = 48).
        mkfs.-I, mount.barrier, and mount.noatime do not matter on write, iozone block_size=1MiB: 95 % intervals of the effects within ±5 % (n = 48).
        mkfs.-I, mount.barrier, mount.noatime, and mount.sync do not matter on read, iozone block_size=1MiB: 95 % intervals of the effects within ±5 % (n = 48)."#]].assert_eq(&findings(&view));
    let own = &view.interactions[0];
    assert!(own.charts.is_empty(), "no chart per combination");
    let significant: Vec<&str> =
        own.effects.iter().filter(|it| it.is_significant()).map(|it| it.name.as_str()).collect();
    assert_eq!(significant, ["mount.sync: false to true"]);
    let effects = own.tables.iter().find(|table| table.id.ends_with("--effects")).unwrap();
    assert_eq!(effects.rows.len(), 4);
    assert!(view.facts.method.iter().any(|text| text.starts_with("Options: ")));
    let html = html(&view, &[]);
    assert!(html.contains(&format!("{}-effects", own.id)), "the chart of effects");
}

#[test]
fn a_fraction_is_called_a_screening_design() {
    let view = View::new(&record(3, true));
    let texts = findings(&view);
    assert!(texts.contains("mount.sync changed"), "{texts}");
    assert!(texts.contains("screening design"), "{texts}");
    let effects = view.interactions[0].tables.iter().find(|it| it.id.ends_with("--effects"));
    assert!(effects.unwrap().caption.iter().any(|text| text.contains("full design")));
}

#[test]
fn single_repetitions_of_many_combinations_have_findings() {
    let view = View::new(&record(1, false));
    let texts = findings(&view);
    assert!(texts.contains("mount.sync changed"), "{texts}");
}
