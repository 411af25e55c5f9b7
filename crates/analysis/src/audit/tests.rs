#![expect(clippy::wildcard_enum_match_arm, reason = "a test picks one kind of finding")]

use proptest::prelude::*;

use super::{number::Fault, *};

fn at(levels: &[(&str, &str)]) -> Location {
    levels.iter().map(|(name, level)| ((*name).into(), (*level).into())).collect()
}

fn cell(levels: &[(&str, &str)], printed: &str) -> Cell {
    Cell { at: at(levels), printed: printed.into(), value: None }
}

fn layout() -> Layout {
    Layout {
        place: vec!["table".into()],
        statistic: None,
        mean: None,
        deviation: None,
        runs: None,
        repeats: vec![vec!["filesystem".into(), "record".into()]],
        better: Better::Higher,
    }
}

/// Reading of a text among neighbors with two places and thousands separators.
fn read(text: &str) -> (Vec<Fault>, Option<f64>) {
    let style = number::Style { decimals: Some(2), grouped: true, comma: false };
    let reading = number::read(text, &style);
    (reading.faults, reading.candidates.first().copied())
}

#[test]
fn numbers_are_compared_with_the_style_of_neighbors() {
    for (text, value) in [("1,234.50", 1234.5), (" 12.00 ", 12.0), ("-1,234,567.89", -1_234_567.89)]
    {
        assert_eq!(read(text), (vec![], Some(value)), "{text}");
    }
    let group = |digits| Fault::Group { digits };
    for (text, faults, value) in [
        ("4087.92", vec![Fault::NoSeparator], 4087.92),
        ("51,97.23", vec![group(2)], 5197.23),
        ("1,634,817,80", vec![Fault::CommaForPoint], 1_634_817.8),
        ("89.078.40", vec![Fault::PointForComma], 89_078.4),
        ("106,9992.0", vec![group(4), Fault::Decimals { found: 1, usual: 2 }], 106_999.2),
        ("12.5", vec![Fault::Decimals { found: 1, usual: 2 }], 12.5),
    ] {
        assert_eq!(read(text), (faults, Some(value)), "{text}");
    }
    for text in ["", "=1+1", "n/a", "NaN", "inf", "1 234", "١٢", "\u{1b}[31m1", ",", "."] {
        assert_eq!(read(text), (vec![Fault::NotANumber], None), "{text:?}");
    }
    assert_eq!(read("1e3"), (vec![], Some(1000.0)));
    // Plain numbers have no style that a number could deviate from.
    let style = number::style(["1", "2.5", "12345", "3.25"].into_iter());
    assert_eq!(style, number::Style::default());
    assert_eq!(number::read("12345", &style).faults, []);
}

#[test]
fn decimal_commas_and_thousands_points_are_read() {
    let candidates = |text: &str, neighbors: &[&str]| {
        let style = number::style(neighbors.iter().copied());
        number::read(text, &style)
    };
    let english = ["1,234.50", "7.25", "88.10"];
    let european = ["1.234,50", "7,25", "88,10"];
    let plain = ["1", "20", "300"];
    for (text, neighbors, values) in [
        ("1.234,50", &english, &[1234.5, 123_450.0][..]),
        ("1.234,50", &plain, &[1234.5, 123_450.0]),
        ("1.234.567,8", &plain, &[1_234_567.8, 12_345_678.0]),
        ("-1.234,50", &european, &[-1234.5]),
        ("1.234,567", &plain, &[1234.567, 1_234_567.0]),
        ("1.000.000", &plain, &[1_000_000.0, 1000.0]),
        ("1.000.000", &european, &[1_000_000.0]),
        ("89.078.400", &["1.125", "2.250", "3.500"], &[89_078.4, 89_078_400.0]),
        ("12,5", &plain, &[12.5, 125.0]),
        ("12,5", &european, &[12.5]),
        ("1.234", &european, &[1234.0, 1.234]),
        ("1,234", &european, &[1.234, 1234.0]),
    ] {
        let reading = candidates(text, neighbors);
        assert_eq!(reading.candidates, values, "{text} among {neighbors:?}");
        assert!(!reading.faults.is_empty(), "{text} among {neighbors:?} is result");
    }
    for (text, neighbors, value) in
        [("1,234", &plain, 1234.0), ("1.234", &plain, 1.234), ("2.5", &european, 2.5)]
    {
        let reading = candidates(text, neighbors);
        assert_eq!((reading.faults, reading.candidates), (vec![], vec![value]), "{text}");
    }
}

