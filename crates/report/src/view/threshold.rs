//! The smallest difference that matters, and what it is where twins differ by more.

use model::{Profile, Ratio};

/// δ as the profile has it, and δ′ = max(δ, noise of the twins), which everything is judged by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Threshold {
    asked: Ratio,
    working: Ratio,
}

impl Threshold {
    /// The δ of a profile, of a run whose twins tell nothing else.
    pub(crate) fn of(profile: Profile) -> Self {
        Self { asked: profile.threshold(), working: profile.threshold() }
    }

    /// Raised to what twins differ by; never lowered.
    pub(crate) fn raised(self, noise: Ratio) -> Self {
        Self { working: if noise.0 > self.asked.0 { noise } else { self.asked }, ..self }
    }

    /// What is worked with, as a part of 1.
    pub(crate) fn ratio(self) -> Ratio {
        self.working
    }

    /// Whether it is more than was asked for.
    pub(crate) fn is_raised(self) -> bool {
        self.working != self.asked
    }

    /// `δ`, or `δ′` where it was raised.
    pub(crate) fn symbol(self) -> &'static str {
        if self.is_raised() { "δ′" } else { "δ" }
    }

    /// `5 %`; with a decimal where it was raised.
    pub(crate) fn percent(self) -> String {
        let decimals = usize::from(self.is_raised());
        format!("{:.decimals$} %", self.working.0 * 100.0)
    }

    /// `δ = 5 %`.
    pub(crate) fn words(self) -> String {
        format!("{} = {}", self.symbol(), self.percent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_raises_the_threshold_and_never_lowers_it() {
        let asked = Threshold::of(Profile::Standard);
        assert_eq!(asked.words(), "δ = 5 %");
        assert_eq!(asked.raised(Ratio(0.072)).words(), "δ′ = 7.2 %");
        assert_eq!(asked.raised(Ratio(0.01)), asked);
    }
}
