use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use tempfile::TempDir;

/// An authority, with certificates of a server and of clients that it has signed, as files.
pub(crate) struct Certificates {
    folder: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Two of one name would be taken for each other.
        let name = folder.path().display().to_string();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
        let certificates = Self { folder, authority };
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        certificates.write("server", &CertificateParams::new(names).unwrap());
        certificates.renew_client();
        certificates
    }

    /// Another certificate for the client, with another key, in the same files.
    pub(crate) fn renew_client(&self) {
        self.write("client", &client());
    }

    /// One that was valid in the last century.
    pub(crate) fn expire_client(&self) {
        let mut params = client();
        params.not_before = rcgen::date_time_ymd(1990, 1, 1);
        params.not_after = rcgen::date_time_ymd(1999, 1, 1);
        self.write("client", &params);
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, params: &CertificateParams) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        let write = |end, text| std::fs::write(self.file(&format!("{name}.{end}")), text).unwrap();
        write("pem", certificate.pem());
        write("key", key.serialize_pem());
    }
}

fn client() -> CertificateParams {
    let mut params = CertificateParams::new(vec!["client".to_owned()]).unwrap();
    // One that is named as its authority counts as signed by itself.
    params.distinguished_name.push(DnType::CommonName, "client");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}
