use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;

/// Queued calls in fair order: limits take turns, clients take turns within a limit, and the calls
/// of a client stay in order.
#[derive(Debug)]
pub(super) struct Flows<L, C, T> {
    limits: HashMap<L, Clients<C, T>>,
    /// Limits with calls, the next first.
    turns: VecDeque<L>,
    len: usize,
}

/// Queued calls of one limit.
#[derive(Debug)]
struct Clients<C, T> {
    calls: HashMap<C, VecDeque<T>>,
    /// Clients with calls, the next first.
    turns: VecDeque<C>,
    /// The same, by number of calls.
    by_len: BTreeSet<(usize, C)>,
    len: usize,
}

impl<L: Copy + Eq + Hash, C: Copy + Ord + Hash, T> Flows<L, C, T> {
    /// The number of calls.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a call.
    pub(super) fn push(&mut self, limit: L, client: C, call: T) {
        let clients = self.limits.entry(limit).or_insert_with(|| {
            self.turns.push_back(limit);
            Clients::default()
        });
        clients.push(client, call);
        self.len += 1;
    }

    /// Takes the next call.
    pub(super) fn pop(&mut self) -> Option<T> {
        let limit = self.turns.pop_front()?;
        let clients = self.limits.get_mut(&limit)?;
        let call = clients.pop();
        if clients.len == 0 {
            self.limits.remove(&limit);
        } else {
            self.turns.push_back(limit);
        }
        self.len -= usize::from(call.is_some());
        call
    }

    /// Removes a call that no longer waits.
    pub(super) fn remove(&mut self, limit: L, client: C, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let call = self.limits.get_mut(&limit)?.remove(client, is_it)?;
        self.took_from(limit);
        Some(call)
    }

    /// Makes room for a call: removes the newest one of the client with the most, under the limit
    /// with the most. Nothing is removed if that is the client of the call.
    pub(super) fn make_room(&mut self, limit: L, client: C) -> Option<T> {
        let own = self.limits.get(&limit);
        let (own_limit, own_client) =
            own.map_or((1, 1), |own| (own.len + 1, own.calls_of(client) + 1));
        let (longest, clients) = self.limits.iter_mut().max_by_key(|(_, clients)| clients.len)?;
        let longest = *longest;
        // As if the call were there already.
        if longest == limit || clients.len <= own_limit {
            let clients = self.limits.get_mut(&limit)?;
            let call = clients.take_newest(own_client)?;
            self.took_from(limit);
            return Some(call);
        }
        let call = clients.take_newest(0)?;
        self.took_from(longest);
        Some(call)
    }

    /// Notes that a call of this limit is gone.
    fn took_from(&mut self, limit: L) {
        self.len -= 1;
        if self.limits.get(&limit).is_some_and(|clients| clients.len == 0) {
            self.limits.remove(&limit);
            self.turns.retain(|other| *other != limit);
        }
    }
}

impl<C: Copy + Ord + Hash, T> Clients<C, T> {
    fn calls_of(&self, client: C) -> usize {
        self.calls.get(&client).map_or(0, VecDeque::len)
    }

    fn push(&mut self, client: C, call: T) {
        let calls = self.calls.entry(client).or_insert_with(|| {
            self.turns.push_back(client);
            VecDeque::new()
        });
        calls.push_back(call);
        self.by_len.remove(&(calls.len() - 1, client));
        self.by_len.insert((calls.len(), client));
        self.len += 1;
    }

    fn pop(&mut self) -> Option<T> {
        let client = self.turns.pop_front()?;
        let call = self.calls.get_mut(&client)?.pop_front();
        if self.took_from(client) {
            self.turns.push_back(client);
        }
        call
    }

    fn remove(&mut self, client: C, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let calls = self.calls.get_mut(&client)?;
        let call = calls.remove(calls.iter().position(is_it)?);
        self.gone_from(client);
        call
    }

    /// Removes the newest call of the client with the most, if it has more than so many.
    fn take_newest(&mut self, than: usize) -> Option<T> {
        let (_, client) = *self.by_len.last().filter(|(len, _)| *len > than)?;
        let call = self.calls.get_mut(&client)?.pop_back();
        self.gone_from(client);
        call
    }

