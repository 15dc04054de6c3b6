//! The check can fail: every mutant is caught, and the server on its own engines is not.

use partita_testing::server::TestServer;
use partita_torture::check::Violation;
use partita_torture::faults::{Plan, Program, Until, torture};
use partita_torture::mutants::{Mutant, open};
use partita_torture::run::Run;
use std::path::Path;
use std::time::Duration;

const CLIENTS: u32 = 6;

/// Rounds of load on a server in this process, until something is wrong.
fn rounds(mutant: Option<Mutant>, folder: Option<&Path>, seed: u64, rounds: u32) -> Result<(), Violation> {
    let server = TestServer::on_store(open(mutant, folder).expect("an empty store opens"), |_| {});
    let mut run = Run::new(seed, CLIENTS);
    run.begin(server.address)?;
    for round in 1..=rounds {
        let calls = run.load(server.address, |common| common.wait(200, Duration::from_millis(500)));
        run.settle(server.address, calls, None, round == rounds)?;
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
    let plan = Plan { seed, clients: CLIENTS, until: Until::Crashes(20), restarts: true };
    torture(&program, folder.path(), &plan, &mut |_| {}).violation
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
