//! Other options for a subscriber that is served.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::catalog::Catalog;
use super::queue::Queue;
use crate::refusal::Refusal;
use crate::subscription::{OPTION_NAMES, SubscriptionOptions};

/// How long it may take until the change is seen here.
const SEEN_PATIENCE: Duration = Duration::from_secs(5);

impl Catalog {
    /// Sets these options; the others keep their values. Written to the options node, which every broker sees: each has the subscription
    /// replaced by one with the new options. No call by the old ones begins here when this returns.
    pub async fn set_options(&self, queue: &Arc<Queue>, name: &str, wanted: &BTreeMap<String, String>) -> Result<(), Refusal> {
        if wanted.is_empty() {
            let message = format!("no option is named, so nothing is to be changed; the options are {}", OPTION_NAMES.join(", "));
            return Err(Refusal::invalid(message));
        }
        let _one = queue.changes.lock().await;
        let _alone = self.lock_subscriber(queue, name).await?;
        let mut record = self.record_of(queue, name).await?;
        let options = changed(&record.options, wanted)?;
        if record.options != options {
            record.options = options.clone();
            self.keep_record(queue, name, &record).await?;
        }
        let seen = || {
            let is_seen = queue.subscription(name).map_or(true, |s| s.is_retiring() || s.record().options == options);
            is_seen.then_some(())
        };
        self.until(SEEN_PATIENCE, seen).await;
        tracing::info!(queue = %queue.name, subscriber = name, options = ?wanted, "options set by command");
        Ok(())
    }
}

/// These options with some of them set to other values, all of them checked.
fn changed(options: &SubscriptionOptions, wanted: &BTreeMap<String, String>) -> Result<SubscriptionOptions, Refusal> {
    let refused = |error| Refusal::invalid(format!("nothing is changed: {error}"));
    let mut options = options.clone();
    wanted.iter().try_for_each(|(name, value)| options.set(name, value)).map_err(refused)?;
    options.check().map_err(refused)?;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_is_not_named_keeps_its_value() {
        let before = SubscriptionOptions { batch_messages: 7, calls: 2, ..Default::default() };
        let after = changed(&before, &wanted(&[("calls", "3"), ("retry-max", "2m")])).unwrap();
        let two_minutes = Duration::from_secs(120);
        assert_eq!(after, SubscriptionOptions { calls: 3, retry_max: two_minutes, ..before });
    }

    #[test]
    fn options_are_checked_together_with_those_that_stay() {
        let before = SubscriptionOptions { retry_max: Duration::from_secs(2), ..Default::default() };
        let refusal = changed(&before, &wanted(&[("retry-min", "3s")])).unwrap_err();
        assert!(refusal.message.contains("retry-min") && refusal.message.contains("retry-max"), "{refusal}");
        assert!(changed(&before, &wanted(&[("retry-min", "3s"), ("retry-max", "3s")])).is_ok());
        assert!(changed(&before, &wanted(&[("calls", "2"), ("colour", "red")])).is_err());
    }
}
