//! Textures: distinguish areas without color, and mark missing numbers.
//!
//! This module computes the lines that fill a rectangle. The style sheet defines their strokes.

/// Pattern of lines that fills an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Texture {
    /// No lines.
    Plain,
    /// Rising to the right.
    Rising,
    /// Falling to the right.
    Falling,
    /// Upright.
    Upright,
    /// Level.
    Level,
    /// Rising and falling.
    Crossed,
    /// Upright and level.
    Grid,
}

/// A straight line.
type Stroke = [(f64, f64); 2];

impl Texture {
    /// Lines at a distance in a rectangle, given by its left upper corner and its size.
    pub(crate) fn strokes(
        self,
        (left, top): (f64, f64),
        (width, height): (f64, f64),
        distance: f64,
    ) -> Vec<Stroke> {
        let lines = match self {
            Self::Plain => Vec::new(),
            Self::Rising => rising(width, height, distance),
            Self::Falling => falling(width, height, distance),
            Self::Upright => upright(width, height, distance),
            Self::Level => level(width, height, distance),
            Self::Crossed => [rising, falling].map(|of| of(width, height, distance)).concat(),
            Self::Grid => [upright, level].map(|of| of(width, height, distance)).concat(),
        };
        lines.into_iter().map(|ends| ends.map(|(x, y)| (left + x, top + y))).collect()
    }
}

/// Positions at a distance; the first is half of it from the edge.
fn places(length: f64, distance: f64) -> impl Iterator<Item = f64> {
    let at = move |index: u32| distance * (f64::from(index) + 0.5);
    (0..).map(at).take_while(move |at| *at < length)
}

fn rising(width: f64, height: f64, distance: f64) -> Vec<Stroke> {
    let line = |sum: f64| {
        // The sum of both coordinates is the same for all points of a line.
        let (from, to) = ((sum - height).max(0.0), sum.min(width));
        [(from, sum - from), (to, sum - to)]
    };
    places(width + height, distance).map(line).collect()
}

fn falling(width: f64, height: f64, distance: f64) -> Vec<Stroke> {
    let mirrored = |ends: Stroke| ends.map(|(x, y)| (width - x, y));
    rising(width, height, distance).into_iter().map(mirrored).collect()
}

fn upright(width: f64, height: f64, distance: f64) -> Vec<Stroke> {
    places(width, distance).map(|x| [(x, 0.0), (x, height)]).collect()
}

fn level(width: f64, height: f64, distance: f64) -> Vec<Stroke> {
    places(height, distance).map(|y| [(0.0, y), (width, y)]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINED: [Texture; 6] = [
        Texture::Rising,
        Texture::Falling,
        Texture::Upright,
        Texture::Level,
        Texture::Crossed,
        Texture::Grid,
    ];

    proptest! {
        #[test]
        fn lines_stay_in_their_area_and_reach_its_edges(
            width in 8.0..400.0f64, height in 8.0..60.0f64, distance in 3.0..8.0f64
        ) {
            for texture in LINED {
                let strokes = texture.strokes((10.0, 20.0), (width, height), distance);
                prop_assert!(!strokes.is_empty());
                for (x, y) in strokes.into_iter().flatten() {
                    let (x, y) = (x - 10.0, y - 20.0);
                    let inside = |at: f64, end: f64| (-1e-9..=end + 1e-9).contains(&at);
                    prop_assert!(inside(x, width) && inside(y, height), "{texture:?} {x} {y}");
                    let edge = |at: f64, end: f64| at.abs() < 1e-9 || (at - end).abs() < 1e-9;
                    prop_assert!(edge(x, width) || edge(y, height), "{texture:?} {x} {y}");
                }
            }
        }
    }

    #[test]
    fn an_area_of_no_size_has_no_lines() {
        for texture in LINED {
            assert!(texture.strokes((0.0, 0.0), (0.0, 0.0), 5.0).is_empty(), "{texture:?}");
        }
        assert!(Texture::Plain.strokes((0.0, 0.0), (50.0, 50.0), 5.0).is_empty());
    }
}
