//! PNG rendering with the embedded fonts only.

use std::sync::{Arc, LazyLock};

use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{self, ImageHrefResolver, Options, Tree, fontdb::Database},
};
use thiserror::Error;

/// Maximum number of pixels of a picture, which take 400 MB while it is drawn (4 bytes each).
pub(super) const PIXELS_MAX: u64 = 100_000_000;

/// Reason that a chart cannot be rendered as PNG.
#[derive(Debug, Error)]
pub enum PngError {
    /// The picture would be empty or have more than 100 million pixels.
    #[error(
        "drawing {width}×{height} units at {pixels_per_unit} pixels a unit: pictures have 1 to \
         {PIXELS_MAX} pixels; take fewer pixels a unit, or the SVG"
    )]
    Size {
        /// Width in units of the SVG.
        width: f32,
        /// Height in units of the SVG.
        height: f32,
        /// Requested resolution.
        pixels_per_unit: f32,
    },
    /// The SVG cannot be parsed.
    #[error("cannot render the SVG of a chart; use the SVG file")]
    Svg(#[source] usvg::Error),
    /// The picture cannot be encoded as PNG.
    #[error("cannot encode {width}×{height} pixels as PNG: {reason}; use the SVG file")]
    Encode {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Error of the encoder.
        reason: String,
    },
}

/// Embedded fonts; `fonts/README.md` states their sources.
const FONTS: [&[u8]; 4] = [
    include_bytes!("../../fonts/NotoSans-Regular.subset.ttf"),
    include_bytes!("../../fonts/NotoSans-Bold.subset.ttf"),
    include_bytes!("../../fonts/NotoSansMath-Regular.subset.ttf"),
    include_bytes!("../../fonts/NotoSansSymbols2-Regular.subset.ttf"),
];

/// Font family of texts; the other fonts provide symbols that it lacks.
const FAMILY: &str = "Noto Sans";

static DATABASE: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut database = Database::new();
    FONTS.into_iter().for_each(|font| database.load_font_data(font.to_vec()));
    database.set_sans_serif_family(FAMILY);
    Arc::new(database)
});

/// Renders an SVG as PNG.
///
/// # Errors
/// As [`PngError`].
pub(super) fn png(svg: &str, pixels_per_unit: f32) -> Result<Vec<u8>, PngError> {
    let options = Options {
        font_family: FAMILY.into(),
        fontdb: Arc::clone(&DATABASE),
        // Charts contain no images, and this crate reads no files.
        image_href_resolver: ImageHrefResolver {
            resolve_data: Box::new(|_, _, _| None),
            resolve_string: Box::new(|_, _| None),
        },
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).map_err(PngError::Svg)?;
    let (width, height) = (tree.size().width(), tree.size().height());
    let size = PngError::Size { width, height, pixels_per_unit };
    let (Some(across), Some(down)) =
        (pixels(width, pixels_per_unit), pixels(height, pixels_per_unit))
    else {
        return Err(size);
    };
    if u64::from(across) * u64::from(down) > PIXELS_MAX {
        return Err(size);
    }
    let mut pixmap = Pixmap::new(across, down).ok_or(size)?;
    let scale = Transform::from_scale(pixels_per_unit, pixels_per_unit);
    resvg::render(&tree, scale, &mut pixmap.as_mut());
    let encoded = pixmap.encode_png();
    encoded.map_err(|error| PngError::Encode {
        width: across,
        height: down,
        reason: error.to_string(),
    })
}

/// Length in pixels, rounded up. `None` if it is not positive or exceeds [`PIXELS_MAX`].
fn pixels(length: f32, pixels_per_unit: f32) -> Option<u32> {
    let pixels = f64::from(length) * f64::from(pixels_per_unit);
    let fits = pixels > 0.0 && pixels <= PIXELS_MAX as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "above 0 and at most PIXELS_MAX"
    )]
    fits.then(|| pixels.ceil() as u32)
}
