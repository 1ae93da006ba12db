# find_package(Ferroflow): models compiled ahead of time. The target Ferroflow::aot (the runtime of compiled models, without
# the TensorFlow library), the function ferroflow_compile() and the variable Ferroflow_COMMAND. Relocatable.
get_filename_component(FERROFLOW_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
include("${CMAKE_CURRENT_LIST_DIR}/FerroflowCompile.cmake")
set(Ferroflow_FOUND TRUE)
