//! The check can fail: every mutant is caught, and the server on its own engines is not.

use partita_testing::server::TestServer;
use partita_torture::check::Violation;
use partita_torture::cluster::{Addresses, Program, Storage};
use partita_torture::faults::{Fault, Plan, Until, torture};
use partita_torture::mutants::{Mutant, open};
use partita_torture::run::{Losses, Run};
use std::path::Path;
use std::time::Duration;

const CLIENTS: u32 = 6;

/// Rounds of load on a server in this process, until something is wrong.
fn rounds(mutant: Option<Mutant>, folder: Option<&Path>, seed: u64, rounds: u32) -> Result<(), Violation> {
    let server = TestServer::on_store(open(mutant, folder).expect("an empty store opens"), |_| {});
    let addresses = Addresses::new([server.address]);
    let mut run = Run::new(seed, CLIENTS);
    run.begin(&addresses)?;
    for round in 1..=rounds {
        let calls = run.load(&addresses, |common| common.wait(200, Duration::from_millis(500)));
        run.settle(&addresses, calls, &Losses::default(), round == rounds)?;
    }
    assert!(run.totals.acknowledged > 0, "nothing was written");
    Ok(())
}

#[test]
fn the_server_keeps_its_promises() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for folder in [None, Some(folder.path())] {
        if let Err(violation) = rounds(None, folder, 1, 20) {
            panic!("on {folder:?}: {violation}");
        }
    }
}

#[test]
fn mutants_are_caught() {
    for (mutant, name) in Mutant::ALL {
        if mutant == Mutant::WritesBehind {
            continue;
        }
        let caught = (1..=5).find_map(|seed| rounds(Some(mutant), None, seed, 20).err());
        match caught {
            Some(violation) => println!("{name}: {violation}\n"),
            None => panic!("{name} is not caught"),
        }
    }
}

fn crashes(mutant: Option<&str>, seed: u64) -> Option<Violation> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = Program::mutant(env!("CARGO_BIN_EXE_torture"), mutant);
    let plan = Plan { seed, clients: CLIENTS, nodes: 1, until: Until::Faults(20), faults: vec![Fault::Kill] };
    torture(&program, &mut Storage::Folder(folder.path().into()), &plan, &mut |_| {}).violation
}

#[test]
fn a_store_that_answers_before_the_disk_is_caught_by_a_crash_only() {
    if let Err(violation) = rounds(Some(Mutant::WritesBehind), None, 1, 10) {
        panic!("seen without a crash: {violation}");
    }
    let caught = (1..=5).find_map(|seed| crashes(Some("writes-behind"), seed));
    println!("{}", caught.expect("a crash loses what was not written"));
}

#[test]
fn the_server_survives_crashes() {
    if let Some(violation) = crashes(None, 1) {
        panic!("{violation}");
    }
}
