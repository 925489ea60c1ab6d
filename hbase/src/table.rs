//! The tables of queues: made, described, emptied, removed.
//!
//! A table of ours says in its attributes which queue it belongs to, and which making of it this is: records elsewhere go by the
//! latter. Changes are repeated after an answer was lost, so each first looks whether it is done.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use uuid::Uuid;

use crate::gateway::{
    Column, GatewayError, Gateways, Scan, Values, args, decode, list_field, nothing, optional, rows, string_field, struct_field,
};
use crate::generated::{
    TColumnFamilyDescriptor, TCompressionAlgorithm, TDelete, THRegionLocation, TNamespaceDescriptor, TTableDescriptor, TTableName,
};
use crate::schema::{HEADERS, INDEX, MESSAGE, parse_row_key};

/// Which queue a table belongs to.
const UID: &[u8] = b"hqueue.uid";
/// Another one for every table that is made.
const INCARNATION: &[u8] = b"hqueue.incarnation";

/// Between two tries of a change: nobody tells when a table is ready for it. All are made until a deadline.
const BEFORE_A_REPEAT: Duration = Duration::from_millis(200);

/// The name of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    pub namespace: String,
    pub name: String,
}

impl TableName {
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// As calls for rows name it.
    #[must_use]
    pub fn for_rows(&self) -> Bytes {
        crate::schema::table_name(&self.namespace, &self.name)
    }

    fn for_tables(&self) -> TTableName {
        TTableName { ns: Some(self.namespace.clone().into_bytes()), qualifier: self.name.clone().into_bytes() }
    }
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.namespace, self.name)
    }
}

/// How a table is to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSpec {
    /// HBase deletes cells that are older, in seconds.
    pub ttl_seconds: Option<i32>,
    /// Versions of each value: one for messages.
    pub families: Vec<Vec<u8>>,
    pub split_keys: Vec<Vec<u8>>,
    /// Of the table, in HBase's names.
    pub attributes: BTreeMap<String, String>,
    /// Of the family of the values.
    pub compression: Option<Compression>,
}

/// How HBase compresses a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Lzo,
    Gz,
    Snappy,
    Lz4,
    Bzip2,
    Zstd,
}

impl Compression {
    /// In HBase's names.
    pub const NAMES: [(&'static str, Self); 7] = [
        ("NONE", Self::None),
        ("LZO", Self::Lzo),
        ("GZ", Self::Gz),
        ("SNAPPY", Self::Snappy),
        ("LZ4", Self::Lz4),
        ("BZIP2", Self::Bzip2),
        ("ZSTD", Self::Zstd),
    ];

    /// The name of what HBase says.
    #[must_use]
    pub fn name_of(code: i32) -> String {
        let known = Self::NAMES.iter().find(|(_, compression)| compression.code().0 == code);
        known.map_or_else(|| code.to_string(), |(name, _)| (*name).to_owned())
    }

    const fn code(self) -> TCompressionAlgorithm {
        match self {
            Self::None => TCompressionAlgorithm::NONE,
            Self::Lzo => TCompressionAlgorithm::LZO,
            Self::Gz => TCompressionAlgorithm::GZ,
            Self::Snappy => TCompressionAlgorithm::SNAPPY,
            Self::Lz4 => TCompressionAlgorithm::LZ4,
            Self::Bzip2 => TCompressionAlgorithm::BZIP2,
            Self::Zstd => TCompressionAlgorithm::ZSTD,
        }
    }
}

/// Whose a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub uid: Uuid,
    pub incarnation: Uuid,
}

/// What HBase has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// `None`: it was not made by us.
    pub identity: Option<Identity>,
    pub families: Vec<Vec<u8>>,
    /// Of the family of the values, in seconds.
    pub ttl_seconds: Option<i32>,
    /// Of the table, in HBase's names.
    pub attributes: BTreeMap<String, String>,
    pub compression: Option<i32>,
}

async fn is(gateways: &Gateways, method: &'static str, table: &TableName, deadline: Instant) -> Result<bool, GatewayError> {
    let body = gateways.repeat(method, args().structure(1, &table.for_tables()).end(), deadline).await?;
    Ok(optional(&body)? == Some(1))
}

/// Does it take reads and writes?
pub async fn is_enabled(gateways: &Gateways, table: &TableName, deadline: Instant) -> Result<bool, GatewayError> {
    is(gateways, "isTableEnabled", table, deadline).await
}

