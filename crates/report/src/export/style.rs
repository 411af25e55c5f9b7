//! Conversion of the style sheet to presentation attributes of the elements of a chart.
//!
//! Elements get presentation attributes (SVG 1.1, section 6.1) instead of classes, in the light
//! color scheme, without variables. The supported subset of CSS is what the style sheet of reports
//! uses for charts: selectors of element names, classes, and descendants; custom properties and
//! `var()` (css-variables-1); the `font` shorthand. Rules with other selectors and conditional
//! rules (`@media`) are ignored.

use std::collections::BTreeMap;

use crate::svg::looks;

/// Properties that are written as attributes; all others concern the HTML page.
const ATTRIBUTES: [&str; 23] = [
    "fill",
    "fill-opacity",
    "fill-rule",
    "stroke",
    "stroke-width",
    "stroke-opacity",
    "stroke-dasharray",
    "stroke-dashoffset",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-miterlimit",
    "opacity",
    "paint-order",
    "text-anchor",
    "dominant-baseline",
    "font-size",
    "font-style",
    "font-weight",
    "letter-spacing",
    "stop-color",
    "stop-opacity",
    "shape-rendering",
    "visibility",
];

/// Maximum nesting of references between variables.
const DEPTH_MAX: usize = 8;

type Variables = BTreeMap<String, String>;

/// Rules of a style sheet.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) looks: Vec<usize>,
    root: Variables,
    /// Sorted by specificity, so that later rules override earlier ones.
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    /// Outermost first.
    path: Vec<Simple>,
    declarations: Vec<(String, String)>,
}

/// Selector of a single element.
#[derive(Debug, Default)]
struct Simple {
    element: Option<String>,
    classes: Vec<String>,
}

/// Open element between the root and the current position.
#[derive(Debug)]
struct Open {
    element: String,
    classes: Vec<String>,
    variables: Variables,
}

impl Sheet {
    /// The style sheet of a page of these filesystems.
    pub(super) fn new(filesystems: &[String]) -> Self {
        let looks = looks::of(filesystems);
        let css = include_str!("../../templates/style.css").to_owned() + &looks::style(&looks);
        Self { looks, ..Self::of(&css) }
    }

    /// Parses a style sheet.
    fn of(css: &str) -> Self {
        let mut sheet = Self { looks: Vec::new(), root: Variables::new(), rules: Vec::new() };
        for (selectors, body) in blocks(css) {
            let declarations = declarations(body);
            for selector in selectors.split(',').map(str::trim) {
                if selector == ":root" {
                    sheet.root.extend(declarations.iter().cloned());
                } else if let Some(path) = path(selector) {
                    sheet.rules.push(Rule { path, declarations: declarations.clone() });
                }
            }
        }
        // The sort is stable: of rules with equal specificity, the later one wins.
        sheet.rules.sort_by_key(Rule::weight);
        sheet
    }

    /// Value of a variable of the page, such as `--ink`; empty if it is not defined.
    pub(super) fn variable(&self, name: &str) -> &str {
        self.root.get(name).map_or("", String::as_str)
    }

    /// Returns the SVG with presentation attributes. `outside` are the classes of the surrounding
    /// element.
    pub(super) fn apply(&self, svg: &str, outside: &[&str]) -> String {
        let around = Open {
            element: "figure".into(),
            classes: outside.iter().map(|class| (*class).to_owned()).collect(),
            variables: self.root.clone(),
        };
        let mut open = vec![around];
        let mut text = String::with_capacity(svg.len() * 2);
        let mut rest = svg;
        while let Some(start) = rest.find('<') {
            text.push_str(&rest[..start]);
            let tag = tag_at(&rest[start..]);
            rest = &rest[start + tag.len()..];
            if tag.starts_with("</") {
                open.pop();
                text.push_str(tag);
            } else {
                self.styled(tag, &mut open, &mut text);
            }
        }
        text.push_str(rest);
        text
    }

