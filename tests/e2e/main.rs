//! The end-to-end tests: a module is a behaviour. `cargo test -p hqueue-tests crash` runs one.

mod any_order_of_commands;
mod cli;
mod cli_refusals;
mod cli_subscribe;
mod clock;
mod crash;
mod damage;
mod disk_full;
mod durability;
mod fd_limit;
mod graceful_stop;
mod hostile_clients;
mod idle;
mod metrics;
mod names_and_values;
mod positions;
mod push_complete_and_in_order;
mod queues_come_and_go;
mod registered;
mod results_of_consume;
mod sdk;
mod slow_and_dead_subscribers;
mod topics;
mod ttl;
mod whose_fault;
