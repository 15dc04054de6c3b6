//! `sim`: prints the tables, or writes everything that docs/scale.md shows.

use partita_sim::documents;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next(), arguments.next()) {
        (None, None) => print!("{}", documents::tables()),
        (Some(folder), None) => {
            if let Err(error) = documents::write(Path::new(&folder)) {
                eprintln!("sim: {folder}: {error}");
                return ExitCode::FAILURE;
            }
        }
        _ => {
            eprintln!(
                "usage: sim [FOLDER]\nPrints the tables of docs/scale.md, or writes them and the plot to the folder docs."
            );
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
