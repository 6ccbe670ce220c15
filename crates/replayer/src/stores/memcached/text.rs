//! memcached's text protocol, for what is not part of an operation.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Sends a command on a connection of its own. Returns the lines before the last word, or an answer
/// of one line with its value.
pub async fn ask(address: &str, command: &str, most: Duration) -> io::Result<Vec<String>> {
    let asked = async {
        let mut stream = send(address, command).await?;
        let mut lines = Vec::new();
        loop {
            let line = line(&mut stream).await?;
            match line.trim_end() {
                "END" => return Ok(lines),
                line if line.starts_with("STAT ") || (line.starts_with("VA ") && lines.is_empty()) => {
                    lines.push(line.to_string());
                }
                line if lines.first().is_some_and(|first| first.starts_with("VA ")) => {
                    return Ok(vec![lines.remove(0), line.to_string()]);
                }
                line => return Ok(vec![line.to_string()]),
            }
        }
    };
    in_time(most, asked).await
}

/// Shows the keys of all items. The server may take `most` for each of them.
pub async fn each_key(address: &str, most: Duration, mut show: impl FnMut(&str)) -> io::Result<()> {
    let mut stream = in_time(most, send(address, "lru_crawler metadump all")).await?;
    loop {
        let line = in_time(most, line(&mut stream)).await?;
        match line.trim_end() {
            "END" => return Ok(()),
            line => {
                let key = line.strip_prefix("key=").and_then(|rest| rest.split(' ').next());
                show(key.ok_or_else(|| io::Error::other(format!("cannot list its keys: {line}")))?);
            }
        }
    }
}

async fn send(address: &str, command: &str) -> io::Result<BufReader<TcpStream>> {
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    stream.write_all(format!("{command}\r\n").as_bytes()).await?;
    Ok(stream)
}

async fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    match stream.read_line(&mut line).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line),
    }
}

async fn in_time<X>(most: Duration, work: impl Future<Output = io::Result<X>>) -> io::Result<X> {
    tokio::time::timeout(most, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
