use clap::Args;
use serde_json::{Map, Value, json};

/// Until when something counts, and why.
#[derive(Args)]
pub(super) struct TermsArgs {
    /// How long it lasts: 90s, 10m, 1h, 1d [default: for ever]
    #[arg(long = "for", value_name = "DURATION")]
    ttl: Option<String>,
    /// When it ends, such as 2027-01-01T00:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "ttl")]
    expires: Option<String>,
    /// Why it is there
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
}

impl TermsArgs {
    /// The members of a body that say so.
    pub(super) fn body(&self) -> Map<String, Value> {
        let given = [("ttl", &self.ttl), ("expires", &self.expires), ("comment", &self.comment)];
        let given = given
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), json!(value.as_ref()?))));
        given.collect()
    }
}
