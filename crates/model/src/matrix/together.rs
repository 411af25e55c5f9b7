//! Cells of workloads that run together: all combinations of the parameters of the members.

use super::Refine;
use crate::{
    phase::Part,
    plan::{
        PlanError,
        together::{Alone, MEMBERS, MemberEntry, ONLY, TogetherEntry, line},
    },
    units::Scale,
    words,
    workload::{Value, WorkloadParameters},
};

impl TogetherEntry {
    /// Names of the members that are measured alone.
    fn alone(&self) -> impl Iterator<Item = &MemberEntry> {
        self.members.iter().filter(|member| match self.alone {
            Alone::Measured => member.part == Part::Measured,
            Alone::None => false,
            Alone::All => true,
        })
    }

    /// Numbers of values of the parameters of all members, and of cells per combination.
    pub(crate) fn sizes(&self) -> Vec<(String, usize)> {
        let of = |member: &MemberEntry| {
            let values = member.entry.values.clone();
            let name = member.name.clone();
            values.into_iter().map(move |(key, values)| (format!("{name}.{key}"), values.len()))
        };
        let cells = ("alone".to_owned(), 1 + self.alone().count());
        self.members.iter().flat_map(of).chain([cells]).collect()
    }

    /// Workloads of the cells for each of the given values of the other parameters, with labels.
    ///
    /// # Errors
    /// [`PlanError`] at the first member with invalid parameters.
    pub(crate) fn points(
        &self,
        bases: &[WorkloadParameters],
        scale: Scale,
        refine: Refine<'_>,
    ) -> Result<Vec<(WorkloadParameters, String)>, PlanError> {
        let mut points = Vec::new();
        for base in bases {
            for combination in self.combinations(scale, refine)? {
                let lines = self.members.iter().zip(&combination).map(|(member, workload)| {
                    line(&member.name, member.part, member.start_delay, workload)
                });
                let members = words::join_lines(&lines.collect::<Vec<_>>());
                let swept = self.swept(&combination);
                let mut base = base.clone();
                base.parameters.insert(MEMBERS.to_owned(), Value::Text(members));
                let only = |only: &str| {
                    let mut point = base.clone();
                    point.parameters.insert(ONLY.to_owned(), Value::Text(only.to_owned()));
                    point
                };
                points.push((only(""), format!("{}{swept}", self.label())));
                let alone = self.alone();
                points.extend(
                    alone.map(|member| {
                        (only(&member.name), format!("{} alone{swept}", member.name))
                    }),
                );
            }
        }
        Ok(points)
    }

    /// Measured members, then the others: `log with bulk, trim`.
    fn label(&self) -> String {
        let names = |part| {
            let own = self.members.iter().filter(|member| member.part == part);
            own.map(|member| member.name.as_str()).collect::<Vec<_>>()
        };
        let (measured, background) = (names(Part::Measured), names(Part::Background));
        match &background[..] {
            [] => measured.join(" with "),
            background => format!("{} with {}", measured.join(", "), background.join(", ")),
        }
    }

    /// Values of the parameters that have several: ` bulk.rate=100/s`.
    fn swept(&self, combination: &[WorkloadParameters]) -> String {
        let mut text = String::new();
        for (member, workload) in self.members.iter().zip(combination) {
            for (key, _) in member.entry.values.iter().filter(|(_, values)| values.len() > 1) {
                text += &format!(" {}.{key}={}", member.name, workload.value(key));
            }
        }
        text
    }

    /// All combinations of the workloads of the members.
    fn combinations(
        &self,
        scale: Scale,
        refine: Refine<'_>,
    ) -> Result<Vec<Vec<WorkloadParameters>>, PlanError> {
        let mut combinations: Vec<Vec<WorkloadParameters>> = vec![Vec::new()];
        for member in &self.members {
            let mut refined = Vec::new();
            for point in member.entry.points(scale) {
                let points = refine(point).map_err(|error| PlanError {
                    message: format!("member `{}`: {}", member.name, error.message),
                    span: member.entry.span.clone(),
                    hint: error.hint,
                })?;
                refined.extend(points);
            }
            let with = |combination: &Vec<WorkloadParameters>| {
                let of = |point: &WorkloadParameters| {
                    let mut combination = combination.clone();
                    combination.push(point.clone());
                    combination
                };
                refined.iter().map(of).collect::<Vec<_>>()
            };
            combinations = combinations.iter().flat_map(with).collect();
        }
        Ok(combinations)
    }
}
