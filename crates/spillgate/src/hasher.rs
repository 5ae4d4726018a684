use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Mutex, MutexGuard, OnceLock};

use crate::sync::lock_plain;

/// The default hasher: keyed, randomly seeded, and strongly universal.
///
/// A table distinguishes callers by their hash alone, so the hash must not collide
/// for keys that an attacker chooses. For any two strings, numbers or addresses,
/// chosen without seeing hashes, the chance over random secrets that they collide
/// is 2⁻⁶⁴, the minimum; a table keeps 57 of the bits. (Strings of more than 16 bytes: twice that, of
/// more than 256 bytes: 2⁻⁵⁹ for each 256. The secrets are expanded from 128 random
/// bits. Keys of many parts: as stated for the first eight strings or 32 numbers.)
/// Do not show its outputs to an attacker.
///
/// All states of a process share one random [`Seed`] unless given another, for example by a
/// restored snapshot.
#[derive(Clone, Copy)]
pub struct KeyedState {
    keys: &'static Keys,
}

/// The secret of a [`KeyedState`]. It allows its holder to construct colliding keys: protect
/// it like a password.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed([u64; 2]);

impl Seed {
    /// A new seed from the operating system's randomness.
    #[must_use]
    pub fn random() -> Self {
        // The standard library exposes that randomness only through `RandomState`.
        let random = RandomState::new();
        // What it draws from is copied by a `fork`: children of one process would draw the same.
        let process = std::process::id();
        Self([random.hash_one((0, process)), random.hash_one((1, process))])
    }

    /// A seed from its bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_le_bytes(bytes);
        Self([both as u64, (both >> 64) as u64])
    }

    /// The bytes, for a snapshot that only its owner can read.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        ((self.0[1] as u128) << 64 | self.0[0] as u128).to_le_bytes()
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(secret)")
    }
}

impl KeyedState {
    /// A state with the process's own random seed.
    #[must_use]
    pub fn new() -> Self {
        static PROCESS: OnceLock<KeyedState> = OnceLock::new();
        *PROCESS.get_or_init(|| Self::with_seed(Seed::random()))
    }

    /// A state with the given seed.
    ///
    /// Each distinct seed takes about one kilobyte for the life of the process.
    #[must_use]
    pub fn with_seed(seed: Seed) -> Self {
        // A `Hasher` cannot borrow from its state, and copying the keys into it
        // would cost more than hashing. So they are leaked, one set per seed.
        let mut known = lock_plain(&KNOWN);
        let keys = known.entry(seed.0).or_insert_with(|| Box::leak(Box::new(Keys::expand(seed))));
        Self { keys }
    }

    /// The seed: a state made from it hashes the same way.
    #[must_use]
    pub fn seed(&self) -> Seed {
        self.keys.seed
    }
}

/// The keys of every seed there was.
static KNOWN: Mutex<KnownKeys> = Mutex::new(KnownKeys::new());

/// Not a `HashMap`, which leak checkers report: it points into its memory, not at it.
pub(crate) type KnownKeys = BTreeMap<[u64; 2], &'static Keys>;

/// Prevents keys of new seeds.
pub(crate) fn hold_known() -> MutexGuard<'static, KnownKeys> {
    lock_plain(&KNOWN)
}

impl Default for KeyedState {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for KeyedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyedState(secret)")
    }
}

impl BuildHasher for KeyedState {
    type Hasher = KeyedHasher;

    #[inline(always)]
    fn build_hasher(&self) -> KeyedHasher {
        KeyedHasher { keys: self.keys, sum: self.keys.initial, words: 0 }
    }
}

/// How many words there are secrets for.
const WORDS: usize = 32;

/// A prime, over which the blocks of a long string are a polynomial.
const PRIME: u64 = (1 << 61) - 1;

pub(crate) struct Keys {
    seed: Seed,
    /// For the words of a key.
    initial: u128,
    words: [u128; WORDS],
    fold: u128,
    /// For the words of a block of a long string.
    long: [u128; WORDS],
    /// Where the polynomial of a long string is evaluated, below [`PRIME`].
    point: u64,
}

impl Keys {
    fn expand(seed: Seed) -> Self {
        let mut next = {
            let Seed([mut a, mut b]) = seed;
            move || {
                a = a.wrapping_add(0x9e37_79b9_7f4a_7c15);
                b = b.wrapping_add(0xd1b5_4a32_d192_ed03);
                scramble(a) ^ scramble(b ^ a.rotate_left(32))
            }
        };
        let mut wide = || (u128::from(next()) << 64) | u128::from(next());
        Self {
            seed,
            initial: wide(),
            words: std::array::from_fn(|_| wide()),
            fold: wide(),
            long: std::array::from_fn(|_| wide()),
            point: wide() as u64 % PRIME,
        }
    }

