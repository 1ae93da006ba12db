//! The headers as bindgen binds them: values of enumerations, layouts, and calls through each family of functions.
#![cfg(feature = "bindgen")]

use capi_abi::bindings::*;
use std::ffi::{CStr, c_int};
use std::mem::{offset_of, size_of};
use std::ptr::{null, null_mut};

/// Fails with the message of a status that is not OK.
///
/// # Safety
/// `status` is a live status.
unsafe fn check(status: *mut TF_Status) {
    // SAFETY: passed on to the caller.
    unsafe {
        let message = CStr::from_ptr(TF_Message(status));
        assert_eq!(TF_GetCode(status), TSL_Code_TSL_OK, "{message:?}");
    }
}

#[test]
fn enumerations_have_the_values_of_the_wire() {
    assert_eq!(TSL_Code_TSL_UNAUTHENTICATED, 16);
    assert_eq!(TF_DataType_TF_FLOAT, 1);
    assert_eq!(TF_DataType_TF_COMPLEX, TF_DataType_TF_COMPLEX64);
    assert_eq!(TF_DataType_TF_FLOAT4_E2M1FN, 33);
    assert_eq!(TF_AttrType_TF_ATTR_FUNC, 8);
    assert_eq!(TF_TString_Type_TF_TSTR_VIEW, 3);
}

#[test]
fn layouts_are_those_of_the_library() {
    assert_eq!(size_of::<TF_TString>(), 24);
    assert_eq!(size_of::<TF_Output>(), size_of::<ff_c_api::TF_Output>());
    assert_eq!(size_of::<TF_Buffer>(), size_of::<ff_c_api::TF_Buffer>());
    assert_eq!(
        size_of::<TF_AttrMetadata>(),
        size_of::<ff_c_api::TF_AttrMetadata>()
    );
    assert_eq!(
        offset_of!(TF_AttrMetadata, total_size),
        offset_of!(ff_c_api::TF_AttrMetadata, total_size)
    );
    assert_eq!(size_of::<TF_WhileParams>(), size_of::<ff_c_api::TF_WhileParams>());
    assert_eq!(
        offset_of!(TF_WhileParams, name),
        offset_of!(ff_c_api::TF_WhileParams, name)
    );
    assert_eq!(
        size_of::<TF_InputRange_Args>(),
        size_of::<ff_c_api::TF_InputRange_Args>()
    );
}

#[test]
fn status_buffer_tensor_and_string_work() {
    // SAFETY: pointers are live objects of the library, NULL, or memory that outlives the call.
    unsafe {
        let status = TF_NewStatus();
        TF_SetStatus(status, TSL_Code_TSL_NOT_FOUND, c"gone".as_ptr());
        assert_eq!(CStr::from_ptr(TF_Message(status)), c"gone");
        let buffer = TF_NewBufferFromString(c"abc".as_ptr().cast(), 3);
        assert_eq!((*buffer).length, 3);
        TF_DeleteBuffer(buffer);
        let dims = [2i64];
        let tensor = TF_AllocateTensor(TF_DataType_TF_STRING, dims.as_ptr(), 1, 48);
        let strings = TF_TensorData(tensor).cast::<TF_TString>();
        TF_StringCopy(strings, c"text".as_ptr(), 4);
        assert_eq!(TF_StringGetSize(strings), 4);
        assert_eq!(TF_StringGetSize(strings.add(1)), 0);
        assert_eq!(TF_Dim(tensor, 0), 2);
        TF_DeleteTensor(tensor);
        assert_eq!(TF_DataTypeSize(TF_DataType_TF_DOUBLE), 8);
        TF_DeleteStatus(status);
    }
}

/// A placeholder of type float.
///
/// # Safety
/// `graph` and `status` are live.
unsafe fn placeholder(graph: *mut TF_Graph, name: &CStr, status: *mut TF_Status) -> *mut TF_Operation {
    // SAFETY: passed on to the caller.
    unsafe {
        let description = TF_NewOperation(graph, c"Placeholder".as_ptr(), name.as_ptr());
        TF_SetAttrType(description, c"dtype".as_ptr(), TF_DataType_TF_FLOAT);
        let operation = TF_FinishOperation(description, status);
        check(status);
        operation
    }
}

