//! Where the devices of a process meet for collective ops.
//!
//! Devices form groups, by key, of a size that the first to come says. The calls of a group that have the same instance key meet:
//! each brings a value, and once all are there the last to come computes what each gets. Nobody holds a thread while it
//! waits. What goes wrong in a call ends all, and those that come later: nobody could tell who waits for whom any more.

use crate::Cancellation;
use ff_tensor::{DataType, Result, Shape, Status, Tensor, ensure, status};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A call of one device.
pub struct CollectiveCall {
    /// Key of the group.
    pub group: i64,
    /// How many devices the group has.
    pub size: usize,
    /// Key of the instance in its group.
    pub instance: i64,
    /// Full name of the device.
    pub device: String,
    /// What is done, by the reference's numbers, which its messages say: 0 reduces, 1 broadcasts, 2 gathers, 4 exchanges.
    pub kind: u8,
    /// Element type of the values.
    pub dtype: DataType,
    /// The shape in which all must agree.
    pub shape: Shape,
    /// What the device brings; none when it only takes.
    pub value: Option<Tensor>,
    /// Makes of the values of all, in the order of their devices, what each of them gets.
    pub combine: Combine,
    /// Called once, from any thread, with what the device gets.
    pub done: CollectiveDone,
}

/// See [`CollectiveCall::combine`].
pub type Combine = Box<dyn FnOnce(Vec<Option<Tensor>>) -> Result<Vec<Tensor>> + Send>;
/// See [`CollectiveCall::done`].
pub type CollectiveDone = Box<dyn FnOnce(Result<Tensor>) + Send>;

struct Waiting {
    number: u64,
    call: CollectiveCall,
    /// Where to take the watch for cancellation back.
    watch: Option<(Cancellation, u64)>,
}

struct Group {
    size: usize,
    devices: Vec<String>,
}

/// Calls that wait for each other, of different devices.
type Meeting = Vec<Waiting>;

#[derive(Default)]
struct State {
    next: u64,
    aborted: Option<Status>,
    groups: FxHashMap<i64, Group>,
    /// By keys of group and instance. A device that is in the first meeting already waits in a later one.
    meetings: FxHashMap<(i64, i64), Vec<Meeting>>,
}

/// See the module. All operations may be called from any thread; callbacks run without a lock.
#[derive(Default)]
pub struct Collectives {
    state: Mutex<State>,
}

/// What calls get once collective ops have been ended for this cause.
fn aborted(cause: &Status) -> Status {
    Status::new(
        cause.code(),
        format!(
            "Collective ops is aborted by: {}\nThe error could be from a previous operation. Restart your program to reset.",
            cause.message()
        ),
    )
}

impl State {
    /// Whether a call may meet others; counts its device in.
    fn admit(&mut self, call: &CollectiveCall) -> Result<()> {
        let (key, device) = (call.group, &call.device);
        let group = self.groups.entry(key).or_insert_with(|| Group {
            size: call.size,
            devices: Vec::new(),
        });
        ensure!(
            group.size == call.size,
            Internal,
            "Device {device} is joining a group with size {}, but that group has size {} (group_key={key})",
            call.size,
            group.size
        );
        if !group.devices.contains(device) {
            ensure!(
                group.devices.len() < group.size,
                Internal,
                "Device {device} is joining a group that is already full (group_key={key})"
            );
            group.devices.push(device.clone());
        }
        Ok(())
    }

    /// The meeting of its keys that a call belongs to, by number; the calls there must be alike.
    fn place(&self, call: &CollectiveCall) -> Result<usize> {
        let Some(meetings) = self.meetings.get(&(call.group, call.instance)) else {
            return Ok(0);
        };
        let lacks = |meeting: &Meeting| meeting.iter().all(|other| other.call.device != call.device);
        let place = meetings.iter().position(lacks).unwrap_or(meetings.len());
        if let Some(first) = meetings.get(place).and_then(|meeting| meeting.first()) {
            check_alike(call, &first.call)?;
        }
        Ok(place)
    }

    /// Puts a call into a meeting; gives the whole meeting once nobody is missing.
    fn add(&mut self, call: CollectiveCall, place: usize, number: u64) -> Option<Meeting> {
        let (key, size) = ((call.group, call.instance), call.size);
        let meetings = self.meetings.entry(key).or_default();
        if place == meetings.len() {
            meetings.push(Meeting::new());
        }
        let meeting = &mut meetings[place];
        meeting.push(Waiting {
            number,
            call,
            watch: None,
        });
        if meeting.len() < size {
            return None;
        }
        let meeting = meetings.remove(place);
        if meetings.is_empty() {
            self.meetings.remove(&key);
        }
        Some(meeting)
    }

