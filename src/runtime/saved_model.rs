//! Loading a SavedModel: pick the meta graph, import it, restore its variables, run its initialisation.

use crate::options::SessionOptions;
use crate::session::{RunRequest, Session, SharedGraph};
use ff_graph::{ImportOptions, NodeId, import_graph_def};
use ff_op::OutputRef;
use ff_platform::files;
use ff_proto::{Bytes, Message, MetaGraphDef, RunOptions, SavedModel};
use ff_tensor::{Result, Shape, TString, Tensor, ensure, status};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A SavedModel that is ready to run.
pub struct LoadedModel {
    /// Its graph.
    pub graph: Arc<SharedGraph>,
    /// A session with its variables restored and its tables initialised.
    pub session: Session,
    /// The meta graph that was loaded: signatures, assets, collections.
    pub meta_graph: MetaGraphDef,
}

/// Loads the meta graph of `directory` whose tags are exactly `tags`, in any order, into an empty graph.
///
/// NOT_FOUND when there is no SavedModel or no such meta graph; INVALID_ARGUMENT or DATA_LOSS for damaged files.
pub fn load_saved_model(
    graph: Arc<SharedGraph>,
    directory: &str,
    tags: &[String],
    options: SessionOptions,
    run_options: Option<&RunOptions>,
) -> Result<LoadedModel> {
    let saved_model = read(directory)?;
    let meta_graph = find_meta_graph(saved_model, tags)?;
    let graph_def = meta_graph.graph_def.clone().unwrap_or_default();
    import_graph_def(&mut graph.lock(), graph_def, &ImportOptions::default())?;
    let session = Session::new(graph.clone(), options)?;
    let loader = Loader {
        directory,
        meta_graph: &meta_graph,
        graph: &graph,
        session: &session,
        run_options,
    };
    let assets = loader.assets()?;
    loader.restore(&assets)?;
    loader.initialize(&assets)?;
    Ok(LoadedModel {
        graph,
        session,
        meta_graph,
    })
}

fn read(directory: &str) -> Result<SavedModel> {
    let base = directory.trim_end_matches('/');
    let binary = format!("{base}/saved_model.pb");
    if files::exists(&binary) {
        return parse(&binary, files::read(&binary)?);
    }
    let text = format!("{base}/saved_model.pbtxt");
    if files::exists(&text) {
        let content = String::from_utf8_lossy(&files::read(&text)?).into_owned();
        return ff_proto::text::parse(&content)
            .map_err(|_| status!(DataLoss, "Can't parse {text} as text proto"));
    }
    Err(status!(
        NotFound,
        "Could not find SavedModel .pb or .pbtxt at supplied export directory path: {directory}. Check that the directory exists and that you have the right permissions for accessing it."
    ))
}

/// The model in these bytes.
///
/// The reference reads files in pieces and forgets what was wrong once it has reached the end: OUT_OF_RANGE for damaged
/// files that it reads to the end. DATA_LOSS for others.
fn parse(path: &str, bytes: Vec<u8>) -> Result<SavedModel> {
    let bytes = Bytes::from(bytes);
    SavedModel::decode(known_fields(bytes.clone())).map_err(|_| {
        if is_read_to_end(bytes) {
            status!(OutOfRange, "Read less bytes than requested")
        } else {
            status!(DataLoss, "Can't parse {path} as binary proto")
        }
    })
}

/// Whether a reader in pieces asks for what follows the end of a damaged file before it sees the damage. It does so once it
/// is at one of the last 16 bytes, or in a field that ends after them.
fn is_read_to_end(mut rest: Bytes) -> bool {
    use prost::encoding::{DecodeContext, WireType, decode_key, skip_field};
    const LAST: usize = 16;
    while rest.len() > LAST {
        let Ok((number, form)) = decode_key(&mut rest) else {
            return false;
        };
        let field = rest.clone();
        if form == WireType::EndGroup {
            return false;
        }
        if let Err(error) = skip_field(form, number, &mut rest, DecodeContext::default()) {
            return rest.len() <= LAST || error.to_string().contains("buffer underflow");
        }
        if (number, form) == (2, WireType::LengthDelimited) {
            let field = field.slice(..field.len() - rest.len());
            if MetaGraphDef::decode_length_delimited(field).is_err() {
                return false;
            }
        }
    }
    true
}

/// The bytes without the fields that a SavedModel has in another form. Readers are to skip those: another message, as a
/// frozen graph, is then a model without meta graphs. Bytes that are no message stay as they are.
fn known_fields(bytes: Bytes) -> Bytes {
    use prost::encoding::{DecodeContext, WireType, decode_key, skip_field};
    let mut rest = bytes.clone();
    let (mut kept, mut all) = (Vec::new(), true);
    while !rest.is_empty() {
        let start = bytes.len() - rest.len();
        let Ok((number, form)) = decode_key(&mut rest) else {
            return bytes;
        };
        if skip_field(form, number, &mut rest, DecodeContext::default()).is_err() {
            return bytes;
        }
        if matches!(
            (number, form),
            (1, WireType::Varint) | (2, WireType::LengthDelimited)
        ) {
            kept.push(start..bytes.len() - rest.len());
        } else {
            all = false;
        }
    }
    if all {
        return bytes;
    }
    let kept: Vec<&[u8]> = kept.into_iter().map(|range| &bytes[range]).collect();
    Bytes::from(kept.concat())
}

