//! Messages in HBase: what HQueue puts and pushes, beside rows that are only written, through the same gateway and without it.

use serde_json::json;

use super::flow::{self, Flow};
use super::rounds::Rounds;
use super::{Bench, goals};
use crate::driver::Load;
use crate::failure::{Failure, Outcome};
use crate::hbase::{HBase, Writing, Written, write};
use crate::messages::PutShape;
use crate::report::{Bound, Figures, Goal, ScenarioReport};
use crate::setting::Durability;
use crate::sides::{Side, Usage};

const PARTITIONS: u16 = 8;
const PRODUCERS: u32 = 4;
const IN_FLIGHT: usize = 4;
/// As many as HQueue has to a gateway.
const CONNECTIONS: usize = 8;

const THROUGH_GATEWAY: &str = "raw rows, gateway";
const WITHOUT_GATEWAY: &str = "raw rows, Java client";

pub(super) async fn run(bench: &Bench) -> Outcome<Vec<ScenarioReport>> {
    let Some(hbase) = &bench.places.hbase else {
        return Err(Failure::Usage("hbase takes --hbase FOLDER, of scripts/hbase start FOLDER".to_owned()));
    };
    let mut reports = Vec::new();
    for shape in [PutShape { messages: 100, value_bytes: 1024 }, PutShape { messages: 500, value_bytes: 100 }] {
        reports.push(measure(bench, hbase, shape).await?);
    }
    Ok(reports)
}

async fn measure(bench: &Bench, hbase: &HBase, shape: PutShape) -> Outcome<ScenarioReport> {
    let name = format!("hbase, {} x {} B", shape.messages, shape.value_bytes);
    let load = Load { queues: 1, partitions: PARTITIONS, producers: PRODUCERS, in_flight: IN_FLIGHT, shape };
    let flow = Flow::closed(bench, load, Durability::Sync);
    let writing = Writing { connections: CONNECTIONS, shape, partitions: PARTITIONS, warm_up: bench.warm_up, time: bench.time };
    let mut rounds = Rounds::of(&name);
    for _ in 0..bench.rounds {
        rounds.begin();
        hbase.clear().await?;
        rounds.add(THROUGH_GATEWAY, raw(hbase, &writing, true).await)?;
        hbase.clear().await?;
        rounds.add(Side::InHBase.name(), flow::measure(Side::InHBase, bench, &flow).await)?;
        hbase.clear().await?;
        rounds.add(WITHOUT_GATEWAY, raw(hbase, &writing, false).await)?;
        hbase.clear().await?;
        rounds.add(Side::HQueue.name(), flow::measure(Side::HQueue, bench, &flow).await)?;
    }
    let settings = json!({
        "partitions": PARTITIONS, "regions": PARTITIONS, "producers": PRODUCERS, "in_flight": IN_FLIGHT, "connections of raw rows": CONNECTIONS,
        "rows a call, messages a put": shape.messages, "value_bytes": shape.value_bytes, "seconds": bench.time.as_secs_f64(),
    });
    let over = |side, other, bound| Goal { side, figure: "msgs/s", over: Some((other, "msgs/s")), bound };
    let wanted = [
        over(Side::InHBase.name(), THROUGH_GATEWAY, Bound::AtLeast(0.8)),
        over(Side::InHBase.name(), Side::HQueue.name(), Bound::None),
        over(THROUGH_GATEWAY, WITHOUT_GATEWAY, Bound::None),
        goals::cpu_over(Side::InHBase.name(), THROUGH_GATEWAY),
    ];
    Ok(ScenarioReport::new(&name, settings, rounds.rounds, rounds.failures, &wanted))
}

/// Rows into a table of their own.
async fn raw(hbase: &HBase, plan: &Writing, through_gateway: bool) -> Outcome<Figures> {
    let table = hbase.table(i16::try_from(PARTITIONS).unwrap_or(i16::MAX), i16::try_from(PARTITIONS).unwrap_or(i16::MAX)).await?;
    let before = hbase.usage()?;
    let written =
        if through_gateway { write(&hbase.gateway, &table, plan).await? } else { hbase.write_with_java(&table, plan).await? };
    figures(written, hbase.usage()?.since(before), plan)
}

fn figures(written: Written, used: Usage, plan: &Writing) -> Outcome<Figures> {
    let (rows, seconds) = (written.rows as f64, written.took.as_secs_f64());
    if rows == 0.0 || seconds == 0.0 {
        return Err(Failure::Invalid("no row was written".to_owned()));
    }
    // The warm-up's rows cost as much.
    let share = seconds / (seconds + plan.warm_up.as_secs_f64());
    Ok(Figures::default()
        .with("msgs/s", rows / seconds)
        .with("MB/s", rows * plan.shape.value_bytes as f64 / seconds / 1e6)
        .with("CPU us/msg", used.cpu.as_secs_f64() * share * 1e6 / rows)
        .with("RSS MiB", used.resident_bytes as f64 / f64::from(1 << 20))
        .with("messages", rows))
}
