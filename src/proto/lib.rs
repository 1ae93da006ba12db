//! The messages of the wire and file formats: GraphDef, SavedModel, ConfigProto, RunMetadata, checkpoints, events.
//!
//! The types are generated from the `.proto` files of this folder; names and field numbers are TensorFlow's. All of
//! package `tensorflow` is reachable from the root (`ff_proto::GraphDef`, `ff_proto::attr_value::Value`), the other
//! packages by their path (`ff_proto::messages::tensorflow::data`, `ff_proto::messages::xla`).
//!
//! * Decode large inputs from a `bytes::Bytes`: `bytes` fields are then slices of it and keep it alive; decoding from
//!   `&[u8]` copies them.
//! * Maps are `BTreeMap`: a message has one encoding.
//! * Messages nested deeper than 100 are a decoding error, as in the reference.
//! * Unknown fields are dropped when decoding; [`unknown`] keeps those that a round trip must not lose.
//! * [`text`] reads and writes the text form.
//!
//! No meaning is given to the messages here.

pub use bytes::Bytes;
pub use prost::{DecodeError, EncodeError, Message, Name};
pub use prost_types;

pub mod text;
pub mod unknown;

#[allow(missing_docs, clippy::all)]
pub mod messages {
    //! The generated types, in modules named after their protobuf packages.
    include!(concat!(env!("OUT_DIR"), "/messages.rs"));
}

pub use messages::tensorflow::*;
