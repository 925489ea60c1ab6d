//! Every case once: from here come the table and the tests of each implementation.

use super::{Case, appends, concurrency, counts, cursors, ids, lifecycle, limits, retention, truncation, ttl};

/// Hands the names of all cases to another macro.
#[doc(hidden)]
#[macro_export]
macro_rules! each_conformance_case {
    ($then:path => $($arguments:tt)*) => {
        $then! {
            ($($arguments)*)
            appends::{
                what_was_appended_is_read_in_order,
                ids_that_were_answered_are_ids_that_are_read,
                a_batch_becomes_visible_whole,
                an_answered_append_is_visible,
                nothing_is_visible_above_the_committed_position,
                an_append_that_nobody_waits_for_is_committed,
                a_batch_without_messages_is_answered,
                topics_values_headers_and_unknown_fields_are_kept,
                everything_is_there_after_a_reopening,
                listeners_are_told_once_a_commit,
                counters_count_appends,
            }
            ids::{
                ids_follow_the_clock,
                ids_rise_while_the_clock_stands_still,
                ids_rise_over_steps_back_and_reopenings,
                ids_rise_after_a_clock_far_ahead_was_corrected,
                a_full_millisecond_overflows_into_the_next,
                new_ids_are_above_a_raised_floor,
                a_floor_below_the_last_id_changes_nothing,
                ids_and_numbers_go_on_when_everything_is_gone,
                partitions_have_ids_and_numbers_of_their_own,
            }
            cursors::{
                a_read_begins_at_the_first_id_at_or_above,
                a_read_inside_a_batch_begins_inside_it,
                small_reads_visit_every_block_once,
                tail_and_read_agree_everywhere,
                wrong_hints_are_harmless,
                stale_hints_are_harmless,
                a_rare_partition_is_found_between_many_messages,
            }
            concurrency::{
                a_follower_gets_what_was_acknowledged_in_order,
                appends_beside_a_truncation_are_kept_or_gone_whole,
                appends_in_flight_at_the_close_are_answered,
            }
            ttl::{
                nothing_expires_early_or_late,
                expiry_goes_by_arrival_and_not_by_id,
                what_expired_stays_gone,
                a_step_back_of_the_clock_expires_nothing_early,
                a_jump_of_the_clock_destroys_nothing,
                a_jump_of_the_clock_is_believed_in_the_end,
                a_reader_is_told_what_expired,
                a_ttl_without_end_never_expires,
                an_odd_arrival_neither_holds_nor_kills_its_neighbours,
            }
            truncation::{
                nothing_is_read_after_a_truncation,
                truncated_messages_stay_gone,
                ids_and_numbers_go_on_after_a_truncation,
                a_truncation_leaves_other_queues_alone,
                a_reader_is_told_what_was_truncated,
            }
            counts::{
                counts_without_topics_are_exact_at_every_id,
                counts_by_topic_are_right_within_the_limit,
                counts_beyond_the_limit_are_upper_bounds,
                statistics_follow_appends_expiry_and_truncation,
            }
            lifecycle::{
                a_queue_made_anew_has_nothing_of_its_predecessor,
                a_queue_of_another_uid_is_removed_and_not_served,
                a_removed_queue_is_gone_over_a_reopening,
                removing_what_is_not_there_is_no_error,
                handles_of_a_removed_queue_answer_closed,
                a_closed_store_answers_closed,
                a_partition_that_does_not_exist_is_named,
                queues_of_like_names_do_not_meet,
            }
            limits::{
                a_thousand_partitions,
                values_of_no_bytes_and_of_four_mebibytes,
                the_largest_put,
                more_topics_than_are_noted,
            }
        }
    };
}

/// The cases of stores that keep a queue within a size.
#[doc(hidden)]
#[macro_export]
macro_rules! each_limit_case {
    ($then:path => $($arguments:tt)*) => {
        $then! {
            ($($arguments)*)
            retention::{
                a_full_queue_refuses_with_limit_and_size,
                a_truncation_or_the_ttl_makes_room,
                the_oldest_messages_make_room,
                what_was_dropped_stays_gone,
                a_reader_is_told_what_was_dropped,
                what_is_needed_is_kept_until_its_time,
                an_append_that_never_fits_drops_nothing,
                a_part_of_the_partitions_has_a_part_of_the_limit,
                a_queue_without_a_limit_has_none,
                any_appends_keep_within_the_limit,
            }
        }
    };
}

/// Makes the tables in this file.
macro_rules! case_table {
    (($name:ident) $($file:ident::{ $($case:ident,)* })*) => {
        /// Every such case.
        pub const $name: &[Case] = &[$($(Case {
            name: concat!(stringify!($file), "::", stringify!($case)),
            run: |world| Box::pin($file::$case(world)),
        },)*)*];
    };
}
each_conformance_case!(case_table => CASES);
each_limit_case!(case_table => LIMIT_CASES);

/// Makes a test of every case for one implementation: a module's name, and an expression that makes a fresh
/// [`Harness`](crate::conformance::Harness).
#[macro_export]
macro_rules! conformance_tests {
    ($implementation:ident: $harness:expr) => {
        mod $implementation {
            use super::*;
            $crate::each_conformance_case!($crate::__conformance_tests => $harness);
            $crate::each_limit_case!($crate::__conformance_tests => $harness);
        }
    };
}

/// The same for a store that keeps no queue within a size.
#[macro_export]
macro_rules! conformance_tests_without_limits {
    ($implementation:ident: $harness:expr) => {
        mod $implementation {
            use super::*;
            $crate::each_conformance_case!($crate::__conformance_tests => $harness);
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_tests {
    (($harness:expr) $($file:ident::{ $($case:ident,)* })*) => {
        $(mod $file {
            use super::*;
            $(#[test]
            fn $case() {
                $crate::conformance::run(concat!(stringify!($file), "::", stringify!($case)), $harness);
            })*
        })*
    };
}
