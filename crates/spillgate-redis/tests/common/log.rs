use std::io;
use std::sync::{Mutex, Once};

/// What all tests of this program have logged since the first asked for it.
pub(crate) fn log() -> String {
    static BEGIN: Once = Once::new();
    BEGIN.call_once(|| tracing_subscriber::fmt().with_ansi(false).with_writer(|| Writer).init());
    String::from_utf8_lossy(&LOG.lock().unwrap()).into_owned()
}

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Writer;

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
