//! The elements of a tensor as text, for messages of Assert and the output of Print.
//!
//! There are two styles: the one of Assert and Print (`[1 2][3 4...]...`, the first elements) and the one of PrintV2 and
//! StringFormat (`[[1 2 ... 9]\n ...`, both ends of each dimension, strings quoted). Complex elements are `?`.

use crate::element::*;
use crate::numbers::{format_f32, format_f64};
use crate::{DataType, ResourceHandle, Tensor, bf16, f16};

impl Tensor {
    /// The first `max_entries` elements (all if negative) in rows in brackets, without outer brackets.
    pub fn summarize(&self, max_entries: i64) -> String {
        let limit = self.limit(max_entries);
        let mut text = String::new();
        if self.dtype() == DataType::BOOL && limit == 0 {
            return text;
        }
        let print = self.element_printer(false);
        if self.rank() < 2 || !self.has_rows() {
            self.print_flat(limit, &*print, &mut text);
        } else {
            self.print_rows(0, limit, &mut 0, &*print, &mut text);
        }
        if self.num_elements() > limit {
            text.push_str("...");
        }
        text
    }

    /// The first and last `max_entries` elements (all if negative) along each dimension, with brackets and line breaks.
    pub fn summarize_ends(&self, max_entries: i64) -> String {
        let limit = self.limit(max_entries);
        let mut text = String::new();
        if self.dtype() == DataType::BOOL && limit == 0 {
            return text;
        }
        let print = self.element_printer(true);
        if self.has_rows() {
            self.print_ends(0, limit, 0, &*print, &mut text);
            if self.rank() == 0 && limit == 0 {
                text = "...".to_string();
            }
            return text;
        }
        self.print_flat(limit, &*print, &mut text);
        if self.num_elements() > limit {
            text.push_str("...");
        }
        if self.rank() == 0 {
            text
        } else {
            format!("[{text}]")
        }
    }

    fn limit(&self, max_entries: i64) -> usize {
        usize::try_from(max_entries).map_or(self.num_elements(), |limit| limit.min(self.num_elements()))
    }

    /// Whether elements are printed in rows; the others are printed as one list.
    fn has_rows(&self) -> bool {
        let dtype = self.dtype();
        !dtype.is_complex() && dtype != DataType::RESOURCE && dtype != DataType::VARIANT
    }

    fn print_flat(&self, limit: usize, print: &Printer, text: &mut String) {
        for i in 0..limit {
            text.push_str(if i > 0 { " " } else { "" });
            print(i, text);
        }
    }

    /// The rest of the elements along `axis` from number `at`, until `limit` are printed.
    fn print_rows(&self, axis: usize, limit: usize, at: &mut usize, print: &Printer, text: &mut String) {
        let innermost = axis + 1 == self.rank();
        for i in 0..self.shape().dim(axis) {
            if *at >= limit {
                text.push_str(if innermost { "..." } else { "" });
                return;
            }
            if innermost {
                text.push_str(if i > 0 { " " } else { "" });
                print(*at, text);
                *at += 1;
            } else {
                text.push('[');
                self.print_rows(axis + 1, limit, at, print, text);
                text.push(']');
            }
        }
    }

    /// The elements along `axis` from number `start`: `ends` at the front and as many at the back.
    fn print_ends(&self, axis: usize, ends: usize, start: usize, print: &Printer, text: &mut String) {
        if axis == self.rank() {
            if self.num_elements() > 0 && ends > 0 {
                print(start, text);
            }
            return;
        }
        let count = self.shape().dim(axis);
        let stride: usize = self.dims()[axis + 1..]
            .iter()
            .map(|&extent| extent as usize)
            .product();
        let rest = self.rank() - 1 - axis;
        let separator = match rest {
            0 => " ".to_string(),
            _ => "\n".repeat(rest) + &" ".repeat(axis + 1),
        };
        text.push('[');
        for i in 0..ends.min(count) {
            text.push_str(if i > 0 { &separator } else { "" });
            self.print_ends(axis + 1, ends, start + i * stride, print, text);
        }
        if count > ends.saturating_mul(2) {
            text.push_str(&separator);
            text.push_str("...");
        }
        for i in ends.max(count.saturating_sub(ends))..count {
            text.push_str(&separator);
            self.print_ends(axis + 1, ends, start + i * stride, print, text);
        }
        text.push(']');
    }

