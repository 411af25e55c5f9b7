//! Charts of a page as separate pictures: positions in pixels instead of percent, and markers in
//! place instead of references, which not every program supports.

use super::style::{read_attributes, tag_at};
use crate::svg::{Short, looks};

/// Attributes with horizontal lengths, which are in percent of the width.
const HORIZONTAL: [&str; 3] = ["x", "cx", "width"];

/// The chart without percentages, references, and nested SVG elements.
pub(super) fn absolute(svg: &str, looks: &[usize]) -> String {
    let mut text = String::with_capacity(svg.len());
    let (mut width, mut depth, mut rest) = (None, 0_usize, svg);
    while let Some(start) = rest.find('<') {
        text.push_str(&rest[..start]);
        let tag = tag_at(&rest[start..]);
        rest = &rest[start + tag.len()..];
        let inner = tag.trim_start_matches('<').trim_end_matches('>').trim_end_matches('/');
        let (element, attributes) = inner.split_once([' ', '\n']).unwrap_or((inner, ""));
        let attributes = read_attributes(attributes);
        let find = |name: &str| attributes.iter().find(|own| own.0 == name).map(|own| own.1);
        let width = *width.get_or_insert_with(|| {
            find("width").and_then(|text| text.parse::<f64>().ok()).unwrap_or_default()
        });
        let pixels = |value: &str| -> String {
            let percent = value.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
            percent.map_or_else(
                || value.to_owned(),
                |percent| Short(percent / 100.0 * width).to_string(),
            )
        };
        let moved = || match (find("x"), find("y")) {
            (Some(x), Some(y)) => format!(" transform=\"translate({} {y})\"", pixels(x)),
            _ => String::new(),
        };
        let series = find("href").and_then(|id| id.strip_prefix("#m")?.parse::<usize>().ok());
        match (element, series) {
            ("svg", _) if depth > 0 => {
                depth += 1;
                text.push_str(&format!("<g{}>", moved()));
            }
            ("/svg", _) if depth > 1 => {
                depth -= 1;
                text.push_str("</g>");
            }
            ("use", Some(series)) => {
                let (class, path) = looks::marker(looks, series);
                let moved = moved();
                text.push_str(&format!("<path class=\"{class}\" d=\"{path}\"{moved}/>"));
            }
            _ => {
                depth += usize::from(element == "svg");
                text.push_str(&in_pixels(tag, &attributes, &pixels));
            }
        }
    }
    text.push_str(rest);
    text
}

/// The tag with its horizontal lengths in pixels.
fn in_pixels(tag: &str, attributes: &[(&str, &str)], pixels: &impl Fn(&str) -> String) -> String {
    let mut text = tag.to_owned();
    for (name, value) in attributes.iter().filter(|(name, _)| HORIZONTAL.contains(name)) {
        let before = format!(" {name}=\"{value}\"");
        text = text.replacen(&before, &format!(" {name}=\"{}\"", pixels(value)), 1);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_in_percent_and_nothing_is_a_reference() {
        let svg = "<svg class=\"chart\" width=\"200\" height=\"9\"><title>5%</title>\n\
                   <svg viewBox=\"0 0 200 9\" preserveAspectRatio=\"none\">\n\
                   <path d=\"M0 0\"/></svg>\n<g data-filesystem=\"x=&quot;1%&quot;\">\
                   <use href=\"#m1\" x=\"25%\" y=\"4\"/></g>\n\
                   <rect class=\"z\" x=\"50%\" y=\"1\" width=\".5%\" height=\"9\"/>\n\
                   <svg x=\"10%\" y=\"2\"><text>a</text></svg><circle cx=\"1%\" cy=\"2\"/></svg>";
        assert_eq!(
            absolute(svg, &looks::of(&[])),
            "<svg class=\"chart\" width=\"200\" height=\"9\"><title>5%</title>\n\
             <g>\n<path d=\"M0 0\"/></g>\n\
             <g data-filesystem=\"x=&quot;1%&quot;\"><path class=\"m s1\" \
             d=\"M-3.9-3.9H3.9V3.9H-3.9Z\" transform=\"translate(50 4)\"/></g>\n\
             <rect class=\"z\" x=\"100\" y=\"1\" width=\"1\" height=\"9\"/>\n\
             <g transform=\"translate(20 2)\"><text>a</text></g><circle cx=\"2\" cy=\"2\"/></svg>"
        );
    }
}
