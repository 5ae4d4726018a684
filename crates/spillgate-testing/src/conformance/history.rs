use std::fmt;

use spillgate::Timestamp;

use crate::{Limit, Observed, Subject};

/// Calls under one limit, in the order in which they are made.
#[derive(Clone, Debug)]
pub struct History {
    /// The limit.
    pub limit: Limit,
    /// The calls. Their times may go back.
    pub calls: Vec<Call>,
}

/// One call of one caller.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// When it is made.
    pub at: Timestamp,
    /// The caller's key.
    pub key: &'static str,
    /// The operation.
    pub op: Op,
}

/// An operation of a [`Subject`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// See [`Subject::check`].
    Check(u64),
    /// See [`Subject::peek`].
    Peek(u64),
    /// See [`Subject::debit`].
    Debit(u64),
    /// See [`Subject::refund`].
    Refund(u64),
    /// See [`Subject::reset`].
    Reset,
}

impl Call {
    /// Makes the call. If it has no answer of its own, a peek shows its effect.
    pub fn make(&self, subject: &mut impl Subject) -> Observed {
        let Self { at, key, op } = *self;
        match op {
            Op::Check(cost) => return subject.check(key, cost, at),
            Op::Peek(cost) => return subject.peek(key, cost, at),
            Op::Debit(amount) => subject.debit(key, amount, at),
            Op::Refund(amount) => subject.refund(key, amount, at),
            Op::Reset => subject.reset(key, at),
        }
        subject.peek(key, 0, at)
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.limit)?;
        for (index, call) in self.calls.iter().enumerate() {
            writeln!(f, "  {:>2}. {call}", index + 1)?;
        }
        Ok(())
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} {}: {}", self.at, self.key, self.op)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Check(cost) => write!(f, "check {cost}"),
            Self::Peek(cost) => write!(f, "peek {cost}"),
            Self::Debit(amount) => write!(f, "debit {amount}"),
            Self::Refund(amount) => write!(f, "refund {amount}"),
            Self::Reset => write!(f, "reset"),
        }
    }
}
