//! Equivalence margin of a run: δ, or δ′ after the A/A control.

use model::{Profile, Ratio};

/// Nominal margin δ of the profile, and effective margin δ′ = max(δ, A/A noise). All tests use the
/// effective margin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EquivalenceMargin {
    nominal: Ratio,
    effective: Ratio,
}

impl EquivalenceMargin {
    /// Margin δ of a profile, not raised.
    pub(crate) fn of(profile: Profile) -> Self {
        Self { nominal: profile.equivalence_margin(), effective: profile.equivalence_margin() }
    }

    /// Raises the margin to the A/A noise; never lowers it.
    pub(crate) fn raised(self, noise: Ratio) -> Self {
        Self { effective: if noise.0 > self.nominal.0 { noise } else { self.nominal }, ..self }
    }

    /// The effective margin, as a fraction of 1.
    pub(crate) fn ratio(self) -> Ratio {
        self.effective
    }

    /// True if the A/A control raised the margin.
    pub(crate) fn is_raised(self) -> bool {
        self.effective != self.nominal
    }

    /// `δ`, or `δ′` if raised.
    pub(crate) fn symbol(self) -> &'static str {
        if self.is_raised() { "δ′" } else { "δ" }
    }

    /// `5 %`; with one decimal if raised.
    pub(crate) fn percent(self) -> String {
        let decimals = usize::from(self.is_raised());
        format!("{:.decimals$} %", self.effective.0 * 100.0)
    }

    /// `δ = 5 %`.
    pub(crate) fn label(self) -> String {
        format!("{} = {}", self.symbol(), self.percent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_raises_and_never_lowers_the_margin() {
        let nominal = EquivalenceMargin::of(Profile::Standard);
        assert_eq!(nominal.label(), "δ = 5 %");
        assert_eq!(nominal.raised(Ratio(0.072)).label(), "δ′ = 7.2 %");
        assert_eq!(nominal.raised(Ratio(0.01)), nominal);
    }
}
