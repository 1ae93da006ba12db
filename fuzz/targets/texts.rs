//! Targets whose inputs are text messages.

use super::{Form, Target};
use crate::random::Random;
use crate::text;
use ff_c_api::ffi::Array;
use ff_c_api::*;
use ff_proto::{ApiDefs, ConfigProto, FunctionDef, GraphDef, SavedModel, TensorProto};

/// Text forms of several messages.
pub static TEXT: Target = Target {
    name: "text",
    about: "text messages: parse, print, parse again",
    form: Form::Bytes,
    from: &["text"],
    make,
    run,
};

/// Texts for `TF_ApiDefMapPut`.
pub static API_DEF: Target = Target {
    name: "api_def",
    about: "texts of ApiDefs: into the map and out",
    form: Form::Bytes,
    from: &["api_def"],
    make,
    run: api_def,
};

/// Makes an input: a text changed by words mostly, as bytes sometimes.
pub fn make(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let seed = random.pick(seeds);
    if random.one_in(10) {
        let mut bytes = seed.clone();
        crate::wire::bytes(&mut bytes, random);
        return bytes;
    }
    let donor = random.pick(seeds);
    let (seed, donor) = (String::from_utf8_lossy(seed), String::from_utf8_lossy(donor));
    text::mutate(&seed, &donor, random).into_bytes()
}

/// Reads a text as a message; what is printed of it must read as the same message (but for the sign of not-a-number, which
/// texts do not have), so print the same.
fn round_trip<M: ff_proto::Message + ff_proto::Name + Default + PartialEq>(text: &str) {
    let Ok(message) = ff_proto::text::parse::<M>(text) else {
        return;
    };
    if let Ok(printed) = ff_proto::text::print(&message) {
        let again = ff_proto::text::parse::<M>(&printed).and_then(|again| ff_proto::text::print(&again));
        assert_eq!(again.as_ref(), Ok(&printed));
    }
}

fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    round_trip::<GraphDef>(&text);
    round_trip::<SavedModel>(&text);
    round_trip::<FunctionDef>(&text);
    round_trip::<ConfigProto>(&text);
    round_trip::<TensorProto>(&text);
    round_trip::<ApiDefs>(&text);
}

fn api_def(bytes: &[u8]) {
    let mut status = TF_NewStatus();
    let list = ff_proto::OpList {
        op: ["Add", "Const"]
            .iter()
            .filter_map(|name| ff_op::schema::find(name))
            .map(|def| (*def).clone())
            .collect(),
    };
    let mut ops = TF_Buffer::of_message(&list).map(Box::new).ok();
    let mut map = TF_NewApiDefMap(ops.as_deref_mut(), Some(&mut status));
    let characters: Vec<std::ffi::c_char> = bytes.iter().map(|&byte| byte as std::ffi::c_char).collect();
    TF_ApiDefMapPut(
        map.as_deref_mut(),
        Array::new(&characters),
        characters.len(),
        Some(&mut status),
    );
    let name = b"Add".map(|byte| byte as std::ffi::c_char);
    let got = TF_ApiDefMapGet(
        map.as_deref_mut(),
        Array::new(&name),
        name.len(),
        Some(&mut status),
    );
    TF_DeleteBuffer(got);
    TF_DeleteApiDefMap(map);
    TF_DeleteBuffer(ops);
    TF_DeleteStatus(Some(status));
}
