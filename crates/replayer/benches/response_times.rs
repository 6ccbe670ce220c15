//! How near the response times in the log are to those of the store. A stub server records what
//! it did with each request, and the bench compares the log with that.
//!
//! ```text
//! cargo bench -p replayer --bench response_times --profile release
//! ```
//!
//! It takes a minute and a half. Run it on a machine that does nothing else: client
//! and server share its processors, as they do in a rating on one machine.
//!
//! The server delays each answer by 0.5 ms to 100 ms, depending on the request's number: as many
//! below as above 7 ms, one in ten above 59 ms. It answers each connection from an
//! operating-system thread of its own. It records when it has read a request and when it is about
//! to write the answer. Both times lie within the response time, so the log exceeds them by the
//! way there and back. Some of that way is the kernel's: sockets, and the wait for a processor.
//! So a plain client sends the same requests once more, with one blocking thread a connection.
//!
//! On a busy machine, as many threads as there are processors spin, with the same priority as all others.
//!
//! Columns: the percentile of the response times by the server, by the log, and the difference;
//! whether it is within 1% or 20 us; then the same for the plain client. With 500 requests one
//! rank is 70 us at the median, so that a single late one moves it as far.
//!
//! The lines below give, request by request, the way there (from the start until the server has
//! read the request), the way back (from the server's write to the end) and both together. The
//! server and the log use the same clock, except for the log's time 0. The bench puts time 0 in
//! the middle of the range in which no request arrives before it is sent. So each way alone, but
//! not both together, may be off by half of the fastest request.
//!
//! In the runs with a stall the server writes nothing for one second. For each request in flight,
//! the log must show the part of the stall that was left when the request was sent.

#[path = "../tests/stub/mod.rs"]
mod stub;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use replayer::source::Source;
use replayer::stores::{Answer, Connection, OperationError};
use schemas::run::ReplayReport;
use schemas::social::{Operation, Social};
use stub::{Stub, percentile, replay, trace};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A request's number is that of the comment that it posts.
const SPEC: &str = r#"
name = "posts"
sessions = 60_000
[data]
members = 1000
resources_per_member = 1
[mix]
post_comment = 1
"#;

const PERCENTS: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 100.0];

/// When the stall begins, after the first request, and how long it is.
const STALL_AFTER_NS: i64 = 1_000_000_000;
const STALL_NS: i64 = 1_000_000_000;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), SPEC);
    for machine in [Machine::Idle, Machine::Busy] {
        let spinners = Spinners::start(machine);
        for (threads, requests) in [(1, 500), (256, 60_000)] {
            println!("\nT = {threads}, {machine:?} machine, {requests} requests");
            compare(&source, threads, requests);
        }
        for (threads, requests) in [(1, 100), (256, 25_000)] {
            println!("\nT = {threads}, {machine:?} machine, the server stands still for 1 s");
            stall(&source, threads, requests);
        }
        spinners.stop();
    }
}

/// What else the machine does.
#[derive(Debug, Clone, Copy)]
enum Machine {
    Idle,
    Busy,
}

/// Threads that keep the processors busy.
struct Spinners {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Spinners {
    fn start(machine: Machine) -> Spinners {
        let stop = Arc::new(AtomicBool::new(false));
        let count = match machine {
            Machine::Idle => 0,
            Machine::Busy => std::thread::available_parallelism().expect("a number").get(),
        };
        let spin = |_| {
            let stop = stop.clone();
            std::thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
        };
        Spinners { threads: (0..count).map(spin).collect(), stop: stop.clone() }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
    }
}

/// How long the server delays an answer, from 0.5 ms to 100 ms.
fn delay(number: u64) -> Duration {
    // Multiples of the golden ratio fill the unit interval evenly.
    let share = (number as f64 * 0.618_033_988_749_894_9).fract();
    Duration::from_secs_f64(0.000_5 * 200f64.powf(share))
}

/// A request as the server saw it, in nanoseconds of its clock.
struct Served {
    number: u64,
    read_ns: i64,
    write_ns: i64,
}

/// What the server sends at the beginning of a connection, so that all connections are ready for
/// the first request.
const GREETING: [u8; 1] = [0];

/// Opens a connection to the server.
fn connect(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    stream.read_exact(&mut GREETING.clone()).expect("a greeting");
    stream
}

struct Server {
    address: SocketAddr,
    thread: JoinHandle<Vec<Served>>,
    zero: Instant,
    /// When the first request arrived.
    first_ns: Arc<OnceLock<i64>>,
}

impl Server {
    /// Serves `connections` connections until they are closed.
    fn start(connections: u32, stalls: bool) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let zero = Instant::now();
        let first_ns = Arc::new(OnceLock::new());
        let first = first_ns.clone();
        let thread = std::thread::spawn(move || {
            let threads = (0..connections).map(|_| {
                let (stream, _) = listener.accept().expect("a connection");
                let first = first.clone();
                std::thread::spawn(move || serve(stream, zero, &first, stalls))
            });
            let threads: Vec<_> = threads.collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("it does not panic")).collect()
        });
        Server { address, thread, zero, first_ns }
    }

    /// What it served, once all connections are closed.
    fn served(self) -> HashMap<u64, Served> {
        let served = self.thread.join().expect("it does not panic");
        served.into_iter().map(|request| (request.number, request)).collect()
    }
}

