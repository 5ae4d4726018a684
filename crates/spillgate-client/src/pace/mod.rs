//! When requests may be sent.

mod budget;
mod ramp;
mod replica;
mod settings;
mod state;
mod supply;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::HOST;
use http::request::Parts;
use spillgate::Timestamp;

pub(crate) use self::budget::{Budget, Ticket, is_refusal};
pub(crate) use self::settings::Settings;
use crate::status::BudgetStatus;

/// All budgets of a client, by host and key.
pub(crate) struct Pacer {
    settings: Arc<Settings>,
    key: Option<Box<PartsText>>,
    route: Option<Box<PartsText>>,
    budgets: Mutex<Budgets>,
}

/// A text made of the head of a request.
pub(crate) type PartsText = dyn Fn(&Parts) -> String + Send + Sync;

/// The name of what all share for which there is no room.
pub(crate) const OTHER_HOSTS: &str = "other hosts";

struct Budgets {
    by_name: HashMap<(Box<str>, Box<str>), Arc<Budget>>,
    /// What all share for which there is no room.
    rest: Arc<Budget>,
    swept_at: Timestamp,
}

impl Pacer {
    pub(crate) fn new(
        settings: Arc<Settings>,
        key: Option<Box<PartsText>>,
        route: Option<Box<PartsText>>,
    ) -> Self {
        let rest = Arc::new(Budget::new(OTHER_HOSTS.into(), "".into(), Arc::clone(&settings)));
        let budgets = Budgets { by_name: HashMap::new(), rest, swept_at: Timestamp::ZERO };
        Self { settings, key, route, budgets: Mutex::new(budgets) }
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// The budget and the route of a request.
    pub(crate) fn find(&self, request: &Parts) -> (Arc<Budget>, Arc<str>) {
        let text = |from: &Option<Box<PartsText>>| from.as_ref().map(|from| from(request));
        let key = text(&self.key).unwrap_or_default().into_boxed_str();
        let route = Arc::from(text(&self.route).unwrap_or_default());
        (self.budget((host_of(request), key)), route)
    }

    fn budget(&self, name: (Box<str>, Box<str>)) -> Arc<Budget> {
        let mut budgets = self.lock();
        if let Some(budget) = budgets.by_name.get(&name) {
            return Arc::clone(budget);
        }
        if budgets.by_name.len() >= self.settings.max_budgets {
            self.sweep(&mut budgets);
        }
        if budgets.by_name.len() >= self.settings.max_budgets {
            return Arc::clone(&budgets.rest);
        }
        let (host, key) = name.clone();
        let budget = Arc::new(Budget::new(host, key, Arc::clone(&self.settings)));
        budgets.by_name.insert(name, Arc::clone(&budget));
        budget
    }

    /// Forgets budgets that nobody uses, once per second at most: it looks at all of them.
    fn sweep(&self, budgets: &mut Budgets) {
        let now = self.settings.now();
        if now.since(budgets.swept_at).as_secs() == 0 {
            return;
        }
        budgets.swept_at = now;
        // No one else can get hold of it while the map is locked.
        let is_used = |it: &Arc<Budget>| Arc::strong_count(it) > 1 || !it.lock().is_idle(now);
        budgets.by_name.retain(|_, budget| is_used(budget));
    }

    pub(crate) fn status(&self) -> Vec<BudgetStatus> {
        let now = self.settings.now();
        let budgets: Vec<_> = {
            let budgets = self.lock();
            let rest = Some(&budgets.rest).filter(|rest| !rest.lock().is_idle(now));
            budgets.by_name.values().chain(rest).map(Arc::clone).collect()
        };
        let mut status: Vec<_> = budgets.iter().map(|budget| budget.status(now)).collect();
        status.sort_by(|one, other| (&one.host, &one.key).cmp(&(&other.host, &other.key)));
        status
    }

    fn lock(&self) -> MutexGuard<'_, Budgets> {
        self.budgets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The host that a request is for, with its port unless that is the scheme's.
fn host_of(request: &Parts) -> Box<str> {
    let header = || request.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = request.uri.authority().map(|authority| {
        // Without user and password.
        let whole = authority.as_str();
        whole.rsplit_once('@').map_or(whole, |(_, host)| host)
    });
    let host = host.or_else(header).unwrap_or_default();
    let port = match request.uri.scheme_str() {
        Some("http") => ":80",
        Some("https") => ":443",
        _ => return host.to_ascii_lowercase().into(),
    };
    host.strip_suffix(port).unwrap_or(host).to_ascii_lowercase().into()
}

impl fmt::Debug for Pacer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacer").field("settings", &self.settings).finish_non_exhaustive()
    }
}
