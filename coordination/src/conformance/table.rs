//! The list of all behaviours: each becomes a test of its own.

/// Makes the tests of the suite for a [`Harness`](crate::conformance::Harness), in modules named after the kinds of behaviour. The
/// crate needs tokio with its macros and its multi-threaded runtime.
#[macro_export]
macro_rules! coordinator_conformance {
    ($harness:ty) => {
        $crate::conformance_tests! { $harness,
            nodes {
                the_root_is_always_there,
                a_created_node_is_read_back,
                an_empty_payload_stays_empty,
                what_exists_is_not_created_again,
                a_parent_must_exist,
                what_is_not_there_is_told_apart,
                children_are_names_in_order,
                a_node_with_children_is_not_deleted,
                a_deleted_node_is_gone,
                a_payload_has_a_limit,
            }
            versions {
                versions_count_writes_from_zero,
                a_wrong_version_changes_nothing,
                a_negative_version_matches_nothing,
                without_a_version_any_is_replaced,
                a_node_made_anew_starts_at_zero,
                children_leave_the_version_of_their_parent,
            }
            ephemeral {
                an_ephemeral_node_names_its_session,
                an_ephemeral_node_has_no_children,
                an_ephemeral_node_keeps_its_parent,
                sessions_see_and_change_each_others_nodes,
                closing_a_session_removes_its_nodes,
                dropping_a_session_removes_its_nodes,
                ephemeral_nodes_do_not_survive_a_restart,
            }
            sequential {
                numbers_rise,
                numbers_are_the_parents,
                numbers_of_deleted_nodes_do_not_come_back,
                numbers_rise_over_sessions,
                numbers_rise_over_a_restart,
                concurrent_numbers_differ,
            }
            watches {
                a_watch_begins_with_the_state_now,
                every_change_of_a_node_is_shown,
                every_change_of_the_children_is_shown,
                a_node_made_anew_is_shown,
                changes_of_other_sessions_are_shown,
                receivers_are_independent,
                a_bad_path_is_watched_as_never_there,
                thousands_of_nodes_are_watched,
            }
            watch_order {
                snapshots_never_go_back,
                a_slow_reader_finds_the_last_state,
                no_change_is_missed_while_watches_begin_and_end,
                a_child_that_is_shown_can_be_read,
            }
            concurrency {
                compare_and_set_loses_no_update,
                one_of_many_creators_wins,
                one_of_many_deleters_wins,
                a_parent_is_deleted_or_gets_a_child,
                many_writes_at_once_all_land,
                a_dropped_call_disturbs_no_other,
            }
            paths {
                hostile_paths_are_refused,
                a_number_does_not_make_a_path_too_long,
                what_can_be_made_can_be_listed_and_deleted,
            }
            subtrees {
                missing_parents_are_made,
                parents_are_made_by_many_at_once,
                a_subtree_is_removed_whole,
                a_subtree_is_removed_by_two_at_once,
            }
            persistence {
                persistent_nodes_survive_a_restart,
                versions_go_on_after_a_restart,
                what_was_deleted_stays_deleted,
                a_restart_is_a_new_session,
                many_nodes_survive_many_restarts,
            }
            session {
                a_session_is_held_from_the_start,
                after_a_close_all_answers_are_closed,
                a_close_can_be_repeated,
                a_close_ends_the_watches,
                a_close_leaves_other_sessions_alone,
                writes_under_way_at_a_close_are_answered,
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($harness:ty, $($module:ident { $($name:ident,)* })*) => {
        $(mod $module {
            use super::*;
            $(
                #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    $crate::conformance::$module::$name::<$harness>().await;
                }
            )*
        })*
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_behaviour_is_left_out_of_the_list() {
        let sources = [
            include_str!("concurrency.rs"),
            include_str!("ephemeral.rs"),
            include_str!("nodes.rs"),
            include_str!("paths.rs"),
            include_str!("persistence.rs"),
            include_str!("sequential.rs"),
            include_str!("session.rs"),
            include_str!("subtrees.rs"),
            include_str!("versions.rs"),
            include_str!("watch_order.rs"),
            include_str!("watches.rs"),
        ];
        let defined = sources.iter().flat_map(|source| source.lines()).filter_map(|line| line.strip_prefix("pub async fn "));
        let mut count = 0;
        for name in defined.filter_map(|rest| rest.split_once('<')).map(|(name, _)| name) {
            assert!(include_str!("table.rs").contains(&format!("                {name},\n")), "{name} is not in the list");
            count += 1;
        }
        assert!(count > 50);
    }
}
