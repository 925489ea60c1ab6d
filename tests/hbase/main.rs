//! Messages in a real HBase, through its real Thrift2 gateway. All tests share one, which the first of them starts.

mod brokers;
mod brokers_clock;
mod brokers_cut;
mod brokers_deliver;
mod brokers_fail;
mod brokers_moves;
mod conformance;
mod distributed;
mod foreign_tools;
mod gateways;
mod restarts;
mod story;
mod support;
