//! Limiters in the child of a `fork`.
//!
//! The child has a copy of every limiter, but only one thread. A lock that another thread held
//! would stay locked there for ever. So the thread that forks takes every lock first, and both
//! processes release them. There are no handlers before the first limiter: a `fork` while another
//! thread makes that one is not covered.

use std::any::Any;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use spillgate::fork::Held;

use crate::{Error, Limiter};

/// What is locked while a thread forks.
struct Registry {
    limiters: Vec<Weak<Limiter>>,
    others: Vec<fn() -> Box<dyn Any>>,
}

/// Held while a limiter is built, which initialises what limiters share.
static REGISTRY: Mutex<Registry> = Mutex::new(Registry { limiters: vec![], others: vec![] });

thread_local! {
    /// What the thread holds while it forks.
    static HELD: RefCell<Option<AllHeld>> = const { RefCell::new(None) };
}

/// Dropped in this order: locks before what they are in.
struct AllHeld {
    _others: Vec<Box<dyn Any>>,
    _locks: Held<'static>,
    _limiters: Vec<Arc<Limiter>>,
    _registry: MutexGuard<'static, Registry>,
}

/// Builds a limiter that stays usable in the child of a `fork`.
pub(crate) fn registered(
    build: impl FnOnce() -> Result<Limiter, Error>,
) -> Result<Arc<Limiter>, Error> {
    watch();
    let mut registry = registry();
    let limiter = Arc::new(build()?);
    // Only when it would grow, so that many limiters are not visited for each one.
    if registry.limiters.len() == registry.limiters.capacity() {
        registry.limiters.retain(|limiter| limiter.strong_count() > 0);
    }
    registry.limiters.push(Arc::downgrade(&limiter));
    Ok(limiter)
}

/// Holds the locks that limiters share while a thread forks, from now on. Building a limiter does
/// it too.
pub fn watch() {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(set_handlers);
}

/// Adds a function that takes a lock of a binding and returns its guard. The lock must be one
/// under which nothing else is locked.
pub fn also_hold(lock: fn() -> Box<dyn Any>) {
    registry().others.push(lock);
}

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
fn set_handlers() {
    // It fails only without memory; then a `fork` is as safe as without handlers.
    #[expect(unsafe_code, reason = "an interface of the operating system")]
    // SAFETY: the handlers are functions without arguments that never unwind.
    let _ = unsafe { libc::pthread_atfork(Some(hold), Some(release), Some(release)) };
}

#[cfg(not(unix))]
fn set_handlers() {}

/// Takes every lock, in the thread that forks and before it does.
#[cfg(unix)]
extern "C" fn hold() {
    let registry = registry();
    let limiters: Vec<_> = registry.limiters.iter().filter_map(Weak::upgrade).collect();
    let borrowed = limiters.iter().map(|limiter| {
        #[expect(unsafe_code, reason = "a borrow from the same struct")]
        // SAFETY: `AllHeld` keeps the limiter until after the locks are dropped.
        unsafe {
            &*Arc::as_ptr(limiter)
        }
    });
    let locks = spillgate::fork::hold(borrowed);
    let others = registry.others.iter().map(|lock| lock()).collect();
    let held = AllHeld { _others: others, _locks: locks, _limiters: limiters, _registry: registry };
    // A thread that is exiting has no such variable any more: it forks without locks held.
    let _ = HELD.try_with(|place| place.replace(Some(held)));
}

/// Releases them, in the same thread of both processes.
#[cfg(unix)]
extern "C" fn release() {
    let _ = HELD.try_with(RefCell::take);
}
