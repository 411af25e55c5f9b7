//! Tests of workloads that run together.

use super::*;

const LINES: Kind = Kind::Lines { takes: "members", read: |text| Ok(text.to_owned()) };
const TEXT: Kind = Kind::Text { takes: "a name", read: |text| Ok(text.to_owned()) };

const fn parameter(name: &'static str, kind: Kind, default: &'static str) -> ParameterSpec {
    ParameterSpec { name, kind, default, doc: "For tests." }
}

const fn suite(name: &'static str, parameters: &'static [ParameterSpec]) -> SuiteSpec {
    SuiteSpec { name, title: "For tests.", source: "here", notes: "", clients: None, parameters }
}

const TOGETHER: SuiteSpec = suite(
    crate::plan::together::SUITE,
    &[
        parameter("members", LINES, ""),
        parameter("only", TEXT, ""),
        parameter("runtime", Kind::Time, "30s"),
        parameter("ramp_time", Kind::Time, "5s"),
    ],
);
const ACTIONS: SuiteSpec = suite(
    crate::plan::together::ACTIONS,
    &[
        parameter("action", Kind::Word(&["trim", "sync"]), "sync"),
        parameter("every", Kind::Time, "0s"),
    ],
);

fn parse(plan: &str) -> Result<Vec<crate::matrix::LabeledCell>, PlanError> {
    let suites = [&SUITE, &TOGETHER, &ACTIONS];
    let vocabulary = KnownNames { suites: &suites, ..*VOCABULARY };
    let refine = |point: WorkloadParameters| match point.suite.as_str() {
        "toy" => small(point),
        _ => Ok(vec![point]),
    };
    Plan::parse(plan, vocabulary)?.cells(Scale::ONE, &refine)
}

fn plan(entry: &str) -> String {
    axes(&format!("filesystem = [\"ext4\"]\n[[axes.workload]]\n{entry}"))
}

fn labels(entry: &str) -> Vec<String> {
    parse(&plan(entry)).unwrap().into_iter().map(|cell| cell.label).collect()
}

fn problem(entry: &str) -> String {
    let plan = plan(entry);
    let error = parse(&plan).unwrap_err();
    let (line, column) = error.position(&plan);
    let hint = error.hint.clone().unwrap_or_default();
    let text = format!("{line}:{column} [{}] {error}\n  {hint}", &plan[error.span.clone()]);
    format!("{}\n", text.trim_end())
}

const LOG: &str = r#"{ name = "log", suite = "toy" }"#;
const BULK: &str = r#"{ name = "bulk", role = "background", suite = "toy", block_size = "4KiB" }"#;

#[test]
fn each_measured_member_is_also_a_cell_alone() {
    let both = format!("together = [{LOG}, {BULK}]");
    assert_eq!(labels(&both), ["log with bulk", "log alone"]);
    assert_eq!(labels(&format!("{both}\nalone = \"none\"")), ["log with bulk"]);
    let all = labels(&format!("{both}\nalone = \"all\""));
    assert_eq!(all, ["log with bulk", "log alone", "bulk alone"]);
    let trims = r#"{ name = "trims", action = "trim", every = "1s" }"#;
    let three = labels(&format!("together = [{LOG}, {BULK}, {trims}]"));
    assert_eq!(three, ["log with bulk, trims", "log alone"]);
}

#[test]
fn the_cells_of_a_group_differ_in_the_member_that_runs_only() {
    let cells = parse(&plan(&format!("together = [{LOG}, {BULK}]\nruntime = \"7s\""))).unwrap();
    let [group, alone] = &cells[..] else { panic!("{cells:?}") };
    let own = |cell: &crate::matrix::LabeledCell| cell.cell.workload.parameters.clone();
    let (mut one, mut other) = (own(group), own(alone));
    assert_eq!(one.remove("only"), Some(Value::Text(String::new())));
    assert_eq!(other.remove("only"), Some(Value::Text("log".into())));
    assert_eq!(one, other);
    assert_eq!(one["runtime"].to_string(), "7s");
    let members = one["members"].to_string();
    let heads = crate::plan::together::heads(&members);
    let bulk = crate::plan::together::Head {
        name: "bulk".into(),
        part: crate::phase::Part::Background,
        suite: "toy".into(),
    };
    assert_eq!(heads[1], bulk);
    assert!(members.contains("name=bulk role=background start_delay=0s suite=toy block_size=4KiB"));
}

