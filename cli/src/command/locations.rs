//! `hqueue locations`

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::print_json;

/// Show which broker owns each partition of a queue, in their order.
#[derive(Args, Debug)]
pub(crate) struct Locations {
    queue: String,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Serialize)]
struct Owners {
    locations: Vec<String>,
}

impl Locations {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let locations = self.connection.open().await?.admin().locations(&self.queue).await?;
        if self.connection.is_json() {
            return print_json(&Owners { locations });
        }
        let mut out = io::stdout().lock();
        for (partition, owner) in locations.iter().enumerate() {
            writeln!(out, "{partition} {owner}")?;
        }
        Ok(())
    }
}
