# The report's page: its parts in view/report become strings of the library, so that the program needs no file beside it.
# Included by CMakeLists.txt it adds the rule; as a script, `cmake -D OUT=... -P`, it is what the rule runs.
set(report_folder ${CMAKE_CURRENT_LIST_DIR}/../view/report)
set(report_scripts numbers steps norms map why row loss texts closed main)

if(CMAKE_SCRIPT_MODE_FILE)
  # string(VARIABLE FILES...): a constant that holds the text of the files, in pieces that a compiler takes.
  function(add_string name)
    set(text "")
    foreach(file ${ARGN})
      file(READ ${report_folder}/${file} content)
      string(APPEND text "${content}")
    endforeach()
    file(APPEND ${OUT}.new "const char* const ${name} = R\"handgrad(${text})handgrad\";\n")
  endfunction()
  file(WRITE ${OUT}.new "#include \"handgrad/view/report.h\"\n\nnamespace handgrad::view::report_parts {\n")
  list(TRANSFORM report_scripts APPEND .js)
  add_string(kPage page.html)
  add_string(kStyle page.css)
  add_string(kScript ${report_scripts})
  file(APPEND ${OUT}.new "}  // namespace handgrad::view::report_parts\n")
  file(RENAME ${OUT}.new ${OUT})
  return()
endif()

file(GLOB report_files CONFIGURE_DEPENDS ${report_folder}/*)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/report_parts.cpp
  COMMAND ${CMAKE_COMMAND} -D OUT=${PROJECT_BINARY_DIR}/report_parts.cpp -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${report_files} ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
target_sources(handgrad_view PRIVATE ${PROJECT_BINARY_DIR}/report_parts.cpp)
