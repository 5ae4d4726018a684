//! Where a log comes from: a file, standard input, compressed or not.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// An opened log.
pub struct Source {
    pub(crate) name: String,
    pub(crate) reader: Box<dyn Read>,
    pub(crate) progress: Progress,
}

/// How much of a file has been read, before it is decompressed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) read: Rc<Cell<u64>>,
    /// `None` if nobody knows.
    pub(crate) total: Option<u64>,
}

impl Source {
    /// Opens a file; `-` is standard input. gzip and zstd are recognised by their first bytes.
    ///
    /// # Errors
    ///
    /// If it cannot be opened or read.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Self::new("standard input", io::stdin(), None);
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::other("it is a folder; name its files"));
        }
        let total = metadata.is_file().then_some(metadata.len());
        Self::new(path.display().to_string(), file, total)
    }

    /// A log that is read from anywhere, `total` bytes long.
    ///
    /// # Errors
    ///
    /// If its beginning cannot be read.
    pub fn new(
        name: impl Into<String>,
        reader: impl Read + 'static,
        total: Option<u64>,
    ) -> io::Result<Self> {
        let progress = Progress { read: Rc::default(), total };
        let counted = Counted { reader, read: Rc::clone(&progress.read) };
        let mut reader = BufReader::with_capacity(1 << 16, counted);
        let reader: Box<dyn Read> = match reader.fill_buf()? {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(reader)),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(Zstd { decoder: None, rest: Some(reader) }),
            _ => Box::new(reader),
        };
        Ok(Self { name: name.into(), reader, progress })
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}

struct Counted<R> {
    reader: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.read.set(self.read.get() + count as u64);
        Ok(count)
    }
}

type Decoder<R> = StreamingDecoder<R, ruzstd::decoding::FrameDecoder>;

/// Reads all frames of a zstd file: there may be several, as of logs that were appended.
struct Zstd<R: BufRead> {
    decoder: Option<Decoder<R>>,
    /// What follows a frame.
    rest: Option<R>,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(decoder) = &mut self.decoder {
                match decoder.read(buffer)? {
                    0 => self.rest = self.decoder.take().map(StreamingDecoder::into_inner),
                    count => return Ok(count),
                }
            }
            let Some(mut rest) = self.rest.take() else { return Ok(0) };
            if rest.fill_buf()?.is_empty() {
                return Ok(0);
            }
            self.decoder = Some(StreamingDecoder::new(rest).map_err(io::Error::other)?);
        }
    }
}
