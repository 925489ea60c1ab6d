//! The result of `putMessagesForIds`, read without building structs for the ids.

use bytes::Bytes;
use hqueue_protocol::rpc::{Method, PutMessagesForIds};
use hqueue_protocol::wire::binary::{self, Binary};
use hqueue_protocol::wire::{Encoding, Kind, Protocol, WireError, skip};

use super::PlacedBatch;
use crate::error::Error;
use crate::message::read_id;

/// Where `count` messages went.
pub(crate) fn read_put_result(body: &Bytes, count: usize) -> Result<PlacedBatch, Error> {
    let bad = |reason: String| Error::bad_reply(PutMessagesForIds::NAME, reason);
    let mut at = 0;
    let placed = match Binary::field(body, &mut at, 0) {
        Ok(Some(field)) if (field.id, field.kind) == (0, Kind::Struct) => {
            read_placed(body, &mut at, count).map_err(|e| bad(e.to_string()))?
        }
        // A refusal, or something that is neither.
        _ => match PutMessagesForIds::decode_result(Protocol::Binary, body).map_err(|e| bad(e.to_string()))? {
            Err(refusal) => return Err(hqueue_protocol::client::ClientError::from(refusal).into()),
            Ok(_) => return Err(bad("the result does not come first".to_owned())),
        },
    };
    if placed.ids.len() == count { Ok(placed) } else { Err(bad(format!("{} ids for {count} messages", placed.ids.len()))) }
}

/// Reads a `TPutResult`.
fn read_placed(bytes: &[u8], at: &mut usize, count: usize) -> Result<PlacedBatch, WireError> {
    let mut placed = PlacedBatch { partition: 0, ids: Vec::with_capacity(count) };
    while let Some(field) = Binary::field(bytes, at, 0)? {
        match (field.id, field.kind) {
            (1, Kind::I16) => placed.partition = binary::read_i16(bytes, at)?,
            (2, Kind::List) => {
                let (kind, ids) = Binary::list(bytes, at)?;
                if ids > 0 && kind != Kind::Struct {
                    return Err(WireError::BadType(kind.binary_code()));
                }
                for _ in 0..ids {
                    placed.ids.push(read_id(bytes, at)?);
                }
            }
            (_, kind) => skip::<Binary>(bytes, at, kind, 2)?,
        }
    }
    Ok(placed)
}

#[cfg(test)]
mod tests {
    use hqueue_protocol::generated::{HQueueError, TMessageID, TPutResult};
    use hqueue_protocol::id::MessageId;

    use super::*;
    use crate::error::ErrorCode;

    fn encoded(result: Result<TPutResult, HQueueError>) -> Bytes {
        PutMessagesForIds::encode_result(Protocol::Binary, &result).into()
    }

    #[test]
    fn ids_come_in_order() {
        let ids = vec![TMessageID::new(1, 2), TMessageID::new(3, 4)];
        let body = encoded(Ok(TPutResult::new(5, ids)));
        let placed = PlacedBatch { partition: 5, ids: vec![MessageId::new(1, 2), MessageId::new(3, 4)] };
        assert_eq!(read_put_result(&body, 2), Ok(placed));
        let error = read_put_result(&body, 3).unwrap_err();
        assert!(error.may_have_been_carried_out() && error.to_string().contains("2 ids for 3"), "{error}");
    }

    #[test]
    fn refusals_keep_their_code() {
        let error = read_put_result(&encoded(Err(HQueueError::new(7, "full".to_owned()))), 1).unwrap_err();
        assert_eq!(error, Error::Refused { code: ErrorCode::NoSpace, message: "full".to_owned() });
        assert!(error.is_retryable() && !error.may_have_been_carried_out());
        let unknown = read_put_result(&encoded(Err(HQueueError::new(99, None))), 1).unwrap_err();
        assert_eq!(unknown.code(), Some(ErrorCode::Failed));
    }

    #[test]
    fn no_result_is_an_error() {
        assert!(matches!(read_put_result(&Bytes::from_static(&[0]), 1), Err(Error::Protocol(_))));
    }
}
