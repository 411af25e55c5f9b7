//! Relay: exchanges messages between the conductor and the agents in rounds.
//!
//! Each round is a sleeping barrier, a broadcast from rank 0, and a gather to rank 0. Between two
//! rounds, all ranks sleep outside of the transport, because a rank that waits inside of MPI takes
//! CPU time from the workload. The time between two rounds is a quarter of the time since the last
//! message, within limits. While a phase is measured, the upper limit is a second.

use std::{
    io::{self, Read, Write},
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use thiserror::Error;

use crate::{
    Fabric, FabricError, LOST_AFTER,
    clock::{self, Offset},
    wire::{append, read_frame, split, write_frame},
};

/// Shortest time between two rounds.
const SHORTEST: Duration = Duration::from_millis(1);
/// Longest time between two rounds while the conductor waits.
const LONGEST: Duration = Duration::from_millis(20);
/// Longest time between two rounds while a phase is measured: the heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Connection to an agent or to the conductor. A thread reads its frames.
pub struct Endpoint {
    to: Box<dyn Write + Send>,
    from: Receiver<Vec<u8>>,
    ended: bool,
}

impl Endpoint {
    /// Connects to a program that reads frames from `to` and writes frames to `from`.
    pub fn new(to: impl Write + Send + 'static, mut from: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            while let Ok(Some(frame)) = read_frame(&mut from) {
                if sender.send(frame).is_err() {
                    break;
                }
            }
        });
        Self { to: Box::new(to), from: receiver, ended: false }
    }

    /// Next frame; waits for at most `limit`.
    fn next(&mut self, limit: Duration) -> Option<Vec<u8>> {
        match self.from.recv_timeout(limit) {
            Ok(frame) => return Some(frame),
            Err(RecvTimeoutError::Disconnected) => self.ended = true,
            Err(RecvTimeoutError::Timeout) => {}
        }
        None
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("ended", &self.ended).finish_non_exhaustive()
    }
}

/// Message from the conductor to the relay of rank 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToRelay {
    /// Message for all agents.
    Agents(Vec<u8>),
    /// Request for the offsets of all clocks.
    Clocks,
    /// A phase is measured: rounds become rare.
    Measuring(bool),
    /// End of the session.
    End,
}

impl ToRelay {
    /// Frame of the message.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Agents(bytes) => [b"A", &bytes[..]].concat(),
            Self::Clocks => b"C".to_vec(),
            Self::Measuring(on) => vec![b'M', u8::from(*on)],
            Self::End => b"E".to_vec(),
        }
    }

    fn decode(frame: &[u8]) -> Option<Self> {
        match frame.split_first()? {
            (b'A', bytes) => Some(Self::Agents(bytes.to_vec())),
            (b'C', []) => Some(Self::Clocks),
            (b'M', [on]) => Some(Self::Measuring(*on != 0)),
            (b'E', []) => Some(Self::End),
            _ => None,
        }
    }
}

/// Rank of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Host name.
    pub host: String,
    /// True if the rank has an agent.
    pub agent: bool,
    /// Number of ranks on its host.
    pub ranks_on_host: u32,
}

/// Message from the relay of rank 0 to the conductor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToConductor {
    /// Start of the session: version of the transport, and the ranks.
    Started(String, Vec<Member>),
    /// Message of the agent of a rank.
    Agent(usize, Vec<u8>),
    /// The agent of a rank ended.
    AgentEnded(usize),
    /// Offsets of the clocks by rank.
    Clocks(Vec<Offset>),
}

