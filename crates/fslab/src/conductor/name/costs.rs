//! What the work cost, and what speaks for or against its numbers.

use model::{Clock, Metric, PhaseResult, phase::WorkerResult};

use super::{Known, Named, beyond_counting, float, generator_share, nanos, sum};

pub(super) fn add(named: &mut Named<'_>, result: &PhaseResult, known: &Known) {
    cpu(named, result);
    let reads: u64 = result.workers.iter().map(|worker| worker.read.ops.0).sum();
    let blocked: u64 = result.workers.iter().map(|worker| worker.would_block.0).sum();
    if blocked > 0 && reads > 0 {
        named.add(Metric::WouldBlock, float(blocked));
        // Reads of the ramp-up may have blocked as well.
        let all = float(reads) * beyond_counting(named.phase, result);
        named.add(Metric::WouldBlockShare, (float(blocked) / all).min(1.0));
    }
    if let Some(share) = generator_share(named.phase, result, known.generator) {
        named.add(Metric::GeneratorShare, share.0);
    }
}

fn cpu(named: &mut Named<'_>, result: &PhaseResult) {
    let user = nanos(sum(result, |worker| worker.user_time));
    let system = nanos(sum(result, |worker| worker.system_time));
    let switches = |kind: fn(&WorkerResult) -> u64| float(result.workers.iter().map(kind).sum());
    let voluntary = switches(|worker| worker.voluntary_switches);
    let involuntary = switches(|worker| worker.involuntary_switches);
    named.add(Metric::UserTime, user);
    named.add(Metric::SystemTime, system);
    if named.clock == Clock::Instructions {
        named.add(Metric::ProgramInstructions, user + system);
    }
    named.add(Metric::VoluntarySwitches, voluntary);
    named.add(Metric::InvoluntarySwitches, involuntary);
    if result.ops().0 > 0 {
        let ops = float(result.ops().0) * beyond_counting(named.phase, result);
        named.add(Metric::UserTimePerOp, user / ops);
        named.add(Metric::SystemTimePerOp, system / ops);
        named.add(Metric::SwitchesPerOp, (voluntary + involuntary) / ops);
    }
    let elapsed = nanos(super::elapsed(named.phase, result));
    let wall = elapsed * float(result.workers.len() as u64);
    if wall > 0.0 {
        named.add(Metric::CpuShare, (user + system) / elapsed);
        named.add(Metric::UserShare, user / wall);
        named.add(Metric::SystemShare, system / wall);
    }
}
