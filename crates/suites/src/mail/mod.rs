//! Suite `mail`: messages are delivered to a maildir or an mbox, and read from it at the same time.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Nanos, Phase, SuiteSpec, WorkloadParameters,
    phase::{Cache, Mail, MailFormat, Role, Sizes, TimeLimit, Timed, Work},
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{
    Suite, parameter,
    shared::{count, space},
};

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("format", Kind::Word(&["maildir", "mbox"]), "maildir", "Format of the mailbox: a file per message, or one file."),
    parameter("messages", Kind::Amount { min: 1, max: 1 << 32 }, "2500", "Messages of each deliverer. Not used with `runtime`."),
    parameter("runtime", Kind::Time, "0s", "Measured time. 0s: the number of `messages` ends the loop."),
    parameter("message_size_mean", Kind::Size { min: Bytes(1), scales: false }, "12KiB", "Mean size of messages, at most 1 MiB."),
    parameter("message_size_sigma", Kind::Number { min: 0.0, max: 4.0 }, "1.0", "Log-standard deviation of message sizes (log-normal); 0: all have the mean."),
    parameter("deliverers", Kind::Count { min: 1, max: 1024 }, "4", "Number of workers that deliver messages."),
    parameter("readers", Kind::Count { min: 0, max: 1024 }, "1", "Number of workers that read messages."),
    parameter("poll_interval", Kind::Time, "10ms", "Pause of a reader that found no new message."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: "mail",
    title: "Mail: synced deliveries to a maildir or an mbox, next to readers.",
    source: "D. J. Bernstein, Using maildir format (cr.yp.to/proto/maildir.html); sizes and \
             numbers are project defaults",
    notes: include_str!("notes.md"),
    clients: Some("deliverers"),
    parameters: PARAMETERS,
};

fn refine(mut point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    if point.size("message_size_mean") > Bytes::mib(1) {
        return Err(ValueError::new("`message_size_mean` is too large").hint("use at most 1MiB"));
    }
    if point.count("readers") == 0 {
        point.reset(&SPEC.defaults(), &["poll_interval"]);
    }
    if point.time("runtime") > Nanos(0) {
        point.reset(&SPEC.defaults(), &["messages"]);
    }
    Ok(vec![point])
}

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let format = MailFormat::ALL.into_iter().find(|it| it.name() == point.word("format"));
    let run = Some(point.time("runtime")).filter(|run| *run > Nanos(0));
    vec![Phase {
        name: "delivery".into(),
        group: "mail".into(),
        role: Role::Measure,
        cache: Cache::Unchanged,
        work: Work::Mail(Mail {
            format: format.unwrap_or(MailFormat::Maildir),
            messages: point.count("messages"),
            time: run.map(|run| TimeLimit { ramp: Nanos(0), run }),
            sizes: sizes(point),
            deliverers: count(point, "deliverers"),
            readers: count(point, "readers"),
            poll_interval: point.time("poll_interval"),
            seed,
        }),
        timed: Timed::default(),
        directory: None,
        together: None,
    }]
}

fn sizes(point: &WorkloadParameters) -> Sizes {
    let mean = point.size("message_size_mean");
    match point.number("message_size_sigma") {
        0.0 => Sizes::Fixed(mean),
        sigma => Sizes::LogNormal { mean, sigma },
    }
}

/// Messages per second of a deliverer for which there is space if the time is limited.
const RATE: f64 = 1000.0;

/// All messages, as if none were removed.
fn footprint(point: &WorkloadParameters) -> Bytes {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let messages = match point.time("runtime") {
        Nanos(0) => point.count("messages"),
        run => (RATE * run.seconds()) as u64,
    };
    space(messages.saturating_mul(point.count("deliverers")), sizes(point))
}
