use std::sync::atomic::AtomicBool;

use model::phase::{Sizes, TimeLimit};
use tempfile::TempDir;

use super::*;
use crate::Progress;

fn run(mail: &Mail, directory: &Path) -> Result<PhaseResult, EngineError> {
    let context = Context {
        directory,
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &[],
        start: None,
    };
    run_mail(mail, &context)
}

fn mail(format: MailFormat) -> Mail {
    Mail {
        format,
        messages: 30,
        time: None,
        sizes: Sizes::LogNormal { mean: Bytes(12_000), sigma: 1.0 },
        deliverers: 3,
        readers: 2,
        poll_interval: Nanos(1_000_000),
        seed: 5,
    }
}

fn files(directory: &Path) -> Vec<u64> {
    let entries = fs::read_dir(directory).unwrap();
    let mut sizes: Vec<u64> =
        entries.map(|entry| entry.unwrap().metadata().unwrap().len()).collect();
    sizes.sort_unstable();
    sizes
}

/// Operations and bytes of the deliverers and of the readers.
fn moved(result: &PhaseResult) -> [(u64, u64); 2] {
    let sum = |part: fn(&WorkerResult) -> model::phase::Moved| {
        result
            .workers
            .iter()
            .map(part)
            .fold((0, 0), |(ops, bytes), moved| (ops + moved.ops.0, bytes + moved.bytes.0))
    };
    [sum(|worker| worker.written), sum(|worker| worker.read)]
}

#[test]
fn each_message_of_a_maildir_is_read_once_and_half_of_them_are_removed() {
    let directory = TempDir::new().unwrap();
    let result = run(&mail(MailFormat::Maildir), directory.path()).unwrap();
    let [written, read] = moved(&result);
    assert_eq!(written.0, 90);
    assert_eq!(written, read);
    let path = |name: &str| directory.path().join("mail").join(name);
    assert_eq!((files(&path("tmp")), files(&path("new"))), (vec![], vec![]));
    // Each reader keeps its first message, and removes every second one.
    let kept = files(&path("cur")).len();
    assert!((45..=46).contains(&kept), "{kept}");
    let latencies = result.latencies();
    assert_eq!((latencies.write.count(), latencies.read.count()), (90, 90));
}

#[test]
fn all_of_an_mbox_is_read_by_each_reader() {
    let directory = TempDir::new().unwrap();
    let result = run(&mail(MailFormat::Mbox), directory.path()).unwrap();
    let [(deliveries, written), (reads, read)] = moved(&result);
    assert_eq!((deliveries, read), (90, 2 * written));
    assert!(reads >= 2);
    assert_eq!(fs::metadata(directory.path().join("mail")).unwrap().len(), written);
}

#[test]
fn messages_have_the_sizes_of_the_phase() {
    let sizes = |seed| {
        let directory = TempDir::new().unwrap();
        let work =
            Mail { messages: 400, deliverers: 1, readers: 0, seed, ..mail(MailFormat::Maildir) };
        run(&work, directory.path()).unwrap();
        files(&directory.path().join("mail/new"))
    };
    let found = sizes(1);
    assert_eq!(found.len(), 400);
    // The mean of 400 values, within four standard errors: the standard deviation is 1.3 times it.
    let mean = found.iter().sum::<u64>() / 400;
    assert!((8_800..15_200).contains(&mean), "{mean}");
    assert!(found[0] < 3_000 && found[399] > 60_000, "{} to {}", found[0], found[399]);
    assert_eq!(found, sizes(1));
    assert_ne!(found, sizes(2));
}

#[test]
fn a_time_limit_ends_deliverers_and_readers() {
    for format in MailFormat::ALL {
        let directory = TempDir::new().unwrap();
        let time = Some(TimeLimit { ramp: Nanos(0), run: Nanos(200_000_000) });
        let result = run(&Mail { time, messages: 1, ..mail(format) }, directory.path()).unwrap();
        let [(deliveries, _), (reads, _)] = moved(&result);
        // On a slow disk, the first delivery of a worker may end after the limit.
        assert!(deliveries >= 3 && (reads > 0 || deliveries < 30), "{deliveries} and {reads}");
        for worker in &result.workers {
            assert!(worker.loop_time < Nanos(20_000_000_000));
        }
    }
}
