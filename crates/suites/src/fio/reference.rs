//! Reference page of the options.

use super::{
    options::{Handling, OPTIONS},
    values::ENGINES,
};

/// Body of the reference page, in Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "Options of fio 3.33 and 3.42 in suite `fio`, `fslab run JOB.fio`, `fslab bench JOB.fio`, \
         and `fslab fio`. Every option is done, accepted without effect, or not supported. An \
         option that is not supported ends the command before anything starts, unless it has a \
         value that requests nothing. `drop` leaves options out.\n\n## Done\n\n| option | \
         default | meaning |\n| --- | --- | --- |\n",
    );
    for option in OPTIONS {
        if let Handling::Done { default, .. } = option.handling {
            let default = if default.is_empty() { "—" } else { default };
            let names = names(option.name, option.aliases);
            page.push_str(&format!("| {names} | {default} | {} |\n", option.doc));
        }
    }
    page.push_str("\n### I/O engines\n\n| `ioengine` | system calls |\n| --- | --- |\n");
    for (name, _, calls) in ENGINES {
        page.push_str(&format!("| `{name}` | {calls} |\n"));
    }
    page.push_str(
        "\n## Titles\n\nTitles and layout, without effect on the work: `name`, `description`, \
         `group_reporting`.\n\n## No effect\n\n| option | reason |\n| --- | --- |\n",
    );
    for option in OPTIONS {
        if let Handling::NoEffect(reason) = option.handling {
            page.push_str(&format!("| {} | {reason} |\n", names(option.name, option.aliases)));
        }
    }
    page.push_str(
        "\n## Not supported\n\n| option | accepted values | reason | instead |\n\
         | --- | --- | --- | --- |\n",
    );
    for option in OPTIONS {
        if let Handling::Refused { reason, hint, harmless } = option.handling {
            let names = names(option.name, option.aliases);
            let accepted: Vec<String> = harmless.iter().map(|own| format!("`{own}`")).collect();
            let accepted = if accepted.is_empty() { "—".into() } else { accepted.join(", ") };
            page.push_str(&format!("| {names} | {accepted} | {reason} | {hint} |\n"));
        }
    }
    page
}

fn names(name: &str, aliases: &[&str]) -> String {
    let all: Vec<String> = [name].iter().chain(aliases).map(|own| format!("`{own}`")).collect();
    all.join(", ")
}
