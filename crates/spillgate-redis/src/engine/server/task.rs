use std::future::Future;

use tokio::task::JoinHandle;

/// A task that ends when this is dropped.
#[derive(Debug)]
pub(super) struct Task(JoinHandle<()>);

impl Task {
    pub(super) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(future))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
