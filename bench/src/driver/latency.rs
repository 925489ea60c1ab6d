//! Times that were measured, and their percentiles.

/// Every time of a run, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<u64>);

impl Latencies {
    pub fn note(&mut self, ns: u64) {
        self.0.push(ns);
    }

    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The times below which `percent` of all are, in microseconds; `None` without any.
    #[must_use]
    pub fn percentile_us(&mut self, percent: f64) -> Option<f64> {
        self.0.sort_unstable();
        let last = self.0.len().checked_sub(1)?;
        let rank = ((last as f64) * percent / 100.0).round();
        self.0.get(rank as usize).map(|ns| *ns as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_hundred_and_one() {
        let mut times = Latencies::default();
        for ns in (0..=100u64).rev() {
            times.note(ns * 1000);
        }
        assert_eq!(times.percentile_us(50.0), Some(50.0));
        assert_eq!(times.percentile_us(99.0), Some(99.0));
        assert_eq!(times.percentile_us(100.0), Some(100.0));
        assert_eq!(Latencies::default().percentile_us(50.0), None);
    }
}
