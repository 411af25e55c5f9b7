//! Arguments of the command line of another program.

use clap::Args;

/// `fslab fio`, `fslab bonnie++`
#[derive(Debug, Args)]
pub(crate) struct ProgramArguments {
    /// Arguments of the program.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<String>,
}