    /// Notes that a call of this client was removed out of turn.
    fn gone_from(&mut self, client: C) {
        if !self.took_from(client) {
            self.turns.retain(|other| *other != client);
        }
    }

    /// Notes that a call of this client is gone. Returns whether it has more.
    fn took_from(&mut self, client: C) -> bool {
        let left = self.calls_of(client);
        self.by_len.remove(&(left + 1, client));
        self.len -= 1;
        if left == 0 {
            self.calls.remove(&client);
        } else {
            self.by_len.insert((left, client));
        }
        left > 0
    }
}

impl<L, C, T> Default for Flows<L, C, T> {
    fn default() -> Self {
        Self { limits: HashMap::new(), turns: VecDeque::new(), len: 0 }
    }
}

impl<C, T> Default for Clients<C, T> {
    fn default() -> Self {
        Self { calls: HashMap::new(), turns: VecDeque::new(), by_len: BTreeSet::new(), len: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Calls = Flows<char, u32, u32>;

    fn of(calls: &[(char, u32, u32)]) -> Calls {
        let mut flows = Calls::default();
        calls.iter().for_each(|(limit, client, call)| flows.push(*limit, *client, *call));
        flows
    }

    fn order(mut flows: Calls) -> Vec<u32> {
        let order: Vec<_> = std::iter::from_fn(|| flows.pop()).collect();
        assert_eq!(flows.len(), 0);
        assert!(flows.limits.is_empty() && flows.turns.is_empty());
        order
    }

    #[test]
    fn limits_take_turns_and_so_do_the_clients_of_each() {
        let flows = of(&[
            ('a', 1, 10),
            ('a', 1, 11),
            ('a', 1, 12),
            ('a', 2, 20),
            ('a', 2, 21),
            ('b', 3, 30),
            ('b', 3, 31),
        ]);
        assert_eq!(order(flows), [10, 30, 20, 31, 11, 21, 12]);
    }

    #[test]
    fn a_later_client_waits_for_one_turn_of_each_client() {
        let mut flows = Calls::default();
        for client in 0..400 {
            (0..16).for_each(|_| flows.push('a', client, client));
        }
        flows.push('a', 1000, 1000);
        flows.push('b', 1000, 2000);
        let order = order(flows);
        assert_eq!(order.iter().position(|call| *call == 1000), Some(401));
        assert_eq!(order.iter().position(|call| *call == 2000), Some(1));
    }

    #[test]
    fn a_call_that_is_given_up_leaves_nothing() {
        let mut flows = of(&[('a', 1, 10), ('a', 1, 11), ('a', 2, 20), ('b', 3, 30)]);
        assert_eq!(flows.remove('a', 1, |call| *call == 11), Some(11));
        assert_eq!(flows.remove('a', 1, |call| *call == 11), None);
        assert_eq!(flows.remove('b', 3, |call| *call == 30), Some(30));
        assert_eq!(flows.remove('a', 2, |call| *call == 20), Some(20));
        assert_eq!(flows.len(), 1);
        assert_eq!(order(flows), [10]);
    }

    #[test]
    fn room_is_made_by_the_newest_call_of_the_client_with_the_most() {
        let mut flows = of(&[('a', 1, 10), ('a', 1, 11), ('a', 2, 20), ('a', 1, 12), ('b', 3, 30)]);
        // For another client of the same limit, and of another limit.
        assert_eq!(flows.make_room('a', 2), Some(12));
        assert_eq!(flows.make_room('b', 3), Some(11));
        // Of those who have as many, none gives way.
        assert_eq!(flows.make_room('a', 1), None);
        assert_eq!(flows.make_room('a', 4), None);
        assert_eq!(flows.len(), 3);
        assert_eq!(order(flows), [10, 30, 20]);
    }

    #[test]
    fn a_limit_with_many_clients_gives_way_to_one_with_few() {
        let mut flows = Calls::default();
        (0..10).for_each(|client| flows.push('a', client, client));
        assert_eq!(flows.make_room('b', 100), Some(9));
        (0..5).for_each(|_| flows.push('b', 100, 100));
        assert_eq!(flows.make_room('a', 3), None);
        assert_eq!(flows.make_room('a', 9), None);
        assert_eq!(flows.make_room('c', 3), Some(8));
    }
}