/// Is there such a table?
pub async fn exists(gateways: &Gateways, table: &TableName, deadline: Instant) -> Result<bool, GatewayError> {
    is(gateways, "tableExists", table, deadline).await
}

async fn descriptor(gateways: &Gateways, table: &TableName, deadline: Instant) -> Result<TTableDescriptor, GatewayError> {
    let body = gateways.repeat("getTableDescriptor", args().structure(1, &table.for_tables()).end(), deadline).await?;
    decode(&struct_field(&body)?)
}

/// What HBase has under this name; `None` if there is no such table.
pub async fn describe(gateways: &Gateways, table: &TableName, deadline: Instant) -> Result<Option<Description>, GatewayError> {
    if !exists(gateways, table, deadline).await? {
        return Ok(None);
    }
    let found = match descriptor(gateways, table, deadline).await {
        Ok(found) => found,
        // It may have gone between the two.
        Err(error @ GatewayError::Failed { .. }) => {
            return if exists(gateways, table, deadline).await? { Err(error) } else { Ok(None) };
        }
        Err(error) => return Err(error),
    };
    let attributes = found.attributes.unwrap_or_default();
    let uuid = |name: &[u8]| attributes.get(name).and_then(|value| Uuid::try_parse_ascii(value).ok());
    let identity = uuid(UID).zip(uuid(INCARNATION)).map(|(uid, incarnation)| Identity { uid, incarnation });
    let families = found.columns.unwrap_or_default();
    let message = families.iter().find(|family| family.name == MESSAGE);
    Ok(Some(Description {
        identity,
        ttl_seconds: message.and_then(|family| family.time_to_live),
        compression: message.and_then(|family| family.compression_type.as_ref().map(|c| c.0)),
        families: families.iter().map(|family| family.name.clone()).collect(),
        attributes: attributes.iter().map(|(k, v)| (text(k), text(v))).collect(),
    }))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Makes a table. True: this call made it. False: there is one of this name already.
pub async fn create(
    gateways: &Gateways,
    table: &TableName,
    spec: &TableSpec,
    uid: Uuid,
    deadline: Instant,
) -> Result<Option<Identity>, GatewayError> {
    let identity = Identity { uid, incarnation: Uuid::new_v4() };
    let call = args().structure(1, &made(table, spec, identity)).list(2, &spec.split_keys).end();
    loop {
        match gateways.call("createTable", call.clone()).await {
            Ok(body) => {
                nothing(body);
                return Ok(Some(identity));
            }
            // Done although no answer came, or done by another.
            Err(error) => match describe(gateways, table, deadline).await? {
                Some(found) if found.identity == Some(identity) => return Ok(Some(identity)),
                Some(_) => return Ok(None),
                None if !error.is_retryable() || Instant::now() >= deadline => return Err(error),
                None => tokio::time::sleep(BEFORE_A_REPEAT).await,
            },
        }
    }
}

fn made(table: &TableName, spec: &TableSpec, identity: Identity) -> TTableDescriptor {
    let families = spec.families.iter().map(|name| {
        let mut family = family(name.clone());
        family.time_to_live = spec.ttl_seconds;
        if name == MESSAGE {
            family.compression_type = spec.compression.map(Compression::code);
        }
        family
    });
    let mut attributes: BTreeMap<Vec<u8>, Vec<u8>> =
        spec.attributes.iter().map(|(k, v)| (k.clone().into_bytes(), v.clone().into_bytes())).collect();
    attributes.insert(UID.to_vec(), identity.uid.to_string().into_bytes());
    attributes.insert(INCARNATION.to_vec(), identity.incarnation.to_string().into_bytes());
    TTableDescriptor {
        table_name: table.for_tables(),
        columns: Some(families.collect()),
        attributes: Some(attributes),
        durability: None,
    }
}

fn family(name: Vec<u8>) -> TColumnFamilyDescriptor {
    TColumnFamilyDescriptor {
        name,
        attributes: None,
        configuration: None,
        block_size: None,
        bloomn_filter_type: None,
        compression_type: None,
        dfs_replication: None,
        data_block_encoding: None,
        keep_deleted_cells: None,
        max_versions: Some(1),
        min_versions: None,
        scope: None,
        time_to_live: None,
        block_cache_enabled: None,
        cache_blooms_on_write: None,
        cache_data_on_write: None,
        cache_indexes_on_write: None,
        compress_tags: None,
        evict_blocks_on_close: None,
        in_memory: None,
    }
}

/// Why the first and the last row of a table that HBase's own tools made are no messages; `None`: they are, or there are none.
pub async fn why_no_queue(
    gateways: &Gateways,
    table: &TableName,
    partitions: i16,
    deadline: Instant,
) -> Result<Option<String>, GatewayError> {
    let columns = [Column { family: MESSAGE, qualifier: None }];
    for reversed in [false, true] {
        let start: &[u8] = if reversed { &[0xff; 64] } else { &[] };
        let scan = Scan { start, stop: &[], columns: &columns, not_before_ms: None, values: Values::None, limit: 1, reversed };
        let found = rows(&gateways.repeat(Scan::METHOD, scan.args(&table.for_rows()), deadline).await?)?;
        let Some(row) = found.first() else { continue };
        match parse_row_key(&row.key) {
            Some((partition, _)) if (0..partitions).contains(&partition) => {}
            Some((partition, _)) => return Ok(Some(format!("it has rows of a partition {partition}"))),
            None => return Ok(Some(format!("it has a row whose key, of {} bytes, is no message's", row.key.len()))),
        }
    }
    Ok(None)
}

/// Takes over a table that HBase's own tools made in the schema: adds what it lacks, and says whose it is. Its rows stay. Brokers that do it
/// at the same time write the same.
pub async fn adopt(gateways: &Gateways, table: &TableName, uid: Uuid, deadline: Instant) -> Result<Identity, GatewayError> {
    let identity = Identity { uid, incarnation: uid };
    let mut found = descriptor(gateways, table, deadline).await?;
    let families = found.columns.get_or_insert_default();
    for name in [HEADERS, INDEX] {
        if !families.iter().any(|family| family.name == name) {
            families.push(family(name.to_vec()));
        }
    }
    let attributes = found.attributes.get_or_insert_default();
    attributes.insert(UID.to_vec(), identity.uid.to_string().into_bytes());
    attributes.insert(INCARNATION.to_vec(), identity.incarnation.to_string().into_bytes());
    gateways.repeat("modifyTable", args().structure(1, &found).end(), deadline).await.map(nothing)?;
    Ok(identity)
}

/// Sets the TTL of the families that have one, where it differs.
pub async fn set_ttl(
    gateways: &Gateways,
    table: &TableName,
    ttl_seconds: Option<i32>,
    deadline: Instant,
) -> Result<(), GatewayError> {
    let found = descriptor(gateways, table, deadline).await?;
    for mut family in found.columns.unwrap_or_default() {
        if family.time_to_live.unwrap_or(i32::MAX) != ttl_seconds.unwrap_or(i32::MAX) {
            family.time_to_live = Some(ttl_seconds.unwrap_or(i32::MAX));
            let call = args().structure(1, &table.for_tables()).structure(2, &family).end();
            gateways.repeat("modifyColumnFamily", call, deadline).await.map(nothing)?;
        }
    }
    Ok(())
}

/// Removes the table of this making, and no other one that may have come under its name meanwhile. No table is no error.
///
/// HBase deletes a disabled table only. So it is disabled, looked at again, and deleted then: one that somebody else has made anew in
/// between is enabled, and what disabled it by mistake enables it again.
pub async fn remove(gateways: &Gateways, table: &TableName, which: Uuid, deadline: Instant) -> Result<(), GatewayError> {
    let is_it = |found: Option<Description>| found.and_then(|found| found.identity).is_some_and(|i| i.incarnation == which);
    loop {
        if !is_it(describe(gateways, table, deadline).await?) {
            return Ok(());
        }
        set_enabled(gateways, table, false, deadline).await?;
        if !is_it(describe(gateways, table, deadline).await?) {
            return set_enabled(gateways, table, true, deadline).await;
        }
        match gateways.call("deleteTable", args().structure(1, &table.for_tables()).end()).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() >= deadline || matches!(error, GatewayError::Foreign { .. }) => return Err(error),
            Err(error) => {
                tracing::debug!(%table, %error, "the table is looked at again before it is deleted");
                tokio::time::sleep(BEFORE_A_REPEAT).await;
            }
        }
    }
}

