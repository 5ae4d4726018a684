use redis::{FromRedisValue, ParsingError, Value, from_redis_value};

use super::super::address::Address;

/// Which master has which slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Topology {
    /// First slot, last slot and master, in ascending order.
    pub(super) ranges: Vec<(u16, u16, Address)>,
}

impl Topology {
    /// Parses the reply to `CLUSTER SLOTS` from `asked`.
    pub(super) fn read(answer: Value, asked: &Address) -> Result<Self, ParsingError> {
        let mut ranges = Vec::new();
        for range in from_redis_value::<Vec<Value>>(answer)? {
            let mut fields = from_redis_value::<Vec<Value>>(range)?.into_iter();
            let mut field = || fields.next().unwrap_or(Value::Nil);
            let first = from_redis_value(field())?;
            let last = from_redis_value(field())?;
            // The master comes first, then its replicas.
            let mut master = from_redis_value::<Vec<Value>>(field())?.into_iter();
            let host = Option::<String>::from_redis_value(master.next().unwrap_or(Value::Nil))?;
            let port = from_redis_value(master.next().unwrap_or(Value::Nil))?;
            let host = host.unwrap_or_default();
            if let Some(master) = Address::named(&host, port, asked) {
                ranges.push((first, last, master));
            }
        }
        ranges.sort_by_key(|(first, _, _)| *first);
        Ok(Self { ranges })
    }

    /// The masters, each once.
    pub(super) fn masters(&self) -> Vec<&Address> {
        let mut masters: Vec<_> = self.ranges.iter().map(|(_, _, master)| master).collect();
        masters.sort_by_key(ToString::to_string);
        masters.dedup();
        masters
    }

    /// True if a node has slots.
    pub(super) fn has(&self, node: &Address) -> bool {
        self.ranges.iter().any(|(_, _, master)| master == node)
    }

    /// The master of a slot.
    pub(super) fn owner(&self, slot: u16) -> Option<&Address> {
        let place = self.ranges.partition_point(|(_, last, _)| *last < slot);
        let (first, _, master) = self.ranges.get(place)?;
        (*first <= slot).then_some(master)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())])
    }

    fn range(first: i64, last: i64, nodes: Vec<Value>) -> Value {
        let mut fields = vec![Value::Int(first), Value::Int(last)];
        fields.extend(nodes);
        Value::Array(fields)
    }

    #[test]
    fn each_slot_has_the_master_that_the_reply_names() {
        let host = |host: &str| Value::BulkString(host.as_bytes().to_vec());
        let answer = Value::Array(vec![
            range(8000, 16383, vec![node(host(""), 2)]),
            range(0, 4999, vec![node(host("a"), 1), node(host("b"), 9)]),
            range(5001, 7999, vec![node(Value::Nil, 1)]),
        ]);
        let asked = Address::Tcp("here".into(), 7);
        let topology = Topology::read(answer, &asked).unwrap();
        let tcp = |host: &str, port| Address::Tcp(host.into(), port);
        for (slot, master) in [
            (0, Some(tcp("a", 1))),
            (4999, Some(tcp("a", 1))),
            (5000, None),
            (5001, Some(tcp("here", 1))),
            (16383, Some(tcp("here", 2))),
        ] {
            assert_eq!(topology.owner(slot), master.as_ref(), "{slot}");
        }
        assert_eq!(topology.masters().len(), 3);
    }

    #[test]
    fn nonsense_is_an_error() {
        let asked = Address::Tcp("here".into(), 7);
        for odd in [
            Value::Int(1),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![Value::Array(vec![])]),
        ] {
            assert!(Topology::read(odd, &asked).is_err());
        }
    }
}
