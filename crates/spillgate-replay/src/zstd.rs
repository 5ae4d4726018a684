//! zstd files: frames, one after the other, as of logs that were appended or compressed in parts.

use std::io::{self, BufRead, Chain, Cursor, Read};

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// A frame, with the number that was read to recognise it before.
type Frame<R> = StreamingDecoder<Chain<Cursor<[u8; 4]>, R>, FrameDecoder>;

/// Reads all frames, and skips those that hold no data, as `pzstd` writes them.
pub(crate) struct Zstd<R: Read> {
    frame: Option<Box<Frame<R>>>,
    /// What follows a frame.
    rest: Option<R>,
}

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The first byte of a frame that is skipped may have any of these values.
fn is_skipped(magic: [u8; 4]) -> bool {
    matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18])
}

impl<R: BufRead> Zstd<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { frame: None, rest: Some(reader) }
    }

    /// Whether a file that begins so is one.
    pub(crate) fn begins(beginning: &[u8]) -> bool {
        let magic = beginning.first_chunk::<4>();
        magic.is_some_and(|magic| *magic == MAGIC || is_skipped(*magic))
    }

    /// Goes to the next frame with data; false at the end.
    fn next_frame(&mut self, mut rest: R) -> io::Result<bool> {
        loop {
            if rest.fill_buf()?.is_empty() {
                return Ok(false);
            }
            let mut magic = [0; 4];
            rest.read_exact(&mut magic)?;
            if magic == MAGIC {
                let frame = StreamingDecoder::new(Cursor::new(magic).chain(rest));
                self.frame = Some(Box::new(frame.map_err(|error| readable(&error))?));
                return Ok(true);
            }
            if !is_skipped(magic) {
                let text = "what follows a frame is not zstd";
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            let mut length = [0; 4];
            rest.read_exact(&mut length)?;
            let length = u64::from(u32::from_le_bytes(length));
            if io::copy(&mut rest.by_ref().take(length), &mut io::sink())? < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                match frame.read(buffer).map_err(|error| readable(&error))? {
                    0 => {
                        let frame = self.frame.take().map(|frame| frame.into_inner());
                        self.rest = frame.map(|chain| chain.into_inner().1);
                    }
                    count => return Ok(count),
                }
            }
            // After an error, nothing is left to read.
            let Some(rest) = self.rest.take() else { return Ok(0) };
            if !self.next_frame(rest)? {
                return Ok(0);
            }
        }
    }
}

/// An error whose kind says whether the file ends too soon.
fn readable(error: &(dyn std::error::Error + 'static)) -> io::Error {
    let text = error.to_string();
    let mut cause = Some(error);
    while let Some(error) = cause {
        let is_end = |error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof;
        if error.downcast_ref::<io::Error>().is_some_and(is_end) || text.contains("UnexpectedEof") {
            return io::ErrorKind::UnexpectedEof.into();
        }
        cause = error.source();
    }
    let advice = match text.to_lowercase().contains("window") {
        true => "; pipe the output of `zstd -dc --long=31` into `-`",
        false => "",
    };
    io::Error::new(io::ErrorKind::InvalidData, format!("{text}{advice}"))
}
