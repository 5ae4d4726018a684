use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::{Error, SnapshotReader};

/// The path of snapshots, locked by one server at a time.
#[derive(Debug)]
pub struct SnapshotFile {
    path: PathBuf,
    /// Locked for as long as it is open.
    _lock: File,
}

impl SnapshotFile {
    /// Locks a path. Fails if another server has locked it, or it cannot be written.
    pub fn claim(path: impl Into<PathBuf>) -> io::Result<Self> {
        // The target of a link is one path, whatever its name.
        let path: PathBuf = path.into();
        let path = fs::canonicalize(&path).unwrap_or(path);
        let lock = beside(&path, ".lock");
        let cannot = |error: io::Error| {
            let folder = folder(&path).display();
            let why = match error.kind() {
                io::ErrorKind::NotFound => "make the folder first".to_owned(),
                io::ErrorKind::PermissionDenied => {
                    format!("let the server's user write to {folder}")
                }
                _ => "choose another place with --snapshot".to_owned(),
            };
            let path = path.display();
            io::Error::new(error.kind(), format!("cannot keep snapshots at {path}: {error}; {why}"))
        };
        if path.exists() && !path.is_file() {
            return Err(cannot(io::Error::other("it is not a file")));
        }
        let options =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&lock);
        let lock = options.map_err(cannot)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            let path = path.display();
            io::Error::other(format!(
                "another server keeps its snapshots at {path}; give this one a place of its own \
                 with --snapshot"
            ))
        })?;
        // The lock alone may have been there from an earlier server.
        create(&temporary(&path)).map_err(cannot)?;
        fs::remove_file(temporary(&path)).map_err(cannot)?;
        Ok(Self { path, _lock: lock })
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The snapshot, verified, if there is one. Fails if it cannot be used.
    pub fn open(&self) -> Result<Option<SnapshotReader<BufReader<File>>>, Error> {
        let mut file = match File::open(&self.path) {
            Ok(file) => BufReader::new(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // All of it, before any of it is used.
        let mut reader = SnapshotReader::new(&mut file)?;
        while reader.next_piece()?.is_some() {}
        file.seek(SeekFrom::Start(0))?;
        SnapshotReader::new(file).map(Some)
    }

    /// Renames a snapshot that cannot be used, and returns its new path.
    pub fn set_aside(&self, why: &Error) -> io::Result<PathBuf> {
        let kind = if why.is_other_version() { "other-version" } else { "corrupt" };
        let aside = (1..u32::MAX).map(|number| beside(&self.path, &format!(".{kind}-{number}")));
        let free = aside.into_iter().find(|path| !path.exists());
        let free = free.ok_or_else(|| io::Error::other("too many were set aside"))?;
        fs::rename(&self.path, &free)?;
        Ok(free)
    }

    /// Replaces the snapshot, which stays if this fails. Only its owner can read it.
    pub fn write<T>(
        &self,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
    ) -> io::Result<T> {
        let temporary = temporary(&self.path);
        let written = self.write_through(&temporary, write);
        if written.is_err() {
            // The disk may be full.
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    fn write_through<T>(
        &self,
        temporary: &Path,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut out = BufWriter::with_capacity(64 * 1024, create(temporary)?);
        let written = write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(temporary, &self.path)?;
        // Otherwise the new name may be lost in a power failure.
        File::open(folder(&self.path))?.sync_all()?;
        Ok(written)
    }
}

/// A file that only its owner can read. One that is left there may have another mode, or be a link.
fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)
}

fn temporary(path: &Path) -> PathBuf {
    beside(path, ".tmp")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