    fn find(&mut self, number: u64) -> Option<&mut Waiting> {
        let meetings = self.meetings.values_mut().flatten();
        meetings.flatten().find(|waiting| waiting.number == number)
    }

    fn remove(&mut self, number: u64) -> Option<Waiting> {
        let call = &self.find(number)?.call;
        let key = (call.group, call.instance);
        let meetings = self.meetings.get_mut(&key)?;
        let its = |waiting: &Waiting| waiting.number == number;
        let place = meetings.iter().position(|meeting| meeting.iter().any(its))?;
        let meeting = &mut meetings[place];
        let waiting = meeting.remove(meeting.iter().position(its)?);
        if meeting.is_empty() {
            meetings.remove(place);
        }
        if meetings.is_empty() {
            self.meetings.remove(&key);
        }
        Some(waiting)
    }
}

fn check_alike(call: &CollectiveCall, first: &CollectiveCall) -> Result<()> {
    ensure!(
        (call.kind, call.dtype) == (first.kind, first.dtype),
        Internal,
        "Collective instance {} expected type {} and data_type {} but got type {} and data_type {}",
        call.instance,
        first.kind,
        first.dtype.0,
        call.kind,
        call.dtype.0
    );
    ensure!(
        call.shape == first.shape,
        InvalidArgument,
        "Shape mismatch in the collective instance {}. Op at device {} expected shape {} but another member in the group expected shape {}. This is likely due to different input shapes at different members of the collective op.",
        call.instance,
        call.device,
        call.shape,
        first.shape
    );
    Ok(())
}

/// Names with longer numbers are of later devices.
fn order(device: &str) -> (usize, &str) {
    (device.len(), device)
}

fn forget(watch: Option<(Cancellation, u64)>) {
    if let Some((cancellation, number)) = watch {
        cancellation.forget(number);
    }
}

impl Collectives {
    /// Meets the other devices of the group. Its `done` gets INTERNAL or INVALID_ARGUMENT when the calls do not fit together,
    /// the cause of the cancellation when that comes first, and the cause for which all were ended. Gives the number of a
    /// call that waits, to give up waiting.
    pub fn join(self: &Arc<Self>, call: CollectiveCall, cancellation: &Cancellation) -> Option<u64> {
        let mut state = self.state.lock();
        state.next += 1;
        let number = state.next;
        if let Some(cause) = &state.aborted {
            let error = aborted(cause);
            drop(state);
            (call.done)(Err(error));
            return None;
        }
        match state.admit(&call).and_then(|()| state.place(&call)) {
            Ok(place) => {
                let met = state.add(call, place, number);
                drop(state);
                if let Some(meeting) = met {
                    self.meet(meeting);
                    return None;
                }
                self.watch(number, cancellation);
                Some(number)
            }
            Err(error) => {
                drop(state);
                (call.done)(Err(aborted(&error)));
                self.abort(error);
                None
            }
        }
    }

    /// Gives up waiting, for this cause, which ends all. Nothing happens when the call has ended.
    pub fn give_up(&self, number: u64, cause: Status) {
        let Some(waiting) = self.state.lock().remove(number) else {
            return;
        };
        forget(waiting.watch);
        (waiting.call.done)(Err(cause.clone()));
        self.abort(cause);
    }

    /// Ends all calls, those of later too, for this cause; the first cause stays.
    pub fn abort(&self, cause: Status) {
        let (waiting, error) = {
            let mut state = self.state.lock();
            let error = aborted(state.aborted.get_or_insert(cause));
            (std::mem::take(&mut state.meetings), error)
        };
        for waiting in waiting.into_values().flatten().flatten() {
            forget(waiting.watch);
            (waiting.call.done)(Err(error.clone()));
        }
    }

