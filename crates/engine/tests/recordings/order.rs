//! Order between tasks of a replay.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
    sync::{
        atomic::{AtomicU32, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};

use model::phase::{TraceOrder, TraceTiming};
use rustix::fs::{FileType, Mode};

use crate::{Bench, as_program, compare};

const FILES: usize = 1500;

#[test]
fn a_pipeline_of_threads_has_the_same_results_in_each_replay() {
    let name = "order::a_pipeline_of_threads_has_the_same_results_in_each_replay";
    let Some(root) = as_program() else {
        let bench = Bench::new();
        let recording = bench.record_test(name);
        bench.exact(&recording);
        let mut unexpected = 0;
        for timing in [TraceTiming::Asap, TraceTiming::Think, TraceTiming::Asap] {
            let (result, _place) = bench.replay(TraceOrder::Resources, timing);
            unexpected += result.workers.iter().map(|worker| worker.unexpected.0).sum::<u64>();
            let (result, _place) = bench.replay(TraceOrder::Recorded, timing);
            compare(&recording, &result);
        }
        // Operations that overlapped may overlap otherwise.
        assert!(unexpected <= 8, "{unexpected} unexpected results");
        let (result, _place) = bench.replay(TraceOrder::Tasks, TraceTiming::Asap);
        let without: u64 = result.workers.iter().map(|worker| worker.unexpected.0).sum();
        assert!(without >= 1000, "{without} unexpected results without an order");
        return;
    };
    // Each stage passes the names of its files on.
    let (send, mut receive) = mpsc::channel::<usize>();
    let mut threads = Vec::new();
    let first = root.clone();
    threads.push(thread::spawn(move || {
        for index in 0..FILES {
            fs::write(first.join(format!("new-{index}")), vec![1; 100 + index]).unwrap();
            send.send(index).unwrap();
        }
    }));
    for stage in 0..3 {
        let (send, next) = mpsc::channel();
        let (from, root) = (receive, root.clone());
        receive = next;
        threads.push(thread::spawn(move || {
            for index in from {
                let path = |name: &str| root.join(format!("{name}-{index}"));
                match stage {
                    0 => {
                        let file = OpenOptions::new().append(true).open(path("new"));
                        file.unwrap().write_all(&[2; 50]).unwrap();
                    }
                    1 => fs::rename(path("new"), path("moved")).unwrap(),
                    _ => {
                        let data = fs::read(path("moved")).unwrap();
                        assert_eq!(data.len(), 150 + index);
                        if index % 2 == 0 {
                            fs::remove_file(path("moved")).unwrap();
                        }
                    }
                }
                let _ = send.send(index);
            }
        }));
    }
    drop(receive);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Messages of a program whose order is not visible in its files: a task writes `before-N`, and
/// another one creates `after-N` after the message N.
const MESSAGES: usize = 64;

// Tasks that do not overlap have one worker, and need no waits. Each of these tasks therefore has an
// operation before it waits.

/// Size of a file `before-N` in bytes.
const SIZE: usize = 1 << 20;

fn before(root: &Path, message: usize) {
    fs::write(root.join(format!("before-{message}")), vec![1; SIZE]).unwrap();
}

fn after(root: &Path, message: usize) {
    File::create(root.join(format!("after-{message}"))).unwrap();
}

/// Number of files `after-N` that were written before `before-N`.
fn disordered(root: &Path) -> usize {
    let time = |name: String| root.join(name).metadata().ok()?.modified().ok();
    let early = |number: &usize| {
        let (before, after) = (time(format!("before-{number}")), time(format!("after-{number}")));
        before.unwrap() > after.unwrap()
    };
    let messages = (0..).take_while(|number| time(format!("before-{number}")).is_some());
    messages.filter(early).count()
}

/// Replays a recording of such a program.
fn keeps_order(bench: &Bench, recording: &trace::Recording) {
    bench.exact(recording);
    let replayed = |order| {
        let (_result, place) = bench.replay(order, TraceTiming::Asap);
        disordered(&place.path().join("fslab-trace"))
    };
    for _ in 0..3 {
        assert_eq!(replayed(TraceOrder::Resources), 0);
    }
    // The system may run the tasks in order by chance.
    assert!((0..500).any(|_| replayed(TraceOrder::Tasks) > 0));
}

#[test]
fn a_process_follows_the_messages_of_a_pipe() {
    let bench = Bench::new();
    let script = format!(
        "cd {} && for i in $(seq 0 {}); do head -c {SIZE} /dev/zero > before-$i; \
         if [ $((i % 2)) = 0 ]; then echo $i; else env echo $i; fi; done | \
         while read i; do : > after-$i; done",
        bench.root.display(),
        MESSAGES - 1
    );
    let recording = bench.record(&["sh", "-c", &script]);
    keeps_order(&bench, &recording);
}

#[test]
fn a_process_follows_the_end_of_a_pipe() {
    let bench = Bench::new();
    follows_end_of_fifo(&bench, "../pipe");
}

#[test]
fn a_process_follows_the_end_of_a_fifo_below_the_root() {
    let bench = Bench::new();
    follows_end_of_fifo(&bench, "pipe");
    // The FIFO existed before.
    let bench = Bench::new();
    fs::create_dir(bench.root.join("old")).unwrap();
    let fifo = bench.root.join("old/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0)
        .unwrap();
    follows_end_of_fifo(&bench, "old/pipe");
}

fn follows_end_of_fifo(bench: &Bench, fifo: &str) {
    // The shell does not wait for the end of the process in the background.
    let script = format!(
        "cd {}; : > first; test -p {fifo} || mkfifo {fifo}; \
         (echo; head -c {} /dev/zero > before-0; true) > {fifo} & \
         while read x; do :; done < {fifo}; : > after-0",
        bench.root.display(),
        MESSAGES * SIZE
    );
    let recording = bench.record(&["sh", "-c", &script]);
    keeps_order(bench, &recording);
}

#[test]
fn a_thread_follows_the_messages_of_a_socket() {
    let Some(root) = as_program() else {
        let bench = Bench::new();
        let recording = bench.record_test("order::a_thread_follows_the_messages_of_a_socket");
        return keeps_order(&bench, &recording);
    };
    let (receive, send) = UnixStream::pair().unwrap();
    messages(&root, || send, || receive);
}

#[test]
fn a_server_follows_the_messages_of_its_clients() {
    let Some(root) = as_program() else {
        let bench = Bench::new();
        let recording = bench.record_test("order::a_server_follows_the_messages_of_its_clients");
        return keeps_order(&bench, &recording);
    };
    let path = root.join("socket");
    let server = UnixListener::bind(&path).unwrap();
    messages(&root, || UnixStream::connect(path).unwrap(), || server.accept().unwrap().0);
}

#[test]
fn a_client_follows_the_messages_of_a_tcp_server() {
    let Some(root) = as_program() else {
        let bench = Bench::new();
        let recording = bench.record_test("order::a_client_follows_the_messages_of_a_tcp_server");
        return keeps_order(&bench, &recording);
    };
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    messages(&root, || server.accept().unwrap().0, || TcpStream::connect(address).unwrap());
}

/// A thread sends a byte after each file, and this thread receives it.
fn messages<S: Write, R: Read>(
    root: &Path,
    sender: impl FnOnce() -> S + Send,
    receiver: impl FnOnce() -> R,
) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut socket = sender();
            for message in 0..MESSAGES {
                before(root, message);
                socket.write_all(&[1]).unwrap();
            }
        });
        let mut socket = receiver();
        for message in 0..MESSAGES {
            socket.read_exact(&mut [0]).unwrap();
            after(root, message);
        }
    });
}

