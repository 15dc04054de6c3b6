//! The one table: every operation and what it needs. Whatever it does not allow is denied.

use partita_testing::batch;
use partita_testing::http::{Request, entity};
use partita_testing::signing::moment;

pub(crate) const TABLE: &str = "People";
pub(crate) const SECONDARY: &str = "devstoreaccount1-secondary";
pub(crate) const ORIGIN: &str = "http://page.example";

/// What a caller must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing at all.
    Nothing,
    /// The account key; no signature will do.
    Key,
    /// The key, or an account signature with one of these resource types and all letters of one of these sets.
    Account(&'static str, &'static [&'static str]),
    /// The same, or a signature of the table with the same letters.
    Entity(&'static str, &'static [&'static str]),
}

/// What an operation is done to, spelled as in the URL.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    /// Another number in every cell, for what must not exist yet and for values that must differ.
    pub(crate) n: usize,
    pub(crate) table: &'static str,
    pub(crate) partition: String,
    /// The row that is read and changed.
    pub(crate) there: String,
    /// The row that is deleted.
    pub(crate) doomed: String,
    /// The row that is inserted.
    pub(crate) new: String,
}

impl Spot {
    pub(crate) fn number(n: usize) -> Spot {
        Spot {
            n,
            table: TABLE,
            partition: "p".into(),
            there: "there".into(),
            doomed: "doomed".into(),
            new: format!("n{n}"),
        }
    }

    /// Everything at one row.
    pub(crate) fn row(n: usize, partition: &str, row: &str) -> Spot {
        let (there, doomed, new) = (row.into(), row.into(), row.into());
        Spot { n, table: TABLE, partition: partition.into(), there, doomed, new }
    }

    fn entity(&self, row: &str) -> String {
        entity(self.table, &self.partition, row)
    }

    fn body(&self, row: &str) -> String {
        format!(r#"{{"PartitionKey":"{}","RowKey":"{row}","A":{}}}"#, self.partition, self.n)
    }
}

pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) needs: Needs,
    /// The status when it is allowed.
    pub(crate) success: u16,
    pub(crate) request: fn(&Spot) -> Request,
    /// What puts things back after it was done.
    pub(crate) undo: fn(&Spot) -> Option<Request>,
}

const ANYONE: Needs = Needs::Nothing;
const KEY_ONLY: Needs = Needs::Key;
const READ: Needs = Needs::Entity("co", &["r"]);
const ADD: Needs = Needs::Entity("o", &["a"]);
const UPDATE: Needs = Needs::Entity("o", &["u"]);
const UPSERT: Needs = Needs::Entity("o", &["au"]);
const DELETE: Needs = Needs::Entity("o", &["d"]);

#[rustfmt::skip]
pub(crate) const OPERATIONS: &[Operation] = &[
    row("preflight",               ANYONE,                             200, preflight,                                                          nothing),
    row("get service properties",  Needs::Account("s", &["r"]),        200, |_| Request::get("/?restype=service&comp=properties"),              nothing),
    row("set service properties",  Needs::Account("s", &["w"]),        202, set_properties,                                                     nothing),
    row("get service statistics",  Needs::Account("s", &["r"]),        200, |_| Request::get("/?restype=service&comp=stats").at(SECONDARY),     nothing),
    row("query tables",            Needs::Account("c", &["l"]),        200, |_| Request::get("/Tables"),                                        nothing),
    row("get table",               Needs::Account("c", &["l"]),        200, |at| Request::get(format!("/Tables('{}')", at.table)),              nothing),
    row("create table",            Needs::Account("c", &["c", "w"]),   201, create_table,                                                       |at| Some(drop_table(&format!("New{}", at.n)))),
    row("delete table",            Needs::Account("c", &["d"]),        204, |_| drop_table("Doomed"),                                           |_| Some(make_table("Doomed"))),
    row("get policies",            KEY_ONLY,                           200, |at| Request::get(format!("/{}?comp=acl", at.table)),               nothing),
    row("set policies",            KEY_ONLY,                           204, set_policies,                                                       nothing),
    row("query entities",          READ,                               200, |at| Request::get(format!("/{}()", at.table)),                      nothing),
    row("query with a filter",     READ,                               200, |at| Request::get(format!("/{}()?$filter=A%20ge%200&$top=1&$select=A", at.table)), nothing),
    row("query of the secondary",  READ,                               200, |at| Request::get(format!("/{}()", at.table)).at(SECONDARY),        nothing),
    row("get entity",              READ,                               200, |at| Request::get(at.entity(&at.there)),                            nothing),
    row("insert",                  ADD,                                201, insert,                                                             |at| Some(delete_row(at, &at.new))),
    row("insert without an echo",  ADD,                                204, |at| insert(at).header("Prefer", "return-no-content"),              |at| Some(delete_row(at, &at.new))),
    row("replace",                 UPDATE,                             204, |at| if_match(change(at, "PUT")),                                   nothing),
    row("merge",                   UPDATE,                             204, |at| if_match(change(at, "PATCH")),                                 nothing),
    row("merge by its old verb",   UPDATE,                             204, |at| if_match(change(at, "MERGE")),                                 nothing),
    row("tunnelled merge",         UPDATE,                             204, |at| if_match(change(at, "POST")).header("X-HTTP-Method", "MERGE"), nothing),
    row("insert or replace",       UPSERT,                             204, |at| change(at, "PUT"),                                             nothing),
    row("insert or merge",         UPSERT,                             204, |at| change(at, "PATCH"),                                           nothing),
    row("tunnelled upsert",        UPSERT,                             204, |at| change(at, "POST").header("X-HTTP-Method", "PUT"),             nothing),
    row("delete",                  DELETE,                             204, |at| delete_row(at, &at.doomed),                                    |at| Some(put_row(at, &at.doomed))),
    row("tunnelled delete",        DELETE,                             204, tunnelled_delete,                                                   |at| Some(put_row(at, &at.doomed))),
];

const fn row(
    name: &'static str,
    needs: Needs,
    success: u16,
    request: fn(&Spot) -> Request,
    undo: fn(&Spot) -> Option<Request>,
) -> Operation {
    Operation { name, needs, success, request, undo }
}

impl Operation {
    /// Whether it changes an entity, so that a change set may hold it.
    pub(crate) fn is_change(&self) -> bool {
        matches!(self.needs, Needs::Entity(..)) && self.needs != READ
    }

    /// Whether its URL names a table whose rows or policies it is about.
    pub(crate) fn names_table(&self) -> bool {
        matches!(self.needs, Needs::Entity(..) | Needs::Key)
    }

    /// The same as the only part of a batch.
    pub(crate) fn as_part(&self, at: &Spot) -> Request {
        let request = (self.request)(at);
        if request.method == "GET" { batch::query(&request) } else { batch::change_set(&[request]) }
    }

    /// The status of it as a part: only entities are reached through a batch.
    pub(crate) fn success_as_part(&self) -> u16 {
        if matches!(self.needs, Needs::Entity(..)) { self.success } else { 501 }
    }
}

impl Needs {
    /// Whether these letters are enough, the resource type aside.
    pub(crate) fn letters_suffice(&self, letters: &str) -> bool {
        match self {
            Needs::Nothing => true,
            Needs::Key => false,
            Needs::Account(_, sets) | Needs::Entity(_, sets) => {
                sets.iter().any(|set| set.chars().all(|letter| letters.contains(letter)))
            }
        }
    }
}

fn nothing(_: &Spot) -> Option<Request> {
    None
}

fn preflight(at: &Spot) -> Request {
    let asked = Request::new("OPTIONS", format!("/{}()", at.table));
    asked.header("Origin", ORIGIN).header("Access-Control-Request-Method", "GET")
}

fn set_properties(at: &Spot) -> Request {
    let days = 1 + at.n % 365;
    Request::new("PUT", "/?restype=service&comp=properties").body(format!(
        "<StorageServiceProperties><Logging><Version>1.0</Version><Read>true</Read><Write>true</Write>\
         <Delete>false</Delete><RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy>\
         </Logging></StorageServiceProperties>"
    ))
}

pub(crate) fn make_table(name: &str) -> Request {
    Request::json("POST", "/Tables", format!(r#"{{"TableName":"{name}"}}"#))
}

fn drop_table(name: &str) -> Request {
    Request::delete(format!("/Tables('{name}')"))
}

fn create_table(at: &Spot) -> Request {
    make_table(&format!("New{}", at.n))
}

/// One policy: its id, when it starts and ends from now in seconds, and its permissions.
pub(crate) type Policy<'a> = (&'a str, Option<i64>, i64, &'a str);

pub(crate) fn policies(table: &str, policies: &[Policy<'_>]) -> Request {
    let mut body = String::from("<SignedIdentifiers>");
    for (id, start, expiry, permissions) in policies {
        let start = start.map(|start| format!("<Start>{}</Start>", moment(start).seven_digits())).unwrap_or_default();
        let expiry = moment(*expiry).seven_digits();
        body.push_str(&format!(
            "<SignedIdentifier><Id>{id}</Id><AccessPolicy>{start}<Expiry>{expiry}</Expiry>\
             <Permission>{permissions}</Permission></AccessPolicy></SignedIdentifier>"
        ));
    }
    body.push_str("</SignedIdentifiers>");
    Request::new("PUT", format!("/{table}?comp=acl")).body(body)
}

fn set_policies(at: &Spot) -> Request {
    policies(at.table, &[(&format!("set{}", at.n), None, 3600, "raud")])
}

fn insert(at: &Spot) -> Request {
    Request::json("POST", format!("/{}", at.table), at.body(&at.new))
}

fn change(at: &Spot, method: &str) -> Request {
    Request::json(method, at.entity(&at.there), at.body(&at.there))
}

pub(crate) fn put_row(at: &Spot, row: &str) -> Request {
    Request::json("PUT", at.entity(row), at.body(row))
}

pub(crate) fn delete_row(at: &Spot, row: &str) -> Request {
    if_match(Request::delete(at.entity(row)))
}

fn tunnelled_delete(at: &Spot) -> Request {
    Request { method: "POST".into(), ..delete_row(at, &at.doomed) }.header("X-HTTP-Method", "DELETE")
}

fn if_match(request: Request) -> Request {
    request.header("If-Match", "*")
}
