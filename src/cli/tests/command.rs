//! The built command: what it prints, what it writes, and that bad words and files are messages.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ferroflow"))
        .args(words)
        .output()
        .unwrap()
}

/// What a run that succeeds prints.
fn good(words: &[&str]) -> String {
    let output = run(words);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The exit status and message of a run that fails.
fn bad(words: &[&str]) -> (i32, String) {
    let output = run(words);
    let code = output
        .status
        .code()
        .unwrap_or_else(|| panic!("{words:?} was ended by a signal"));
    assert_ne!(code, 0, "{words:?}");
    (code, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn data(name: &str) -> String {
    format!("{}/../../examples-c/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

const MODULE: &str = "HloModule softmax
%most () -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %m = f32[] maximum(%a, %b)
}
%sum () -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}
ENTRY %main () -> f32[6,40] {
  %x = f32[6,40] parameter(0)
  %low = f32[] constant(-inf)
  %zero = f32[] constant(0)
  %most = f32[6] reduce(%x, %low), dimensions={1}, to_apply=%most
  %wide = f32[6,40] broadcast(%most), dimensions={0}
  %shifted = f32[6,40] subtract(%x, %wide)
  %again = f32[6,40] subtract(%x, %wide)
  %exp = f32[6,40] exponential(%again)
  %total = f32[6] reduce(%exp, %zero), dimensions={1}, to_apply=%sum
  %totals = f32[6,40] broadcast(%total), dimensions={0}
  ROOT %share = f32[6,40] divide(%exp, %totals)
}";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.path().join(name), text).unwrap();
        self.path(name)
    }
}

#[test]
fn bad_words_are_messages() {
    assert_eq!(bad(&[]).0, 2);
    assert_eq!(bad(&["frobnicate"]).0, 2);
    for words in [
        &["compile"][..],
        &["compile", "-o", "x"],
        &["compile", "-o", "x", "--saved-model", "/nowhere"],
        &["compile", "-o", "x", "--graph", "/nowhere", "--fetch", "y"],
        &["compile", "-o", "x", "--saved-model", "a", "--graph", "b"],
        &["compile", "-o", "x", "--saved-model"],
        &["show"],
        &["show", "/nowhere"],
        &["hlo"],
        &["hlo", "/nowhere"],
        &["hlo", "--frobnicate", "x"],
    ] {
        assert_eq!(bad(words).0, 1, "{words:?}");
    }
    assert!(good(&["help"]).contains("compile") && good(&["version"]).contains("ferroflow"));
    for command in ["compile", "show", "hlo"] {
        assert!(good(&[command, "--help"]).contains("usage"));
    }
}

#[test]
fn signatures_are_shown() {
    let text = good(&["show", &data("digits_saved_model")]);
    for part in [
        "tags serve",
        "signature serving_default",
        "input image: float [?,8,8]",
        "output digit: int32",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn modules_run_through_passes() {
    let folder = Folder::new();
    let file = folder.write("softmax.hlo", MODULE);
    let plain = good(&["hlo", &file, "--passes", "none"]);
    assert_eq!(plain.matches(" subtract(").count(), 2, "{plain}");
    let merged = good(&["hlo", &file, "--passes=cse,dce"]);
    assert_eq!(merged.matches(" subtract(").count(), 1, "{merged}");
    assert!(good(&["hlo", &file]).contains(" fusion("));
    assert!(good(&["hlo", "x", "--list-passes"]).contains("transpose_motion"));
    let each = good(&["hlo", &file, "--print-after-all"]);
    assert!(
        each.contains("// after cse") && each.contains("// after fusion"),
        "{each}"
    );
    let (_, message) = bad(&["hlo", &file, "--passes", "nothing"]);
    assert!(
        message.contains("NotFound") && message.contains("algebraic"),
        "{message}"
    );
}

#[test]
fn modules_run() {
    let folder = Folder::new();
    let file = folder.write("softmax.hlo", MODULE);
    let text = good(&["hlo", &file, "--compare", "--seed", "7", "--repeat", "2"]);
    assert!(
        text.contains("equal: 1 results") && text.contains("compiled"),
        "{text}"
    );
    let sum = folder.write(
        "sum.hlo",
        "HloModule m\nENTRY %e () -> f32[2] {\n  %x = f32[2] parameter(0)\n  %y = f32[2] parameter(1)\n  ROOT %s = f32[2] add(%x, %y)\n}",
    );
    let text = good(&[
        "hlo",
        &sum,
        "--run",
        "--input",
        "f32[2] {1, 2}",
        "--input",
        "f32[2] {0.5, -4}",
    ]);
    assert!(text.contains("1.5") && text.contains("-2"), "{text}");
    for words in [
        &["--input", "f32[2] {1, 2}"][..],
        &["--input", "x"],
        &["--input", "f32[2] {1}"],
        &["--seed", "x"],
    ] {
        bad(&[&["hlo", &sum, "--run"], words].concat());
    }
    let wrong = bad(&[
        "hlo",
        &sum,
        "--run",
        "--input",
        "f32[3] {1, 2, 3}",
        "--input",
        "f32[2] {0.5, -4}",
    ]);
    assert!(wrong.1.contains("InvalidArgument"), "{wrong:?}");
}

#[test]
fn modules_have_other_forms() {
    let folder = Folder::new();
    let file = folder.write("softmax.hlo", MODULE);
    let emit = |what: &str| good(&["hlo", &file, "--emit", what]);
    assert!(emit("svg").contains("<svg") && emit("html").contains("<html"));
    assert!(emit("buffers").contains("block") && emit("structure").contains("reduce"));
    if cfg!(feature = "llvm") {
        assert!(emit("llvm").contains("define") && emit("asm").contains(".text"));
        assert!(emit("ptx:sm_90").contains(".target sm_90"));
        bad(&["hlo", &file, "--emit", "ptx:sm_1"]);
    }
    bad(&["hlo", &file, "--emit", "nothing"]);
}

#[test]
fn damaged_modules_are_messages() {
    let folder = Folder::new();
    for at in (0..MODULE.len()).step_by(41) {
        let mut text = MODULE.to_string();
        text.truncate(at);
        let file = folder.write("cut.hlo", &text);
        bad(&["hlo", &file]);
        let text = MODULE.replacen(char::from(MODULE.as_bytes()[at]), "}", 3);
        let file = folder.write("changed.hlo", &text);
        assert!(
            run(&["hlo", &file, "--compare"]).status.code().is_some(),
            "{text}"
        );
    }
}

#[cfg(all(feature = "llvm", target_os = "linux"))]
#[test]
fn models_compile_for_several_processors() {
    let folder = Folder::new();
    let model = data("digits_saved_model");
    let prefix = folder.path("digits");
    let compile = |more: &[&str]| {
        let words = [&["compile", "--saved-model", &model, "-o", &prefix][..], more].concat();
        good(&words)
    };
    let text = compile(&["--shape", "image=1,8,8", "--report"]);
    assert!(
        text.contains("fusions with machine code") && text.contains("ENTRY"),
        "{text}"
    );
    let header = std::fs::read_to_string(format!("{prefix}.h")).unwrap();
    assert!(
        header.contains("digits_arg_image") && header.contains("class Digits"),
        "{header}"
    );
    assert_eq!(
        machine(&prefix),
        if cfg!(target_arch = "x86_64") { 62 } else { 183 }
    );
    compile(&[
        "--extent",
        "2",
        "--target",
        "aarch64-unknown-linux-gnu",
        "--cpu",
        "neoverse-n1",
    ]);
    assert_eq!(machine(&prefix), 183);
    let names = String::from_utf8_lossy(&std::fs::read(format!("{prefix}.o")).unwrap()).into_owned();
    assert!(names.contains("digits_program") && names.contains("digits_fusion_0"));
    compile(&["--extent", "1", "--weights", "side", "--name", "other"]);
    assert!(Path::new(&format!("{prefix}.weights")).exists());
    assert!(
        std::fs::read_to_string(format!("{prefix}.h"))
            .unwrap()
            .contains("other_program")
    );
    let words = [
        "compile",
        "--saved-model",
        &model,
        "-o",
        &prefix,
        "--target",
        "pdp11-dec",
    ];
    assert!(bad(&words).1.contains("pdp11"));
    let words = [
        "compile",
        "--saved-model",
        &model,
        "-o",
        &prefix,
        "--signature",
        "none",
    ];
    assert!(bad(&words).1.contains("serving_default"));
    let words = ["compile", "--saved-model", &model, "-o", &prefix];
    assert!(bad(&words).1.contains("--shape image="));
}

/// The machine of an ELF object.
#[cfg(all(feature = "llvm", target_os = "linux"))]
fn machine(prefix: &str) -> u16 {
    let bytes = std::fs::read(PathBuf::from(format!("{prefix}.o"))).unwrap();
    assert_eq!(bytes[..4], *b"\x7fELF");
    u16::from_le_bytes([bytes[18], bytes[19]])
}
