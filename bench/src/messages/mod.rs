//! The messages of every measurement, the same bytes for every side, and the bookkeeping that finds a lost one.
//!
//! ```text
//! message   TMessage in the binary protocol, as a client sends it
//!           0b 0003 | 00000001 | 't'          topic
//!           0b 0004 | length   | value        value
//!           00                                end of the struct
//! value     producer u32 | partition u16 | number u64 | sent u64 | filling that does not compress
//!                                          |            nanoseconds since the driver began
//!                                          counts from 0 within its producer and partition
//! ```

mod bare;
mod ledger;
mod stamp;
mod template;
mod walk;

pub use bare::BareValues;
pub use ledger::Ledger;
pub use stamp::{STAMP_BYTES, Stamp};
pub use template::{PutShape, PutTemplate};
pub use walk::{Values, WalkError};
