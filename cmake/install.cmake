# What `cmake --install` copies: the program, the libraries, the headers, and the package file that lets another
# project write find_package(handgrad) and link handgrad::handgrad.
include(CMakePackageConfigHelpers)

set(targets handgrad_all)
foreach(folder ${HANDGRAD_FOLDERS})
  list(APPEND targets handgrad_${folder})
  install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/handgrad/${folder}
          FILES_MATCHING PATTERN "*.h"
          PATTERN kernels EXCLUDE   # compiled for one instruction set each: not for others to include
          PATTERN ops EXCLUDE)      # what the sources of operations share
endforeach()
install(TARGETS ${targets} EXPORT handgrad-targets)
if(TARGET handgrad)
  install(TARGETS handgrad)
  if(NOT CMAKE_CROSSCOMPILING)
    # The program writes its manual page and its completion itself, from what its help is made of.
    set(manual ${CMAKE_CURRENT_BINARY_DIR}/manual)
    file(MAKE_DIRECTORY ${manual})
    set(ask ${CMAKE_COMMAND} -E env HANDGRAD_CALLED_AS=handgrad $<TARGET_FILE:handgrad> manual)
    add_custom_command(OUTPUT ${manual}/handgrad.1 ${manual}/handgrad
      COMMAND ${ask} man > ${manual}/handgrad.1
      COMMAND ${ask} bash > ${manual}/handgrad
      DEPENDS handgrad VERBATIM)
    add_custom_target(handgrad_manual ALL DEPENDS ${manual}/handgrad.1 ${manual}/handgrad)
    install(FILES ${manual}/handgrad.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${manual}/handgrad DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  endif()
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

# pkg-config: the same libraries without the command line. A library comes before those that it uses.
set(HANDGRAD_PC_LIBRARIES ${HANDGRAD_FOLDERS})
list(REMOVE_ITEM HANDGRAD_PC_LIBRARIES cli)
list(REVERSE HANDGRAD_PC_LIBRARIES)
list(TRANSFORM HANDGRAD_PC_LIBRARIES PREPEND -lhandgrad_)
list(JOIN HANDGRAD_PC_LIBRARIES " " HANDGRAD_PC_LIBRARIES)
set(pc_folder ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH HANDGRAD_PC_PREFIX ${pc_folder} ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" HANDGRAD_PC_PREFIX "${HANDGRAD_PC_PREFIX}")
configure_file(cmake/handgrad.pc.in ${CMAKE_CURRENT_BINARY_DIR}/handgrad.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/handgrad.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# What a user reads, configures and starts from.
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs configs examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
        PATTERN Doxyfile EXCLUDE PATTERN namespaces.dox EXCLUDE)
