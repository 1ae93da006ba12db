# Makes the reference's wheel look like an installed TensorFlow package, so that the examples and tests are built and run
# against it:  cmake -DTensorFlow_DIR=<this folder> -DFERROFLOW_REFERENCE=<virtual environment>
if(NOT FERROFLOW_REFERENCE)
  set(FERROFLOW_REFERENCE "$ENV{FERROFLOW_REFERENCE}")
endif()
file(GLOB TensorFlow_ROOT "${FERROFLOW_REFERENCE}/lib/python3*/site-packages/tensorflow")
if(NOT EXISTS "${TensorFlow_ROOT}/libtensorflow_cc.so.2")
  set(TensorFlow_FOUND FALSE)
  set(TensorFlow_NOT_FOUND_MESSAGE "no reference in '${FERROFLOW_REFERENCE}'; run tools/reference/setup.sh")
  return()
endif()

set(TensorFlow_VERSION 2.21.0)
set(TensorFlow_INCLUDE_DIRS "${TensorFlow_ROOT}/include")
set(TensorFlow_LIBRARIES TensorFlow::tensorflow)
if(NOT TARGET TensorFlow::tensorflow)
  add_library(TensorFlow::tensorflow_framework SHARED IMPORTED)
  set_target_properties(TensorFlow::tensorflow_framework PROPERTIES
    IMPORTED_LOCATION "${TensorFlow_ROOT}/libtensorflow_framework.so.2"
    IMPORTED_SONAME libtensorflow_framework.so.2)
  add_library(TensorFlow::tensorflow_cc SHARED IMPORTED)
  set_target_properties(TensorFlow::tensorflow_cc PROPERTIES
    IMPORTED_LOCATION "${TensorFlow_ROOT}/libtensorflow_cc.so.2"
    IMPORTED_SONAME libtensorflow_cc.so.2
    INTERFACE_INCLUDE_DIRECTORIES "${TensorFlow_INCLUDE_DIRS}"
    INTERFACE_LINK_LIBRARIES TensorFlow::tensorflow_framework)
  add_library(TensorFlow::tensorflow ALIAS TensorFlow::tensorflow_cc)
endif()
