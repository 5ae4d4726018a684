use dashmap::DashMap;

/// Asks the limiter of one caller, which is made when the caller is first seen:
/// how a limiter without keys is given them.
#[inline]
pub fn ask<L>(
    limiters: &DashMap<String, L>,
    key: &str,
    make: impl FnOnce() -> L,
    ask: impl Fn(&L) -> bool,
) -> bool {
    // The read lock suffices for all but the first check.
    if let Some(limiter) = limiters.get(key) {
        return ask(&limiter);
    }
    ask(&limiters.entry(key.to_owned()).or_insert_with(make))
}
