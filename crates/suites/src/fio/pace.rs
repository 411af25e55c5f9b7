//! Pace of a section: rates and pauses.

use model::{
    Bytes, Nanos,
    phase::{Arrivals, MinimumRate, Pace, Rate},
};

use super::{
    job::Section,
    values::{self, Base, MOST, number, word},
};

pub(super) fn read_arrivals(text: &str, _: Base) -> Result<String, String> {
    word(text, &[("linear", "linear"), ("poisson", "poisson")])
}

/// Rate in bytes or operations per second for reads and writes; 0 is unlimited.
pub(super) fn read_byte_rate(text: &str, base: Base) -> Result<String, String> {
    values::directions(text, "0", |part| values::size(part, base).map(|size| size.to_string()))
}

pub(super) fn read_operation_rate(text: &str, _: Base) -> Result<String, String> {
    values::directions(text, "0", |part| number(part, 0, MOST))
}

pub(super) fn read_submission(text: &str, _: Base) -> Result<String, String> {
    word(text, &[("inline", "inline"), ("offload", "offload")])
}

pub(super) fn read_counted(text: &str, _: Base) -> Result<String, String> {
    word(text, &[("complete", "complete"), ("issue", "issue")])
}

/// Rates of reads and writes, each with its unit; 0 is unlimited.
#[derive(Clone, Copy)]
struct Rates {
    reads: u64,
    writes: u64,
    bytes: bool,
}

impl Section {
    fn rates(&self) -> Option<Rates> {
        self.rates_of("rate", true).or_else(|| self.rates_of("rate_iops", false))
    }

    /// Rates of an option, if one is set.
    fn rates_of(&self, name: &str, bytes: bool) -> Option<Rates> {
        let (reads, writes) = match self.text(name).split_once(',') {
            Some(both) => both,
            None => (self.text(name), self.text(name)),
        };
        let value = |text: &str| text.parse().unwrap_or(0);
        let reads = if self.reads() { value(reads) } else { 0 };
        let writes = if self.writes() { value(writes) } else { 0 };
        (reads > 0 || writes > 0).then_some(Rates { reads, writes, bytes })
    }

    /// Minimum rates of each worker.
    pub(super) fn minimum_rate(&self) -> Option<MinimumRate> {
        let bytes = self.rates_of("rate_min", true);
        let Rates { reads, writes, bytes } =
            bytes.or_else(|| self.rates_of("rate_iops_min", false))?;
        let rate = |rate: u64| {
            let own = if bytes { Rate::Bytes(Bytes(rate)) } else { Rate::Ops(rate) };
            (rate > 0).then_some(own)
        };
        let cycle = Nanos(self.number("rate_cycle").saturating_mul(1_000_000));
        Some(MinimumRate { reads: rate(reads), writes: rate(writes), cycle })
    }

    /// True if operations start on schedule.
    pub(super) fn is_rated(&self) -> bool {
        self.rates().is_some()
    }

    /// Start times of operations.
    pub(super) fn pace(&self) -> Pace {
        if self.text("thinktime") != "0" {
            return self.think();
        }
        let Some(Rates { reads, writes, bytes }) = self.rates() else { return Pace::Free };
        let total = |rate: u64| {
            let total = rate.saturating_mul(u64::from(self.workers()));
            if bytes { Rate::Bytes(Bytes(total)) } else { Rate::Ops(total) }
        };
        let arrivals = match self.text("rate_process") {
            "poisson" => Arrivals::Poisson,
            _ => Arrivals::Constant,
        };
        match (reads, writes) {
            (0, rate) | (rate, 0) => Pace::Open { rate: total(rate), arrivals },
            (reads, writes) => {
                Pace::OpenByDirection { reads: total(reads), writes: total(writes), arrivals }
            }
        }
    }

    fn think(&self) -> Pace {
        let every = self.time("thinktime_iotime");
        // Without a number of operations, only the time counts.
        let timed = every > Nanos(0) && self.given("thinktime_blocks").is_none();
        let queues = self.has_queue() && self.number("iodepth") > 1;
        Pace::Think {
            ops: if timed { u64::MAX } else { self.number("thinktime_blocks").max(1) },
            pause: self.time("thinktime"),
            spin: self.time("thinktime_spin"),
            completed: queues && self.text("thinktime_blocks_type") == "complete",
            every,
        }
    }

    /// Contradictions of rates and pauses: option and message.
    pub(super) fn check_pace(&self) -> Option<(&'static str, &'static str)> {
        let pauses = self.text("thinktime") != "0";
        if self.is_rated() && pauses {
            return Some(("thinktime", "rate and thinktime exclude each other"));
        }
        if self.text("rate") != "0" && self.text("rate_iops") != "0" {
            return Some(("rate_iops", "rate and rate_iops exclude each other; remove one"));
        }
        if self.text("rate_min") != "0" && self.text("rate_iops_min") != "0" {
            return Some((
                "rate_iops_min",
                "rate_min and rate_iops_min exclude each other; remove one",
            ));
        }
        for name in ["thinktime_spin", "thinktime_iotime"] {
            if !pauses && self.text(name) != "0" {
                return Some((name, "this option requires thinktime; add it"));
            }
        }
        let rates = self.rates();
        let name = if rates.is_some_and(|rates| rates.bytes) { "rate" } else { "rate_iops" };
        let both = self.reads() && self.writes();
        if both && rates.is_some_and(|rates| rates.reads == 0 || rates.writes == 0) {
            let message = "a rate of one direction only is not supported in mixed sections; use \
                           two sections";
            return Some((name, message));
        }
        if self.text("io_submit_mode") == "offload" {
            let message = "offload is supported with a rate only; add rate or rate_iops, or use \
                           io_submit_mode=inline";
            if rates.is_none() {
                return Some(("io_submit_mode", message));
            }
            if !self.has_queue() && self.number("iodepth") > 1 {
                let message = "a synchronous I/O engine has one operation in flight; use \
                               ioengine=io_uring or libaio, or iodepth=1";
                return Some(("io_submit_mode", message));
            }
        }
        None
    }
}
