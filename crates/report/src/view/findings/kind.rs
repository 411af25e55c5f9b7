//! Kinds of findings.

use serde::{Serialize, Serializer};

/// Defines the kinds: code, question, and what a run needs to raise it.
macro_rules! kinds {
    ($($kind:ident $question:literal $needs:literal;)*) => {
        /// Kind of a finding. Its name is the code that reports and `fslab explain` show.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum FindingKind {
            $(#[doc = $question] $kind,)*
        }

        impl FindingKind {
            /// All kinds in the order of reports.
            pub(crate) const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Code, such as `C1`.
            pub(crate) fn code(self) -> &'static str {
                match self { $(Self::$kind => stringify!($kind),)* }
            }

            /// Question that the finding answers.
            pub(crate) fn question(self) -> &'static str {
                match self { $(Self::$kind => $question,)* }
            }

            /// Properties of a run that raises the question.
            pub(crate) fn needs(self) -> &'static str {
                match self { $(Self::$kind => $needs,)* }
            }
        }
    };
}

kinds! {
    C1 "fastest filesystem" "two comparable filesystems";
    C2 "top group" "two comparable filesystems, and a top group of several";
    C3 "slowest filesystem" "three comparable filesystems";
    C4 "equivalent filesystems" "two comparable filesystems";
    C5 "comparison of two filesystems" "two comparable filesystems, and a top group of several";
    C6 "effect of a parameter" "a numeric parameter with several values";
    C7 "no effect of a parameter" "a numeric parameter with several values";
    C8 "optimum of a parameter" "a numeric parameter with several values";
    C9 "scaling limit" "several numbers of clients";
    C10 "scaling beyond the tested range" "several numbers of clients";
    C11 "change between runs" "a second run (`fslab compare`)";
    C12 "mean over workloads" "two filesystems and three workloads of one suite";
    C14 "sustained rate" "phases with a rate recorded over at least 100 intervals";
    C16 "cost of durability" "writes with both durable and accepted throughput";
    C17 "source of variance" "phases with a rate recorded over at least 100 intervals";
    C18 "influence of settings" "varied system settings with at least two values each";
    C19 "comparison of devices" "the axis `device` with at least two devices";
    C20 "failures" "a failed repetition";
    C21 "bottleneck" "a measured limit of a device or of a CPU";
    C22 "validity" "measurements by fslab";
    C23 "cost of a filesystem over its device" "level `none`, the block device without a filesystem";
    C24 "effects of options" "options in `axes.mkfs` or `axes.mount`";
    C25 "slowdown by other workloads" "workloads that run `together`";
}

impl FindingKind {
    /// True if further repetitions cannot invalidate the finding.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::C20 | Self::C21 | Self::C22)
    }

    /// True if the finding ranks filesystems.
    pub(crate) fn ranks(self) -> bool {
        matches!(self, Self::C1 | Self::C2 | Self::C3 | Self::C4 | Self::C5)
    }
}

impl Serialize for FindingKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}
