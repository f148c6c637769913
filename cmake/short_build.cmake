# handgrad_short_build(LIBRARY [HOT_FILE...]): compiles a library that reads, writes and shows in about half the time:
# the headers that all of its files include are precompiled and little is optimized. Files that run in every training
# step are named and keep -O3. Only for release builds; the numbers are the same, no arithmetic of a model is done here.
function(handgrad_short_build library)
  if(NOT CMAKE_BUILD_TYPE STREQUAL Release)
    return()
  endif()
  target_precompile_headers(${library} PRIVATE
    <algorithm> <cmath> <filesystem> <fstream> <functional> <map> <memory> <optional> <string> <vector>
    <fmt/format.h> <nlohmann/json.hpp>)
  target_compile_options(${library} PRIVATE ${HANDGRAD_CCACHE_PCH_OPTIONS} -Og)
  foreach(file ${ARGN})
    set_source_files_properties(${file} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS -O3)
  endforeach()
endfunction()
