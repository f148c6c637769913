# Compiles through ccache where it is installed and no other launcher was asked for.
if(NOT PROJECT_IS_TOP_LEVEL OR CMAKE_CXX_COMPILER_LAUNCHER)
  return()
endif()
find_program(HANDGRAD_CCACHE ccache DOC "ccache, or empty for none")
if(HANDGRAD_CCACHE)
  # With these two settings, and the options below, files that use a precompiled header can be cached too.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${HANDGRAD_CCACHE})
  set(HANDGRAD_CCACHE_PCH_OPTIONS
      $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
      "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