/// Checks that ext4 is ahead of xfs. The texts are the cells of ext4 in several tests; xfs has 5000
/// in each test.
fn ahead(printed: &[&str]) -> Judged {
    let mut cells = Vec::new();
    for (test, text) in printed.iter().enumerate() {
        let test = test.to_string();
        cells.push(cell(&[("filesystem", "ext4"), ("test", &test)], text));
        cells.push(cell(&[("filesystem", "xfs"), ("test", &test)], "5000"));
    }
    let levels = names(&["ext4"]);
    let claim = Claim::Extreme { axis: "filesystem".into(), levels, end: End::Best, margin: 1.0 };
    let statement =
        Statement { id: "a".into(), text: String::new(), parts: vec![part(claim, &[])] };
    statements(&cells, &layout(), &[statement]).remove(0).parts.remove(0)
}

#[test]
fn ambiguous_cells_are_not_testable() {
    let one = ahead(&["1.234,50", "1,000.25", "1,000.75"]);
    assert_eq!(one.ruling, Ruling::NotTestable);
    assert_eq!(
        one.absent.as_deref(),
        Some("the result depends on whether \"1.234,50\" is 1234.5 or 123450")
    );
    // ext4 is ahead in both readings; or the neighbors exclude one reading.
    assert_eq!(ahead(&["71.234,50", "1,000.25", "1,000.75"]).ruling, Ruling::Holds);
    assert_eq!(ahead(&["1.234,50", "1.000,25", "1.000,75"]).ruling, Ruling::Contradicted);
    // ext4 is behind with 1234.5 in both cells, and with 12,345 in one of them. It is ahead with
    // 12,345 in both cells.
    let two = ["1.234,5", "1.234,5", "1,000.25", "1,000.75", "0.5", "0.5"];
    let one = ahead(&two[..4]);
    assert_eq!(one.ruling, Ruling::NotTestable);
    assert!(one.absent.unwrap().ends_with("and on similar cells"));
    assert_eq!(ahead(&two).ruling, Ruling::Contradicted);
}

#[test]
fn missing_cell_affects_only_statements_about_it() {
    let axis = || "filesystem".to_owned();
    let of = |without: &[(&str, &str)], claim: Claim| {
        let (mut cells, layout) = measured();
        cells.retain(|cell| {
            let is = |(filesystem, record): &(&str, &str)| {
                cell.at["filesystem"] == *filesystem && cell.at["record"] == *record
            };
            !without.iter().any(is)
        });
        let statement =
            Statement { id: "a".into(), text: String::new(), parts: vec![part(claim, &[])] };
        statements(&cells, &layout, &[statement]).remove(0).parts.remove(0)
    };
    let range = (1.0, 2.0);
    let factor = |from: &str, to: &str| Claim::Factor {
        axis: axis(),
        from: Who::Level(from.into()),
        to: Who::Level(to.into()),
        range,
    };
    let one = of(&[("btrfs", "4")], factor("xfs", "ext4"));
    assert_eq!(one.ruling, Ruling::Holds, "{one:?}");
    let one = of(&[("btrfs", "4"), ("btrfs", "16")], factor("xfs", "btrfs"));
    assert_eq!(one.absent.as_deref(), Some("filesystem = btrfs has 1 cell, others 3"));
    let best =
        Claim::Extreme { axis: axis(), levels: names(&["xfs"]), end: End::Best, margin: 1.0 };
    assert_eq!(of(&[("btrfs", "4")], best).ruling, Ruling::NotTestable);
    // If both lack the same cell, their means are over the same cells. In the second case, each
    // lacks a different cell.
    let alike = [("xfs", "4"), ("ext4", "4")];
    assert_eq!(of(&alike, factor("xfs", "ext4")).ruling, Ruling::Holds);
    let apart = [("xfs", "4"), ("ext4", "16")];
    assert_eq!(of(&apart, factor("xfs", "ext4")).ruling, Ruling::NotTestable);
}

#[test]
fn short_numbers_have_no_slips() {
    let reason = |one: &str, other: &str| {
        let levels = |table| [("table", table), ("filesystem", "ext4"), ("record", "1")];
        let cells = [cell(&levels("1"), one), cell(&levels("2"), other)];
        tables(&cells, &layout()).into_iter().find_map(|finding| match finding {
            Finding::Conflicting { reason, .. } => Some(reason),
            _ => None,
        })
    };
    assert_eq!(reason("1", "2"), Some(Cause::Unknown));
    assert_eq!(reason("0.01", "0.02"), Some(Cause::Unknown));
    assert_eq!(reason("121", "122"), Some(Cause::OneDigit { position: 2 }));
}

