//! Paths of a replay as C strings: whole, and split into directory and last component.

use std::ffi::{CStr, CString};

/// Path.
struct Split {
    whole: CString,
    /// Directory of the last component; `None` if there is one component only.
    directory: Option<CString>,
    /// Last component, with slashes after it.
    last: CString,
}

/// All paths, by their numbers.
pub(super) struct Paths(Vec<Split>);

impl Paths {
    pub(super) fn new(paths: &[CString]) -> Self {
        let split = |whole: &CString| {
            let bytes = whole.as_bytes();
            let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
            let border = bytes[..end].iter().rposition(|byte| *byte == b'/');
            let text = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
            Split {
                whole: whole.clone(),
                directory: border.map(|border| text(&bytes[..border])),
                last: text(&bytes[border.map_or(0, |border| border + 1)..]),
            }
        };
        Self(paths.iter().map(split).collect())
    }

    /// Path with this number, which is not [`trace::NONE`].
    pub(super) fn whole(&self, number: u32) -> &CStr {
        &self.0[number as usize - 1].whole
    }

    /// Directory, if there is one, and last component of a path.
    pub(super) fn split(&self, number: u32) -> (Option<&CStr>, &CStr) {
        let Split { directory, last, .. } = &self.0[number as usize - 1];
        (directory.as_deref(), last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_component_keeps_its_slashes() {
        let all = [c"a", c"a/b", c"a//b/c/", c"."].map(CStr::to_owned);
        let paths = Paths::new(&all);
        assert_eq!(paths.split(1), (None, c"a"));
        assert_eq!(paths.split(2), (Some(c"a"), c"b"));
        assert_eq!(paths.split(3), (Some(c"a//b"), c"c/"));
        assert_eq!(paths.split(4), (None, c"."));
        assert_eq!(paths.whole(3), c"a//b/c/");
    }
}
