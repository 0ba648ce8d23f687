//! The writer: one thread for each client; redb lets one write at a time.
mod notes;

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use redb::{Database, Durability, ReadableTable, TableDefinition};

const NOTES: TableDefinition<(u32, u64), &[u8]> = TableDefinition::new("notes");
const BALANCES: TableDefinition<u32, u64> = TableDefinition::new("balances");

fn commit(base: &Database, client: u32, number: u64, durable: bool, two_phase: bool) -> Result<(), Box<dyn Error>> {
    let mut transaction = base.begin_write()?;
    transaction.set_durability(if durable { Durability::Immediate } else { Durability::None })?;
    transaction.set_two_phase_commit(two_phase);
    {
        let account = notes::account(client, number);
        transaction.open_table(NOTES)?.insert((client, number), notes::content(client, number).as_slice())?;
        let mut balances = transaction.open_table(BALANCES)?;
        let balance = balances.get(account)?.map_or(0, |value| value.value());
        balances.insert(account, balance + 1)?;
    }
    Ok(transaction.commit()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    eprintln!("redb 4.6.0"); // the first line of standard error is the version
    let directory = std::env::args().nth(1).ok_or("a directory is missing")?;
    let base = Database::create(format!("{directory}/base"))?;
    let transaction = base.begin_write()?;
    transaction.open_table(NOTES)?;
    transaction.open_table(BALANCES)?;
    transaction.commit()?;
    File::open(&directory)?.sync_all()?;
    let immediate = notes::option("--durability").as_deref() != Some("none");
    let two_phase = notes::option("--two_phase").as_deref() == Some("true");
    let mut said = std::io::stdout();
    said.write_all(b"begin\n")?;
    said.flush()?;
    let until = Instant::now() + Duration::from_secs(notes::number("--duration"));
    std::thread::scope(|scope| {
        for client in 0..notes::number("--clients") as u32 {
            let base = &base;
            scope.spawn(move || {
                for number in 1.. {
                    if Instant::now() > until {
                        break;
                    }
                    commit(base, client, number, immediate || number % 50 == 0, two_phase).expect("a commit");
                    // Rust's standard output ends its buffer at each line: it is one write.
                    println!("ack {client} {number}");
                }
            });
        }
    });
    // Without a clean end, which would sync what was not yet.
    std::process::exit(0);
}