#[test]
fn means_of_three_integers_are_detected_by_endings() {
    let endings = |texts: &[&str]| {
        let cells = (0..24).map(|index| {
            let text = format!("{index}.{}", texts[index % texts.len()]);
            cell(&[("filesystem", "ext4"), ("record", &index.to_string())], &text)
        });
        let cells: Vec<Cell> = cells.collect();
        let findings = tables(&cells, &layout());
        findings.into_iter().find_map(|finding| match finding {
            Finding::Granular { parts, .. } => Some(parts),
            _ => None,
        })
    };
    assert_eq!(endings(&["00", "33", "66"]), Some(Parts { of: 3, cut: Some(true) }));
    assert_eq!(endings(&["00", "33", "67"]), Some(Parts { of: 3, cut: Some(false) }));
    assert_eq!(endings(&["00", "50"]), Some(Parts { of: 2, cut: None }));
    assert_eq!(endings(&["00"]), Some(Parts { of: 1, cut: None }));
    assert_eq!(endings(&["00", "33", "66", "67"]), None);
    assert_eq!(endings(&["01", "17", "42", "86", "99"]), None);
}

#[test]
fn missing_cells_and_uncombined_levels_are_reported_once() {
    let mut cells = Vec::new();
    for filesystem in ["ext4", "xfs", "btrfs"] {
        for record in ["1", "4", "8"] {
            for edition in ["2004", "2006"] {
                let levels = [("filesystem", filesystem), ("record", record), ("edition", edition)];
                let absent = filesystem == "btrfs" && edition == "2004";
                if !absent && (filesystem, record, edition) != ("xfs", "4", "2006") {
                    cells.push(cell(&levels, &format!("{}.5", cells.len())));
                }
            }
        }
    }
    let missing_cells = |cells: &[Cell]| -> Vec<Location> {
        let findings = tables(cells, &layout());
        let missing_cell = |finding| match finding {
            Finding::MissingCell { at } => Some(at),
            _ => None,
        };
        findings.into_iter().filter_map(missing_cell).collect()
    };
    let expected = [
        at(&[("edition", "2004"), ("filesystem", "btrfs")]),
        at(&[("edition", "2006"), ("filesystem", "xfs"), ("record", "4")]),
    ];
    assert_eq!(missing_cells(&cells), expected);
}

/// Filesystems in three levels of record length, each with a mean and a deviation.
fn measured() -> (Vec<Cell>, Layout) {
    let means = [
        ("ext4", ["100.00", "110.00", "121.00"]),
        ("xfs", ["100.10", "140.00", "180.00"]),
        ("btrfs", ["50.00", "40.00", "30.00"]),
    ];
    let mut cells = Vec::new();
    for (filesystem, values) in means {
        for (record, value) in ["1", "4", "16"].into_iter().zip(values) {
            let levels = |statistic| {
                [("filesystem", filesystem), ("record", record), ("statistic", statistic)]
            };
            cells.push(cell(&levels("mean"), value));
            cells.push(cell(&levels("deviation"), "1.00"));
        }
    }
    let layout = Layout {
        statistic: Some("statistic".into()),
        mean: Some("mean".into()),
        deviation: Some("deviation".into()),
        runs: Some(10),
        ..layout()
    };
    (cells, layout)
}

fn part(claim: Claim, each: &[&str]) -> Part {
    Part {
        claim,
        about: Filter::new(),
        each: each.iter().map(|name| (*name).into()).collect(),
        by: By::Mean,
        need: Need::All,
        not: false,
        better: None,
    }
}

fn judged(part: Part) -> Judged {
    let (cells, layout) = measured();
    let statement = Statement { id: "a".into(), text: String::new(), parts: vec![part] };
    let mut judgments = statements(&cells, &layout, &[statement]);
    judgments.remove(0).parts.remove(0)
}

fn names(levels: &[&str]) -> Vec<String> {
    levels.iter().map(|level| (*level).into()).collect()
}