#[test]
fn a_thread_follows_the_data_of_splice() {
    let Some(root) = as_program() else {
        let bench = Bench::new();
        let recording = bench.record_test("order::a_thread_follows_the_data_of_splice");
        return keeps_order(&bench, &recording);
    };
    let (receive, send) = io::pipe().unwrap();
    let (receive, send) = (OwnedFd::from(receive), OwnedFd::from(send));
    let splice = |from: &OwnedFd, to: &OwnedFd| {
        let (none, length) = (std::ptr::null_mut(), 4);
        // SAFETY: without offsets, the call takes no pointers.
        unsafe { libc::splice(from.as_raw_fd(), none, to.as_raw_fd(), none, length, 0) }
    };
    fs::write(root.join("source"), vec![7; 4 * MESSAGES]).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let source = OwnedFd::from(File::open(root.join("source")).unwrap());
            for message in 0..MESSAGES {
                before(&root, message);
                assert_eq!(splice(&source, &send), 4);
            }
        });
        for message in 0..MESSAGES {
            let file = File::create(root.join(format!("after-{message}"))).unwrap();
            assert_eq!(splice(&receive, &OwnedFd::from(file)), 4);
        }
    });
}

#[test]
fn a_thread_follows_the_events_of_a_counter() {
    let Some(root) = as_program() else {
        let bench = Bench::new();
        let recording = bench.record_test("order::a_thread_follows_the_events_of_a_counter");
        return keeps_order(&bench, &recording);
    };
    // SAFETY: it has no precondition.
    let counter = unsafe { libc::eventfd(0, libc::EFD_SEMAPHORE) };
    assert!(counter >= 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for message in 0..MESSAGES {
                before(&root, message);
                let one = 1u64;
                // SAFETY: the number is live memory of this size.
                let sent = unsafe { libc::write(counter, (&raw const one).cast(), 8) };
                assert_eq!(sent, 8);
            }
        });
        for message in 0..MESSAGES {
            let mut one = 0u64;
            // SAFETY: the number is live memory of this size.
            let received = unsafe { libc::read(counter, (&raw mut one).cast(), 8) };
            assert_eq!((received, one), (8, 1));
            after(&root, message);
        }
    });
}

#[test]
fn a_thread_follows_the_wakes_of_a_futex() {
    let Some(root) = as_program() else {
        let bench = Bench::new();
        let recording = bench.record_test("order::a_thread_follows_the_wakes_of_a_futex");
        return keeps_order(&bench, &recording);
    };
    let sent = AtomicU32::new(0);
    let futex = |command: i32, value: u32| {
        let none = std::ptr::null::<libc::timespec>();
        // SAFETY: the futex is live memory.
        unsafe { libc::syscall(libc::SYS_futex, sent.as_ptr(), command, value, none) }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for message in 0..MESSAGES {
                before(&root, message);
                sent.fetch_add(1, SeqCst);
                futex(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
            }
        });
        for (number, message) in (0u32..).zip(0..MESSAGES) {
            // A call even if the message is there.
            futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, number);
            while sent.load(SeqCst) <= number {
                futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, number);
            }
            after(&root, message);
        }
    });
}

#[test]
fn a_thread_follows_the_end_of_another() {
    let Some(root) = as_program() else {
        let bench = Bench::new();
        let recording = bench.record_test("order::a_thread_follows_the_end_of_another");
        return keeps_order(&bench, &recording);
    };
    File::create(root.join("first")).unwrap();
    let directory = root.clone();
    let thread = thread::spawn(move || {
        // The other thread waits by then: a thread that has ended is joined without a call.
        thread::sleep(Duration::from_millis(300));
        let mut file = File::create(directory.join("before-0")).unwrap();
        for _ in 0..MESSAGES {
            file.write_all(&vec![1; SIZE]).unwrap();
        }
    });
    thread.join().unwrap();
    after(&root, 0);
}
