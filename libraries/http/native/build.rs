// The I/O threads run in this library: once loaded it is never unmapped, whatever the VM does with the module.
fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-link-arg-examples=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
