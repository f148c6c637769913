// A locale that writes 0.5 as 0,5, made for a test where the system has none.
#pragma once

#include <clocale>
#include <cstdlib>
#include <string>

#include "temporary_folder.h"

/// While it lives, LOCPATH points to a German locale built for the test. Building it takes `localedef` and the sources
/// of locales (the package "locales"); without them `exists()` is false.
class DecimalComma {
 public:
  DecimalComma() {
    const std::string make =
        "localedef -i de_DE -f UTF-8 '" + (folder_.path() / kName).string() + "' >/dev/null 2>&1";
    exists_ = std::system(make.c_str()) == 0;
    ::setenv("LOCPATH", folder_.path().c_str(), 1);
  }
  ~DecimalComma() { ::unsetenv("LOCPATH"); }
  DecimalComma(const DecimalComma&) = delete;
  DecimalComma& operator=(const DecimalComma&) = delete;

  bool exists() const { return exists_; }
  const char* name() const { return kName; }

 private:
  static constexpr const char* kName = "de_DE.UTF-8";
  TemporaryFolder folder_;
  bool exists_ = false;
};
