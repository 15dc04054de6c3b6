//! What is counted, in the text format of Prometheus.
//!
//! Every request counts here, so counting is adding to a number at a known place: no names are made, hashed or locked for
//! it. Names appear only when somebody asks for the figures.

use crate::operation::OperationName;
use partita_odata::PlanClass;
use partita_table::{QueryReport, TableService};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// All that a reply can have.
const STATUSES: std::ops::Range<u16> = 200..600;
/// The upper bounds of the time a request took: 50 microseconds to 27 seconds, each three times the one before.
const NANOSECONDS: [u64; 13] = {
    let mut bounds = [50_000; 13];
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = bounds[at - 1] * 3;
        at += 1;
    }
    bounds
};

/// The figures of one server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    counts: Arc<Counts>,
    pub(crate) connections: Gauge,
}

#[derive(Debug)]
struct Counts {
    /// By the number of the operation.
    operations: Vec<OperationCounts>,
    /// By the numbers of our plan class and of Azure's.
    queries: [[AtomicU64; PlanClass::ALL.len()]; PlanClass::ALL.len()],
    rows_read: Counter,
    rows_returned: Counter,
}

#[derive(Debug)]
struct OperationCounts {
    by_status: Vec<AtomicU64>,
    /// The last one counts what took longer than all bounds.
    by_time: [AtomicU64; NANOSECONDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl OperationCounts {
    fn new() -> OperationCounts {
        OperationCounts {
            by_status: STATUSES.map(|_| AtomicU64::new(0)).collect(),
            by_time: Default::default(),
            nanoseconds: AtomicU64::new(0),
        }
    }
}

impl Metrics {
    pub(crate) fn new(service: Arc<TableService>) -> Metrics {
        let counts = Arc::new(Counts {
            operations: OperationName::ALL.iter().map(|_| OperationCounts::new()).collect(),
            queries: Default::default(),
            rows_read: Counter::default(),
            rows_returned: Counter::default(),
        });
        let connections = Gauge::default();
        let mut registry = Registry::with_prefix("partita");
        registry.register_collector(Box::new(Requests(counts.clone())));
        registry.register("query_rows_read", "Rows that queries looked at", counts.rows_read.clone());
        registry.register("query_rows_returned", "Rows that queries returned", counts.rows_returned.clone());
        registry.register("connections", "Open connections", connections.clone());
        registry.register_collector(Box::new(Engine(service)));
        Metrics { registry, counts, connections }
    }

    pub(crate) fn request(&self, operation: OperationName, status: u16, took: Duration) {
        let counts = &self.counts.operations[operation as usize];
        if let Some(count) = counts.by_status.get(usize::from(status.saturating_sub(STATUSES.start))) {
            add(count, 1);
        }
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        add(&counts.by_time[NANOSECONDS.partition_point(|&bound| bound < took)], 1);
        add(&counts.nanoseconds, took);
    }

    pub(crate) fn query(&self, report: &QueryReport) {
        add(&self.counts.queries[report.class as usize][report.azure_class as usize], 1);
        self.counts.rows_read.inc_by(report.rows_read);
        self.counts.rows_returned.inc_by(report.rows_returned);
    }

    pub(crate) fn encode(&self) -> String {
        let mut out = String::new();
        text::encode(&mut out, &self.registry).expect("writing to a string does not fail");
        out
    }
}

fn add(count: &AtomicU64, by: u64) {
    count.fetch_add(by, Ordering::Relaxed);
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// What was counted of requests and queries; what never happened is not shown.
#[derive(Debug)]
struct Requests(Arc<Counts>);

impl Collector for Requests {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let operations = || OperationName::ALL.iter().map(|name| (name.text(), &self.0.operations[*name as usize]));
        let help = "Requests by operation and status";
        let mut requests = encoder.encode_descriptor("requests", help, None, MetricType::Counter)?;
        for (operation, counts) in operations() {
            for (status, count) in STATUSES.zip(&counts.by_status).filter(|(_, count)| read(count) > 0) {
                let labels = [("operation", operation), ("status", &status.to_string())];
                requests.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&read(count), None)?;
            }
        }
        let help = "Time from the head of a request to its answer";
        let mut seconds = encoder.encode_descriptor("request_seconds", help, None, MetricType::Histogram)?;
        for (operation, counts) in operations() {
            let bounds = NANOSECONDS.iter().map(|&bound| bound as f64 / 1e9).chain([f64::MAX]);
            let buckets: Vec<_> = bounds.zip(&counts.by_time).map(|(bound, count)| (bound, read(count))).collect();
            let count = buckets.iter().map(|(_, count)| count).sum();
            if count > 0 {
                let sum = read(&counts.nanoseconds) as f64 / 1e9;
                let labels = [("operation", operation)];
                seconds.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
            }
        }
        let help = "Queries of entities by plan class, ours and Azure's";
        let mut queries = encoder.encode_descriptor("queries", help, None, MetricType::Counter)?;
        for (class, by_azure_class) in PlanClass::ALL.iter().zip(&self.0.queries) {
            for (azure_class, count) in PlanClass::ALL.iter().zip(by_azure_class).filter(|(_, count)| read(count) > 0) {
                let labels = [("class", class.name()), ("azure_class", azure_class.name())];
                queries.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&read(count), None)?;
            }
        }
        Ok(())
    }
}

/// The figures of the engine, read when somebody asks.
#[derive(Debug)]
struct Engine(Arc<TableService>);

impl Collector for Engine {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Figure of the engine";
        for (name, value) in self.0.store().figures() {
            // The format adds the suffix of counters by itself.
            match name.strip_suffix("_total") {
                Some(name) => {
                    let counter = ConstCounter::new(value);
                    let name = format!("store_{name}");
                    counter.encode(encoder.encode_descriptor(&name, help, None, counter.metric_type())?)?;
                }
                None => {
                    let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
                    let name = format!("store_{name}");
                    gauge.encode(encoder.encode_descriptor(&name, help, None, gauge.metric_type())?)?;
                }
            }
        }
        Ok(())
    }
}
