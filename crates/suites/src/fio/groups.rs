//! Sections that run at the same time, and the effect of the end of one on the others.

use std::{collections::BTreeSet, ops::Range};

use model::phase::{Flow, GroupEnd};

use super::{
    job::{Job, Section},
    mistakes::Mistake,
    phases,
    values::{Base, word},
};

pub(super) fn read_exit(text: &str, _: Base) -> Result<String, String> {
    word(text, &["group", "stonewall", "all"].map(|name| (name, name)))
}

impl Section {
    /// True if the end of the section ends the job.
    fn ends_job(&self) -> bool {
        self.flag("exitall") && self.text("exit_what") == "all"
    }
}

impl Job {
    /// Sections that run at the same time, in order.
    pub(super) fn groups(&self) -> Vec<Range<usize>> {
        let begins = |at: usize| at == 0 || self.sections[at].flag("stonewall");
        self.split(0..self.sections.len(), begins)
    }

    /// Splits a range before each section that begins another part.
    fn split(&self, range: Range<usize>, begins: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        for at in range {
            match parts.last_mut() {
                Some(part) if !begins(at) => part.end = at + 1,
                _ => parts.push(at..at + 1),
            }
        }
        parts
    }

    /// Sections of the group of outputs of a section, among those that run at the same time.
    fn reported_with(&self, at: usize) -> Range<usize> {
        let group = self.groups().into_iter().find(|group| group.contains(&at));
        let group = group.unwrap_or(at..at + 1);
        let parts = self.split(group, |at| self.sections[at].flag("new_group"));
        parts.into_iter().find(|part| part.contains(&at)).unwrap_or(at..at + 1)
    }

    /// Flow of the workers of a section.
    pub(super) fn flow(&self, at: usize) -> Option<Flow> {
        let section = &self.sections[at];
        let number = self.flow_ids().iter().position(|id| *id == section.number("flow_id"))?;
        let weight = u32::try_from(section.number("flow")).unwrap_or(0);
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        (weight > 0).then_some(Flow { number, weight, sleep: section.time("flow_sleep") })
    }

    /// Numbers of the flows.
    fn flow_ids(&self) -> BTreeSet<u64> {
        let sections = self.sections.iter().filter(|own| own.number("flow") > 0);
        sections.map(|own| own.number("flow_id")).collect()
    }

    /// Contradictions of flows.
    pub(super) fn check_flows(&self) -> Option<Mistake> {
        let mut flowing = self.sections.iter().filter(|own| own.number("flow") > 0);
        if self.flow_ids().len() > Flow::COUNT as usize {
            let message = "a job has at most 64 flows; use fewer values";
            return flowing.next().map(|own| own.mistake("flow_id", message));
        }
        let waiting = flowing.find(|own| !own.text("wait_for").is_empty())?;
        let message = "the sections of a flow start together: the others would wait for this one; \
                       remove flow or wait_for";
        Some(waiting.mistake("flow", message))
    }

    /// Section with `create_only` whose files another section creates, or an earlier one writes.
    pub(super) fn check_creation(&self) -> Option<Mistake> {
        let all = || self.sections.iter().enumerate();
        for (at, section) in all().filter(|(_, own)| own.flag("create_only")) {
            let own = section.names();
            let creates = |(place, other): &(usize, &Section)| {
                let creates = *place < at || phases::creation(other, 0).is_some();
                *place != at && creates && other.touches() && other.names().share(&own)
            };
            if let Some((_, other)) = all().find(creates) {
                let message =
                    format!("section `{}` creates the same files; remove one of both", other.name);
                return Some(section.mistake("create_only", message));
            }
        }
        None
    }

    /// Effect of the end of a section on those that run at the same time.
    pub(super) fn end(&self, at: usize) -> GroupEnd {
        let section = &self.sections[at];
        let alone = || self.reported_with(at).len() == 1;
        match section.text("exit_what") {
            _ if !section.flag("exitall") => GroupEnd::Each,
            "group" if alone() => GroupEnd::Each,
            _ => GroupEnd::StopAll,
        }
    }

    /// Applies `exitall`, which one section sets for all (fio 3.33, observed), and removes the
    /// sections that never run because the end of an earlier one ends the job.
    ///
    /// # Errors
    /// [`Mistake`] if the end of a section would stop some of the sections that run at the same
    /// time.
    pub(super) fn apply_exits(&mut self) -> Result<(), Mistake> {
        let Some(exitall) = self
            .sections
            .iter()
            .find_map(|own| own.given("exitall").filter(|setting| setting.value == "1").cloned())
        else {
            if self.sections.iter().any(|own| own.text("exit_what") != "group") {
                self.unused.push(("exit_what".into(), "exitall is not set".into()));
            }
            return Ok(());
        };
        for section in &mut self.sections {
            section.settings.insert("exitall", exitall.clone());
        }
        let groups = self.groups();
        for group in &groups {
            for at in group.clone() {
                let stopped = self.reported_with(at);
                let some = stopped.len() > 1 && stopped != *group;
                if some && self.sections[at].text("exit_what") == "group" {
                    let message = "exitall would stop some of the sections that run at the same \
                                   time, those without new_group between them; use \
                                   exit_what=stonewall, which stops all of them";
                    return Err(self.sections[at].mistake("exit_what", message));
                }
            }
        }
        let last = groups
            .iter()
            .find(|group| self.sections[(*group).clone()].iter().any(Section::ends_job));
        if let Some(last) = last {
            let reason = "exit_what=all of an earlier section ends the job before it".to_owned();
            let never = self.sections.drain(last.end..);
            self.unused
                .extend(never.map(|own| (format!("section `{}`", own.name), reason.clone())));
        }
        Ok(())
    }
}
