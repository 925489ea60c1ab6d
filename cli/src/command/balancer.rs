//! `hqueue balancer`

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::print_json;

/// Switch the balancer on or off, or show whether it is on, where messages are in HBase.
///
/// On, all queues are spread evenly over the brokers whenever one comes or goes. Off, new queues and what brokers had that are gone are given
/// away, and nothing else moves.
#[derive(Args, Debug)]
pub(crate) struct Balancer {
    what: What,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    On,
    Off,
    Status,
}

#[derive(Debug, Serialize)]
struct State {
    balancer: &'static str,
}

impl Balancer {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let admin = self.connection.open().await?.admin();
        match self.what {
            What::On => Ok(admin.switch_balancer(true).await?),
            What::Off => Ok(admin.switch_balancer(false).await?),
            What::Status => {
                let balancer = if admin.is_balancer_on().await? { "on" } else { "off" };
                if self.connection.is_json() {
                    return print_json(&State { balancer });
                }
                Ok(writeln!(io::stdout(), "{balancer}")?)
            }
        }
    }
}
