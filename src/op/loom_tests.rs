//! What threads share, in all interleavings with a few switches between threads (see `make loom`): rendezvous, mailbox,
//! monitor and cancellation lose nothing, do nothing twice, and let nobody wait for ever.

use crate::{Cancellation, Mailbox, Monitor, Outcome, Rendezvous, Value};
use ff_tensor::{Code, Result, Tensor, status};
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::sync::Arc;

/// Runs a body in every interleaving with at most `switches` forced switches, or LOOM_MAX_PREEMPTIONS if that is less.
fn in_every_order(switches: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    let most = model.preemption_bound.unwrap_or(switches);
    model.preemption_bound = Some(most.min(switches));
    model.max_branches = 20_000;
    model.check(body);
}

fn number(value: &Value) -> usize {
    match value {
        Value::Tensor(tensor) => tensor.single::<i32>().unwrap() as usize,
        _ => 0,
    }
}

fn value(number: i32) -> Value {
    Tensor::scalar(number).unwrap().into()
}

/// What came of calls: how many ended well and badly, and the sum of their values.
#[derive(Default)]
struct Tally {
    fine: AtomicUsize,
    failed: AtomicUsize,
    sum: AtomicUsize,
}

impl Tally {
    fn count(&self, values: Result<usize>) {
        match values {
            Ok(value) => {
                self.fine.fetch_add(1, Ordering::SeqCst);
                self.sum.fetch_add(value, Ordering::SeqCst);
            }
            Err(_) => {
                self.failed.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    fn now(&self) -> (usize, usize, usize) {
        let load = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
        (load(&self.fine), load(&self.failed), load(&self.sum))
    }
}

fn receive(rendezvous: &Arc<Rendezvous>, cancellation: &Cancellation, tally: &Arc<Tally>) {
    let tally = tally.clone();
    let done = move |value: Result<Value>| tally.count(value.map(|value| number(&value)));
    rendezvous.receive("key", cancellation, Box::new(done));
}

#[test]
fn loom_each_value_is_received_once() {
    in_every_order(3, || {
        let (rendezvous, tally) = (Arc::new(Rendezvous::default()), Arc::new(Tally::default()));
        let cancellation = Cancellation::default();
        let sender = rendezvous.clone();
        let sends = thread::spawn(move || {
            sender.send("key", value(1));
            sender.send("key", value(2));
        });
        receive(&rendezvous, &cancellation, &tally);
        receive(&rendezvous, &cancellation, &tally);
        sends.join().unwrap();
        assert_eq!(tally.now(), (2, 0, 3));
    });
}

#[test]
fn loom_a_receiver_hears_of_a_value_or_of_the_end() {
    in_every_order(3, || {
        let (rendezvous, tally) = (Arc::new(Rendezvous::default()), Arc::new(Tally::default()));
        let cancellation = Cancellation::default();
        let (sender, stopped) = (rendezvous.clone(), cancellation.clone());
        let sends = thread::spawn(move || sender.send("key", value(5)));
        let stops = thread::spawn(move || stopped.cancel(status!(Cancelled, "stop")));
        receive(&rendezvous, &cancellation, &tally);
        sends.join().unwrap();
        stops.join().unwrap();
        let (fine, failed, sum) = tally.now();
        assert_eq!((fine + failed, sum), (1, 5 * fine));
    });
}

#[test]
fn loom_a_mailbox_wakes_its_reader() {
    in_every_order(3, || {
        let mailbox = Arc::new(Mailbox::<usize>::default());
        let writers: Vec<_> = (1..3)
            .map(|letter| {
                let mailbox = mailbox.clone();
                thread::spawn(move || assert!(!mailbox.put(letter)))
            })
            .collect();
        let mut sum = 0;
        while sum < 3 {
            mailbox.wait();
            sum += mailbox.take().into_iter().sum::<usize>();
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!((sum, mailbox.take_one()), (3, None));
    });
}

/// The hand-over of a run that parks: whoever brings a letter to a parked reader goes on for it.
#[test]
fn loom_a_parked_reader_goes_on_once_for_each_parking() {
    in_every_order(3, || {
        let (mailbox, sum) = (
            Arc::new(Mailbox::<usize>::default()),
            Arc::new(AtomicUsize::new(0)),
        );
        let reading = Arc::new(AtomicUsize::new(1));
        let read = {
            let (mailbox, sum, reading) = (mailbox.clone(), sum.clone(), reading.clone());
            move || loop {
                for letter in mailbox.take() {
                    sum.fetch_add(letter, Ordering::SeqCst);
                }
                // Not after it has parked: the next reader may have begun.
                assert_eq!(reading.load(Ordering::SeqCst), 1);
                reading.store(0, Ordering::SeqCst);
                if mailbox.park() {
                    return;
                }
                reading.store(1, Ordering::SeqCst);
            }
        };
        let writers: Vec<_> = (1..3)
            .map(|letter| {
                let (mailbox, reading, read) = (mailbox.clone(), reading.clone(), read.clone());
                thread::spawn(move || {
                    if mailbox.put(letter) {
                        assert_eq!(reading.swap(1, Ordering::SeqCst), 0);
                        read();
                    }
                })
            })
            .collect();
        read();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!((sum.load(Ordering::SeqCst), mailbox.take_one()), (3, None));
    });
}

#[test]
fn loom_a_wake_is_not_lost() {
    in_every_order(3, || {
        let (mailbox, cancellation) = (Arc::new(Mailbox::<usize>::default()), Cancellation::default());
        let (woken, stopped) = (mailbox.clone(), cancellation.clone());
        let callback = cancellation.on_cancel(move || woken.wake());
        let stops = thread::spawn(move || stopped.cancel(status!(Cancelled, "stop")));
        while !cancellation.is_cancelled() {
            mailbox.wait();
        }
        cancellation.forget(callback);
        assert_eq!(cancellation.check().unwrap_err().code(), Code::Cancelled);
        stops.join().unwrap();
    });
}

/// A queue of one place: a number that is there or not.
type Place = Option<usize>;

const BRINGING: usize = 0;
const TAKING: usize = 1;

fn bring(monitor: &Arc<Monitor<Place>>, cancellation: &Cancellation, number: usize, tally: &Arc<Tally>) {
    let put = move |place: &mut Place| match place {
        None => {
            *place = Some(number);
            Some(())
        }
        Some(_) => None,
    };
    if monitor.attempt(BRINGING, put).is_some() {
        return tally.count(Ok(0));
    }
    let (tally, attempt) = (tally.clone(), move |place: &mut Place| match put(place) {
        Some(()) => Outcome::Done(Ok(Vec::new())),
        None => Outcome::Waits,
    });
    let done = move |ended: crate::Ended| tally.count(ended.map(|_| 0));
    monitor.submit(BRINGING, cancellation, attempt, Box::new(done));
}

fn take(monitor: &Arc<Monitor<Place>>, cancellation: &Cancellation, tally: &Arc<Tally>) {
    if let Some(number) = monitor.attempt(TAKING, Option::take) {
        return tally.count(Ok(number));
    }
    let attempt = |place: &mut Place| match place.take() {
        Some(number) => Outcome::Done(Ok(vec![value(number as i32)])),
        None => Outcome::Waits,
    };
    let tally = tally.clone();
    let done = move |ended: crate::Ended| tally.count(ended.map(|values| number(&values[0])));
    monitor.submit(TAKING, cancellation, attempt, Box::new(done));
}

#[test]
fn loom_what_is_brought_is_taken() {
    in_every_order(2, || {
        let (monitor, tally) = (Monitor::<Place>::new(None, 2, true), Arc::new(Tally::default()));
        let (brought, cancellation) = (Arc::new(Tally::default()), Cancellation::default());
        let brings: Vec<_> = (1..3)
            .map(|number| {
                let (monitor, brought) = (monitor.clone(), brought.clone());
                let cancellation = cancellation.clone();
                thread::spawn(move || bring(&monitor, &cancellation, number, &brought))
            })
            .collect();
        take(&monitor, &cancellation, &tally);
        take(&monitor, &cancellation, &tally);
        brings.into_iter().for_each(|bring| bring.join().unwrap());
        assert_eq!((tally.now(), brought.now()), ((2, 0, 3), (2, 0, 0)));
        assert_eq!((monitor.waiting(BRINGING), monitor.waiting(TAKING)), (0, 0));
        assert!(monitor.read(Option::is_none));
    });
}

#[test]
fn loom_who_is_cancelled_takes_nothing() {
    in_every_order(3, || {
        let (monitor, tally) = (Monitor::<Place>::new(None, 2, true), Arc::new(Tally::default()));
        let (brought, cancellation) = (Arc::new(Tally::default()), Cancellation::default());
        let (stopped, source) = (cancellation.clone(), monitor.clone());
        let its_brought = brought.clone();
        let stops = thread::spawn(move || stopped.cancel(status!(Cancelled, "stop")));
        let brings = thread::spawn(move || bring(&source, &Cancellation::default(), 7, &its_brought));
        take(&monitor, &cancellation, &tally);
        stops.join().unwrap();
        brings.join().unwrap();
        let (fine, failed, sum) = tally.now();
        assert_eq!((fine + failed, sum), (1, 7 * fine));
        assert_eq!(brought.now(), (1, 0, 0));
        assert_eq!(monitor.read(|place| place.is_some()), fine == 0);
        assert_eq!(monitor.waiting(TAKING), 0);
    });
}
