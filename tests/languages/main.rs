//! Consumers and producers in other languages, on their stock Thrift libraries, against a real broker. A module is a language, with
//! the same checks for each: `cargo test -p hqueue-tests --test languages python`. What is missing on the machine is installed.
//!
//! Languages of the long suite: `-- --ignored ruby:: perl:: rust::`.
//!
//! Most of the time is waiting, so more threads than cores are right: `-- --test-threads 8`.

mod checks;
mod harness;
mod manners;
mod readme;
mod speed;
mod table;

/// The checks of each language, ignored where it says why.
macro_rules! languages {
    ($($name:ident $(($why:literal))?),*) => { $(
        mod $name {
            use crate::{checks, table};

            languages!(@check $name [$($why)?] examples, by_hand, every_dialect, answers, killed_and_back, idle, ten_thousand, replaced, gateway, strangers);
        }
    )* };
    (@check $name:ident [] $($check:ident),*) => { $(
        #[test]
        fn $check() {
            checks::$check(&table::$name());
        }
    )* };
    (@check $name:ident [$why:literal] $($check:ident),*) => { $(
        #[test]
        #[ignore = $why]
        fn $check() {
            checks::$check(&table::$name());
        }
    )* };
}

languages!(python, thriftpy2, java, go, node, cpp, php, ruby("the long suite"), perl("the long suite"), rust("the long suite"));
