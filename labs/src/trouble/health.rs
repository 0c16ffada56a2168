//! What health says, next to what viewers see.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::figures::rounded;

/// A stream of which nothing comes for this long while its source sends does not flow: health has to say so ...
const STILL: Duration = Duration::from_secs(2);
/// ... and may say so after this.
const FALTERS: Duration = Duration::from_millis(300);

/// An answer that was not true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lie {
    /// How long after the faults began.
    at: Duration,
    /// Status and text, or why there was no answer.
    answer: String,
    /// For how long nothing had come of a stream.
    still: Duration,
}

impl Lie {
    /// What was answered (status and text), if it is not true: of a relay that `lives`, from which nothing has come of a
    /// stream for this long.
    pub(super) fn of(
        at: Duration,
        answer: &Result<(u16, String)>,
        still: Duration,
        lives: bool,
    ) -> Option<Self> {
        let is_healthy = matches!(answer, Ok((200, _)));
        let is_true = if is_healthy { still < STILL } else { still >= FALTERS };
        // None can be asked of a relay that is gone.
        let answer = match answer {
            _ if is_true && lives => return None,
            Ok((status, text)) => format!("{status} {}", text.trim()),
            Err(why) => format!("none: {why:#}"),
        };
        let answer = if lives { answer } else { format!("{answer} (the relay has ended)") };
        Some(Lie { at, answer, still })
    }

    /// As it is told.
    pub(super) fn figures(&self) -> Value {
        let ms = |time: Duration| rounded(time.as_secs_f64() * 1e3);
        json!({ "at_ms": ms(self.at), "answer": self.answer, "still_ms": ms(self.still) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lie_is_told_with_the_answer_and_its_time() {
        let ms = Duration::from_millis;
        let answered = |status: u16, text: &str| Ok((status, text.to_owned()));
        let (well, late) = (answered(200, "ok\n"), answered(503, "worker 1 hangs\n"));
        let none = || Err(anyhow::anyhow!("it took too long"));
        for (answer, still) in [(&well, 0), (&well, 1999), (&late, 300), (&none(), 2000)] {
            assert_eq!(Lie::of(ms(9), answer, ms(still), true), None, "{answer:?} after {still} ms");
        }
        let told = |answer: &Result<(u16, String)>, still, lives| {
            Lie::of(ms(1234), answer, ms(still), lives).map(|lie| lie.figures())
        };
        let lie = |answer: &str, still: f64| {
            Some(json!({ "at_ms": rounded(1234.0), "answer": answer, "still_ms": rounded(still) }))
        };
        assert_eq!(told(&well, 2000, true), lie("200 ok", 2000.0));
        assert_eq!(told(&late, 299, true), lie("503 worker 1 hangs", 299.0));
        assert_eq!(told(&none(), 0, true), lie("none: it took too long", 0.0));
        assert_eq!(told(&none(), 5000, false), lie("none: it took too long (the relay has ended)", 5000.0));
    }
}
