//! End of a section when its rate is steady.

use model::{
    Nanos,
    phase::{SteadyChange, SteadyLimit, SteadyRate, SteadyState},
};

use super::{
    job::{Job, Section},
    mistakes::Mistake,
    values::{Base, size},
};

/// Rates and measures of their change, by the names of fio.
const CRITERIA: [(&str, SteadyRate, SteadyChange); 4] = [
    ("iops", SteadyRate::Operations, SteadyChange::Deviation),
    ("iops_slope", SteadyRate::Operations, SteadyChange::Slope),
    ("bw", SteadyRate::Bytes, SteadyChange::Deviation),
    ("bw_slope", SteadyRate::Bytes, SteadyChange::Slope),
];

/// Criterion and limit, such as `iops_slope:0.3%`.
pub(super) fn read_criterion(text: &str, base: Base) -> Result<String, String> {
    let bad =
        || format!("`{text}` is not iops:LIMIT, iops_slope:LIMIT, bw:LIMIT, or bw_slope:LIMIT");
    let (name, limit) = text.split_once(':').ok_or_else(bad)?;
    let (name, limit) = (name.trim(), limit.trim());
    let (_, rate, _) = CRITERIA.iter().find(|(known, ..)| *known == name).ok_or_else(bad)?;
    let limit = match limit.strip_suffix('%') {
        Some(percent) => {
            let percent: f64 = percent.trim().parse().map_err(|_| bad())?;
            let valid = percent > 0.0 && percent <= 1000.0;
            valid.then(|| format!("{percent}%"))
        }
        None if *rate == SteadyRate::Bytes => Some(size(limit, base)?.to_string()),
        None => Some(limit.parse::<u64>().map_err(|_| bad())?.to_string()),
    };
    match limit.as_deref() {
        None | Some("0") => Err("the limit is not greater than 0".into()),
        Some(limit) => Ok(format!("{name}:{limit}")),
    }
}

impl Section {
    /// Condition that ends the section.
    pub(super) fn steady_state(&self) -> Option<SteadyState> {
        let (name, limit) = self.text("steadystate").split_once(':')?;
        let (_, rate, change) = CRITERIA.iter().find(|(known, ..)| *known == name)?;
        let limit = match limit.strip_suffix('%') {
            Some(percent) => SteadyLimit::Relative(percent.parse::<f64>().ok()? / 100.0),
            None => SteadyLimit::Absolute(limit.parse().ok()?),
        };
        let interval = self.time("steadystate_check_interval");
        let intervals = self.time("steadystate_duration").0 / interval.0.max(1);
        let ramp = Nanos(self.time("ramp_time").0 + self.time("steadystate_ramp_time").0);
        let intervals = u32::try_from(intervals).unwrap_or(u32::MAX);
        Some(SteadyState { rate: *rate, change: *change, limit, ramp, interval, intervals })
    }

    /// Contradictions of the options of a steady state: option and message.
    pub(super) fn check_steady(&self) -> Option<(&'static str, &'static str)> {
        const REST: [&str; 2] = ["steadystate_duration", "steadystate_ramp_time"];
        let Some(own) = self.steady_state() else {
            let name = REST.into_iter().find(|name| self.text(name) != "0")?;
            return Some((name, "steadystate is missing; add for example steadystate=iops:10%"));
        };
        if own.interval < Nanos(100_000_000) {
            return Some(("steadystate_check_interval", "the interval is shorter than 100 ms"));
        }
        if !(2..=100_000).contains(&own.intervals) {
            let message = "steadystate_duration is not 2 to 100000 times \
                           steadystate_check_interval; set for example steadystate_duration=30s";
            return Some(("steadystate_duration", message));
        }
        None
    }
}

impl Job {
    /// Section that ends when its rate is steady, while others run.
    pub(super) fn check_alone(&self) -> Option<Mistake> {
        let groups = self.groups().into_iter().filter(|group| group.len() > 1);
        let section = groups.flatten().map(|at| &self.sections[at]);
        let section = section.into_iter().find(|own| own.steady_state().is_some())?;
        let message = "steadystate is not supported in sections that run at the same time as \
                       others; add stonewall";
        Some(section.mistake("steadystate", message))
    }
}
