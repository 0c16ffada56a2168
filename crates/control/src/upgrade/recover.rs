//! What becomes of a relay of which something has ended: another process goes on with it, once in a while.

use outflow_vital::Fatal;

use super::{Upgrade, hand_over};
use crate::control::Control;

/// Has another process go on with a relay of which something has ended, and says which.
///
/// # Errors
/// What has ended: no other process could go on, or one did a while ago.
pub(crate) async fn recover(control: &Control, fatal: Fatal) -> Result<u32, Fatal> {
    let upgrade = control.shared::<Upgrade>();
    let Some(recoveries) = upgrade.recoveries().with_one_more(control.now()) else { return Err(fatal) };
    upgrade.set_recoveries(recoveries);
    tracing::error!(
        what = fatal.what,
        why = fatal.why,
        "has ended: another process is to go on with the relay"
    );
    // A worker that has ended serves no receiver; another process's does, in a moment.
    control.door().hold(true);
    match hand_over(control).await {
        Ok(_) => upgrade.over().await,
        // The log says why.
        Err(_) => Err(fatal),
    }
}
