//! Conversion of the style sheet to presentation attributes of the elements of a chart.
//!
//! Elements get presentation attributes (SVG 1.1, section 6.1) instead of classes, in the light
//! color scheme, without variables. The supported subset of CSS is what the style sheet of reports
//! uses for charts: selectors of one element name and classes, optionally after `.chart`; custom
//! properties of the page and of the element, and `var()` (css-variables-1); the `font` shorthand.
//! Rules with other selectors and conditional rules (`@media`) are ignored.

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

type Declarations = Vec<(String, String)>;

/// Rules of a style sheet.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) looks: Vec<usize>,
    /// Variables of the page.
    root: BTreeMap<String, String>,
    /// In ascending order of the number of classes, so that later rules override earlier ones.
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    /// Empty for any element.
    element: String,
    classes: Vec<String>,
    declarations: Declarations,
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
        let mut sheet = Self { looks: Vec::new(), root: BTreeMap::new(), rules: Vec::new() };
        for (selectors, body) in blocks(css) {
            for selector in selectors.split(',').map(str::trim) {
                match selector {
                    ":root" => sheet.root.extend(declarations(body)),
                    _ => sheet.rules.extend(Rule::new(selector, body)),
                }
            }
        }
        // The sort is stable: of rules with as many classes, the later one wins.
        sheet.rules.sort_by_key(|rule| rule.classes.len());
        sheet
    }

    /// Value of a variable of the page, such as `--ink`; empty if it is not defined.
    pub(super) fn variable(&self, name: &str) -> &str {
        self.root.get(name).map_or("", String::as_str)
    }

    /// Returns the SVG with presentation attributes.
    pub(super) fn apply(&self, svg: &str) -> String {
        let mut text = String::with_capacity(svg.len() * 2);
        let mut rest = svg;
        while let Some(start) = rest.find('<') {
            text.push_str(&rest[..start]);
            let tag = tag_at(&rest[start..]);
            rest = &rest[start + tag.len()..];
            match tag.starts_with("</") {
                true => text.push_str(tag),
                false => self.styled(tag, &mut text),
            }
        }
        text.push_str(rest);
        text
    }

    /// Writes a start tag or an empty-element tag with its attributes.
    fn styled(&self, tag: &str, text: &mut String) {
        let inner = tag.trim_start_matches('<').trim_end_matches('>').trim_end_matches('/');
        let (element, attributes) = inner.split_once([' ', '\n']).unwrap_or((inner, ""));
        let attributes = read_attributes(attributes);
        let classes = attributes.iter().find(|own| own.0 == "class").map_or("", |own| own.1);
        let classes: Vec<&str> = classes.split_whitespace().collect();
        let own = self.rules.iter().filter(|rule| rule.is_of(element, &classes));
        let style: BTreeMap<&str, &str> = own.flat_map(Rule::pairs).collect();
        let mut set: BTreeMap<&str, String> = BTreeMap::new();
        // The shorthand `font` comes first, so that other properties override it.
        for (name, value) in &style {
            let value = self.resolved(value, &style);
            match *name {
                "font" => set.extend(font(&value).map(|(name, value)| (name, value.to_owned()))),
                "font-weight" => set.extend([(*name, weight(&value).to_owned())]),
                _ if ATTRIBUTES.contains(name) => set.extend([(*name, value.replace('"', "'"))]),
                _ => {}
            }
        }
        text.push('<');
        text.push_str(element);
        let kept = |name: &str| !matches!(name, "class" | "style") && !set.contains_key(name);
        for (name, value) in attributes.iter().filter(|own| kept(own.0)) {
            attribute(text, name, value);
        }
        set.iter().for_each(|(name, value)| attribute(text, name, value));
        text.push_str(if tag.ends_with("/>") { "/>" } else { ">" });
    }

    /// Value without variables, and with lengths in user units, which equal `px`. Variables are
    /// those of the element and of the page.
    fn resolved(&self, value: &str, style: &BTreeMap<&str, &str>) -> String {
        let mut text = value.to_owned();
        while let Some((before, rest)) = text.split_once("var(") {
            let (name, after) = rest.split_once(')').unwrap_or((rest, ""));
            let known = style.get(name).copied().unwrap_or_else(|| self.variable(name));
            text = format!("{before}{known}{after}");
        }
        let words = text.split(' ').map(|word| word.strip_suffix("px").unwrap_or(word));
        words.collect::<Vec<_>>().join(" ")
    }
}