fn find_meta_graph(saved_model: SavedModel, tags: &[String]) -> Result<MetaGraphDef> {
    let wanted: BTreeSet<&str> = tags.iter().map(String::as_str).collect();
    let fits = |meta_graph: &MetaGraphDef| {
        let info = meta_graph.meta_info_def.as_ref();
        let have: BTreeSet<&str> = info
            .into_iter()
            .flat_map(|info| info.tags.iter().map(String::as_str))
            .collect();
        have == wanted
    };
    let found = saved_model.meta_graphs.into_iter().find(fits);
    found.ok_or_else(|| {
        let list = Vec::from_iter(wanted).join(" ");
        status!(
            NotFound,
            "Could not find meta graph def matching supplied tags: {{ {list} }}. To inspect available tag-sets in the SavedModel, please use the SavedModel CLI: `saved_model_cli`"
        )
    })
}

struct Loader<'a> {
    directory: &'a str,
    meta_graph: &'a MetaGraphDef,
    graph: &'a SharedGraph,
    session: &'a Session,
    run_options: Option<&'a RunOptions>,
}

impl Loader<'_> {
    fn path(&self, parts: &str) -> String {
        format!("{}/{parts}", self.directory.trim_end_matches('/'))
    }

    /// The output that a tensor name (`node:index`) means.
    fn output(&self, name: &str) -> Result<OutputRef> {
        let (node, index) = match name.rsplit_once(':') {
            Some((node, index)) if index.bytes().all(|digit| digit.is_ascii_digit()) && !index.is_empty() => {
                (node, index.parse().unwrap_or(u32::MAX))
            }
            _ => (name, 0),
        };
        Ok(OutputRef {
            node: self.node(node)?,
            index,
        })
    }

    fn node(&self, name: &str) -> Result<NodeId> {
        let found = self.graph.lock().find(name);
        found.ok_or_else(|| {
            status!(
                NotFound,
                "The SavedModel names '{name}', which is not in its graph"
            )
        })
    }

    /// What to feed for the model's asset files: their full paths.
    fn assets(&self) -> Result<Vec<(OutputRef, Tensor)>> {
        let mut feeds = Vec::new();
        for asset in &self.meta_graph.asset_file_def {
            let Some(info) = &asset.tensor_info else { continue };
            let Some(ff_proto::tensor_info::Encoding::Name(name)) = &info.encoding else {
                continue;
            };
            let path = self.path(&format!("assets/{}", asset.filename));
            feeds.push((self.output(name)?, string_scalar(&path)?));
        }
        Ok(feeds)
    }

    /// Restores variables, if the model has any.
    fn restore(&self, assets: &[(OutputRef, Tensor)]) -> Result<()> {
        let Some(saver) = &self.meta_graph.saver_def else {
            return Ok(());
        };
        if saver.restore_op_name.is_empty() || !files::is_directory(&self.path("variables")) {
            return Ok(());
        }
        let prefix = self.path("variables/variables");
        if !files::exists(&format!("{prefix}.index")) && !files::exists(&prefix) {
            return Ok(());
        }
        let mut feeds = assets.to_vec();
        feeds.push((self.output(&saver.filename_tensor_name)?, string_scalar(&prefix)?));
        self.run(&feeds, self.node(&saver.restore_op_name)?)
    }

    /// Runs the op that initialises tables and the like, if the model names one.
    fn initialize(&self, assets: &[(OutputRef, Tensor)]) -> Result<()> {
        match self.init_op()? {
            Some(name) => self.run(assets, self.output(&name)?.node),
            None => Ok(()),
        }
    }

    fn init_op(&self) -> Result<Option<String>> {
        const SIGNATURE: &str = "__saved_model_init_op";
        let named = self
            .meta_graph
            .signature_def
            .get(SIGNATURE)
            .and_then(|def| def.outputs.get(SIGNATURE));
        if let Some(ff_proto::tensor_info::Encoding::Name(name)) =
            named.and_then(|info| info.encoding.as_ref())
        {
            return Ok(Some(name.clone()));
        }
        for key in ["saved_model_main_op", "legacy_init_op"] {
            let Some(collection) = self.meta_graph.collection_def.get(key) else {
                continue;
            };
            let Some(ff_proto::collection_def::Kind::NodeList(list)) = &collection.kind else {
                continue;
            };
            ensure!(
                list.value.len() == 1,
                FailedPrecondition,
                "Expected exactly one main op in : {}",
                self.directory
            );
            return Ok(list.value.first().cloned());
        }
        Ok(None)
    }

    fn run(&self, feeds: &[(OutputRef, Tensor)], target: NodeId) -> Result<()> {
        let request = RunRequest {
            feeds,
            fetches: &[],
            targets: &[target],
            options: self.run_options,
            want_metadata: false,
        };
        self.session.run(&request).map(drop)
    }
}

fn string_scalar(text: &str) -> Result<Tensor> {
    Tensor::from_strings(Shape::scalar(), vec![TString::from(text)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_tensor::Code;

    /// Codes of the reference.
    #[test]
    fn damage_is_data_loss_unless_the_end_comes_first() {
        let code = |bytes: &[u8]| parse("path", bytes.to_vec()).err().map(|error| error.code());
        assert_eq!(code(b""), None);
        assert_eq!(code(b"garbage!"), Some(Code::OutOfRange));
        assert_eq!(code(b"\x12\x80\x80\x01abc"), Some(Code::OutOfRange));
        assert_eq!(code(&[0xff; 40]), Some(Code::DataLoss));
        assert_eq!(
            code(&b"not a saved model at all\n".repeat(10)),
            Some(Code::DataLoss)
        );
    }
}
