//! Writes good input of every decoder as the seeds of a fuzzer: `decoders FOLDER` fills FOLDER/NAME
//! for each decoder.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: decoders FOLDER");
        return ExitCode::from(2);
    };
    match decoders::ALL.iter().try_for_each(|decoder| write(decoder, Path::new(&folder))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}: {error}", Path::new(&folder).display());
            ExitCode::from(3)
        }
    }
}

fn write(decoder: &decoders::Decoder, folder: &Path) -> std::io::Result<()> {
    let own = folder.join(decoder.name);
    std::fs::create_dir_all(&own)?;
    for (number, seed) in (decoder.seeds)().into_iter().enumerate() {
        std::fs::write(own.join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}
