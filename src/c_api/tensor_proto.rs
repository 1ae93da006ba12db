//! Tensors from messages.

use crate::TF_Status;
use crate::buffer::TF_Buffer;
use crate::ffi::{given, given_mut};
use crate::guard::guard;
use crate::tensor::TF_Tensor;
use ff_tensor::{Tensor, status};

/// Makes `to` the tensor that a serialized `TensorProto` describes. INVALID_ARGUMENT for other bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_TensorFromProto(
    from: Option<&TF_Buffer>,
    to: Option<&mut TF_Tensor>,
    status: Option<&mut TF_Status>,
) {
    const UNPARSEABLE: &str = "Unparseable tensor proto";
    guard(status, || {
        let proto: ff_proto::TensorProto = given(from, "from")?.decode(UNPARSEABLE)?;
        let tensor = Tensor::from_proto(&proto).map_err(|_| status!(InvalidArgument, "{UNPARSEABLE}"))?;
        *given_mut(to, "to")? = TF_Tensor::new(tensor)?;
        Ok(())
    });
}