#[test]
fn claims_hold_in_part_or_not_and_noise_is_reported() {
    let axis = || "filesystem".to_owned();
    let record = || "record".to_owned();
    let best = |level: &str| Claim::Extreme {
        axis: axis(),
        levels: names(&[level]),
        end: End::Best,
        margin: 1.0,
    };
    let one = judged(part(best("xfs"), &["record"]));
    assert_eq!(one.ruling, Ruling::Holds);
    assert_eq!(one.within_noise(), Some(true), "100.1 against 100.0 is within a deviation of 1");
    let one = judged(part(best("ext4"), &["record"]));
    assert_eq!((one.ruling, one.within_noise()), (Ruling::Contradicted, Some(false)));
    assert_eq!(
        judged(Part { better: Some(Better::Lower), ..part(best("btrfs"), &[]) }).ruling,
        Ruling::Holds
    );
    assert_eq!(judged(Part { not: true, ..part(best("xfs"), &[]) }).ruling, Ruling::Contradicted);
    let order = |levels: &[&str], from| Claim::Order { axis: axis(), levels: names(levels), from };
    for (levels, from, ruling) in [
        (&["xfs", "ext4"][..], Some(End::Best), Ruling::Holds),
        (&["btrfs", "ext4"], Some(End::Worst), Ruling::Holds),
        (&["ext4", "btrfs"], Some(End::Best), Ruling::Contradicted),
        (&["ext4", "btrfs"], None, Ruling::Holds),
        (&["ext4", "zfs"], None, Ruling::NotTestable),
    ] {
        assert_eq!(judged(part(order(levels, from), &[])).ruling, ruling, "{levels:?} {from:?}");
    }
    let rises = Claim::Monotone { axis: record(), rises: true };
    let one = judged(part(rises.clone(), &["filesystem"]));
    assert_eq!(one.ruling, Ruling::InPart);
    let failing: Vec<_> = one.places.iter().filter(|at| at.holds == Some(false)).collect();
    assert_eq!(failing.len(), 1);
    assert_eq!(failing[0].at, at(&[("filesystem", "btrfs")]));
    for (need, ruling) in [
        (Need::Every, Ruling::Contradicted),
        (Need::Most, Ruling::Holds),
        (Need::Some, Ruling::Holds),
    ] {
        assert_eq!(judged(Part { need, ..part(rises.clone(), &["filesystem"]) }).ruling, ruling);
    }
    let change = |filesystem: &str, trend| Part {
        about: [("filesystem".to_owned(), names(&[filesystem]))].into(),
        ..part(Claim::Change { axis: record(), from: "1".into(), to: "16".into(), trend }, &[])
    };
    assert_eq!(judged(change("ext4", ChangeKind::Between(0.2, 0.22))).ruling, Ruling::Holds);
    assert_eq!(judged(change("ext4", ChangeKind::Between(0.3, 0.4))).ruling, Ruling::Contradicted);
    assert_eq!(judged(change("btrfs", ChangeKind::Falls)).ruling, Ruling::Holds);
    assert_eq!(judged(change("btrfs", ChangeKind::Improves)).ruling, Ruling::Contradicted);
    assert_eq!(
        judged(change("zfs", ChangeKind::Falls)).absent.as_deref(),
        Some("no cell has filesystem = zfs")
    );
    let quoted = |value| Part {
        about: [("filesystem".to_owned(), names(&["ext4"])), ("record".into(), names(&["1"]))]
            .into(),
        ..part(Claim::Quoted { value, within: 0.0 }, &[])
    };
    assert_eq!(judged(quoted(100.0)).ruling, Ruling::Holds);
    let one = judged(quoted(140.0));
    assert_eq!(
        (one.ruling, &one.places[0].fact),
        (Ruling::Contradicted, &Fact::Number(100.0, Some(8)))
    );
    let count = Claim::Count { axes: vec![axis(), record()], times: 10, value: 90 };
    assert_eq!(judged(part(count, &[])).ruling, Ruling::Holds);
    assert_eq!(judged(part(best("xfs"), &["scheduler"])).ruling, Ruling::NotTestable);
}

const FILESYSTEMS: [&str; 6] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "jfs"];
const RECORDS: [&str; 4] = ["1", "4", "8", "16"];
const TESTS: [&str; 8] =
    ["write", "rewrite", "read", "reread", "fwrite", "fread", "random", "backwards"];

fn printed(cents: u32) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Grid in table 1, and two filesystems of it again in table 2.
fn grid(cents: &[u32]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for table in ["1", "2"] {
        let mut next = cents.iter();
        for filesystem in FILESYSTEMS {
            for record in RECORDS {
                for test in TESTS {
                    let levels = [
                        ("table", table),
                        ("filesystem", filesystem),
                        ("record", record),
                        ("test", test),
                    ];
                    let text = printed(*next.next().unwrap());
                    if table == "1" || ["ext4", "xfs"].contains(&filesystem) {
                        cells.push(cell(&levels, &text));
                    }
                }
            }
        }
    }
    cells
}

