//! Common start of several phases, and the end of their group.
//!
//! Each phase has its own coordinator thread and control block. When all workers of a phase are
//! prepared, its coordinator arrives here. When all coordinators have arrived, the gate opens, and
//! each coordinator releases its workers, immediately or after a delay.
//!
//! ```text
//! coordinator: workers prepared │ arrive │ open │ delay │ release the workers
//! ```
//!
//! The starts of phases without a delay differ by the time of a wakeup. A phase that cannot start
//! cancels the gate, so that no phase waits for it. [`StartGate::close`] stops the workers of
//! background phases.

use std::{
    fmt,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use model::Nanos;

use crate::{
    barrier::ControlBlock,
    clock::{now, sleep_until},
    flow::Flows,
};

/// Longest wait between two checks for an interruption.
const NAP: Duration = Duration::from_millis(50);

/// Common start of a group of phases, and the end of its background phases.
pub struct StartGate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Phases that have not arrived.
    missing: usize,
    opened: Option<Nanos>,
    canceled: bool,
    closed: bool,
    /// Control blocks of background phases.
    background: Vec<Arc<ControlBlock>>,
}

impl StartGate {
    /// Gate for this number of phases.
    pub fn new(phases: usize) -> Self {
        Self {
            state: Mutex::new(State { missing: phases, ..State::default() }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gate for one phase that starts at an instant: [`Self::open_at`].
    pub fn held() -> Self {
        Self::new(2)
    }

    /// Waits until the phase of a held gate has arrived. Returns false if the gate was canceled or
    /// closed earlier, or if `interrupt` was set.
    pub fn wait_arrived(&self, interrupt: &AtomicBool) -> bool {
        let mut state = self.state();
        while state.missing > 1 {
            if state.canceled || state.closed || interrupt.load(Relaxed) {
                return false;
            }
            let waited = self.changed.wait_timeout(state, NAP);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Opens a held gate at an instant, which should be in the future: the phase starts then.
    pub fn open_at(&self, instant: Nanos) {
        self.state().opened = Some(instant);
        self.changed.notify_all();
    }

    /// Arrives, and waits until all phases have arrived. Returns the instant at which the gate
    /// opened. After that, further calls return the same instant immediately. Returns `None` if the
    /// gate was canceled, or if `interrupt` was set.
    pub fn arrive(&self, interrupt: &AtomicBool) -> Option<Nanos> {
        let mut state = self.state();
        if state.opened.is_none() {
            state.missing = state.missing.saturating_sub(1);
            if state.missing == 0 {
                state.opened = Some(now());
            }
            self.changed.notify_all();
        }
        loop {
            if state.canceled || interrupt.load(Relaxed) {
                return None;
            }
            if let Some(opened) = state.opened {
                return Some(opened);
            }
            let waited = self.changed.wait_timeout(state, NAP);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Cancels the group, because one of its phases failed.
    pub fn cancel(&self) {
        self.state().canceled = true;
        self.changed.notify_all();
    }

    /// True if the group was canceled.
    pub fn is_canceled(&self) -> bool {
        self.state().canceled
    }

    /// Ends the group: background phases stop after their current operations.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        self.changed.notify_all();
        state.background.iter().for_each(|control| control.stop());
    }

    /// True if the group has ended.
    pub fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Adds the control block of a background phase, which stops when the group ends.
    fn add(&self, control: &Arc<ControlBlock>) {
        let mut state = self.state();
        if state.closed {
            control.stop();
        }
        state.background.push(Arc::clone(control));
    }

    /// Sleeps until an instant. Returns false if the group ends or is canceled earlier, or if
    /// `interrupt` is set.
    pub fn sleep_until(&self, instant: Nanos, interrupt: &AtomicBool) -> bool {
        let nap = Nanos(u64::try_from(NAP.as_nanos()).unwrap_or(u64::MAX));
        loop {
            if interrupt.load(Relaxed) || self.is_canceled() || self.is_closed() {
                return false;
            }
            let clock = now();
            if clock >= instant {
                return true;
            }
            sleep_until(instant.min(clock + nap));
        }
    }
}

impl fmt::Debug for StartGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("StartGate")
            .field("missing", &state.missing)
            .field("opened", &state.opened)
            .field("canceled", &state.canceled)
            .field("closed", &state.closed)
            .finish_non_exhaustive()
    }
}

/// Place of a phase in a group that starts together.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    /// Gate of the group.
    pub gate: &'a StartGate,
    /// Time between the common start and the start of the phase.
    pub delay: Nanos,
    /// Instant before which the phase does not start.
    pub earliest: Nanos,
    /// True if the phase stops when the group ends.
    pub background: bool,
    /// Agrees with other hosts on the number of operations after a deadline: gets the largest
    /// number of this host, and returns that of all hosts, or `None` if the phase was canceled.
    /// `None` if the phase has no workers on other hosts.
    pub agree: Option<&'a (dyn Fn(u64) -> Option<u64> + Sync)>,
    /// Counts of the flows of the group; `None`: the phase has separate ones.
    pub flows: Option<&'a Arc<Flows>>,
}

impl<'a> Start<'a> {
    /// Start with the gate.
    pub fn at(gate: &'a StartGate) -> Self {
        Self {
            gate,
            delay: Nanos(0),
            earliest: Nanos(0),
            background: false,
            agree: None,
            flows: None,
        }
    }
}

impl fmt::Debug for Start<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Start")
            .field("gate", &self.gate)
            .field("delay", &self.delay)
            .field("earliest", &self.earliest)
            .field("background", &self.background)
            .finish_non_exhaustive()
    }
}

impl Start<'_> {
    /// Registers the control block of the phase.
    pub(crate) fn begin(&self, control: &Arc<ControlBlock>) {
        if self.background {
            self.gate.add(control);
        }
    }

