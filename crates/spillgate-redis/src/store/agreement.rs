use std::collections::BTreeSet;
use std::fmt::Write;

use tracing::{info, warn};

use crate::Fingerprint;

/// How the configuration of other nodes on the same Redis and prefix compares with this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agreement {
    /// Nodes with the same secret and policy.
    pub same: u32,
    /// Nodes with the same secret and another policy: they share the limits that are equal.
    pub other_policy: u32,
    /// Nodes with another secret, which share nothing with this one.
    pub other_secret: u32,
    /// Nodes of an earlier version, which do not say. They count as sharing.
    pub unknown: u32,
    /// Other prefixes in use on the same Redis. Their nodes share nothing with this one, which may
    /// be intended.
    pub other_prefixes: u32,
}

impl Agreement {
    /// Compares fingerprints with this node's.
    pub(super) fn new(own: Option<Fingerprint>, others: &[(Option<Fingerprint>, u32)]) -> Self {
        let mut agreement = Self::default();
        for (other, count) in others {
            let counter = match (own, other) {
                (Some(own), Some(other)) if own.secret != other.secret => {
                    &mut agreement.other_secret
                }
                (Some(own), Some(other)) if own.policy != other.policy => {
                    &mut agreement.other_policy
                }
                (Some(_), Some(_)) => &mut agreement.same,
                _ => &mut agreement.unknown,
            };
            *counter = counter.saturating_add(*count);
        }
        agreement
    }

    /// What differs, in words; `None` if nothing is known to.
    #[must_use]
    pub fn mismatch(&self) -> Option<String> {
        let mut text = String::new();
        let nodes = |count| if count == 1 { "node has" } else { "nodes have" };
        if self.other_secret > 0 {
            let count = self.other_secret;
            let share = if count == 1 { "shares" } else { "share" };
            let _ = write!(
                text,
                "{count} other {} another secret, and {share} nothing with this one",
                nodes(count)
            );
        }
        if self.other_policy > 0 {
            let (count, comma) = (self.other_policy, if text.is_empty() { "" } else { "; " });
            let _ = write!(text, "{comma}{count} other {} another policy", nodes(count));
        }
        (!text.is_empty()).then_some(text)
    }

    /// The same, and whether other prefixes are in use.
    #[must_use]
    pub fn differences(&self) -> Option<String> {
        let prefixes = match self.other_prefixes {
            0 => None,
            1 => Some("nodes with another prefix share nothing with this one".to_owned()),
            count => Some(format!("nodes with {count} other prefixes share nothing with this one")),
        };
        let all: Vec<_> = self.mismatch().into_iter().chain(prefixes).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Logs differences when they change.
#[derive(Default)]
pub(super) struct Differences {
    logged: (BTreeSet<Fingerprint>, u32),
    /// As of the last time. A difference must be seen twice: during a rolling reload some nodes are
    /// ahead, and a flushed Redis has to learn of all nodes anew.
    seen: (BTreeSet<Fingerprint>, u32),
}

impl Differences {
    pub(super) fn log(
        &mut self,
        own: Option<Fingerprint>,
        others: &[(Option<Fingerprint>, u32)],
        agreement: &Agreement,
    ) {
        let others = others.iter().filter_map(|(other, _)| *other);
        let differing: BTreeSet<_> = others.filter(|other| Some(*other) != own).collect();
        let differing = (differing, agreement.other_prefixes);
        if differing == self.seen && differing != self.logged {
            let Agreement { other_secret, other_policy, other_prefixes, .. } = agreement;
            match agreement.differences() {
                Some(differs) => warn!(
                    other_secret,
                    other_policy, other_prefixes, "nodes on the same Redis differ: {differs}"
                ),
                None => info!("all nodes on this Redis have the same secret and policy again"),
            }
            self.logged.clone_from(&differing);
        }
        self.seen = differing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_counted_by_what_differs_and_the_secret_goes_first() {
        let of = |secret, policy| Some(Fingerprint { secret, policy });
        let others =
            [(of(1, 1), 2), (of(1, 2), 3), (of(1, 3), 1), (of(2, 1), 4), (of(3, 3), 1), (None, 7)];
        let agreement = Agreement::new(of(1, 1), &others);
        let expected =
            Agreement { same: 2, other_policy: 4, other_secret: 5, unknown: 7, other_prefixes: 0 };
        assert_eq!(agreement, expected);
        let text = "5 other nodes have another secret, and share nothing with this one; 4 other nodes \
                    have another policy";
        assert_eq!(agreement.mismatch().as_deref(), Some(text));
        let agreement = Agreement::new(of(1, 1), &[(of(1, 1), 9), (None, 1)]);
        assert_eq!(agreement.mismatch(), None, "nodes of earlier versions are not warned of");
        let agreement = Agreement::new(of(1, 1), &[(of(1, 2), 1)]);
        assert_eq!(agreement.mismatch().as_deref(), Some("1 other node has another policy"));
        let agreement = Agreement { other_prefixes: 1, ..agreement };
        let text = "1 other node has another policy; nodes with another prefix share nothing with this one";
        assert_eq!(agreement.differences().as_deref(), Some(text));
    }
}
