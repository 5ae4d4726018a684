//! Certificates, made by the `openssl` program, each with a new key.

use std::net::IpAddr;
use std::path::Path;

use crate::program;

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate.
    pub pem: String,
    /// The key.
    pub key: String,
}

/// A certificate for these names and addresses that is signed by itself.
#[must_use]
pub fn self_signed(names: &[&str]) -> Certificate {
    let request = ["-x509", "-keyout", "-", "-subj", "/CN=self-signed", "-addext", &named(names)];
    let text = req(Path::new("."), &request);
    let Some(end) = text.find("-----BEGIN CERTIFICATE") else { panic!("no certificate: {text}") };
    let (key, pem) = text.split_at(end);
    Certificate { pem: pem.to_owned(), key: key.to_owned() }
}

/// Writes an authority into a folder, as `ca.pem` and `ca.key`.
pub fn authority(folder: &Path) {
    // Two of one name would be taken for each other.
    let name = folder.file_name().unwrap_or_default().display();
    let subject = format!("/CN=authority of {name}");
    let request = ["-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", &subject];
    req(folder, &[&request[..], &["-addext", "basicConstraints=critical,CA:TRUE"]].concat());
}

/// Writes a certificate for this machine into the folder of its authority, as `NAME.pem` and
/// `NAME.key`.
pub fn sign(folder: &Path, name: &str) {
    sign_for(folder, name, "30");
}

/// Writes one that expired yesterday.
pub fn sign_expired(folder: &Path, name: &str) {
    sign_for(folder, name, "-1");
}

fn sign_for(folder: &Path, name: &str, days: &str) {
    let [request, pem, key] = ["csr", "pem", "key"].map(|end| format!("{name}.{end}"));
    // One that is named as its authority counts as signed by itself.
    let (subject, names) = (format!("/CN={name}"), named(&["localhost", "127.0.0.1"]));
    req(folder, &["-new", "-keyout", &key, "-out", &request, "-subj", &subject, "-addext", &names]);
    let sign = ["x509", "-req", "-CA", "ca.pem", "-CAkey", "ca.key", "-copy_extensions", "copy"];
    openssl(folder, &[&sign[..], &["-days", days, "-in", &request, "-out", &pem]].concat());
}

/// The extension that says for whom a certificate is.
fn named(names: &[&str]) -> String {
    let kind = |name: &str| if name.parse::<IpAddr>().is_ok() { "IP" } else { "DNS" };
    let names: Vec<_> = names.iter().map(|name| format!("{}:{name}", kind(name))).collect();
    format!("subjectAltName={}", names.join(","))
}

fn req(folder: &Path, arguments: &[&str]) -> String {
    // The machine's configuration would make an authority of each.
    let usual = ["req", "-config", "/dev/null", "-nodes", "-newkey", "ec", "-pkeyopt"];
    openssl(folder, &[&usual[..], &["ec_paramgen_curve:P-256"], arguments].concat())
}

fn openssl(folder: &Path, arguments: &[&str]) -> String {
    match program("openssl").current_dir(folder).args(arguments).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        output => panic!("openssl {arguments:?}: {output:?}"),
    }
}
