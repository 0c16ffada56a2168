//! Cookies: what shows that a client is where it says.

use core::net::SocketAddr;
use core::time::Duration;

use outflow_media::Time;

use crate::packet::ConnectionId;
use crate::secret::Secret;

/// How long a cookie is taken, about.
const VALID: Duration = Duration::from_secs(15);

/// Makes cookies, and knows them again, without remembering any: each is a keyed hash of the address, the
/// client's id and the time.
#[derive(Debug)]
pub(super) struct Cookies {
    secret: Secret,
}

impl Cookies {
    pub(super) fn new(secret: Secret) -> Self {
        Cookies { secret }
    }

    /// What they are made of.
    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    pub(super) fn make(&self, now: Time, address: SocketAddr, client: ConnectionId) -> [u8; 16] {
        self.of(epoch(now), address, client)
    }

    pub(super) fn is_ours(
        &self,
        now: Time,
        address: SocketAddr,
        client: ConnectionId,
        cookie: &[u8],
    ) -> bool {
        let epoch = epoch(now);
        [Some(epoch), epoch.checked_sub(1)].into_iter().flatten().any(|epoch| {
            let expected = self.of(epoch, address, client);
            // In the same time whatever is wrong with it.
            let differences = expected.iter().zip(cookie).fold(0, |all, (a, b)| all | (a ^ b));
            cookie.len() == expected.len() && differences == 0
        })
    }

    fn of(&self, epoch: u64, address: SocketAddr, client: ConnectionId) -> [u8; 16] {
        let mut bytes = [0_u8; 8 + 16 + 2 + ConnectionId::BYTES];
        bytes[..8].copy_from_slice(&epoch.to_le_bytes());
        let ip = match address.ip() {
            core::net::IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            core::net::IpAddr::V6(ip) => ip,
        };
        bytes[8..24].copy_from_slice(&ip.octets());
        bytes[24..26].copy_from_slice(&address.port().to_le_bytes());
        bytes[26..].copy_from_slice(&client.0);
        self.secret.tag(&bytes)
    }
}

fn epoch(now: Time) -> u64 {
    now.as_millis() / VALID.as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_for_one_client_at_one_address_for_a_while() {
        let cookies = Cookies::new(Secret::new([3; 16]));
        let (now, id) = (Time::from_millis(1_000_000), ConnectionId([1; ConnectionId::BYTES]));
        let address: SocketAddr = ([10, 0, 0, 1], 4000).into();
        let cookie = cookies.make(now, address, id);
        let is_ours = |now, address, id| cookies.is_ours(now, address, id, &cookie);
        assert!(is_ours(now, address, id) && is_ours(now + VALID, address, id));
        assert!(!is_ours(now + 2 * VALID, address, id));
        assert!(!is_ours(now, ([10, 0, 0, 2], 4000).into(), id));
        assert!(!is_ours(now, ([10, 0, 0, 1], 4001).into(), id));
        assert!(!is_ours(now, address, ConnectionId([2; ConnectionId::BYTES])));
        assert!(!cookies.is_ours(now, address, id, &cookie[..15]) && !cookies.is_ours(now, address, id, &[]));
        assert!(!Cookies::new(Secret::new([4; 16])).is_ours(now, address, id, &cookie));
    }
}
