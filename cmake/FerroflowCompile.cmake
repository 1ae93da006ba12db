# Models compiled ahead of time as libraries of a project.
#
#   ferroflow_compile(TARGET digits SAVED_MODEL path/to/model)
#   add_executable(program program.c)          # includes "digits.h"
#   target_link_libraries(program PRIVATE digits)
#
# ferroflow_compile(TARGET name
#                   SAVED_MODEL folder [SIGNATURE name] [TAGS tag...]
#                 | GRAPH file FEEDS tensor... FETCHES tensor...
#                   [NAME c_name] [SHAPES input=2,3...] [EXTENT n] [WEIGHTS inside|side]
#                   [TRIPLE triple] [CPU processor])
#
# TARGET becomes a static library with the model's object; those that link it find NAME.h (TARGET.h if not said) and get
# Ferroflow::aot. The property FERROFLOW_WEIGHTS of it is the file of weights, with WEIGHTS side.
#
# Input: FERROFLOW_PREFIX, the folder of the package.

if(NOT TARGET Ferroflow::aot)
  add_library(Ferroflow::aot STATIC IMPORTED GLOBAL)
  if(WIN32)
    set(_ferroflow_archive "${FERROFLOW_PREFIX}/lib/ferroflow_aot.lib")
    set(_ferroflow_system ntdll userenv ws2_32 bcrypt)
  else()
    set(_ferroflow_archive "${FERROFLOW_PREFIX}/lib/libferroflow_aot.a")
    set(_ferroflow_system m)
    if(NOT APPLE)
      list(APPEND _ferroflow_system pthread dl)
    endif()
  endif()
  set_target_properties(Ferroflow::aot PROPERTIES
    IMPORTED_LOCATION "${_ferroflow_archive}"
    INTERFACE_INCLUDE_DIRECTORIES "${FERROFLOW_PREFIX}/include"
    INTERFACE_LINK_LIBRARIES "${_ferroflow_system}")
  unset(_ferroflow_archive)
  unset(_ferroflow_system)
endif()
set(Ferroflow_COMMAND "${FERROFLOW_PREFIX}/bin/ferroflow${CMAKE_EXECUTABLE_SUFFIX}" CACHE FILEPATH
  "The command that compiles models")

function(ferroflow_compile)
  cmake_parse_arguments(arg "" "TARGET;SAVED_MODEL;SIGNATURE;GRAPH;NAME;EXTENT;WEIGHTS;TRIPLE;CPU"
    "TAGS;FEEDS;FETCHES;SHAPES" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ferroflow_compile: ${arg_UNPARSED_ARGUMENTS} means nothing here")
  endif()
  if(NOT arg_TARGET)
    message(FATAL_ERROR "ferroflow_compile: TARGET is missing")
  endif()
  if(NOT arg_NAME)
    string(MAKE_C_IDENTIFIER "${arg_TARGET}" arg_NAME)
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${arg_TARGET}_ferroflow")
  set(prefix "${folder}/${arg_NAME}")
  set(words compile -o "${prefix}" --name "${arg_NAME}")
  if(arg_SAVED_MODEL)
    get_filename_component(model "${arg_SAVED_MODEL}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${model}/*")
    list(APPEND words --saved-model "${model}")
  elseif(arg_GRAPH)
    get_filename_component(model "${arg_GRAPH}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    set(sources "${model}")
    list(APPEND words --graph "${model}")
  else()
    message(FATAL_ERROR "ferroflow_compile: name a SAVED_MODEL or a GRAPH")
  endif()
  if(arg_SIGNATURE)
    list(APPEND words --signature "${arg_SIGNATURE}")
  endif()
  if(arg_TAGS)
    string(REPLACE ";" "," tags "${arg_TAGS}")
    list(APPEND words --tags "${tags}")
  endif()
  foreach(tensor IN LISTS arg_FEEDS)
    list(APPEND words --feed "${tensor}")
  endforeach()
  foreach(tensor IN LISTS arg_FETCHES)
    list(APPEND words --fetch "${tensor}")
  endforeach()
  foreach(shape IN LISTS arg_SHAPES)
    list(APPEND words --shape "${shape}")
  endforeach()
  if(DEFINED arg_EXTENT)
    list(APPEND words --extent "${arg_EXTENT}")
  endif()
  if(arg_TRIPLE)
    list(APPEND words --target "${arg_TRIPLE}")
  endif()
  if(arg_CPU)
    list(APPEND words --cpu "${arg_CPU}")
  endif()
  set(files "${prefix}.o" "${prefix}.h")
  if(arg_WEIGHTS)
    list(APPEND words --weights "${arg_WEIGHTS}")
    if(arg_WEIGHTS STREQUAL "side")
      list(APPEND files "${prefix}.weights")
    endif()
  endif()
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(OUTPUT ${files}
    COMMAND "${Ferroflow_COMMAND}" ${words}
    DEPENDS ${sources} "${Ferroflow_COMMAND}"
    COMMENT "Compiling the model ${arg_NAME}"
    VERBATIM)
  # Whoever includes the header waits for it.
  add_custom_target(${arg_TARGET}_files DEPENDS ${files})
  set_source_files_properties("${prefix}.o" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_library(${arg_TARGET} STATIC "${prefix}.o")
  set_target_properties(${arg_TARGET} PROPERTIES LINKER_LANGUAGE C FERROFLOW_WEIGHTS "${prefix}.weights")
  add_dependencies(${arg_TARGET} ${arg_TARGET}_files)
  target_include_directories(${arg_TARGET} INTERFACE "${folder}")
  target_link_libraries(${arg_TARGET} INTERFACE Ferroflow::aot)
endfunction()
