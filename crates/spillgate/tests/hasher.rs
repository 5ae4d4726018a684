//! The default hasher tells chosen keys apart, whatever its seed.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash};

use spillgate::{KeyedState, Seed};

fn seeds(count: u64) -> impl Iterator<Item = KeyedState> {
    (0..count).map(|seed| {
        let bytes = ((u128::from(seed) << 64) | (u128::from(seed) * 7)).to_le_bytes();
        KeyedState::with_seed(Seed::from_bytes(bytes))
    })
}

/// Asserts that no two of `keys` collide, under any of many seeds.
fn all_differ<K: Hash + std::fmt::Debug>(keys: &[K]) {
    for state in seeds(200) {
        let hashes: HashSet<u64> = keys.iter().map(|key| state.hash_one(key)).collect();
        assert_eq!(hashes.len(), keys.len(), "{keys:?}");
    }
}

#[test]
fn strings_of_every_length_differ() {
    let same_bytes: Vec<String> = (0..600).map(|length| "a".repeat(length)).collect();
    all_differ(&same_bytes);
    let zeros: Vec<String> = (0..600).map(|length| "\0".repeat(length)).collect();
    all_differ(&zeros);
}

#[test]
fn strings_that_differ_in_one_byte_differ() {
    for length in [1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 24, 255, 256, 257, 600] {
        let mut keys = vec![vec![b'x'; length]];
        for place in 0..length {
            keys.push(keys[0].clone());
            keys[place + 1][place] = b'y';
        }
        all_differ(&keys);
    }
}

#[test]
fn parts_are_not_run_together() {
    all_differ(&[("a", "b_c"), ("a_b", "c"), ("", "ab_c"), ("ab_c", "")]);
    let long = "a".repeat(16);
    let longer = "a".repeat(12);
    all_differ(&[(&long, &longer), (&longer, &long)]);
}

#[test]
fn complements_and_swaps_differ() {
    // Pairs that collide more often than chance under hashes that fold a product.
    all_differ(&[[0_u8; 8], [0xff; 8], [0xaa; 8], [0x55; 8]]);
    all_differ(&[[1_u64, 2], [2, 1], [0, 3], [3, 0]]);
    all_differ(&[[0_u64, 0], [0, u64::MAX], [u64::MAX, 0], [u64::MAX, u64::MAX]]);
}

#[test]
fn keys_of_many_parts_differ() {
    let mut keys = vec![[7_u64; 100]];
    for place in 0..100 {
        keys.push(keys[0]);
        keys[place + 1][place] = 8;
    }
    all_differ(&keys);
}

#[test]
fn every_bit_of_the_hash_is_as_often_set_as_not() {
    for state in seeds(20) {
        let mut set = [0_u32; 64];
        for number in 0..10_000_u32 {
            let hash = state.hash_one(format!("user:{number}").as_str());
            set.iter_mut().enumerate().for_each(|(bit, count)| *count += (hash >> bit & 1) as u32);
        }
        // Linear in its input, the hash is more even or less than chance would be;
        // far from one half, a bit would carry next to nothing.
        assert!(set.iter().all(|count| (2_000..8_000).contains(count)), "{set:?}");
    }
}

#[test]
fn a_seed_makes_the_same_hasher_again() {
    let state = KeyedState::with_seed(Seed::random());
    let again = KeyedState::with_seed(Seed::from_bytes(state.seed().to_bytes()));
    assert_eq!(state.hash_one("key"), again.hash_one("key"));
    let other = KeyedState::with_seed(Seed::random());
    assert_ne!(state.hash_one("key"), other.hash_one("key"));
    assert_eq!(format!("{state:?} {:?}", state.seed()), "KeyedState(secret) Seed(secret)");
}
