// The test program's main; `handgrad_tests --help` lists what doctest offers.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