    /// Writes a start tag or an empty-element tag with its attributes.
    fn styled(&self, tag: &str, open: &mut Vec<Open>, text: &mut String) {
        let empty = tag.ends_with("/>");
        let inner = tag.trim_start_matches('<').trim_end_matches('>').trim_end_matches('/');
        let (element, attributes) = inner.split_once([' ', '\n']).unwrap_or((inner, ""));
        let attributes = read_attributes(attributes);
        let find = |name: &str| attributes.iter().find(|own| own.0 == name).map(|own| own.1);
        let classes = find("class").unwrap_or("").split_whitespace().map(str::to_owned).collect();
        let variables = open.last().map(|around| around.variables.clone()).unwrap_or_default();
        open.push(Open { element: element.to_owned(), classes, variables });
        let mut style: BTreeMap<String, String> = BTreeMap::new();
        let own = find("style").map(declarations).unwrap_or_default();
        let ruled = self.rules.iter().filter(|rule| rule.is_of(open));
        let ruled = ruled.flat_map(|rule| rule.declarations.iter().cloned());
        let all: Vec<(String, String)> = ruled.chain(own).collect();
        if let Some(this) = open.last_mut() {
            for (name, value) in &all {
                match name.starts_with("--") {
                    true => {
                        this.variables.insert(name.clone(), value.clone());
                    }
                    false if name == "font" => style.extend(font(value)),
                    false => {
                        style.insert(name.clone(), value.clone());
                    }
                }
            }
            style.retain(|name, _| ATTRIBUTES.contains(&name.as_str()));
            for (name, value) in &mut style {
                *value = resolved(value, &this.variables, 0);
                if name == "font-weight" {
                    *value = weight(value);
                }
            }
        }
        text.push('<');
        text.push_str(element);
        let kept = |name: &&str| !matches!(*name, "class" | "style") && !style.contains_key(*name);
        for (name, value) in attributes.iter().filter(|own| kept(&own.0)) {
            attribute(text, name, value);
        }
        style.iter().for_each(|(name, value)| attribute(text, name, &value.replace('"', "'")));
        text.push_str(if empty { "/>" } else { ">" });
        if empty {
            open.pop();
        }
    }
}

impl Rule {
    /// Specificity: number of classes and number of elements of the selector (selectors-4).
    fn weight(&self) -> (usize, usize) {
        let classes = self.path.iter().map(|simple| simple.classes.len()).sum();
        (classes, self.path.iter().filter(|simple| simple.element.is_some()).count())
    }

    /// True if the selector matches the last of these elements.
    fn is_of(&self, open: &[Open]) -> bool {
        let (Some((last, above)), Some((this, around))) =
            (self.path.split_last(), open.split_last())
        else {
            return false;
        };
        let mut around = around.iter().rev();
        last.fits(this) && above.iter().rev().all(|simple| around.any(|open| simple.fits(open)))
    }
}

impl Simple {
    fn fits(&self, open: &Open) -> bool {
        self.element.as_ref().is_none_or(|element| *element == open.element)
            && self.classes.iter().all(|class| open.classes.contains(class))
    }
}

/// Selectors and declarations of each rule outside of `@` blocks.
fn blocks(css: &str) -> Vec<(&str, &str)> {
    let (mut found, mut rest) = (Vec::new(), css);
    while let Some(start) = rest.find('{') {
        let head = rest[..start].trim();
        // A comment or another statement may precede the selectors.
        let head = head.rsplit(['}', ';']).next().unwrap_or(head);
        let head = head.rsplit("*/").next().unwrap_or(head).trim();
        let body = &rest[start + 1..];
        let length = closing(body);
        if !head.starts_with('@') {
            found.push((head, &body[..length]));
        }
        rest = body.get(length + 1..).unwrap_or("");
    }
    found
}

/// Position of the brace that closes the block in which this text starts.
fn closing(text: &str) -> usize {
    let mut depth = 1_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

fn declarations(body: &str) -> Vec<(String, String)> {
    let pairs = body.split(';').filter_map(|declaration| declaration.split_once(':'));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

/// Selector of element names and classes; `None` for any other.
fn path(selector: &str) -> Option<Vec<Simple>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    if selector.is_empty() || !selector.chars().all(plain) {
        return None;
    }
    let simple = |word: &str| {
        let mut names = word.split('.');
        let element = names.next().filter(|name| !name.is_empty()).map(str::to_owned);
        Simple { element, classes: names.map(str::to_owned).collect() }
    };
    Some(selector.split_whitespace().map(simple).collect())
}

/// Style, weight, and size of `font: [style] [weight] size[/height] family`. The family is set by
/// the frame.
fn font(value: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for word in value.split_whitespace() {
        let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        match word {
            "italic" | "oblique" => found.push(("font-style".into(), word.into())),
            "bold" => found.push(("font-weight".into(), word.into())),
            _ if number == word && number.parse::<u32>().is_ok() => {
                found.push(("font-weight".into(), word.into()));
            }
            _ if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                let size = word.split('/').next().unwrap_or(word);
                found.push(("font-size".into(), size.into()));
                break;
            }
            _ => {}
        }
    }
    found
}

