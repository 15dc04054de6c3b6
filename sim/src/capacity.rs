//! Capacity and cost from stated assumptions. Nothing here is measured or offered by anybody: whoever has figures of their
//! own changes the constants and runs `make sim`.

/// When the assumptions were made.
pub const DATE: &str = "November 2026";
/// Bytes on the disk of one replica for a byte of entities: keys, versions, and what compaction has not removed yet.
const OVERHEAD: f64 = 1.2;
const REPLICAS: f64 = 3.0;
/// How full disks may be, so that there is room to compact, and to copy what a lost node had.
const FILL: f64 = 0.6;
/// CockroachDB splits at 512 MiB, so the mean range is between half of that and all of it.
const RANGE_BYTES: f64 = 0.75 * 512.0 * 1024.0 * 1024.0;
/// YugabyteDB splits at 10 GiB once a node has some tablets.
const TABLET_BYTES: f64 = 0.75 * 10.0 * 1024.0 * 1024.0 * 1024.0;
/// Dollars for an hour of a virtual core with 4 GiB of memory.
const CORE_HOUR: f64 = 0.05;
/// Dollars for a month of a gigabyte on a network SSD.
const DISK_GB_MONTH: f64 = 0.10;
const MONTH_HOURS: f64 = 730.0;
const TB: f64 = 1e12;

/// A machine that runs a node of the database.
#[derive(Clone, Copy, Debug)]
struct Machine {
    cores: f64,
    disk_tb: f64,
}

/// A line of the table: so much data on such machines.
#[derive(Clone, Copy, Debug)]
struct Plan {
    data_tb: f64,
    machine: Machine,
}

const PLANS: [Plan; 3] = [
    Plan { data_tb: 1.0, machine: Machine { cores: 8.0, disk_tb: 2.0 } },
    Plan { data_tb: 100.0, machine: Machine { cores: 32.0, disk_tb: 8.0 } },
    Plan { data_tb: 500.0, machine: Machine { cores: 32.0, disk_tb: 8.0 } },
];

impl Plan {
    fn stored_tb(&self) -> f64 {
        self.data_tb * OVERHEAD * REPLICAS
    }

    fn nodes(&self) -> f64 {
        (self.stored_tb() / (self.machine.disk_tb * FILL)).ceil().max(REPLICAS)
    }

    fn pieces(&self, bytes: f64) -> f64 {
        (self.data_tb * TB * OVERHEAD / bytes).ceil()
    }

    fn machines_cost(&self) -> f64 {
        self.nodes() * self.machine.cores * CORE_HOUR * MONTH_HOURS
    }

    fn disks_cost(&self) -> f64 {
        self.nodes() * self.machine.disk_tb * 1000.0 * DISK_GB_MONTH
    }
}

/// The assumptions, and what follows from them.
pub fn table() -> String {
    let mut text = format!(
        "Assumed in {DATE}: {OVERHEAD} bytes on disk for each byte of entities, {REPLICAS} replicas, disks {:.0} % full at most, \
         ${CORE_HOUR:.2} for an hour of a virtual core with 4 GiB, ${DISK_GB_MONTH:.2} for a gigabyte of SSD a month.\n\n\
         | entities | on disks | node | nodes | ranges of CockroachDB | replicas on a node | tablets of YugabyteDB \
         | replicas on a node | machines a month | disks a month |\n|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|\n",
        100.0 * FILL
    );
    for plan in PLANS {
        let [ranges, tablets] = [RANGE_BYTES, TABLET_BYTES].map(|bytes| plan.pieces(bytes));
        let on_node = |pieces: f64| count((pieces * REPLICAS / plan.nodes()).ceil());
        text += &format!(
            "| {} TB | {} TB | {} cores, {} TB | {} | {} | {} | {} | {} | ${} | ${} |\n",
            count(plan.data_tb),
            count(plan.stored_tb().ceil()),
            plan.machine.cores,
            plan.machine.disk_tb,
            count(plan.nodes()),
            count(ranges),
            on_node(ranges),
            count(tablets),
            on_node(tablets),
            count(plan.machines_cost()),
            count(plan.disks_cost()),
        );
    }
    text
}

/// A number with commas.
fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let commas = |place: usize| if place > 0 && (digits.len() - place).is_multiple_of(3) { "," } else { "" };
    digits.char_indices().map(|(place, digit)| format!("{}{digit}", commas(place))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_decide_unless_there_are_fewer_nodes_than_replicas() {
        let machine = Machine { cores: 8.0, disk_tb: 2.0 };
        assert_eq!(Plan { data_tb: 0.1, machine }.nodes(), REPLICAS);
        let plan = Plan { data_tb: 100.0, machine };
        assert!(plan.nodes() * machine.disk_tb * FILL >= plan.stored_tb());
        assert!((plan.nodes() - 1.0) * machine.disk_tb * FILL < plan.stored_tb());
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!([1.0, 999.0, 1000.0, 1_234_567.0].map(count), ["1", "999", "1,000", "1,234,567"]);
    }
}
