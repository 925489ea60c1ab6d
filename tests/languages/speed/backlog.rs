//! What the broker has to push: numbered values of 1 KiB in partition 0 of `q`.

use std::io::{Read, Write};

use hqueue_tests::raw::{binary_call, connect};
use hqueue_tests::{Broker, PATIENCE};

pub(super) const MESSAGES_A_PUT: u64 = 1000;
const DIGITS: usize = 10;
const VALUE_BYTES: usize = 1024;
/// A message with the topic `t`, without its value.
const BEFORE_VALUE: [u8; 15] = [0x0b, 0, 3, 0, 0, 0, 1, b't', 0x0b, 0, 4, 0, 0, 4, 0];

/// A put is encoded once and gets new numbers each time: there may be millions, and tests are not optimised.
pub(super) fn fill(broker: &Broker, messages: u64) {
    let mut arguments = vec![0x0b, 0, 1, 0, 0, 0, 1, b'q', 6, 0, 2, 0, 0, 0x0f, 0, 3, 0x0c];
    arguments.extend(u32::try_from(MESSAGES_A_PUT).expect("a small number").to_be_bytes());
    for _ in 0..MESSAGES_A_PUT {
        arguments.extend(BEFORE_VALUE);
        arguments.extend([b'x'; VALUE_BYTES]);
        arguments.push(0);
    }
    arguments.push(0);
    let mut call = binary_call("putMessagesWithPid", &arguments);
    let first_value = call.len() - 1 - MESSAGES_A_PUT as usize * (BEFORE_VALUE.len() + VALUE_BYTES + 1) + BEFORE_VALUE.len();
    let mut accepted = binary_call("putMessagesWithPid", &[0]);
    accepted[3] = 2;
    let mut stream = connect(broker.port(), PATIENCE);
    let mut reply = vec![0; accepted.len()];
    for put in 0..messages / MESSAGES_A_PUT {
        for number in 0..MESSAGES_A_PUT {
            let at = first_value + number as usize * (BEFORE_VALUE.len() + VALUE_BYTES + 1);
            let digits = format!("{:0DIGITS$}", put * MESSAGES_A_PUT + number);
            call[at..at + DIGITS].copy_from_slice(digits.as_bytes());
        }
        stream.write_all(&call).expect("the broker takes it");
        stream.read_exact(&mut reply).expect("the broker answers");
        assert_eq!(reply, accepted, "the put is accepted");
    }
}
