//! Partita: the real binary with its defaults, so every write is synced before it is answered.

use super::{Content, Contestant, Node, Restarts, Server, Stage, TakesPart, table_service, version_line};
use crate::Result;
use crate::process::Process;
use crate::workloads::Work;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) struct Partita {
    pub(super) binary: PathBuf,
}

impl Contestant for Partita {
    fn name(&self) -> &'static str {
        "partita"
    }

    fn version(&self) -> Result<String> {
        version_line(&self.binary, "--version")
    }

    fn takes_part(&self, _: Work, _: usize) -> TakesPart {
        TakesPart::Yes
    }

    fn start(&self, folder: &Path, has_rows: bool) -> Result<Server> {
        let Node { process, address } = start_node(&self.binary, "--location", folder.as_os_str())?;
        table_service::first_answer(process, address, has_rows)
    }

    fn fill(&self, server: &Server, content: &Content) -> Result<Box<dyn Stage>> {
        table_service::fill(server, content)
    }

    fn restarts(&self) -> Restarts {
        Restarts::AfterAnyEnd
    }

    fn binary_bytes(&self) -> Option<u64> {
        std::fs::metadata(&self.binary).ok().map(|metadata| metadata.len())
    }
}

/// Starts the binary with its defaults, and with its data in one place or another.
pub(super) fn start_node(binary: &Path, flag: &str, place: &OsStr) -> Result<Node> {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PARTITA_") || name == "AZURITE_ACCOUNTS" {
            command.env_remove(name);
        }
    }
    command.args(["--tableHost", "127.0.0.1", "--tablePort", "0", "--admin-port", "0", flag]);
    command.arg(place).stdout(Stdio::piped());
    let mut process = Process::start(&mut command)?;
    let address = process.wait_for_line("successfully listens on http://")?.parse()?;
    Ok(Node { process, address })
}
