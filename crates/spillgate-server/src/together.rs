//! Asking several questions at once.

use futures_util::stream::{self, StreamExt};

/// Waits for all of these, `at_once` at a time, and tells what became of each, in their order.
pub(crate) async fn together<F: Future>(questions: Vec<F>, at_once: usize) -> Vec<F::Output> {
    if at_once > 1 {
        return stream::iter(questions).buffered(at_once).collect().await;
    }
    // Those that are ready on the spot need no places to wait in.
    let mut answers = Vec::with_capacity(questions.len());
    for question in questions {
        answers.push(question.await);
    }
    answers
}
