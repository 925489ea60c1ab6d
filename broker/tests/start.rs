//! What a start refuses, and what it leaves as it was.

use std::fs;
use std::path::Path;

use hqueue_broker::{Broker, Options};

fn options(folder: &Path) -> Options {
    Options { data: folder.to_owned(), listen: ([127, 0, 0, 1], 0).into(), http: None, ..Options::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_without_coordination_are_not_taken_for_rubbish() {
    let folder = tempfile::tempdir().unwrap();
    Broker::start(options(folder.path())).await.unwrap().stop().await;
    fs::create_dir_all(folder.path().join("queues/q")).unwrap();
    fs::remove_dir_all(folder.path().join("coordination")).unwrap();
    let error = Broker::start(options(folder.path())).await.unwrap_err().to_string();
    assert!(error.contains("coordination.journal") && error.contains("queues"), "{error}");
    assert!(folder.path().join("queues/q").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_serves_one_broker_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let first = Broker::start(options(folder.path())).await.unwrap();
    let error = Broker::start(options(folder.path())).await.unwrap_err().to_string();
    assert!(error.contains(folder.path().to_str().unwrap()), "{error}");
    first.stop().await;
    Broker::start(options(folder.path())).await.unwrap().stop().await;
}
