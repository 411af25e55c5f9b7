//! `fslab verify`: what a crash left of what was durable.

use std::fmt::Write;

use engine::Survival;

use crate::{
    cli::Verify,
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(arguments: &Verify) -> Result<Exit, Failure> {
    let survival = engine::survival(&arguments.state).map_err(Failure::usage)?;
    output::result(&text(&survival))?;
    if survival.blocks == 0 {
        output::message("nothing was durable yet, so there is nothing to judge");
        return Ok(Exit::Incomplete);
    }
    Ok(if survival.lost == 0 { Exit::Done } else { Exit::No })
}

fn text(survival: &Survival) -> String {
    let Survival { done, durable, blocks, torn, lost, unreadable, losses } = survival;
    let mut text = format!(
        "operations done     {done}\n\
         durable of these    {durable} (a flush after them had returned)\n\
         blocks of these     {blocks}\n\
         intact              {}\n\
         torn                {torn} (were being overwritten; no promise is broken)\n\
         lost                {lost}",
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
    use engine::{Difference, Loss};
    use expect_test::expect;
    use model::Bytes;

    use super::*;

    #[test]
    fn losses_are_told_one_by_one() {
        let survival = Survival {
            done: 120,
            durable: 100,
            blocks: 60,
            torn: 1,
            lost: 2,
            unreadable: 1,
            losses: vec![Loss {
                path: "/srv/f".into(),
                offset: Bytes(8192),
                difference: Difference::Misplaced { belongs: 0 },
            }],
        };
        expect![[r"
            operations done     120
            durable of these    100 (a flush after them had returned)
            blocks of these     60
            intact              57
            torn                1 (were being overwritten; no promise is broken)
            lost                2 (1 of these cannot be read)
              /srv/f at offset 8192: it was written for offset 0
              and 1 more
        "]]
        .assert_eq(&text(&survival));
    }
}
