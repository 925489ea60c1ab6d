//! Topics in JSON: text where they are UTF-8, else a list of numbers.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Topic {
    Text(String),
    Bytes(Vec<u8>),
}

pub(super) fn serialize<S: Serializer>(topics: &[Vec<u8>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(topics.iter().map(|topic| match String::from_utf8(topic.clone()) {
        Ok(text) => Topic::Text(text),
        Err(error) => Topic::Bytes(error.into_bytes()),
    }))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<u8>>, D::Error> {
    let topics = Vec::<Topic>::deserialize(from)?;
    Ok(topics
        .into_iter()
        .map(|topic| match topic {
            Topic::Text(text) => text.into_bytes(),
            Topic::Bytes(bytes) => bytes,
        })
        .collect())
}

/// Reads a list that stands alone.
pub fn from_slice(json: &[u8]) -> Result<Vec<Vec<u8>>, serde_json::Error> {
    deserialize(&mut serde_json::Deserializer::from_slice(json))
}

/// Writes such a list.
pub fn to_vec(topics: &[Vec<u8>]) -> Vec<u8> {
    let mut json = Vec::new();
    // A list of texts and numbers can always be written to memory.
    let _ = serialize(topics, &mut serde_json::Serializer::new(&mut json));
    json
}
