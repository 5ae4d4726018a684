//! The header is made from the source, and is up to date.

use std::path::Path;

#[test]
fn the_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new().with_crate(root).with_config(config).generate();
    let mut made = Vec::new();
    bindings.unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = root.join("include/spillgate.h");
    if std::env::var_os("SPILLGATE_UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let header = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        header == made,
        "{} is not what the source says; run `SPILLGATE_UPDATE=1 cargo test -p spillgate-c`",
        path.display()
    );
}
