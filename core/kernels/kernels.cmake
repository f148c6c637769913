# The kernels: the same sources compiled once per instruction set, each with its flags and namespace. Which
# set runs is decided at program start (targets.cpp), so one binary serves every machine.

# A source takes part when it has something in the namespace of an instruction set. Operations are read again when
# they change.
file(GLOB candidates CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp ${CMAKE_CURRENT_LIST_DIR}/../ops/*.cpp)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${candidates})
set(kernel_sources)
foreach(source ${candidates})
  file(STRINGS ${source} found REGEX "^namespace handgrad::kernels::HANDGRAD_TARGET" LIMIT_COUNT 1)
  if(found)
    list(APPEND kernel_sources ${source})
  endif()
endforeach()

# Fused multiply-adds are written out in the kernels, never left to the compiler, so that bits do not depend on it
# (-ffp-contract=off, in handgrad_flags). Kernels are optimized in debug builds too.
function(handgrad_kernels target)
  set(library handgrad_kernels_${target})
  add_library(${library} OBJECT ${kernel_sources})
  target_include_directories(${library} PRIVATE ${HANDGRAD_INCLUDE_ROOT})
  target_compile_features(${library} PRIVATE cxx_std_20)
  target_link_libraries(${library} PRIVATE handgrad_flags)
  target_compile_definitions(${library} PRIVATE HANDGRAD_TARGET=${target})
  target_compile_options(${library} PRIVATE $<$<NOT:$<CONFIG:Release>>:-O2> ${ARGN})
  set_target_properties(${library} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_sources(handgrad_core PRIVATE $<TARGET_OBJECTS:${library}>)
endfunction()

handgrad_kernels(baseline)
target_sources(handgrad_core PRIVATE ${CMAKE_CURRENT_LIST_DIR}/targets.cpp)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  handgrad_kernels(avx2 -mavx2 -mfma)
  handgrad_kernels(avx512 -mavx2 -mfma -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512)
  target_compile_definitions(handgrad_flags INTERFACE HANDGRAD_X86_TARGETS)
endif()