    /// How the element of a number is printed.
    fn element_printer(&self, quoted: bool) -> Box<Printer<'_>> {
        match self.dtype() {
            DataType::FLOAT => self.printer(format_f32),
            DataType::DOUBLE => self.printer(format_f64),
            DataType::HALF => self.printer(|v: f16| format_f32(v.to_f32())),
            DataType::BFLOAT16 => self.printer(|v: bf16| format_f32(v.to_f32())),
            DataType::FLOAT8_E5M2 => self.printer(|v: Float8E5M2| format_f32(v.to_f32())),
            DataType::FLOAT8_E4M3FN => self.printer(|v: Float8E4M3Fn| format_f32(v.to_f32())),
            DataType::FLOAT8_E4M3FNUZ => self.printer(|v: Float8E4M3Fnuz| format_f32(v.to_f32())),
            DataType::FLOAT8_E4M3B11FNUZ => self.printer(|v: Float8E4M3B11Fnuz| format_f32(v.to_f32())),
            DataType::FLOAT8_E5M2FNUZ => self.printer(|v: Float8E5M2Fnuz| format_f32(v.to_f32())),
            DataType::FLOAT4_E2M1FN => self.printer(|v: Float4E2M1Fn| format_f32(v.to_f32())),
            DataType::INT64 => self.printer(|v: i64| v.to_string()),
            DataType::UINT32 => self.printer(|v: u32| v.to_string()),
            DataType::UINT64 => self.printer(|v: u64| v.to_string()),
            DataType::BOOL => self.printer(|v: Bool| u8::from(v.get()).to_string()),
            DataType::STRING => {
                let strings = self.strings().unwrap_or(&[]);
                Box::new(move |i, text| match (strings.get(i), quoted) {
                    (Some(string), true) => push_quoted(string.as_bytes(), text),
                    (Some(string), false) => text.push_str(&string.to_str_lossy()),
                    (None, _) => {}
                })
            }
            DataType::RESOURCE => {
                let handles = self.resources().unwrap_or(&[]);
                Box::new(move |i, text| {
                    handles
                        .get(i)
                        .into_iter()
                        .for_each(|handle| push_handle(handle, text))
                })
            }
            DataType::VARIANT => {
                let values = self.variants().unwrap_or(&[]);
                Box::new(move |i, text| {
                    let described = values.get(i).and_then(|value| value.object());
                    text.push_str(&format!(
                        "<{}>",
                        described.map_or(String::new(), |object| object.describe())
                    ));
                })
            }
            dtype if dtype.is_complex() => Box::new(|_, text| text.push('?')),
            _ => {
                let values = self.small_integers();
                Box::new(move |i, text| text.push_str(&values.get(i).map_or(String::new(), i32::to_string)))
            }
        }
    }

    fn printer<T: Element>(&self, format: impl Fn(T) -> String + 'static) -> Box<Printer<'_>> {
        let elements = self.as_slice::<T>().unwrap_or(&[]);
        Box::new(move |i, text| text.push_str(&elements.get(i).map_or(String::new(), |&value| format(value))))
    }
}

type Printer<'a> = dyn Fn(usize, &mut String) + 'a;

/// A string in double quotes with C escapes; bytes above 127 stay as they are.
fn push_quoted(bytes: &[u8], text: &mut String) {
    text.push('"');
    let mut plain = Vec::new();
    for &byte in bytes {
        match byte {
            b'\n' => plain.extend_from_slice(b"\\n"),
            b'\r' => plain.extend_from_slice(b"\\r"),
            b'\t' => plain.extend_from_slice(b"\\t"),
            b'"' | b'\'' | b'\\' => plain.extend_from_slice(&[b'\\', byte]),
            0..0x20 | 0x7f => plain.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            other => plain.push(other),
        }
    }
    text.push_str(&String::from_utf8_lossy(&plain));
    text.push('"');
}