    fn meet(&self, mut meeting: Meeting) {
        meeting.sort_by(|a, b| order(&a.call.device).cmp(&order(&b.call.device)));
        let (mut values, mut dones, mut combine) = (Vec::new(), Vec::new(), None);
        for Waiting { call, watch, .. } in meeting {
            forget(watch);
            values.push(call.value);
            dones.push(call.done);
            combine = Some(call.combine);
        }
        let missing = || Err(status!(Internal, "nobody has met"));
        match combine.map_or_else(missing, |combine| combine(values)) {
            Ok(results) => dones
                .into_iter()
                .zip(results)
                .for_each(|(done, result)| done(Ok(result))),
            Err(error) => {
                dones.into_iter().for_each(|done| done(Err(aborted(&error))));
                self.abort(error);
            }
        }
    }

    /// Turns a call away when its step is cancelled; the others go on waiting.
    fn watch(self: &Arc<Self>, number: u64, cancellation: &Cancellation) {
        let (this, cause) = (Arc::downgrade(self), cancellation.clone());
        let watch = cancellation.on_cancel(move || {
            let waiting = this.upgrade().and_then(|this| this.state.lock().remove(number));
            if let (Some(waiting), Err(error)) = (waiting, cause.check()) {
                (waiting.call.done)(Err(error));
            }
        });
        let mut state = self.state.lock();
        match state.find(number) {
            Some(waiting) => waiting.watch = Some((cancellation.clone(), watch)),
            None => {
                drop(state);
                cancellation.forget(watch);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use ff_tensor::Code;
    use std::sync::mpsc;

    struct Meetings(Arc<Collectives>);

    impl Meetings {
        /// A call of one device in a group of two; all get the sum of what both bring.
        fn join(&self, device: &str, value: f32, cancellation: &Cancellation) -> mpsc::Receiver<Result<f32>> {
            let (sender, receiver) = mpsc::channel();
            let add = |values: Vec<Option<Tensor>>| {
                let number = |value: &Option<Tensor>| value.as_ref().unwrap().single::<f32>().unwrap();
                let sum = Tensor::scalar(values.iter().map(number).sum::<f32>())?;
                Ok(vec![sum; values.len()])
            };
            let call = CollectiveCall {
                group: 1,
                size: 2,
                instance: 1,
                device: device.to_string(),
                kind: 0,
                dtype: DataType::FLOAT,
                shape: Shape::scalar(),
                value: Some(Tensor::scalar(value).unwrap()),
                combine: Box::new(add),
                done: Box::new(move |result| {
                    drop(sender.send(result.and_then(|value| value.single::<f32>())));
                }),
            };
            self.0.join(call, cancellation);
            receiver
        }

        fn call(&self, device: &str, value: f32) -> mpsc::Receiver<Result<f32>> {
            self.join(device, value, &Cancellation::default())
        }
    }

    #[test]
    fn calls_of_a_device_meet_in_their_order() {
        let meetings = Meetings(Arc::default());
        let early = [1.0, 2.0, 3.0].map(|value| meetings.call("a", value));
        let late = [10.0, 20.0, 30.0].map(|value| meetings.call("b", value));
        for (call, expected) in early.iter().chain(&late).zip([11.0, 22.0, 33.0].repeat(2)) {
            assert_eq!(call.try_recv().unwrap().unwrap(), expected);
        }
        assert!(meetings.0.state.lock().meetings.is_empty());
    }

    #[test]
    fn a_cancelled_call_leaves_its_place_to_the_next() {
        let meetings = Meetings(Arc::default());
        let cancellation = Cancellation::default();
        let cancelled = meetings.join("a", 1.0, &cancellation);
        cancellation.cancel(status!(Cancelled, "enough"));
        assert_eq!(cancelled.try_recv().unwrap().unwrap_err().message(), "enough");
        assert!(meetings.0.state.lock().meetings.is_empty());
        let (b, a) = (meetings.call("b", 10.0), meetings.call("a", 2.0));
        assert_eq!(a.try_recv().unwrap().unwrap(), 12.0);
        assert_eq!(b.try_recv().unwrap().unwrap(), 12.0);
    }

    #[test]
    fn a_device_too_many_ends_all() {
        let meetings = Meetings(Arc::default());
        let (a, b) = (meetings.call("a", 1.0), meetings.call("b", 2.0));
        assert!(a.try_recv().unwrap().is_ok() && b.try_recv().unwrap().is_ok());
        let waiting = meetings.call("a", 3.0);
        for call in [meetings.call("c", 4.0), waiting, meetings.call("b", 5.0)] {
            let error = call.try_recv().unwrap().unwrap_err();
            assert_eq!(error.code(), Code::Internal);
            assert!(error.message().contains("already full"), "{error}");
        }
    }
}
