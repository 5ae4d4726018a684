//! Which of a Cluster's slots a key is in.

/// How many slots a Cluster has.
pub(crate) const SLOTS: u16 = 16384;

/// The slot of a key whose hash tag this is: CRC-16 (XMODEM) of it, modulo [`SLOTS`].
pub(crate) fn of_tag(tag: &[u8]) -> u16 {
    let crc =
        tag.iter().fold(0u16, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)]);
    crc % SLOTS
}

/// What each byte does to the checksum.
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
        for (tag, slot) in [("123456789", 0x31c3), ("", 0), ("foo", 12182), ("user1000", 3443)] {
            assert_eq!(of_tag(tag.as_bytes()), slot, "{tag}");
        }
    }
}