    /// Waits for the start of the phase, whose workers are prepared. Returns false if it must not
    /// start.
    pub fn wait(&self, interrupt: &AtomicBool) -> bool {
        let Some(opened) = self.gate.arrive(interrupt) else { return false };
        let start = (opened + self.delay).max(self.earliest);
        start <= now() || self.gate.sleep_until(start, interrupt)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn all_phases_get_the_same_start() {
        let (gate, interrupt) = (StartGate::new(3), AtomicBool::new(false));
        let starts: Vec<_> = thread::scope(|scope| {
            let arrive = || gate.arrive(&interrupt);
            let others = [scope.spawn(arrive), scope.spawn(arrive)];
            assert_eq!(gate.state().opened, None, "one phase has not arrived");
            let own = gate.arrive(&interrupt);
            let joined = others.map(|other| other.join().unwrap());
            joined.into_iter().chain([own]).collect()
        });
        assert!(starts[0].is_some());
        assert!(starts.iter().all(|start| *start == starts[0]), "{starts:?}");
        assert_eq!(gate.arrive(&interrupt), starts[0], "a repeated phase does not wait");
    }

    #[test]
    fn a_failed_phase_and_an_interruption_end_the_wait_of_the_others() {
        let (gate, interrupt) = (StartGate::new(2), AtomicBool::new(false));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.arrive(&interrupt));
            gate.cancel();
            assert_eq!(waiting.join().unwrap(), None);
        });
        let (gate, interrupt) = (StartGate::new(2), AtomicBool::new(false));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.arrive(&interrupt));
            interrupt.store(true, Relaxed);
            assert_eq!(waiting.join().unwrap(), None);
        });
    }

    #[test]
    fn a_held_gate_opens_at_the_instant() {
        let (gate, interrupt) = (StartGate::held(), AtomicBool::new(false));
        let instant = now() + Nanos(3_000_000);
        thread::scope(|scope| {
            let start = Start::at(&gate);
            let phase = scope.spawn(move || start.wait(&AtomicBool::new(false)).then(now));
            assert!(gate.wait_arrived(&interrupt));
            gate.open_at(instant);
            assert!(phase.join().unwrap().is_some_and(|started| started >= instant));
        });
        let gate = StartGate::held();
        gate.cancel();
        assert!(!gate.wait_arrived(&interrupt), "the phase failed before its start");
    }

    #[test]
    fn a_phase_starts_no_earlier_than_its_instant() {
        let (gate, interrupt) = (StartGate::new(1), AtomicBool::new(false));
        let earliest = now() + Nanos(3_000_000);
        let start = Start { earliest, ..Start::at(&gate) };
        assert!(start.wait(&interrupt) && now() >= earliest);
        let over = Start { delay: Nanos(1), earliest: Nanos(1), ..start };
        assert!(over.wait(&interrupt), "an instant in the past");
    }

    #[test]
    fn the_end_of_the_group_stops_background_phases_only() {
        let gate = StartGate::new(1);
        let control = |background| {
            let control = Arc::new(ControlBlock::new(1).unwrap());
            Start { background, ..Start::at(&gate) }.begin(&control);
            control
        };
        let (background, measured) = (control(true), control(false));
        gate.close();
        assert_ne!(background.signal().load(Relaxed), 0);
        assert_eq!(measured.signal().load(Relaxed), 0);
        assert_ne!(control(true).signal().load(Relaxed), 0, "a phase that begins after the end");
        assert!(!gate.sleep_until(Nanos(u64::MAX), &AtomicBool::new(false)));
    }
}
