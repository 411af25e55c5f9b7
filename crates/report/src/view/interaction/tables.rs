//! Tables of conditions: medians by condition and filesystem, and variance explained.

use analysis::{
    Interval, NotEstimable,
    factorial::{Dependence, Factorial, Source, Term},
};
use model::metric::Unit;

use super::{EffectRow, Input, effects, findings, level_label};
use crate::{
    units::{Scale, fixed, percent, probability, span},
    view::{
        points::WorkPoint,
        tables::{Body, Column, Row, Table, TableCell, ValueCell},
    },
};

/// Medians, then effects of options and shares of the variance if they can be estimated.
pub(super) fn tables(input: &Input, title: &str, effects: &[EffectRow]) -> Vec<Table> {
    let shares = input.factorial.as_ref().ok().map(|factorial| shares(input, factorial));
    let effects = effects::table(input, effects);
    std::iter::once(medians(input, title)).chain(effects).chain(shares).collect()
}

/// Medians, with one row per combination of conditions and one column per filesystem.
fn medians(input: &Input, title: &str) -> Table {
    let names = || input.axes.iter().map(|axis| axis.name.as_str());
    let row = |(at, point): (usize, &&WorkPoint)| {
        let cell = |filesystem: &usize| input.all.cell(at, *filesystem, input.scale);
        let levels = names().filter_map(|name| point.conditions.get(name)).map(level_label);
        let title = levels.collect::<Vec<_>>().join(" · ");
        Row::of(title, None, Body::Cells(input.shown.iter().map(cell).collect()))
    };
    let column = |index: &usize| Column {
        title: input.filesystems[*index].name.clone(),
        unit: input.scale.name,
        filesystem: Some(*index),
    };
    let table = Table {
        id: format!("{}--medians", input.id),
        title: title.to_owned(),
        caption: Vec::new(),
        corner: "condition",
        columns: input.shown.iter().map(column).collect(),
        rows: input.all.points.iter().enumerate().map(row).collect(),
    };
    let sizes = input.all.points.first().map(|point| point.amounts());
    let clauses = (sizes, findings::withheld(input));
    input.all.medians(table, input.margin, clauses, input.absent)
}

/// Shares of the variance, one row per term.
fn shares(input: &Input, factorial: &Factorial) -> Table {
    let mut rows: Vec<Row> = factorial.terms.iter().map(|term| term_row(factorial, term)).collect();
    let other = |title: &str, value: f64| {
        let share = share(value, &Err(NotEstimable::Blocks), factorial.n);
        let cells = vec![share, TableCell::Text("-".into()), TableCell::Text("-".into())];
        Row::of(title, None, Body::Cells(cells))
    };
    rows.extend(factorial.block_share.map(|share| other("rounds", share)));
    rows.push(other("residual", factorial.residual_share));
    let (least, most) = factorial.repetitions;
    let each = span([least, most].into_iter());
    let mut caption = vec![
        "Share ω² of the variance of the logarithm, informational; estimates need not add up to \
         100 %, negative ones are shown as 0"
            .into(),
        format!(
            "n = {} values, {each} per combination, in {} rounds; 95 % bootstrap interval over \
             rounds; p by permuting residuals within rounds (Freedman and Lane), not adjusted",
            factorial.n, factorial.blocks
        ),
        "if an interaction with the filesystem exceeds 10 % of the explained variance, findings \
         about filesystems name the condition"
            .into(),
    ];
    caption.extend(findings::withheld(input));
    if let Err(absent) = &factorial.interactions {
        caption.push(format!("interactions: {absent}"));
    }
    Table {
        id: format!("{}--shares", input.id),
        title: format!("Variance explained: {}", input.what),
        caption,
        corner: "factor",
        columns: vec![
            Column::new("share", unit().name),
            Column::new("p", ""),
            Column::new("of explained variance", ""),
        ],
        rows,
    }
}

fn unit() -> Scale {
    Scale::of(Unit::Fraction, std::iter::once(1.0))
}

/// Share of the variance as a cell. Negative estimates are shown as 0.
fn share(value: f64, interval: &Result<Interval, NotEstimable>, n: u32) -> TableCell {
    let value = value.max(0.0);
    let interval = interval.as_ref().ok().map(|ends| Interval {
        low: ends.low.max(0.0),
        high: ends.high.max(0.0),
        level: ends.level,
    });
    let mut cell = ValueCell::estimate(value, interval, n, unit());
    cell.shown.value = hundredths(value);
    cell.shown.interval = interval.map(|ends| (hundredths(ends.low), hundredths(ends.high)));
    TableCell::Value(cell)
}

/// Share in percent, with two decimal places below 1 %, otherwise one.
fn hundredths(share: f64) -> String {
    let text = fixed(share * 100.0, if share.abs() < 0.01 { 2 } else { 1 });
    if text == "-0.00" { "0.00".into() } else { text }
}

fn term_row(factorial: &Factorial, term: &Term) -> Row {
    let name = |factor: usize| factorial.factors[factor].name.as_str();
    let (title, explained) = match term.source {
        Source::Main(factor) => (name(factor).to_owned(), "-".into()),
        Source::Interaction(one, other) => {
            let found = factorial.interaction_of(one).into_iter();
            let found = found.filter(|dependence| dependence.other == other);
            let share = found.map(|Dependence { share, .. }| percent(share.0)).next();
            (format!("{} × {}", name(one), name(other)), share.unwrap_or_else(|| "-".into()))
        }
    };
    let cells = vec![
        share(term.share, &term.interval, factorial.n),
        TableCell::Text(probability(term.p).trim_start_matches("= ").to_owned()),
        TableCell::Text(explained),
    ];
    Row::of(title, None, Body::Cells(cells))
}