#[test]
fn lists_of_values_of_members_are_swept() {
    let swept = BULK.replace("\"4KiB\"", "[\"4KiB\", \"8KiB\"]");
    let found = labels(&format!("together = [{LOG}, {swept}]"));
    assert_eq!(
        found,
        [
            "log with bulk bulk.block_size=4KiB",
            "log alone bulk.block_size=4KiB",
            "log with bulk bulk.block_size=8KiB",
            "log alone bulk.block_size=8KiB"
        ]
    );
}

#[test]
fn errors_in_members_have_a_position_and_a_hint() {
    let problems = [
        format!("together = [{LOG}]"),
        "together = []".into(),
        format!("together = [{LOG}, {LOG}]"),
        format!("together = [{BULK}, {}]", BULK.replace("bulk", "other")),
        format!("together = [{LOG}, {{ name = \"bulk\", suite = \"tpy\" }}]"),
        format!("together = [{LOG}, {{ suite = \"toy\" }}]"),
        format!("together = [{LOG}, {{ name = \"a b\", suite = \"toy\" }}]"),
        format!("together = [{LOG}, {}]", BULK.replace("background", "load")),
        format!("together = [{LOG}, {}]", BULK.replace("block_size", "block_siz")),
        format!("together = [{LOG}, {}]", BULK.replace("\"4KiB\"", "\"2MiB\"")),
        format!("together = [{LOG}, {{ name = \"t\", action = \"trum\" }}]"),
        format!("together = [{LOG}, {{ name = \"x\", together = [] }}]"),
        format!("together = [{LOG}, {}]", BULK.replace("suite", "read_ahead = \"4KiB\", suite")),
        format!("together = [{LOG}, {BULK}]\nrun_time = \"1s\""),
        format!("together = [{LOG}, {BULK}]\nalone = \"some\""),
        "suite = \"together\"".into(),
    ];
    let problems: String = problems.iter().map(|entry| problem(entry)).collect();
    expect![[r#"
        6:12 [[{ name = "log", suite = "toy" }]] `together` has only one member
          add a second member, or write the member as a workload without `together`
        6:12 [[]] `together` has no members
          add a second member, or write the member as a workload without `together`
        6:55 ["log"] two members have the name `log`
          use another name
        6:12 [[{ name = "bulk", role = "background", suite = "toy", block_size = "4KiB" }, { name = "other", role = "background", suite = "toy", block_size = "4KiB" }]] no member has the role `measured`
          remove `role` from the member to measure
        6:71 ["tpy"] unknown suite `tpy`
          did you mean `toy`?
        6:46 [{ suite = "toy" }] this member has no `name`
          add name = "log", or another name
        6:55 ["a b"] `a b` is not a name of a member
          use letters, digits, `-`, and `_`
        6:70 ["load"] unknown role `load`
          use measured, background
        6:99 [block_siz] suite `toy` has no parameter `block_siz`
          did you mean `block_size`?
        6:46 [{ name = "bulk", role = "background", suite = "toy", block_size = "2MiB" }] member `bulk`: the block_size is larger than the file
        6:69 ["trum"] `trum` is not one of trim, sync
          did you mean `trim`?
        6:46 [{ name = "x", together = [] }] a member cannot have members
          write its members in this list
        6:84 [read_ahead] all members share `read_ahead`, a setting of the machine
          write it next to `together`
        7:1 [run_time] workloads that run together have no key `run_time`
          did you mean `runtime`?
        7:9 ["some"] unknown value `some` of `alone`
          use measured, none, all
        6:9 ["together"] `together` is not a suite of a single workload
          write together = [{ name = "…", suite = "…" }, …]
    "#]].assert_eq(&problems);
}