/// Font weight as `bold` or `normal` (numbers from 600 are bold), because some programs do not
/// support numbers between the hundreds of SVG 1.1.
fn weight(value: &str) -> String {
    match value.parse::<u32>() {
        Ok(600..) => "bold".into(),
        Ok(_) => "normal".into(),
        Err(_) => value.to_owned(),
    }
}

/// Value with variables replaced, and with lengths in user units, which equal `px`.
fn resolved(value: &str, variables: &Variables, depth: usize) -> String {
    let mut text = value.to_owned();
    while let Some(start) = text.find("var(") {
        let inner = &text[start + 4..];
        let end = inner.find(')').unwrap_or(inner.len());
        let (name, fallback) = inner[..end].split_once(',').unwrap_or((&inner[..end], ""));
        let known = variables.get(name.trim()).map_or(fallback.trim(), String::as_str);
        let known = match depth {
            DEPTH_MAX.. => String::new(),
            _ => resolved(known, variables, depth + 1),
        };
        let after = inner.get(end + 1..).unwrap_or("").to_owned();
        text.truncate(start);
        text.push_str(&known);
        text.push_str(&after);
    }
    text.split(' ')
        .map(|word| word.strip_suffix("px").unwrap_or(word))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Tag at the start of a text. Quoted values may contain `>`.
pub(super) fn tag_at(text: &str) -> &str {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('>', None) => return &text[..=at],
            _ => {}
        }
    }
    text
}

pub(super) fn read_attributes(text: &str) -> Vec<(&str, &str)> {
    let (mut found, mut rest) = (Vec::new(), text.trim());
    while let Some((name, after)) = rest.split_once('=') {
        let Some(quote) = after.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            break;
        };
        let Some((value, after)) = after[1..].split_once(quote) else {
            break;
        };
        found.push((name.trim(), value));
        rest = after.trim_start();
    }
    found
}

fn attribute(text: &mut String, name: &str, value: &str) {
    for part in [" ", name, "=\"", value, "\""] {
        text.push_str(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSS: &str = ":root { --ink: #111; --c0: #00f; }
        @media (prefers-color-scheme: dark) { :root { --ink: #eee; } .t { fill: red; } }
        @media print { a { color: inherit } }
        /* what; is: this */ .t, .u { fill: var(--ink); }
        .chart text { font: italic 12.5px/1.4 system-ui, sans-serif; }
        .chart .tb { font-weight: 650; }
        .s0 { --c: var(--c0); } .m { fill: var(--c); stroke: var(--no, #fff); stroke-width: 3px; }
        .plot .far { opacity: .5; } .m.tb { fill: none; } a:hover, .m > b { fill: red; }
        .chart { display: block; }";

    fn check(svg: &str, expected: &str) {
        assert_eq!(Sheet::of(CSS).apply(svg, &["plot"]), expected);
    }

    #[test]
    fn rules_become_attributes() {
        check(
            "<svg class=\"chart\" width=\"9\"><text class=\"t tb\" x=\"1\">a &lt; b</text></svg>",
            "<svg width=\"9\"><text x=\"1\" fill=\"#111\" font-size=\"12.5\" font-style=\"italic\" \
             font-weight=\"bold\">a &lt; b</text></svg>",
        );
    }

    #[test]
    fn variables_come_from_the_same_element_or_from_above() {
        let drawn = "fill=\"#00f\" stroke=\"#fff\" stroke-width=\"3\"/>";
        check("<circle class=\"m s0\"/>", &format!("<circle {drawn}"));
        check("<g class=\"s0\"><circle class=\"m\"/></g>", &format!("<g><circle {drawn}</g>"));
        check(
            "<g style=\"--c: #0f0\"><i class=\"m tb\" fill=\"x\"/></g>",
            "<g><i fill=\"none\" stroke=\"#fff\" stroke-width=\"3\"/></g>",
        );
    }

    #[test]
    fn surrounding_text_counts() {
        check("<i class=\"far\"/>", "<i opacity=\".5\"/>");
        assert_eq!(Sheet::of(CSS).apply("<i class=\"far\"/>", &[]), "<i/>");
    }

    #[test]
    fn circles_of_variables_end() {
        let sheet = Sheet::of(":root { --a: var(--b); --b: var(--a) } .t { fill: var(--a) }");
        assert_eq!(sheet.apply("<i class=\"t\"/>", &[]), "<i fill=\"\"/>");
    }
}
