//! `fslab verify`: checks which synced data survived a crash.

use std::fmt::Write;

use engine::CrashReport;

use crate::{
    cli::Verify,
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(arguments: &Verify) -> Result<Exit, Failure> {
    let report = engine::crash_report(&arguments.state).map_err(Failure::usage)?;
    output::result(&text(&report))?;
    if report.blocks == 0 {
        output::message("no data was synced before the crash, so there is nothing to check");
        return Ok(Exit::Incomplete);
    }
    Ok(if report.lost == 0 { Exit::Success } else { Exit::DifferenceFound })
}

fn text(report: &CrashReport) -> String {
    let CrashReport { done, durable, blocks, torn, lost, unreadable, losses } = report;
    let mut text = format!(
        "operations done     {done}\ndurable of these    {durable} (before the last completed \
         sync)\nblocks of these     {blocks}\nintact              {}\ntorn                {torn} \
         (were being overwritten; allowed)\nlost                {lost}",
        blocks - torn - lost,
    );
    if *unreadable > 0 {
        let _infallible = write!(text, " ({unreadable} of these cannot be read)");
    }
    text.push('\n');
    for loss in losses {
        let (path, offset) = (loss.path.display(), loss.offset.0);
        let _infallible = writeln!(text, "  {path} at offset {offset}: {}", loss.difference);
    }
    if *lost > losses.len() as u64 {
        let _infallible = writeln!(text, "  and {} more", lost - losses.len() as u64);
    }
    text
}

#[cfg(test)]
mod tests {
    use engine::{Difference, LostBlock};
    use expect_test::expect;
    use model::Bytes;

    use super::*;

    #[test]
    fn each_lost_block_is_reported() {
        let report = CrashReport {
            done: 120,
            durable: 100,
            blocks: 60,
            torn: 1,
            lost: 2,
            unreadable: 1,
            losses: vec![LostBlock {
                path: "/srv/f".into(),
                offset: Bytes(8192),
                difference: Difference::Misplaced { belongs: 0 },
            }],
        };
        expect![[r#"
            operations done     120
            durable of these    100 (before the last completed sync)
            blocks of these     60
            intact              57
            torn                1 (were being overwritten; allowed)
            lost                2 (1 of these cannot be read)
              /srv/f at offset 8192: written for offset 0
              and 1 more
        "#]]
        .assert_eq(&text(&report));
    }
}
