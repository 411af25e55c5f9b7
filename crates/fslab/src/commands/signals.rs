//! Signal handlers of commands that measure.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use anyhow::Context;

use crate::output;

/// Signals within this time after the first signal belong to the same request.
const ONE_WISH: Duration = Duration::from_millis(500);

/// Installs signal handlers. The first signal stops the run after undoing all changes; a second
/// signal exits at once.
///
/// SIGHUP is handled like SIGINT and SIGTERM, because the run must undo its changes before it
/// exits.
///
/// # Errors
/// If the handlers cannot be installed.
pub(super) fn handle_signals() -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM]);
    let mut signals = signals.context("installing signal handlers")?;
    let interrupt = Arc::new(AtomicBool::new(false));
    // Set by the handler itself: a terminal also signals the programs that a trial runs, and their
    // exit must not be treated as a failure of the trial.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupt))
            .context("installing signal handlers")?;
    }
    std::thread::spawn(move || {
        let mut first: Option<Instant> = None;
        for signal in &mut signals {
            match first {
                None => {
                    first = Some(Instant::now());
                    output::message(
                        "interrupted, undoing changes; press Ctrl-C again to exit at once",
                    );
                }
                // Programs such as timeout(1) signal the process and then its group, which is one
                // request.
                Some(first) if first.elapsed() < ONE_WISH => {}
                Some(_) => {
                    output::message("exited at once; run `fslab clean` to undo the changes");
                    let _cannot = signal_hook::low_level::emulate_default_handler(signal);
                }
            }
        }
    });
    Ok(interrupt)
}
