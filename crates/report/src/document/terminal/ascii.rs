//! ASCII output for terminals without Unicode.

/// Replaces the symbols of fslab by ASCII of the same width, so that columns stay aligned. Other
/// characters, such as letters of names, become `?`.
pub fn ascii(text: &str) -> String {
    // `±` has two characters in ASCII and replaces the space before it.
    let text = text.replace(" ± ", " +-").replace(" ±", "+-").replace('±', "+-");
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        plain.push_str(match c {
            '\0'..='\x7f' => {
                plain.push(c);
                continue;
            }
            '─' | '–' | '—' | '−' | '·' => "-",
            '▲' => "*",
            '▼' => "v",
            '×' => "x",
            '→' => ">",
            '↑' => "^",
            '↓' => "v",
            '≥' => ">=",
            '≤' => "<=",
            '÷' => "/",
            '…' => "~",
            '‘' | '’' => "'",
            '“' | '”' => "\"",
            'µ' | 'μ' => "u",
            'δ' => "d",
            '▁' => "_",
            '▂' => ".",
            '▃' => "-",
            '▄' => "~",
            '▅' => "=",
            '▆' => "+",
            '▇' => "*",
            '█' => "#",
            _ => "?",
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stay_aligned() {
        assert_eq!(ascii(" 2.364  ±1.0 %"), " 2.364 +-1.0 %");
        assert_eq!(ascii("▲ 1.5 µs ×1.07 ▁█ é"), "* 1.5 us x1.07 _# ?");
        assert_eq!(ascii("\u{1b}[1mδ ≥ 5 %"), "\u{1b}[1md >= 5 %");
    }
}
