use std::error::Error;

use clap::Args;

use super::print;
use crate::settings;

/// Print the JSON schema of the configuration file
///
/// Editors complete and check a configuration file by it: Even Better TOML in VS Code, taplo, and
/// others that know JSON schemas:
///
///   spillgate schema > spillgate.schema.json
///
/// Then the first line of the file says where it is:
///
///   #:schema ./spillgate.schema.json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Schema {}

impl Schema {
    pub(super) fn run(self) -> Result<(), Box<dyn Error>> {
        print(&format!("{:#}\n", settings::schema()?))
    }
}
