//! Hash slots of a Cluster.

/// The number of slots.
pub(in super::super) const SLOTS: u16 = 16384;

/// The slot of a key: CRC-16 (XMODEM) modulo [`SLOTS`] of its hash tag, or of the whole key.
pub(in super::super) fn of_key(key: &[u8]) -> u16 {
    let crc = tag(key)
        .unwrap_or(key)
        .iter()
        .fold(0u16, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)]);
    crc % SLOTS
}

fn tag(key: &[u8]) -> Option<&[u8]> {
    let open = key.iter().position(|byte| *byte == b'{')?;
    let rest = &key[open + 1..];
    let close = rest.iter().position(|byte| *byte == b'}')?;
    (close > 0).then(|| &rest[..close])
}

/// The CRC table.
const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_that_servers_compute() {
        // From the Cluster specification, and from `CLUSTER KEYSLOT`.
        for (key, slot) in [
            ("123456789", 0x31c3),
            ("", 0),
            ("foo", 12182),
            ("{user1000}.following", 3443),
            ("spillgate:{foo}", 12182),
            ("x{foo}{bar}", 12182),
            ("foo{}{bar}", 8363),
            ("{foo", 13308),
        ] {
            assert_eq!(of_key(key.as_bytes()), slot, "{key}");
        }
    }
}
