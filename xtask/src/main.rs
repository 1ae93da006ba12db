//! Developer commands: `cargo xtask <command>`.

fn main() {
    eprintln!("usage: cargo xtask <headers|coverage|tidy|dist>");
    std::process::exit(2);
}
