# The imported targets of the package, for an installed prefix or one that is being built (the root CMakeLists.txt).
#
# Input: TENSORFLOW_PREFIX, the folder with include/ and lib/; TENSORFLOW_IMPORT_GLOBAL, set where the targets must be
# seen by the whole project.
#
# All targets of a kind are one library: the C functions are all in it.

if(TARGET TensorFlow::tensorflow)
  return()
endif()

set(_tensorflow_global "")
if(TENSORFLOW_IMPORT_GLOBAL)
  set(_tensorflow_global GLOBAL)
endif()

# Adds a shared library target that stands for lib<name>.
function(_tensorflow_add_shared target name)
  add_library(${target} SHARED IMPORTED ${_tensorflow_global})
  set(lib "${TENSORFLOW_PREFIX}/lib")
  if(WIN32)
    if(name STREQUAL "tensorflow_framework")
      set(name tensorflow)
    endif()
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION "${lib}/${name}.dll"
      IMPORTED_IMPLIB "${lib}/${name}.lib")
  elseif(APPLE)
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION "${lib}/lib${name}.2.dylib"
      IMPORTED_SONAME "@rpath/libtensorflow_cc.2.dylib")
  else()
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION "${lib}/lib${name}.so.2"
      IMPORTED_SONAME "libtensorflow_cc.so.2")
  endif()
  set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${TENSORFLOW_PREFIX}/include")
endfunction()

_tensorflow_add_shared(TensorFlow::tensorflow tensorflow)
_tensorflow_add_shared(TensorFlow::tensorflow_cc tensorflow_cc)
_tensorflow_add_shared(TensorFlow::tensorflow_framework tensorflow_framework)
_tensorflow_add_shared(tensorflow::tensorflow tensorflow)
_tensorflow_add_shared(TensorflowCC::TensorflowCC tensorflow_cc)
_tensorflow_add_shared(TensorflowCC::Shared tensorflow_cc)

# The static library is one object; it needs the C library and its usual companions.
add_library(TensorflowCC::Static STATIC IMPORTED ${_tensorflow_global})
if(WIN32)
  set(_tensorflow_archive "${TENSORFLOW_PREFIX}/lib/tensorflow_cc_static.lib")
  set(_tensorflow_system ntdll userenv ws2_32 dbghelp bcrypt advapi32 ole32 uuid shell32)
elseif(APPLE)
  set(_tensorflow_archive "${TENSORFLOW_PREFIX}/lib/libtensorflow_cc.a")
  set(_tensorflow_system c++ z zstd iconv "-framework CoreFoundation" "-framework Security")
else()
  set(_tensorflow_archive "${TENSORFLOW_PREFIX}/lib/libtensorflow_cc.a")
  set(_tensorflow_system pthread dl rt m)
endif()
set_target_properties(TensorflowCC::Static PROPERTIES
  IMPORTED_LOCATION "${_tensorflow_archive}"
  INTERFACE_INCLUDE_DIRECTORIES "${TENSORFLOW_PREFIX}/include"
  INTERFACE_LINK_LIBRARIES "${_tensorflow_system}")

unset(_tensorflow_archive)
unset(_tensorflow_system)
unset(_tensorflow_global)
