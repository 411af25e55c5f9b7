//! Axes and storage on the command line, for `fslab run` and `fslab show`.

use std::path::PathBuf;

use clap::Args;

/// Axes and storage: the plan of a workload, or overrides of a plan.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Axes {
    /// Filesystems to compare, such as ext4,xfs.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) filesystem: Vec<String>,
    /// Storage: a new image file of this size, such as 4GiB.
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["device", "directory"])]
    pub(crate) image: Option<String>,
    /// Storage: block devices; all data on them is lost.
    #[arg(long, value_name = "PATH,...", value_delimiter = ',', conflicts_with = "directory")]
    pub(crate) device: Vec<String>,
    /// Storage: an existing directory; its filesystem is measured, and nothing is formatted.
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Number of repetitions of each cell. A cell is one combination of filesystem, workload, and
    /// settings [default: as many as --profile requires].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: Option<u32>,
}

/// Options of `fslab run` that `fslab bench` answers with the command to use.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Comparison {
    /// Filesystems to compare.
    #[arg(long, hide = true)]
    pub(crate) filesystem: Option<String>,
    /// Size of the image file.
    #[arg(long, hide = true)]
    pub(crate) image: Option<String>,
    /// Block devices.
    #[arg(long, hide = true)]
    pub(crate) device: Option<String>,
}

impl Axes {
    /// Options as overrides of a plan: key, value, and the option as typed.
    pub(crate) fn overrides(&self) -> Vec<(String, String, String)> {
        let list = |names: &[String]| (!names.is_empty()).then(|| names.join(","));
        let directory = self.directory.as_ref().map(|path| path.display().to_string());
        // Storage precedes filesystems, because `directory` also sets the filesystem.
        let options = [
            ("image_size", "--image", self.image.clone()),
            ("device", "--device", list(&self.device)),
            ("directory", "--directory", directory),
            ("filesystem", "--filesystem", list(&self.filesystem)),
            ("repetitions", "--repetitions", self.repetitions.map(|n| n.to_string())),
        ];
        let given = options.into_iter().filter_map(|(key, option, value)| {
            value.map(|value| (key.to_owned(), value.clone(), format!("{option} {value}")))
        });
        given.collect()
    }
}
