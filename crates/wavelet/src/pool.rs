//! Work on frames in several threads, in their order.

use std::sync::mpsc::sync_channel;
use std::thread;

/// Does `work` on what `input` gives, in `threads` threads, and tells `output` the results in the order of
/// the input. No more than two items a thread are on their way. An error of `output` ends it; the input
/// is then asked for one or two items more.
///
/// # Errors
/// Those of `output`.
pub fn in_order<T: Send, R: Send, E>(
    threads: usize,
    input: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
    mut output: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let work = &work;
    thread::scope(|scope| {
        // Items go round, and results are taken in the same rounds: none has to be sorted.
        let (mut doors, mut results) = (Vec::new(), Vec::new());
        for _ in 0..threads.max(1) {
            let (door, items) = sync_channel(1);
            let (done, result) = sync_channel(1);
            scope.spawn(move || items.into_iter().map(work).try_for_each(|result| done.send(result)));
            doors.push(door);
            results.push(result);
        }
        let rounds = doors.len();
        scope.spawn(move || {
            // No thread takes items any more once the output has ended.
            let _ended = input.enumerate().try_for_each(|(index, item)| doors[index % rounds].send(item));
        });
        let mut in_turn = results.iter().cycle().map_while(|result| result.recv().ok());
        let ended = in_turn.try_for_each(&mut output);
        drop(results);
        ended
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_input() {
        for threads in [0, 1, 3, 20] {
            for count in [0, 1, 2, 100] {
                let mut out = Vec::new();
                let work = |item: u32| {
                    // Some take longer.
                    (0..(item % 7) * 20_000).for_each(|spin| _ = std::hint::black_box(spin));
                    item * 2
                };
                let ended: Result<(), ()> = in_order(threads, 0..count, work, |result| {
                    out.push(result);
                    Ok(())
                });
                assert_eq!((ended, out), (Ok(()), (0..count).map(|item| item * 2).collect()));
            }
        }
    }

    #[test]
    fn it_ends_when_the_output_does() {
        let ended = in_order(3, 0.., |item: u64| item, |item| if item < 50 { Ok(()) } else { Err(item) });
        assert_eq!(ended, Err(50));
    }
}
