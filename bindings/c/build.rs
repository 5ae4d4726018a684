//! How the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let version = |part| std::env::var(format!("CARGO_PKG_VERSION_{part}")).unwrap_or_default();
    // Before 1.0, a minor version may change the interface.
    let soname = format!("libspillgate.so.{}.{}", version("MAJOR"), version("MINOR"));
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{soname}");
    // Never unloaded: threads that have called it run its code when they exit.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