/// Answers the requests of one connection.
fn serve(mut stream: TcpStream, zero: Instant, first_ns: &OnceLock<i64>, stalls: bool) -> Vec<Served> {
    let now_ns = || zero.elapsed().as_nanos() as i64;
    stream.set_nodelay(true).expect("a socket");
    exact_sleep();
    let (mut request, mut served) = ([0; 8], Vec::new());
    stream.write_all(&GREETING).expect("a connection");
    while stream.read_exact(&mut request).is_ok() {
        let read_ns = now_ns();
        let stall_ns = first_ns.get_or_init(|| read_ns) + STALL_AFTER_NS;
        let number = u64::from_le_bytes(request);
        std::thread::sleep(delay(number));
        let left_ns = stall_ns + STALL_NS - now_ns();
        if stalls && (1..=STALL_NS).contains(&left_ns) {
            std::thread::sleep(Duration::from_nanos(left_ns as u64));
        }
        let write_ns = now_ns();
        stream.write_all(&request).expect("a connection");
        served.push(Served { number, read_ns, write_ns });
    }
    served
}

/// Asks the kernel not to make a sleep 50 us longer, which it may do to save power.
fn exact_sleep() {
    #[cfg(target_os = "linux")]
    // SAFETY: sets a number of the calling thread.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}

/// A connection to the server, like that of a store's driver.
struct TcpConnection(tokio::net::TcpStream);

impl TcpConnection {
    fn open(address: SocketAddr) -> TcpConnection {
        let stream = connect(address);
        stream.set_nonblocking(true).expect("a socket");
        TcpConnection(tokio::net::TcpStream::from_std(stream).expect("a runtime"))
    }
}

impl Connection<Social> for TcpConnection {
    async fn execute(&mut self, operation: &Operation, _: &mut Answer) -> Result<(), OperationError> {
        let failed = |error: std::io::Error| OperationError::Failed(error.to_string());
        let mut request = operation.comment.expect("a comment").to_le_bytes();
        self.0.write_all(&request).await.map_err(failed)?;
        self.0.read_exact(&mut request).await.map_err(failed)?;
        Ok(())
    }
}

/// A request as client and server saw it, in nanoseconds of the server's clock.
struct Request {
    start_ns: i64,
    read_ns: i64,
    write_ns: i64,
    end_ns: i64,
}

/// Joins what a client saw (number, start, end) with what the server did. The client's time 0 is
/// derived from both.
fn joined(seen: &[(u64, i64, i64)], served: &HashMap<u64, Served>) -> Vec<Request> {
    let pairs = || seen.iter().map(|(number, start_ns, end_ns)| (&served[number], start_ns, end_ns));
    let earliest_ns = pairs().map(|(server, _, end_ns)| server.write_ns - end_ns).max().expect("a request");
    let latest_ns = pairs().map(|(server, start_ns, _)| server.read_ns - start_ns).min().expect("a request");
    assert!(earliest_ns <= latest_ns, "a request was answered before it was sent, or after it had ended");
    let zero_ns = (earliest_ns + latest_ns) / 2;
    let request = |(server, start_ns, end_ns): (&Served, &i64, &i64)| Request {
        start_ns: zero_ns + start_ns,
        read_ns: server.read_ns,
        write_ns: server.write_ns,
        end_ns: zero_ns + end_ns,
    };
    pairs().map(request).collect()
}

/// The requests of a replay, and its report.
fn replayed(source: &Source, server: Server, threads: u32, requests: u64) -> (Vec<Request>, ReplayReport) {
    let address = server.address;
    let replayed = replay(Stub::new(move || TcpConnection::open(address), None), source, threads, requests);
    assert_eq!((replayed.rows.len() as u64, replayed.last.outcomes[0]), (requests, requests));
    let seen = replayed.rows.iter();
    let seen = seen.map(|(traced, row)| (traced.operation.comment.expect("a comment"), row.start_ns, row.end_ns));
    (joined(&seen.collect::<Vec<_>>(), &server.served()), replayed.report)
}

/// The same requests from a blocking thread for each connection.
fn plainly(server: Server, threads: u32, requests: u64) -> Vec<Request> {
    let (next, zero, address) = (AtomicU64::new(0), server.zero, server.address);
    let all_connected = Barrier::new(threads as usize);
    let client = || {
        let (mut stream, mut seen) = (connect(address), Vec::new());
        all_connected.wait();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= requests {
                return seen;
            }
            let mut request = number.to_le_bytes();
            let start_ns = zero.elapsed().as_nanos() as i64;
            stream.write_all(&request).expect("a connection");
            stream.read_exact(&mut request).expect("an answer");
            seen.push((number, start_ns, zero.elapsed().as_nanos() as i64));
        }
    };
    let seen: Vec<_> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..threads).map(|_| scope.spawn(client)).collect();
        clients.into_iter().flat_map(|client| client.join().expect("it does not panic")).collect()
    });
    joined(&seen, &server.served())
}

