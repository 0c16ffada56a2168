//! Orders of which each member of a cohort gets the layers that it takes: the program in the kernel compares
//! the packet's layer with the target's, as user space does, and closes the gaps in the sequence numbers.

use outflow_kernel::Layered;
use outflow_relay::{Share, SinkKey};

use super::{Fanout, Means, Members};
use crate::send::udp::UdpRoute;
use crate::send::{Piece, lower, mark};

/// What the members of an order get of it.
#[derive(Clone, Copy)]
pub(crate) struct Layers<'a> {
    /// What sinks that take the same layers get, each maximum once.
    pub(crate) max_layers: &'a [Share],
    /// What a member gets. The kernel knows that: it is asked for orders that system calls carry out.
    pub(crate) share_of: &'a dyn Fn(SinkKey) -> Share,
}

/// What each of these sinks gets, those with the same share together.
pub(crate) fn by_share(
    sinks: &[SinkKey],
    share_of: impl Fn(SinkKey) -> Share,
    shares: &mut Vec<(Share, SinkKey)>,
) {
    shares.clear();
    shares.extend(sinks.iter().map(|key| (share_of(*key), *key)));
    shares.sort_unstable();
}

impl Fanout {
    /// Sends to each member those packets that it takes, one by one.
    pub(super) fn send_layered<'r, R: Fn(SinkKey) -> Option<&'r UdpRoute> + Copy>(
        &mut self,
        members: Members<'_>,
        layers: Layers<'_>,
        pieces: &[Piece<'_>],
        means: &mut Means<'_, R>,
    ) {
        let mut shares = core::mem::take(&mut self.shares);
        shares.clear();
        for (index, piece) in pieces.iter().enumerate() {
            let one = core::slice::from_ref(piece);
            let (Some(layer), Some((header, _))) = (piece.layer, piece.split_header()) else {
                self.send_run(members, one, means);
                continue;
            };
            let sequence_offset =
                |share: Share| share.sequence_offset.wrapping_add(left_out(&pieces[..index], share));
            if let Some(in_kernel) = &mut self.kernel {
                layers.max_layers.iter().for_each(|share| {
                    in_kernel.kernel.set_sequence_offset(share.max_layer, sequence_offset(*share))
                });
            }
            let mut path = self.choose(members, one, means);
            let layered = Layered::new(layer, piece.ends, &header);
            let missing = self.by_kernel(members, &mut path, one, Some(layered));
            if missing == Some(0) {
                continue;
            }
            if shares.is_empty() {
                by_share(members.ordered(), layers.share_of, &mut shares);
            }
            self.send_shares(&shares, piece, sequence_offset, missing, means);
        }
        self.shares = shares;
    }

    /// Sends a packet by system calls to the members that take it, or to those of them that the kernel does
    /// not reach.
    fn send_shares<'r, R: Fn(SinkKey) -> Option<&'r UdpRoute> + Copy>(
        &mut self,
        shares: &[(Share, SinkKey)],
        piece: &Piece<'_>,
        sequence_offset: impl Fn(Share) -> u16,
        missing: Option<usize>,
        means: &mut Means<'_, R>,
    ) {
        let takes = |share: Share| piece.layer.is_some_and(|layer| share.max_layer.takes(layer));
        for same in shares.chunk_by(|one, other| one.0 == other.0).filter(|same| takes(same[0].0)) {
            let Some((header, body)) = piece.split_header() else { continue };
            let share = same[0].0;
            let header = lower(header, sequence_offset(share));
            let header = if share.max_layer.is_up_to(piece.ends) { mark(header) } else { header };
            let piece = Piece { header: &header, body, ..*piece };
            let keys = same.iter().map(|(_, key)| *key);
            match missing {
                Some(missing) => self.by_user_alone(keys, missing, &[piece], means),
                None => self.by_user(keys, &[piece], means),
            }
        }
    }
}

/// How many of these packets a sink with this share does not get.
fn left_out(pieces: &[Piece<'_>], share: Share) -> u16 {
    let is_left_out = |piece: &&Piece<'_>| piece.layer.is_some_and(|layer| !share.max_layer.takes(layer));
    pieces.iter().filter(is_left_out).count() as u16
}
