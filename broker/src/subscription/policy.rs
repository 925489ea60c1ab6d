//! What follows a batch that failed: decisions alone, without what they are about.
//!
//! A batch is tried `max_attempts` times. Then the message by which it fails is looked for: half of the batch is tried once; if that
//! fails, half of the half, until a message stands alone and fails: that is poison. What succeeds doubles the next try. It ends
//! when everything of the batch is consumed or buried.

/// The trouble in which a partition is, before this failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Attempts of the batch, with this one.
    pub attempts: u32,
    pub max_attempts: u32,
    /// Messages in the call that failed.
    pub messages: u32,
    /// The poison is being looked for already.
    pub hunting: bool,
}

/// What follows a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The same batch again, after the wait of so many attempts.
    Again { attempts: u32 },
    /// So many messages from the front, soon.
    Hunt { messages: u32 },
    /// The message is poison.
    Poison,
}

/// What follows a failed call.
#[must_use]
pub const fn after_failure(trouble: Trouble) -> Next {
    let Trouble { attempts, max_attempts, messages, hunting } = trouble;
    if !hunting && attempts < max_attempts {
        return Next::Again { attempts };
    }
    if messages <= 1 { Next::Poison } else { Next::Hunt { messages: messages.div_ceil(2) } }
}

/// How many messages are tried next, while the poison is looked for, after a call with `messages` succeeded.
#[must_use]
pub const fn after_success(messages: u32) -> u32 {
    messages.saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a batch in which some messages are poison; returns what was buried, and how many calls it took behind the first attempts.
    fn play(size: u32, poison: &[u32], max_attempts: u32) -> (Vec<u32>, u32) {
        let (mut at, mut hunt, mut attempts, mut calls) = (0, None, 0, 0);
        let mut buried = Vec::new();
        while at < size {
            let messages = hunt.unwrap_or(size).min(size - at);
            let fails = (at..at + messages).any(|m| poison.contains(&m));
            if hunt.is_some() {
                calls += 1;
            }
            if !fails {
                at += messages;
                hunt = hunt.map(|_| after_success(messages));
                continue;
            }
            attempts += 1;
            match after_failure(Trouble { attempts, max_attempts, messages, hunting: hunt.is_some() }) {
                Next::Again { .. } => {}
                Next::Hunt { messages } => hunt = Some(messages),
                Next::Poison => {
                    buried.push(at);
                    at += 1;
                    hunt = Some(1);
                }
            }
            assert!(calls < 10_000, "it does not end");
        }
        (buried, calls)
    }

    #[test]
    fn only_poison_is_buried_and_the_search_is_short() {
        for size in [1u32, 2, 3, 8, 100, 1000] {
            for at in [0, size / 2, size - 1] {
                let (buried, calls) = play(size, &[at], 4);
                assert_eq!(buried, [at], "of {size}");
                let most = 4 * size.ilog2() + 4;
                assert!(calls <= most, "{calls} calls for {size}, at most {most}");
            }
        }
    }

    #[test]
    fn any_number_of_poison_is_found_and_nothing_else() {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..500 {
            let size = random.u32(1..200);
            let mut poison: Vec<u32> = (0..random.u32(0..10)).map(|_| random.u32(0..size)).collect();
            poison.sort_unstable();
            poison.dedup();
            assert_eq!(play(size, &poison, random.u32(1..5)).0, poison, "seed {seed}, {size} messages");
        }
    }

    #[test]
    fn before_the_last_attempt_the_batch_is_repeated() {
        let trouble = Trouble { attempts: 3, max_attempts: 4, messages: 10, hunting: false };
        assert_eq!(after_failure(trouble), Next::Again { attempts: 3 });
        assert_eq!(after_failure(Trouble { attempts: 4, ..trouble }), Next::Hunt { messages: 5 });
        assert_eq!(after_failure(Trouble { attempts: 4, messages: 1, ..trouble }), Next::Poison);
    }
}