fn sorted(requests: &[Request], time: fn(&Request) -> i64) -> Vec<i64> {
    let mut times: Vec<i64> = requests.iter().map(time).collect();
    times.sort_unstable();
    times
}

/// Prints percentiles by the server, by the log and by a plain client.
fn compare(source: &Source, threads: u32, count: u64) {
    let (replayed, report) = replayed(source, Server::start(threads, false), threads, count);
    let plain = plainly(Server::start(threads, false), threads, count);
    let server = |request: &Request| request.write_ns - request.read_ns;
    let client = |request: &Request| request.end_ns - request.start_ns;
    let times = [&replayed, &plain].map(|requests| (sorted(requests, server), sorted(requests, client)));
    println!("        server ms     log ms       difference  within |  server ms   plain ms       difference  within");
    for percent in PERCENTS {
        let columns = times.each_ref().map(|(server, client)| {
            let (did, seen) = (percentile(server, percent), percentile(client, percent));
            let more_us = (seen - did) as f64 / 1e3;
            let more_percent = (seen - did) as f64 / did as f64 * 100.0;
            let within = if more_percent.abs() <= 1.0 || more_us.abs() <= 20.0 { "yes" } else { "no" };
            let (did_ms, seen_ms) = (did as f64 / 1e6, seen as f64 / 1e6);
            format!("{did_ms:>10.3} {seen_ms:>10.3} {more_us:>7.0} us {more_percent:>5.2}%  {within:>6}")
        });
        println!("{:<6} {}", name(percent), columns.join(" | "));
    }
    for (name, requests) in [("log", &replayed), ("plain", &plain)] {
        let there: fn(&Request) -> i64 = |r| r.read_ns - r.start_ns;
        let back: fn(&Request) -> i64 = |r| r.end_ns - r.write_ns;
        let ways = [there, back, |r| r.end_ns - r.start_ns - (r.write_ns - r.read_ns)];
        let ways = ways.map(|way| {
            let times = sorted(requests, way);
            [50.0, 99.0, 100.0].map(|percent| format!("{:.0}", percentile(&times, percent) as f64 / 1e3)).join(", ")
        });
        println!("{name}: us there {}; back {}; both {} (p50, p99, max)", ways[0], ways[1], ways[2]);
    }
    let (cpu_percent, lag_us) = (report.worker_cpu_share * 100.0, report.dispatch_lag_ns_p99 / 1_000);
    println!("the worker used {cpu_percent:.0}% of a CPU; scheduling delay {lag_us} us (p99)");
}

fn name(percent: f64) -> String {
    if percent == 100.0 { "max".into() } else { format!("p{percent}") }
}

/// Prints how many requests were in flight in a stall, and how many of them show it.
fn stall(source: &Source, threads: u32, count: u64) {
    let server = Server::start(threads, true);
    let first_ns = server.first_ns.clone();
    let (requests, _) = replayed(source, server, threads, count);
    let began_ns = first_ns.get().expect("a request") + STALL_AFTER_NS;
    let over_ns = began_ns + STALL_NS;
    // Requests that start before the stall ends and are answered after it.
    let in_flight: Vec<&Request> = requests.iter().filter(|r| r.start_ns < over_ns && r.write_ns >= over_ns).collect();
    let time_ns = |request: &Request| request.end_ns - request.start_ns;
    let in_full = in_flight.iter().filter(|r| time_ns(r) >= over_ns - r.start_ns.max(began_ns)).count();
    let whole = in_flight.iter().filter(|r| time_ns(r) >= STALL_NS).count();
    println!("{} in flight: {in_full} show the rest of the stall, {whole} the whole stall", in_flight.len());
    let late_us = |r: &&Request| (r.end_ns - over_ns) as f64 / 1e3;
    let late_us: Vec<f64> = in_flight.iter().map(late_us).collect();
    let (first, last) = (late_us.iter().copied().fold(f64::MAX, f64::min), late_us.iter().copied().fold(0.0, f64::max));
    println!("by the log they ended {first:.0} to {last:.0} us after it");
}