fn push_handle(handle: &ResourceHandle, text: &mut String) {
    let held: Vec<String> = handle
        .dtypes_and_shapes
        .iter()
        .map(|(dtype, shape)| format!("DType enum: {}, Shape: {shape}", dtype.0))
        .collect();
    text.push_str(&format!(
        "<ResourceHandle(name=\"{}\", device=\"{}\", container=\"{}\", type=\"{}\", dtype and shapes : \"[ {} ]\")>",
        handle.name,
        handle.device,
        handle.container,
        handle.type_name,
        held.join(", ")
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HandleInfo, PartialShape, Shape, TString};

    fn numbers(dims: &[i64]) -> Tensor {
        let shape = Shape::new(dims).unwrap();
        let values: Vec<i32> = (0..shape.num_elements() as i32).collect();
        Tensor::from_slice(shape, &values).unwrap()
    }

    /// The texts are those of the reference.
    #[test]
    fn first_elements() {
        let summaries = |tensor: Tensor| [-1, 0, 1, 3, 5].map(|entries| tensor.summarize(entries));
        assert_eq!(
            summaries(numbers(&[4])),
            ["0 1 2 3", "...", "0...", "0 1 2...", "0 1 2 3"]
        );
        assert_eq!(summaries(numbers(&[])), ["0", "...", "0", "0", "0"]);
        assert_eq!(
            summaries(numbers(&[2, 3])),
            [
                "[0 1 2][3 4 5]",
                "...",
                "[0...]...",
                "[0 1 2]...",
                "[0 1 2][3 4...]..."
            ]
        );
        assert_eq!(
            summaries(numbers(&[2, 3, 4])),
            [
                "[[0 1 2 3][4 5 6 7][8 9 10 11]][[12 13 14 15][16 17 18 19][20 21 22 23]]",
                "...",
                "[[0...]]...",
                "[[0 1 2...]]...",
                "[[0 1 2 3][4...]]..."
            ]
        );
        assert_eq!(summaries(numbers(&[3, 0])), [""; 5]);
        let truths = Tensor::vector(&[Bool::TRUE, Bool::FALSE]).unwrap();
        assert_eq!(summaries(truths), ["1 0", "", "1...", "1 0", "1 0"]);
        let complex =
            Tensor::from_slice(Shape::new(&[2, 2]).unwrap(), &[Complex64::new(1.0, 2.0); 4]).unwrap();
        assert_eq!(
            summaries(complex),
            ["? ? ? ?", "...", "?...", "? ? ?...", "? ? ? ?"]
        );
    }

    /// The texts are those of the reference.
    #[test]
    fn both_ends() {
        let summaries = |tensor: Tensor| [-1, 0, 1, 3].map(|entries| tensor.summarize_ends(entries));
        assert_eq!(summaries(numbers(&[])), ["0", "...", "0", "0"]);
        assert_eq!(
            summaries(numbers(&[4])),
            ["[0 1 2 3]", "[ ...]", "[0 ... 3]", "[0 1 2 3]"]
        );
        assert_eq!(
            summaries(numbers(&[2, 3])),
            [
                "[[0 1 2]\n [3 4 5]]",
                "[\n ...]",
                "[[0 ... 2]\n [3 ... 5]]",
                "[[0 1 2]\n [3 4 5]]"
            ]
        );
        assert_eq!(
            numbers(&[5, 6, 7]).summarize_ends(1),
            "[[[0 ... 6]\n  ...\n  [35 ... 41]]\n\n ...\n\n [[168 ... 174]\n  ...\n  [203 ... 209]]]"
        );
        assert_eq!(summaries(numbers(&[0, 3])), ["[]"; 4]);
        assert_eq!(summaries(numbers(&[3, 0])), ["[\n ...]"; 4]);
        assert_eq!(summaries(numbers(&[2, 3, 0])), ["[\n\n ...]"; 4]);
        let complex = Tensor::vector(&[Complex128::new(1.0, 2.0); 4]).unwrap();
        assert_eq!(summaries(complex), ["[? ? ? ?]", "[...]", "[?...]", "[? ? ?...]"]);
        let scalar = Tensor::scalar(Complex128::new(1.0, 2.0)).unwrap();
        assert_eq!(summaries(scalar), ["?", "...", "?", "?"]);
        let truth = Tensor::scalar(Bool::TRUE).unwrap();
        assert_eq!(summaries(truth), ["1", "", "1", "1"]);
    }

    #[test]
    fn elements_of_each_kind() {
        let half = Tensor::vector(&[1.5, 0.1, 65504.0].map(f16::from_f32)).unwrap();
        assert_eq!(half.summarize(-1), "1.5 0.0999755859 65504");
        let small = Tensor::vector(&[-1, 3].map(Int4::from_i32)).unwrap();
        assert_eq!(small.summarize(-1), "-1 3");
        let float8 = Tensor::vector(&[1.5, 0.1].map(Float8E5M2::from_f32)).unwrap();
        assert_eq!(float8.summarize(-1), "1.5 0.09375");
        assert_eq!(
            Tensor::vector(&[u64::MAX]).unwrap().summarize(-1),
            "18446744073709551615"
        );
        let strings = [&b"ab"[..], b"c\"\n\0\\'d"].map(TString::from).to_vec();
        let strings = Tensor::from_strings(Shape::vector(2), strings).unwrap();
        assert_eq!(strings.summarize_ends(-1), r#"["ab" "c\"\n\000\\\'d"]"#);
        assert_eq!(strings.summarize(1), "ab...");
        let handle = ResourceHandle::new(HandleInfo {
            device: "/device:CPU:0".into(),
            container: "localhost".into(),
            name: "v".into(),
            type_name: "tensorflow::Var".into(),
            dtypes_and_shapes: vec![(DataType::FLOAT, PartialShape::new(&[2, -1]))],
            ..Default::default()
        });
        let handles = Tensor::from_resources(Shape::scalar(), vec![handle]).unwrap();
        assert_eq!(
            handles.summarize_ends(3),
            "<ResourceHandle(name=\"v\", device=\"/device:CPU:0\", container=\"localhost\", \
             type=\"tensorflow::Var\", dtype and shapes : \"[ DType enum: 1, Shape: [2,?] ]\")>"
        );
    }
}
