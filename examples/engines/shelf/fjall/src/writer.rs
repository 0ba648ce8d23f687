//! The writer: one thread for each client, and a table in memory so small that it is flushed and merged all the while.
mod notes;

use std::fs::File;
use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

fn commit(base: &Database, keyspace: &(Keyspace, Keyspace), balances: &Mutex<[u64; 100]>, mode: PersistMode, client: u32, number: u64) -> fjall::Result<()> {
    let account = notes::account(client, number);
    let mut batch = base.batch();
    // Balances are written in the order in which they are counted.
    let mut counted = balances.lock().expect("a lock");
    counted[account as usize] += 1;
    batch.insert(&keyspace.0, [&client.to_be_bytes()[..], &number.to_be_bytes()].concat(), notes::content(client, number));
    batch.insert(&keyspace.1, account.to_be_bytes(), counted[account as usize].to_be_bytes());
    batch.commit()?;
    drop(counted);
    base.persist(mode)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    eprintln!("fjall 3.1.13"); // the first line of standard error is the version
    let directory = std::env::args().nth(1).ok_or("a directory is missing")?;
    let base = Database::builder(format!("{directory}/base")).max_journaling_size(64 << 20).open()?;
    let small = || KeyspaceCreateOptions::default().max_memtable_size(64 << 10);
    let keyspace = (base.keyspace("notes", small)?, base.keyspace("balances", small)?);
    base.persist(PersistMode::SyncAll)?;
    File::open(&directory)?.sync_all()?;
    let mode = match notes::option("--persist").as_deref() {
        Some("buffer") => PersistMode::Buffer,
        Some("data") => PersistMode::SyncData,
        _ => PersistMode::SyncAll,
    };
    let mut said = std::io::stdout();
    said.write_all(b"begin\n")?;
    said.flush()?;
    let until = Instant::now() + Duration::from_secs(notes::number("--duration"));
    let balances = Mutex::new([0; 100]);
    std::thread::scope(|scope| {
        for client in 0..notes::number("--clients") as u32 {
            let (base, keyspace, balances) = (&base, &keyspace, &balances);
            scope.spawn(move || {
                for number in 1.. {
                    if Instant::now() > until {
                        break;
                    }
                    commit(base, keyspace, balances, mode, client, number).expect("a commit");
                    // Rust's standard output ends its buffer at each line: it is one write.
                    println!("ack {client} {number}");
                }
            });
        }
    });
    // Without a clean end, which would sync what was not yet.
    std::process::exit(0);
}
