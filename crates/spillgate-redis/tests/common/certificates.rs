use std::path::PathBuf;

use spillgate_testing::certificates::{authority, sign, sign_expired};
use tempfile::TempDir;

/// An authority, with certificates of a server and of clients that it has signed, as files.
pub(crate) struct Certificates(TempDir);

impl Certificates {
    pub(crate) fn new() -> Self {
        let certificates = Self(tempfile::tempdir().unwrap());
        authority(certificates.0.path());
        sign(certificates.0.path(), "server");
        certificates.renew_client();
        certificates
    }

    /// Another certificate for the client, with another key, in the same files.
    pub(crate) fn renew_client(&self) {
        sign(self.0.path(), "client");
    }

    /// One that is no longer valid.
    pub(crate) fn expire_client(&self) {
        sign_expired(self.0.path(), "client");
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}
