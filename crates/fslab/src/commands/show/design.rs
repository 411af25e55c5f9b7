//! Options that a plan varies.

use model::{
    Plan,
    design::{self, Design, OptionAxis},
};

/// Varied options, the number of their combinations, and the interactions that a screening design
/// does not distinguish.
pub(super) fn options(plan: &Plan) -> Vec<String> {
    let options = &plan.options;
    let Ok(combinations) = Design::combinations(plan.design, options) else { return Vec::new() };
    if options.is_empty() {
        return Vec::new();
    }
    let option = |OptionAxis { key, values }: &OptionAxis| {
        let values: Vec<_> = values.iter().map(ToString::to_string).collect();
        format!("option      {key}: {}", values.join(", "))
    };
    let mut lines: Vec<String> = options.iter().map(option).collect();
    let all = options.iter().fold(1_usize, |all, it| all.saturating_mul(it.values.len()));
    lines.push(format!("design      {} of {all} combinations of options", combinations.len()));
    if plan.design == Some(Design::Screen) {
        let pair = |(one, other): &(usize, usize)| {
            format!("{} × {}", options[*one].key, options[*other].key)
        };
        let group = |pairs: &Vec<(usize, usize)>| {
            format!("aliased     {}", pairs.iter().map(pair).collect::<Vec<_>>().join(" = "))
        };
        lines.extend(design::aliases(options).iter().map(group));
    }
    lines
}
