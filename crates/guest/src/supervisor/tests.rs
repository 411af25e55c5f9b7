use std::{
    collections::VecDeque,
    ffi::OsString,
    io::{self, Read},
    os::unix::ffi::OsStringExt as _,
    path::PathBuf,
    thread,
    time::Duration,
};

use model::Bytes;
use proptest::{collection::vec, option, prelude::*};
use sys::child::Identity;

use super::{
    console::{Console, error_line},
    spec::{Containment, SupervisorSpec},
    sweep::parent_of,
};

fn argument() -> impl Strategy<Value = OsString> {
    vec(1..=255_u8, 0..20).prop_map(OsString::from_vec)
}

fn path() -> impl Strategy<Value = PathBuf> {
    argument().prop_map(PathBuf::from)
}

prop_compose! {
    fn spec()(
        directory in path(), machine in vec(argument(), 1..5), temporary in option::of(path()),
        memory in option::of(any::<u64>().prop_map(Bytes)), own in vec(path(), 0..4),
        orphans in vec(path(), 0..4), reaper: bool,
        ids in option::of((any::<u32>(), any::<u32>(), vec(any::<u32>(), 0..3))),
    ) -> SupervisorSpec {
        let identity = ids.map(|(user, group, groups)| Identity { user, group, groups });
        let containment = if reaper { Containment::Reaper } else { Containment::Any };
        SupervisorSpec {
            directory,
            machine,
            temporary,
            memory,
            own,
            orphans,
            identity,
            containment,
        }
    }
}

proptest! {
    #[test]
    fn specifications_round_trip_through_arguments(spec in spec()) {
        prop_assert_eq!(SupervisorSpec::of_arguments(&spec.to_arguments()).unwrap(), spec);
    }

    #[test]
    fn parsing_arguments_never_panics(arguments in vec(argument(), 0..6)) {
        let _ = SupervisorSpec::of_arguments(&arguments);
    }

    #[test]
    fn consoles_keep_their_last_bytes(
        pieces in vec((vec(any::<u8>(), 1..20), 0..5000_usize), 0..8),
    ) {
        let console = Console::default();
        let pieces: Vec<_> = pieces.into_iter().map(|(bytes, times)| bytes.repeat(times)).collect();
        pieces.iter().for_each(|piece| console.append(piece));
        let all = pieces.concat();
        let last = &all[all.len().saturating_sub(256 << 10)..];
        let expected: String = String::from_utf8_lossy(last)
            .chars()
            .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
            .collect();
        prop_assert_eq!(console.text(), expected);
        prop_assert_eq!(console.bytes_received(), all.len() as u64);
        prop_assert_eq!(console.since(console.bytes_received()), "");
    }

    #[test]
    fn since_returns_new_output_only(old in "[a-z]{0,9}", new in "[a-z]{0,9}") {
        let console = Console::default();
        console.append(old.as_bytes());
        let before = console.bytes_received();
        console.append(new.as_bytes());
        prop_assert_eq!(console.since(before), new);
    }

    #[test]
    fn a_panic_split_over_two_reads_is_detected(before in "[a-z\\n]{0,80}", cut in 0..26_usize) {
        let console = Console::default();
        let words = "Kernel panic - not syncing";
        console.append(before.as_bytes());
        prop_assert!(console.panicked().is_none());
        console.append(&words.as_bytes()[..cut]);
        console.append(&words.as_bytes()[cut..]);
        prop_assert!(console.panicked().is_some());
    }

    #[test]
    fn error_line_is_never_empty(text: String) {
        prop_assert!(!error_line(&text).is_empty());
    }
}

#[test]
fn error_line_prefers_the_cause() {
    let panicked = "[    0.1] Linux version 6.1\n\
        [    2.5] VFS: Cannot open root device \"(null)\" or unknown-block(0,0): error -6\n\
        [    2.6] Please append a correct \"root=\" boot option\n\
        [    2.7] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n\
        [    2.8] CPU: 0 PID: 1 Comm: swapper/0 Not tainted\n";
    expect_test::expect![[r#"“VFS: Cannot open root device "(null)" or unknown-block(0,0): error -6”; “Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)”"#]]
    .assert_eq(&error_line(panicked));
    assert_eq!(error_line("one\ntwo\n\n"), "“two”");
    assert_eq!(error_line(""), "the console is empty");
    let own = "fslab note: no module x\nOut of memory: Killed\nfslab: the worker ended\nbye\n";
    assert_eq!(error_line(own), "“fslab: the worker ended”");
    let killed = "[    9.0] Out of memory: Killed process 77 (fslab) total-vm:9kB\nlater\n";
    assert_eq!(error_line(killed), "“Out of memory: Killed process 77 (fslab) total-vm:9kB”");
    let both = "Kernel panic - not syncing: Out of memory\n";
    assert_eq!(error_line(both), format!("“{}”", both.trim()));
    assert_eq!(error_line("[init] not a time"), "“[init] not a time”");
    let long = error_line(&format!("x{}", "é".repeat(200)));
    assert_eq!(long, format!("“x{}”", "é".repeat(99)), "cut at 200 bytes, between characters");
}

/// Output in pieces, with errors between them.
struct Pieces(VecDeque<io::Result<&'static str>>);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.pop_front().unwrap_or(Ok(""))?.as_bytes().read(buffer)
    }
}

#[test]
fn a_console_is_read_to_its_end() {
    let console = Console::default();
    let failed = |kind: io::ErrorKind| Err(kind.into());
    let pieces = [
        Ok("one "),
        failed(io::ErrorKind::Interrupted),
        Ok("two"),
        failed(io::ErrorKind::Other),
        Ok("after the end"),
    ];
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            console.follow(Pieces(pieces.into()));
        });
        console.wait_for_end(Duration::from_secs(60));
        assert_eq!(console.text(), "one two");
    });
}

#[test]
fn process_names_with_parentheses_are_skipped() {
    let parent = |stat| parent_of(stat).map(|pid| pid.as_raw_nonzero().get());
    assert_eq!(parent("12 (a) S 7 12 12 0"), Some(7));
    assert_eq!(parent("12 (a) R 1 (b)) S 8 12"), Some(8));
    assert_eq!(parent("12 (a) S 0 0"), None);
    assert_eq!(parent("nonsense"), None);
}
