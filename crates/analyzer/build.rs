//! Lets every program that links DuckDB find its shared library without LD_LIBRARY_PATH.

fn main() {
    println!("cargo:rerun-if-env-changed=DUCKDB_LIB_DIR");
    let bundled = std::env::var_os("CARGO_FEATURE_BUNDLED").is_some();
    if let (false, Ok(folder)) = (bundled, std::env::var("DUCKDB_LIB_DIR")) {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
