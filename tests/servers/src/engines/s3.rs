//! S3Proxy, an S3 server that keeps objects as files, started from its jars. It checks every signature.

use std::io::Result;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Durability, Engine, PASSWORD, Site, USER, ask, cache_folder};
use crate::machine;

/// The jars that `tests/run` installs, below the cache folder.
const CACHED: &str = "s3proxy-2.7.0";

/// The bucket that a server has from its start: a folder of its data.
pub const BUCKET: &str = "encore";

/// The first argument is the program `java`.
const START: &str = "java=$1; shift; exec \"$java\" \"$@\" org.gaul.s3proxy.Main --properties s3proxy.properties\n";

pub static ENGINE: Engine = Engine {
    name: "S3",
    programs: "java 17, the jars of s3proxy",
    variable: "ENCORE_TEST_S3_URL",
    scheme: "http",
    credentials: "encore:hush@",
    parameters: "",
    default_port: 80,
    accounts: &[],
    stop_signal: libc::SIGTERM,
    discard_signal: "KILL",
    find,
    prepare,
    command,
    is_ready,
    clean_up: |_| None,
    replication: None,
};

fn find() -> Option<Vec<PathBuf>> {
    let jars = cache_folder()?.join(CACHED);
    Some(vec![machine::java()?, jars.is_dir().then_some(jars)?])
}

fn prepare(site: &Site) -> Result<Vec<Vec<String>>> {
    site.create_folder("data")?;
    site.create_folder(&format!("data/{BUCKET}"))?;
    site.create_folder("tmp")?;
    site.write("start.sh", START)?;
    let settings = [
        "s3proxy.authorization=aws-v2-or-v4".to_string(),
        format!("s3proxy.identity={USER}"),
        format!("s3proxy.credential={PASSWORD}"),
        "jclouds.provider=filesystem-nio2".to_string(),
        "jclouds.identity=none".to_string(),
        "jclouds.credential=none".to_string(),
        format!("jclouds.filesystem.basedir={}", site.path("data")),
    ];
    site.write("s3proxy.properties", &(settings.join("\n") + "\n"))?;
    Ok(Vec::new())
}

/// Settings of Java win over those of the file, which does not know the port.
fn command(site: &Site, port: u16, _: Durability) -> Vec<String> {
    let mut command = vec!["sh".to_string(), site.path("start.sh"), site.program(0)];
    command.extend(["-cp".to_string(), format!("{}/*", site.program(1))]);
    command.extend([
        "-Xmx256m".to_string(),
        "-XX:TieredStopAtLevel=1".to_string(),
        "-XX:+UseSerialGC".to_string(),
        format!("-Djava.io.tmpdir={}", site.path("tmp")),
        format!("-Ds3proxy.endpoint=http://{}:{port}", site.host),
    ]);
    command
}

/// Without a signature, the server refuses, but it answers.
fn is_ready(address: SocketAddr) -> Result<bool> {
    Ok(ask(address, b"GET / HTTP/1.0\r\n\r\n")?.starts_with(b"HTTP/"))
}
