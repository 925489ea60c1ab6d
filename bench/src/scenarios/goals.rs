//! What is wanted of HQueue against each peer.

use super::Bench;
use crate::report::{Bound, Goal};

/// What one side spends on a message, over what another does.
pub(super) const fn cpu_over(side: &'static str, other: &'static str) -> Goal {
    Goal { side, figure: "CPU us/msg", over: Some((other, "CPU us/msg")), bound: Bound::None }
}

/// HQueue's figures over those of each peer that takes part; its own client library's as well, where that takes part.
pub(super) fn over_peers(bench: &Bench, figures: &[(&'static str, Bound)]) -> Vec<Goal> {
    let own: &[&str] = if bench.places.sdk { &["hqueue", "hqueue-sdk"] } else { &["hqueue"] };
    let mut goals = Vec::new();
    for side in own {
        for peer in &bench.places.peers {
            goals.extend(figures.iter().map(|(figure, bound)| Goal {
                side,
                figure,
                over: Some((peer.name(), figure)),
                bound: *bound,
            }));
        }
    }
    goals
}
