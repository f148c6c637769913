// What this build is. The values come from the build, see the top CMakeLists.txt.
#pragma once

namespace handgrad::train {

extern const char* const kVersion;    ///< "0.1.0"
extern const char* const kRevision;   ///< of the source, "3bd877a"; "unknown" outside of a repository
extern const char* const kCompiler;   ///< "GNU 12.2.0"
extern const char* const kBuildType;  ///< "Release"

}  // namespace handgrad::train