impl ToConductor {
    /// Frame of the message.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut frame = Vec::new();
        match self {
            Self::Started(version, members) => {
                frame.push(b'S');
                append(&mut frame, version.as_bytes());
                members.iter().for_each(|member| append(&mut frame, &member.encode()));
            }
            Self::Agent(rank, bytes) => {
                frame.push(b'A');
                frame.extend_from_slice(&index(*rank));
                frame.extend_from_slice(bytes);
            }
            Self::AgentEnded(rank) => {
                frame.push(b'X');
                frame.extend_from_slice(&index(*rank));
            }
            Self::Clocks(offsets) => {
                frame.push(b'C');
                for Offset { offset, bound } in offsets {
                    frame.extend_from_slice(&offset.to_le_bytes());
                    frame.extend_from_slice(&bound.to_le_bytes());
                }
            }
        }
        frame
    }

    /// Message of a frame; `None` if the frame is invalid.
    pub fn decode(frame: &[u8]) -> Option<Self> {
        let (kind, mut rest) = frame.split_first()?;
        match kind {
            b'S' => {
                let version = String::from_utf8_lossy(split(&mut rest)?).into_owned();
                let mut members = Vec::new();
                while !rest.is_empty() {
                    members.push(Member::decode(split(&mut rest)?)?);
                }
                Some(Self::Started(version, members))
            }
            b'A' => {
                let (rank, bytes) = rest.split_first_chunk::<4>()?;
                Some(Self::Agent(u32::from_le_bytes(*rank) as usize, bytes.to_vec()))
            }
            b'X' => {
                let rank = <[u8; 4]>::try_from(rest).ok()?;
                Some(Self::AgentEnded(u32::from_le_bytes(rank) as usize))
            }
            b'C' => {
                let (all, []) = rest.as_chunks::<16>() else { return None };
                let offset = |bytes: &[u8; 16]| {
                    let (offset, bound) = bytes.split_first_chunk::<8>()?;
                    let bound = u64::from_le_bytes(bound.try_into().ok()?);
                    Some(Offset { offset: i64::from_le_bytes(*offset), bound })
                };
                all.iter().map(offset).collect::<Option<Vec<_>>>().map(Self::Clocks)
            }
            _ => None,
        }
    }
}

impl Member {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.ranks_on_host.to_le_bytes().to_vec();
        bytes.push(u8::from(self.agent));
        bytes.extend_from_slice(self.host.as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (ranks, rest) = bytes.split_first_chunk::<4>()?;
        let (agent, host) = rest.split_first()?;
        let host = String::from_utf8_lossy(host).into_owned();
        Some(Self { host, agent: *agent != 0, ranks_on_host: u32::from_le_bytes(*ranks) })
    }
}

