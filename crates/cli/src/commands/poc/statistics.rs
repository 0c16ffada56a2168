//! What happened, as JSON.

use std::path::Path;

use outflow_poc_socket::Statistics;
use serde_json::json;

/// Writes it to a file, if there is one to write to.
pub(super) fn write(file: Option<&Path>, statistics: Option<Statistics>) -> Result<(), String> {
    let (Some(file), Some(statistics)) = (file, statistics) else { return Ok(()) };
    let Statistics { outgoing, incoming, datagrams, .. } = &statistics;
    let repairs = &outgoing.repairs;
    let all = json!({
        "units_sent": outgoing.units,
        "bytes_sent": outgoing.bytes,
        "units_acknowledged": outgoing.delivered,
        "units_lost": outgoing.lost,
        "units_too_late": outgoing.too_late,
        "units_overload": outgoing.overload,
        "units_dependency": outgoing.dependency,
        "pieces_again": repairs.again,
        "pieces_copies": repairs.copies,
        "pieces_too_late": repairs.too_late,
        "pieces_attempts": repairs.attempts,
        "pieces_unreliable": repairs.unreliable,
        "units_delivered": incoming.delivered,
        "bytes_delivered": incoming.bytes,
        "units_missed": incoming.lost + incoming.deleted + incoming.given_up,
        "datagrams_sent": datagrams.sent,
        "datagrams_sent_bytes": datagrams.sent_bytes,
        "datagrams_received": datagrams.received,
        "datagrams_duplicate": datagrams.duplicate,
        "datagrams_forged": datagrams.forged,
        "datagrams_malformed": datagrams.malformed,
        "packets_lost": statistics.packets_lost,
        "packets_spurious": statistics.packets_spurious,
        "rtt_us": statistics.rtt.as_micros() as u64,
        "rate_bps": statistics.rate_bps,
        "path_changes": statistics.path_changes,
    });
    let told = |error| format!("{}: {error}", file.display());
    std::fs::write(file, format!("{all:#}\n")).map_err(told)
}
