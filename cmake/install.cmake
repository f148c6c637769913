# What `cmake --install` copies: the program, the libraries, the headers, and the package file that lets another
# project write find_package(handgrad) and link handgrad::handgrad.
include(CMakePackageConfigHelpers)

set(targets handgrad_all)
foreach(folder ${HANDGRAD_FOLDERS})
  list(APPEND targets handgrad_${folder})
  install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/handgrad/${folder}
          FILES_MATCHING PATTERN "*.h"
          PATTERN kernels EXCLUDE   # compiled for one instruction set each: not for others to include
          PATTERN ops EXCLUDE       # what the sources of operations share
          PATTERN matmul.h EXCLUDE)
endforeach()
install(TARGETS ${targets} EXPORT handgrad-targets)
if(TARGET handgrad)
  install(TARGETS handgrad)
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/handgrad)
install(EXPORT handgrad-targets NAMESPACE handgrad:: DESTINATION ${package_folder})
configure_package_config_file(cmake/handgrad-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/handgrad-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/handgrad-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/handgrad-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/handgrad-config-version.cmake
        DESTINATION ${package_folder})
