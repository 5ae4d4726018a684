//! Encrypts edits made at run time: they name API keys and users, which must not be in Redis.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use spillgate::Timestamp;
use spillgate_policy::Error;
use spillgate_policy::store::Edit;
use tracing::warn;

use crate::backend::{Lasts, SealedEdit};
use crate::name::Names;
use crate::{Name, Secret};

/// Encrypts edits under the secret of the nodes, with ChaCha20-Poly1305.
///
/// An encrypted edit is a version (1 byte, value 1), a random nonce (12), and the cipher text of:
/// whether it has a value (1), the length of its key (4, big endian), its key and its value. It is
/// bound to its [name](SealedEdit::name).
pub(crate) struct EditSeal {
    key: LessSafeKey,
    names: Names,
    random: SystemRandom,
    /// True once the log says that some edits cannot be read.
    has_warned: AtomicBool,
}

const VERSION: u8 = 1;

/// The longest edit: Redis keeps up to a million.
const LONGEST: usize = 16 * 1024;

impl EditSeal {
    pub(crate) fn new(secret: &Secret) -> Result<Self, Error> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &secret.edit_key())
            .map_err(|_| Error::store("cannot derive a key from the cluster's secret"))?;
        Ok(Self {
            key: LessSafeKey::new(key),
            names: secret.edits(),
            random: SystemRandom::new(),
            has_warned: AtomicBool::new(false),
        })
    }

    /// Encrypts an edit, which ends by what remains of it now.
    pub(crate) fn seal(&self, edit: &Edit, local: Timestamp) -> Result<SealedEdit, Error> {
        let name = self.names.caller(edit.key.as_bytes());
        let lasts = match (&edit.value, edit.until) {
            (None, _) => Lasts::Ended,
            (Some(_), None) => Lasts::Forever,
            (Some(_), Some(until)) => match until.since(local) {
                Duration::ZERO => Lasts::Ended,
                left => Lasts::For(left),
            },
        };
        let mut sealed = vec![u8::from(edit.value.is_some())];
        sealed.extend((edit.key.len() as u32).to_be_bytes());
        sealed.extend(edit.key.as_bytes());
        sealed.extend(edit.value.iter().flat_map(String::as_bytes));
        if sealed.len() > LONGEST {
            let text = format!("an edit of {} bytes; up to {LONGEST} are shared", sealed.len());
            return Err(Error::store(text));
        }
        Ok(SealedEdit { name, lasts, sealed: self.encrypt(&name, sealed)? })
    }

    /// Decrypts an edit. One that has ended is undone. `None` if it was made under another secret,
    /// or by a later version.
    pub(crate) fn open(&self, edit: &SealedEdit, local: Timestamp) -> Option<Edit> {
        let opened = self.decrypt(edit).and_then(|plain| decode(&plain));
        let Some((key, value)) = opened else {
            // Relaxed: it orders nothing else.
            if !self.has_warned.swap(true, Ordering::Relaxed) {
                warn!(
                    "skipped a list entry, override or ban in Redis that was encrypted under another \
                     cluster secret, or written by a later version; use one secret on all nodes"
                );
            }
            return None;
        };
        Some(match edit.lasts {
            Lasts::Ended => Edit::new(key, None, None),
            Lasts::Forever => Edit::new(key, value, None),
            Lasts::For(left) => Edit::new(key, value, Some(local + left)),
        })
    }

    fn encrypt(&self, name: &Name, mut plain: Vec<u8>) -> Result<Vec<u8>, Error> {
        let mut nonce = [0; NONCE_LEN];
        let failed = |_| Error::store("cannot encrypt an edit: no random numbers");
        self.random.fill(&mut nonce).map_err(failed)?;
        let unique = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(unique, bound_to(name), &mut plain).map_err(failed)?;
        Ok([&[VERSION], &nonce[..], &plain].concat())
    }

    fn decrypt(&self, edit: &SealedEdit) -> Option<Vec<u8>> {
        let (&VERSION, rest) = edit.sealed.split_first()? else { return None };
        let (nonce, cipher) = rest.split_first_chunk::<NONCE_LEN>()?;
        let mut cipher = cipher.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = self.key.open_in_place(nonce, bound_to(&edit.name), &mut cipher).ok()?.len();
        cipher.truncate(length);
        Some(cipher)
    }
}

