//! Azurite from its npm package. It keeps all rows in memory and writes them to a file now and then, after it has
//! answered; near 373,000 rows it ends.

use super::{Content, Contestant, Restarts, Server, Stage, TakesPart, table_service};
use crate::Result;
use crate::client::free_port;
use crate::process::Process;
use crate::workloads::Work;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The most rows it is given.
const ROWS_MAX: usize = 300_000;

pub(super) struct Azurite {
    pub(super) folder: PathBuf,
    /// Whether it is told not to print a line for each request, which nobody reads here.
    pub(super) is_silent: bool,
}

impl Contestant for Azurite {
    fn name(&self) -> &'static str {
        "azurite"
    }

    fn version(&self) -> Result<String> {
        let path = self.folder.join("node_modules/azurite/package.json");
        let text = std::fs::read_to_string(path).map_err(|error| format!("its package is not installed: {error}"))?;
        let package: serde_json::Value = serde_json::from_str(&text)?;
        let node = super::version_line(Path::new("node"), "--version")?;
        let silent = if self.is_silent { ", --silent" } else { "" };
        Ok(format!("Azurite {} on Node {node}{silent}", package["version"].as_str().unwrap_or("of no version")))
    }

    fn takes_part(&self, _: Work, rows: usize) -> TakesPart {
        if rows <= ROWS_MAX { TakesPart::Yes } else { TakesPart::Cannot }
    }

    fn start(&self, folder: &Path, has_rows: bool) -> Result<Server> {
        let port = free_port()?;
        let mut command = Command::new(self.folder.join("node_modules/.bin/azurite-table"));
        command.args(["--tableHost", "127.0.0.1", "--tablePort", &port.to_string(), "--location"]).arg(folder);
        command.args(["--disableTelemetry", "--skipApiVersionCheck"]).args(self.is_silent.then_some("--silent"));
        let process = Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()))?;
        table_service::first_answer(process, SocketAddr::from(([127, 0, 0, 1], port)), has_rows)
    }

    fn fill(&self, server: &Server, content: &Content) -> Result<Box<dyn Stage>> {
        table_service::fill(server, content)
    }

    fn restarts(&self) -> Restarts {
        Restarts::AfterStop
    }

    fn time_max(&self) -> Duration {
        Duration::from_secs(1)
    }
}
