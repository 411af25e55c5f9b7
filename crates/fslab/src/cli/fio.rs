//! Arguments of `fslab fio`.

use clap::Args;

/// `fslab fio`
#[derive(Debug, Args)]
pub(crate) struct Fio {
    /// Arguments of fio: options of the program, options of jobs, and job files.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<String>,
}
