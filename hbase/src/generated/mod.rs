//! What the Thrift compiler makes of HBase's own `hbase/idl/hbase.thrift`; see `scripts/generate`.

#[allow(clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, unreachable_pub, missing_debug_implementations, unused_mut, dead_code)]
#[rustfmt::skip]
mod hbase;

pub(crate) use hbase::*;
