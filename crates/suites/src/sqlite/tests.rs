use super::*;

fn point(journal: &str, synchronous: &str) -> WorkloadParameters {
    let mut point = SPEC.defaults();
    for (name, text) in [("journal", journal), ("synchronous", synchronous)] {
        let value = SPEC.parameter(name).unwrap().kind.read(text).unwrap();
        point.parameters.insert(name.to_owned(), value);
    }
    point
}

#[test]
fn transactions_that_are_not_synced_are_not_commits() {
    let primary = |journal, synchronous| {
        let phases = phases(&point(journal, synchronous), 1);
        assert_eq!(phases[0].role, Role::Prepare);
        phases[1].primary().name()
    };
    for mode in JournalMode::ALL {
        assert_eq!(primary(mode.name(), "full"), "commit_rate");
    }
    assert_eq!(primary("delete", "normal"), "commit_rate");
    assert_eq!(primary("wal", "normal"), "ops_rate");
}

#[test]
fn the_phases_use_one_database() {
    let phases = phases(&point("persist", "extra"), 5);
    let [Work::Sqlite(fill), Work::Sqlite(update)] = [&phases[0].work, &phases[1].work] else {
        panic!("both phases are SQLite");
    };
    assert_eq!((fill.updates, update.updates), (0, 1000));
    assert_eq!(Sqlite { updates: 0, ..update.clone() }, *fill);
    assert_eq!((fill.journal, fill.seed), (JournalMode::Persist, 5));
}
