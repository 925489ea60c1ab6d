//! Batch jobs over queues: Hadoop's LocalJobRunner, a cluster of YARN in one process, and Spark, all real, over real brokers, by the module
//! in `clients/java/mapreduce`. What is missing on the machine is installed.
//!
//! What takes more than LocalJobRunner is in the long suite: `tests/batch/run`.

mod cluster;
mod copy;
mod documented;
mod measure;
mod program;
mod queues;
mod ranges;
mod refusals;
mod spark;
mod trouble;
mod word_count;