/// Enables or disables a table; one that is so already, or is not there, is no error.
pub async fn set_enabled(gateways: &Gateways, table: &TableName, enabled: bool, deadline: Instant) -> Result<(), GatewayError> {
    let (change, look) = if enabled { ("enableTable", "isTableEnabled") } else { ("disableTable", "isTableDisabled") };
    loop {
        if !exists(gateways, table, deadline).await? || is(gateways, look, table, deadline).await? {
            return Ok(());
        }
        match gateways.call(change, args().structure(1, &table.for_tables()).end()).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() >= deadline || matches!(error, GatewayError::Foreign { .. }) => return Err(error),
            Err(error) => {
                tracing::debug!(%table, %error, change, "the table is looked at again");
                tokio::time::sleep(BEFORE_A_REPEAT).await;
            }
        }
    }
}

/// Whether what was made sure of before a change is certainly still so.
pub type MayGoOn<'a> = &'a (dyn Fn() -> bool + Send + Sync);

/// Removes all rows and keeps the splits. It is disabled meanwhile.
///
/// HBase empties a disabled table only, and enables it then. So a call that is carried out late does no harm once somebody has enabled the
/// table and writes to it. `may_go_on` is asked between the two calls.
pub async fn truncate(
    gateways: &Gateways,
    table: &TableName,
    deadline: Instant,
    may_go_on: MayGoOn<'_>,
) -> Result<(), GatewayError> {
    loop {
        if may_go_on() {
            set_enabled(gateways, table, false, deadline).await?;
        }
        if !may_go_on() {
            let message = "it is not certain any more that nobody else writes to the table".to_owned();
            return Err(GatewayError::Failed { message, can_retry: true });
        }
        let call = args().structure(1, &table.for_tables()).flag(2, true).end();
        match gateways.call("truncateTable", call).await {
            Ok(_) => break,
            Err(error) if Instant::now() >= deadline || matches!(error, GatewayError::Foreign { .. }) => return Err(error),
            // It may have been done: doing it again does no harm, since nobody writes meanwhile.
            Err(error) => {
                tracing::debug!(%table, %error, "the table is truncated again");
                tokio::time::sleep(BEFORE_A_REPEAT).await;
            }
        }
    }
    set_enabled(gateways, table, true, deadline).await
}