fn doubtful(cells: &[Cell]) -> Vec<Finding> {
    tables(cells, &layout()).into_iter().filter(Finding::doubtful).collect()
}

const CELLS: usize = FILESYSTEMS.len() * RECORDS.len() * TESTS.len();

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_grid_has_no_findings_and_what_is_planted_is_found(
        seed in any::<u64>(),
        row in 0..FILESYSTEMS.len() * RECORDS.len(),
        (from, to) in (0..TESTS.len(), 1..TESTS.len()),
        again in 0..2 * RECORDS.len() * TESTS.len(),
    ) {
        // Drawn from a seed, because smaller values would be more alike and not simpler.
        let mut rng = fastrand::Rng::with_seed(seed);
        let cents: Vec<u32> = (0..CELLS).map(|_| rng.u32(100_000_000..999_999_999)).collect();
        let clean = grid(&cents);
        prop_assert_eq!(doubtful(&clean), vec![], "beyond chance");
        // A copy within one filesystem and record length, in both tables alike.
        let mut copied = cents.clone();
        let (first, second) = (row * TESTS.len() + from, row * TESTS.len() + (from + to) % TESTS.len());
        copied[second] = copied[first];
        let repeats = Finding::Duplicated {
            first: first.min(second),
            second: first.max(second),
            shared: 0,
            whole: false,
        };
        prop_assert_eq!(doubtful(&grid(&copied)), vec![repeats]);
        // Two digits are swapped in the second table. The first digit is not swapped, because it
        // must not become a zero.
        let mut swapped = clean.clone();
        let second = CELLS + again;
        let text = swapped[second].printed.clone();
        let digits = text.as_bytes();
        if let Some(position) = (1..6).find(|position| digits[*position] != digits[position + 1]) {
            let mut bytes = digits.to_vec();
            bytes.swap(position, position + 1);
            swapped[second].printed = String::from_utf8(bytes).unwrap();
            let found = doubtful(&swapped);
            prop_assert_eq!(found.len(), 1);
            let Finding::Conflicting { second: place, reason, .. } = &found[0] else {
                panic!("{found:?}");
            };
            prop_assert_eq!((*place, *reason), (second, Cause::Swapped { position }));
        }
    }

    #[test]
    fn no_text_does_harm(texts in proptest::collection::vec("[0-9,.eE+\\-]{0,40}|\\PC{0,20}", 1..40)) {
        let cells: Vec<Cell> = texts.iter().enumerate().map(|(index, text)| {
            cell(&[("table", "1"), ("filesystem", text), ("record", &(index % 3).to_string())], text)
        }).collect();
        let findings = tables(&cells, &layout());
        prop_assert!(findings.len() <= 4 * cells.len() + 4);
    }
}

/// Cells of one filesystem with values from 5000 on, `gap` apart, then `copies` more with the value
/// 5000; checked in this many sets of coordinates.
fn alike(copies: usize, gap: i32, sets: usize) -> Chance {
    let texts = (0..14).map(|index: i32| 5001 + index * gap).chain([5000]);
    let texts = texts.chain(std::iter::repeat_n(5000, copies));
    let cells: Vec<Cell> = texts
        .enumerate()
        .map(|(index, value)| {
            let test = index.to_string();
            cell(&[("filesystem", "ext4"), ("test", &test), ("disk", "one")], &value.to_string())
        })
        .collect();
    let layout = Layout { repeats: vec![vec!["filesystem".into()]; sets], ..layout() };
    let findings = tables(&cells, &layout);
    let chance = findings.into_iter().find_map(|finding| match finding {
        Finding::DuplicateTest(chance) => Some(chance),
        _ => None,
    });
    chance.unwrap()
}

#[test]
fn one_value_in_many_cells_counts_once() {
    let many = alike(5, 3, 1);
    assert_eq!((many.values, many.sharing.0), (1, 15));
    assert!(many.expected > 0.5 && many.p > CHANCE, "chance expects one: {many:?}");
    assert_eq!(alike(1, 3, 1).values, 1);
}

#[test]
fn more_tests_need_smaller_p_values() {
    let (once, thrice) = (alike(1, 45, 1), alike(1, 45, 3));
    assert!(once.p < 0.25, "{once:?}");
    assert!((thrice.p - (3.0 * once.p).min(1.0)).abs() < 1e-12, "{once:?} {thrice:?}");
}