#[test]
fn graph_operation_attribute_and_import_work() {
    // SAFETY: as above.
    unsafe {
        let status = TF_NewStatus();
        let graph = TF_NewGraph();
        let x = placeholder(graph, c"x", status);
        let mut dtype = 0;
        TF_OperationGetAttrType(x, c"dtype".as_ptr(), &mut dtype, status);
        check(status);
        assert_eq!(dtype, TF_DataType_TF_FLOAT);
        let metadata = TF_OperationGetAttrMetadata(x, c"dtype".as_ptr(), status);
        assert_eq!(metadata.type_, TF_AttrType_TF_ATTR_TYPE);
        let def = TF_NewBuffer();
        TF_GraphToGraphDef(graph, def, status);
        check(status);
        let options = TF_NewImportGraphDefOptions();
        TF_ImportGraphDefOptionsSetPrefix(options, c"again".as_ptr());
        TF_GraphImportGraphDef(graph, def, options, status);
        check(status);
        let copy = TF_GraphOperationByName(graph, c"again/x".as_ptr());
        assert_eq!(CStr::from_ptr(TF_OperationOpType(copy)), c"Placeholder");
        TF_DeleteImportGraphDefOptions(options);
        TF_DeleteBuffer(def);
        TF_DeleteGraph(graph);
        TF_DeleteStatus(status);
    }
}

#[test]
fn session_devices_and_function_work() {
    // SAFETY: as above.
    unsafe {
        let status = TF_NewStatus();
        let graph = TF_NewGraph();
        let output = |oper| TF_Output { oper, index: 0 };
        let x = output(placeholder(graph, c"x", status));
        let options = TF_NewSessionOptions();
        let session = TF_NewSession(graph, options, status);
        check(status);
        let devices = TF_SessionListDevices(session, status);
        assert_eq!(TF_DeviceListCount(devices), 1);
        TF_DeleteDeviceList(devices);
        let tensor = TF_AllocateTensor(TF_DataType_TF_FLOAT, null(), 0, 4);
        let mut result = null_mut();
        let missing = output(null_mut());
        TF_SessionRun(
            session,
            null(),
            &x,
            &tensor,
            1,
            &missing,
            &mut result,
            1,
            null(),
            0,
            null_mut(),
            status,
        );
        assert_eq!(TF_GetCode(status), TSL_Code_TSL_INVALID_ARGUMENT);
        assert!(result.is_null());
        TF_DeleteTensor(tensor);
        let function = TF_GraphToFunction(
            graph,
            c"f".as_ptr(),
            0,
            -1,
            null(),
            1,
            &x,
            1,
            &x,
            null(),
            null(),
            null(),
            status,
        );
        check(status);
        assert_eq!(CStr::from_ptr(TF_FunctionName(function)), c"f");
        TF_DeleteFunction(function);
        TF_DeleteGraph(graph);
        TF_DeleteSession(session, status);
        TF_DeleteSessionOptions(options);
        TF_DeleteStatus(status);
    }
}

#[test]
fn library_ops_and_kernels_work() {
    // SAFETY: as above.
    unsafe {
        let status = TF_NewStatus();
        assert_eq!(CStr::from_ptr(TF_Version()), c"2.21.0");
        let ops = TF_GetAllOpList();
        assert!((*ops).length > 100_000);
        TF_DeleteBuffer(ops);
        let name = c"BoundOp".as_ptr();
        let op = TF_NewOpDefinitionBuilder(name);
        TF_OpDefinitionBuilderAddInput(op, c"x: float".as_ptr());
        TF_RegisterOpDefinition(op, status);
        check(status);
        let kernel = TF_NewKernelBuilder(name, c"CPU".as_ptr(), None, None, None);
        TF_RegisterKernelBuilder(name, kernel, status);
        check(status);
        let kernels = TF_GetRegisteredKernelsForOp(name, status);
        assert!((*kernels).length > 0);
        TF_DeleteBuffer(kernels);
        let none: c_int = TF_NumInputs(null_mut());
        assert_eq!(none, 0);
        TF_DeleteStatus(status);
    }
}
