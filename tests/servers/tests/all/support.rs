//! Shared by the tests: clients of each kind of server, and this program as a child process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use servers::{Kind, Server};

use crate::cql;

/// How long a client waits for a server that may not answer.
const SILENCE: Duration = Duration::from_millis(500);
/// How long a server that must answer may take: busy machines are slow.
const PATIENCE: Duration = Duration::from_secs(600);

/// Waits for a condition that must become true.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process is running or stopped.
pub fn is_alive(id: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    !stat[stat.rfind(')').expect("a process has a name") + 2..].starts_with(['Z', 'X'])
}

/// A client that stores one value in a server.
pub struct Client<'a> {
    server: &'a Server,
}

impl<'a> Client<'a> {
    /// A client of a server.
    pub fn of(server: &'a Server) -> Client<'a> {
        Client { server }
    }

    /// Writes the value.
    pub fn write(&self, value: &str) {
        match self.server.kind() {
            Kind::Postgres => {
                let create = "create table if not exists kept (value text); delete from kept";
                psql(self.server, &format!("{create}; insert into kept values ('{value}')"));
            }
            Kind::Mysql => {
                let create = "create table if not exists kept (value text); delete from kept";
                mariadb(self.server, &format!("{create}; insert into kept values ('{value}')"));
            }
            Kind::Mongodb => {
                let update = document(&[
                    ("q", document(&[("_id", int32(1))])),
                    ("u", document(&[("_id", int32(1)), ("value", string(value))])),
                    ("upsert", (8, vec![1])),
                ]);
                let update = [("update", string("kept")), ("updates", array(update)), ("$db", string("encore"))];
                let reply = mongodb(self.server, &update, PATIENCE).expect("a reply");
                assert!(contains(&reply, b"\x10n\0\x01\0\0\0"), "{}", String::from_utf8_lossy(&reply));
            }
            Kind::Memcached => {
                let set = format!("set kept 0 0 {}\r\n{value}\r\n", value.len());
                assert_eq!(memcached(self.server, &set, "\r\n"), "STORED\r\n");
            }
            Kind::Redis => {
                let set = format!("SET kept {value}\r\n");
                assert_eq!(memcached(self.server, &set, "\r\n"), "+OK\r\n");
            }
            Kind::Cassandra => {
                for statement in [
                    "CREATE KEYSPACE IF NOT EXISTS encore WITH replication = \
                     {'class': 'SimpleStrategy', 'replication_factor': 1}",
                    "CREATE TABLE IF NOT EXISTS encore.kept (id int PRIMARY KEY, value text)",
                    &format!("INSERT INTO encore.kept (id, value) VALUES (1, '{value}')"),
                ] {
                    cql::query(self.server, statement, cql::ONE).expect(statement);
                }
            }
            Kind::S3 => unreachable!("the tests of object storage have the client of S3"),
        }
    }

    /// Reads the value; empty if there is none.
    pub fn read(&self) -> String {
        match self.server.kind() {
            Kind::Postgres => psql(self.server, "select value from kept"),
            Kind::Mysql => mariadb(self.server, "select value from kept"),
            Kind::Mongodb => {
                let find = [("find", string("kept")), ("$db", string("encore"))];
                let reply = mongodb(self.server, &find, PATIENCE).expect("a reply");
                let Some(start) = reply.windows(7).position(|bytes| bytes == b"\x02value\0") else {
                    return String::new();
                };
                let text = &reply[start + 11..];
                let end = text.iter().position(|&byte| byte == 0).expect("a string ends");
                String::from_utf8_lossy(&text[..end]).into_owned()
            }
            Kind::Memcached => {
                let reply = memcached(self.server, "get kept\r\n", "END\r\n");
                reply.lines().nth(1).unwrap_or_default().to_string()
            }
            Kind::Redis => {
                // A string is its length, then its text.
                let reply = memcached(self.server, "GET kept\r\nECHO end\r\n", "$3\r\nend\r\n");
                reply.lines().nth(1).filter(|_| !reply.starts_with("$-1")).unwrap_or_default().to_string()
            }
            Kind::Cassandra => {
                cql::text(&cql::query(self.server, "SELECT value FROM encore.kept", cql::ONE).expect("an answer"))
            }
            Kind::S3 => unreachable!("the tests of object storage have the client of S3"),
        }
    }

    /// Whether the server answers a request within a short time.
    pub fn answers(&self) -> bool {
        match self.server.kind() {
            Kind::Postgres => exchange(&self.server.address(), b"\0\0\0\x08\x04\xd2\x16\x2f", 1).is_ok(),
            Kind::Mysql => exchange(&self.server.address(), b"", 5).is_ok(),
            Kind::Mongodb => mongodb(self.server, &[("ping", int32(1)), ("$db", string("admin"))], SILENCE).is_ok(),
            Kind::Memcached => exchange(&self.server.address(), b"version\r\n", 7).is_ok(),
            Kind::Redis => exchange(&self.server.address(), b"PING\r\n", 7).is_ok(),
            Kind::Cassandra => exchange(&self.server.address(), &cql::OPTIONS, 9).is_ok(),
            Kind::S3 => exchange(&self.server.address(), b"GET / HTTP/1.0\r\n\r\n", 9).is_ok(),
        }
    }
}

/// Sends a request to a server, and reads this many bytes of its answer.
pub fn exchange(address: &str, request: &[u8], length: usize) -> std::io::Result<Vec<u8>> {
    let mut stream = connect(address)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.write_all(request)?;
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

/// A connection to `HOST:PORT`.
pub fn connect(address: &str) -> std::io::Result<TcpStream> {
    let address = address.to_socket_addrs()?.next().expect("an address");
    let stream = TcpStream::connect_timeout(&address, SILENCE)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    Ok(stream)
}

/// Runs SQL with PostgreSQL's own client, with the URL that stores use.
pub fn psql(server: &Server, sql: &str) -> String {
    let mut command = Command::new("psql");
    said(command.args(["-qtA", "-v", "ON_ERROR_STOP=1", &server.url("encore"), "-c", sql]))
}

/// Runs SQL with MariaDB's own client.
pub fn mariadb(server: &Server, sql: &str) -> String {
    let url = server.url("encore");
    let (host, port) =
        url["mysql://encore:hush@".len()..].split_once('/').expect("a path").0.split_once(':').expect("a port");
    let mut command = Command::new("mariadb");
    command.args(["--no-defaults", "-N", "-uencore", "-phush", "-h", host, "-P", port, "encore", "-e", sql]);
    said(&mut command)
}

/// Sends a line to memcached or Redis, and reads to the end of its answer.
pub fn memcached(server: &Server, request: &str, end: &str) -> String {
    let mut stream = connect(&server.address()).expect("a connection");
    stream.write_all(request.as_bytes()).expect("a request is sent");
    let mut answer = String::new();
    let mut byte = [0];
    while !answer.ends_with(end) {
        stream.read_exact(&mut byte).expect("an answer");
        answer.push(byte[0] as char);
    }
    answer
}

fn said(command: &mut Command) -> String {
    let output = command.output().expect("the server's client is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_string()
}

/// A BSON value: its type and its bytes.
type Bson = (u8, Vec<u8>);

fn int32(number: i32) -> Bson {
    (0x10, number.to_le_bytes().to_vec())
}

fn string(text: &str) -> Bson {
    let length = (text.len() as u32 + 1).to_le_bytes();
    (0x02, [&length[..], text.as_bytes(), b"\0"].concat())
}

fn document(fields: &[(&str, Bson)]) -> Bson {
    let fields: Vec<u8> = fields
        .iter()
        .flat_map(|(name, (kind, value))| [&[*kind][..], name.as_bytes(), b"\0", value].concat())
        .collect();
    let length = (fields.len() as u32 + 5).to_le_bytes();
    (0x03, [&length[..], &fields, b"\0"].concat())
}

fn array(only: Bson) -> Bson {
    (0x04, document(&[("0", only)]).1)
}

/// Sends a command to MongoDB, and returns the reply's bytes.
pub fn mongodb(server: &Server, command: &[(&str, Bson)], patience: Duration) -> std::io::Result<Vec<u8>> {
    let (_, body) = document(command);
    let length = (body.len() as u32 + 21).to_le_bytes();
    let head = [&length[..], &[0; 8], &2013u32.to_le_bytes(), &[0; 5]].concat();
    let mut stream = connect(&server.address())?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(&[head, body].concat())?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut reply = vec![0; u32::from_le_bytes(length) as usize - 4];
    stream.read_exact(&mut reply)?;
    Ok(reply)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|bytes| bytes == part)
}

/// This test program with arguments, ready to run without the user's servers.
pub fn this_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    Kind::ALL.iter().for_each(|kind| {
        command.env_remove(kind.variable());
    });
    command.args(arguments).stdin(Stdio::null());
    command
}

/// This test program, started again.
pub fn this_program(arguments: &[&str]) -> Program {
    Program::start(&mut this_command(arguments))
}

/// A running program, killed when dropped.
pub struct Program {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Program {
    /// Starts the program.
    pub fn start(command: &mut Command) -> Program {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        Program { child, output }
    }

    /// Sends the signal of a Ctrl-C.
    pub fn interrupt(&self) {
        // SAFETY: kill only takes numbers; the child has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, libc::SIGINT) }, 0);
    }

    /// The lines that it prints before this one.
    pub fn lines_until(&mut self, last: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let length = self.output.read_line(&mut line).expect("its output can be read");
            assert!(length > 0, "it ended after {lines:?}");
            if line.trim_end() == last {
                return lines;
            }
            lines.push(line.trim_end().to_string());
        }
    }

    /// Kills it.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for its end, and returns its exit code.
    pub fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().expect("it can be waited for").code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}
