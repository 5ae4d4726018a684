use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Does what may take long, such as looking at every caller, while other threads go on with
/// the other connections of this one. Where there is only one thread, they wait.
pub(super) fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        _ => work(),
    }
}
