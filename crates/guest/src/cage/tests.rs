use std::{ffi::OsString, os::unix::ffi::OsStringExt as _, path::PathBuf};

use model::Bytes;
use proptest::{collection::vec, option, prelude::*};
use sys::child::Identity;

use super::{
    console::{Console, telling},
    order::{Order, Way},
    sweep::parent_of,
};

fn word() -> impl Strategy<Value = OsString> {
    vec(1..=255_u8, 0..20).prop_map(OsString::from_vec)
}

fn path() -> impl Strategy<Value = PathBuf> {
    word().prop_map(PathBuf::from)
}

prop_compose! {
    fn order()(
        directory in path(), machine in vec(word(), 1..5), temporary in option::of(path()),
        memory in option::of(any::<u64>().prop_map(Bytes)), own in vec(path(), 0..4),
        orphans in vec(path(), 0..4), reaper: bool,
        ids in option::of((any::<u32>(), any::<u32>(), vec(any::<u32>(), 0..3))),
    ) -> Order {
        let identity = ids.map(|(user, group, groups)| Identity { user, group, groups });
        let way = if reaper { Way::Reaper } else { Way::Any };
        Order { directory, machine, temporary, memory, own, orphans, identity, way }
    }
}

proptest! {
    #[test]
    fn orders_are_read_as_they_were_written(order in order()) {
        prop_assert_eq!(Order::of_arguments(&order.to_arguments()).unwrap(), order);
    }

    #[test]
    fn no_arguments_are_a_surprise(arguments in vec(word(), 0..6)) {
        let _ = Order::of_arguments(&arguments);
    }

    #[test]
    fn consoles_keep_their_last_bytes(
        pieces in vec((vec(any::<u8>(), 1..20), 0..5000_usize), 0..8),
    ) {
        let console = Console::default();
        let pieces: Vec<_> = pieces.into_iter().map(|(bytes, times)| bytes.repeat(times)).collect();
        pieces.iter().for_each(|piece| console.hear(piece));
        let all = pieces.concat();
        let last = &all[all.len().saturating_sub(256 << 10)..];
        let expected: String = String::from_utf8_lossy(last)
            .chars()
            .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
            .collect();
        prop_assert_eq!(console.text(), expected);
        prop_assert_eq!(console.heard(), all.len() as u64);
        prop_assert_eq!(console.since(console.heard()), "");
    }

    #[test]
    fn consoles_tell_what_is_new(old in "[a-z]{0,9}", new in "[a-z]{0,9}") {
        let console = Console::default();
        console.hear(old.as_bytes());
        let before = console.heard();
        console.hear(new.as_bytes());
        prop_assert_eq!(console.since(before), new);
    }

    #[test]
    fn a_panic_is_heard_in_any_pieces(before in "[a-z\\n]{0,80}", cut in 0..26_usize) {
        let console = Console::default();
        let words = "Kernel panic - not syncing";
        console.hear(before.as_bytes());
        prop_assert!(console.panicked().is_none());
        console.hear(&words.as_bytes()[..cut]);
        console.hear(&words.as_bytes()[cut..]);
        prop_assert!(console.panicked().is_some());
    }

    #[test]
    fn any_console_tells_something(text: String) {
        prop_assert!(!telling(&text).is_empty());
    }
}

#[test]
fn the_line_that_tells_why_is_found() {
    let panicked = "[    0.1] Linux version 6.1\n\
        [    2.5] VFS: Cannot open root device \"(null)\" or unknown-block(0,0): error -6\n\
        [    2.6] Please append a correct \"root=\" boot option\n\
        [    2.7] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n\
        [    2.8] CPU: 0 PID: 1 Comm: swapper/0 Not tainted\n";
    expect_test::expect![[r#"“VFS: Cannot open root device "(null)" or unknown-block(0,0): error -6”; “Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)”"#]]
    .assert_eq(&telling(panicked));
    assert_eq!(telling("one\ntwo\n\n"), "“two”");
    assert_eq!(telling(""), "its console is empty");
    let own = "fslab note: no module x\nOut of memory: Killed\nfslab: the worker ended\nbye\n";
    assert_eq!(telling(own), "“fslab: the worker ended”");
    let killed = "[    9.0] Out of memory: Killed process 77 (fslab) total-vm:9kB\nlater\n";
    assert_eq!(telling(killed), "“Out of memory: Killed process 77 (fslab) total-vm:9kB”");
}

#[test]
fn names_of_processes_do_not_confuse() {
    let parent = |stat| parent_of(stat).map(|pid| pid.as_raw_nonzero().get());
    assert_eq!(parent("12 (a) S 7 12 12 0"), Some(7));
    assert_eq!(parent("12 (a) R 1 (b)) S 8 12"), Some(8));
    assert_eq!(parent("12 (a) S 0 0"), None);
    assert_eq!(parent("nonsense"), None);
}