    /// A sum in which what there is becomes the first of further words.
    #[cold]
    #[inline(never)]
    fn folded(&self, sum: u128) -> u128 {
        self.initial.wrapping_add(self.fold.wrapping_mul(sum >> 64))
    }

    /// Two words that represent a string of more than 16 bytes: a digest of its whole
    /// words, and its last eight bytes.
    #[inline(never)]
    fn digest(&self, bytes: &[u8]) -> (u64, u64) {
        let (words, _) = bytes.split_at(bytes.len() / 8 * 8);
        let last = bytes.last_chunk().map_or(0, |last| u64::from_le_bytes(*last));
        let digest = match words.len() / 8 {
            0..=WORDS => self.digest_block(words),
            _ => words.chunks(8 * WORDS).fold(1, |digest, block| {
                let block = self.digest_block(block);
                self.step(self.step(digest, block >> 32), block & 0xffff_ffff)
            }),
        };
        (digest, last)
    }

    fn digest_block(&self, words: &[u8]) -> u64 {
        let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let terms = words
            .chunks_exact(8)
            .map(word)
            .zip(&self.long)
            .map(|(word, key)| key.wrapping_mul(u128::from(word)));
        (terms.fold(0, u128::wrapping_add) >> 64) as u64
    }

    /// Adds a coefficient to the polynomial of a long string's blocks.
    fn step(&self, polynomial: u64, coefficient: u64) -> u64 {
        let product = u128::from(polynomial) * u128::from(self.point);
        ((product + u128::from(coefficient)) % u128::from(PRIME)) as u64
    }
}

/// A bijection that spreads every bit over all others.
pub(crate) const fn scramble(mut bits: u64) -> u64 {
    bits ^= bits >> 32;
    bits = bits.wrapping_mul(0xbea2_25f9_eb34_556d);
    bits ^= bits >> 29;
    bits = bits.wrapping_mul(0xbea2_25f9_eb34_556d);
    bits ^ (bits >> 32)
}

/// Hashes with a [`KeyedState`].
///
/// Multilinear hashing: the sum over the key's 64-bit words of word times secret,
/// modulo 2¹²⁸, of which the upper half is the hash. (D. Lemire and O. Kaser,
/// "Strongly universal string hashing is fast", 2014.) The multiplications are
/// independent of one another.
///
/// A string is three words: its first and last eight bytes, which overlap if it
/// has fewer than 16, and its length. If it has more, a digest of its words replaces
/// the first.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "would show secrets")]
pub struct KeyedHasher {
    keys: &'static Keys,
    sum: u128,
    /// How many words are in the sum.
    words: usize,
}

impl KeyedHasher {
    #[inline(always)]
    fn words<const N: usize>(&mut self, words: [u64; N]) {
        let Some(keys) = self.keys.words.get(self.words..).and_then(<[u128]>::first_chunk) else {
            self.sum = self.keys.folded(self.sum);
            self.words = 0;
            return self.words(words);
        };
        for (word, key) in words.into_iter().zip::<&[u128; N]>(keys) {
            self.sum = self.sum.wrapping_add(key.wrapping_mul(u128::from(word)));
        }
        self.words += N;
    }
}

impl Hasher for KeyedHasher {
    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        let (first, last) = if bytes.len() <= 16 { ends(bytes) } else { self.keys.digest(bytes) };
        self.words([first, last, bytes.len() as u64]);
    }

    #[inline(always)]
    fn write_u8(&mut self, number: u8) {
        self.words([number.into()]);
    }

    #[inline(always)]
    fn write_u16(&mut self, number: u16) {
        self.words([number.into()]);
    }

    #[inline(always)]
    fn write_u32(&mut self, number: u32) {
        self.words([number.into()]);
    }

    #[inline(always)]
    fn write_u64(&mut self, number: u64) {
        self.words([number]);
    }

    #[inline(always)]
    fn write_u128(&mut self, number: u128) {
        self.words([number as u64, (number >> 64) as u64]);
    }

    #[inline(always)]
    fn write_usize(&mut self, number: usize) {
        self.words([number as u64]);
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        (self.sum >> 64) as u64
    }
}

/// The first and the last bytes of a string of up to 16. They may overlap: no two
/// strings of one length have the same.
#[inline(always)]
fn ends(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into())
    } else if let (Some(first), Some(last)) = (bytes.first(), bytes.last()) {
        ((*first).into(), u64::from(*last) << 8 | u64::from(bytes[bytes.len() / 2]))
    } else {
        (0, 0)
    }
}
