//! Strings to one of a number of buckets.

use super::ELEMENTWISE;
use super::hash_functions::{fingerprint64, hash64, siphash};
use ff_op::{Kernel, KernelContext, Op};
use ff_tensor::{Result, Tensor, bail, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "StringToHashBucket",
        kernels: &[Kernel::native(|context| buckets(context, hash64))],
        ..ELEMENTWISE
    },
    &Op {
        name: "StringToHashBucketFast",
        kernels: &[Kernel::native(|context| buckets(context, fingerprint64))],
        ..ELEMENTWISE
    },
    &Op {
        name: "StringToHashBucketStrong",
        kernels: &[Kernel::native(strong)],
        ..ELEMENTWISE
    },
];

fn buckets(context: &mut KernelContext, hash: impl Fn(&[u8]) -> u64) -> Result<()> {
    let buckets = context.attrs().int("num_buckets")?;
    ensure!(
        buckets > 0,
        InvalidArgument,
        "num_buckets must be positive, got {buckets}"
    );
    let input = context.input(0)?;
    let strings = input.strings()?.iter();
    let hashed: Vec<i64> = strings
        .map(|string| (hash(string.as_bytes()) % buckets as u64) as i64)
        .collect();
    let output = Tensor::from_slice(input.shape().clone(), &hashed)?;
    context.set_output(0, output)
}

fn strong(context: &mut KernelContext) -> Result<()> {
    let [first, second] = context.attrs().ints("key")? else {
        bail!(InvalidArgument, "Key must have 2 elements");
    };
    let key = [*first as u64, *second as u64];
    buckets(context, |bytes| siphash(key, bytes))
}

#[cfg(test)]
fn texts() -> Tensor {
    let sentence = "hello world, this is a long string!".repeat(3);
    let repeated = [("x", 20), ("y", 40), ("z", 64), ("w", 65)].map(|(text, count)| text.repeat(count));
    let mut texts = vec!["", "a", "ab", "abc", "abcd", "12345678", &sentence];
    texts.extend(repeated.iter().map(String::as_str));
    crate::testing::strings(&[11], &texts)
}

#[cfg(test)]
const MANY: i64 = 1 << 62;

crate::op_cases! {
    plain: Case::op("StringToHashBucket").attr("num_buckets", MANY).input(texts()).gives(vector(&[
        105434511174508091i64, 2996632905371535868, 3579204183985781795, 1046625677629754806, 404301170780174469,
        421129128932463287, 3284265549939831654, 2648813785153059629, 2760375234777655417, 160759053204327832,
        752361075503145470,
    ]));
    fast: Case::op("StringToHashBucketFast").attr("num_buckets", MANY).input(texts()).gives(vector(&[
        1936946117179621455i64, 3694432073954588131, 3066228220894225694, 2640714258260161385, 1897425971756105985,
        3430003927990384362, 3535259793308998574, 3621402210320469444, 276292113409495006, 294799756062990872,
        3272011567211491968,
    ]));
    strong: Case::op("StringToHashBucketStrong").attr("num_buckets", MANY).attr("key", vec![123i64, 456])
        .input(texts()).gives(vector(&[
        887865449656487406i64, 2150915142212405420, 1186974370200342541, 742242908378057305, 2859666304309786263,
        4004217248140371583, 1432671320393830857, 3675803614113848381, 411560665529853827, 1673075272679981509,
        3248169505280179752,
    ]));
    short_key: Case::op("StringToHashBucketStrong").attr("num_buckets", 3i64).attr("key", vec![1i64])
        .input(texts()).fails(Code::InvalidArgument);
}
