// The parts of a report's page, as they stand in train/report; made at build time by cmake/report.cmake.
#pragma once

#include <string_view>

namespace handgrad::train::report_parts {

extern const char* const kPage;    ///< page.html, with places for the others
extern const char* const kStyle;   ///< page.css
extern const char* const kScript;  ///< the scripts, one after another

}  // namespace handgrad::train::report_parts
