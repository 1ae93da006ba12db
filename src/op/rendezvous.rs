//! Where the values that `Send` leaves wait for `Recv`, within one step.
//!
//! Values of one key are received in the order in which they were sent; whoever comes first waits, and a receiver that
//! waits holds no thread. A dead value is sent too, as nothing. Not here: transfers between the devices of a session.

use crate::sync::{Mutex, lock};
use crate::{Cancellation, Value};
use ff_tensor::Result;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Called once with the value or the cause of the cancellation, from any thread.
pub type Received = Box<dyn FnOnce(Result<Value>) + Send>;

struct Receiver {
    number: u64,
    done: Received,
    /// Where to take the watch for cancellation back.
    watch: Option<(Cancellation, u64)>,
}

#[derive(Default)]
struct Place {
    values: VecDeque<Value>,
    receivers: VecDeque<Receiver>,
}

#[derive(Default)]
struct Places {
    next: u64,
    by_key: FxHashMap<String, Place>,
}

/// See the module. All operations may be called from any thread; callbacks run without a lock.
pub struct Rendezvous {
    places: Mutex<Places>,
}

impl Default for Rendezvous {
    fn default() -> Rendezvous {
        Rendezvous {
            places: Mutex::new(Places::default()),
        }
    }
}

impl Rendezvous {
    /// Leaves a value, absent when it is dead, for who receives it.
    pub fn send(&self, key: &str, value: Value) {
        let receiver = {
            let mut places = lock(&self.places);
            let place = match places.by_key.get_mut(key) {
                Some(place) => place,
                None => places.by_key.entry(key.to_string()).or_default(),
            };
            match place.receivers.pop_front() {
                Some(receiver) => receiver,
                None => return place.values.push_back(value),
            }
        };
        if let Some((cancellation, number)) = receiver.watch {
            cancellation.forget(number);
        }
        (receiver.done)(Ok(value));
    }

    /// Calls `done` with the value of a key once it is sent, or with the cause of the cancellation if that comes first.
    pub fn receive(self: &Arc<Self>, key: &str, cancellation: &Cancellation, done: Received) {
        let number = {
            let mut places = lock(&self.places);
            places.next += 1;
            let number = places.next;
            let place = match places.by_key.get_mut(key) {
                Some(place) => place,
                None => places.by_key.entry(key.to_string()).or_default(),
            };
            if let Some(value) = place.values.pop_front() {
                drop(places);
                return done(Ok(value));
            }
            place.receivers.push_back(Receiver {
                number,
                done,
                watch: None,
            });
            number
        };
        self.watch(key, number, cancellation);
    }

    /// Turns a receiver away when its step is cancelled.
    fn watch(self: &Arc<Self>, key: &str, number: u64, cancellation: &Cancellation) {
        let (this, cause, its_key) = (self.clone(), cancellation.clone(), key.to_string());
        let watch = cancellation.on_cancel(move || {
            if let (Some(receiver), Err(error)) = (this.take(&its_key, number), cause.check()) {
                (receiver.done)(Err(error));
            }
        });
        let mut places = lock(&self.places);
        let place = places.by_key.get_mut(key);
        let receiver = place.and_then(|place| place.receivers.iter_mut().find(|its| its.number == number));
        match receiver {
            Some(receiver) => receiver.watch = Some((cancellation.clone(), watch)),
            None => {
                drop(places);
                cancellation.forget(watch);
            }
        }
    }

    fn take(&self, key: &str, number: u64) -> Option<Receiver> {
        let mut places = lock(&self.places);
        let receivers = &mut places.by_key.get_mut(key)?.receivers;
        let index = receivers.iter().position(|its| its.number == number)?;
        receivers.remove(index)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use ff_tensor::{Tensor, status};
    use std::sync::mpsc;

    fn number(value: &Value) -> f32 {
        match value {
            Value::Tensor(tensor) => tensor.as_slice::<f32>().unwrap()[0],
            _ => f32::NAN,
        }
    }

    #[test]
    fn values_come_in_order_whoever_is_first() {
        let rendezvous = Arc::new(Rendezvous::default());
        let (sender, receiver) = mpsc::channel();
        let receive = || {
            let sender = sender.clone();
            let done = move |value: Result<Value>| drop(sender.send(value.map(|value| number(&value))));
            rendezvous.receive("k", &Cancellation::default(), Box::new(done));
        };
        let send = |value: f32| rendezvous.send("k", Tensor::scalar(value).unwrap().into());
        receive();
        receive();
        [1.0, 2.0, 3.0, 4.0].into_iter().for_each(send);
        receive();
        receive();
        let got: Vec<f32> = receiver.try_iter().map(|value| value.unwrap()).collect();
        assert_eq!(got, [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_cancelled_step_receives_its_cause() {
        let rendezvous = Arc::new(Rendezvous::default());
        let cancellation = Cancellation::default();
        let (sender, receiver) = mpsc::channel();
        let done = move |value: Result<Value>| drop(sender.send(value.map(|value| number(&value))));
        rendezvous.receive("k", &cancellation, Box::new(done));
        cancellation.cancel(status!(Cancelled, "enough"));
        assert_eq!(receiver.recv().unwrap().unwrap_err().message(), "enough");
        // The next value waits for another.
        rendezvous.send("k", Value::Absent);
        assert_eq!(lock(&rendezvous.places).by_key["k"].values.len(), 1);
    }
}
