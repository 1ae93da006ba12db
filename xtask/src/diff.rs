//! `cargo xtask diff`: random graphs of ops through this library and through the reference.
//!
//! `tools/reference/diff.py` makes the graphs, from the library's op cases, and judges the outcomes; its options are
//! passed on. This command writes the dump of cases if it is missing, and starts the script, which starts `xtask diff
//! --serve` as the side of ours: a child that answers each line of its input, a graph, with a line.
//!
//! A line is, separated by tabs: the GraphDef; feeds `name=TensorProto,..`; steps `fetch,fetch|target,target;..`. Messages are
//! in hexadecimal. The answer is `ok` and the fetched tensors, or the code and the message of an error.

use crate::tools;

/// Runs the command.
#[cfg(feature = "diff")]
pub fn run(arguments: &[String]) -> Result<(), String> {
    if arguments.iter().any(|argument| argument == "--serve") {
        return server::serve().map_err(|error| error.to_string());
    }
    let dump = tools::root().join("target/cases/cases.tsv");
    if !dump.exists() {
        tools::create_folder(&tools::root().join("target/cases"))?;
        let mut tests = tools::cargo();
        tests
            .args(["test", "--quiet", "-p", "ff-ops"])
            .env("FF_CASES_DUMP", &dump);
        tools::output(&mut tests)?;
    }
    let reference = std::env::var("FERROFLOW_REFERENCE").map_err(
        |_| "FERROFLOW_REFERENCE does not name the reference's environment (tools/reference/setup.sh)",
    )?;
    let ours = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut script = std::process::Command::new(format!("{reference}/bin/python"));
    script.arg(tools::root().join("tools/reference/diff.py"));
    script.arg(dump).arg(ours).args(arguments);
    tools::run(&mut script)
}

/// Stands in where the runtime was not built in; `main` builds it in before it gets here.
#[cfg(not(feature = "diff"))]
pub fn run(_arguments: &[String]) -> Result<(), String> {
    Err(format!(
        "{} was built without the feature `diff`",
        tools::root().join("xtask").display()
    ))
}

#[cfg(feature = "diff")]
mod server {
    use ff_graph::{Graph, ImportOptions, import_graph_def};
    use ff_op::OutputRef;
    use ff_proto::{ConfigProto, GraphDef, Message, TensorProto};
    use ff_runtime::{RunRequest, Session, SessionOptions};
    use ff_tensor::{Result, Tensor, bail, status};
    use std::io::{BufRead, Write};
    use std::sync::Arc;

    /// Answers lines until there are no more.
    pub fn serve() -> std::io::Result<()> {
        let mut output = std::io::stdout().lock();
        for line in std::io::stdin().lock().lines() {
            let line = line?;
            let caught = std::panic::catch_unwind(|| answer(&line));
            let text = match caught {
                Ok(Ok(Some(tensors))) => format!("ok\t{}", tensors.join(",")),
                Ok(Ok(None)) => "skip\tmore than a line holds".to_string(),
                Ok(Err(error)) => {
                    format!(
                        "{}\t{}",
                        error.code() as i32,
                        error.message().replace(['\t', '\n'], " ")
                    )
                }
                Err(_) => "13\tpanic".to_string(),
            };
            writeln!(output, "{text}")?;
            output.flush()?;
        }
        Ok(())
    }

    fn bytes(text: &str) -> Result<Vec<u8>> {
        let digit = |index: usize| {
            text.get(index..index + 2)
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
        };
        let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(digit).collect();
        bytes.ok_or_else(|| status!(Internal, "no hexadecimal digits"))
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn decode<M: Message + Default>(text: &str) -> Result<M> {
        M::decode(&*bytes(text)?).map_err(|error| status!(Internal, "{error}"))
    }

    fn parts(text: &str, separator: char) -> impl Iterator<Item = &str> {
        text.split(separator).filter(|part| !part.is_empty())
    }

    fn output(graph: &Graph, name: &str) -> Result<OutputRef> {
        let (name, index) = name.split_once(':').unwrap_or((name, "0"));
        let node = graph.find(name).ok_or_else(|| status!(NotFound, "{name}"))?;
        let index = index.parse().map_err(|_| status!(Internal, "{name}:{index}"))?;
        Ok(OutputRef { node, index })
    }

    /// Larger tensors are not written as text, in bytes.
    const LARGEST: usize = 256 << 20;

    /// Runs what a line asks for; gives the fetched tensors as messages in hexadecimal, or nothing where they are too large.
    fn answer(line: &str) -> Result<Option<Vec<String>>> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [graph_def, feeds, steps] = fields[..] else {
            bail!(Internal, "a line has three fields");
        };
        let mut graph = Graph::new(ff_ops::registry());
        import_graph_def(
            &mut graph,
            decode::<GraphDef>(graph_def)?,
            &ImportOptions::default(),
        )?;
        let mut fed = Vec::new();
        for feed in parts(feeds, ',') {
            let Some((name, value)) = feed.split_once('=') else {
                bail!(Internal, "a feed is name=value");
            };
            fed.push((
                output(&graph, name)?,
                Tensor::from_proto(&decode::<TensorProto>(value)?)?,
            ));
        }
        let mut requests = Vec::new();
        for step in parts(steps, ';') {
            let (fetches, targets) = step.split_once('|').unwrap_or((step, ""));
            let fetches: Result<Vec<OutputRef>> =
                parts(fetches, ',').map(|name| output(&graph, name)).collect();
            let targets: Result<Vec<OutputRef>> =
                parts(targets, ',').map(|name| output(&graph, name)).collect();
            requests.push((
                fetches?,
                targets?.iter().map(|target| target.node).collect::<Vec<_>>(),
            ));
        }
        let config = ConfigProto {
            intra_op_parallelism_threads: 1,
            inter_op_parallelism_threads: 1,
            operation_timeout_in_ms: 5000,
            ..ConfigProto::default()
        };
        let options = SessionOptions {
            config,
            ..SessionOptions::default()
        };
        let session = Session::new(Arc::new(parking_lot::Mutex::new(graph)), options)?;
        let mut values = Vec::new();
        for (fetches, targets) in &requests {
            let request = RunRequest {
                feeds: &fed,
                fetches,
                targets,
                options: None,
                want_metadata: false,
            };
            let response = session.run(&request)?;
            if response.outputs.iter().any(|tensor| tensor.byte_size() > LARGEST) {
                return Ok(None);
            }
            values.extend(
                response
                    .outputs
                    .iter()
                    .map(|tensor| hex(&tensor.to_proto_fields().encode_to_vec())),
            );
        }
        Ok(Some(values))
    }
}
