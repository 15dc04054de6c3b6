//! Who asks, and what the table says of it: deny is the default.

use crate::operations::{Needs, Operation, TABLE};
use partita_auth::{SasBuilder, Scheme};
use partita_testing::http::Request;
use partita_testing::signing::{ACCOUNT, KEY, KEY_TWO, moment, token};

/// What a request carries.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    /// Nothing, under this version of the protocol.
    None { version: &'static str },
    /// A bearer token.
    Bearer { version: &'static str },
    /// The account key, or one that pretends to be it, at a moment that lies this many minutes ahead.
    Key { scheme: Scheme, key: &'static str, minutes: i64 },
    /// A shared access signature.
    Token(Token),
}

/// A shared access signature in all its dimensions.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) letters: String,
    pub(crate) time: Time,
    pub(crate) address: Address,
    pub(crate) https_only: bool,
    /// The key it is signed with.
    pub(crate) key: &'static str,
    pub(crate) version: &'static str,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Account {
        services: &'static str,
        types: String,
    },
    Table {
        name: &'static str,
    },
    /// Permissions and times are in a policy, which the table may or may not have. It is good if it is there, has
    /// started and has not expired.
    Policy {
        id: &'static str,
        good: bool,
    },
    /// What the policy says, said once more by the token.
    PolicyAndMore {
        id: &'static str,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    Now,
    Started,
    NotYet,
    Expired,
}

impl Time {
    pub(crate) const ALL: [Time; 4] = [Time::Now, Time::Started, Time::NotYet, Time::Expired];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Any,
    Here,
    RangeWithHere,
    Elsewhere,
    RangeElsewhere,
}

impl Address {
    pub(crate) const ALL: [Address; 5] =
        [Address::Any, Address::Here, Address::RangeWithHere, Address::Elsewhere, Address::RangeElsewhere];
}

impl Token {
    /// One of the account, good in every respect.
    pub(crate) fn account(types: &str, letters: &str) -> Token {
        Token::new(Kind::Account { services: "t", types: types.into() }, letters)
    }

    /// One of the table, good in every respect.
    pub(crate) fn table(letters: &str) -> Token {
        Token::new(Kind::Table { name: TABLE }, letters)
    }

    pub(crate) fn new(kind: Kind, letters: &str) -> Token {
        let (time, address, version) = (Time::Now, Address::Any, "2019-02-02");
        Token { kind, letters: letters.into(), time, address, https_only: false, key: KEY, version }
    }

    pub(crate) fn builder(&self) -> SasBuilder {
        let (start, expiry) = match self.time {
            Time::Now => (None, 3600),
            Time::Started => (Some(-3600), 3600),
            Time::NotYet => (Some(1800), 3600),
            Time::Expired => (Some(-3600), -1),
        };
        let with_times = |mut sas: SasBuilder| {
            sas = sas.permissions(&self.letters);
            if let Some(start) = start {
                sas = sas.start(moment(start));
            }
            sas.expiry(moment(expiry))
        };
        let mut sas = match &self.kind {
            Kind::Account { services, types } => with_times(SasBuilder::account(services, types)),
            Kind::Table { name } => with_times(SasBuilder::table(name)),
            Kind::Policy { id, .. } => SasBuilder::table(TABLE).policy(id),
            Kind::PolicyAndMore { id } => with_times(SasBuilder::table(TABLE)).policy(id),
        };
        sas = match self.address {
            Address::Any => sas,
            Address::Here => sas.addresses("127.0.0.1"),
            Address::RangeWithHere => sas.addresses("127.0.0.0-127.0.0.9"),
            Address::Elsewhere => sas.addresses("192.0.2.1"),
            Address::RangeElsewhere => sas.addresses("127.0.0.2-127.0.0.9"),
        };
        if self.https_only {
            sas = sas.https_only();
        }
        sas.version(self.version)
    }

    fn judge(&self, operation: &Operation, is_part: bool, https: bool) -> Result<(), &'static str> {
        let authentic = [KEY, KEY_TWO].contains(&self.key);
        let policy_holds = match self.kind {
            Kind::Policy { good, .. } => good,
            Kind::PolicyAndMore { .. } => false,
            _ => true,
        };
        let in_time = matches!(self.time, Time::Now | Time::Started);
        let same_table = match &self.kind {
            Kind::Table { name } => name.eq_ignore_ascii_case(TABLE),
            _ => true,
        };
        let outright_wrong_table = operation.names_table() && !is_part && !same_table;
        if !authentic || !policy_holds || !in_time || outright_wrong_table {
            return Err("AuthenticationFailed");
        }
        if self.https_only && !https {
            return Err("AuthorizationProtocolMismatch");
        }
        if matches!(self.address, Address::Elsewhere | Address::RangeElsewhere) {
            return Err("AuthorizationSourceIPMismatch");
        }
        match (&self.kind, operation.needs) {
            (Kind::Account { services, .. }, _) if !services.contains('t') => Err("AuthorizationServiceMismatch"),
            (Kind::Account { types, .. }, Needs::Account(any, _) | Needs::Entity(any, _)) => {
                match any.chars().any(|letter| types.contains(letter)) {
                    false => Err("AuthorizationResourceTypeMismatch"),
                    true if !operation.needs.letters_suffice(&self.letters) => Err("AuthorizationPermissionMismatch"),
                    true => Ok(()),
                }
            }
            (Kind::Account { .. }, _) => Err("AuthorizationFailure"),
            (_, Needs::Entity(..)) if !same_table => Err("AuthorizationFailure"),
            (_, Needs::Entity(..)) if !operation.needs.letters_suffice(&self.letters) => {
                Err("AuthorizationPermissionMismatch")
            }
            (_, Needs::Entity(..)) => Ok(()),
            _ => Err("AuthorizationFailure"),
        }
    }
}

