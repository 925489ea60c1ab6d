//! Where things are, and who takes part.

use std::path::PathBuf;

use super::Side;
use crate::hbase::HBase;
use crate::peers::Peer;
use crate::setting::Durability;

/// Where things are.
#[derive(Clone, Debug)]
pub struct Places {
    /// The `hqueue` binary.
    pub hqueue: PathBuf,
    /// Another one, to be compared with it.
    pub other: Option<PathBuf>,
    /// This program.
    pub bench: PathBuf,
    /// A folder that this run made for the data of all sides.
    pub data: PathBuf,
    /// Where the programs of the peers were installed.
    pub installed: PathBuf,
    pub peers: Vec<Peer>,
    /// HQueue's own client library takes part, beside the frames that are encoded once.
    pub sdk: bool,
    /// Where HBase runs, for what is measured with messages in it.
    pub hbase: Option<HBase>,
}

impl Places {
    /// The sides that are driven by frames.
    #[must_use]
    pub fn own_sides(&self) -> Vec<Side> {
        let other = self.other.is_some().then_some(Side::Other);
        [Side::Floor, Side::HQueue].into_iter().chain(other).collect()
    }

    /// Who takes part in each round, in this order.
    #[must_use]
    pub fn sides(&self) -> Vec<Side> {
        let sdk = self.sdk.then_some(Side::Sdk);
        self.own_sides().into_iter().chain(sdk).chain(self.peers.iter().copied().map(Side::Peer)).collect()
    }

    /// Those of them that can acknowledge as this class says.
    #[must_use]
    pub fn sides_with(&self, durability: Durability) -> Vec<Side> {
        let mut sides = self.sides();
        sides.retain(|side| side.has(durability));
        sides
    }
}
