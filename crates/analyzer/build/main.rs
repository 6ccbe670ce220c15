//! Puts the script of the pages together: uPlot from its npm package, if it is here, and Encore's own.
//!
//! `./encore` downloads uPlot, and sets `UPLOT_DIR` to its folder. Without the variable the script looks in the cache
//! folder of `./encore`. Without uPlot the pages have their static charts alone. A file that is not the expected one
//! ends the build. The page's policy names the script by the hash that is computed here.

#[path = "../build.rs"]
mod linking;

use std::error::Error;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

/// The version of `./encore`, and the SHA-256 of its files.
const VERSION: &str = "1.6.32";
const SCRIPT: (&str, &str) = ("uPlot.iife.min.js", "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f");
const STYLE: (&str, &str) = ("uPlot.min.css", "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04");
const LICENCE: (&str, &str) = ("LICENSE", "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd");

/// Encore's own scripts, in their order.
const OWN: [&str; 4] = ["words.js", "charts.js", "readout.js", "tables.js"];

fn main() -> Result<(), Box<dyn Error>> {
    linking::main();
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/main.rs");
    for name in ["UPLOT_DIR", "ENCORE_CACHE", "XDG_CACHE_HOME"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let mut style = String::new();
    let mut script = String::new();
    match folder() {
        Some(folder) => {
            let licence = read(&folder, LICENCE)?;
            script.push_str(&format!("/*! uPlot {VERSION}\n{}*/\n{}\n", licence, read(&folder, SCRIPT)?));
            style = read(&folder, STYLE)?;
        }
        None => println!(
            "cargo:warning=uPlot {VERSION} is not here, so charts of pages will be static; \
             eval \"$(./encore env)\" downloads it and says where it is"
        ),
    }
    for name in OWN {
        let path = format!("src/html/script/{name}");
        println!("cargo:rerun-if-changed={path}");
        script.push_str(&std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?);
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("page.js"), &script)?;
    std::fs::write(out.join("chart.css"), style)?;
    println!("cargo:rustc-env=ENCORE_SCRIPT_SHA256={}", BASE64_STANDARD.encode(Sha256::digest(&script)));
    Ok(())
}

/// The folder of uPlot, if it is here.
fn folder() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let named = format!("uplot-{VERSION}");
    let cache = of("ENCORE_CACHE")
        .or_else(|| of("XDG_CACHE_HOME").map(|cache| cache.join("encore")))
        .or_else(|| of("HOME").map(|home| home.join(".cache/encore")));
    let folder = of("UPLOT_DIR").or_else(|| cache.map(|cache| cache.join(named)))?;
    folder.join(SCRIPT.0).exists().then_some(folder)
}

fn read(folder: &Path, (name, sha256): (&str, &str)) -> Result<String, Box<dyn Error>> {
    let path = folder.join(name);
    println!("cargo:rerun-if-changed={}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let found: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    match found == sha256 {
        true => Ok(text),
        false => Err(format!(
            "{} is not that of uPlot {VERSION}: its SHA-256 is {found}, not {sha256}; remove its folder and run ./encore env",
            path.display()
        )
        .into()),
    }
}
