//! Transactions as the protocol writes them: a body of many parts, and what the answer says of each.

use super::{Mode, error_of};
use crate::{Entity, Error};
use partita_wire::entity_json::write_typed;
use partita_wire::url::entity_url;

/// The body of a batch that writes entities.
pub(super) fn change_set(service: &str, table: &str, mode: Mode, entities: &[Entity]) -> Vec<u8> {
    let mut body = Vec::with_capacity(entities.len() * 1024);
    let line = |text: &str, body: &mut Vec<u8>| {
        body.extend_from_slice(text.as_bytes());
        body.extend_from_slice(b"\r\n");
    };
    line("--batch_partita", &mut body);
    line("Content-Type: multipart/mixed; boundary=changeset_partita", &mut body);
    line("", &mut body);
    for entity in entities {
        line("--changeset_partita", &mut body);
        line("Content-Type: application/http", &mut body);
        line("Content-Transfer-Encoding: binary", &mut body);
        line("", &mut body);
        let (verb, url) = match mode {
            Mode::Insert => ("POST", format!("{service}/{table}")),
            Mode::Replace => ("PUT", entity_url(service, table, &entity.partition_key, &entity.row_key)),
            Mode::Merge => ("PATCH", entity_url(service, table, &entity.partition_key, &entity.row_key)),
            Mode::Delete => ("DELETE", entity_url(service, table, &entity.partition_key, &entity.row_key)),
        };
        line(&format!("{verb} {url} HTTP/1.1"), &mut body);
        line("Accept: application/json;odata=minimalmetadata", &mut body);
        line("DataServiceVersion: 3.0;", &mut body);
        if mode == Mode::Delete {
            line("If-Match: *", &mut body);
            line("", &mut body);
        } else {
            line("Content-Type: application/json", &mut body);
            line("Prefer: return-no-content", &mut body);
            line("", &mut body);
            write_typed(&mut body, &entity.partition_key, &entity.row_key, &entity.properties);
        }
        line("", &mut body);
    }
    line("--changeset_partita--", &mut body);
    line("--batch_partita--", &mut body);
    body
}

/// How many bytes an entity takes of a batch, at the most, beside its own and its address in the service.
pub(crate) const PART_BYTES_MAX: usize = 768;

/// The error in the answer to a batch; `None` if all was written. A failed transaction has one part, which says which
/// operation it speaks of.
pub(super) fn failure_in(body: &[u8], entities: &[Entity]) -> Option<Error> {
    let text = String::from_utf8_lossy(body);
    let mut seen = 0;
    for part in text.split("\nHTTP/1.1 ").skip(1) {
        seen += 1;
        let status = part.get(..3).and_then(|status| status.parse().ok()).unwrap_or(0);
        if !(200..300).contains(&status) {
            let content = part.find('{').zip(part.rfind('}')).and_then(|(start, end)| part.get(start..=end));
            let error = error_of(status, content.unwrap_or(part).as_bytes());
            return Some(of_entity(error, entities));
        }
    }
    let all = seen >= entities.len();
    (!all).then(|| Error::Unavailable("its answer to a batch is not understood".into()))
}

/// Names the entity by the index that the message begins with.
fn of_entity(error: Error, entities: &[Entity]) -> Error {
    let Error::Refused { status, code, message, .. } = error else { return error };
    let numbered = message.split_once(':').and_then(|(index, rest)| Some((index.parse::<usize>().ok()?, rest)));
    let (index, message) = match numbered {
        Some((index, rest)) => (Some(index), rest.to_owned()),
        None => (None, message),
    };
    let entity = index.and_then(|index| entities.get(index)).or(entities.first().filter(|_| entities.len() == 1));
    Error::Refused { status, code, message, entity: entity.map(Entity::key) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_line;
    use crate::samples::one_of_each;

    #[test]
    fn batches_are_read_by_the_service() {
        let entities = [one_of_each(), Entity { row_key: "2".into(), ..one_of_each() }];
        let body = change_set("http://h:1/a", "People", Mode::Replace, &entities);
        let batch = partita_wire::batch::parse("multipart/mixed; boundary=batch_partita", &body).unwrap();
        let partita_wire::batch::Batch::ChangeSet(parts) = batch else { panic!("{batch:?}") };
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[1].method, "PUT");
        assert_eq!(parts[1].target, "http://h:1/a/People(PartitionKey='a%22b',RowKey='2')");
        assert_eq!(json_line::read(parts[1].body), Ok(entities[1].clone()));
    }

    #[test]
    fn answers_to_batches() {
        let entities = [one_of_each(), Entity { row_key: "2".into(), ..one_of_each() }];
        let good = b"--b\r\nHTTP/1.1 204 No Content\r\n\r\n\r\n--c\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n\r\n--b--";
        assert!(failure_in(good, &entities).is_none());
        assert!(failure_in(&good[..40], &entities).is_some(), "half an answer is none");
        let bad = b"--b\r\n\r\nHTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\n\r\n\
            {\"odata.error\":{\"code\":\"EntityAlreadyExists\",\"message\":{\"lang\":\"en-US\",\"value\":\
            \"1:The specified entity already exists.\\nRequestId:x\"}}}\r\n--b--";
        let error = failure_in(bad, &entities).unwrap().to_string();
        assert_eq!(
            error,
            "PartitionKey 'a\\\"b', RowKey '2': the service answered 409 EntityAlreadyExists: The specified entity \
             already exists."
        );
    }
}
