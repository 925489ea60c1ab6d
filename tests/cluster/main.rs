//! Clusters end to end: a module is a behaviour. `cargo test -p hqueue-tests --test cluster cut_off` runs one.

mod any_broker_takes_any_call;
mod brokers_that_do_not_help;
mod checkpoints;
mod checkpoints_by_hand;
mod cut_off;
mod dead_letters;
mod explain;
mod idle;
mod layout;
mod nodes_by_hand;
mod processes_of_one_name;
mod pull;
mod queues_come_and_go;
mod quick_restart;
mod refusals;
mod retention;
mod rolling_restart;
mod steering;
mod subscribers_across_brokers;
mod zookeeper_away;
