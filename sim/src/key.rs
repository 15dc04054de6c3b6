//! Key designs: how an event becomes a key, and which keys a question must look at.
//!
//! An event happens at some time, belongs to a tenant and has an id without order. All designs store the same events; only
//! where they put them differs, and so who can be asked for what.

use crate::random::mix;

/// A place in the ordered key space: partition, then row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The PartitionKey.
    pub partition: u64,
    /// The RowKey.
    pub row: u64,
}

impl Key {
    /// The first place of a partition.
    pub fn start_of(partition: u64) -> Key {
        Key { partition, row: 0 }
    }
}

/// Something that is stored.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// When, counted in events: no two are the same.
    pub time: u64,
    /// Whose, by rank: 0 writes most.
    pub tenant: u64,
    /// A number of 32 bits, evenly distributed.
    pub hash: u64,
    /// A number of 63 bits, evenly distributed.
    pub id: u64,
}

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Partition: the minute. Row: the time. The guide's append anti-pattern.
    Append,
    /// One partition, the newest first: the guide's log tail pattern for everything there is.
    LogTail,
    /// Partition: one of so many by hash. Row: the time.
    Hashed(u64),
    /// Partition: the tenant. Row: the time, newest first: the log tail pattern as the guide means it.
    TenantByTime,
    /// Partition: the tenant. Row: the id.
    TenantById,
    /// Partition: the id.
    Random,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub enum Question {
    /// All events since a time.
    Everything {
        /// The time.
        since: u64,
    },
    /// The events of one tenant since a time.
    Tenant {
        /// Its rank.
        tenant: u64,
        /// The time.
        since: u64,
    },
}

/// What all designs of a run agree on.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many tenants there are.
    pub tenants: u64,
    /// How many events a minute has.
    pub minute: u64,
}

impl Design {
    /// What it is called.
    pub fn name(self) -> String {
        match self {
            Design::Append => "append by time".into(),
            Design::LogTail => "one log tail".into(),
            Design::Hashed(buckets) => format!("hashed, {buckets} buckets"),
            Design::TenantByTime => "tenant, by time".into(),
            Design::TenantById => "tenant, by id".into(),
            Design::Random => "random".into(),
        }
    }

    /// Where an event is stored.
    pub fn key(self, event: &Event, shape: &Shape) -> Key {
        match self {
            Design::Append => Key { partition: event.time / shape.minute, row: event.time },
            Design::LogTail => Key { partition: 0, row: u64::MAX - event.time },
            Design::Hashed(buckets) => Key { partition: (event.hash * buckets) >> 32, row: event.time },
            Design::TenantByTime => Key { partition: partition_of(event.tenant), row: u64::MAX - event.time },
            Design::TenantById => Key { partition: partition_of(event.tenant), row: event.id },
            Design::Random => Key { partition: event.id, row: 0 },
        }
    }

    /// The stretches of keys that hold every answer, each from a place to before another.
    pub fn stretches(self, question: Question, shape: &Shape) -> Vec<(Key, Key)> {
        const END: Key = Key { partition: u64::MAX, row: u64::MAX };
        let (Question::Everything { since } | Question::Tenant { since, .. }) = question;
        let newest_first = |partition| {
            let after = Key { partition, row: u64::MAX - since + 1 };
            (Key::start_of(partition), after)
        };
        match (self, question) {
            (Design::Append, _) => vec![(Key { partition: since / shape.minute, row: since }, END)],
            (Design::LogTail, _) => vec![newest_first(0)],
            (Design::Hashed(buckets), _) => {
                (0..buckets).map(|bucket| (Key { partition: bucket, row: since }, Key::start_of(bucket + 1))).collect()
            }
            (Design::TenantByTime, Question::Tenant { tenant, .. }) => vec![newest_first(partition_of(tenant))],
            (Design::TenantByTime, Question::Everything { .. }) => {
                (0..shape.tenants).map(|tenant| newest_first(partition_of(tenant))).collect()
            }
            (Design::TenantById, Question::Tenant { tenant, .. }) => {
                let partition = partition_of(tenant);
                vec![(Key::start_of(partition), Key::start_of(partition + 1))]
            }
            (Design::TenantById, Question::Everything { .. }) | (Design::Random, _) => vec![(Key::default(), END)],
        }
    }
}

/// Tenants have names that do not follow their size.
fn partition_of(tenant: u64) -> u64 {
    mix(tenant) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_in_the_stretches_of_its_question() {
        let shape = Shape { tenants: 7, minute: 10 };
        for design in [
            Design::Append,
            Design::LogTail,
            Design::Hashed(4),
            Design::TenantByTime,
            Design::TenantById,
            Design::Random,
        ] {
            for time in 0..200 {
                let event = Event { time, tenant: time % 7, hash: mix(time) >> 32, id: mix(time) };
                let key = design.key(&event, &shape);
                let holds =
                    |question| design.stretches(question, &shape).iter().any(|(from, to)| (*from..*to).contains(&key));
                let (everything, tenant) =
                    (Question::Everything { since: 120 }, Question::Tenant { tenant: 3, since: 120 });
                assert!(time < 120 || holds(everything), "{design:?} {time}");
                assert!(time < 120 || event.tenant != 3 || holds(tenant), "{design:?} {time}");
            }
        }
    }
}
