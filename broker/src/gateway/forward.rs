//! Calls that another broker has to answer.

use bytes::Bytes;
use hqueue_protocol::client::{ClientError, RpcClient};
use hqueue_protocol::rpc::{self, Method};
use hqueue_protocol::server::Reply;
use hqueue_protocol::wire::Protocol;

/// What stands before the name of a method between brokers: the one that is called answers for what it owns.
const OWN_PART: &[u8] = b"owner:";

/// The method's plain name, and whether only our own part is asked for.
#[must_use]
pub(super) fn plain_name(method: &Bytes) -> (Bytes, bool) {
    if method.starts_with(OWN_PART) { (method.slice(OWN_PART.len()..), true) } else { (method.clone(), false) }
}

/// Has another broker answer with its own part. Bytes in the binary protocol pass through as they are.
pub(super) async fn forward<M: Method>(peer: &RpcClient, protocol: Protocol, args: Bytes) -> Result<Reply, ClientError> {
    if protocol == Protocol::Binary {
        return Ok(Reply::Result(vec![peer.call_encoded(M::AT_OWNER, args).await?]));
    }
    let decoded = match M::decode_args(protocol, &args) {
        Ok(decoded) => decoded,
        Err(error) => return Ok(Reply::BadArguments(error.to_string())),
    };
    let body = peer.call_encoded(M::AT_OWNER, M::encode_args(Protocol::Binary, &decoded).into()).await?;
    match M::decode_result(Protocol::Binary, &body) {
        Ok(result) => Ok(Reply::Result(vec![M::encode_result(protocol, &result).into()])),
        Err(error) => Ok(Reply::Failed(format!("another broker's reply cannot be read: {error}"))),
    }
}

/// The same for a put, whichever it is.
pub(super) async fn forward_put(peer: &RpcClient, method: &[u8], protocol: Protocol, args: Bytes) -> Result<Reply, ClientError> {
    match method {
        m if m == rpc::PutMessage::NAME.as_bytes() => forward::<rpc::PutMessage>(peer, protocol, args).await,
        m if m == rpc::PutMessages::NAME.as_bytes() => forward::<rpc::PutMessages>(peer, protocol, args).await,
        m if m == rpc::PutMessageWithPid::NAME.as_bytes() => forward::<rpc::PutMessageWithPid>(peer, protocol, args).await,
        m if m == rpc::PutMessagesWithPid::NAME.as_bytes() => forward::<rpc::PutMessagesWithPid>(peer, protocol, args).await,
        m if m == rpc::PutMessagesForIds::NAME.as_bytes() => forward::<rpc::PutMessagesForIds>(peer, protocol, args).await,
        _ => Ok(Reply::UnknownMethod),
    }
}