/// Removes rows of a table, whole.
pub async fn delete_rows(gateways: &Gateways, table: &[u8], keys: &[Vec<u8>], deadline: Instant) -> Result<(), GatewayError> {
    let deletes: Vec<TDelete> = keys.iter().map(|key| TDelete::new(key.clone(), None, None, None, None, None)).collect();
    let call = args().bytes(1, table).structures(2, &deletes).end();
    gateways.repeat("deleteMultiple", call, deadline).await.map(nothing)
}

/// The id that this HBase gave itself when it was made.
pub async fn cluster_id(gateways: &Gateways, deadline: Instant) -> Result<String, GatewayError> {
    let body = gateways.repeat("getClusterId", args().end(), deadline).await?;
    Ok(text(&string_field(&body)?))
}

/// Makes a namespace unless it is there.
pub async fn ensure_namespace(gateways: &Gateways, name: &str, deadline: Instant) -> Result<(), GatewayError> {
    let is_there = async || {
        let found = gateways.call("getNamespaceDescriptor", args().bytes(1, name.as_bytes()).end()).await;
        found.is_ok()
    };
    if name == "default" || is_there().await {
        return Ok(());
    }
    let namespace = TNamespaceDescriptor { name: name.to_owned(), configuration: None };
    match gateways.repeat("createNamespace", args().structure(1, &namespace).end(), deadline).await {
        Ok(_) => Ok(()),
        Err(_) if is_there().await => Ok(()),
        Err(error) => Err(error),
    }
}

/// A region of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Empty: the first region.
    pub first_row: Vec<u8>,
    /// Of the region server that has it now.
    pub host: String,
    pub port: Option<i32>,
}

/// The regions of a table, in order.
pub async fn regions(gateways: &Gateways, table: &TableName, deadline: Instant) -> Result<Vec<Region>, GatewayError> {
    let body = gateways.repeat("getAllRegionLocations", args().bytes(1, &table.for_rows()).end(), deadline).await?;
    let found: Vec<THRegionLocation> = list_field(&body)?.iter().map(|bytes| decode(bytes)).collect::<Result<_, _>>()?;
    let mut regions: Vec<Region> = found
        .into_iter()
        .map(|location| Region {
            first_row: location.region_info.start_key.unwrap_or_default(),
            host: location.server_name.host_name,
            port: location.server_name.port,
        })
        .collect();
    regions.sort_by(|a, b| a.first_row.cmp(&b.first_row));
    Ok(regions)
}
