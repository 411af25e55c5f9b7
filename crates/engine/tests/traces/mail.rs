//! System calls of deliveries of mail.

use std::collections::BTreeMap;

use model::{
    Bytes, Nanos,
    phase::{Mail, MailFormat, Sizes, Work},
};
use tempfile::TempDir;

use super::strace::traced;

/// Messages that are traced in addition to one.
const MORE: u64 = 10;

/// Calls of each name per delivery, from the difference between two traces.
fn calls(format: MailFormat) -> BTreeMap<String, u64> {
    let count = |messages| {
        let directory = TempDir::new().unwrap();
        let mail = Mail {
            format,
            messages,
            time: None,
            sizes: Sizes::Fixed(Bytes::kib(12)),
            deliverers: 1,
            readers: 0,
            poll_interval: Nanos(1_000_000),
            seed: 1,
        };
        let mut counts = BTreeMap::new();
        for call in traced(&Work::Mail(mail), directory.path()) {
            let name = call.split(' ').next().unwrap_or_default().to_owned();
            *counts.entry(name).or_insert(0) += 1;
        }
        counts
    };
    let (one, all) = (count(1), count(1 + MORE));
    let more = |(name, count): (String, u64)| {
        let more = count - one.get(&name).copied().unwrap_or(0);
        (more > 0).then_some((name, more / MORE))
    };
    all.into_iter().filter_map(more).collect()
}

pub(crate) fn deliveries_make_the_calls_of_the_reference_page() {
    let named = |calls: &[(&str, u64)]| -> BTreeMap<String, u64> {
        calls.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    };
    let maildir =
        [("open", 1), ("write", 1), ("fsync", 2), ("close", 1), ("link", 1), ("unlink", 1)];
    assert_eq!(calls(MailFormat::Maildir), named(&maildir));
    assert_eq!(calls(MailFormat::Mbox), named(&[("write", 1), ("fsync", 1)]));
}
