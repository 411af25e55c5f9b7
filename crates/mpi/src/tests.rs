//! Tests of the relay with threads instead of MPI.

use std::{
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

use crate::{
    Endpoint, Fabric, FabricError, InProcess, Member, Pulse, RelayError, ToConductor, ToRelay,
    clock::Offset, read_frame, relay, write_frame,
};

/// Sends a message to the relay.
fn send(to: &mut UnixStream, message: &ToRelay) {
    write_frame(to, &message.encode()).unwrap();
}

fn receive(from: &mut UnixStream) -> ToConductor {
    ToConductor::decode(&read_frame(from).unwrap().unwrap()).unwrap()
}

fn endpoint(stream: &UnixStream) -> Endpoint {
    Endpoint::new(stream.try_clone().unwrap(), stream.try_clone().unwrap())
}

/// Agent that replies to each message with its rank and the message.
fn agent(rank: usize) -> (Endpoint, thread::JoinHandle<()>) {
    let (own, other) = UnixStream::pair().unwrap();
    let agent = thread::spawn(move || {
        let mut stream = other;
        let own = read_frame(&mut stream).unwrap().unwrap();
        assert_eq!(own, u32::try_from(rank).unwrap().to_le_bytes());
        while let Ok(Some(frame)) = read_frame(&mut stream) {
            let reply = format!("{rank}: {}", String::from_utf8(frame).unwrap());
            write_frame(&mut stream, reply.as_bytes()).unwrap();
        }
    });
    (Endpoint::new(own.try_clone().unwrap(), own), agent)
}

#[test]
fn messages_reach_all_agents_and_replies_the_conductor() {
    let (mut conductor, other) = UnixStream::pair().unwrap();
    let ranks: Vec<_> = InProcess::ranks(4)
        .into_iter()
        .enumerate()
        .map(|(rank, mut fabric)| {
            let conductor = (rank == 0).then(|| endpoint(&other));
            let agent = (rank > 0).then(|| agent(rank).0);
            thread::spawn(move || {
                relay(&mut fabric, &format!("node{rank}"), agent, conductor, &Pulse::default())
            })
        })
        .collect();
    let ToConductor::Started(version, members) = receive(&mut conductor) else { panic!() };
    assert_eq!(version, "threads of one process");
    let names: Vec<(&str, bool)> = members.iter().map(|it| (it.host.as_str(), it.agent)).collect();
    assert_eq!(names, [("node0", false), ("node1", true), ("node2", true), ("node3", true)]);
    for round in 0..3 {
        send(&mut conductor, &ToRelay::Agents(format!("hello {round}").into_bytes()));
        let mut replies: Vec<String> = (0..3)
            .map(|_| {
                let ToConductor::Agent(_, reply) = receive(&mut conductor) else { panic!() };
                String::from_utf8(reply).unwrap()
            })
            .collect();
        replies.sort();
        let expected: Vec<_> = (1..=3).map(|rank| format!("{rank}: hello {round}")).collect();
        assert_eq!(replies, expected);
    }
    send(&mut conductor, &ToRelay::Clocks);
    let ToConductor::Clocks(offsets) = receive(&mut conductor) else { panic!() };
    assert_eq!(offsets.len(), 4);
    for Offset { offset, bound } in offsets {
        assert!(offset.unsigned_abs() <= bound, "one clock: {offset} ± {bound}");
    }
    send(&mut conductor, &ToRelay::End);
    assert!(ranks.into_iter().all(|rank| rank.join().unwrap().is_ok()));
}

#[test]
fn the_end_of_an_agent_is_reported_once_and_that_of_the_conductor_ends_all() {
    let (mut conductor, other) = UnixStream::pair().unwrap();
    let mut fabrics = InProcess::ranks(2);
    let mut second = fabrics.pop().unwrap();
    let mut first = fabrics.pop().unwrap();
    let own = endpoint(&other);
    drop(other);
    let root = thread::spawn(move || relay(&mut first, "a", None, Some(own), &Pulse::default()));
    let (pipe, ended) = UnixStream::pair().unwrap();
    let agent = endpoint(&pipe);
    drop((pipe, ended));
    let rank = thread::spawn(move || relay(&mut second, "b", Some(agent), None, &Pulse::default()));
    let member = |host: &str, agent| Member { host: host.into(), agent, ranks_on_host: 1 };
    let ToConductor::Started(_, members) = receive(&mut conductor) else { panic!() };
    assert_eq!(members, [member("a", false), member("b", true)]);
    assert_eq!(receive(&mut conductor), ToConductor::AgentEnded(1));
    send(&mut conductor, &ToRelay::Clocks);
    assert!(matches!(receive(&mut conductor), ToConductor::Clocks(_)), "no second report");
    drop(conductor);
    assert!(matches!(root.join().unwrap(), Err(RelayError::ConductorEnded)));
    assert!(matches!(rank.join().unwrap(), Err(RelayError::Fabric(FabricError::Aborted))));
}

#[test]
fn a_missing_rank_is_lost_after_the_limit() {
    let mut fabrics = InProcess::ranks(2);
    let limit = Duration::from_millis(30);
    let started = Instant::now();
    let lost = fabrics[0].barrier(limit);
    assert!(matches!(lost, Err(FabricError::Lost(after)) if after == limit));
    assert!(started.elapsed() >= limit);
}

#[test]
fn gathered_parts_keep_their_lengths() {
    let ranks = InProcess::ranks(3).into_iter().map(|mut fabric| {
        thread::spawn(move || {
            let own = vec![7; fabric.rank() * 10];
            fabric.gather(&own).unwrap()
        })
    });
    let all: Vec<_> = ranks.collect::<Vec<_>>().into_iter().map(|it| it.join().unwrap()).collect();
    let lengths: Vec<usize> = all[0].iter().map(Vec::len).collect();
    assert_eq!(lengths, [0, 10, 20]);
    assert!(all[1].is_empty() && all[2].is_empty());
}

#[test]
fn damaged_messages_are_rejected() {
    let whole = ToConductor::Started(
        "v".into(),
        vec![Member { host: "h".into(), agent: true, ranks_on_host: 1 }],
    );
    for frame in [&b""[..], b"Z", b"A12", b"C123", b"S\xff\xff\xff\xff", b"X1"] {
        assert_eq!(ToConductor::decode(frame), None, "{frame:?}");
    }
    let clocks = ToConductor::Clocks(vec![Offset { offset: -5, bound: 9 }]);
    for message in [whole, clocks, ToConductor::Agent(3, vec![1]), ToConductor::AgentEnded(2)] {
        assert_eq!(ToConductor::decode(&message.encode()), Some(message));
    }
    let long = (1_u32 << 28) + 1;
    assert!(read_frame(&mut &long.to_le_bytes()[..]).is_err());
    assert!(read_frame(&mut &b"\x05\0\0\0abc"[..]).is_err(), "truncated");
}
