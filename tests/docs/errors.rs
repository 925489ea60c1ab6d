//! `docs/errors.md` has the codes of the IDL.

use std::collections::BTreeSet;
use std::fs;

use crate::document::{Document, root};

#[test]
fn every_error_code_is_in_the_document() {
    let idl = fs::read_to_string(root().join("idl/hqueue.thrift")).unwrap();
    let (_, body) = idl.split_once("enum TErrorCode {").expect("the codes in the IDL");
    let (body, _) = body.split_once('}').expect("their end");
    let codes: BTreeSet<(String, String)> = body
        .lines()
        .filter_map(|line| line.trim().trim_end_matches(',').split_once(" = "))
        .map(|(name, code)| (name.to_owned(), code.to_owned()))
        .collect();
    assert!(codes.len() >= 9, "{codes:?}");
    let rows = Document::read("docs/errors.md").rows();
    let said: BTreeSet<(String, String)> = rows.iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    assert_eq!(said, codes, "docs/errors.md and idl/hqueue.thrift");
    assert_eq!(rows.len(), codes.len(), "each once");
}
