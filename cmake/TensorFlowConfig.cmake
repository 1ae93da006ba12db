# find_package(TensorFlow): targets TensorFlow::tensorflow, TensorFlow::tensorflow_cc, TensorFlow::tensorflow_framework
# and tensorflow::tensorflow (each the same library), variables TensorFlow_INCLUDE_DIRS and TensorFlow_LIBRARIES, and
# the spellings TENSORFLOW_*. Relocatable: all paths come from the place of this file.
get_filename_component(TENSORFLOW_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
include("${CMAKE_CURRENT_LIST_DIR}/TensorFlowTargets.cmake")
# ferroflow_compile() and Ferroflow::aot, where the package has them.
include("${CMAKE_CURRENT_LIST_DIR}/../Ferroflow/FerroflowConfig.cmake" OPTIONAL)

foreach(_tensorflow_name IN ITEMS TensorFlow TENSORFLOW)
  set(${_tensorflow_name}_FOUND TRUE)
  set(${_tensorflow_name}_VERSION "${TensorFlow_VERSION}")
  set(${_tensorflow_name}_INCLUDE_DIR "${TENSORFLOW_PREFIX}/include")
  set(${_tensorflow_name}_INCLUDE_DIRS "${TENSORFLOW_PREFIX}/include")
  set(${_tensorflow_name}_LIBRARY TensorFlow::tensorflow)
  set(${_tensorflow_name}_LIBRARIES TensorFlow::tensorflow)
  set(${_tensorflow_name}_CC_LIBRARY TensorFlow::tensorflow_cc)
  set(${_tensorflow_name}_FRAMEWORK_LIBRARY TensorFlow::tensorflow_framework)
endforeach()
unset(_tensorflow_name)
