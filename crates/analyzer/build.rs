//! Lets every program that links DuckDB find its shared library without LD_LIBRARY_PATH.
//!
//! A program looks first in `lib` beside its own folder, where packages have the library, then in
//! the folder that it was linked from, for programs that stay in cargo's target folder.
//! `packaging/build` removes the second from what it packages.

/// Says to cargo what to link with.
pub fn main() {
    println!("cargo:rerun-if-env-changed=DUCKDB_LIB_DIR");
    let bundled = std::env::var_os("CARGO_FEATURE_BUNDLED").is_some();
    if let (false, Ok(folder)) = (bundled, std::env::var("DUCKDB_LIB_DIR")) {
        let macos = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "macos");
        let beside = if macos { "@loader_path/../lib" } else { "$ORIGIN/../lib" };
        println!("cargo:rustc-link-arg=-Wl,-rpath,{beside}");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