/// Error of a relay.
#[derive(Debug, Error)]
pub enum RelayError {
    /// The transport failed.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// The conductor ended without ending the session.
    #[error("fslab run ended; the session ends on all hosts")]
    ConductorEnded,
    /// A message was invalid.
    #[error("invalid message from {0}; use the same build of fslab on all hosts")]
    Invalid(&'static str),
    /// A pipe or socket failed.
    #[error("writing to {0}: {1}")]
    Write(&'static str, io::Error),
}

/// Instant until which the next round must end, for a thread that ends the process otherwise. A
/// function of the transport cannot be interrupted.
#[derive(Debug)]
pub struct Pulse(AtomicU64);

impl Default for Pulse {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl Pulse {
    fn expect(&self, delay: Duration) {
        let limit = u64::try_from((LOST_AFTER + delay).as_nanos()).unwrap_or(u64::MAX);
        self.0.store(clock::now().saturating_add(limit), Relaxed);
    }

    /// True if the round did not end in time.
    pub fn is_late(&self) -> bool {
        clock::now() > self.0.load(Relaxed)
    }
}

/// Header of a round: command, time until the next round in microseconds, length of the message.
const HEADER: usize = 9;

const CLOCKS: u8 = 1;
const END: u8 = 2;

/// Command, zero for none, and message of a round.
#[derive(Debug, Default)]
struct Round {
    command: u8,
    message: Vec<u8>,
}

impl Round {
    /// Round for a message of the conductor.
    fn of(frame: &[u8], measuring: &mut bool) -> Result<Self, RelayError> {
        let mut round = Self::default();
        match ToRelay::decode(frame).ok_or(RelayError::Invalid("the conductor"))? {
            ToRelay::Agents(bytes) => round.message = bytes,
            ToRelay::Clocks => round.command = CLOCKS,
            ToRelay::Measuring(on) => *measuring = on,
            ToRelay::End => round.command = END,
        }
        Ok(round)
    }
}

fn index(rank: usize) -> [u8; 4] {
    u32::try_from(rank).unwrap_or(u32::MAX).to_le_bytes()
}

/// Exchanges messages until the conductor ends the session. `conductor` is the connection of rank
/// 0, `agent` the agent of this rank, if it has one. The first frame that an agent gets is its rank
/// (four bytes, little-endian).
///
/// # Errors
/// [`RelayError`]. The caller must then end the process and its agent.
pub fn relay(
    fabric: &mut impl Fabric,
    host: &str,
    mut agent: Option<Endpoint>,
    mut conductor: Option<Endpoint>,
    pulse: &Pulse,
) -> Result<(), RelayError> {
    pulse.expect(Duration::ZERO);
    if let Some(agent) = &mut agent {
        // An agent that has ended is reported in the first round.
        let _ended = write_frame(&mut agent.to, &index(fabric.rank()));
    }
    let ranks_on_host = u32::try_from(fabric.ranks_on_host()).unwrap_or(u32::MAX);
    let own = Member { host: host.to_owned(), agent: agent.is_some(), ranks_on_host };
    let all = fabric.gather(&own.encode())?;
    if let Some(conductor) = &mut conductor {
        let members: Option<Vec<Member>> = all.iter().map(|bytes| Member::decode(bytes)).collect();
        let members = members.ok_or(RelayError::Invalid("another rank"))?;
        notify(conductor, &ToConductor::Started(fabric.version(), members))?;
    }
    let (mut measuring, mut active) = (false, Instant::now());
    let mut reported = false;
    loop {
        let (mut round, mut delay) = (Round::default(), SHORTEST);
        if let Some(conductor) = &mut conductor {
            let longest = if measuring { HEARTBEAT } else { LONGEST };
            delay = (active.elapsed() / 4).clamp(SHORTEST, longest);
            let frame = conductor.next(delay);
            if frame.is_none() && conductor.ended {
                fabric.abort();
                return Err(RelayError::ConductorEnded);
            }
            if let Some(frame) = frame {
                (active, delay) = (Instant::now(), SHORTEST);
                round = Round::of(&frame, &mut measuring)?;
            }
        }
        let Round { command, mut message } = round;
        pulse.expect(HEARTBEAT);
        fabric.barrier(LOST_AFTER + HEARTBEAT)?;
        let mut header = [0; HEADER];
        header[0] = command;
        let micros = u32::try_from(delay.as_micros()).unwrap_or(u32::MAX);
        header[1..5].copy_from_slice(&micros.to_le_bytes());
        header[5..].copy_from_slice(&index(message.len()));
        fabric.broadcast(&mut header)?;
        let number = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        message.resize(number(5) as usize, 0);
        if !message.is_empty() {
            fabric.broadcast(&mut message)?;
        }
        match header[0] {
            CLOCKS => {
                let offsets = clock::measure(fabric)?;
                if let Some(conductor) = &mut conductor {
                    notify(conductor, &ToConductor::Clocks(offsets))?;
                }
            }
            END => return Ok(()),
            _ => {}
        }
        let queued = exchange(&mut agent, &message, &mut reported);
        let all = fabric.gather(&queued)?;
        if let Some(conductor) = &mut conductor {
            let mut heard = false;
            for (rank, queue) in all.iter().enumerate() {
                heard |= !queue.is_empty();
                forward(conductor, rank, queue)?;
            }
            if heard {
                active = Instant::now();
            }
        } else {
            thread::sleep(Duration::from_micros(number(1).into()));
        }
    }
}

/// Passes a message to the agent of this rank, and collects its messages. The end of the agent is
/// an empty part, once.
fn exchange(agent: &mut Option<Endpoint>, message: &[u8], reported: &mut bool) -> Vec<u8> {
    let mut queued = Vec::new();
    let Some(agent) = agent else { return queued };
    if !message.is_empty() && write_frame(&mut agent.to, message).is_err() {
        agent.ended = true;
    }
    while let Some(frame) = agent.next(Duration::ZERO) {
        append(&mut queued, &frame);
    }
    if agent.ended && !*reported {
        *reported = true;
        append(&mut queued, &[]);
    }
    queued
}

/// Passes the messages of a rank to the conductor.
fn forward(conductor: &mut Endpoint, rank: usize, mut queue: &[u8]) -> Result<(), RelayError> {
    while !queue.is_empty() {
        let frame = split(&mut queue).ok_or(RelayError::Invalid("another rank"))?;
        let message = match frame {
            [] => ToConductor::AgentEnded(rank),
            bytes => ToConductor::Agent(rank, bytes.to_vec()),
        };
        notify(conductor, &message)?;
    }
    Ok(())
}

fn notify(conductor: &mut Endpoint, message: &ToConductor) -> Result<(), RelayError> {
    write_frame(&mut conductor.to, &message.encode())
        .map_err(|error| RelayError::Write("fslab run", error))
}
