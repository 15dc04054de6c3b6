//! What is counted, in the text format of Prometheus.

use partita_table::{QueryReport, TableService};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Duration;

type Labels<const N: usize> = [(&'static str, String); N];

/// The figures of one server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Labels<2>, Counter>,
    seconds: Family<Labels<1>, Histogram>,
    queries: Family<Labels<2>, Counter>,
    rows_read: Counter,
    rows_returned: Counter,
    pub(crate) connections: Gauge,
}

impl Metrics {
    pub(crate) fn new(service: Arc<TableService>) -> Metrics {
        let mut registry = Registry::with_prefix("partita");
        let metrics = Metrics {
            requests: Family::default(),
            // 50 microseconds to 27 seconds.
            seconds: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.00005, 3.0, 13))),
            queries: Family::default(),
            rows_read: Counter::default(),
            rows_returned: Counter::default(),
            connections: Gauge::default(),
            registry: Registry::default(),
        };
        registry.register("requests", "Requests by operation and status", metrics.requests.clone());
        registry.register("request_seconds", "Time from the head of a request to its answer", metrics.seconds.clone());
        registry.register("queries", "Queries of entities by plan class, ours and Azure's", metrics.queries.clone());
        registry.register("query_rows_read", "Rows that queries looked at", metrics.rows_read.clone());
        registry.register("query_rows_returned", "Rows that queries returned", metrics.rows_returned.clone());
        registry.register("connections", "Open connections", metrics.connections.clone());
        registry.register_collector(Box::new(Engine(service)));
        Metrics { registry, ..metrics }
    }

    pub(crate) fn request(&self, operation: &'static str, status: u16, took: Duration) {
        let operation = ("operation", operation.to_owned());
        self.requests.get_or_create(&[operation.clone(), ("status", status.to_string())]).inc();
        self.seconds.get_or_create(&[operation]).observe(took.as_secs_f64());
    }

    pub(crate) fn query(&self, report: &QueryReport) {
        let class = ("class", report.class.name().to_owned());
        self.queries.get_or_create(&[class, ("azure_class", report.azure_class.name().to_owned())]).inc();
        self.rows_read.inc_by(report.rows_read);
        self.rows_returned.inc_by(report.rows_returned);
    }

    pub(crate) fn encode(&self) -> String {
        let mut out = String::new();
        text::encode(&mut out, &self.registry).expect("writing to a string does not fail");
        out
    }
}

/// The figures of the engine, read when somebody asks.
#[derive(Debug)]
struct Engine(Arc<TableService>);

impl Collector for Engine {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
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