/// Nobody can put an edit in the place of another.
fn bound_to(name: &Name) -> Aad<[u8; 16]> {
    Aad::from(*name.as_bytes())
}

fn decode(plain: &[u8]) -> Option<(String, Option<String>)> {
    let (has_value, rest) = plain.split_first()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (key, value) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let value = if *has_value == 1 { Some(text(value)?) } else { None };
    Some((text(key)?, value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1000);

    fn seal(secret: &str) -> EditSeal {
        EditSeal::new(&Secret::new(secret).unwrap()).unwrap()
    }

    fn edit(key: &str, value: Option<&str>) -> Edit {
        Edit::new(key.to_owned(), value.map(str::to_owned), None)
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_opened_again(
            key in ".{0,40}",
            value in proptest::option::of(".{0,40}"),
            left in proptest::option::of(1_u64..1 << 50),
        ) {
            let seal = seal("a secret of the cluster");
            let until = left.map(|left| NOW + Duration::from_nanos(left));
            let edit = Edit::new(key, value.clone(), until.filter(|_| value.is_some()));
            let sealed = seal.seal(&edit, NOW).unwrap();
            prop_assert_eq!(seal.open(&sealed, NOW), Some(edit.clone()));
            // By the clock of another node it ends at another time.
            let later = NOW + Duration::from_secs(7);
            let there = seal.open(&sealed, later).unwrap();
            prop_assert_eq!(there.until.map(|until| until.since(later)),
                edit.until.map(|until| until.since(NOW)));
        }

        #[test]
        fn nothing_else_is_opened(at in 0_usize..60, flip in 1_u8..=255, cut in 0_usize..60) {
            let seal = seal("a secret of the cluster");
            let mut sealed = seal.seal(&edit("[\"ban\",\"ip:192.0.2.1\"]", Some("{}")), NOW).unwrap();
            let whole = sealed.sealed.clone();
            let at = at % whole.len();
            sealed.sealed[at] ^= flip;
            prop_assert_eq!(seal.open(&sealed, NOW), None);
            sealed.sealed = whole[..cut.min(whole.len() - 1)].to_vec();
            prop_assert_eq!(seal.open(&sealed, NOW), None);
        }
    }

    #[test]
    fn only_who_has_the_secret_reads_an_edit_and_only_in_its_place() {
        let (own, other) = (seal("a secret of the cluster"), seal("a secret of others"));
        let sealed = own.seal(&edit("[\"list\",\"block\",\"key-1\"]", Some("{}")), NOW).unwrap();
        let text = String::from_utf8_lossy(&sealed.sealed).into_owned();
        assert!(!text.contains("key-1") && !text.contains("block"), "{text}");
        assert!(other.open(&sealed, NOW).is_none());
        let moved = SealedEdit { name: Name::from_bytes([1; 16]), ..sealed.clone() };
        assert!(own.open(&moved, NOW).is_none());
        assert!(own.open(&sealed, NOW).is_some());
        let again = own.seal(&edit("[\"list\",\"block\",\"key-1\"]", Some("{}")), NOW).unwrap();
        assert_eq!(again.name, sealed.name, "the later one replaces it");
        assert_ne!(again.sealed, sealed.sealed, "nobody sees that they are the same");
    }

    #[test]
    fn an_edit_that_has_ended_is_undone() {
        let seal = seal("a secret of the cluster");
        let mut ending = edit("[\"ban\",\"user:1\"]", Some("{}"));
        ending.until = Some(NOW);
        let sealed = seal.seal(&ending, NOW).unwrap();
        assert_eq!(sealed.lasts, Lasts::Ended);
        assert_eq!(seal.open(&sealed, NOW), Some(edit("[\"ban\",\"user:1\"]", None)));
    }

    #[test]
    fn an_edit_that_is_too_long_is_refused() {
        let error = seal("a secret of the cluster").seal(&edit(&"k".repeat(20_000), None), NOW);
        assert!(error.unwrap_err().to_string().contains("up to 16384 are shared"));
    }
}
