//! Where a log comes from: a file, standard input, compressed or not.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use crate::zstd::Zstd;

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
    /// True if the file itself could not be read: other errors are of what is in it.
    pub(crate) has_failed: Rc<Cell<bool>>,
}

impl Source {
    /// Opens a file; `-` is standard input. gzip and zstd are recognised by their first bytes.
    ///
    /// # Errors
    ///
    /// If it cannot be opened or read, or needs another program to be read.
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
    /// If its beginning cannot be read, or needs another program to be read.
    pub fn new(
        name: impl Into<String>,
        reader: impl Read + 'static,
        total: Option<u64>,
    ) -> io::Result<Self> {
        let progress = Progress { total, ..Progress::default() };
        let counted = Counted { reader, progress: progress.clone() };
        let mut reader = BufReader::with_capacity(1 << 16, counted);
        let beginning = reader.fill_buf()?;
        if let Some((_, advice)) = FOREIGN.iter().find(|(magic, _)| beginning.starts_with(magic)) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, *advice));
        }
        let reader: Box<dyn Read> = match beginning {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(reader)),
            beginning if Zstd::<&[u8]>::begins(beginning) => Box::new(Zstd::new(reader)),
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

/// First bytes of what is not read, and what to do.
const FOREIGN: [(&[u8], &str); 6] = [
    (b"\xfd7zXZ\0", "it is compressed with xz; pipe the output of `xz -dc` into `-`"),
    (b"BZh", "it is compressed with bzip2; pipe the output of `bzip2 -dc` into `-`"),
    (b"\x04\x22\x4d\x18", "it is compressed with lz4; pipe the output of `lz4 -dc` into `-`"),
    (b"PK\x03\x04", "it is a zip archive; pipe the output of `unzip -p` into `-`"),
    (b"\xff\xfe", "it is UTF-16; pipe the output of `iconv -f UTF-16 -t UTF-8` into `-`"),
    (b"\xfe\xff", "it is UTF-16; pipe the output of `iconv -f UTF-16 -t UTF-8` into `-`"),
];

struct Counted<R> {
    reader: R,
    progress: Progress,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Progress { read, has_failed, .. } = &self.progress;
        match self.reader.read(buffer) {
            Ok(count) => {
                read.set(read.get() + count as u64);
                Ok(count)
            }
            Err(error) => {
                has_failed.set(error.kind() != io::ErrorKind::Interrupted);
                Err(error)
            }
        }
    }
}
