//! Users and their rights.

use hqueue_coordination::zookeeper::{ZooKeeperCoordinator, ZooKeeperOptions};
use hqueue_coordination::{CoordinationError, Coordinator, NodeKind};
use hqueue_tests::zookeeper::Proxy;

use crate::support::{PATIENCE, connect, fresh_root, next_session, options, payload_is, session_id, shared_server, shows};

fn as_user(user: &str, password: &str, options: ZooKeeperOptions) -> ZooKeeperOptions {
    ZooKeeperOptions { auth: Some((user.to_owned(), password.to_owned())), ..options }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_user_makes_is_the_users_also_after_a_reconnect() {
    let (server, root) = (shared_server(), fresh_root());
    let proxy = Proxy::to(server.address());
    let ours = connect(as_user("hqueue", "secret", options(&proxy.host(), &root))).await;
    ours.create("/n", b"a", NodeKind::Persistent).await.unwrap();
    ours.create("/e", b"", NodeKind::Ephemeral).await.unwrap();
    let mut watched = ours.watch_node("/n");
    shows(&mut watched, payload_is(b"a")).await;
    let mut last = session_id(&*ours);
    for round in 0..3 {
        proxy.cut();
        last = next_session(&*ours, last).await;
        assert_eq!(ours.set("/n", b"b", None).await, Ok(round + 1));
        ours.create(&format!("/n/{round}"), b"", NodeKind::Persistent).await.unwrap();
        shows(&mut watched, |node| node.as_ref().is_some_and(|node| node.version == round + 1)).await;
    }
    // Who sees all of ZooKeeper, but is not this user, is refused each of these.
    for other in [options(&server.host(), "/"), as_user("hqueue", "wrong", options(&server.host(), "/"))] {
        let other = connect(other).await;
        for path in [root.clone(), format!("{root}/n"), format!("{root}/n/0")] {
            let refusals = [
                other.get(&path).await.map(drop),
                other.set(&path, b"x", None).await.map(drop),
                other.children(&path).await.map(drop),
                other.create(&format!("{path}/x"), b"", NodeKind::Persistent).await.map(drop),
            ];
            for refusal in refusals {
                assert!(matches!(&refusal, Err(CoordinationError::Failed(text)) if text.contains("NoAuth")), "{refusal:?}");
            }
        }
        other.close().await;
    }
    let colleague = connect(as_user("hqueue", "secret", options(&server.host(), &root))).await;
    assert_eq!(colleague.children("/n").await.unwrap().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_root_without_rights_is_a_clear_error() {
    let (server, root) = (shared_server(), fresh_root());
    let theirs = connect(as_user("others", "secret", options(&server.host(), &root))).await;
    let within = format!("{root}/below");
    for (root, options) in [
        (&root, options(&server.host(), &root)),
        (&within, options(&server.host(), &within)),
        (&root, as_user("hqueue", "secret", options(&server.host(), &root))),
    ] {
        let who = options.auth.as_ref().map_or("without a user".to_owned(), |(user, _)| format!("the user {user:?}"));
        let coordinator = ZooKeeperCoordinator::start(options);
        let error = coordinator.connected(PATIENCE).await.unwrap_err();
        println!("{error}");
        let CoordinationError::Failed(text) = &error else { panic!("{error}") };
        for words in [&*server.host(), root, &who, "NoAuth"] {
            assert!(text.contains(words), "{words:?} is not said: {text}");
        }
        coordinator.close().await;
    }
    theirs.close().await;
}

/// The client crate mixes up the answers of requests that are under way beside `add_auth`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_not_mixed_up_while_authenticating() {
    let (server, root) = (shared_server(), fresh_root());
    let proxy = Proxy::to(server.address());
    let ours = connect(as_user("hqueue", "secret", options(&proxy.host(), &root))).await;
    let callers: Vec<_> = (0..40)
        .map(|n| {
            let ours = ours.clone();
            tokio::spawn(async move {
                let (mut answered, path) = (0, format!("/missing-{n}"));
                while answered < 100 {
                    match ours.delete(&path, None).await {
                        Err(CoordinationError::NoNode(missing)) if missing == path => answered += 1,
                        Err(error) if error.is_retryable() => tokio::task::yield_now().await,
                        other => panic!("a delete of a node that is not there: {other:?}"),
                    }
                }
            })
        })
        .collect();
    let mut last = session_id(&*ours);
    for _ in 0..3 {
        proxy.cut();
        last = next_session(&*ours, last).await;
    }
    for caller in callers {
        caller.await.unwrap();
    }
}
