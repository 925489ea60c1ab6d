//! Random choices that can be repeated.

use fastrand::Rng;

/// A source of random numbers. Its seed is printed and comes from the environment variable `HQUEUE_TEST_SEED` if that is set.
///
/// # Panics
/// If `HQUEUE_TEST_SEED` is no number.
#[must_use]
pub fn seed(test: &str) -> Rng {
    let seed = match std::env::var("HQUEUE_TEST_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("HQUEUE_TEST_SEED is {text:?}, no number")),
        Err(_) => fastrand::u64(..),
    };
    println!("{test}: HQUEUE_TEST_SEED={seed}");
    Rng::with_seed(seed)
}