impl Credential {
    /// What puts the credential on a request.
    pub(crate) fn signer(&self) -> Box<dyn Fn(Request) -> Request> {
        match self.clone() {
            Credential::None { version } => Box::new(move |request| request.header("x-ms-version", version)),
            Credential::Bearer { version } => {
                Box::new(move |request| request.header("x-ms-version", version).header("Authorization", "Bearer token"))
            }
            Credential::Key { scheme, key, minutes } => {
                Box::new(move |request| request.signed_at(scheme, key, &moment(minutes * 60).rfc1123()))
            }
            Credential::Token(sas) => {
                let query = token(&sas.builder(), ACCOUNT, sas.key);
                Box::new(move |request| request.query(&query))
            }
        }
    }

    /// Whether the table allows it, or status and code of the refusal when several are wrong.
    pub(crate) fn judge(&self, operation: &Operation, is_part: bool, https: bool) -> Result<(), (u16, &'static str)> {
        if operation.needs == Needs::Nothing {
            return Ok(());
        }
        let challenged = |version: &str| version >= "2020-12-06";
        match self {
            Credential::None { version } if challenged(version) => Err((401, "NoAuthenticationInformation")),
            Credential::Bearer { version } if challenged(version) => Err((401, "InvalidAuthenticationInfo")),
            Credential::None { .. } | Credential::Bearer { .. } => Err((403, "AuthenticationFailed")),
            Credential::Key { key, minutes, .. } => match [KEY, KEY_TWO].contains(key) && minutes.abs() <= 15 {
                true => Ok(()),
                false => Err((403, "AuthenticationFailed")),
            },
            Credential::Token(token) => token.judge(operation, is_part, https).map_err(|code| (403, code)),
        }
    }
}

/// Every set of the letters, the empty one left out.
pub(crate) fn subsets(letters: &str) -> Vec<String> {
    (1..1_usize << letters.len())
        .map(|mask| letters.char_indices().filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, letter)| letter).collect())
        .collect()
}
