// The writer: rustc -O -o writer writer.rs
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::time::{Duration, Instant};

fn checksum(text: &[u8]) -> u32 {
    text.iter().fold(2166136261, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(16777619)) // FNV-1a
}

/// Your engine's commit: on the disk when it returns.
fn commit(log: &mut File, client: u32, number: u64) -> io::Result<()> {
    let line = format!("{client:9} {number:19} ");
    log.write_all(format!("{line}{:08x}\n", checksum(line.as_bytes())).as_bytes())?;
    log.sync_data()
}

fn main() -> io::Result<()> {
    eprintln!("template in Rust 1"); // the first line of standard error is the version
    let words: Vec<String> = std::env::args().collect();
    let given = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.parse::<u64>().ok()).unwrap_or(1);
    let (clients, duration) = (given("--clients=") as u32, given("--duration="));
    std::env::set_current_dir(&words[1])?;
    let mut log = OpenOptions::new().append(true).create(true).open("log")?;
    log.sync_all()?;
    File::open(".")?.sync_all()?;
    // Rust's standard output ends its buffer at each line; a lock keeps it for us.
    let mut said = io::stdout().lock();
    said.write_all(b"begin\n")?;
    said.flush()?;
    let until = Instant::now() + Duration::from_secs(duration);
    let mut number = 0;
    while Instant::now() < until {
        number += 1;
        for client in 0..clients {
            commit(&mut log, client, number)?;
            said.write_all(format!("ack {client} {number}\n").as_bytes())?;
            said.flush()?;
        }
    }
    Ok(())
}