impl Rule {
    /// Rule of an element name and classes, within a chart; `None` for any other selector.
    fn new(selector: &str, body: &str) -> Option<Self> {
        let selector = selector.strip_prefix(".chart ").unwrap_or(selector);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if selector.is_empty() || !selector.chars().all(plain) {
            return None;
        }
        let mut names = selector.split('.').map(str::to_owned);
        Some(Self {
            element: names.next().unwrap_or_default(),
            classes: names.collect(),
            declarations: declarations(body),
        })
    }

    fn is_of(&self, element: &str, classes: &[&str]) -> bool {
        (self.element.is_empty() || self.element == element)
            && self.classes.iter().all(|class| classes.contains(&class.as_str()))
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.declarations.iter().map(|(name, value)| (name.as_str(), value.as_str()))
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

fn declarations(body: &str) -> Declarations {
    let pairs = body.split(';').filter_map(|declaration| declaration.split_once(':'));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

/// Style, weight, and size of `font: [style] [weight] size[/height] family`. The family is set by
/// the frame.
fn font(value: &str) -> impl Iterator<Item = (&'static str, &str)> {
    let end = value.find(',').unwrap_or(value.len());
    value[..end].split_whitespace().filter_map(|word| match word {
        "italic" | "oblique" => Some(("font-style", word)),
        "bold" => Some(("font-weight", word)),
        _ if word.parse::<u32>().is_ok_and(|number| number >= 100) => {
            Some(("font-weight", weight(word)))
        }
        _ if word.starts_with(|c: char| c.is_ascii_digit()) => {
            Some(("font-size", word.split('/').next().unwrap_or(word).trim_end_matches("px")))
        }
        _ => None,
    })
}

/// Font weight as `bold` or `normal` (numbers from 600 are bold), because some programs do not
/// support numbers between the hundreds of SVG 1.1.
fn weight(value: &str) -> &str {
    match value.parse::<u32>() {
        Ok(600..) => "bold",
        Ok(_) => "normal",
        Err(_) => value,
    }
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
        .s0 { --c: var(--c0); } .m { fill: var(--c); stroke: var(--no); stroke-width: 3px; }
        .m.tb { fill: none; } a:hover, .m > b, .plot .m { fill: red; }
        .chart { display: block; }";

    fn check(svg: &str, expected: &str) {
        assert_eq!(Sheet::of(CSS).apply(svg), expected);
    }

    #[test]
    fn rules_become_attributes() {
        check(
            "<svg class=\"chart\" width=\"9\"><text class=\"t tb\" x=\"1\">a &lt; b</text></svg>",
            "<svg width=\"9\"><text x=\"1\" fill=\"#111\" font-size=\"12.5\" \
             font-style=\"italic\" font-weight=\"bold\">a &lt; b</text></svg>",
        );
    }

    #[test]
    fn variables_are_those_of_the_element_or_of_the_page() {
        check(
            "<g class=\"u\"><circle class=\"m s0\"/></g>",
            "<g fill=\"#111\"><circle fill=\"#00f\" stroke=\"\" stroke-width=\"3\"/></g>",
        );
        check(
            "<i class=\"m tb\" fill=\"x\"/>",
            "<i fill=\"none\" font-weight=\"bold\" stroke=\"\" stroke-width=\"3\"/>",
        );
    }
}
