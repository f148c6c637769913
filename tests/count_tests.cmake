# Fails unless ctest runs exactly the test cases that the test program has. ctest learns their names by parsing a
# list, and a name with an unpaired bracket or a semicolon would silently swallow its neighbors.
execute_process(COMMAND ${TESTS} --count OUTPUT_VARIABLE counted COMMAND_ERROR_IS_FATAL ANY)
if(NOT counted MATCHES "current filters: ([0-9]+)")
  message(FATAL_ERROR "no number of test cases in: ${counted}")
endif()
set(expected ${CMAKE_MATCH_1})

execute_process(COMMAND ${CTEST} --show-only=json-v1 WORKING_DIRECTORY ${BUILD}
                OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\"--test-case=" commands "${listing}")
list(LENGTH commands known)

if(NOT known EQUAL expected)
  message(FATAL_ERROR "ctest knows ${known} test cases, the test program has ${expected}: look for a name with "
                      "a semicolon, an unpaired bracket or a backslash")
endif()
message(STATUS "ctest knows all ${expected} test cases")
