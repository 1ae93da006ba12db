# find_package(TensorflowCC): targets TensorflowCC::TensorflowCC (shared) and TensorflowCC::Static, variables
# TensorflowCC_INCLUDE_DIRS and TensorflowCC_LIBRARIES. Relocatable.
get_filename_component(TENSORFLOW_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
include("${CMAKE_CURRENT_LIST_DIR}/../TensorFlow/TensorFlowTargets.cmake")

set(TensorflowCC_FOUND TRUE)
set(TensorflowCC_INCLUDE_DIR "${TENSORFLOW_PREFIX}/include")
set(TensorflowCC_INCLUDE_DIRS "${TENSORFLOW_PREFIX}/include")
set(TensorflowCC_LIBRARY TensorflowCC::TensorflowCC)
set(TensorflowCC_LIBRARIES TensorflowCC::TensorflowCC)
